//! The doc index as its owner sees it: a replica with the log that it extends.
//!
//! What is to change is appended first, after exactly the position that the replica has folded, and folded then. Somebody
//! else who appends has made himself the owner by that, and the next append here is fenced: nothing of it happens, the
//! owner says so, and may follow the log from there on or take it over again.

mod candidates;
mod planning;
mod reconsider;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use orbweaver_model::{Budgets, Epoch, Event, KeySeed, Timestamp, UrlKey};

pub use self::candidates::Wanted;
use crate::error::{Error, Result};
use crate::log::{Append, Batch, LocalLog, Log, LogError};
use crate::options::IndexOptions;
use crate::replica::{Damaged, Replica};

/// Events and links folded between two syncs at most. A local log keeps those in RAM, some 200 bytes a link, so that a
/// store that failed can be opened again and take up from where it is.
const UNSYNCED: usize = 1 << 16;

/// Batches that are folded between two looks at whether the log has more.
const FOLLOWED_AT_ONCE: usize = 1024;

/// How a process stands to the log of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It folds what others append.
    Follows,
    /// It extends the log, and as far as it knows nobody else does.
    Owns,
    /// It did extend the log, until somebody else has. What it had handed out is with that one now.
    Fenced,
}

/// A replica with its log.
pub struct Owner<L> {
    replica: Replica,
    log: L,
    standing: Standing,
    /// Where the last batch of ours is in the log; it may not be folded yet.
    tail: u64,
    /// A batch of which it is not known whether it is in the log. At most one: nothing else is appended meanwhile.
    pending: Option<Batch>,
    /// Events and links folded since the last sync.
    unsynced: usize,
}

/// The doc index of one machine, the only one of its log.
pub type DocIndex = Owner<LocalLog>;

impl DocIndex {
    /// Opens or creates the index in a directory and owns it. Claims of an earlier process return to the queue, and
    /// what is damaged is left behind.
    pub fn open(path: &Path, options: IndexOptions, now: Timestamp) -> Result<Self> {
        let replica = Replica::open(path, options, Damaged::Mend)?;
        let log = LocalLog::after(replica.applied());
        let mut index = Self::over(replica, log);
        index.take_over(now)?;
        Ok(index)
    }
}

/// What can be asked of the replica can be asked of its owner.
impl<L> Deref for Owner<L> {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

impl<L: Log> Owner<L> {
    /// A replica that follows a log. Nothing is appended.
    pub fn over(replica: Replica, log: L) -> Self {
        Self {
            tail: replica.applied(),
            replica,
            log,
            standing: Standing::Follows,
            pending: None,
            unsynced: 0,
        }
    }

    /// The replica alone; the log is left as it is.
    pub fn into_replica(self) -> Replica {
        self.replica
    }

    /// Whether the log is ours to extend.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Folds what others have appended, at most so many batches; how many there were. An owner that follows gives up
    /// owning.
    pub fn follow(&mut self, most: usize) -> Result<usize> {
        self.standing = Standing::Follows;
        self.pending = None;
        for count in 0..most {
            if !self.fold_next()? {
                return Ok(count);
            }
        }
        Ok(most)
    }

    /// Follows the log to its end and begins an epoch there; from then on the log is ours to extend. When somebody else
    /// is quicker this is [`Error::Fenced`], and may be tried again.
    pub fn take_over(&mut self, now: Timestamp) -> Result<()> {
        while self.follow(FOLLOWED_AT_ONCE)? > 0 {}
        self.tail = self.replica.applied();
        let begun = self.set_clock(now).and_then(|()| self.begin_epoch(now));
        if begun.is_err() {
            // Should it be in the log all the same, it is read there when this is tried again.
            self.pending = None;
            self.standing = Standing::Follows;
        }
        begun?;
        self.standing = Standing::Owns;
        info!(
            known = self.replica.seen().len(),
            hosts = self.replica.fold.hosts.len(),
            queued = self.replica.ledger().queued,
            "doc index open"
        );
        Ok(())
    }

    fn begin_epoch(&mut self, at: Timestamp) -> Result<()> {
        let options = &self.replica.options;
        let seed = options.seed;
        let epoch = Epoch {
            number: self.replica.epoch().map_or(0, |epoch| epoch.number) + 1,
            node: options.node.clone(),
        };
        let begin = self.replica.seed().is_none();
        let begin = begin.then_some(Event::Begin { seed });
        self.extend(begin.into_iter().chain([Event::Epoch { epoch, at }]))
    }

    /// Gives visits that were planned by a clock far ahead of ours other times, some in each commit, for there
    /// may be millions. What a crash interrupts is done again before the epoch begins.
    fn set_clock(&mut self, now: Timestamp) -> Result<()> {
        let Some(ahead) = self.replica.fold.ahead_of(now) else {
            return Ok(());
        };
        warn!(?ahead, "the clock was set back; waits were adjusted");
        let mut cursor = (
            now.after(Duration::from_millis(1)),
            UrlKey::from_bytes([0; 16]),
        );
        loop {
            let Replica { fold, store, .. } = &self.replica;
            let visits = fold.misplanned(ahead, now, &mut cursor, store)?;
            if visits.is_empty() {
                return Ok(());
            }
            self.extend([Event::Schedule { visits }])?;
        }
    }

