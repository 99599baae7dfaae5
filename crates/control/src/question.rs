//! The requests that a running crawl answers: questions and changes.

use serde::{Deserialize, Serialize};

/// A question or a change. `docs/formats/crawl-directory.md` lists the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Question {
    /// Counts, and the hosts that stand out.
    Status,
    /// Every URL.
    Outcomes,
    /// What is wrong with the doc index.
    Check,
    /// Everything that decides about one URL.
    Why {
        /// The URL, as the user wrote it.
        url: String,
    },
    /// What limits the speed.
    Slow,
    /// No more orders.
    Pause,
    /// Orders again.
    Resume,
    /// The crawl ends as after SIGTERM.
    Stop,
    /// No more requests are sent to a host.
    Block {
        /// The host, as the user wrote it.
        host: String,
    },
    /// A host gets requests again.
    Unblock {
        /// The host.
        host: String,
    },
    /// A host gets a rate of its own.
    Rate {
        /// The host.
        host: String,
        /// Requests per second, 0 for no limit; none for the crawl's own rate.
        rate: Option<f64>,
    },
    /// More seeds.
    Add {
        /// The URLs, as the user wrote them.
        urls: Vec<String>,
    },
    /// The settings are read again.
    Reload,
    /// A change is taken back.
    Undo {
        /// Its number in the log of changes.
        n: u64,
    },
}

impl Question {
    /// True when only a crawl that runs can do this.
    pub fn needs_a_running_crawl(&self) -> bool {
        matches!(
            self,
            Self::Pause | Self::Resume | Self::Stop | Self::Add { .. } | Self::Reload
        )
    }
}
