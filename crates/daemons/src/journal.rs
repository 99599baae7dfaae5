//! The store's journal of results: one entry for each record that was taken, in order, durable before the
//! record is answered. From it the doc index learns what became of each URL.
//!
//! Files `results/NNNNNN.log`, each with sixteen bytes of head (a mark and the number of its first entry)
//! and then entries: length, checksum, payload. `docs/formats/results.md` has the layout. A torn end is
//! cut when the journal is opened; whole files are removed when the follower has folded them. Who decides
//! what is entered, and who waits for it, is in `store`.

mod audit;
mod entry;
mod reader;
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use audit::audit;
pub(crate) use entry::{Entry, Location, Standing};
pub(crate) use reader::Cursor;
pub(crate) use writer::{ROTATE, Writer};

/// What a file begins with; the digit is the format's version.
pub(crate) const MARK: [u8; 8] = *b"OWRSLT1\n";

/// Bytes before the first entry of a file.
pub(crate) const HEAD_LEN: u64 = 16;

/// Files that are kept although they are folded: what was answered lately is recognised by them after a
/// restart.
const KEEP: usize = 2;

/// The files of a journal, oldest first; shared by the one who writes and those who read.
#[derive(Clone, Debug)]
pub struct Shelf {
    dir: PathBuf,
    files: Arc<Mutex<Vec<Volume>>>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) serial: u32,
    /// The number of its first entry.
    pub(crate) first: u64,
}

impl Shelf {
    /// Where the journal of a store's directory is.
    pub fn dir(dir: &Path) -> PathBuf {
        dir.join("results")
    }

    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            files: Arc::default(),
        }
    }

    pub(crate) fn path(&self, serial: u32) -> PathBuf {
        self.dir.join(format!("{serial:06}.log"))
    }

    #[cfg(test)]
    fn volumes(&self) -> Vec<Volume> {
        self.lock().clone()
    }

    pub(crate) fn add(&self, volume: Volume) {
        self.lock().push(volume);
    }

    /// The file that has this entry, or will have it; the oldest when the entry is gone.
    pub(crate) fn holding(&self, position: u64) -> Option<Volume> {
        let files = self.lock();
        let at = files.iter().rev().find(|volume| volume.first <= position);
        at.or(files.first()).cloned()
    }

    /// Removes the files whose entries are all folded, except the last ones. Says how many.
    pub(crate) fn forget(&self, folded: u64) -> io::Result<usize> {
        let mut removed = 0;
        loop {
            let oldest = {
                let files = self.lock();
                match files.as_slice() {
                    [oldest, next, ..] if files.len() > KEEP && next.first <= folded + 1 => {
                        oldest.clone()
                    }
                    _ => return Ok(removed),
                }
            };
            match fs::remove_file(self.path(oldest.serial)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.lock().retain(|volume| *volume != oldest);
            removed += 1;
        }
    }

    /// The serial numbers of the files that lie there, in order.
    pub(crate) fn serials(dir: &Path) -> io::Result<Vec<u32>> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut serials = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let serial = name.to_str().and_then(|name| name.strip_suffix(".log"));
            serials.extend(serial.and_then(|serial| serial.parse::<u32>().ok()));
        }
        serials.sort_unstable();
        Ok(serials)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Volume>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
