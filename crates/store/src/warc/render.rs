//! How one record becomes bytes: its header, its block, one gzip member.

use std::collections::hash_map::RandomState;
use std::fmt::{self, Display};
use std::hash::BuildHasher;
use std::io::Write as _;

use libdeflater::{CompressionLvl, Compressor};

/// A record identifier, `urn:uuid:` version 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordId(u128);

impl Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "<urn:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}>",
            (id >> 96) as u32,
            (id >> 80) as u16,
            (id >> 64) as u16,
            (id >> 48) as u16,
            id & 0xffff_ffff_ffff
        )
    }
}

/// Makes record identifiers: SipHash of a counter under a key that the operating system's random source
/// gave this instance, which is unpredictable enough for names that must only be different.
pub(crate) struct RecordIds {
    key: RandomState,
    count: u64,
}

impl RecordIds {
    pub(crate) fn new() -> Self {
        Self {
            key: RandomState::new(),
            count: 0,
        }
    }

    pub(crate) fn next(&mut self) -> RecordId {
        let mut half = || {
            self.count += 1;
            u128::from(self.key.hash_one(self.count))
        };
        let random = (half() << 64) | half();
        // RFC 9562, section 5.4: four bits say version 4, two bits say variant 10.
        let version = (random & !(0xf << 76)) | (0x4 << 76);
        RecordId((version & !(0x3 << 62)) | (0x2 << 62))
    }
}

/// Renders records into gzip members, with buffers that are kept from one to the next.
pub(crate) struct Press {
    raw: Vec<u8>,
    packed: Vec<u8>,
    dense: Compressor,
    stored: Compressor,
}

/// What a buffer may keep between two records. Pages fit; a film is given back.
const KEEP: usize = 1 << 20;

impl Press {
    pub(crate) fn new(level: u8) -> Self {
        let level = CompressionLvl::new(level.min(12).into()).unwrap_or_default();
        Self {
            raw: Vec::new(),
            packed: Vec::new(),
            dense: Compressor::new(level),
            stored: Compressor::new(CompressionLvl::new(0).unwrap_or_default()),
        }
    }

    /// Begins a record. Its fields follow, then [`Press::finish`].
    pub(crate) fn begin(&mut self, kind: &str, id: RecordId) -> &mut Self {
        self.raw.clear();
        self.raw.extend_from_slice(b"WARC/1.1\r\n");
        self.field("WARC-Type", kind).field("WARC-Record-ID", id)
    }

    /// Adds a field. Its value must be free of line ends; see [`one_line`].
    pub(crate) fn field(&mut self, name: &str, value: impl Display) -> &mut Self {
        // Writing to memory does not fail.
        let _ = write!(self.raw, "{name}: {value}\r\n");
        self
    }

    /// Adds the block, given in parts, and appends the record to `out` as one gzip member. Returns the
    /// member's length.
    pub(crate) fn finish(&mut self, block: &[&[u8]], squeeze: Squeeze, out: &mut Vec<u8>) -> u64 {
        let len: usize = block.iter().map(|part| part.len()).sum();
        self.field("Content-Length", len);
        self.raw.extend_from_slice(b"\r\n");
        for part in block {
            self.raw.extend_from_slice(part);
        }
        self.raw.extend_from_slice(b"\r\n\r\n");
        let compressor = match squeeze {
            Squeeze::Dense => &mut self.dense,
            Squeeze::Stored => &mut self.stored,
        };
        let bound = compressor.gzip_compress_bound(self.raw.len());
        if self.packed.len() < bound {
            self.packed.resize(bound, 0);
        }
        // The buffer has the size that the library names as enough, so that this cannot fail.
        let packed = compressor.gzip_compress(&self.raw, &mut self.packed);
        let member = packed.ok().and_then(|len| self.packed.get(..len));
        let member = member.unwrap_or_default();
        out.extend_from_slice(member);
        let length = member.len() as u64;
        for buffer in [&mut self.raw, &mut self.packed] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
        length
    }
}

/// How hard a record is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Squeeze {
    /// With the configured level.
    Dense,
    /// Not at all, inside a gzip member all the same: for bodies that are compressed already and for
    /// small records, where deflate would cost 9 µs to save some 140 bytes.
    Stored,
}

/// A text as the value of a field: control characters, which could end the line, become spaces.
pub(crate) fn one_line(text: &str) -> impl Display {
    fmt::from_fn(move |f| {
        for part in text.split_inclusive(char::is_control) {
            let clean = part.trim_end_matches(char::is_control);
            f.write_str(clean)?;
            if clean.len() < part.len() {
                f.write_str(" ")?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_version_four_and_differ() {
        let mut ids = RecordIds::new();
        let one = ids.next().to_string();
        assert_eq!(one.len(), 47);
        assert_eq!(one.as_bytes()[24], b'4', "{one}");
        assert!(b"89ab".contains(&one.as_bytes()[29]), "{one}");
        assert_ne!(one, ids.next().to_string());
        assert_ne!(one, RecordIds::new().next().to_string());
    }

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(one_line("a\r\nb: c").to_string(), "a  b: c");
        assert_eq!(one_line("plain").to_string(), "plain");
    }
}
