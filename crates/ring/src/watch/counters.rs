//! What is counted of a run as it happens, for the progress line and the summary.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::summary::Cut;

/// What the progress line counts as it happens.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Answers to pages, whatever they were.
    pub(crate) answers: AtomicU64,
    /// Documents among them.
    pub(crate) documents: AtomicU64,
    /// Failures among them.
    pub(crate) failed: AtomicU64,
    /// Bytes received.
    pub(crate) bytes: AtomicU64,
    /// Documents that were cut, by what cut them.
    pub(crate) cut: CutCounters,
}

/// Documents that are not whole.
#[derive(Debug, Default)]
pub(crate) struct CutCounters {
    /// They passed the size limit.
    pub(crate) by_size: AtomicU64,
    /// They did not come in time.
    pub(crate) by_time: AtomicU64,
    /// The server ended them, or their encoding is damaged.
    pub(crate) by_server: AtomicU64,
    /// Whole, but read for links in part.
    pub(crate) in_part: AtomicU64,
}

impl CutCounters {
    pub(crate) fn now(&self) -> Cut {
        Cut {
            size: self.by_size.load(Ordering::Relaxed),
            time: self.by_time.load(Ordering::Relaxed),
            server: self.by_server.load(Ordering::Relaxed),
            in_part: self.in_part.load(Ordering::Relaxed),
        }
    }
}
