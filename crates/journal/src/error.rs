//! What can go wrong with a journal, and what the operator can do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failure of a journal.
#[derive(Debug, Error)]
pub enum Error {
    /// The disk failed or is full: nothing that was synced is lost, and the same call can be made again.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A segment does not hold what was written: run the check on the directory and restore the file if it can be.
    #[error("{} is damaged at byte {offset}: {what}; `orbweaver check` lists all damage", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where its good part ends.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The directory holds a journal of something else, or of another version: look at what wrote it.
    #[error("{} is not a journal of this kind and version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A payload is longer than the journal allows; it was not appended.
    #[error("an entry of {len} bytes is longer than {max}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The longest that is allowed.
        max: usize,
    },
    /// A follower has a name that cannot be the name of a file: use letters, digits, `-` and `_`, at most 64.
    #[error("`{name}` cannot be the name of a follower: use letters, digits, - and _")]
    Name {
        /// The name.
        name: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        Self::Io {
            doing,
            path,
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> Self {
        let path = path.to_path_buf();
        Self::Damaged { path, offset, what }
    }
}
