//! Numbers that look random and are not: the same for the same seed, on every machine, forever.
//!
//! A crate for random numbers may change its streams between versions; the bytes of these pages must not.

/// The step and the mixing of SplitMix64 (Steele, Lea and Flood, 2014): five operations a number, and
/// good enough for choosing words.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(state: u64) -> Self {
        Self(state)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// A number below `n`, or zero when there is none. The bias of the multiplication is below n/2^32.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        ((u64::from(n) * (self.next() >> 32)) >> 32) as u32
    }

    /// One of `all`; none when there are none.
    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(u32::try_from(all.len()).unwrap_or(u32::MAX)) as usize)
    }
}

/// One number from several, each of which matters to every bit of it.
pub(crate) fn mix(parts: [u64; 4]) -> u64 {
    parts
        .into_iter()
        .fold(0x243f_6a88_85a3_08d3, |so_far, part| {
            scramble((so_far ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15))
        })
}

fn scramble(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