    /// Appends events to the log and folds them, in one batch and one commit. When this returns they survive the death
    /// of the process; after [`sync`](Self::sync) they survive the loss of power.
    ///
    /// [`Error::Fenced`] says that the log is somebody else's by now, and nothing has happened. After any other error
    /// the index does nothing more until [`recover`](Self::recover) has succeeded. The events are not lost: that
    /// appends them, if they are not in the log, and folds them.
    pub fn apply(&mut self, events: impl IntoIterator<Item = Event>) -> Result<()> {
        self.ready()?;
        self.extend(events)
    }

    /// Fails when the log is not ours to extend, or not now.
    fn ready(&self) -> Result<()> {
        match self.standing {
            Standing::Follows | Standing::Fenced => Err(Error::Fenced),
            Standing::Owns if self.replica.has_failed() || self.pending.is_some() => {
                Err(Error::Stopped)
            }
            Standing::Owns => Ok(()),
        }
    }

    fn extend(&mut self, events: impl IntoIterator<Item = Event>) -> Result<()> {
        let batch: Batch = Arc::new(events.into_iter().collect());
        if batch.is_empty() {
            return Ok(());
        }
        self.pending = Some(Arc::clone(&batch));
        self.send(&batch)
    }

    /// Appends the pending batch and folds it.
    fn send(&mut self, batch: &Batch) -> Result<()> {
        let position = match self.log.append(self.replica.applied(), batch)? {
            Append::Appended(position) => position,
            // Unless it was this very batch that has extended the log, late.
            Append::Fenced => match self.log.next(self.replica.applied())? {
                Some((position, found)) if found == *batch => position,
                _ => return self.fence(),
            },
        };
        self.pending = None;
        self.tail = position;
        self.catch_up()?;
        if self.unsynced >= UNSYNCED {
            self.sync()?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<()> {
        self.pending = None;
        self.standing = Standing::Fenced;
        Err(Error::Fenced)
    }

    /// Folds everything of ours that is in the log.
    fn catch_up(&mut self) -> Result<()> {
        while self.replica.applied() < self.tail {
            if !self.fold_next()? && !self.replica.has_lost_its_place(self.tail) {
                let why = format!("it ends before position {}, which it had", self.tail);
                return Err(LogError(why).into());
            }
        }
        Ok(())
    }

    /// Folds the next batch of the log; false when there is none.
    fn fold_next(&mut self) -> Result<bool> {
        let applied = self.replica.applied();
        let Some((position, batch)) = self.log.next(applied)? else {
            return Ok(false);
        };
        if position <= applied {
            let why = format!("after position {applied} comes position {position}");
            return Err(LogError(why).into());
        }
        self.replica.fold(position, &batch)?;
        self.unsynced += batch.iter().map(weight).sum::<usize>();
        if self.standing == Standing::Follows && self.unsynced >= UNSYNCED {
            self.sync()?;
        }
        Ok(true)
    }

    /// After an error: opens the store again, unless it was the log that failed, folds what the store has not got yet,
    /// and appends what may not be in the log yet. URLs that are handed out stay so. What is damaged is left behind.
    /// May be called again and again until disk and log work, always with the first error.
    pub fn recover(&mut self, after: &Error) -> Result<()> {
        if self.replica.has_failed() || !matches!(after, Error::Log(_)) {
            self.replica.reopen(after)?;
        }
        self.catch_up()?;
        if let Some(batch) = self.pending.clone() {
            self.resolve(&batch)?;
        }
        self.sync()
    }

    /// Finds out whether a batch is in the log, and appends it when it is not.
    fn resolve(&mut self, batch: &Batch) -> Result<()> {
        match self.log.next(self.replica.applied())? {
            Some((position, found)) if found == *batch => {
                self.pending = None;
                self.tail = position;
                self.catch_up()
            }
            Some(_) => self.fence(),
            None => self.send(batch),
        }
    }

    /// Returns the URLs of all batches after this one to the queue: they were claimed, but a failure came
    /// between and nobody has got them.
    pub fn take_back(&mut self, after: u64) -> Result<()> {
        let keys = self.replica.fold.claimed_after(after);
        if keys.is_empty() {
            return Ok(());
        }
        self.apply([Event::Return { keys }])
    }

    /// Waits until everything applied so far is on the disk itself.
    pub fn sync(&mut self) -> Result<()> {
        self.replica.sync()?;
        self.log.forget(self.replica.applied());
        self.unsynced = 0;
        Ok(())
    }

    /// What damage to the index has cost, in words; said once.
    pub fn take_lost(&mut self) -> Option<String> {
        self.replica.take_lost()
    }

    /// The secret that keys this crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        let own = self.replica.options.seed;
        self.replica.seed().unwrap_or(own)
    }

    /// When the earliest retry, or visit to a finished URL, is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        let fold = &self.replica.fold;
        let visit = fold.next_visit.filter(|_| self.options.recrawl);
        [fold.next_due, visit].into_iter().flatten().min()
    }

    /// True when all that is left belongs to hosts that an operator has blocked.
    pub fn only_blocked(&self) -> bool {
        self.next_due().is_none() && self.claimed() == 0 && self.fold.hosts.only_blocked()
    }

    /// Other budgets from now on. What was refused for the old ones stays refused.
    pub fn set_budgets(&mut self, budgets: Budgets) {
        let Replica { options, fold, .. } = &mut self.replica;
        options.budgets = budgets;
        if !budgets.domain.is_open() {
            fold.hosts.count_domains(options.domain_of);
        }
    }
}

/// How much memory an event takes, in links.
fn weight(event: &Event) -> usize {
    match event {
        Event::Links { links, .. } | Event::Done { links, .. } => 1 + links.len(),
        _ => 1,
    }
}
