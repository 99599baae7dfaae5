//! The way of results from the store to the doc index: what a follower says, and what it hears.
//!
//! A follower sends `FOLLOW position` and hears entries, each the eight bytes of its position and a
//! record as [`crate::record`] lays it out, forever. `HAVE position` says that everything up to there is
//! folded and may be forgotten. `docs/formats/results.md` has the words.

use std::io::Write as _;

use bytes::Buf;

use crate::line::BadLine;
use crate::record::{Decoded, Records};

/// Bytes before the record of an entry.
pub const POSITION_LEN: usize = 8;

/// What a follower says, a line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send every entry after this position; 0 is before the first.
    Follow(u64),
    /// Everything up to this position is folded.
    Have(u64),
}

impl Command {
    /// Writes the message with its line end.
    pub fn write(self, out: &mut Vec<u8>) {
        // Writing to a Vec does not fail.
        let _ = match self {
            Self::Follow(position) => writeln!(out, "FOLLOW {position}"),
            Self::Have(position) => writeln!(out, "HAVE {position}"),
        };
    }

    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, BadLine> {
        let bad = |why| BadLine { trans: None, why };
        let text = std::str::from_utf8(line).map_err(|_| bad("not ASCII"))?;
        let mut words = text.split_ascii_whitespace();
        let (Some(word), Some(position), None) = (words.next(), words.next(), words.next()) else {
            return Err(bad("a command has two words"));
        };
        let digits = position.bytes().all(|byte| byte.is_ascii_digit());
        let position = position.parse().ok().filter(|_| digits);
        let position = position.ok_or(bad("a position is a number of 64 bits"))?;
        if word.eq_ignore_ascii_case("FOLLOW") {
            Ok(Self::Follow(position))
        } else if word.eq_ignore_ascii_case("HAVE") {
            Ok(Self::Have(position))
        } else {
            Err(bad("neither FOLLOW nor HAVE"))
        }
    }
}

/// Reads entries from a stream, however it is cut; bounded like [`Records`].
#[derive(Debug)]
pub struct Entries {
    records: Records,
    position: Option<u64>,
}

impl Entries {
    /// Keeps at most `max_data` bytes of an entry's data.
    pub fn new(max_data: usize) -> Self {
        Self {
            records: Records::new(max_data),
            position: None,
        }
    }

    /// Adds what was read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.records.feed(bytes);
    }

    /// True when an entry has begun and not ended.
    pub fn is_amid(&self) -> bool {
        self.position.is_some() || self.records.is_amid()
    }

    /// The next entry with its position; none until more is fed.
    #[allow(clippy::should_implement_trait, reason = "none is not the end")]
    pub fn next(&mut self) -> Option<(u64, Decoded)> {
        let position = match self.position {
            Some(position) => position,
            None => {
                let buffer = self.records.buffer();
                let position = (buffer.len() >= POSITION_LEN).then(|| buffer.get_u64())?;
                *self.position.insert(position)
            }
        };
        let decoded = self.records.next()?;
        self.position = None;
        Some((position, decoded))
    }
}
