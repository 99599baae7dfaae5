//! Queued URLs that turn out to matter more than when they were found.

use orbweaver_model::UrlKey;

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{Batch, Keyspaces, queue_key};
use crate::record::LinkRecord;

impl Fold {
    /// Moves URLs up in the queues of their hosts. What is not waiting there stays as it is.
    pub(super) fn promote(
        &mut self,
        urls: &[(UrlKey, u8)],
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        for (key, priority) in urls {
            let Some(link) = store.link(*key)? else {
                continue;
            };
            let place = queue_key(key.host, link.rank());
            // A claim within the same batch cannot be seen here, and needs not to: batches end before this event.
            if link.priority <= *priority || !store.queue.contains_key(place)? {
                continue;
            }
            let fate = store.fate(*key)?;
            let attempts = fate.as_ref().map_or(0, |fate| fate.attempts);
            let better = LinkRecord {
                priority: *priority,
                ..link
            };
            batch.remove(&store.queue, &place);
            batch.put(&store.urls, &key.to_bytes(), &better);
            let host = self.hosts.touch(key.host);
            host.waiting = host.waiting.saturating_sub(1);
            let waiting = better.queued(*key, attempts, super::revisit_of(fate));
            self.enqueue(*key, &better, waiting, store, batch);
        }
        Ok(())
    }
}
