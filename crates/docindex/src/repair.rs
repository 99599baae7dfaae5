//! Repairing an index whose records can be read but do not agree with each other.
//!
//! What the URLs and their fates say is taken for true. What follows from them is worked out again: the queue, what waits for a
//! repetition or a visit, the counts of hosts, and the ledger. Files that are damaged are dealt with as when a crawl meets them.

use std::path::Path;

use orbweaver_coldstore::survey;

use crate::check::check;
use crate::error::{Error, Result};
use crate::reader::{Reader, Shared};
use crate::salvage::{reconcile, rescue};
use crate::store::Store;

/// Repairs the index of a crawl that does not run; what was done, in words. Nothing is written when nothing is wrong.
pub fn repair(path: &Path, memory: u64) -> Result<Vec<String>> {
    if survey::is_empty(path)? {
        return Err(Error::Missing(path.into()));
    }
    if let Some(saved) = rescue(path, memory, false)? {
        return Ok(vec![saved]);
    }
    let store = Store::reopen(path, memory)?;
    let Some(seed) = store.meta("seed")? else {
        return Ok(Vec::new());
    };
    let reader = Reader::new(Shared::of(&store), seed);
    let mut wrong = 0;
    check(&reader, &mut |_| wrong += 1)?;
    if wrong == 0 {
        return Ok(Vec::new());
    }
    reconcile(&store)?;
    store.sync()?;
    Ok(vec![
        "queue, waits, counts of hosts and ledger of the doc index were rebuilt from its URLs"
            .into(),
    ])
}

#[cfg(test)]
mod tests {
    use orbweaver_model::{CrawlUrl, Event, Link, LinkKind, NewLink, Timestamp};

    use super::*;
    use crate::keyspaces::queue_key;
    use crate::tx::Tx;
    use crate::{DocIndex, IndexOptions};
    use orbweaver_model::Ledger;

    fn wrong(path: &Path) -> Vec<String> {
        let reader = Reader::open(path, 8 << 20).unwrap();
        let mut found = Vec::new();
        check(&reader, &mut |finding| found.push(finding.what)).unwrap();
        found
    }

    #[test]
    fn what_does_not_agree_is_worked_out_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let at = Timestamp::from_millis(1);
        let mut index = DocIndex::open(&path, IndexOptions::default(), at).unwrap();
        let new = |n: u32| NewLink {
            link: Link {
                url: CrawlUrl::from_canonical(&format!("http://a/{n}")).unwrap(),
                kind: LinkKind::A,
                depth: 1,
                priority: 16,
                via: None,
                chain: Vec::new(),
            },
            refused: None,
        };
        let links = (0..4).map(new).collect();
        index.apply([Event::Links { links, at }]).unwrap();
        let keys: Vec<_> = (0..4).map(|n| new(n).link.url.key(index.seed())).collect();
        drop(index);
        assert_eq!(wrong(&path), Vec::<String>::new());
        assert_eq!(repair(&path, 8 << 20).unwrap(), Vec::<String>::new());
        {
            let store = Store::reopen(&path, 8 << 20).unwrap();
            let mut tx = Tx::new(&store);
            // One is queued twice, as by the mistake that this was written for, one is lost, and the ledger is wrong.
            let link = tx.link(keys[0]).unwrap().unwrap();
            let waiting = link.queued(keys[0], 0, None);
            tx.put(&store.queue, &queue_key(keys[0].host, 7), &waiting);
            let lost = tx.link(keys[1]).unwrap().unwrap();
            tx.remove(&store.queue, &queue_key(keys[1].host, lost.rank()));
            tx.meta("ledger", &Ledger::default());
            tx.commit().unwrap();
        }
        let found = wrong(&path);
        assert!(found.len() >= 3, "{found:?}");
        assert!(
            found.iter().any(|what| what.contains("wrong place")),
            "{found:?}"
        );
        assert_eq!(repair(&path, 8 << 20).unwrap().len(), 1);
        assert_eq!(wrong(&path), Vec::<String>::new());
    }
}
