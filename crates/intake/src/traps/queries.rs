//! Parameters in ever new combinations: filters of a shop, each of which can be added to any URL.
//!
//! What gives them away is that there are more combinations than parameters: filters come in subsets and
//! in any order. A program with many functions behind one path has other parameters for each of them, and
//! a search with its pages has always the same.

use orbweaver_model::KeySeed;

use crate::generations::Generations;
use crate::pattern::Pattern;

/// With fewer parameters there are too few combinations to be lost in.
const MIN_NAMES: usize = 3;

/// Combinations and names that are told apart on one path; from there on they are as many as they are.
const MAX_TOLD: usize = 64;

/// What is remembered of parameters.
#[derive(Debug)]
pub(super) struct Queries {
    max: u32,
    /// By host and path; only of links with many parameters.
    paths: Generations<Combinations>,
}

#[derive(Debug, Default)]
struct Combinations {
    urls: u32,
    /// Sequences of names, in the order of the URL.
    sequences: Told,
    names: Told,
}

/// Different things, as hashes in order.
#[derive(Debug, Default)]
struct Told(Vec<u32>);

impl Queries {
    pub(super) fn new(max: u32, memory: usize) -> Self {
        Self {
            max,
            paths: Generations::new(memory, Combinations::heap),
        }
    }

    /// Counts a new URL; true when it is one too many.
    pub(super) fn explode(&mut self, seed: KeySeed, pattern: &Pattern<'_>) -> bool {
        if self.max == 0 || pattern.names.len() < MIN_NAMES {
            return false;
        }
        let path = self.paths.get_or_default(seed.hash(pattern.path()));
        let before = path.heap();
        let mut sequence = 0_u64;
        for name in &pattern.names {
            let name = seed.hash(name);
            path.names.tell(name);
            sequence = (sequence.rotate_left(5) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        path.sequences.tell(sequence);
        let exploded = path.urls >= self.max && path.sequences.0.len() > path.names.0.len();
        path.urls = path.urls.saturating_add(1);
        let grown = path.heap() - before;
        self.paths.grown_by(grown);
        exploded
    }
}

impl Combinations {
    fn heap(&self) -> usize {
        (self.sequences.0.capacity() + self.names.0.capacity()) * size_of::<u32>()
    }
}

impl Told {
    fn tell(&mut self, hash: u64) {
        let hash = (hash >> 32) as u32;
        if let Err(place) = self.0.binary_search(&hash)
            && self.0.len() < MAX_TOLD
        {
            self.0.insert(place, hash);
        }
    }
}
