//! The seen-set: which URLs are known, as 64-bit fingerprints in RAM, in front of the store.
//!
//! Four of five links on a page lead to known URLs. Asking the store about each costs some 11 µs; asking
//! this table costs 0.1 µs. "Not here" is certain and "here" is wrong with a chance of n/2^64: at ten
//! million URLs the chance that any link at all was ever mistaken is 3 in a million. The hash is keyed by
//! a secret of the crawl, so that nobody can bring it about on purpose.
//!
//! The table has a share of the memory budget. While it holds every known URL it answers alone; when it does
//! not, because it is still being filled or because they no longer fit, a miss is a question to the store.
//! That is slower and never wrong: what has left the table was committed before.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use orbweaver_model::UrlKey;

use crate::error::Result;
use crate::reader::Shared;

/// Parts with a lock each. The doc index alone adds URLs; every worker reads, and remembers what the store
/// has told it.
const SHARDS: usize = 64;

/// Everything known is in RAM.
const COMPLETE: u8 = 0;
/// What the store knows is being read.
const FILLING: u8 = 1;
/// Some of what is known is in the store only.
const PARTIAL: u8 = 2;

/// A set of URL fingerprints that is read by many threads and grows in small steps.
pub struct Seen {
    shards: Vec<RwLock<Shard>>,
    /// One of the three states above. Read before the table is: what becomes complete later was there
    /// when the store was asked.
    state: AtomicU8,
    /// URLs known, in RAM or not.
    known: AtomicU64,
    /// Bytes that the shards may take together.
    limit: AtomicUsize,
    /// The shard that is looked at after the next commit.
    next: AtomicUsize,
    store: Shared,
}

