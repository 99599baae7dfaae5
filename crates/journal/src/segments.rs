//! The segment files of one journal, oldest first: shared by the one who writes and those who read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Options;
use crate::error::Error;

/// What the name of a segment ends in.
const SUFFIX: &str = ".log";

/// The segments of a journal. Cheap to clone; all clones see the same list.
#[derive(Clone, Debug)]
pub struct Segments {
    dir: Arc<Path>,
    pub(crate) options: Arc<Options>,
    /// The position of the first entry of each segment, ascending. Filled by the writer, emptied by `forget`.
    firsts: Arc<Mutex<Vec<u64>>>,
}

impl Segments {
    pub(crate) fn new(dir: &Path, options: Options) -> Self {
        Self {
            dir: dir.into(),
            options: Arc::new(options),
            firsts: Arc::default(),
        }
    }

    /// A segment is named by the position of its first entry, so that its place is known even when its head is not.
    pub(crate) fn path(&self, first: u64) -> PathBuf {
        self.dir.join(name(first))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn add(&self, first: u64) {
        let mut firsts = self.lock();
        if firsts.last().is_none_or(|last| *last < first) {
            firsts.push(first);
        }
    }

    pub(crate) fn remove(&self, first: u64) {
        self.lock().retain(|it| *it != first);
    }

    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// The position of the oldest entry that is left, or of the first to come.
    pub fn first(&self) -> u64 {
        self.lock().first().copied().unwrap_or(1)
    }

    /// The segment that has this entry, or will have it; the oldest when the entry was forgotten.
    pub(crate) fn holding(&self, position: u64) -> Option<u64> {
        let firsts = self.lock();
        let at = firsts.iter().rev().find(|first| **first <= position);
        at.or(firsts.first()).copied()
    }

    /// Removes the segments whose entries are all at or below `position`, except the last `keep`. Says how many.
    pub fn forget(&self, position: u64, keep: usize) -> Result<usize, Error> {
        let mut removed = 0;
        loop {
            let oldest = {
                let firsts = self.lock();
                match firsts.as_slice() {
                    [oldest, next, ..]
                        if firsts.len() > keep.max(1) && *next <= position.saturating_add(1) =>
                    {
                        *oldest
                    }
                    _ => return Ok(removed),
                }
            };
            remove_file(&self.path(oldest))?;
            self.remove(oldest);
            removed += 1;
        }
    }

    /// The first positions of the segments that lie in a directory, ascending; none when there is no directory.
    pub(crate) fn listed(dir: &Path) -> Result<Vec<u64>, Error> {
        let failed = |e| Error::io("list", dir, e);
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut firsts = Vec::new();
        for entry in entries {
            let file = entry.map_err(failed)?.file_name();
            let first = file.to_str().and_then(|it| it.strip_suffix(SUFFIX));
            let first = first.and_then(|first| first.parse::<u64>().ok());
            // Only what has exactly the name that it is given here.
            firsts.extend(first.filter(|first| file.to_str() == Some(name(*first).as_str())));
        }
        firsts.sort_unstable();
        Ok(firsts)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.firsts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the segment that begins with this position.
pub(crate) fn name(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// Removes a file that may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Makes creations and removals in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), Error> {
    let synced = File::open(dir).and_then(|handle| handle.sync_all());
    synced.map_err(|e| Error::io("sync", dir, e))
}
