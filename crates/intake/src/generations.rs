//! A table that forgets: bounded in bytes, and what was used last is kept longest.
//!
//! Two generations instead of a list in order of use: no links to keep up, and forgetting costs nothing
//! but dropping a map.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Beside key and value, what an entry costs in a hash table that is between half and fully loaded.
const OVERHEAD: usize = 16;

/// Values by the hash of what they are about.
#[derive(Debug)]
pub(crate) struct Generations<V> {
    /// Filled by every use; when it is worth half of `max`, it becomes the old one.
    young: HashMap<u64, V, BuildHasherDefault<Ready>>,
    /// Emptied by use, and dropped when the next one is full.
    old: HashMap<u64, V, BuildHasherDefault<Ready>>,
    /// What the young one is worth.
    bytes: usize,
    max: usize,
    /// What a value holds on the heap.
    heap: fn(&V) -> usize,
}

impl<V: Default> Generations<V> {
    /// A table of at most `max` bytes, whose values hold so much on the heap.
    pub(crate) fn new(max: usize, heap: fn(&V) -> usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            bytes: 0,
            max,
            heap,
        }
    }

    /// The value, if it is known; being asked for makes it young.
    pub(crate) fn get(&mut self, key: u64) -> Option<&mut V> {
        if !self.young.contains_key(&key) {
            let value = self.old.remove(&key)?;
            self.insert(key, value);
        }
        self.young.get_mut(&key)
    }

    /// The value, made new if it is not known.
    pub(crate) fn get_or_default(&mut self, key: u64) -> &mut V {
        if !self.young.contains_key(&key) {
            let value = self.old.remove(&key).unwrap_or_default();
            self.insert(key, value);
        }
        self.young.entry(key).or_default()
    }

    /// Counts what a value of the table has taken on the heap since it was asked for.
    pub(crate) fn grown_by(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    fn insert(&mut self, key: u64, value: V) {
        let own = size_of::<u64>() + size_of::<V>() + OVERHEAD + (self.heap)(&value);
        if self.bytes + own > self.max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += own;
        self.young.insert(key, value);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*b);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut table = Generations::<u64>::new(32 * 1000, |_| 0);
        *table.get_or_default(7) = 70;
        for key in 1000..100_000 {
            *table.get_or_default(key) = key;
            assert_eq!(table.get(7).copied(), Some(70));
            assert!(table.len() <= 1000);
        }
        assert_eq!(table.get(1000), None);
        assert_eq!(table.get(99_999).copied(), Some(99_999));
    }

    #[test]
    fn what_lies_on_the_heap_counts() {
        let mut table = Generations::<Vec<u8>>::new(10_000, Vec::capacity);
        for key in 0..100 {
            table.get_or_default(key).resize(1000, 0);
            table.grown_by(1000);
            assert!(table.len() <= 12);
        }
    }
}
