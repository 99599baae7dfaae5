//! Options of the ring that the configuration sets.

use std::time::Duration;

/// How persistent the crawl is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// Attempts at a URL whose server says that it is overloaded.
    pub busy_attempts: u8,
    /// Attempts at a URL that failed in a way that may pass.
    pub attempts: u8,
    /// Wait before the first repetition; each further one waits four times as long.
    pub delay: Duration,
    /// How long a crawl with nothing else to do waits for a repetition instead of ending.
    pub patience: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            busy_attempts: 4,
            attempts: 2,
            delay: Duration::from_secs(2),
            patience: Duration::from_secs(120),
        }
    }
}

/// How the log of requests is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Bytes at which a file is closed and the next begun.
    pub rotate: u64,
    /// Files that are kept, the one being written included; 0 writes none.
    pub files: u32,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            rotate: 64 << 20,
            files: 8,
        }
    }
}
