//! Parameters in ever new combinations: filters of a shop, each of which can be added to any URL.
//!
//! A catalogue with finitely many filters is honest, however many URLs that makes. What gives an endless one
//! away is that its URLs repeat each other: the same arguments in another order, the same argument twice. Only when
//! a path has very many URLs, and at least a tenth of them are such repetitions, is it bounded.

use orbweaver_model::KeySeed;

use crate::generations::Generations;

/// With fewer arguments there are too few combinations to be lost in.
const MIN_ARGUMENTS: usize = 3;

/// Arguments that are looked at.
const MAX_ARGUMENTS: usize = 64;

/// How often the same argument may stand in one URL. A fourth time is a link that feeds on itself.
const MAX_REPEATS: usize = 3;

/// Sets of arguments that are remembered of one path.
const MAX_SETS: usize = 4096;

/// What is remembered of parameters.
#[derive(Debug)]
pub(super) struct Queries {
    /// By host and path; only of links with many arguments.
    paths: Generations<Combinations>,
}

#[derive(Debug, Default)]
struct Combinations {
    urls: u32,
    /// Those that say nothing that another did not say.
    repetitions: u32,
    /// The arguments of each URL as a set and in their order, as hashes, sorted.
    sets: Vec<(u32, u32)>,
}

/// Whether a query has an argument more often than anybody would write it.
pub(super) fn repeats(query: &str) -> bool {
    let arguments = || query.split('&').take(MAX_ARGUMENTS);
    arguments().count() > MAX_REPEATS
        && arguments().enumerate().any(|(at, one)| {
            !one.is_empty()
                && arguments().skip(at).filter(|other| *other == one).count() > MAX_REPEATS
        })
}

impl Queries {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            paths: Generations::new(memory, Combinations::heap),
        }
    }

    /// Counts a new URL, with host and path in its pattern and its query; true when it is one more than `max`,
    /// where 0 means no limit.
    pub(super) fn explode(&mut self, seed: KeySeed, path: &str, query: &str, max: u32) -> bool {
        if max == 0 || query.split('&').nth(MIN_ARGUMENTS - 1).is_none() {
            return false;
        }
        let path = self.paths.get_or_default(seed.hash(path));
        if path.urls >= max && path.repetitions >= path.urls / 10 {
            return true;
        }
        let before = path.heap();
        let hashes: Vec<u64> = query
            .split('&')
            .take(MAX_ARGUMENTS)
            .map(|argument| seed.hash(argument))
            .collect();
        path.urls = path.urls.saturating_add(1);
        let again = hashes
            .iter()
            .enumerate()
            .any(|(at, hash)| hashes.iter().skip(at + 1).any(|other| other == hash));
        path.repetitions += u32::from(again || path.reorders(&hashes));
        let grown = path.heap() - before;
        self.paths.grown_by(grown);
        false
    }
}

impl Combinations {
    /// Enters a set of arguments; true when it was there in another order.
    fn reorders(&mut self, hashes: &[u64]) -> bool {
        let set = hashes
            .iter()
            .fold(0_u64, |sum, hash| sum.wrapping_add(*hash));
        let order = hashes.iter().fold(0_u64, |all, hash| {
            (all.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let (set, order) = ((set >> 32) as u32, (order >> 32) as u32);
        let place = self.sets.partition_point(|(known, _)| *known < set);
        match self.sets.get(place) {
            Some((known, first)) if *known == set => *first != order,
            _ => {
                if self.sets.len() < MAX_SETS {
                    self.sets.insert(place, (set, order));
                }
                false
            }
        }
    }

    fn heap(&self) -> usize {
        self.sets.capacity() * size_of::<(u32, u32)>()
    }
}
