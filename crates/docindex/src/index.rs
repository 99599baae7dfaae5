//! The doc index as its owner sees it: opened, fed with events, committed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use orbweaver_model::{Event, KeySeed, RobotsRecord, Timestamp, UrlKey};

use crate::budgets::Budgets;
use crate::domains::{DomainOf, Domains};
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::hosts::Hosts;
use crate::keyspaces::{Batch, Keyspaces, read_due_key};
use crate::ledger::Ledger;
use crate::log::{LocalLog, PartitionLog};
use crate::reader::Reader;
use crate::record::{ClaimRecord, HostRecord, decode};
use crate::seen::Seen;

/// How the doc index is opened.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Bytes for the store's caches and write buffers.
    pub memory: u64,
    /// The secret of a new crawl; an existing one keeps its own.
    pub seed: KeySeed,
    /// How much may be taken from hosts and domains.
    pub budgets: Budgets,
    /// Which domain a host belongs to, for their budgets.
    pub domain_of: DomainOf,
    /// Finished URLs are visited again when they are due.
    pub recrawl: bool,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            seed: KeySeed(0),
            budgets: Budgets::default(),
            domain_of: |host| host,
            recrawl: false,
        }
    }
}

/// The doc index of one partition.
pub struct DocIndex<L = LocalLog> {
    pub(crate) store: Keyspaces,
    pub(crate) fold: Fold,
    pub(crate) options: IndexOptions,
    log: L,
    applied: u64,
    /// True when the directory held a crawl before it was opened.
    resumed: bool,
    /// A failed write leaves memory ahead of the disk; nothing may build on that.
    failed: bool,
}

impl DocIndex<LocalLog> {
    /// Opens or creates the index in a directory. Claims of an earlier process return to the queue.
    pub fn open(path: &Path, options: IndexOptions, now: Timestamp) -> Result<Self> {
        Self::with_log(path, options, now, LocalLog::after)
    }
}

impl<L: PartitionLog> DocIndex<L> {
    /// Opens the index over a log that is made for the position the store has applied.
    pub fn with_log(
        path: &Path,
        options: IndexOptions,
        now: Timestamp,
        log: impl FnOnce(u64) -> L,
    ) -> Result<Self> {
        let store = Keyspaces::open(path, options.memory)?;
        Keyspaces::sweep(path);
        let applied: u64 = store.meta("applied")?.unwrap_or(0);
        let seed = match store.meta("seed")? {
            Some(seed) => seed,
            None => {
                let mut batch = Batch::new(&store);
                batch.meta("seed", &options.seed);
                batch.commit()?;
                options.seed
            }
        };
        let domains = (!options.budgets.domain.is_open()).then(|| Domains::new(options.domain_of));
        let fold = load(&store, seed, Hosts::new(domains))?;
        let known = fold.seen.len();
        let mut index = Self {
            log: log(applied),
            store,
            fold,
            options,
            applied,
            resumed: known > 0,
            failed: false,
        };
        index.set_clock(now)?;
        index.apply([Event::Epoch { at: now }])?;
        info!(
            known,
            hosts = index.fold.hosts.len(),
            queued = index.ledger().queued,
            "doc index open"
        );
        Ok(index)
    }

    /// Gives visits that were planned by a clock far ahead of ours other times, some in each commit, for there
    /// may be millions. What a crash interrupts is done again before the epoch begins.
    fn set_clock(&mut self, now: Timestamp) -> Result<()> {
        let Some(ahead) = self.fold.ahead_of(now) else {
            return Ok(());
        };
        warn!(
            ?ahead,
            "the clock was set back; waits go on where they were"
        );
        let mut cursor = (
            now.after(Duration::from_millis(1)),
            UrlKey::from_bytes([0; 16]),
        );
        loop {
            let visits = self.fold.misplanned(ahead, now, &mut cursor, &self.store)?;
            if visits.is_empty() {
                return Ok(());
            }
            self.apply([Event::Schedule { visits }])?;
        }
    }

    /// Appends events to the log and folds them, in one commit. When this returns they survive the death
    /// of the process; after [`sync`](Self::sync) they survive the loss of power.
    pub fn apply(&mut self, events: impl IntoIterator<Item = Event>) -> Result<()> {
        if self.failed {
            return Err(Error::Stopped);
        }
        let mut tail = self.applied;
        for event in events {
            tail = self.log.append(tail, event)?;
        }
        let folded = self.catch_up();
        self.failed = folded.is_err();
        folded
    }

