//! Judging again: URLs that other rules or a better link may let in, and pages whose links that concerns.

use crate::error::Result;

use orbweaver_docindex::Entry;
use orbweaver_model::{CrawlUrl, Event, Link, NewLink, OutcomeClass, Rules};

use super::Work;

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
    /// These links, which may be none.
    Links(Vec<NewLink>),
    /// Its links are needed and are not kept here.
    Ask,
}

/// What has changed in the rules since they were last applied to what is refused.
#[derive(Default)]
pub(crate) struct Changed {
    /// Seeds that have made the scope larger.
    pub(super) seeds: Vec<CrawlUrl>,
    /// Everything may have changed.
    pub(super) all: bool,
    /// The scope has grown in this run: verdicts that were made before may still arrive.
    pub(super) ever: bool,
}

impl Work {
    /// Verdicts that a worker has made by rules that have changed since are made again, before they are folded: nobody
    /// would look at them a second time.
    pub(super) fn judge_late(&self, events: &mut [Event]) {
        if !self.changed.ever {
            return;
        }
        for event in events {
            let (Event::Links { links, .. } | Event::Done { links, .. }) = event else {
                continue;
            };
            for new in links {
                let by_scope =
                    |why: &orbweaver_model::Outcome| why.class == OutcomeClass::DeniedPolicy;
                if new.refused.as_ref().is_some_and(by_scope) {
                    *new = self.judge.judge(new.link.clone());
                }
            }
        }
    }

    /// Judges some of what is to be judged again. True when there may be more.
    pub(super) fn judge_again(&mut self) -> Result<bool> {
        self.mark_changed()?;
        let found = self.index.to_reconsider(AT_ONCE)?;
        if found.is_empty() {
            return Ok(false);
        }
        let at = (self.clock)();
        let mut keys = Vec::new();
        let mut ask = Vec::new();
        let mut events = Vec::new();
        for (key, entry) in found {
            keys.push(key);
            match self.judge.again(entry) {
                Again::Links(links) if links.is_empty() => {}
                Again::Links(links) => events.push(Event::Links { links, at }),
                Again::Ask => ask.push(key),
            }
        }
        // First, for what follows may mark the same URLs anew.
        let mut all = vec![Event::Reconsidered { keys }];
        all.extend(events);
        if !ask.is_empty() {
            all.push(Event::Reopen { keys: ask, at });
        }
        self.index.apply(all)?;
        self.dirty = true;
        Ok(true)
    }

    fn mark_changed(&mut self) -> Result<()> {
        if self.changed.seeds.is_empty() && !self.changed.all {
            return Ok(());
        }
        let (judge, changed) = (&self.judge, &self.changed);
        let near = |host: &str| changed.all || judge.is_near(&changed.seeds, host);
        self.index.rules_changed(&near, false)?;
        let rules = self.judge.rules();
        self.index.apply([Event::Judged { rules }])?;
        self.changed.seeds.clear();
        self.changed.all = false;
        self.dirty = true;
        Ok(())
    }
}
