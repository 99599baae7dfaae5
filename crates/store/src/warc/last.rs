//! The record that ends a group and names its place.

use crate::digest::Digest;
use crate::warc::render::{Press, RecordId, Squeeze};

/// The metadata record of a group, all but the place of the group.
#[derive(Debug)]
pub(crate) struct Last {
    /// The fields that all records of the group have.
    pub(crate) shared: String,
    /// The block, up to where it depends on the place.
    pub(crate) fields: String,
    /// Identifier of the response or revisit.
    pub(crate) main: RecordId,
    pub(crate) id: RecordId,
}

impl Last {
    /// Appends the record to `out`. It says where the group begins, and in which file, by the identifier of
    /// the file's first record: random, and known to nobody who could put bytes into a body. That is what
    /// recovery goes by after damage, when it looks for the next group that was really written there.
    pub(crate) fn render(&self, press: &mut Press, file: RecordId, offset: u64, out: &mut Vec<u8>) {
        let block = format!("{}{OFFSET}: {offset}\r\n", self.fields);
        press
            .begin("metadata", self.id)
            .lines(&self.shared)
            .text("Content-Type", "application/warc-fields")
            .text("WARC-Concurrent-To", self.main.as_str())
            .text(WARCINFO_ID, file.as_str())
            .text(
                "WARC-Block-Digest",
                &Digest::of(block.as_bytes()).labelled(),
            )
            .finish(&[block.as_bytes()], Squeeze::Stored, out);
    }

    /// Bytes that it takes, about.
    pub(crate) fn size(&self) -> usize {
        // What the rest of the record and its gzip member take, about.
        self.shared.len() + self.fields.len() + 384
    }
}

/// The field of a metadata record that names the first record of its file (WARC 1.1, section 5.11).
pub(crate) const WARCINFO_ID: &str = "WARC-Warcinfo-ID";

/// The field in the block of a metadata record that says where its group begins.
pub(crate) const OFFSET: &str = "offset";
