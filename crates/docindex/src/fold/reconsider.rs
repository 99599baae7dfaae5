//! URLs that are to be judged again, and finished ones that are asked for once more.

use orbweaver_model::{Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::record::Fate;
use crate::tx::Tx;

impl Fold {
    /// Marks URLs to be judged again.
    pub(super) fn reconsider(&mut self, keys: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        for key in keys {
            let key = key.to_bytes();
            if !tx.contains(&tx.store().reconsider, &key)? {
                tx.mark(&tx.store().reconsider, &key);
                self.reconsidering += 1;
            }
        }
        Ok(())
    }

    /// These were judged again.
    pub(super) fn reconsidered(&mut self, keys: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        for key in keys {
            let key = key.to_bytes();
            if tx.contains(&tx.store().reconsider, &key)? {
                tx.remove(&tx.store().reconsider, &key);
                self.reconsidering = self.reconsidering.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Queues finished URLs that have been asked for, to be asked for once more.
    pub(super) fn ask_again(
        &mut self,
        keys: &[UrlKey],
        at: Timestamp,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        for key in keys {
            let fate = tx.fate(*key)?;
            let Some(fate) = fate.filter(|fate| fate.due.is_none() && fate.asked) else {
                continue;
            };
            let spent = self.hosts.get(key.host).and_then(|host| host.record.spent);
            let Some(link) = tx.link(*key)?.filter(|_| spent.is_none()) else {
                continue;
            };
            if let Some(due) = fate.revisit.as_ref().and_then(|revisit| revisit.due) {
                tx.remove(&tx.store().visits, &crate::keyspaces::due_key(due, *key));
            }
            self.ledger.reopen(&fate.report.outcome);
            self.hosts.touch(key.host).record.queued += 1;
            // Without what the last visit left: a conditional request would bring no links. It counts as a second attempt, for
            // which the first is looked up, so that no budget counts it twice.
            let waiting = link.queued(*key, 1, None);
            self.enqueue(*key, &link, waiting, tx);
            let revisit = fate.revisit.map(|mut revisit| {
                revisit.due = None;
                revisit
            });
            let open = Fate {
                attempts: 1,
                due: Some(at),
                revisit,
                ..fate
            };
            tx.put(&tx.store().fates, &key.to_bytes(), &open);
        }
        Ok(())
    }
}
