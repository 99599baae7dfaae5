//! The fold: the one place where the doc index changes.
//!
//! It takes an event and turns it into writes of one batch and moves of the ledger, the seen-set and the
//! hosts. It reads no clock and makes no choice that the event does not carry, so that whoever folds the
//! same events comes to the same state.
//!
//! The life of a URL: unknown → queued (`Links`, `Done` of another) → claimed (`Claim`) → finished (`Done`)
//! or waiting for a retry (`Retry`) → queued again (`Due`). A new `Epoch` returns claims to the queue. In a crawl
//! that goes on for ever a finished URL is queued again when its next visit is due (`Schedule`, `Due`).

mod budget;
mod chains;
pub(crate) mod claims;
mod clock;
#[cfg(test)]
mod grouping;
mod meet;
mod promote;
mod reconsider;
mod visits;

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Builder;

use orbweaver_model::{
    Archived, CapturePlace, Claimed, Event, HostSetting, KeySeed, LinkKind, NewLink, OutcomeClass,
    Report, Revisit, Spent, Timestamp, UrlKey,
};

use self::budget::{refusal, unasked};
use self::chains::{breaks_chain, leads_on};
use self::claims::open_claims;
use crate::error::Result;
use crate::hosts::Hosts;
use crate::keyspaces::{due_key, queue_key};
use crate::ledger::Ledger;
use crate::record::{ClaimRecord, Fate, LinkRecord, QueueRecord};
use crate::seen::Seen;
use crate::tx::Tx;

/// The state in RAM that the fold keeps in step with the store.
pub(crate) struct Fold {
    pub(crate) seed: KeySeed,
    pub(crate) ledger: Ledger,
    pub(crate) seen: Arc<Seen>,
    pub(crate) hosts: Hosts,
    pub(crate) last_doc: u32,
    pub(crate) last_batch: u64,
    /// Handed out and unanswered. Filled by `Claim`, emptied by `Done` and `Retry`; bounded by what the
    /// URL server takes.
    claimed: HashMap<UrlKey, Claim, Xxh3Builder>,
    /// How many URLs of a claim batch are unanswered. The batch's record goes when none is.
    open_batches: HashMap<u64, usize, Xxh3Builder>,
    /// How far the results of a store elsewhere are folded; 0 when there is none.
    pub(crate) results: u64,
    /// How far the results of the archive beside the index are folded.
    pub(crate) followed: Option<u64>,
    /// The earliest retry, when there is one.
    pub(crate) next_due: Option<Timestamp>,
    /// The earliest visit to a finished URL, when one is planned.
    pub(crate) next_visit: Option<Timestamp>,
    /// The latest time that the fold was told.
    pub(crate) latest: Timestamp,
    /// URLs that are to be judged again.
    pub(crate) reconsidering: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Claim {
    batch: u64,
    attempts: u8,
}

impl Fold {
    pub(crate) fn new(
        seed: KeySeed,
        ledger: Ledger,
        seen: Arc<Seen>,
        hosts: Hosts,
        last_doc: u32,
    ) -> Self {
        Self {
            seed,
            ledger,
            hosts,
            last_doc,
            last_batch: 0,
            seen,
            claimed: HashMap::default(),
            open_batches: HashMap::default(),
            results: 0,
            followed: None,
            next_due: None,
            next_visit: None,
            latest: Timestamp::default(),
            reconsidering: 0,
        }
    }

    /// URLs handed out and unanswered.
    pub(crate) fn claimed(&self) -> usize {
        self.claimed.len()
    }

