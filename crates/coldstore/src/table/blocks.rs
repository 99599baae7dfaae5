//! The records of a table file in the order in which they lie there, past whatever is damaged.
//!
//! A table begins with its data blocks, one after another, and ends with what leads to them. Each block has a
//! head with a checksum of its own, so that a reader who has lost his way finds the next one without any guide:
//! a file that is cut short or whose index is gone still gives every block that is whole.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::vec;

use lsm_tree::coding::Decode;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, DataBlock};
use lsm_tree::{InternalValue, Slice};
use xxhash_rust::xxh3::xxh3_128;

use super::TableFile;
use crate::damage::hex;

/// How every block begins.
const MAGIC: [u8; 4] = [b'L', b'S', b'M', 3];
/// No block is larger; those of ours have some kilobytes.
const MAX_BLOCK: u32 = 64 << 20;
/// Bytes that are looked through at once for the beginning of a block.
const WINDOW: usize = 64 << 10;

/// Goes through a table file.
pub(crate) struct Blocks {
    table: Arc<TableFile>,
    file: Option<File>,
    length: u64,
    /// Where the next block should begin.
    at: u64,
    /// The records of the block before that.
    records: vec::IntoIter<InternalValue>,
    last: Option<Slice>,
    /// Where a place begins that could not be read, and why.
    hole: Option<(u64, String)>,
    /// All data blocks have been passed.
    behind: bool,
}

impl Blocks {
    pub(crate) fn of(table: Arc<TableFile>) -> Self {
        let file = File::open(&table.path);
        let length = file.as_ref().map(|file| file.metadata().map(|m| m.len()));
        let (length, hole) = match length {
            Ok(Ok(length)) => (length, None),
            Ok(Err(error)) => (0, Some((0, error.to_string()))),
            Err(error) => (0, Some((0, error.to_string()))),
        };
        Self {
            table,
            file: file.ok(),
            length,
            at: 0,
            records: Vec::new().into_iter(),
            last: None,
            hole,
            behind: false,
        }
    }

    /// Reads the next data block; false at the end.
    fn advance(&mut self) -> bool {
        loop {
            let place = self.at;
            let found = match &self.file {
                Some(file) if place < self.length => read(file, place, self.length),
                _ => {
                    self.end_hole(None);
                    return false;
                }
            };
            match found {
                Ok((block, size)) => {
                    self.at += size;
                    match block.header.block_type {
                        BlockType::Data => match records(block) {
                            Some(records) => {
                                self.end_hole(records.first());
                                self.last = records.last().map(|item| item.key.user_key.clone());
                                self.records = records.into_iter();
                                return true;
                            }
                            None => self.begin_hole(place, "it holds no records"),
                        },
                        BlockType::Meta => {
                            // The last of all; a directory follows.
                            self.behind = true;
                            self.at = self.length;
                        }
                        BlockType::Index | BlockType::Filter => self.behind = true,
                    }
                }
                Err(why) => {
                    self.begin_hole(place, &why);
                    let file = self.file.as_ref();
                    let next = file.map(|file| next_head(file, place + 1, self.length));
                    self.at = next.unwrap_or(self.length);
                }
            }
        }
    }

    fn begin_hole(&mut self, place: u64, why: &str) {
        self.hole.get_or_insert_with(|| (place, why.to_owned()));
    }

    /// Names a place that could not be read, now that it is known what comes behind it.
    fn end_hole(&mut self, next: Option<&InternalValue>) {
        let Some((place, why)) = self.hole.take() else {
            return;
        };
        let next = next.map(|item| &item.key.user_key);
        let lost = match (&self.last, next) {
            _ if self.behind => "its index block; all records can be read".into(),
            (None, None) => "all its records".into(),
            (Some(after), None) => format!("the records after key {}", hex(after)),
            (None, Some(before)) => format!("the records before key {}", hex(before)),
            (Some(after), Some(before)) => {
                format!(
                    "the records between keys {} and {}",
                    hex(after),
                    hex(before)
                )
            }
        };
        let what = format!("cannot be read ({why}): {lost}");
        self.table.damages.note(&self.table.name, Some(place), what);
    }
}

impl Iterator for Blocks {
    type Item = InternalValue;

    fn next(&mut self) -> Option<InternalValue> {
        loop {
            if let Some(mut item) = self.records.next() {
                item.key.seqno += self.table.global_seqno;
                return Some(item);
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// The block that begins at a place, and how many bytes it has there.
fn read(file: &File, at: u64, length: u64) -> Result<(Block, u64), String> {
    let mut head = vec![0; Header::serialized_len()];
    let broken = |error: std::io::Error| error.to_string();
    file.read_exact_at(&mut head, at).map_err(broken)?;
    let header =
        Header::decode_from(&mut head.as_slice()).map_err(|_| "no block begins here".to_owned())?;
    let size = head.len() as u64 + u64::from(header.data_length);
    if header.data_length > MAX_BLOCK || header.uncompressed_length > MAX_BLOCK {
        return Err("a block too large".into());
    }
    if length - at < size {
        return Err("the file ends within a block".into());
    }
    let mut data = vec![0; header.data_length as usize];
    file.read_exact_at(&mut data, at + head.len() as u64)
        .map_err(broken)?;
    if xxh3_128(&data) != header.checksum.into_u128() {
        return Err("the checksum of a block is wrong".into());
    }
    // Data blocks of deeper levels are compressed. The head does not say so, but the lengths do.
    if header.block_type == BlockType::Data && header.data_length != header.uncompressed_length {
        data = lz4_flex::block::decompress(&data, header.uncompressed_length as usize)
            .map_err(|error| error.to_string())?;
    }
    let data = Slice::from(data);
    Ok((Block { header, data }, size))
}

/// The records of a data block. A block that another program has written under a right checksum may be
/// anything, and the decoder stops the process over such a one.
fn records(block: Block) -> Option<Vec<InternalValue>> {
    let decode = || {
        let block = DataBlock::new(block);
        let bytes = block.as_slice();
        block.iter().map(|item| item.materialize(bytes)).collect()
    };
    panic::catch_unwind(AssertUnwindSafe(decode)).ok()
}

/// The next place where a block may begin; the end of the file when there is none.
fn next_head(file: &File, from: u64, length: u64) -> u64 {
    let mut window = vec![0; WINDOW];
    let mut at = from;
    while at < length {
        let read = match file.read_at(&mut window, at) {
            Ok(0) => return length,
            Ok(read) => read,
            // A bad sector has four kilobytes.
            Err(_) => {
                at = (at / 4096 + 1) * 4096;
                continue;
            }
        };
        let bytes = window.get(..read).unwrap_or_default();
        let found = bytes.windows(MAGIC.len()).position(|four| four == MAGIC);
        if let Some(found) = found {
            return at + found as u64;
        }
        // What may be the beginning of a head at the edge is looked at again.
        at += (read.saturating_sub(MAGIC.len() - 1)).max(1) as u64;
    }
    length
}
