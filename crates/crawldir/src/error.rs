//! Errors: why a crawl directory cannot be used.

use std::io::ErrorKind;
use std::path::PathBuf;

/// What is wrong with a crawl directory, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process works on it.
    #[error(
        "{0} is in use by another process; `orbweaver status {0}` shows its progress, \
         `orbweaver ctl {0} stop` stops it; or choose another directory"
    )]
    InUse(String),
    /// There is no such directory.
    #[error("there is no directory {0}")]
    Missing(String),
    /// There is a directory, but nobody has crawled into it.
    #[error(
        "{0} is not a crawl directory; give a directory that `orbweaver crawl -o` has written, or an empty one for a new crawl"
    )]
    NotACrawl(String),
    /// The file that marks a crawl is missing or unreadable.
    #[error("{what}; write the line `{line}` into it")]
    Mark {
        /// What is wrong with it.
        what: String,
        /// What it should say.
        line: String,
    },
    /// Another version wrote it.
    #[error(
        "{dir} was written by another version ({mark}); use that version, or choose another directory"
    )]
    Version {
        /// The directory.
        dir: String,
        /// What its mark says.
        mark: String,
    },
    /// This user may not read a file in it.
    #[error(
        "this user may not read {file}{owner}; run the command as its owner, or change its permissions"
    )]
    Denied {
        /// The file.
        file: String,
        /// Whose it is, in words; empty when that is unknown.
        owner: String,
    },
    /// It was removed or moved while a crawl worked on it.
    #[error(
        "the crawl directory {0} was removed or moved while the crawl ran, so the crawl has ended; \
         the fetched pages are where the directory is now"
    )]
    Gone(String),
    /// The demo replaces only what it made.
    #[error("{0}")]
    NotTheDemo(String),
    /// The settings that it keeps cannot be read.
    #[error("{0}\ncorrect the file, or move it away and give seeds and settings again")]
    Settings(#[source] orbweaver_config::Error),
    /// The settings cannot be written.
    #[error("{0}")]
    Unwritable(#[source] orbweaver_config::Error),
    /// The file system refuses.
    #[error("cannot use {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// The directory.
        path: PathBuf,
        /// What it says.
        source: std::io::Error,
    },
}

impl Error {
    /// True when the disk is full, read-only or failing: the directory itself is right.
    pub fn is_disk(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
        )
    }
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, then run the same command again"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "choose a directory that this user may write to"
        }
        _ => "choose another directory with -o",
    }
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
