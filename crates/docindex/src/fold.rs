//! The fold: the one place where the doc index changes.
//!
//! It takes an event and turns it into writes of one batch and moves of the ledger, the seen-set and the
//! hosts. It reads no clock and makes no choice that the event does not carry, so that whoever folds the
//! same events comes to the same state.
//!
//! The life of a URL: unknown → queued (`Links`, `Done` of another) → claimed (`Claim`) → finished (`Done`)
//! or waiting for a retry (`Retry`) → queued again (`Due`). A new `Epoch` returns claims to the queue. In a crawl
//! that goes on forever a finished URL is queued again when its next visit is due (`Schedule`, `Due`).

mod budget;
mod chains;
pub(crate) mod claims;
mod clock;
mod epoch;
mod meet;
mod promote;
mod reconsider;
#[cfg(test)]
mod tests;
mod urls;
mod visits;

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Builder;

use orbweaver_model::{Epoch, Event, HostSetting, KeySeed, Timestamp, UrlKey};

use crate::error::Result;
use crate::hosts::Hosts;
use crate::reader::Seen;
use crate::tx::Tx;
use orbweaver_model::Ledger;

/// The state in RAM that the fold keeps in step with the store.
pub(crate) struct Fold {
    /// The secret of the crawl; none before it has begun.
    pub(crate) seed: Option<KeySeed>,
    /// The current epoch; none before the first.
    pub(crate) epoch: Option<Epoch>,
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
        seed: Option<KeySeed>,
        ledger: Ledger,
        seen: Arc<Seen>,
        hosts: Hosts,
        last_doc: u32,
    ) -> Self {
        Self {
            seed,
            epoch: None,
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
        if let Event::Begin { seed } = event {
            self.begin(*seed, tx);
        }
        self.key_seed()?;
        self.note_time(event);
        match event {
            Event::Begin { .. } => Ok(()),
            Event::Epoch { epoch, at } => self.epoch(epoch, *at, tx),
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
                let capture = self.archived(*archived);
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
                let capture = self.archived(*archived);
                self.retry(*key, report, *due, capture, tx)
            }
            Event::Return { keys } => self.give_back(keys, tx),
            Event::Schedule { visits } => self.schedule(visits, tx),
            Event::Planned { bounds } => {
                tx.meta("recrawl", bounds);
                Ok(())
            }
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
}
