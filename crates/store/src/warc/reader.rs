//! Reading WARC files, compressed member by member or not at all, with bounded memory.
//!
//! Nothing in a file is trusted: heads have a largest size, blocks are streamed, and damage is an error
//! that names its place. What records mean to each other is `group`'s business.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use crate::error::StoreError;
use crate::files::Layout;

/// Bytes of a record's head that are read; two URLs of the longest kind fit several times.
const MAX_HEAD: usize = 256 << 10;

/// The head of a record and where the record lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordHead {
    /// Where the record begins in the file.
    pub offset: u64,
    /// The named fields, in their order.
    pub fields: Vec<(String, String)>,
    /// Content-Length: bytes of the block.
    pub block_len: u64,
}

impl RecordHead {
    /// The first value of a field; names are compared without regard to case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let named = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        self.fields.iter().find(named).map(|field| field.1.as_str())
    }

    /// WARC-Type; empty when it is missing.
    pub fn kind(&self) -> &str {
        self.field("WARC-Type").unwrap_or_default()
    }
}

/// A record with its whole block in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its head.
    pub head: RecordHead,
    /// Its block.
    pub block: Vec<u8>,
    /// Where it ends in the file.
    pub end: u64,
}

/// The records of a WARC file, one after another.
///
/// [`Records::next_head`] goes to the next record; its block can then be read with [`Records::read`] and is
/// skipped, and verified, otherwise.
pub struct Records {
    path: PathBuf,
    state: State,
    /// Where the current record begins.
    offset: u64,
    /// Bytes of its block that were not read yet.
    left: u64,
    /// Bytes unpacked at once.
    unpacked: usize,
}

enum State {
    /// Before a record.
    Between(Counted),
    /// Inside a gzip member.
    Member(Box<BufReader<GzDecoder<Counted>>>),
    /// Inside a record that is not compressed.
    Plain(Counted),
    /// After damage: what follows cannot be told apart any more.
    Lost,
}

/// A buffered file that knows how far it has been read.
struct Counted {
    file: BufReader<File>,
    at: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount as u64;
        self.file.consume(amount);
    }
}

