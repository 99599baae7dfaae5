//! What can happen to a file: bits flip, ends are lost, somebody deletes it or puts another in its place.

use std::fs;
use std::path::Path;

use crate::random::Random;

/// One kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// One bit is another.
    Flip,
    /// Its end is gone.
    Cut,
    /// As long as before, and nothing but zeroes.
    Zeroes,
    /// Nothing is left of it.
    Empty,
    /// It is gone.
    Missing,
    /// A picture stands in its place.
    Foreign,
}

impl Harm {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Flip,
        Self::Cut,
        Self::Zeroes,
        Self::Empty,
        Self::Missing,
        Self::Foreign,
    ];

    /// Does it to a file; false when the file is the same as before.
    ///
    /// # Panics
    ///
    /// When the file cannot be read, written or deleted.
    pub fn inflict(self, file: &Path, random: &mut Random) -> bool {
        let before = fs::read(file).unwrap();
        match self.on(&before, random) {
            Some(bytes) => {
                fs::write(file, &bytes).unwrap();
                bytes != before
            }
            None => {
                fs::remove_file(file).unwrap();
                true
            }
        }
    }

    /// What becomes of these bytes; none when nothing is left to be read, not even a length.
    pub fn on(self, bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        match self {
            Self::Flip if bytes.is_empty() => {}
            Self::Flip => {
                let bit = random.index(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Self::Cut => bytes.truncate(bytes.len() - random.index(bytes.len())),
            Self::Zeroes => bytes.fill(0),
            Self::Empty => bytes.clear(),
            Self::Missing => return None,
            Self::Foreign => {
                bytes = b"\xff\xd8\xff\xe0\0\x10JFIF".repeat(1 + random.index(5000));
            }
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harm_is_one_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let mut random = Random::new(1);
        for harm in Harm::ALL {
            fs::write(&file, [1; 100]).unwrap();
            let harmed = (0..20).any(|_| harm.inflict(&file, &mut random));
            assert!(harmed, "{harm:?}");
            let after = fs::read(&file).unwrap_or_default();
            assert_ne!(after, [1; 100], "{harm:?}");
        }
        fs::write(&file, []).unwrap();
        for harm in [Harm::Flip, Harm::Cut, Harm::Zeroes, Harm::Empty] {
            assert!(!harm.inflict(&file, &mut random), "{harm:?} of nothing");
        }
    }
}
