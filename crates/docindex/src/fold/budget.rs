//! Hosts whose budget is spent, and URLs that nobody is asked for.

use orbweaver_model::{CrawlUrl, Outcome, OutcomeClass, Report, Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{Batch, Keyspaces};
use crate::record::{QueueRecord, decode};

impl Fold {
    /// Refuses what is left in the queue of a host.
    pub(super) fn exhaust(
        &mut self,
        hash: u64,
        outcome: &Outcome,
        at: Timestamp,
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let host = self.hosts.touch(hash);
        host.record.exhausted = true;
        host.waiting = 0;
        for guard in store.queue.prefix(hash.to_be_bytes()) {
            let (place, value) = guard.into_inner()?;
            let waiting = decode::<QueueRecord>("queue", &value)?;
            let key = UrlKey {
                host: hash,
                url: waiting.url_hash,
            };
            batch.remove(&store.queue, &place);
            let earlier = self.earlier(key, waiting.attempts, store)?;
            let report = unasked(outcome.clone(), at);
            self.finish(key, waiting.attempts, report, earlier, store, batch);
            self.blame(key, &waiting.chain, store, batch)?;
        }
        Ok(())
    }
}

/// The report on a URL that nobody was asked for.
pub(super) fn unasked(outcome: Outcome, at: Timestamp) -> Report {
    Report {
        outcome,
        status: None,
        ip: None,
        bytes: 0,
        millis: 0,
        at,
        redirect: None,
    }
}

/// What becomes of a URL of a host whose budget is spent.
pub(super) fn spent_budget(url: &CrawlUrl) -> Outcome {
    Outcome::because(
        OutcomeClass::DeniedPolicy,
        format!("the page budget of {} is spent", url.host()),
    )
}
