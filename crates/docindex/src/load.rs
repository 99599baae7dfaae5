//! Opening a store: what lies on disk is read into the RAM side of the fold.
//!
//! The seen-set of a large crawl is read beside the crawl, for that takes seconds, and until it is there the
//! store itself can be asked.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use orbweaver_model::{KeySeed, UrlKey};

use crate::domains::Domains;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::fold::claims::open_claims;
use crate::hosts::Hosts;

use crate::keyspaces::read_due_key;
use crate::options::IndexOptions;
use crate::reader::Seen;
use crate::reader::Shared;
use crate::record::{HostRecord, LinkRecord, decode};
use crate::store::Store;
use crate::tables::Table;
use crate::tx::Tx;

/// URLs that are read before the crawl begins rather than beside it: a second's work, and damage among them
/// is found before anybody builds on it.
const READ_FIRST: u64 = 500_000;

/// A store that has just been opened, with what goes with it in RAM.
pub(crate) struct Begun {
    pub(crate) store: Store,
    /// The same store for readers in other threads.
    pub(crate) shared: Shared,
    pub(crate) fold: Fold,
    pub(crate) filling: Option<Filling>,
    pub(crate) applied: u64,
}

impl Begun {
    pub(crate) fn at(path: &Path, options: &IndexOptions) -> Result<Self> {
        let store = Store::open(path, options.memory)?;
        Store::sweep(path);
        let shared = Shared::of(&store);
        let seen = Arc::new(Seen::new(shared.clone(), options.tracking));
        let (fold, filling) = load(&store, seen, options)?;
        Ok(Self {
            applied: store.meta("applied")?.unwrap_or(0),
            shared,
            fold,
            filling,
            store,
        })
    }
}

/// Brings the RAM side of the fold to where the store is.
pub(crate) fn load(
    store: &Store,
    seen: Arc<Seen>,
    options: &IndexOptions,
) -> Result<(Fold, Option<Filling>)> {
    let domains = (!options.budgets.domain.is_open()).then(|| Domains::new(options.domain_of));
    let mut hosts = Hosts::new(domains);
    for guard in store.hosts.iter() {
        let (key, value) = guard.into_inner()?;
        if let Ok(hash) = key.as_ref().try_into().map(u64::from_be_bytes) {
            hosts.load(hash, decode::<HostRecord>("hosts", &value)?);
        }
    }
    let mut next_due = None;
    for guard in store.due.iter() {
        if let Some((due, key)) = read_due_key(&guard.key()?) {
            next_due = next_due.or(Some(due));
            hosts.not_waiting(key.host);
        }
    }
    let last = store.claims.iter().last();
    let last = last.map(|row| row.key()).transpose()?;
    let last_batch = last.and_then(|number| number.as_ref().try_into().ok());
    let last_batch = last_batch.map_or(0, u64::from_be_bytes);
    // Handed out they stay until the log says otherwise: they are of this process, or of another whose epoch lasts.
    let claims = open_claims(&Tx::new(store))?;
    claims.keys().for_each(|key| hosts.not_waiting(key.host));
    hosts.begin_turns();
    let ledger = store.meta("ledger")?.unwrap_or_default();
    let last_doc = store.meta("last_doc")?.unwrap_or(0);
    let mut fold = Fold::new(seed_of(store)?, ledger, seen, hosts, last_doc);
    fold.epoch = store.meta("epoch")?;
    fold.latest = store.meta("latest")?.unwrap_or_default();
    fold.next_due = next_due;
    let first = store.visits.iter().next();
    let first = first.map(|guard| guard.key()).transpose()?;
    fold.results = store.meta("results")?.unwrap_or(0);
    fold.followed = store.meta("followed")?;
    fold.next_visit = first.and_then(|key| Some(read_due_key(&key)?.0));
    fold.last_batch = last_batch;
    fold.reconsidering = store.reconsider.iter().count() as u64;
    fold.keep_claims(claims);
    let filling = read_known(store, &fold, options)?;
    Ok((fold, filling))
}

/// The secret of the crawl; none before it has begun.
fn seed_of(store: &Store) -> Result<Option<KeySeed>> {
    match store.meta("seed")? {
        None if store.urls.iter().next().is_some() => Err(Error::Record {
            keyspace: "meta",
            why: "the secret that keys all others is gone".into(),
        }),
        seed => Ok(seed),
    }
}

/// Fills the seen-set, at once or beside what comes next, unless it would not fit anyway.
fn read_known(store: &Store, fold: &Fold, options: &IndexOptions) -> Result<Option<Filling>> {
    let known = fold.ledger.accepted;
    let limit = options.seen_limit(fold.hosts.bytes());
    if !fold.seen.restart(known, limit) {
        return Ok(None);
    }
    let stop = Arc::new(AtomicBool::new(false));
    if known <= READ_FIRST {
        fill(&store.urls, &fold.seen, &stop)?;
        return Ok(None);
    }
    let (urls, seen, told) = (
        store.urls.clone(),
        Arc::clone(&fold.seen),
        Arc::clone(&stop),
    );
    let thread = thread::Builder::new()
        .name("seen".into())
        .spawn(move || fill(&urls, &seen, &told))
        .map_err(fjall::Error::from)?;
    Ok(Some(Filling {
        stop,
        thread: Some(thread),
    }))
}

fn fill(urls: &Table, seen: &Seen, stop: &AtomicBool) -> Result<()> {
    for row in urls.iter() {
        let (key, value) = row.into_inner()?;
        let Ok(bytes) = key.as_ref().try_into() else {
            continue;
        };
        let roles = match seen.reads_roles() {
            true => Some(decode::<LinkRecord>("urls", &value)?.roles()),
            false => None,
        };
        if !seen.fill(UrlKey::from_bytes(bytes), roles) || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    seen.filled();
    Ok(())
}

/// The thread that fills the seen-set. It holds the store open, and is told to end when this is dropped.
pub(crate) struct Filling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Filling {
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end, and says how it went.
    pub(crate) fn end(mut self) -> Result<()> {
        let thread = self.thread.take();
        thread.map_or(Ok(()), |thread| {
            thread.join().unwrap_or(Err(Error::Stopped))
        })
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // How it went is of no interest any more.
            let _ = thread.join();
        }
    }
}
