//! Saving a damaged store: everything that can be read goes into a new one, which then is made whole.
//!
//! A damaged block would stop the store again and again, whenever it sorts its files anew. So the readable
//! records are copied, the old store is kept beside the new one, and what follows from other records is
//! worked out again: what waits, how much there is of it, and the ledger.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

use orbweaver_coldstore::Hold;
use orbweaver_model::{KeySeed, Timestamp, UrlKey};

use crate::cold::Cold;
use crate::error::{Error, Result};
use crate::fold::claims::open_claims;
use crate::keyspaces::{due_key, legible, queue_key, read_due_key};
use crate::record::{Fate, HostRecord, LinkRecord, QueueRecord, decode};
use crate::store::Store;
use crate::tx::Tx;
use orbweaver_model::Ledger;

/// Records copied in one commit.
const GROUP: usize = 4096;

/// Mends the store at `path`: what it lost, in words, and where the old one is kept. When the store is
/// opened again after trouble nothing may be wrong with it; then it stays as it is.
pub(crate) fn rescue(path: &Path, memory: u64, must: bool) -> Result<Option<String>> {
    let old = Cold::open(path, memory, Hold::Alone)?;
    old.check_format(path)?;
    if !must && old.survey().is_empty() {
        return Ok(None);
    }
    let kept = salvage(path, memory, &old).map_err(|error| unopenable(path, error))?;
    let lost = old.damages().list();
    for damage in &lost {
        warn!(%damage, "damaged in the doc index");
    }
    let (count, kept) = (lost.len(), kept.display());
    let first = lost.first().map(ToString::to_string).unwrap_or_default();
    Ok(Some(format!(
        "the doc index was damaged in {count} places ({first}); what could be read was recovered, the old index is kept as {kept}"
    )))
}

/// What is damaged so that nothing can be saved.
fn unopenable(path: &Path, error: Error) -> Error {
    match error {
        error if error.is_damage() => Error::Unopenable {
            path: path.into(),
            why: error.in_short(),
        },
        other => other,
    }
}

/// Copies what can be read of a store into a new one and puts that in its place; where the old one is then.
fn salvage(path: &Path, memory: u64, old: &Cold) -> Result<PathBuf> {
    let fresh_path = Store::unfinished(path);
    let _ = fs::remove_dir_all(&fresh_path);
    let fresh = Store::open_at(&fresh_path, memory)?;
    let source = old.keyspaces();
    for (from, to) in source.tables().into_iter().zip(fresh.tables()) {
        let mut tx = Tx::new(&fresh);
        for (n, row) in from.iter().enumerate() {
            let (key, value) = row.into_inner()?;
            match legible(from.name(), &key, &value) {
                Ok(()) => tx.put_raw(to, &key, &value),
                Err(error) => old.note_record(from.name(), &key, &error),
            }
            if n % GROUP == GROUP - 1 {
                tx.flush()?;
            }
        }
        tx.commit()?;
    }
    reconcile(&fresh)?;
    fresh.sync()?;
    drop(fresh);
    exchange(path, &fresh_path)
}

/// Puts a new store in the place of an old one, which gets a name of its own.
fn exchange(path: &Path, fresh: &Path) -> Result<PathBuf> {
    let free = (1..)
        .map(|n: u32| path.with_extension(format!("damaged-{n}")))
        .find(|kept| !kept.exists());
    let kept = free.unwrap_or_else(|| path.with_extension("damaged"));
    fs::rename(path, &kept).map_err(fjall::Error::from)?;
    fs::rename(fresh, path).map_err(fjall::Error::from)?;
    Ok(kept)
}

/// A store that loses records keeps its promises all the same.
pub(crate) fn reconcile(store: &Store) -> Result<()> {
    let Some(seed) = store.meta::<KeySeed>("seed")? else {
        // Where nothing is left there is nothing to find by it: the index begins anew.
        if store.urls.iter().next().is_none() && store.queue.iter().next().is_none() {
            return Ok(());
        }
        return Err(Error::Record {
            keyspace: "meta",
            why: "the secret that keys all others is gone".into(),
        });
    };
    let mut mending = Mending {
        store,
        seed,
        tx: Tx::new(store),
        waiting: 0,
    };
    mending.links_from_queue()?;
    mending.flush()?;
    mending.drop_strays()?;
    mending.flush()?;
    mending.count()
}

