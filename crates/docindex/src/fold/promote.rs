//! Queued URLs that turn out to matter more than when they were found.

use orbweaver_model::UrlKey;

use super::Fold;
use crate::error::Result;
use crate::keyspaces::queue_key;
use crate::record::LinkRecord;
use crate::tx::Tx;

impl Fold {
    /// Moves URLs up in the queues of their hosts. What is not waiting there stays as it is.
    pub(super) fn promote(&mut self, urls: &[(UrlKey, u8)], tx: &mut Tx<'_>) -> Result<()> {
        for (key, priority) in urls {
            let Some(link) = tx.link(*key)? else {
                continue;
            };
            let place = queue_key(key.host, link.rank());
            // A claim within the same batch cannot be seen here, and needs not to: batches end before this event.
            if link.priority <= *priority || !tx.contains(&tx.store().queue, &place)? {
                continue;
            }
            let fate = tx.fate(*key)?;
            let attempts = fate.as_ref().map_or(0, |fate| fate.attempts);
            let better = LinkRecord {
                priority: *priority,
                ..link
            };
            tx.remove(&tx.store().queue, &place);
            tx.put(&tx.store().urls, &key.to_bytes(), &better);
            let host = self.hosts.touch(key.host);
            host.waiting = host.waiting.saturating_sub(1);
            let waiting = better.queued(*key, attempts, super::revisit_of(fate));
            self.enqueue(*key, &better, waiting, tx);
        }
        Ok(())
    }
}
