//! Where the doc index stands, for whoever watches.

use std::sync::{Arc, Mutex};

use orbweaver_docindex::Ledger;
use orbweaver_model::Timestamp;

/// Where the index stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) ledger: Ledger,
    /// When the next retry or the next waiting host comes round; only set while nothing else is left.
    pub(crate) waits_until: Option<Timestamp>,
    /// All that is left belongs to blocked hosts.
    pub(crate) only_blocked: bool,
    /// Why the index is not at work, while it is not.
    pub(crate) trouble: Option<String>,
    /// What damage has cost, in words.
    pub(crate) lost: Option<String>,
    /// How far the results are on the disk itself: of a store elsewhere, or of the archive beside the index.
    pub(crate) results: u64,
}

/// The same, as the thread publishes it.
pub(crate) type Published = Arc<Mutex<Standing>>;

/// Why there is nothing more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// There is work.
    No,
    /// Every URL is finished.
    Empty,
    /// What is left is due later than the crawl is willing to wait.
    Later,
    /// The page budget is spent.
    Budget,
    /// The index failed; the thread's result says how.
    Failed,
}
