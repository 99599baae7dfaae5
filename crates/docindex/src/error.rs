//! What can go wrong with the doc index, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use crate::log::LogError;

/// An error of the doc index.
#[derive(Debug, Error)]
pub enum Error {
    /// Another process has the directory open: wait for it, or stop it.
    #[error("{0} is in use by another process; stop it first, or choose another directory")]
    InUse(PathBuf),
    /// The directory was written by another version of the format: use the program that wrote it.
    #[error(
        "{path} holds a doc index of format {found}, this program reads format {expected}; use the version that wrote it, or crawl into a new directory"
    )]
    Version {
        /// Where.
        path: PathBuf,
        /// What the directory says.
        found: u8,
        /// What this program writes.
        expected: u8,
    },
    /// Stored records are damaged: the next crawl saves the rest; run `check` to see how much is lost.
    #[error("records of the doc index are damaged ({keyspace}): {why}; run `orbweaver check`")]
    Record {
        /// The keyspace they are in.
        keyspace: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// The directory has no doc index: a crawl makes one.
    #[error(
        "there is no doc index at {0}; start the crawl again: it builds a new one from its seeds and from the pages in the archive"
    )]
    Missing(PathBuf),
    /// Files that nothing can be read without are damaged or gone: start with a new index.
    #[error(
        "{path} cannot be opened: {why}; move it away and start the crawl again: it builds a new index from the pages in the archive"
    )]
    Unopenable {
        /// Where.
        path: PathBuf,
        /// What the store says.
        why: String,
    },
    /// The embedded store failed, most often because the disk is full or gone: mend that and start again.
    #[error(
        "the doc index cannot read or write its files: {}; check space and permissions, then start the crawl again to resume",
        in_words(.0)
    )]
    Store(fjall::Error),
    /// An earlier call to the store failed, so that memory and disk may differ: it is being opened again.
    #[error("the doc index is being reopened after a disk error; try again in a moment")]
    Stopped,
    /// Somebody else has extended the log: this process is not its owner any more. Follow the log, or take it over again.
    #[error(
        "another process has taken over the log of this doc index; stop this one, or start it again to follow"
    )]
    Fenced,
    /// The log cannot be asked: wait until it can be reached, then recover.
    #[error("the log of the doc index cannot be read or extended: {0}; this is retried")]
    Log(#[from] LogError),
    /// A snapshot cannot be written or read: take it again, or use another copy.
    #[error(
        "the snapshot of the doc index cannot be used: {0}; take it again, or use another copy"
    )]
    Snapshot(String),
    /// A snapshot is imported where there is something already: choose an empty directory.
    #[error("{0} is not empty; import the snapshot into an empty directory")]
    Occupied(PathBuf),
    /// A log that does not begin as every log does: it belongs to something else.
    #[error(
        "the log of the doc index does not start at its beginning; import a snapshot first, or name the right log"
    )]
    NotBegun,
}

impl Error {
    /// What it means that a record of this keyspace could not be read.
    pub(crate) fn reading(keyspace: &'static str, error: fjall::Error) -> Self {
        if is_damage(&error) {
            let why = in_words(&error);
            return Self::Record { keyspace, why };
        }
        Self::Store(error)
    }

    /// What is wrong, without what to do about it.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Record { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }

    /// True when what is stored is not what was written. Trying again does not help then.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Record { .. } => true,
            Self::Store(error) => is_damage(error),
            _ => false,
        }
    }

    /// True when the disk or the log failed, or may have: once they work again, so does the doc index.
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::Store(_) | Self::Stopped | Self::Record { .. } | Self::Log(_)
        )
    }

    /// True when a thread of the store gave up, for damage or for trouble, and took the reason with it.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Store(fjall::Error::Poisoned))
    }
}

fn is_damage(error: &fjall::Error) -> bool {
    use fjall::Error as Db;
    use fjall::LsmError as Tree;
    use std::io::ErrorKind::{AlreadyExists, InvalidData, NotFound, UnexpectedEof};
    match error {
        // A file that ends before its end, is gone, or is where none should be.
        Db::Io(error) | Db::Storage(Tree::Io(error)) => matches!(
            error.kind(),
            UnexpectedEof | InvalidData | NotFound | AlreadyExists
        ),
        Db::Storage(_)
        | Db::JournalRecovery(_)
        | Db::InvalidVersion(_)
        | Db::Decompress(_)
        | Db::InvalidTrailer
        | Db::InvalidTag(_)
        | Db::Unrecoverable => true,
        _ => false,
    }
}

impl From<orbweaver_coldstore::Error> for Error {
    fn from(error: orbweaver_coldstore::Error) -> Self {
        use orbweaver_coldstore::Error as Cold;
        match error {
            Cold::InUse(path) => Self::InUse(path),
            Cold::Damaged { .. } => Self::Record {
                keyspace: "files",
                why: error.to_string(),
            },
            Cold::Stream(why) => Self::Snapshot(why),
            Cold::Io(error) => Self::Store(error.into()),
        }
    }
}

impl From<fjall::Error> for Error {
    fn from(error: fjall::Error) -> Self {
        Self::Store(error)
    }
}

/// What the system says, where it is the system that failed; the store wraps it in its own notation.
fn in_words(error: &fjall::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// A result of the doc index.
pub type Result<T> = std::result::Result<T, Error>;