    /// Turns one event into writes.
    pub(crate) fn apply(&mut self, event: &Event, tx: &mut Tx<'_>) -> Result<()> {
        self.note_time(event);
        match event {
            Event::Epoch { at } => {
                self.set_clock(*at, tx)?;
                self.epoch(tx)
            }
            Event::Links { links, at } => self.links(links, *at, tx),
            Event::Claim {
                batch: number,
                at,
                urls,
            } => {
                self.claim(*number, *at, urls, tx);
                Ok(())
            }
            Event::Done {
                key,
                report,
                links,
                revisit,
                archived,
            } => {
                let capture = self.follow(*archived);
                if self.done(*key, report, revisit.as_deref(), capture, tx)? {
                    self.links(links, report.at, tx)?;
                }
                Ok(())
            }
            Event::Retry {
                key,
                report,
                due,
                archived,
            } => {
                let capture = self.follow(*archived);
                self.retry(*key, report, *due, capture, tx)
            }
            Event::Return { keys } => self.give_back(keys, tx),
            Event::Schedule { visits } => self.schedule(visits, tx),
            Event::Due { now, visits } => {
                self.due(*now, tx)?;
                self.visit(*now, *visits, tx)
            }
            Event::Promote { urls } => self.promote(urls, tx),
            Event::Exhaust {
                host,
                spent,
                outcome,
                at,
            } => self.exhaust(*host, *spent, outcome, *at, tx),
            Event::Reconsider { keys } => self.reconsider(keys, tx),
            Event::Reconsidered { keys } => self.reconsidered(keys, tx),
            Event::Reopen { keys, at } => self.ask_again(keys, *at, tx),
            Event::Judged { rules } => {
                tx.meta("rules", rules);
                Ok(())
            }
            Event::Results { position } => {
                self.results = *position;
                tx.meta("results", &self.results);
                Ok(())
            }
            Event::Robots { origin, robots } => {
                tx.put(&tx.store().robots, origin.as_bytes(), robots);
                Ok(())
            }
            Event::RobotsAsked { requests } => {
                self.ledger.robots_requests += u64::from(*requests);
                Ok(())
            }
            Event::Host { host, not_before } => {
                let record = &mut self.hosts.touch(*host).record;
                record.not_before = record.not_before.max(*not_before);
                Ok(())
            }
            Event::Setting { host, setting, at } => {
                let record = &mut self.hosts.touch(*host).record;
                match setting {
                    HostSetting::Blocked(true) => record.blocked = record.blocked.or(Some(*at)),
                    HostSetting::Blocked(false) => record.blocked = None,
                    HostSetting::Gap(gap) => record.gap = *gap,
                }
                Ok(())
            }
        }
    }

    /// Called when the batch is about to be committed: what it holds must say where the fold stands.
    pub(crate) fn seal(&mut self, applied: u64, tx: &mut Tx<'_>) {
        for (hash, record) in self.hosts.take_dirty() {
            tx.put(&tx.store().hosts, &hash.to_be_bytes(), record);
        }
        tx.meta("ledger", &self.ledger);
        tx.meta("last_doc", &self.last_doc);
        tx.meta("latest", &self.latest);
        if let Some(position) = &self.followed {
            tx.meta("followed", position);
        }
        tx.meta("applied", &applied);
        debug_assert!(
            self.ledger.balances(),
            "the ledger balances after every fold"
        );
    }

    /// Takes note that an exchange is in the archive, and how far its results are folded by that; where it lies.
    fn follow(&mut self, archived: Option<Archived>) -> Option<CapturePlace> {
        let Archived { place, position } = archived?;
        self.followed = Some(position);
        Some(place)
    }

    /// Claims of a process that is gone return to the queue.
    fn epoch(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        for (key, claim) in open_claims(tx)? {
            if let Some(link) = tx.link(key)? {
                let waiting = link.queued(key, claim.attempts, revisit_of(tx.fate(key)?));
                self.enqueue(key, &link, waiting, tx);
            }
        }
        for guard in tx.iter(&tx.store().claims) {
            tx.remove(&tx.store().claims, &guard.key()?);
        }
        self.claimed.clear();
        self.open_batches.clear();
        Ok(())
    }

    /// True when a claim was never answered: neither finished nor put off since it was made.
    pub(crate) fn is_open(claim: &Claimed, fate: Option<&Fate>) -> bool {
        fate.is_none_or(|fate| fate.due.is_some() && fate.attempts <= claim.attempts)
    }

