//! The doc index as its owner sees it: opened, fed with events, committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use orbweaver_model::{Budgets, Event, KeySeed, RobotsRecord, Timestamp, UrlKey};

use crate::domains::DomainOf;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::keyspaces::Keyspaces;
use crate::ledger::Ledger;
use crate::load::{After, Begun, Filling, load};
use crate::log::{LocalLog, PartitionLog};
use crate::reader::{Reader, Shared};
use crate::record::{HostRecord, decode};
use crate::salvage::rescue;
use crate::seen::{Seen, Tracking};
use crate::tx::Tx;

/// How the doc index is opened.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Bytes for everything: seen-set, hosts, the store's caches and write buffers.
    pub memory: u64,
    /// The secret of a new crawl; an existing one keeps its own.
    pub seed: KeySeed,
    /// How much may be taken from hosts and domains.
    pub budgets: Budgets,
    /// Which domain a host belongs to, for their budgets.
    pub domain_of: DomainOf,
    /// Finished URLs are visited again when they are due.
    pub recrawl: bool,
    /// Which links to known URLs can still matter.
    pub tracking: Tracking,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            seed: KeySeed(0),
            budgets: Budgets::default(),
            domain_of: |host| host,
            recrawl: false,
            tracking: Tracking::default(),
        }
    }
}

impl IndexOptions {
    /// Bytes for the seen-set: with the hosts it has five eighths, the store has the rest. When hosts are so
    /// many that nothing would be left for it, it keeps an eighth, and the budget does not hold.
    pub(crate) fn seen_limit(&self, hosts: usize) -> usize {
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        let both = memory / 8 * 5;
        both.saturating_sub(hosts).max(memory / 8)
    }
}

/// Events and links folded between two syncs at most. Those events are kept in RAM, some 200 bytes a link,
/// so that a store that failed can be opened again and take up from where it is.
const UNSYNCED: usize = 1 << 16;

/// The doc index of one partition.
pub struct DocIndex<L = LocalLog> {
    path: PathBuf,
    pub(crate) store: Keyspaces,
    /// The same store for readers in other threads.
    shared: Shared,
    pub(crate) fold: Fold,
    pub(crate) options: IndexOptions,
    log: L,
    applied: u64,
    /// Events and links folded since the last sync.
    unsynced: usize,
    /// What damage has cost, in words, until somebody asks.
    lost: Option<String>,
    /// The seen-set is being read from the store.
    filling: Option<Filling>,
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
        let mut lost = None;
        let begun = match Begun::at(path, &options) {
            Err(error) if error.is_damage() => {
                lost = rescue(path, options.memory, true)?;
                Begun::at(path, &options)?
            }
            begun => begun?,
        };
        let Begun {
            store,
            shared,
            fold,
            filling,
            applied,
        } = begun;
        let known = fold.seen.len();
        let mut index = Self {
            path: path.into(),
            log: log(applied),
            shared,
            store,
            fold,
            filling,
            options,
            applied,
            unsynced: 0,
            lost,
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
    ///
    /// After an error the index does nothing more until [`recover`](Self::recover) has succeeded. The
    /// events are not lost: that folds them.
    pub fn apply(&mut self, events: impl IntoIterator<Item = Event>) -> Result<()> {
        if self.failed {
            return Err(Error::Stopped);
        }
        let mut tail = self.applied;
        for event in events {
            self.unsynced += weight(&event);
            tail = self.log.append(tail, event)?;
        }
        self.guarded(Self::catch_up)?;
        self.settle()?;
        if self.unsynced >= UNSYNCED {
            self.sync()?;
        }
        Ok(())
    }

    fn catch_up(&mut self) -> Result<()> {
        let mut tx = Tx::new(&self.store);
        let mut applied = self.applied;
        while let Some((position, event)) = self.log.follow(applied) {
            self.fold.apply(event, &mut tx)?;
            applied = position;
        }
        self.fold.seal(applied, &mut tx);
        tx.commit()?;
        self.applied = applied;
        Ok(())
    }

    /// Keeps the seen-set in its share, now that everything is committed.
    fn settle(&mut self) -> Result<()> {
        let hosts = self.fold.hosts.bytes();
        self.fold.seen.settle(self.options.seen_limit(hosts));
        match self.filling.take_if(|filling| filling.is_over()) {
            Some(filling) => self.guarded(|_| filling.end()),
            None => Ok(()),
        }
    }

    /// A failed call leaves memory ahead of the disk; nothing may build on that.
    fn guarded(&mut self, call: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let done = call(self);
        self.failed |= done.is_err();
        done
    }

    /// After an error: closes the store, opens it again, and folds what it has not got yet. URLs that are
    /// handed out stay so. What is damaged is left behind. May be called again and again until the disk
    /// works, always with the first error.
    pub fn recover(&mut self, after: &Error) -> Result<()> {
        self.failed = true;
        self.filling = None;
        // The last handle closes the store and gives up its lock; a listing that is still being read holds
        // one, and then the store cannot be opened yet.
        self.shared.set(Keyspaces::closed());
        self.store = Keyspaces::closed();
        if after.is_damage() || after.is_silent() {
            let lost = rescue(&self.path, self.options.memory, after.is_damage())?;
            self.lost = lost.or(self.lost.take());
        }
        let store = Keyspaces::reopen(&self.path, self.options.memory)?;
        let applied = store.meta("applied")?.unwrap_or(0);
        self.shared.set(store.clone());
        // The seen-set is ahead of the disk as well, and is read anew.
        let seen = Arc::clone(&self.fold.seen);
        let (seed, options) = (self.fold.seed, &self.options);
        (self.fold, self.filling) = load(&store, seed, seen, options, After::Trouble)?;
        self.applied = applied;
        self.store = store;
        self.catch_up()?;
        self.sync()?;
        self.failed = false;
        Ok(())
    }

    /// What damage to the index has cost, in words; said once.
    pub fn take_lost(&mut self) -> Option<String> {
        self.lost.take()
    }

    /// The number of the last batch of URLs that was handed out.
    pub fn last_batch(&self) -> u64 {
        self.fold.last_batch
    }

    /// Returns the URLs of all batches after this one to the queue: they were claimed, but a failure came
    /// between and nobody has got them.
    pub fn take_back(&mut self, after: u64) -> Result<()> {
        let keys = self.fold.claimed_after(after);
        if keys.is_empty() {
            return Ok(());
        }
        self.apply([Event::Return { keys }])
    }

    /// Waits until everything applied so far is on the disk itself.
    pub fn sync(&mut self) -> Result<()> {
        self.guarded(|index| index.store.sync())?;
        self.log.forget(self.applied);
        self.unsynced = 0;
        Ok(())
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

    /// How far the results of a store elsewhere are folded.
    pub fn results(&self) -> u64 {
        self.fold.results
    }

    /// How far the results of the archive beside the index are folded; none before the first.
    pub fn followed(&self) -> Option<u64> {
        self.fold.followed
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
        Reader::new(self.shared.clone(), self.fold.seed)
    }
}

/// How much memory an event takes, in links.
fn weight(event: &Event) -> usize {
    match event {
        Event::Links { links, .. } | Event::Done { links, .. } => 1 + links.len(),
        _ => 1,
    }
}
