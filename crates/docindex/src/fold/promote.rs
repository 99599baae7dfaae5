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
            if link.priority <= *priority || !tx.contains(&tx.store().queue, &place)? {
                continue;
            }
            let better = LinkRecord {
                priority: *priority,
                ..link
            };
            tx.put(&tx.store().urls, &key.to_bytes(), &better);
            self.requeue(*key, &place, &better, tx)?;
        }
        Ok(())
    }
}
