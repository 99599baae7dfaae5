//! How one record becomes bytes: its header, its block, one gzip member.

use std::fmt::{self, Display};
use std::io::Write as _;

use libdeflater::{CompressionLvl, Compressor};
use uuid::Uuid;

/// A record identifier, `urn:uuid:` version 4, as it is written: each stands in up to three records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordId([u8; 47]);

impl RecordId {
    /// One that nobody has made before, and nobody can guess.
    pub(crate) fn new() -> Self {
        Self::of(&Uuid::new_v4())
    }

    fn of(id: &Uuid) -> Self {
        let mut text = [b' '; 47];
        let [open, urn @ .., close] = &mut text;
        (*open, *close) = (b'<', b'>');
        id.urn().encode_lower(urn);
        Self(text)
    }

    /// As it is written.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
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
pub(crate) const KEEP: usize = 1 << 20;

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
        self.text("WARC-Type", kind)
            .text("WARC-Record-ID", id.as_str())
    }

    /// Adds fields that are written already, each with its line end.
    pub(crate) fn lines(&mut self, fields: &str) -> &mut Self {
        self.raw.extend_from_slice(fields.as_bytes());
        self
    }

    /// Adds a field whose value is at hand. It must be free of line ends; see [`one_line`].
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        for part in [name, ": ", value, "\r\n"] {
            self.raw.extend_from_slice(part.as_bytes());
        }
        self
    }

    /// Adds a field whose value is to be written out, free of line ends as well.
    pub(crate) fn field(&mut self, name: &str, value: impl Display) -> &mut Self {
        // Writing to memory does not fail.
        let _ = write!(self.raw, "{name}: {value}\r\n");
        self
    }

    /// Ends the head of a record whose block of `len` bytes comes from elsewhere, and gives it out.
    pub(crate) fn finish_head(&mut self, len: u64) -> &[u8] {
        self.field("Content-Length", len);
        self.raw.extend_from_slice(b"\r\n");
        &self.raw
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
        // Nearly all texts are clean, and a look at their bytes shows it.
        if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
            return f.write_str(text);
        }
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
        let one = RecordId::new();
        let text = one.as_str();
        assert_eq!(text.len(), 47);
        assert_eq!(text.as_bytes()[24], b'4', "{text}");
        assert!(b"89ab".contains(&text.as_bytes()[29]), "{text}");
        assert_ne!(one, RecordId::new());
        let known = Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd);
        assert_eq!(
            RecordId::of(&known).as_str(),
            "<urn:uuid:01234567-89ab-4cde-8f01-23456789abcd>"
        );
    }

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(one_line("a\r\nb: c").to_string(), "a  b: c");
        assert_eq!(one_line("plain").to_string(), "plain");
        assert_eq!(one_line("\u{fc}\u{85}x").to_string(), "\u{fc} x");
    }
}
