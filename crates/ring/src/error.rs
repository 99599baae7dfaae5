//! What can go wrong with a crawl as a whole. What goes wrong with single URLs is no error but an outcome.

use std::fmt::Display;

/// Why a crawl cannot begin, cannot go on, or cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a question is wrong.
    #[error("{0}")]
    Input(String),
    /// There is nothing to start from.
    #[error("nothing to crawl: no seeds are given{}", where_kept(kept))]
    NoSeeds {
        /// The file with the settings of an earlier run, which names none.
        kept: Option<std::path::PathBuf>,
    },
    /// What was requested does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The question needs a crawl that runs.
    #[error("{0}")]
    NotRunning(String),
    /// The disk does not take what has to be written.
    #[error("{0}")]
    Disk(String),
    /// The crawl is ending.
    #[error("the crawl is ending and accepts no more changes")]
    Ending,
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] orbweaver_config::Error),
    /// The crawl directory cannot be used.
    #[error(transparent)]
    Directory(#[from] orbweaver_crawldir::Error),
    /// The doc index fails.
    #[error(transparent)]
    Index(#[from] orbweaver_docindex::Error),
    /// The archive fails.
    #[error(transparent)]
    Store(#[from] orbweaver_store::StoreError),
    /// The spider cannot be started.
    #[error(transparent)]
    Spider(#[from] orbweaver_spider::SpiderError),
    /// A pattern of the scope is wrong.
    #[error(transparent)]
    Scope(#[from] orbweaver_intake::IntakeError),
    /// The URL server cannot be started, or has ended.
    #[error(transparent)]
    UrlServer(#[from] orbweaver_urlserver::UrlServerError),
    /// A file, a socket or a thread cannot be had.
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
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A running crawl has refused a question.
    #[error("{message}")]
    Refused {
        /// Of which kind its error was.
        kind: Kind,
        /// What it said.
        message: String,
    },
    /// An unexpected failure.
    #[error("{0}")]
    Failed(String),
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

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        use orbweaver_docindex::Error as Index;
        use orbweaver_spider::SpiderError as Spider;
        match self {
            Self::Input(_) | Self::NoSeeds { .. } | Self::Config(_) | Self::Scope(_) => Kind::Input,
            Self::NotFound(_) => Kind::NotFound,
            Self::NotRunning(_) => Kind::Directory,
            Self::Directory(error) => error.into(),
            Self::Index(
                Index::InUse(_)
                | Index::Version { .. }
                | Index::Missing(_)
                | Index::Unopenable { .. },
            ) => Kind::Directory,
            Self::Index(Index::Record { .. }) => Kind::Damaged,
            Self::Index(Index::Store(_) | Index::Stopped) => Kind::Disk,
            Self::Store(error) if error.is_damage() => Kind::Damaged,
            Self::Store(_) | Self::ChangeLog { .. } | Self::Disk(_) => Kind::Disk,
            Self::Spider(Spider::UserAgent | Spider::Roots(_)) => Kind::Input,
            Self::Refused { kind, .. } => *kind,
            Self::Index(_)
            | Self::Spider(_)
            | Self::UrlServer(_)
            | Self::Io { .. }
            | Self::Ending
            | Self::Failed(_) => Kind::Failed,
        }
    }
}

fn where_kept(kept: &Option<std::path::PathBuf>) -> String {
    let kept = kept.as_ref();
    kept.map_or(String::new(), |file| {
        format!(", and {} has none", file.display())
    })
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
