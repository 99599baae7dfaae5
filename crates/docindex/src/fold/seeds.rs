//! Seeds that are known already: naming a URL that was refused unasked gives it another chance.

use orbweaver_model::{Link, LinkKind, OutcomeClass, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{Batch, Keyspaces};
use crate::record::LinkRecord;

impl Fold {
    /// A URL that scope or address policy had refused is queued now that the user asks for it by name. What
    /// was asked before, and what robots.txt denies, stays as it is.
    pub(super) fn readmit(
        &mut self,
        key: UrlKey,
        link: &Link,
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let Some(fate) = self.fate(key, store)? else {
            return Ok(());
        };
        let class = fate.report.outcome.class;
        let unasked = fate.due.is_none() && fate.attempts == 0;
        let spent = self
            .hosts
            .get(key.host)
            .is_some_and(|host| host.record.spent.is_some());
        let Some(known) = store.link(key)? else {
            return Ok(());
        };
        if class != OutcomeClass::DeniedPolicy || !unasked || spent {
            return Ok(());
        }
        let record = LinkRecord {
            kind: LinkKind::Seed,
            depth: link.depth,
            priority: link.priority,
            via: None,
            chain: Vec::new(),
            ..known
        };
        batch.put(&store.urls, &key.to_bytes(), &record);
        batch.mark(&store.seeds, record.url.as_str().as_bytes());
        batch.remove(&store.fates, &key.to_bytes());
        self.fresh.remove(&key);
        self.ledger.reopen(class);
        self.hosts.touch(key.host).record.queued += 1;
        let waiting = record.queued(key, 0, None);
        self.enqueue(key, &record, waiting, store, batch);
        Ok(())
    }
}
