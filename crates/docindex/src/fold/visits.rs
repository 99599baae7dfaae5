//! Finished URLs that are visited again when their time comes.

use orbweaver_model::{Spent, Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{Batch, Keyspaces, due_key, read_due_key};
use crate::record::Fate;

/// URLs that go back to the queue in one commit. Millions may fall due at the same moment, and the rest comes
/// with the next question for candidates.
const AT_ONCE: usize = 4096;

impl Fold {
    /// Notes when a URL that is being finished is to be visited again.
    pub(super) fn plan(
        &mut self,
        key: UrlKey,
        due: Timestamp,
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) {
        batch.mark(&store.visits, &due_key(due, key));
        self.next_visit = Some(self.next_visit.map_or(due, |next| next.min(due)));
    }

    /// Gives finished URLs another time.
    pub(super) fn schedule(
        &mut self,
        visits: &[(UrlKey, Timestamp)],
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        for (key, due) in visits {
            let Some(mut fate) = self.fate(*key, store)? else {
                continue;
            };
            let Some(revisit) = fate.revisit.as_mut().filter(|_| fate.due.is_none()) else {
                continue;
            };
            if let Some(old) = revisit.due.replace(*due) {
                batch.remove(&store.visits, &due_key(old, *key));
            }
            batch.put(&store.fates, &key.to_bytes(), &fate);
            self.fresh.insert(*key, fate);
            self.plan(*key, *due, store, batch);
        }
        Ok(())
    }

    /// Queues the URLs whose visit is due.
    pub(super) fn visit(
        &mut self,
        now: Timestamp,
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        self.next_visit = None;
        for (count, guard) in store.visits.iter().enumerate() {
            let bytes = guard.key()?;
            let Some((due, key)) = read_due_key(&bytes) else {
                continue;
            };
            if due > now || count >= AT_ONCE {
                self.next_visit = Some(due);
                break;
            }
            batch.remove(&store.visits, &bytes);
            self.reopen(key, now, store, batch)?;
        }
        Ok(())
    }

    fn reopen(
        &mut self,
        key: UrlKey,
        now: Timestamp,
        store: &Keyspaces,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let (Some(link), Some(fate)) = (store.link(key)?, self.fate(key, store)?) else {
            return Ok(());
        };
        let spent = self.hosts.get(key.host).and_then(|host| host.record.spent);
        if fate.due.is_some() || matches!(spent, Some(Spent::Bytes | Spent::Time)) {
            return Ok(());
        }
        self.ledger.reopen(fate.report.outcome.class);
        self.hosts.touch(key.host).record.queued += 1;
        let waiting = link.queued(key, 0, fate.revisit.clone());
        self.enqueue(key, &link, waiting, store, batch);
        let open = Fate {
            attempts: 0,
            due: Some(now),
            ..fate
        };
        batch.put(&store.fates, &key.to_bytes(), &open);
        self.fresh.insert(key, open);
        Ok(())
    }
}