    fn links(&mut self, links: &[NewLink], at: Timestamp, tx: &mut Tx<'_>) -> Result<()> {
        for NewLink { link, refused } in links {
            let key = link.url.key(self.seed);
            let is_new = self.seen.insert(key)?;
            self.seen.note(key, link.kind.role(link.depth));
            if !is_new {
                self.meet_again(key, link, refused.is_none(), tx)?;
                continue;
            }
            self.last_doc = self.last_doc.wrapping_add(1).max(1);
            let record = LinkRecord {
                doc_id: self.last_doc,
                url: link.url.clone(),
                kind: link.kind,
                depth: link.depth,
                priority: link.priority,
                via: link.via,
                chain: link.chain.clone(),
                seen: at,
                latent: None,
                shown: Some(link.kind).filter(|kind| kind.is_requisite()),
            };
            tx.put(&tx.store().urls, &key.to_bytes(), &record);
            if record.kind == LinkKind::Seed {
                tx.mark(&tx.store().seeds, record.url.as_str().as_bytes());
            }
            self.ledger.accept();
            let host = self.hosts.meet(key.host, link.url.host());
            host.record.queued += 1;
            // A chain of redirects that was begun is followed: the page it began with is in the budget.
            let exempt = !record.chain.is_empty();
            let spent = (host.record.spent)
                .filter(|spent| !(exempt && *spent == Spent::Pages))
                .map(|spent| refusal(spent, &record.url));
            let by_rule = refused.is_some();
            match refused.clone().or(spent) {
                Some(outcome) => {
                    let fate = Fate {
                        refused: by_rule,
                        ..unasked(outcome, at)
                    };
                    self.finish(key, fate, tx);
                    self.blame(key, &record.chain, tx)?;
                }
                None => {
                    let waiting = record.queued(key, 0, None);
                    self.enqueue(key, &record, waiting, tx);
                }
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, key: UrlKey, link: &LinkRecord, waiting: QueueRecord, tx: &mut Tx<'_>) {
        if waiting.is_visit() {
            self.hosts.visit(key.host);
        }
        tx.put(
            &tx.store().queue,
            &queue_key(key.host, link.rank()),
            &waiting,
        );
        self.hosts.waits(key.host, link.rank());
    }

    fn claim(&mut self, number: u64, at: Timestamp, urls: &[Claimed], tx: &mut Tx<'_>) {
        for claim in urls {
            tx.remove(&tx.store().queue, &queue_key(claim.key.host, claim.rank));
            self.claimed.insert(
                claim.key,
                Claim {
                    batch: number,
                    attempts: claim.attempts,
                },
            );
            self.hosts.claim(claim.key.host, claim.rank);
        }
        self.open_batches.insert(number, urls.len());
        let urls = urls.to_vec();
        let record = ClaimRecord { at, urls };
        tx.put(&tx.store().claims, &number.to_be_bytes(), &record);
        self.last_batch = number;
    }

    /// Finishes a URL; false when it was finished already, and then nothing happens.
    fn done(
        &mut self,
        key: UrlKey,
        report: &Report,
        revisit: Option<&Revisit>,
        capture: Option<CapturePlace>,
        tx: &mut Tx<'_>,
    ) -> Result<bool> {
        let Some(attempts) = self.release(key, tx)? else {
            return Ok(false);
        };
        let mut report = report.clone();
        let asked = report.ip.is_some();
        let first = revisit.is_none_or(|revisit| revisit.visits <= 1);
        // Most URLs have no attempt before this one, and nothing is read for those. What nobody is asked for now may have
        // been captured by an earlier visit.
        let before = match attempts > 0 || !first || !asked {
            true => tx.fate(key)?,
            false => None,
        };
        let was_asked = before.as_ref().is_some_and(|fate| fate.asked);
        self.hosts.learn(key.host, &report, asked && !was_asked);
        self.ledger.attempts += u64::from(asked);
        self.ledger.bytes += report.bytes;
        if report.outcome.class == OutcomeClass::RedirectFollowed {
            self.judge_redirect(key, &mut report, tx)?;
        }
        let class = report.outcome.class;
        let is_page = before.as_ref().is_some_and(Fate::brought_something);
        self.ledger.pages += u64::from(class.is_document() && !is_page);
        let fate = Fate {
            attempts: attempts.saturating_add(u8::from(asked)),
            asked: asked || was_asked,
            refused: false,
            due: None,
            report,
            capture: capture.or(captured(before.as_ref())),
            earlier: before.map(Fate::into_earlier).unwrap_or_default(),
            revisit: revisit.cloned().map(Box::new),
        };
        if let Some(due) = revisit.and_then(|revisit| revisit.due) {
            self.plan(key, due, tx);
        }
        self.finish(key, fate, tx);
        if leads_on(class)
            && let Some(link) = tx.link(key)?
        {
            if breaks_chain(class) {
                self.blame(key, &link.chain, tx)?;
            }
            self.follow_as_shown(key, &link, tx)?;
        }
        Ok(true)
    }

    fn retry(
        &mut self,
        key: UrlKey,
        report: &Report,
        due: Timestamp,
        capture: Option<CapturePlace>,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let Some(attempts) = self.release(key, tx)? else {
            return Ok(());
        };
        self.ledger.attempts += u64::from(report.ip.is_some());
        self.ledger.bytes += report.bytes;
        let before = tx.fate(key)?;
        let asked = report.ip.is_some();
        let was_asked = before.as_ref().is_some_and(|fate| fate.asked);
        // A URL counts for the budget of pages with its first request, whatever comes of that.
        self.hosts.learn(key.host, report, asked && !was_asked);
        let fate = Fate {
            asked: asked || was_asked,
            refused: false,
            revisit: before.as_ref().and_then(|fate| fate.revisit.clone()),
            capture: capture.or(captured(before.as_ref())),
            earlier: before.map(Fate::into_earlier).unwrap_or_default(),
            attempts: attempts.saturating_add(1),
            due: Some(due),
            report: report.clone(),
        };
        tx.put(&tx.store().fates, &key.to_bytes(), &fate);
        tx.mark(&tx.store().due, &due_key(due, key));
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        Ok(())
    }

    fn give_back(&mut self, keys: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        for key in keys
            .iter()
            .filter(|key| self.claimed.contains_key(key))
            .copied()
            .collect::<Vec<_>>()
        {
            let attempts = self.release(key, tx)?.unwrap_or(0);
            if let Some(link) = tx.link(key)? {
                let waiting = link.queued(key, attempts, revisit_of(tx.fate(key)?));
                self.enqueue(key, &link, waiting, tx);
            }
        }
        Ok(())
    }

    /// Takes a URL out of the hands of the URL server, or out of the queue when an earlier process has
    /// fetched it; how many attempts it had. None when it is finished or unknown.
    fn release(&mut self, key: UrlKey, tx: &mut Tx<'_>) -> Result<Option<u8>> {
        if let Some(claim) = self.claimed.remove(&key) {
            self.hosts.unclaim(key.host);
            if let Some(open) = self.open_batches.get_mut(&claim.batch) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    self.open_batches.remove(&claim.batch);
                    tx.remove(&tx.store().claims, &claim.batch.to_be_bytes());
                }
            }
            return Ok(Some(claim.attempts));
        }
        let Some(link) = tx.link(key)? else {
            return Ok(None);
        };
        let fate = tx.fate(key)?;
        match fate.as_ref().map(|fate| fate.due) {
            Some(None) => return Ok(None),
            Some(Some(due)) => tx.remove(&tx.store().due, &due_key(due, key)),
            None => {}
        }
        let place = queue_key(key.host, link.rank());
        if tx.contains(&tx.store().queue, &place)? {
            tx.remove(&tx.store().queue, &place);
            let host = self.hosts.touch(key.host);
            host.waiting = host.waiting.saturating_sub(1);
        }
        Ok(Some(fate.map_or(0, |fate| fate.attempts)))
    }

    fn finish(&mut self, key: UrlKey, fate: Fate, tx: &mut Tx<'_>) {
        self.ledger.finish(&fate.report.outcome);
        let host = self.hosts.touch(key.host);
        host.record.queued = host.record.queued.saturating_sub(1);
        tx.put(&tx.store().fates, &key.to_bytes(), &fate);
    }
}

/// The newest capture of a URL before this attempt.
fn captured(before: Option<&Fate>) -> Option<CapturePlace> {
    before.and_then(|fate| fate.capture)
}

fn revisit_of(fate: Option<Fate>) -> Option<Box<Revisit>> {
    fate.and_then(|fate| fate.revisit)
}
