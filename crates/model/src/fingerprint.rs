//! What a page says, in forty bytes: enough to see whether another one says the same.

/// The fingerprint of a HTML page. Made by the reader of pages, compared by the rules against traps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// A hash of its words, pictures and files. Two pages with the same one differ in numbers at most.
    pub words: u64,
    /// A bit for each of its numbers that is not in its URL.
    pub numbers: [u64; 4],
}

impl Fingerprint {
    /// How many numbers it has that the other has not; fewer when some share a bit.
    pub fn numbers_beyond(&self, other: &[u64; 4]) -> u32 {
        self.numbers
            .iter()
            .zip(other)
            .map(|(mine, theirs)| (mine & !theirs).count_ones())
            .sum()
    }
}
