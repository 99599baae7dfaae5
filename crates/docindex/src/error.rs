//! What can go wrong with the doc index, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

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
    /// A stored record cannot be read: run `check` to see how much is damaged.
    #[error("a record of the doc index cannot be read ({keyspace}): {why}; run `orbweaver check`")]
    Record {
        /// The keyspace it is in.
        keyspace: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// The embedded store failed, most often because the disk is full or gone: mend that and start again.
    #[error(
        "the doc index cannot read or write its files: {}; check space and permissions, then start the crawl again to resume",
        in_words(.0)
    )]
    Store(fjall::Error),
    /// An earlier write failed, so that memory and disk may differ: start the crawl again.
    #[error("the doc index stopped after a failed write; start the crawl again to resume")]
    Stopped,
    /// Someone else extended the log first: this process is not its owner any more.
    #[error("the log was extended by another owner (expected position {expected}, found {found})")]
    WrongTail {
        /// The tail this process had applied.
        expected: u64,
        /// The tail there is.
        found: u64,
    },
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
