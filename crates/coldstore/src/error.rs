//! What keeps the files of a store from being read, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of reading a store's files.
#[derive(Debug, Error)]
pub enum Error {
    /// Another process works on the store: wait for it, or stop it.
    #[error("{0} is in use by another process; stop it first")]
    InUse(PathBuf),
    /// The store must not be opened: read its files instead, and save what can be read.
    #[error("{path}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A stream of records cannot be written or is not what was written: take it again, or use another copy.
    #[error("{0}")]
    Stream(String),
    /// The system refuses: check the disk and permissions.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn damaged(path: &Path, why: impl ToString) -> Self {
        Self::Damaged {
            path: path.into(),
            why: why.to_string(),
        }
    }
}

/// A result of reading a store's files.
pub type Result<T> = std::result::Result<T, Error>;
