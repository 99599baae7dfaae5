//! Hosts whose budget is spent, and URLs that nobody is asked for.

use orbweaver_model::{CrawlUrl, Outcome, OutcomeClass, Report, Spent, Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;

use crate::record::{Fate, QueueRecord, decode};
use crate::tx::Tx;

impl Fold {
    /// Refuses what is left in the queue of a host. What was fetched before keeps its fate, and a chain
    /// of redirects that was begun goes on when it is only pages that are used up.
    pub(super) fn exhaust(
        &mut self,
        hash: u64,
        spent: Spent,
        outcome: &Outcome,
        at: Timestamp,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let host = self.hosts.touch(hash);
        host.record.spent = Some(spent);
        host.waiting = 0;
        for guard in tx.prefix(&tx.store().queue, &hash.to_be_bytes()) {
            let (place, value) = guard.into_inner()?;
            let waiting = decode::<QueueRecord>("queue", &value)?;
            let key = UrlKey {
                host: hash,
                url: waiting.url_hash,
            };
            let before = tx.fate(key)?;
            // What was asked for before is in the budget already, and so is the first of a chain.
            let asked = before.as_ref().is_some_and(|fate| fate.asked);
            if spent == Spent::Pages && (asked || !waiting.chain.is_empty()) {
                self.hosts.touch(hash).waiting += 1;
                continue;
            }
            tx.remove(&tx.store().queue, &place);
            if let Some(fate) = before.as_ref().filter(|_| waiting.revisit.is_some()) {
                let kept = Fate {
                    due: None,
                    ..fate.clone()
                };
                self.finish(key, kept, tx);
                continue;
            }
            let fate = Fate {
                attempts: waiting.attempts,
                asked,
                capture: before.as_ref().and_then(|fate| fate.capture),
                earlier: before.map(Fate::into_earlier).unwrap_or_default(),
                ..unasked(outcome.clone(), at)
            };
            self.finish(key, fate, tx);
            self.blame(key, &waiting.chain, tx)?;
        }
        Ok(())
    }
}

/// The fate of a URL that nobody was asked for.
pub(super) fn unasked(outcome: Outcome, at: Timestamp) -> Fate {
    Fate {
        attempts: 0,
        asked: false,
        refused: false,
        due: None,
        report: Report::unasked(outcome, at),
        earlier: Vec::new(),
        revisit: None,
        capture: None,
    }
}

/// What becomes of a new URL of a host whose budget is spent.
pub(super) fn refusal(spent: Spent, url: &CrawlUrl) -> Outcome {
    let budget = match spent {
        Spent::Pages => "page",
        Spent::Bytes => "byte",
        Spent::Time => "time",
    };
    let reason = format!("the {budget} budget of {} is used up", url.host());
    Outcome::because(OutcomeClass::DeniedPolicy, reason)
}
