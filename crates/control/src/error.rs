//! Why a question is not answered, and of which kind that is.

use std::fmt::Display;
use std::path::PathBuf;

/// What is wrong with a question, or with the crawl that is asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The question is wrong.
    #[error("{0}")]
    Input(String),
    /// What was requested does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The question needs a crawl that runs.
    #[error("{0}")]
    NotRunning(String),
    /// The crawl directory cannot be used.
    #[error(transparent)]
    Directory(#[from] orbweaver_crawldir::Error),
    /// The doc index fails.
    #[error(transparent)]
    Index(#[from] orbweaver_docindex::Error),
    /// A file, a socket or a thread is unavailable.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The log of changes cannot be written, so nothing was changed.
    #[error("cannot use {}: {source}; nothing was changed", path.display())]
    ChangeLog {
        /// The log.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A running crawl has refused the question.
    #[error("{message}")]
    Refused {
        /// Of which kind its error was.
        kind: Kind,
        /// What it said.
        message: String,
    },
    /// The crawl ended before it answered.
    #[error("the crawl is ending and gave no answer; try again")]
    NoAnswer,
}

/// Kinds of errors, for those who only need to know what to do about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An unexpected failure.
    Failed = 1,
    /// A setting or a question is wrong.
    Input = 2,
    /// The crawl was stopped.
    Stopped = 3,
    /// The crawl directory cannot be used, or no crawl runs in it.
    Directory = 4,
    /// The disk is full, read-only or failing.
    Disk = 5,
    /// Something on the disk is damaged.
    Damaged = 6,
    /// What was requested does not exist.
    NotFound = 7,
}

impl Kind {
    /// The number that stands for it in the answers of a running crawl.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn of(number: u8) -> Self {
        let all = [
            Self::Input,
            Self::Stopped,
            Self::Directory,
            Self::Disk,
            Self::Damaged,
            Self::NotFound,
        ];
        let named = all.into_iter().find(|kind| kind.number() == number);
        named.unwrap_or(Self::Failed)
    }
}

impl From<&orbweaver_crawldir::Error> for Kind {
    fn from(error: &orbweaver_crawldir::Error) -> Self {
        match error {
            orbweaver_crawldir::Error::Settings(_) => Self::Input,
            error if error.is_disk() => Self::Disk,
            _ => Self::Directory,
        }
    }
}

impl From<&orbweaver_docindex::Error> for Kind {
    fn from(error: &orbweaver_docindex::Error) -> Self {
        use orbweaver_docindex::Error as Index;
        match error {
            Index::InUse(_)
            | Index::Version { .. }
            | Index::Missing(_)
            | Index::Unopenable { .. } => Self::Directory,
            Index::Record { .. } => Self::Damaged,
            Index::Store(_) | Index::Stopped => Self::Disk,
            _ => Self::Failed,
        }
    }
}

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Input(_) => Kind::Input,
            Self::NotFound(_) => Kind::NotFound,
            Self::NotRunning(_) => Kind::Directory,
            Self::Directory(error) => error.into(),
            Self::Index(error) => error.into(),
            Self::ChangeLog { .. } => Kind::Disk,
            Self::Refused { kind, .. } => *kind,
            Self::Io { .. } | Self::NoAnswer => Kind::Failed,
        }
    }
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was tried when the system refused.
pub(crate) trait Context<T> {
    fn context(self, what: impl Display) -> Result<T>;

    fn with_context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, what: impl Display) -> Result<T> {
        self.with_context(|| what)
    }

    fn with_context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|source| Error::Io {
            what: what().to_string(),
            source,
        })
    }
}
