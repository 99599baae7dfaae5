//! Random numbers from a seed, so that whatever a test finds can be had again.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// A number from an environment variable.
///
/// # Panics
///
/// When it is set to something else.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} must be a number, not `{text}`")))
}

/// Another seed each time, unless the variable says which. It is printed, for a test that fails shows what it printed.
pub fn seed(variable: &str) -> u64 {
    let seed = number(variable).unwrap_or_else(|| rand::random::<u32>().into());
    println!("{variable}={seed}");
    seed
}

/// A source of random numbers: the same ones from the same seed, with any version of the library behind it.
#[derive(Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `end` - 1; 0 when there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.random_range(0..end.max(1))
    }

    /// A place in something of that length; 0 when there is none.
    pub fn index(&mut self, len: usize) -> usize {
        self.0.random_range(0..len.max(1))
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of several.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// Puts them in any order.
    pub fn shuffle<T>(&mut self, them: &mut [T]) {
        for at in (1..them.len()).rev() {
            them.swap(at, self.index(at + 1));
        }
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds in messages of failed tests must mean the same tomorrow.
    #[test]
    fn a_seed_is_a_sequence() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.any(), random.any()]
        };
        assert_eq!(
            numbers(1),
            [14_971_601_782_005_023_387, 13_781_649_495_232_077_965]
        );
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn numbers_stay_below_their_end_and_reach_it() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(
            seen.iter().all(|count| (100..300).contains(count)),
            "{seen:?}"
        );
        assert_eq!((random.below(0), random.index(0)), (0, 0));
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut random = Random::new(7);
        let mut them: Vec<u32> = (0..100).collect();
        random.shuffle(&mut them);
        assert_ne!(them, (0..100).collect::<Vec<_>>());
        them.sort_unstable();
        assert_eq!(them, (0..100).collect::<Vec<_>>());
        assert!(them.contains(random.pick(&them)));
        assert_eq!(random.bytes(9).len(), 9);
    }
}
