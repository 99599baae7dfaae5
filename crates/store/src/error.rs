//! What can go wrong in the store, and what the operator can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

/// A failure of the store. It can be cloned because one failed sync concerns many exchanges.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The disk is full: free some space; nothing acknowledged is lost and writing goes on by itself.
    #[error("no space left for {}; free some space, then the crawl resumes", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The directory cannot be written: remount it or correct its permissions.
    #[error("{} cannot be written: {source}; make it writable", path.display())]
    NotWritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The disk failed: look at the system log; nothing acknowledged depends on this operation.
    #[error("cannot {doing} {}: {source}; check the disk", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A file does not hold what it should: run the check on the directory, restore the file if it can be.
    #[error("{} is damaged at byte {offset}: {what}; `orbweaver check` lists all damage", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The results are in a form of another version: let that version finish with them, or move the directory away.
    #[error(
        "{} is of another version of the results; let the version that wrote it deliver them, then remove its directory",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// The store was told to stop before it could write this: the exchange is not stored, fetch it again.
    #[error("the store stopped before this was written; it will be fetched again")]
    Stopped,
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                let source = Arc::new(source);
                Self::NotWritable { path, source }
            }
            _ => {
                let source = Arc::new(source);
                Self::Io {
                    doing,
                    path,
                    source,
                }
            }
        }
    }

    /// True when a file does not hold what it should, or is not there. Trying again does not help then.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            offset,
            what: what.into(),
        }
    }
}
