//! Following the results: from a position, or under a name that keeps it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use orbweaver_journal::{Cursor, Followers, Segments};
use orbweaver_model::CapturePlace;

use super::entry::{Entry, Standing};
use super::past::Past;
use crate::error::StoreError;
use crate::files::Layout;

/// Segments that are kept although everybody has passed them: a store recognises by them what it answered lately.
const KEPT: usize = 2;

/// The results of a crawl, for those who follow them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Results {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    layout: Layout,
    segments: Segments,
    followers: Followers,
    /// How far entries can be followed: as far as they are acknowledged.
    last: Mutex<u64>,
    /// `last` has grown.
    grown: Condvar,
    /// How far the doc index has come, durably; 0 until it says so.
    index: AtomicU64,
    /// What was forgotten can be read from the archive, for there is nothing in the journal but exchanges.
    is_in_archive: bool,
}

impl Results {
    pub(super) fn new(layout: &Layout, segments: Segments, last: u64, is_in_archive: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                followers: Followers::of(&layout.results),
                layout: layout.clone(),
                segments,
                last: Mutex::new(last),
                grown: Condvar::new(),
                index: AtomicU64::new(0),
                is_in_archive,
            }),
        }
    }

    /// The position of the last entry that can be followed; 0 before the first.
    pub fn last(&self) -> u64 {
        *self.lock()
    }

    /// The position of the oldest entry that was not forgotten.
    pub fn first(&self) -> u64 {
        self.shared.segments.first()
    }

    /// Everything behind a position. Where entries were forgotten that the archive still has, they are read from it first.
    pub fn after(&self, position: u64) -> Result<Reading, StoreError> {
        let cursor = Cursor::new(self.shared.segments.clone(), position);
        let is_forgotten = position.saturating_add(1) < self.first();
        let past = match is_forgotten && self.shared.is_in_archive {
            true => Some(Past::behind(&self.shared.layout, None)?),
            false => None,
        };
        let until = match past {
            Some(_) => self.oldest_place()?,
            None => None,
        };
        Ok(Reading {
            results: self.clone(),
            past,
            until,
            cursor,
        })
    }

    /// A follower by name, where it was when it was registered before; a new one is registered and begins as `new` says.
    pub fn follower(&self, name: &str, new: Begin) -> Result<Follower, StoreError> {
        let followers = &self.shared.followers;
        let position = match followers.position(name)? {
            // The journal is shorter than it was: it was lost and made again, and so everything is heard again.
            Some(position) if position > self.last() => 0,
            Some(position) => position,
            None => match new {
                Begin::First => 0,
                Begin::Now => self.last(),
            },
        };
        followers.set(name, position)?;
        Ok(Follower {
            name: name.to_owned(),
            reading: self.after(position)?,
            position,
        })
    }

    /// Gives a follower up: nothing is kept for it any more.
    pub fn dismiss(&self, name: &str) -> Result<(), StoreError> {
        Ok(self.shared.followers.remove(name)?)
    }

    /// The doc index has folded everything up to here, durably. What nobody needs any more is forgotten; says how many
    /// segments that are.
    pub fn folded(&self, position: u64) -> Result<usize, StoreError> {
        // Nobody can have folded what is not there.
        let position = position.min(self.last());
        self.shared.index.store(position, Ordering::Relaxed);
        self.forget()
    }

    fn forget(&self) -> Result<usize, StoreError> {
        if self.shared.segments.count() <= KEPT {
            return Ok(0);
        }
        let index = self.shared.index.load(Ordering::Relaxed);
        let slowest = self.shared.followers.slowest()?;
        let passed = slowest.map_or(index, |slowest| slowest.min(index));
        Ok(self.shared.segments.forget(passed, KEPT)?)
    }

    /// Entries up to here can be followed.
    pub(crate) fn publish(&self, position: u64) {
        *self.lock() = position;
        self.shared.grown.notify_all();
    }

    /// The place of the oldest exchange in the journal.
    fn oldest_place(&self) -> Result<Option<CapturePlace>, StoreError> {
        let mut cursor = Cursor::new(self.shared.segments.clone(), 0);
        let last = self.last();
        while let Some((_, payload)) = cursor.next(last)? {
            if let Some(Standing::Stored(place)) = Entry::read(payload).map(|it| it.standing) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.shared
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a follower begins that was never heard of before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the first result of the crawl.
    First,
    /// With what comes next.
    Now,
}

/// The results behind a position, one after the other.
#[derive(Debug)]
pub struct Reading {
    results: Results,
    /// What was forgotten; none when nothing was, or when all of it is read.
    past: Option<Past>,
    /// Where the journal begins.
    until: Option<CapturePlace>,
    cursor: Cursor,
}

impl Reading {
    /// The next entry and its position; none when there is none yet. What the journal has forgotten and the archive has not
    /// comes with position 0.
    pub fn next_entry(&mut self) -> Result<Option<(u64, Entry)>, StoreError> {
        if let Some(past) = &mut self.past {
            let entry = past.next()?;
            let is_before = |entry: &Entry| self.until.is_none_or(|to| entry.place() < Some(to));
            if let Some(entry) = entry.filter(is_before) {
                return Ok(Some((0, entry)));
            }
            self.past = None;
        }
        let last = self.results.last();
        let Some((position, payload)) = self.cursor.next(last)? else {
            return Ok(None);
        };
        match Entry::read(payload) {
            Some(entry) => Ok(Some((position, entry))),
            None => {
                let what = format!("entry {position} cannot be decoded");
                let path = &self.results.shared.layout.results;
                Err(StoreError::damaged(path, 0, what))
            }
        }
    }

    /// The position of the last entry that was read, or behind which this began.
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }
}

/// One who follows the results under a name: a search index, a text export.
#[derive(Debug)]
pub struct Follower {
    name: String,
    reading: Reading,
    /// How far it has come, durably.
    position: u64,
}

impl Follower {
    /// The next entry and its position; none when there is none yet.
    pub fn next_entry(&mut self) -> Result<Option<(u64, Entry)>, StoreError> {
        self.reading.next_entry()
    }

    /// Waits until there may be more, at most for this long; says whether there is.
    pub fn wait(&self, span: Duration) -> bool {
        let results = &self.reading.results;
        let read = self.reading.position();
        let waited = (results.shared.grown).wait_timeout_while(results.lock(), span, |last| {
            *last <= read && self.reading.past.is_none()
        });
        let (last, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *last > read || self.reading.past.is_some()
    }

    /// How far it has come, durably.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Entries that it has not read yet.
    pub fn lag(&self) -> u64 {
        let read = self.reading.position();
        self.reading.results.last().saturating_sub(read)
    }

    /// Keeps, durably, that everything up to this position is done. After a kill it goes on behind it.
    pub fn have(&mut self, position: u64) -> Result<(), StoreError> {
        let results = &self.reading.results;
        results.shared.followers.set(&self.name, position)?;
        self.position = position;
        results.forget()?;
        Ok(())
    }
}