    fn catch_up(&mut self) -> Result<()> {
        let mut batch = Batch::new(&self.store);
        let mut applied = self.applied;
        while let Some((position, event)) = self.log.follow(applied) {
            if applied > self.applied && self.fold.reads_store(&event) {
                self.fold.seal(applied, &self.store, &mut batch);
                std::mem::replace(&mut batch, Batch::new(&self.store)).commit()?;
                self.applied = applied;
            }
            self.fold.apply(&event, &self.store, &mut batch)?;
            applied = position;
        }
        self.fold.seal(applied, &self.store, &mut batch);
        batch.commit()?;
        self.applied = applied;
        Ok(())
    }

    /// Waits until everything applied so far is on the disk itself.
    pub fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    /// The position in the log that the index stands at.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// True when this directory held a crawl before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The secret that keys this crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        self.fold.seed
    }

    /// The seen-set, for workers that sort out known links.
    pub fn seen(&self) -> Arc<Seen> {
        Arc::clone(&self.fold.seen)
    }

    /// The counts.
    pub fn ledger(&self) -> &Ledger {
        &self.fold.ledger
    }

    /// URLs handed out and unanswered.
    pub fn claimed(&self) -> usize {
        self.fold.claimed()
    }

    /// Hosts known, and hosts with URLs to hand out.
    pub fn hosts(&self) -> (usize, usize) {
        (self.fold.hosts.len(), self.fold.hosts.in_turn())
    }

    /// When the earliest retry, or visit to a finished URL, is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        let visit = self.fold.next_visit.filter(|_| self.options.recrawl);
        [self.fold.next_due, visit].into_iter().flatten().min()
    }

    /// True when all that is left belongs to hosts that an operator has blocked.
    pub fn only_blocked(&self) -> bool {
        self.next_due().is_none() && self.claimed() == 0 && self.fold.hosts.only_blocked()
    }

    /// Other budgets from now on. What was refused for the old ones stays refused.
    pub fn set_budgets(&mut self, budgets: Budgets) {
        self.options.budgets = budgets;
        if !budgets.domain.is_open() {
            self.fold.hosts.count_domains(self.options.domain_of);
        }
    }

    /// True when the URL is finished.
    pub fn is_finished(&self, key: UrlKey) -> Result<bool> {
        Ok(self.store.fate(key)?.is_some_and(|fate| fate.due.is_none()))
    }

    /// The robots.txt kept for an origin.
    pub fn robots(&self, origin: &str) -> Result<Option<RobotsRecord>> {
        self.store
            .robots
            .get(origin)?
            .map(|bytes| decode("robots", &bytes))
            .transpose()
    }

    /// What is known of a host.
    pub fn host(&self, hash: u64) -> Option<&HostRecord> {
        self.fold.hosts.get(hash).map(|host| &host.record)
    }

    /// A view for listings, usable from other threads while the crawl goes on.
    pub fn reader(&self) -> Reader {
        Reader::new(self.store.clone(), self.fold.seed)
    }
}

/// Brings the RAM side of the fold to where the store is.
fn load(store: &Keyspaces, seed: KeySeed, mut hosts: Hosts) -> Result<Fold> {
    for guard in store.hosts.iter() {
        let (key, value) = guard.into_inner()?;
        if let Ok(hash) = key.as_ref().try_into().map(u64::from_be_bytes) {
            hosts.load(hash, decode::<HostRecord>("hosts", &value)?);
        }
    }
    let mut next_due = None;
    for guard in store.due.iter() {
        if let Some((due, key)) = read_due_key(&guard.key()?) {
            next_due = next_due.or(Some(due));
            hosts.not_waiting(key.host);
        }
    }
    let mut last_batch = 0;
    for guard in store.claims.iter() {
        let (number, value) = guard.into_inner()?;
        last_batch = number
            .as_ref()
            .try_into()
            .map_or(last_batch, u64::from_be_bytes);
        for claim in decode::<ClaimRecord>("claims", &value)?.urls {
            if Fold::is_open(&claim, store.fate(claim.key)?.as_ref()) {
                hosts.not_waiting(claim.key.host);
            }
        }
    }
    hosts.begin_turns();
    let ledger = store.meta("ledger")?.unwrap_or_default();
    let last_doc = store.meta("last_doc")?.unwrap_or(0);
    let mut fold = Fold::new(seed, ledger, hosts, last_doc);
    fold.latest = store.meta("latest")?.unwrap_or_default();
    fold.next_due = next_due;
    let first = store.visits.iter().next();
    let first = first.map(|guard| guard.key()).transpose()?;
    fold.next_visit = first.and_then(|key| Some(read_due_key(&key)?.0));
    fold.last_batch = last_batch;
    for guard in store.urls.iter() {
        if let Ok(bytes) = guard.key()?.as_ref().try_into() {
            fold.seen.insert(UrlKey::from_bytes(bytes));
        }
    }
    Ok(fold)
}
