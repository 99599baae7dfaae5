//! What is counted of a run as it happens, for the progress line and the summary.

use std::sync::atomic::{AtomicU64, Ordering};

use orbweaver_model::{Column, FetchResult, Outcome, OutcomeClass, Truncation};
use orbweaver_spider::IN_PART;

use crate::summary::Cut;

/// What the progress line counts as it happens.
#[derive(Debug, Default)]
pub struct Counters {
    /// Answers to pages, whatever they were.
    pub answers: AtomicU64,
    /// Documents among them.
    pub documents: AtomicU64,
    /// Failures among them.
    pub failed: AtomicU64,
    /// Bytes received.
    pub bytes: AtomicU64,
    /// Documents that were cut, by what cut them.
    pub cut: CutCounters,
}

impl Counters {
    /// Counts a URL that the URL server gave up.
    pub fn count_refusal(&self, outcome: &Outcome) {
        if outcome.class.column() == Column::Failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an answer.
    pub fn count(&self, result: &FetchResult, outcome: &Outcome) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(result.wire_bytes, Ordering::Relaxed);
        if outcome.reason == IN_PART {
            self.cut.in_part.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.class == OutcomeClass::Truncated {
            let counter = match result.exchange.as_ref().and_then(|it| it.truncated) {
                Some(Truncation::Length) => &self.cut.by_size,
                Some(Truncation::Time) => &self.cut.by_time,
                Some(Truncation::Disconnect) | None => &self.cut.by_server,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.class.is_document() {
            self.documents.fetch_add(1, Ordering::Relaxed);
        } else if outcome.class.column() == Column::Failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Documents that are not whole.
#[derive(Debug, Default)]
pub struct CutCounters {
    /// They passed the size limit.
    pub by_size: AtomicU64,
    /// They did not come in time.
    pub by_time: AtomicU64,
    /// The server ended them, or their encoding is damaged.
    pub by_server: AtomicU64,
    /// Whole, but read for links in part.
    pub in_part: AtomicU64,
}

impl CutCounters {
    /// The counts at this moment.
    pub fn now(&self) -> Cut {
        Cut {
            size: self.by_size.load(Ordering::Relaxed),
            time: self.by_time.load(Ordering::Relaxed),
            server: self.by_server.load(Ordering::Relaxed),
            in_part: self.in_part.load(Ordering::Relaxed),
        }
    }
}
