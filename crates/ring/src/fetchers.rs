//! Fetchers carry orders out: the spider of this process, or spiders that are other processes.
//!
//! Both forms do the same with an order: they ask the gate before its request is written, say when it has been, and end
//! it once, with a result, as given up, or not at all, when the crawl ends before the request does; then its URL stays
//! claimed, and the next run requests it. `crates/orbweaver/tests/it/fetchers.rs` holds both to that.

pub(crate) mod gate;
pub(crate) mod here;
pub(crate) mod intake;
pub(crate) mod line;

use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Order, TransId};
use tokio::sync::{mpsc, watch};

use self::gate::SendGate;

/// How long requests that are out may take to end when the crawl is told to stop. With the last commit
/// it stays below the ten seconds that a user waits.
pub(crate) const LAST_REQUESTS: Duration = Duration::from_secs(6);

/// What fetchers are given to do.
pub(crate) struct Work {
    /// Orders, as many as the URL server lets out.
    pub(crate) orders: mpsc::Receiver<Order>,
    /// Orders that others need the place of. One that is over, or that cannot be given up, ends as it would have.
    pub(crate) give_up: mpsc::Receiver<TransId>,
    /// Asked before a request is written.
    pub(crate) gate: Arc<SendGate>,
    /// True when no more orders are taken.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Who carries orders out.
pub(crate) trait Fetchers {
    /// Carries orders out until told to stop, and then waits for those that are out, for [`LAST_REQUESTS`] at most.
    fn run(self, work: Work) -> impl Future<Output = ()> + Send;
}
