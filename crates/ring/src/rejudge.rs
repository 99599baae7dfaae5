//! The rules of a crawl for the doc index: what becomes of a known URL when they change or when a better link to it is found.
//!
//! A refused URL is judged by the best of its links. A page that was fetched by a worse link than it has now gives up its links
//! once more: it is read from the archive, for asking its server again would be asking twice.

use std::sync::Arc;

use crate::error::Result;
use tracing::warn;

use orbweaver_docindex::{DocIndex, Entry, Fate, LinkRecord, Tracking};
use orbweaver_intake::surt;
use orbweaver_model::{CrawlUrl, Event, Link, LinkKind, NewLink, OutcomeClass, Rules};

use crate::harvest::Harvest;
use crate::indexer::{Again, Judge};
use crate::results::visit_of;
use orbweaver_config::Settings;
use orbweaver_crawldir::CrawlDir;

/// The rules, and the archive to read pages from.
pub(crate) struct Rejudge {
    harvest: Arc<Harvest>,
    dir: CrawlDir,
    tracking: Tracking,
    /// All settings that a verdict depends on, but for the seeds.
    settings: String,
}

/// All settings that a verdict depends on, but for the seeds. Those of single hosts only where there are any.
fn rules(settings: &Settings) -> String {
    let mut rules = format!("{:?} {:?}", settings.scope, settings.traps);
    if !settings.hosts.traps.is_empty() {
        rules += &format!(" {:?}", settings.hosts.traps);
    }
    rules
}

/// Which links to known URLs can matter by these settings.
pub(crate) fn tracking(settings: &Settings) -> Tracking {
    let depths = settings.scope.max_depth.is_some();
    Tracking {
        roles: depths || settings.scope.requisites,
        depths,
    }
}

impl Rejudge {
    pub(crate) fn new(harvest: Arc<Harvest>, dir: CrawlDir, settings: &Settings) -> Self {
        Self {
            harvest,
            dir,
            tracking: tracking(settings),
            settings: rules(settings),
        }
    }

    /// Before the crawl begins: what other rules have refused in an earlier run is judged again by those of this one.
    pub(crate) fn apply_rules(&self, docs: &mut DocIndex) -> Result<()> {
        let rules = self.rules();
        let before = docs.rules()?;
        if before == Some(rules) {
            return Ok(());
        }
        if let Some(before) = before {
            let documents = rules.requisites && !before.requisites;
            docs.rules_changed(&|_| true, documents)?;
        }
        Ok(docs.apply([Event::Judged { rules }])?)
    }

    /// The best link to a refused URL.
    fn best(link: &LinkRecord) -> Link {
        Link {
            url: link.url.clone(),
            kind: link.kind,
            depth: link.depth,
            priority: link.priority,
            via: link.via,
            chain: link.chain.clone(),
        }
    }

    /// A requisite that is also linked as a page, as the page that it may be by now.
    fn latent(link: &LinkRecord) -> Option<Link> {
        let (kind, depth) = link.latent?;
        Some(Link {
            kind,
            depth,
            priority: orbweaver_intake::priority(kind),
            ..Self::best(link)
        })
    }

    /// Whether the links of a finished URL can differ from when it was read.
    fn has_links(&self, link: &LinkRecord, fate: &Fate) -> bool {
        let redirects = is_redirect(fate);
        let matters = self.tracking.roles || (redirects && link.kind == LinkKind::Seed);
        matters && (redirects || fate.report.outcome.class.is_document())
    }

    /// The links of a page, from the archive. A page that redirects, and that other pages show as a picture or the like, leads
    /// on as both.
    fn links_of(&self, entry: Entry) -> Option<(Vec<NewLink>, Vec<CrawlUrl>)> {
        if !self.harvest.archives_here() {
            return None;
        }
        let redirects = entry.fate.as_ref().is_some_and(is_redirect);
        let url = entry.link.url.clone();
        let place = entry.fate.as_ref().and_then(|fate| fate.capture);
        let found = orbweaver_store::newest(self.dir.path(), place, &|| surt(&url), url.as_str());
        let stored = match found {
            Ok(found) => found.document,
            Err(error) => {
                warn!(%url, %error, "a page cannot be read from the archive and is fetched again");
                None
            }
        };
        let shown = entry.link.shown;
        let mut visit = visit_of(
            stored?,
            self.harvest.reader().candidate(entry),
            self.harvest.reader().limits(),
        )?;
        let mut first = self.harvest.reader().read(&visit);
        let mut grew: Vec<CrawlUrl> = first.aside.grew.take().into_iter().collect();
        let mut links = first.links;
        let is_page = !visit.candidate.kind.is_requisite();
        if let (true, true, Some(kind)) = (redirects, is_page, shown) {
            visit.candidate.kind = kind;
            let mut as_shown = self.harvest.reader().read(&visit);
            grew.extend(as_shown.aside.grew.take());
            links.extend(as_shown.links);
        }
        Some((links, grew))
    }
}

fn is_redirect(fate: &Fate) -> bool {
    matches!(
        fate.report.outcome.class,
        OutcomeClass::RedirectFollowed
            | OutcomeClass::RedirectRefused
            | OutcomeClass::RedirectLimit
    )
}

impl Judge for Rejudge {
    fn rules(&self) -> Rules {
        let outlinks = self.harvest.reader().outlinks();
        let text = format!("{} {}", self.settings, outlinks.seeds_in_words());
        Rules {
            hash: self.harvest.reader().seed().hash(&text),
            requisites: outlinks.requisites(),
        }
    }

    fn judge(&self, link: Link) -> NewLink {
        self.harvest.reader().outlinks().judge(link)
    }

    fn is_near(&self, seeds: &[CrawlUrl], host: &str) -> bool {
        self.harvest.reader().outlinks().is_near(seeds, host)
    }

    fn again(&self, entry: Entry) -> Again {
        let Some(fate) = &entry.fate else {
            return Again::Links(Vec::new(), Vec::new());
        };
        let link = match fate.refused {
            true => Some(Self::best(&entry.link)),
            false => Self::latent(&entry.link),
        };
        let judged = link.map(|link| self.judge(link));
        let mut links: Vec<NewLink> = (judged.into_iter())
            .filter(|new| new.refused.is_none())
            .collect();
        let mut grew = Vec::new();
        if !fate.refused && self.has_links(&entry.link, fate) {
            match self.links_of(entry) {
                Some((more, seeds)) => {
                    links.extend(more);
                    grew = seeds;
                }
                None => return Again::Ask,
            }
        }
        Again::Links(links, grew)
    }
}
