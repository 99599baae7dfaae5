//! The stages that hold something on the disk, or may refuse to begin: opened before anything else.

use std::sync::Arc;

use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_intake::{Canonicalizer, Outlinks, Scope, Traps};
use orbweaver_model::{Clock, Event, KeySeed};
use orbweaver_reading::PageReader;
use orbweaver_spider::{AddressPolicy, Shortages, Spider, SpoolDir};
use orbweaver_store::{Keep, Recovery};
use orbweaver_watch::log;
use orbweaver_watch::notices::Notices;
use orbweaver_watch::seeds::SeedWatch;

use super::options::{damage_notes, open_archive, robots_note, spider_options};
use super::start::{Fetching, Start};
use crate::archiving::Archiving;
use crate::clock;
use crate::error::Result;
use crate::harvest::{Harvest, HarvestParts};
use crate::indexer;
use crate::machine::{Descriptors, random};
use crate::rejudge::{Rejudge, tracking};
use crate::results;

/// The stages that hold something on the disk, or may refuse to begin.
pub(super) struct Opened {
    pub(super) clock: Clock,
    pub(super) policy: AddressPolicy,
    /// What this machine had too little of.
    pub(super) shortages: Arc<Shortages>,
    /// None when others fetch.
    pub(super) spider: Option<Spider>,
    pub(super) docs: DocIndex,
    /// None when the store is elsewhere.
    pub(super) archive: Option<(Arc<dyn Keep>, Recovery)>,
}

impl Opened {
    /// What can be refused is tried before anything is written.
    pub(super) fn open(start: &Start, descriptors: Descriptors) -> Result<Self> {
        let (dir, settings) = (start.held.dir(), &start.settings);
        let clock = clock::steady();
        let policy = AddressPolicy::new(settings.allow_net.clone());
        let shortages: Arc<Shortages> = Arc::default();
        let is_here = matches!(start.fetching, Fetching::Here);
        let mut spider = None;
        if is_here {
            let mut options = spider_options(settings, policy.clone())?;
            options.max_idle_connections = descriptors.idle;
            options.spool = Some(SpoolDir::new(dir.path().join("warc"), descriptors.spools));
            options.shortages = Arc::clone(&shortages);
            spider = Some(Spider::new(options, Clock::clone(&clock))?);
        }
        let index_options = IndexOptions {
            memory: settings.memory / 2,
            seed: KeySeed(random()?),
            budgets: settings.budgets,
            domain_of: orbweaver_intake::domain_or_host,
            recrawl: settings.recrawl.is_some(),
            tracking: tracking(settings),
            ..IndexOptions::default()
        };
        let docs = DocIndex::open(&dir.index(), index_options, clock())?;
        let archive = match is_here {
            true => Some(open_archive(dir, settings)?),
            false => None,
        };
        Ok(Self {
            clock,
            policy,
            shortages,
            spider,
            docs,
            archive,
        })
    }

    /// The stage between spider and doc index.
    pub(super) fn harvest(
        &self,
        start: &Start,
        index: &indexer::Running,
        log: log::Log,
    ) -> Result<Harvest> {
        let settings = &start.settings;
        let scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
        let canonicalizer = Canonicalizer::new(settings.canonical.clone());
        let seed = self.docs.seed();
        let traps = Traps::new(settings.traps.clone(), seed, (self.clock)())
            .with_hosts(settings.hosts.traps.clone());
        let notices = Notices::of(start.notices.clone());
        if let Some(note) = robots_note(settings) {
            notices.add(note);
        }
        if !settings.has_contact && self.spider.is_some() {
            notices.say(
                "no contact is set; give --contact URL so that site owners can reach you".into(),
            );
        }
        for note in self
            .archive
            .iter()
            .flat_map(|(_, found)| damage_notes(found))
        {
            notices.add(note);
        }
        let outlinks = Outlinks::new(canonicalizer, scope, traps, seed, &settings.limits);
        let outlinks = match &start.rule {
            Some(rule) => outlinks.with_rule(Arc::clone(rule)),
            None => outlinks,
        };
        let (seen, policy) = (self.docs.seen(), self.policy.clone());
        Ok(Harvest::new(HarvestParts {
            reader: PageReader::new(outlinks, seed, seen, policy, settings),
            recrawl: settings.recrawl,
            archiving: (self.archive.as_ref())
                .map(|(archive, _)| Archiving::new(Arc::clone(archive))),
            indexer: index.indexer.clone(),
            notices,
            seeds: SeedWatch::of(&settings.seeds),
            log,
        }))
    }

    /// Brings the doc index up to what the archive, the seeds and the settings say. Returns who judges by its rules.
    pub(super) fn catch_up(&mut self, start: &Start, harvest: &Arc<Harvest>) -> Result<Rejudge> {
        let (dir, settings) = (start.held.dir(), &start.settings);
        let docs = &mut self.docs;
        let resumed = docs.resumed();
        if resumed {
            for seed in docs.reader().seeds() {
                harvest.reader().outlinks().admit_seed(&seed?);
            }
        }
        let links = harvest.reader().judge_seeds(&settings.seeds);
        let at = (self.clock)();
        docs.apply([Event::Links { links, at }])?;
        if let Some((archive, _)) = &self.archive {
            results::follow(archive.as_ref(), docs, harvest)?;
        }
        let judge = Rejudge::new(Arc::clone(harvest), dir.clone(), settings);
        judge.apply_rules(docs)?;
        docs.plan_visits(settings.recrawl)?;
        if self.archive.is_none() {
            // From now on the index says that the archive is elsewhere.
            let position = docs.results();
            docs.apply([Event::Results { position }])?;
        }
        Ok(judge)
    }
}
