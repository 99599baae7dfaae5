//! Seeds that are known already: naming a URL that was refused unasked, or whose server could not be reached, gives it
//! another chance.

use orbweaver_model::{Link, LinkKind, OutcomeClass, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::due_key;
use crate::record::{Fate, LinkRecord};
use crate::tx::Tx;

impl Fold {
    /// A URL that scope or address policy had refused is queued now that the user asks for it by name, and so is one
    /// whose server, or its robots.txt, could not be reached: every run begins with naming its seeds. What was
    /// answered, and what a robots.txt denies, stays as it is.
    pub(super) fn readmit(&mut self, key: UrlKey, link: &Link, tx: &mut Tx<'_>) -> Result<()> {
        let Some(fate) = tx.fate(key)? else {
            return Ok(());
        };
        let finished = fate.due.is_none();
        let spent = self
            .hosts
            .get(key.host)
            .is_some_and(|host| host.record.spent.is_some());
        let Some(known) = tx.link(key)? else {
            return Ok(());
        };
        if !finished || spent || !deserves_another_chance(&fate) {
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
        tx.put(&tx.store().urls, &key.to_bytes(), &record);
        tx.mark(&tx.store().seeds, record.url.as_str().as_bytes());
        if let Some(due) = fate.revisit.as_ref().and_then(|revisit| revisit.due) {
            tx.remove(&tx.store().visits, &due_key(due, key));
        }
        tx.remove(&tx.store().fates, &key.to_bytes());
        self.ledger.reopen(&fate.report.outcome);
        self.hosts.touch(key.host).record.queued += 1;
        let waiting = record.queued(key, 0, None);
        self.enqueue(key, &record, waiting, tx);
        Ok(())
    }
}

fn deserves_another_chance(fate: &Fate) -> bool {
    match fate.report.outcome.class {
        OutcomeClass::DeniedPolicy => fate.attempts == 0,
        OutcomeClass::FailedConnect | OutcomeClass::FailedTimeout | OutcomeClass::FailedDns => true,
        // A chance that would come by itself comes at once.
        _ => fate.is_chance(),
    }
}
