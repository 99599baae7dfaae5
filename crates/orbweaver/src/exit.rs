//! How the process ends: one number per kind of ending, the same for every command.

use std::fmt;
use std::process::ExitCode;

use orbweaver_ring::{DirectoryError, Error, Kind};

/// Why the process ends. `docs/exit-codes.md` and `orbweaver help` list the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ending {
    /// The work is done, or the limit that the user set was reached.
    Done = 0,
    /// An unexpected failure.
    Failed = 1,
    /// The command line, the configuration, or an input is wrong.
    BadInput = 2,
    /// Stopped by a signal; the same command resumes.
    Interrupted = 3,
    /// The crawl directory cannot be used: in use, of another version, or no crawl at all.
    Directory = 4,
    /// The disk is full, read-only, or failing; nothing that was acknowledged is lost.
    Disk = 5,
    /// Something in the crawl directory is damaged: `check` found it, or less than asked for could be read.
    Damaged = 6,
    /// What was requested does not exist.
    NotFound = 7,
    /// The crawl has ended without a single page: no seed could be fetched.
    NoPage = 8,
}

impl From<Kind> for Ending {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Failed => Self::Failed,
            Kind::Input => Self::BadInput,
            Kind::Stopped => Self::Interrupted,
            Kind::Directory => Self::Directory,
            Kind::Disk => Self::Disk,
            Kind::Damaged => Self::Damaged,
            Kind::NotFound => Self::NotFound,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(ending as u8)
    }
}

/// An error that knows how the process should end. Anything else ends it as `Failed`.
#[derive(Debug)]
pub(crate) struct Fatal {
    pub(crate) ending: Ending,
    pub(crate) message: String,
}

impl Fatal {
    pub(crate) fn with(ending: Ending, message: impl Into<String>) -> anyhow::Error {
        Self {
            ending,
            message: message.into(),
        }
        .into()
    }

    pub(crate) fn input(message: impl Into<String>) -> anyhow::Error {
        Self::with(Ending::BadInput, message)
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fatal {}

/// How to end for an error from anywhere in the program.
pub(crate) fn ending_of(error: &anyhow::Error) -> Ending {
    if let Some(fatal) = error.downcast_ref::<Fatal>() {
        return fatal.ending;
    }
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.kind().into();
    }
    if let Some(error) = error.downcast_ref::<DirectoryError>() {
        return Kind::from(error).into();
    }
    if error.downcast_ref::<orbweaver_config::Error>().is_some() {
        return Ending::BadInput;
    }
    match error.downcast_ref::<orbweaver_store::StoreError>() {
        Some(error) if error.is_damage() => Ending::Damaged,
        Some(_) => Ending::Disk,
        None => Ending::Failed,
    }
}
