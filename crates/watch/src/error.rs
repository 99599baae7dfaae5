//! Why the state of a crawl cannot be read.

use std::fmt::Display;

/// What keeps a question from being answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The doc index cannot be read.
    #[error(transparent)]
    Index(#[from] orbweaver_docindex::Error),
    /// The archive cannot be read.
    #[error(transparent)]
    Store(#[from] orbweaver_store::StoreError),
    /// What was found cannot be written, or a thread cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was tried when the system refused.
pub(crate) trait Context<T> {
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|source| Error::Io {
            what: what.to_string(),
            source,
        })
    }
}
