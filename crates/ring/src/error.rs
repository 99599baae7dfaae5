//! Errors of a crawl as a whole. A failure of a single URL is not an error but an outcome.

use std::fmt::Display;

use orbweaver_control::Kind;

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
    /// A file, a socket or a thread is unavailable.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A question or a change was refused.
    #[error(transparent)]
    Control(#[from] orbweaver_control::Error),
    /// The state of the crawl cannot be read.
    #[error(transparent)]
    Watch(#[from] orbweaver_watch::Error),
    /// An unexpected failure.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        use orbweaver_spider::SpiderError as Spider;
        match self {
            Self::Input(_) | Self::NoSeeds { .. } | Self::Config(_) | Self::Scope(_) => Kind::Input,
            Self::Directory(error) => error.into(),
            Self::Index(error) | Self::Watch(orbweaver_watch::Error::Index(error)) => error.into(),
            Self::Store(error) | Self::Watch(orbweaver_watch::Error::Store(error)) => {
                match error.is_damage() {
                    true => Kind::Damaged,
                    false => Kind::Disk,
                }
            }
            Self::Disk(_) => Kind::Disk,
            Self::Spider(Spider::UserAgent | Spider::Roots(_)) => Kind::Input,
            Self::Control(error) => error.kind(),
            Self::Spider(_)
            | Self::UrlServer(_)
            | Self::Watch(_)
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
