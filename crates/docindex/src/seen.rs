//! The seen-set: which URLs are known, as 64-bit fingerprints in RAM, in front of the store.
//!
//! Four of five links on a page lead to known URLs. Asking the store about each costs some 11 µs; asking
//! this table costs 0.1 µs. "Not here" is certain and "here" is wrong with a chance of n/2^64: at ten
//! million URLs the chance that any link at all was ever mistaken is 3 in a million. The hash is keyed by
//! a secret of the crawl, so that nobody can bring it about on purpose.

use std::sync::RwLock;

use orbweaver_model::UrlKey;

/// Parts with a lock each. The doc index alone writes; every worker reads.
const SHARDS: usize = 64;

/// A set of URL fingerprints that is read by many threads and grows in small steps.
#[derive(Debug)]
pub struct Seen {
    shards: Vec<RwLock<Shard>>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::new(Shard::default())).collect(),
        }
    }
}

impl Seen {
    /// True when the URL is known.
    pub fn contains(&self, key: UrlKey) -> bool {
        let shard = self.shard(key.url);
        shard.read().map_or_else(
            |poison| poison.into_inner().contains(key.url),
            |s| s.contains(key.url),
        )
    }

    /// Adds a URL; true when it was not known before.
    pub(crate) fn insert(&self, key: UrlKey) -> bool {
        let shard = self.shard(key.url);
        let mut shard = shard
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        shard.insert(key.url)
    }

    /// Forgets everything, to be filled anew.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            *shard = Shard::default();
        }
    }

    /// How many URLs are known.
    pub fn len(&self) -> usize {
        self.sum(|shard| shard.len)
    }

    /// True when nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of RAM in use.
    pub fn bytes(&self) -> usize {
        self.sum(|shard| shard.places.capacity() * size_of::<u64>())
    }

    fn sum(&self, of: impl Fn(&Shard) -> usize) -> usize {
        let locked = |lock: &RwLock<Shard>| {
            lock.read()
                .map_or_else(|poison| of(&poison.into_inner()), |s| of(&s))
        };
        self.shards.iter().map(locked).sum()
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

/// An open-addressing table with linear probing; 0 marks an empty place.
#[derive(Debug, Default)]
struct Shard {
    places: Vec<u64>,
    len: usize,
}

impl Shard {
    fn contains(&self, fingerprint: u64) -> bool {
        !self.places.is_empty() && self.find(stored(fingerprint)).is_ok()
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        // Five sixths full at most: linear probing is still short there, and growing by a third instead
        // of doubling keeps the average at 11 bytes a URL.
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
    fn find(&self, value: u64) -> Result<usize, usize> {
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

    fn grow(&mut self) {
        let size = (self.places.len() + self.places.len() / 3).max(64);
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

/// 0 means "empty", so the fingerprint 0 is kept as 1.
fn stored(fingerprint: u64) -> u64 {
    fingerprint.max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(url: u64) -> UrlKey {
        UrlKey { host: 0, url }
    }

    proptest! {
        #[test]
        fn is_a_set(values in prop::collection::vec(prop_oneof![2..300u64, any::<u64>()], 0..3000)) {
            let seen = Seen::default();
            let mut model = std::collections::HashSet::new();
            for value in values {
                prop_assert_eq!(seen.insert(key(value)), model.insert(value.max(1)));
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
        let seen = Seen::default();
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seen.insert(key(x ^ (x >> 29)));
        }
        assert!(
            seen.bytes() <= seen.len() * 13,
            "{} bytes for {} URLs",
            seen.bytes(),
            seen.len()
        );
    }
}