impl Records {
    /// Opens a file at its first record.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_at(path, 0)
    }

    /// Opens a file at the record that begins at `offset`.
    pub fn open_at(path: &Path, offset: u64) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(|e| StoreError::io("open", path, e))?;
        Self::from_file(path, file, offset, 64 << 10)
    }

    pub(crate) fn from_file(
        path: &Path,
        mut file: File,
        offset: u64,
        buffer: usize,
    ) -> Result<Self, StoreError> {
        file.seek(SeekFrom::Start(offset))
            .map_err(|e| StoreError::io("read", path, e))?;
        Ok(Self {
            path: path.to_path_buf(),
            state: State::Between(Counted {
                file: BufReader::with_capacity(buffer, file),
                at: offset,
            }),
            offset,
            left: 0,
            // A quarter of what is read at once, for text shrinks to about that.
            unpacked: buffer / 4,
        })
    }

    /// The head of the next record; none at the end of the file. What is left of the current record is
    /// read first, so that its damage is found here.
    pub fn next_head(&mut self) -> Result<Option<RecordHead>, StoreError> {
        self.finish()?;
        let State::Between(input) = &mut self.state else {
            return Ok(None);
        };
        self.offset = input.at;
        let start = match input.fill_buf() {
            Ok(start) => start,
            Err(e) => return Err(StoreError::io("read", &self.path, e)),
        };
        let compressed = match start.first() {
            None => return Ok(None),
            Some(byte) => *byte == 0x1f,
        };
        if let State::Between(input) = std::mem::replace(&mut self.state, State::Lost) {
            self.state = if compressed {
                State::Member(Box::new(BufReader::with_capacity(
                    self.unpacked,
                    GzDecoder::new(input),
                )))
            } else {
                State::Plain(input)
            };
        }
        let head = self.parse_head()?;
        self.left = head.block_len;
        Ok(Some(head))
    }

    /// Reads on in the block of the current record; 0 at its end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, StoreError> {
        let want = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if want == 0 {
            return Ok(0);
        }
        let buffer = buffer.get_mut(..want).unwrap_or_default();
        let read = match self.raw_read(buffer) {
            Ok(0) => return Err(self.damage("the record ends before its Content-Length")),
            Ok(read) => read,
            Err(e) => return Err(self.unreadable(e)),
        };
        self.left -= read as u64;
        Ok(read)
    }

    /// The whole block of the current record, when it has at most `max` bytes.
    pub fn read_block(&mut self, max: u64) -> Result<Vec<u8>, StoreError> {
        if self.left > max {
            let what = format!("a block of {} bytes, more than is read at once", self.left);
            return Err(StoreError::damaged(&self.path, self.offset, what));
        }
        self.read_up_to(max)
    }

    /// The block of the current record up to `max` bytes.
    pub(crate) fn read_up_to(&mut self, max: u64) -> Result<Vec<u8>, StoreError> {
        let mut block = Vec::new();
        let mut buffer = [0; 16 << 10];
        loop {
            let room = max.saturating_sub(block.len() as u64);
            let room = usize::try_from(room)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let read = self.read(buffer.get_mut(..room).unwrap_or_default())?;
            if read == 0 {
                return Ok(block);
            }
            block.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
    }

    /// Reads to the end of the current record, verifies how it ends, and returns where.
    pub fn finish(&mut self) -> Result<u64, StoreError> {
        if let State::Between(input) = &self.state {
            return Ok(input.at);
        }
        let mut buffer = [0; 16 << 10];
        while self.read(&mut buffer)? > 0 {}
        let mut end = [0; 4];
        let mut filled = 0;
        while let Some(rest) = end.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.raw_read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) => return Err(self.unreadable(e)),
            }
        }
        if end != *b"\r\n\r\n" {
            return Err(self.damage("the record does not end with two line ends"));
        }
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Member(mut decoder) => {
                // The CRC is verified when the end of the member is read. The buffer is empty then.
                match decoder.read(&mut [0]) {
                    Ok(0) => self.state = State::Between(decoder.into_inner().into_inner()),
                    Ok(_) => return Err(self.damage("more than one record in a gzip member")),
                    Err(e) => return Err(self.unreadable(e)),
                }
            }
            State::Plain(input) => self.state = State::Between(input),
            State::Between(_) | State::Lost => {}
        }
        match &self.state {
            State::Between(input) => Ok(input.at),
            _ => Err(self.damage("the record cannot be read")),
        }
    }

    /// The file being read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn parse_head(&mut self) -> Result<RecordHead, StoreError> {
        let mut total = 0;
        let version = self.line(&mut total)?;
        if !version.starts_with("WARC/1.") {
            return Err(self.damage("not a WARC record"));
        }
        let mut fields: Vec<(String, String)> = Vec::with_capacity(12);
        loop {
            let line = self.line(&mut total)?;
            if line.is_empty() {
                break;
            }
            if line.starts_with([' ', '\t']) {
                if let Some(last) = fields.last_mut() {
                    last.1.push(' ');
                    last.1.push_str(line.trim());
                }
                continue;
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(self.damage("a line of the record's head has no colon"));
            };
            fields.push((name.trim_end().to_owned(), value.trim().to_owned()));
        }
        let mut head = RecordHead {
            offset: self.offset,
            fields,
            block_len: 0,
        };
        let length = head
            .field("Content-Length")
            .and_then(|text| text.parse().ok());
        head.block_len = length.ok_or_else(|| self.damage("no usable Content-Length"))?;
        Ok(head)
    }

    /// One line of a head without its line end.
    fn line(&mut self, total: &mut usize) -> Result<String, StoreError> {
        let mut line = Vec::new();
        let room = (MAX_HEAD - *total) as u64;
        let read = match &mut self.state {
            State::Member(decoder) => decoder.take(room).read_until(b'\n', &mut line),
            State::Plain(input) => input.take(room).read_until(b'\n', &mut line),
            State::Between(_) | State::Lost => Ok(0),
        };
        match read {
            Ok(read) => *total += read,
            Err(e) => return Err(self.unreadable(e)),
        }
        if line.pop() != Some(b'\n') {
            return Err(self.damage("the record's head has no end"));
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map_err(|_| self.damage("the record's head is not UTF-8"))
    }

    fn raw_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.state {
                State::Member(decoder) => decoder.read(buffer),
                State::Plain(input) => input.read(buffer),
                State::Between(_) | State::Lost => Ok(0),
            };
            match read {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Damage to the current record; nothing after it is read.
    fn damage(&mut self, what: &str) -> StoreError {
        self.state = State::Lost;
        StoreError::damaged(&self.path, self.offset, what)
    }

    /// A failed read: the decoder's complaints are damage, all others are the disk's.
    fn unreadable(&mut self, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::UnexpectedEof => {
                self.damage(&format!("the gzip member is broken: {error}"))
            }
            _ => {
                self.state = State::Lost;
                StoreError::io("read", &self.path, error)
            }
        }
    }
}

/// The record that begins at `offset`, when its block has at most `max` bytes.
pub fn read_at(path: &Path, offset: u64, max: u64) -> Result<StoredRecord, StoreError> {
    let mut records = Records::open_at(path, offset)?;
    read_next(&mut records, max)?
        .ok_or_else(|| StoreError::damaged(path, offset, "the file ends before this place"))
}

/// The next record with its block.
pub(crate) fn read_next(
    records: &mut Records,
    max: u64,
) -> Result<Option<StoredRecord>, StoreError> {
    let Some(head) = records.next_head()? else {
        return Ok(None);
    };
    let block = records.read_block(max)?;
    let end = records.finish()?;
    Ok(Some(StoredRecord { head, block, end }))
}

/// The next record with the first `max` bytes of its block; the rest is read and verified.
pub(crate) fn read_beginning(
    records: &mut Records,
    max: u64,
) -> Result<Option<StoredRecord>, StoreError> {
    let Some(head) = records.next_head()? else {
        return Ok(None);
    };
    let block = records.read_up_to(max)?;
    let end = records.finish()?;
    Ok(Some(StoredRecord { head, block, end }))
}

/// The head of one record of a file of this name, finished or open.
pub(crate) fn read_head_in(
    layout: &Layout,
    file: &str,
    offset: u64,
) -> Result<RecordHead, StoreError> {
    let (path, handle) = layout.open_warc(file)?;
    // A head and the beginning of a body fit in 4 KiB; more would be read for nothing.
    let mut records = Records::from_file(&path, handle, offset, 4 << 10)?;
    let head = records.next_head()?;
    head.ok_or_else(|| StoreError::damaged(&path, offset, "the file ends before this place"))
}
