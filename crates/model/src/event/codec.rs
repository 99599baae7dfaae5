//! Events as bytes, for logs that are kept or sent: `docs/formats/events.md` describes them.
//!
//! A batch is what one append to a log holds. It names its version first, so that a program that does not know it says
//! so instead of guessing, and carries a checksum, because it may lie for years where nobody reads it.

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use super::Event;

/// The version that is written. Any change of what the bytes mean gets a new one; older ones stay readable.
pub const VERSION: u8 = 1;

/// Bytes before the events: the version and the checksum.
const HEAD: usize = 1 + 4;

/// Why bytes are no batch of events.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CodecError {
    /// The batch was written by another version of the program: use that version, or a newer one.
    #[error(
        "a batch of events has version {0}, this program reads versions up to {VERSION}; use the program that wrote it, or a newer one"
    )]
    Version(u8),
    /// The bytes are not what was written: read the batch again from another copy of the log.
    #[error("a batch of events is damaged: {0}; read it again from another copy of the log")]
    Damaged(String),
}

/// Writes a batch.
pub fn encode(events: &[Event]) -> Vec<u8> {
    let head = vec![VERSION, 0, 0, 0, 0];
    // Writing plain data into a vector cannot fail; an empty batch would be refused by every reader.
    let mut bytes = postcard::to_extend(events, head).unwrap_or_default();
    if let Some((head, rest)) = bytes.split_at_mut_checked(HEAD) {
        let sum = checksum(rest);
        if let Some(place) = head.get_mut(1..) {
            place.copy_from_slice(&sum);
        }
    }
    bytes
}

/// Reads a batch.
pub fn decode(bytes: &[u8]) -> Result<Vec<Event>, CodecError> {
    let damaged = |why: &str| CodecError::Damaged(why.to_owned());
    let Some((version, rest)) = bytes.split_first() else {
        return Err(damaged("it is empty"));
    };
    if *version != VERSION {
        return Err(CodecError::Version(*version));
    }
    let Some((sum, rest)) = rest.split_first_chunk::<4>() else {
        return Err(damaged("it is cut short"));
    };
    if *sum != checksum(rest) {
        return Err(damaged("its checksum is wrong"));
    }
    match postcard::take_from_bytes(rest) {
        Ok((events, [])) => Ok(events),
        Ok(_) => Err(damaged("bytes follow its end")),
        Err(error) => Err(CodecError::Damaged(error.to_string())),
    }
}

/// The low half of XXH3-64, little-endian, as in the records of the doc index.
fn checksum(events: &[u8]) -> [u8; 4] {
    (xxh3_64(events) as u32).to_le_bytes()
}