impl Seen {
    /// An empty set before an empty store.
    pub(crate) fn new(store: Shared) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::new(Shard::default())).collect(),
            state: AtomicU8::new(COMPLETE),
            known: AtomicU64::new(0),
            limit: AtomicUsize::new(usize::MAX),
            next: AtomicUsize::new(0),
            store,
        }
    }

    /// True when the URL is known. While the store is closed what is not in RAM counts as unknown: the fold
    /// asks again, and waits for the answer.
    pub fn contains(&self, key: UrlKey) -> bool {
        self.find(key).unwrap_or(false)
    }

    /// Adds a URL; true when it was not known before.
    pub(crate) fn insert(&self, key: UrlKey) -> Result<bool> {
        if self.find(key)? {
            return Ok(false);
        }
        let new = self.change(key.url, |shard| shard.insert(key.url));
        self.known.fetch_add(u64::from(new), Ordering::Relaxed);
        Ok(new)
    }

    fn find(&self, key: UrlKey) -> Result<bool> {
        let complete = self.is_complete();
        if look(self.shard(key.url), |shard| shard.contains(key.url)) {
            return Ok(true);
        }
        let known = !complete && self.store.knows(key)?;
        if known {
            let share = self.share();
            self.change(key.url, |shard| {
                shard.bytes() < share && shard.insert(key.url)
            });
        }
        Ok(known)
    }

    /// Forgets everything, to be filled anew from a store that knows so many URLs. True when they fit.
    pub(crate) fn restart(&self, known: u64, limit: usize) -> bool {
        let fits = known.saturating_mul(MOST_EACH) <= limit as u64;
        // Whoever finds nothing asks the store, before anything is gone.
        self.state
            .store(if fits { FILLING } else { PARTIAL }, Ordering::SeqCst);
        self.known.store(known, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
        let room = usize::try_from(known).unwrap_or(0) / SHARDS;
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            // The old table goes before the new one comes.
            *shard = Shard::default();
            if fits {
                shard.young = Table::with_room(room);
            }
        }
        fits
    }

    /// Takes in a URL that the store knows; false when more are of no use.
    pub(crate) fn fill(&self, key: UrlKey) -> bool {
        self.change(key.url, |shard| shard.insert(key.url));
        self.state.load(Ordering::Relaxed) == FILLING
    }

    /// The store has been read to its end.
    pub(crate) fn filled(&self) {
        // Not when something was dropped meanwhile.
        let _ = self
            .state
            .compare_exchange(FILLING, COMPLETE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Called after a commit: all that is in RAM is in the store as well, and may be dropped when it takes
    /// more than it may. One shard is looked at each time, for they grow alike.
    pub(crate) fn settle(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        let next = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let Some(shard) = self.shards.get(next) else {
            return;
        };
        if look(shard, Shard::bytes) > self.share() {
            self.state.store(PARTIAL, Ordering::SeqCst);
            shard.write().unwrap_or_else(PoisonError::into_inner).shed();
        }
    }

    /// How many URLs are known.
    pub fn len(&self) -> usize {
        usize::try_from(self.known.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// True when nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when no question goes to the store.
    pub fn is_complete(&self) -> bool {
        self.state.load(Ordering::SeqCst) == COMPLETE
    }

    /// Bytes of RAM in use.
    pub fn bytes(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| look(shard, Shard::bytes))
            .sum()
    }

    fn share(&self) -> usize {
        self.limit.load(Ordering::Relaxed) / SHARDS
    }

    fn change<T>(&self, fingerprint: u64, change: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = self.shard(fingerprint);
        change(&mut shard.write().unwrap_or_else(PoisonError::into_inner))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the remainder is smaller than the number of shards"
    )]
    fn shard(&self, fingerprint: u64) -> &RwLock<Shard> {
        // The low bits choose the shard, the high ones the place in it.
        &self.shards[fingerprint as usize % SHARDS]
    }
}

fn look<T>(shard: &RwLock<Shard>, of: impl FnOnce(&Shard) -> T) -> T {
    of(&shard.read().unwrap_or_else(PoisonError::into_inner))
}

/// Two generations: when both together take too much, the older one is dropped.
#[derive(Default)]
struct Shard {
    young: Table,
    old: Table,
}

impl Shard {
    fn contains(&self, fingerprint: u64) -> bool {
        self.young.contains(fingerprint) || self.old.contains(fingerprint)
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        !self.old.contains(fingerprint) && self.young.insert(fingerprint)
    }

    fn bytes(&self) -> usize {
        self.young.bytes() + self.old.bytes()
    }

    fn shed(&mut self) {
        let young = std::mem::take(&mut self.young);
        self.old = match self.old.len {
            // The first time everything is in one table, and it alone takes too much.
            0 => young.half(),
            _ => young,
        };
    }
}

/// An open-addressing table with linear probing; 0 marks an empty place.
#[derive(Default)]
struct Table {
    places: Vec<u64>,
    len: usize,
}

impl Table {
    /// An empty table for about so many URLs, with places for a few more: shards are not filled all alike.
    fn with_room(urls: usize) -> Self {
        Self {
            places: vec![0; urls / 5 * 6 + urls / 32],
            len: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u64>()
    }

    fn contains(&self, fingerprint: u64) -> bool {
        !self.places.is_empty() && self.find(stored(fingerprint)).is_ok()
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        // Five sixths full at most: linear probing is still short there, and growing by an eighth instead
        // of doubling keeps it at 9.6 to 10.8 bytes a URL. A URL is moved eight times for that, some 0.1 µs.
        if (self.len + 1) * 6 > self.places.len() * 5 {
            self.grow();
        }
        let value = stored(fingerprint);
        let Err(free) = self.find(value) else {
            return false;
        };
        if let Some(place) = self.places.get_mut(free) {
            *place = value;
            self.len += 1;
        }
        true
    }

    /// The place of a value, or else the free place where it belongs.
    fn find(&self, value: u64) -> std::result::Result<usize, usize> {
        let mut at = self.home(value);
        loop {
            match self.places.get(at) {
                Some(0) => return Err(at),
                Some(there) if *there == value => return Ok(at),
                Some(_) => at += 1,
                None => at = 0,
            }
        }
    }

    /// Maps the high bits onto any table size, so that sizes need not be powers of two.
    fn home(&self, value: u64) -> usize {
        ((u128::from(value) * self.places.len() as u128) >> 64) as usize
    }

    /// Every second URL.
    fn half(&self) -> Self {
        let mut half = Self::default();
        for value in self.places.iter().filter(|value| **value != 0).step_by(2) {
            half.insert(*value);
        }
        half
    }

    fn grow(&mut self) {
        let size = (self.places.len() + self.places.len() / 8).max(64);
        let old = std::mem::replace(&mut self.places, vec![0; size]);
        for value in old.into_iter().filter(|value| *value != 0) {
            if let Err(free) = self.find(value)
                && let Some(place) = self.places.get_mut(free)
            {
                *place = value;
            }
        }
    }
}

/// Bytes that a URL takes at most: 8 for its place, of which three in four are taken after a table has grown.
const MOST_EACH: u64 = 11;

/// 0 means "empty", so the fingerprint 0 is kept as 1.
fn stored(fingerprint: u64) -> u64 {
    fingerprint.max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keyspaces::Keyspaces;

    fn seen() -> Seen {
        Seen::new(Shared::of(&Keyspaces::closed()))
    }

    fn key(url: u64) -> UrlKey {
        UrlKey { host: 0, url }
    }

    proptest! {
        #[test]
        fn is_a_set(values in prop::collection::vec(prop_oneof![2..300u64, any::<u64>()], 0..3000)) {
            let seen = seen();
            let mut model = std::collections::HashSet::new();
            for value in values {
                prop_assert_eq!(seen.insert(key(value)).unwrap(), model.insert(value.max(1)));
                prop_assert!(seen.contains(key(value)));
            }
            prop_assert_eq!(seen.len(), model.len());
            for probe in 2..400 {
                prop_assert_eq!(seen.contains(key(probe)), model.contains(&probe));
            }
        }
    }

    #[test]
    fn stays_small() {
        let seen = seen();
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seen.insert(key(x ^ (x >> 29))).unwrap();
        }
        assert!(
            seen.bytes() as u64 <= seen.len() as u64 * MOST_EACH,
            "{} bytes for {} URLs",
            seen.bytes(),
            seen.len()
        );
    }
}
