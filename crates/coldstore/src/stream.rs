//! The records of a store as a stream of bytes: blocks with a checksum each, the first of which says what it is of and the
//! last that it is whole. Writing and reading need memory for one block.

use std::io::{Read, Write};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};

/// How every stream begins.
const MAGIC: &[u8; 8] = b"orbwsnap";
/// The version of the bytes.
const VERSION: u8 = 1;

/// A block that has so many bytes is written. Large enough that its head is nothing, small enough to be held twice.
const FULL: usize = 256 << 10;
/// No block is larger: a full one with one more record, of which the largest has less than a megabyte.
const MAX_BLOCK: u32 = 64 << 20;

/// What the first byte of a block says.
const HEAD: u8 = 0;
const ROWS: u8 = 1;
const END: u8 = 2;

fn refused(why: impl ToString) -> Error {
    Error::Stream(why.to_string())
}

/// A stream that is being written.
pub struct Outgoing<'a> {
    to: &'a mut dyn Write,
    /// Blocks written: the number of the next.
    number: u64,
    keyspace: u8,
    /// The block that is being filled; bounded by `FULL` and one record.
    block: Vec<u8>,
    rows: u64,
}

impl<'a> Outgoing<'a> {
    /// Begins with bytes that say what the records are of.
    pub fn begin(to: &'a mut dyn Write, head: &[u8]) -> Result<Self> {
        to.write_all(MAGIC).map_err(refused)?;
        to.write_all(&[VERSION]).map_err(refused)?;
        let mut out = Self {
            to,
            number: 0,
            keyspace: 0,
            block: Vec::with_capacity(FULL + (64 << 10)),
            rows: 0,
        };
        out.block.push(HEAD);
        out.block.extend_from_slice(head);
        out.write()?;
        Ok(out)
    }

    /// The rows that follow are of this keyspace.
    pub fn keyspace(&mut self, place: usize) {
        self.keyspace = u8::try_from(place).unwrap_or(u8::MAX);
    }

    /// Adds a record. Keys of a keyspace come in their order.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.block.get(1).is_some_and(|of| *of != self.keyspace) || self.block.len() >= FULL {
            self.write()?;
        }
        if self.block.is_empty() {
            self.block.extend([ROWS, self.keyspace]);
        }
        for part in [key, value] {
            let length = u32::try_from(part.len()).map_err(refused)?;
            self.block.extend(length.to_le_bytes());
        }
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        self.rows += 1;
        Ok(())
    }

    /// Says that this was all.
    pub fn end(mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.write()?;
        }
        self.block.push(END);
        self.block.extend(self.rows.to_le_bytes());
        self.write()?;
        self.to.flush().map_err(refused)
    }

    fn write(&mut self) -> Result<()> {
        let length = u32::try_from(self.block.len()).map_err(refused)?;
        let sum = xxh3_64_with_seed(&self.block, self.number);
        self.to.write_all(&length.to_le_bytes()).map_err(refused)?;
        self.to.write_all(&sum.to_le_bytes()).map_err(refused)?;
        self.to.write_all(&self.block).map_err(refused)?;
        self.number += 1;
        self.block.clear();
        Ok(())
    }
}

/// What comes next in a stream.
pub enum Block {
    /// A record: the place of its keyspace, key and value.
    Row(usize, Vec<u8>, Vec<u8>),
    /// Everything has come.
    End,
}

/// A stream that is being read.
pub struct Incoming<'a> {
    from: &'a mut dyn Read,
    /// Blocks read.
    number: u64,
    /// The block of which rows are taken, and how much of it has been.
    block: Vec<u8>,
    at: usize,
    /// The last row, after which every other comes: keyspace and key.
    last: Option<(u8, Vec<u8>)>,
    rows: u64,
}

impl<'a> Incoming<'a> {
    /// Begins, with the bytes that say what the records are of.
    pub fn begin(from: &'a mut dyn Read) -> Result<(Vec<u8>, Self)> {
        let mut mark = [0; 9];
        from.read_exact(&mut mark).map_err(refused)?;
        match mark.split_last() {
            Some((&VERSION, magic)) if magic == MAGIC => {}
            Some((version, magic)) if magic == MAGIC => {
                let why = format!("it is of version {version}, this program reads {VERSION}");
                return Err(refused(why));
            }
            _ => return Err(refused("it is not a snapshot")),
        }
        let mut blocks = Self {
            from,
            number: 0,
            block: Vec::new(),
            at: 0,
            last: None,
            rows: 0,
        };
        blocks.read()?;
        let Some((&HEAD, head)) = blocks.block.split_first() else {
            return Err(refused("it has no header"));
        };
        let head = head.to_vec();
        blocks.at = blocks.block.len();
        Ok((head, blocks))
    }

    /// The next record, or the end.
    pub fn read_on(&mut self) -> Result<Block> {
        if self.at >= self.block.len() {
            self.read()?;
            match self.block.get(..2) {
                Some([ROWS, _]) => self.at = 2,
                Some([END, ..]) => return self.end(),
                _ => return Err(refused("a block of it is of no known kind")),
            }
        }
        self.row()
            .ok_or_else(|| refused("a record of it is cut short, or not in its order"))
    }

    fn row(&mut self) -> Option<Block> {
        let keyspace = *self.block.get(1)?;
        let mut rest = self.block.get(self.at..)?;
        let [key, value] = [take_length(&mut rest)?, take_length(&mut rest)?];
        let (key, rest) = rest.split_at_checked(key)?;
        let (value, rest) = rest.split_at_checked(value)?;
        let last = self.last.as_ref().map(|(of, key)| (*of, key.as_slice()));
        if last.is_some_and(|last| last >= (keyspace, key)) {
            return None;
        }
        let row = Block::Row(usize::from(keyspace), key.to_vec(), value.to_vec());
        self.last = Some((keyspace, key.to_vec()));
        self.at = self.block.len() - rest.len();
        self.rows += 1;
        Some(row)
    }

    fn end(&mut self) -> Result<Block> {
        let said = self.block.get(1..).and_then(|rows| rows.try_into().ok());
        if said.map(u64::from_le_bytes) != Some(self.rows) {
            return Err(refused("records of it are missing"));
        }
        let mut more = [0];
        match self.from.read(&mut more).map_err(refused)? {
            0 => Ok(Block::End),
            _ => Err(refused("bytes follow its end")),
        }
    }

    fn read(&mut self) -> Result<()> {
        let mut head = [0; 12];
        self.from.read_exact(&mut head).map_err(refused)?;
        let [l0, l1, l2, l3, sum @ ..] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length > MAX_BLOCK {
            return Err(refused("a block of it is too long"));
        }
        self.block.clear();
        // A length that is damaged costs no memory beyond what the stream has.
        let mut exactly = Read::take(&mut *self.from, length.into());
        exactly.read_to_end(&mut self.block).map_err(refused)?;
        if self.block.len() as u64 != u64::from(length) {
            return Err(refused("it is cut short"));
        }
        if xxh3_64_with_seed(&self.block, self.number) != u64::from_le_bytes(sum) {
            return Err(refused(format!(
                "the checksum of block {} is wrong",
                self.number
            )));
        }
        self.number += 1;
        self.at = 0;
        Ok(())
    }
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}
