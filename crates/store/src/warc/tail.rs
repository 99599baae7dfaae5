//! The growing end of a file: what was synced, what was written, what waits.
//!
//! Bytes stay in memory until a sync has succeeded. A failed sync may have dropped dirty pages, after
//! which a second sync succeeds without having written anything; so after a failure the file is cut back
//! to what was synced and the rest is written again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::warc::bulk::FileReader;

/// What a tail writes to: a file, or a test double that runs out of space.
pub(crate) trait Medium: Send {
    /// Appends some of the bytes and says how many.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes everything appended durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Makes the file this long.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl Medium for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Makes a new file to append to.
pub(crate) type Opener = Box<dyn FnMut(&Path) -> io::Result<Box<dyn Medium>> + Send>;

/// The opener of real files. Append mode makes a cut file go on at its new end.
pub(crate) fn create(path: &Path) -> io::Result<Box<dyn Medium>> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?;
    Ok(Box::new(file))
}

/// What the buffer may keep after a sync.
const KEEP: usize = 4 << 20;

/// A file that only grows, by pieces that are either whole or not there.
pub(crate) struct Tail {
    path: PathBuf,
    medium: Box<dyn Medium>,
    /// Bytes that are durable.
    synced: u64,
    /// Bytes after those, written or not.
    unsynced: Vec<u8>,
    /// How many of the unsynced bytes are known to be in the file; always whole pieces.
    written: usize,
    /// The file may hold more than `synced + written` bytes and could not be cut yet.
    torn: bool,
}

impl Tail {
    pub(crate) fn create(path: PathBuf, opener: &mut Opener) -> Result<Self, StoreError> {
        let medium = opener(&path).map_err(|e| StoreError::io("create", &path, e))?;
        Ok(Self {
            path,
            medium,
            synced: 0,
            unsynced: Vec::new(),
            written: 0,
            torn: false,
        })
    }

    /// How long the file is when everything is written.
    pub(crate) fn len(&self) -> u64 {
        self.synced + self.unsynced.len() as u64
    }

    /// Adds to a piece; the next [`Tail::flush`] ends it.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.unsynced.extend_from_slice(bytes);
    }

    /// Copies the first `len` bytes of a file to the end and makes everything durable. After a failure
    /// the file ends where it did before.
    pub(crate) fn append_file(&mut self, source: &File, len: u64) -> Result<(), StoreError> {
        self.sync()?;
        let copied = copy(self.medium.as_mut(), source, len);
        if let Err(e) = copied.and_then(|()| self.medium.sync()) {
            self.torn = true;
            // If even this fails it is tried again before the next write.
            let _ = self.cut_back();
            return Err(StoreError::io("write", &self.path, e));
        }
        self.synced += len;
        Ok(())
    }

    /// Bytes that are not durable yet.
    pub(crate) fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    /// Hands everything to the operating system. After a failure the file ends with the last whole piece
    /// and the same call can be made again.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        if self.torn {
            self.cut_back()?;
        }
        let mut at = self.written;
        while let Some(rest) = self.unsynced.get(at..).filter(|rest| !rest.is_empty()) {
            let failed = match self.medium.append(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(wrote) => {
                    at += wrote;
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            self.torn = true;
            // If even this fails it is tried again before the next write.
            let _ = self.cut_back();
            return Err(StoreError::io("write", &self.path, failed));
        }
        self.written = at;
        Ok(())
    }

    /// Makes everything durable.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        if self.unsynced.is_empty() {
            return Ok(());
        }
        if let Err(e) = self.medium.sync() {
            self.written = 0;
            self.torn = true;
            let _ = self.cut_back();
            return Err(StoreError::io("sync", &self.path, e));
        }
        self.synced += self.unsynced.len() as u64;
        self.written = 0;
        self.unsynced.clear();
        self.unsynced.shrink_to(KEEP);
        Ok(())
    }

    fn cut_back(&mut self) -> Result<(), StoreError> {
        self.medium
            .cut(self.synced + self.written as u64)
            .map_err(|e| StoreError::io("cut", &self.path, e))?;
        self.torn = false;
        Ok(())
    }
}

fn copy(medium: &mut dyn Medium, source: &File, len: u64) -> io::Result<()> {
    let mut source = FileReader::new(source, len);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let mut rest = buffer.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            match medium.append(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(wrote) => rest = rest.get(wrote..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}
