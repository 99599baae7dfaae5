//! How much may be taken from a host, and from all hosts of a domain together.

use std::time::Duration;

/// The budget of a host or a domain; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// URLs that may be asked for.
    pub pages: u32,
    /// Bytes after which nothing more is asked for.
    pub bytes: u64,
    /// Time since the first request after which nothing more is asked for.
    pub time: Duration,
}

impl Budget {
    /// True when nothing is limited.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// The budgets of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// For each host.
    pub host: Budget,
    /// For the hosts of each registered domain together.
    pub domain: Budget,
}
