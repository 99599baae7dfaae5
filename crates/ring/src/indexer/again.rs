//! Judging again: URLs that other rules or a better link may let in, and pages whose links that concerns.

use orbweaver_docindex::{DocIndex, Entry};
use orbweaver_model::{CrawlUrl, Event, Link, NewLink, Outcome, OutcomeClass, Rules, Timestamp};

use crate::error::Result;

/// URLs that are judged again between two looks at what has arrived.
const AT_ONCE: usize = 32;

/// Who knows the rules, and what pages say.
pub(crate) trait Judge: Send {
    /// The rules as they are now.
    fn rules(&self) -> Rules;
    /// Judges a link.
    fn judge(&self, link: Link) -> NewLink;
    /// Whether URLs of a host may be in scope for the sake of these seeds.
    fn is_near(&self, seeds: &[CrawlUrl], host: &str) -> bool;
    /// What follows for a finished URL.
    fn again(&self, entry: Entry) -> Again;
}

/// What follows when a finished URL is judged again.
pub(crate) enum Again {
    /// These links, which may be none, and the seeds that have made the scope larger by that.
    Links(Vec<NewLink>, Vec<CrawlUrl>),
    /// Its links are needed and are not kept here.
    Ask,
}

/// The rules, and what has changed in them since they were last applied to what is refused.
pub(super) struct Rejudging {
    judge: Box<dyn Judge>,
    /// Seeds that have made the scope larger. Filled by messages, emptied with each step.
    seeds: Vec<CrawlUrl>,
    /// Everything may have changed.
    all: bool,
    /// The scope has grown in this run: verdicts that were made before may still arrive.
    ever: bool,
    /// There may be more to be judged again.
    more: bool,
}

impl Rejudging {
    pub(super) fn new(judge: Box<dyn Judge>) -> Self {
        Self {
            judge,
            seeds: Vec::new(),
            all: false,
            ever: false,
            more: false,
        }
    }

    /// True while there may be more to be judged again.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// This seed has made the scope larger.
    pub(super) fn scope_grew(&mut self, seed: CrawlUrl) {
        self.seeds.push(seed);
        self.ever = true;
    }

    /// The rules are others now.
    pub(super) fn rules_changed(&mut self) {
        self.all = true;
        self.ever = true;
    }

    /// Verdicts that a worker has made by rules that have changed since are made again, before they are folded: nobody
    /// would look at them a second time.
    pub(super) fn judge_late(&self, events: &mut [Event]) {
        if !self.ever {
            return;
        }
        for event in events {
            let (Event::Links { links, .. } | Event::Done { links, .. }) = event else {
                continue;
            };
            for new in links {
                let by_scope = |why: &Outcome| why.class == OutcomeClass::DeniedPolicy;
                if new.refused.as_ref().is_some_and(by_scope) {
                    *new = self.judge.judge(new.link.clone());
                }
            }
        }
    }

    /// Judges some of what is to be judged again. True when that changed the index.
    pub(super) fn step(&mut self, index: &mut DocIndex, at: Timestamp) -> Result<bool> {
        let marked = self.mark(index)?;
        let found = index.to_reconsider(AT_ONCE)?;
        self.more = !found.is_empty();
        if found.is_empty() {
            return Ok(marked);
        }
        let mut keys = Vec::new();
        let mut ask = Vec::new();
        let mut events = Vec::new();
        for (key, entry) in found {
            keys.push(key);
            match self.judge.again(entry) {
                Again::Links(links, grew) => {
                    grew.into_iter().for_each(|seed| self.scope_grew(seed));
                    if !links.is_empty() {
                        events.push(Event::Links { links, at });
                    }
                }
                Again::Ask => ask.push(key),
            }
        }
        // First, for what follows may mark the same URLs anew.
        let mut all = vec![Event::Reconsidered { keys }];
        all.extend(events);
        if !ask.is_empty() {
            all.push(Event::Reopen { keys: ask, at });
        }
        index.apply(all)?;
        Ok(true)
    }

    fn mark(&mut self, index: &mut DocIndex) -> Result<bool> {
        if self.seeds.is_empty() && !self.all {
            return Ok(false);
        }
        let near = |host: &str| self.all || self.judge.is_near(&self.seeds, host);
        index.rules_changed(&near, false)?;
        let rules = self.judge.rules();
        index.apply([Event::Judged { rules }])?;
        self.seeds.clear();
        self.all = false;
        Ok(true)
    }
}
