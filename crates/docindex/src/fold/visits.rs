//! Finished URLs that are queued again when their time comes: pages that are visited again, and URLs that were
//! refused because their robots.txt was unavailable and are retried later.

use orbweaver_model::{Spent, Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{due_key, read_due_key};
use crate::record::Fate;
use crate::tx::Tx;

/// URLs that go back to the queue in one commit. Millions may fall due at the same moment, and the rest comes
/// with the next question for candidates.
const AT_ONCE: usize = 4096;

impl Fold {
    /// Notes when a URL that is being finished is to be visited again.
    pub(super) fn plan(&mut self, key: UrlKey, due: Timestamp, tx: &mut Tx<'_>) {
        tx.mark(&tx.store().visits, &due_key(due, key));
        self.next_visit = Some(self.next_visit.map_or(due, |next| next.min(due)));
    }

    /// Gives finished URLs another time, or none.
    pub(super) fn schedule(
        &mut self,
        visits: &[(UrlKey, Option<Timestamp>)],
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        for (key, due) in visits {
            let Some(mut fate) = tx.fate(*key)? else {
                continue;
            };
            let Some(revisit) = fate.revisit.as_mut().filter(|_| fate.due.is_none()) else {
                continue;
            };
            if let Some(old) = std::mem::replace(&mut revisit.due, *due) {
                tx.remove(&tx.store().visits, &due_key(old, *key));
            }
            tx.put(&tx.store().fates, &key.to_bytes(), &fate);
            if let Some(due) = due {
                self.plan(*key, *due, tx);
            }
        }
        Ok(())
    }

    /// Queues the URLs whose time has come; of those that would be visited again only when `visits` says so.
    pub(super) fn visit(&mut self, now: Timestamp, visits: bool, tx: &mut Tx<'_>) -> Result<()> {
        self.next_visit = None;
        let mut count = 0;
        for guard in tx.iter(&tx.store().visits) {
            let bytes = guard.key()?;
            let Some((due, key)) = read_due_key(&bytes) else {
                continue;
            };
            if due > now || count >= AT_ONCE {
                self.next_visit = Some(due);
                break;
            }
            let fate = tx.fate(key)?;
            if fate
                .as_ref()
                .is_some_and(|fate| !visits && !fate.is_chance())
            {
                continue;
            }
            count += 1;
            tx.remove(&tx.store().visits, &bytes);
            if let Some(fate) = fate {
                self.reopen(key, fate, now, tx)?;
            }
        }
        Ok(())
    }

    fn reopen(
        &mut self,
        key: UrlKey,
        mut fate: Fate,
        now: Timestamp,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let Some(link) = tx.link(key)?.filter(|_| fate.due.is_none()) else {
            return Ok(());
        };
        let spent = self.hosts.get(key.host).and_then(|host| host.record.spent);
        // What was never visited leaves nothing for a visit, and is not in the budget of pages.
        let before = fate.revisit.as_mut().map(|before| {
            before.due = None;
            before.clone()
        });
        let revisit = before.filter(|revisit| revisit.visits > 0);
        let over = match spent {
            Some(Spent::Bytes | Spent::Time) => true,
            Some(Spent::Pages) => revisit.is_none(),
            None => false,
        };
        if over {
            tx.put(&tx.store().fates, &key.to_bytes(), &fate);
            return Ok(());
        }
        self.ledger.reopen(&fate.report.outcome);
        self.hosts.touch(key.host).record.queued += 1;
        let waiting = link.queued(key, 0, revisit.clone());
        self.enqueue(key, &link, waiting, tx);
        let open = Fate {
            attempts: 0,
            due: Some(now),
            revisit,
            ..fate
        };
        tx.put(&tx.store().fates, &key.to_bytes(), &open);
        Ok(())
    }
}