struct Mending<'a> {
    store: &'a Store,
    seed: KeySeed,
    tx: Tx<'a>,
    waiting: usize,
}

impl Mending<'_> {
    fn flush(&mut self) -> Result<()> {
        self.waiting = 0;
        self.tx.flush()
    }

    fn wrote(&mut self) -> Result<()> {
        self.waiting += 1;
        if self.waiting >= GROUP {
            return self.flush();
        }
        Ok(())
    }

    /// A URL that is only in the queue becomes known again by that; one that is finished leaves it.
    fn links_from_queue(&mut self) -> Result<()> {
        let store = self.store;
        for row in store.queue.iter() {
            let (place, value) = row.into_inner()?;
            let waiting = decode::<QueueRecord>("queue", &value)?;
            let key = waiting.url.key(self.seed);
            let link = self.tx.link(key)?;
            let own = link.map(|link| queue_key(key.host, link.rank()));
            let is_finished = store.fate(key)?.is_some_and(|fate| fate.due.is_none());
            if is_finished || own.is_some_and(|own| own != *place) {
                self.tx.remove(&store.queue, &place);
            } else if own.is_none() {
                let link = LinkRecord {
                    doc_id: waiting.doc_id,
                    url: waiting.url,
                    kind: waiting.kind,
                    depth: waiting.depth,
                    // The second byte of the rank, which follows the hash of the host.
                    priority: place.get(9).copied().unwrap_or(0),
                    via: None,
                    chain: waiting.chain,
                    seen: Timestamp::default(),
                    latent: None,
                    shown: Some(waiting.kind).filter(|kind| kind.is_requisite()),
                };
                self.tx.put(&store.urls, &key.to_bytes(), &link);
            }
            self.wrote()?;
        }
        Ok(())
    }

    /// What belongs to URLs that are lost goes too: whoever links to them makes them known again.
    fn drop_strays(&mut self) -> Result<()> {
        let store = self.store;
        for row in store.fates.iter() {
            let key = row.key()?;
            if !store.urls.contains_key(&key)? {
                self.tx.remove(&store.fates, &key);
                self.wrote()?;
            }
        }
        for row in store.reconsider.iter() {
            let key = row.key()?;
            if !store.urls.contains_key(&key)? {
                self.tx.remove(&store.reconsider, &key);
                self.wrote()?;
            }
        }
        for table in [&store.due, &store.visits] {
            for row in table.iter() {
                let bytes = row.key()?;
                let Some((due, key)) = read_due_key(&bytes) else {
                    continue;
                };
                let fate = store.fate(key)?;
                let planned = fate.and_then(|fate| match table.name() {
                    "due" => fate.due,
                    _ => fate.revisit.and_then(|revisit| revisit.due),
                });
                if planned != Some(due) || !store.urls.contains_key(key.to_bytes())? {
                    self.tx.remove(table, &bytes);
                    self.wrote()?;
                }
            }
        }
        Ok(())
    }

    /// Every URL is finished or rests somewhere, and the counts say how many.
    fn count(&mut self) -> Result<()> {
        let store = self.store;
        let claims = open_claims(&self.tx)?;
        let said: Ledger = store.meta("ledger")?.unwrap_or_default();
        let mut ledger = Ledger::default();
        let mut last_doc = 0;
        let mut hosts: HashMap<u64, (u32, String)> = HashMap::new();
        for row in store.urls.iter() {
            let (bytes, value) = row.into_inner()?;
            let link = decode::<LinkRecord>("urls", &value)?;
            let Ok(key) = bytes.as_ref().try_into().map(UrlKey::from_bytes) else {
                continue;
            };
            last_doc = last_doc.max(link.doc_id);
            ledger.accept();
            let host = hosts
                .entry(key.host)
                .or_insert_with(|| (0, link.url.host().into()));
            let fate = store.fate(key)?;
            let is_page = fate.as_ref().is_some_and(Fate::is_page);
            ledger.pages += u64::from(is_page);
            if let Some(fate) = fate.as_ref().filter(|fate| fate.due.is_none()) {
                ledger.finish(&fate.report.outcome);
                if let Some(due) = fate.revisit.as_ref().and_then(|revisit| revisit.due) {
                    self.tx.mark(&store.visits, &due_key(due, key));
                    self.wrote()?;
                }
                continue;
            }
            host.0 += 1;
            let place = queue_key(key.host, link.rank());
            let due = fate.as_ref().and_then(|fate| fate.due);
            let rests = store.queue.contains_key(place)?
                || claims.contains_key(&key)
                || match due {
                    Some(due) => store.due.contains_key(due_key(due, key))?,
                    None => false,
                };
            if !rests {
                let attempts = fate.as_ref().map_or(0, |fate| fate.attempts);
                let revisit = fate.and_then(|fate| fate.revisit);
                let waiting = link.queued(key, attempts, revisit);
                self.tx.put(&store.queue, &place, &waiting);
                self.wrote()?;
            }
        }
        self.write_hosts(hosts)?;
        (ledger.bytes, ledger.attempts) = (said.bytes, said.attempts);
        ledger.robots_requests = said.robots_requests;
        self.tx.meta("ledger", &ledger);
        let before: u32 = store.meta("last_doc")?.unwrap_or(0);
        self.tx.meta("last_doc", &last_doc.max(before));
        self.flush()
    }

    fn write_hosts(&mut self, hosts: HashMap<u64, (u32, String)>) -> Result<()> {
        let store = self.store;
        for (hash, (queued, name)) in hosts {
            let known = store.hosts.get(hash.to_be_bytes())?;
            let known = known.map(|bytes| decode::<HostRecord>("hosts", &bytes));
            let mut record = known.transpose()?.unwrap_or_default();
            record.name = name;
            record.queued = queued;
            self.tx.put(&store.hosts, &hash.to_be_bytes(), &record);
            self.wrote()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use orbweaver_model::{Event, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report, Revisit};

    use super::*;
    use crate::{DocIndex, IndexOptions, Wanted};

    /// A plan is kept with the URL too: when the list of plans is damaged, it is made anew.
    #[test]
    fn what_was_planned_is_planned_again() {
        let dir = tempfile::tempdir().unwrap();
        let at = Timestamp::from_millis;
        let options = IndexOptions::default();
        let memory = options.memory;
        let mut index = DocIndex::open(dir.path(), options, at(1)).unwrap();
        let link = Link {
            url: orbweaver_model::CrawlUrl::from_canonical("http://a/1").unwrap(),
            kind: LinkKind::A,
            depth: 0,
            priority: 0,
            via: None,
            chain: Vec::new(),
        };
        let key = link.url.key(index.seed());
        let links = vec![NewLink {
            link,
            refused: None,
        }];
        index.apply([Event::Links { links, at: at(1) }]).unwrap();
        let wanted = Wanted {
            urls: 1,
            per_host: 1,
            reject: Default::default(),
        };
        assert_eq!(index.candidates(&wanted, at(2)).unwrap().len(), 1);
        let done = Event::Done {
            key,
            report: Report::unasked(Outcome::plain(OutcomeClass::DeniedRobots), at(3)),
            links: Vec::new(),
            revisit: Some(Box::new(Revisit {
                due: Some(at(500)),
                ..Revisit::unvisited(at(3))
            })),
            archived: None,
        };
        index.apply([done]).unwrap();
        drop(index);
        let store = Store::reopen(dir.path(), memory).unwrap();
        let place = due_key(at(500), key);
        let mut tx = Tx::new(&store);
        tx.remove(&store.visits, &place);
        tx.commit().unwrap();
        assert!(!store.visits.contains_key(place).unwrap());
        reconcile(&store).unwrap();
        assert!(store.visits.contains_key(place).unwrap());
    }
}
