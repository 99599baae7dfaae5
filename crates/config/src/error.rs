//! What can be wrong with a configuration, and what the operator can do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The file cannot be read: name another one, or see to its permissions.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has mistakes: correct them.
    #[error("{} is not a valid configuration:\n  {}", path.display(), mistakes.join("\n  "))]
    File {
        /// The file.
        path: PathBuf,
        /// Every mistake, each in a sentence.
        mistakes: Vec<String>,
    },
    /// Settings that make no sense, each alone or together: correct them.
    #[error("{}", listed(.0))]
    Mistakes(Vec<String>),
    /// TOML has no form for a setting, such as a number above 2⁶³: choose a smaller one.
    #[error("the settings cannot be written as TOML: {0}")]
    Form(#[from] toml::ser::Error),
}

impl Error {
    /// Every mistake, each in a sentence.
    pub fn mistakes(self) -> Vec<String> {
        match self {
            Self::Read { .. } | Self::Form(_) => vec![self.to_string()],
            Self::File { mistakes, .. } | Self::Mistakes(mistakes) => mistakes,
        }
    }
}

/// Mistakes in one message.
fn listed(mistakes: &[String]) -> String {
    match mistakes {
        [one] => one.clone(),
        many => format!("{} mistakes:\n  {}", many.len(), many.join("\n  ")),
    }
}
