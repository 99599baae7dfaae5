//! How the doc index is opened.

use orbweaver_model::{Budgets, KeySeed};

use crate::domains::DomainOf;
use orbweaver_seen::Tracking;

/// How the doc index is opened.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Bytes for everything: seen-set, hosts, the store's caches and write buffers.
    pub memory: u64,
    /// The secret of a new crawl; an existing one keeps its own.
    pub seed: KeySeed,
    /// The node that this process is of, as its epochs say.
    pub node: String,
    /// How much may be taken from hosts and domains.
    pub budgets: Budgets,
    /// Which domain a host belongs to, for their budgets.
    pub domain_of: DomainOf,
    /// Finished URLs are visited again when they are due.
    pub recrawl: bool,
    /// Which links to known URLs can still matter.
    pub tracking: Tracking,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            seed: KeySeed(0),
            node: "local".into(),
            budgets: Budgets::default(),
            domain_of: |host| host,
            recrawl: false,
            tracking: Tracking::default(),
        }
    }
}

impl IndexOptions {
    /// Bytes for the seen-set: with the hosts it has five eighths, the store has the rest. When hosts are so
    /// many that nothing would be left for it, it keeps an eighth, and the budget does not hold.
    pub(crate) fn seen_limit(&self, hosts: usize) -> usize {
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        let both = memory / 8 * 5;
        both.saturating_sub(hosts).max(memory / 8)
    }
}
