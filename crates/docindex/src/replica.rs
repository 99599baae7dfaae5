//! The state that a log has made: a store, the RAM side of the fold, and the position up to which the log is folded.
//!
//! A replica changes by [`Replica::fold`] alone. It chooses nothing and appends nothing, so that all replicas of a log
//! hold the same bytes at the same position, whichever machine they are on and however the log was cut into commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orbweaver_model::{Epoch, Event, KeySeed, RobotsRecord, Rules, UrlKey};

use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::load::{Begun, Filling, load};
use crate::options::IndexOptions;
use crate::reader::Seen;
use crate::reader::{Reader, Shared};
use crate::record::{HostRecord, decode};
use crate::salvage::rescue;
use crate::store::Store;
use crate::tx::Tx;
use orbweaver_model::Ledger;

/// The doc index of one partition, at one position of its log.
pub struct Replica {
    path: PathBuf,
    pub(crate) store: Store,
    /// The same store for readers in other threads.
    shared: Shared,
    pub(crate) fold: Fold,
    pub(crate) options: IndexOptions,
    applied: u64,
    damage: Damaged,
    /// What damage has cost, in words, until somebody asks.
    lost: Option<String>,
    /// The seen-set is being read from the store.
    filling: Option<Filling>,
    /// True when the directory held a crawl before it was opened.
    resumed: bool,
    /// A failed write leaves memory ahead of the disk; nothing may build on that.
    failed: bool,
}

/// What is done about a store that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// What can be read is saved and made whole. That is not what the log says any more, so it is for an index that is the
    /// only one of its log.
    Mend,
    /// Nothing: it is an error, and a snapshot or the log from its beginning makes another.
    Refuse,
}

impl Replica {
    /// Opens or creates the index in a directory. Nothing changes by that but what a crash left half done, and, where
    /// that is wanted, damage.
    pub fn open(path: &Path, options: IndexOptions, damage: Damaged) -> Result<Self> {
        let mut lost = None;
        let begun = match Begun::at(path, &options) {
            Err(error) if error.is_damage() && damage == Damaged::Mend => {
                lost = rescue(path, options.memory, true)?;
                Begun::at(path, &options)?
            }
            begun => begun?,
        };
        Ok(Self {
            path: path.into(),
            resumed: !begun.fold.seen.is_empty(),
            shared: begun.shared,
            store: begun.store,
            fold: begun.fold,
            filling: begun.filling,
            applied: begun.applied,
            options,
            damage,
            lost,
            failed: false,
        })
    }

    /// Folds events that end at this position of the log, in one commit. When this returns they survive the death of
    /// the process; after [`sync`](Self::sync) they survive the loss of power. What was folded before is passed over.
    ///
    /// After an error nothing more is folded: memory may be ahead of the disk. The replica is opened again then.
    pub fn fold(&mut self, position: u64, events: &[Event]) -> Result<()> {
        if self.failed {
            return Err(Error::Stopped);
        }
        if position <= self.applied {
            return Ok(());
        }
        self.guarded(|replica| replica.commit(position, events))?;
        self.settle()
    }

    fn commit(&mut self, position: u64, events: &[Event]) -> Result<()> {
        let mut tx = Tx::new(&self.store);
        for event in events {
            self.fold.apply(event, &mut tx)?;
        }
        self.fold.seal(position, &mut tx);
        tx.commit()?;
        self.applied = position;
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

    /// Waits until everything folded so far is on the disk itself.
    pub fn sync(&mut self) -> Result<()> {
        self.guarded(|replica| replica.store.sync())
    }

    /// After an error: closes the store and opens it again, at the position that the disk has. What is damaged is left
    /// behind, where damage is mended. May be called again and again until the disk works, always with the first error.
    pub fn reopen(&mut self, after: &Error) -> Result<()> {
        self.failed = true;
        self.filling = None;
        // The last handle closes the store and gives up its lock; a listing that is still being read holds
        // one, and then the store cannot be opened yet.
        self.shared.set(Store::closed());
        self.store = Store::closed();
        if self.damage == Damaged::Mend && (after.is_damage() || after.is_silent()) {
            let lost = rescue(&self.path, self.options.memory, after.is_damage())?;
            self.lost = lost.or(self.lost.take());
        }
        let store = Store::reopen(&self.path, self.options.memory)?;
        let applied = store.meta("applied")?.unwrap_or(0);
        self.shared.set(store.clone());
        // The seen-set is ahead of the disk as well, and is read anew.
        let seen = Arc::clone(&self.fold.seen);
        (self.fold, self.filling) = load(&store, seen, &self.options)?;
        self.applied = applied;
        self.store = store;
        self.failed = false;
        Ok(())
    }

    /// Where damage is mended, the record of the position may be among what is lost, with everything before this one
    /// folded and forgotten by the log. True when it is so, and then this is the position from now on.
    pub(crate) fn has_lost_its_place(&mut self, position: u64) -> bool {
        let mended = self.damage == Damaged::Mend;
        if mended {
            self.applied = position;
        }
        mended
    }

    /// True when an error came between: nothing is folded before it is opened again.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// What damage to the index has cost, in words; said once.
    pub fn take_lost(&mut self) -> Option<String> {
        self.lost.take()
    }

    /// The position in the log that the index stands at.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The epoch that the index is in; none before the first.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.fold.epoch.as_ref()
    }

    /// True when this directory held a crawl before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The secret that keys this crawl's hashes; none before the log has begun.
    pub fn seed(&self) -> Option<KeySeed> {
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

    /// The rules by which all that is refused was judged; none in a new index.
    pub fn rules(&self) -> Result<Option<Rules>> {
        self.store.meta("rules")
    }

    /// The counts.
    pub fn ledger(&self) -> &Ledger {
        &self.fold.ledger
    }

    /// URLs handed out and unanswered.
    pub fn claimed(&self) -> usize {
        self.fold.claimed()
    }

    /// The URLs that are handed out and unanswered. When their owner is fenced, they are no longer its own.
    pub fn handed_out(&self) -> Vec<UrlKey> {
        self.fold.claimed_after(0)
    }

    /// The number of the last batch of URLs that was handed out.
    pub fn last_batch(&self) -> u64 {
        self.fold.last_batch
    }

    /// Hosts known, and hosts with URLs to hand out.
    pub fn hosts(&self) -> (usize, usize) {
        (self.fold.hosts.len(), self.fold.hosts.in_turn())
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

    /// A view for listings, usable from other threads while the crawl goes on. In an index that has not begun it finds
    /// nothing, also later.
    pub fn reader(&self) -> Reader {
        Reader::new(self.shared.clone(), self.fold.seed.unwrap_or(KeySeed(0)))
    }
}
