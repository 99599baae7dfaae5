//! Opening a store: what lies on disk is read into the RAM side of the fold.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use orbweaver_model::{KeySeed, UrlKey};

use crate::domains::Domains;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::fold::claims::{Claims, open_claims};
use crate::hosts::Hosts;
use crate::index::IndexOptions;
use crate::keyspaces::{Batch, Keyspaces, read_due_key};
use crate::record::{ClaimRecord, HostRecord, decode};
use crate::seen::Seen;

/// A store that has just been opened, with what goes with it in RAM.
pub(crate) struct Begun {
    pub(crate) store: Keyspaces,
    pub(crate) fold: Fold,
    pub(crate) applied: u64,
}

impl Begun {
    pub(crate) fn at(path: &Path, options: &IndexOptions) -> Result<Self> {
        let store = Keyspaces::open(path, options.memory)?;
        Keyspaces::sweep(path);
        let seed = match store.meta("seed")? {
            Some(seed) => seed,
            None if store.urls.iter().next().is_none() => options.seed,
            None => {
                return Err(Error::Record {
                    keyspace: "meta",
                    why: "the secret that keys all others is gone".into(),
                });
            }
        };
        // Written by every process, for without it all is lost, and one place on a disk is soon damaged.
        let mut batch = Batch::new(&store);
        batch.meta("seed", &seed);
        batch.commit()?;
        Ok(Self {
            applied: store.meta("applied")?.unwrap_or(0),
            fold: load(&store, seed, Arc::default(), options, After::Process)?,
            store,
        })
    }
}

/// What was before the store was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Another process: its claims return to the queue when the epoch is folded.
    Process,
    /// This process: its claims are with the URL server.
    Trouble,
}

/// Brings the RAM side of the fold to where the store is.
pub(crate) fn load(
    store: &Keyspaces,
    seed: KeySeed,
    seen: Arc<Seen>,
    options: &IndexOptions,
    after: After,
) -> Result<Fold> {
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
    let mut last_batch = 0;
    for guard in store.claims.iter() {
        let (number, value) = guard.into_inner()?;
        last_batch = number
            .as_ref()
            .try_into()
            .map_or(last_batch, u64::from_be_bytes);
        for claim in decode::<ClaimRecord>("claims", &value)?.urls {
            let open = Fold::is_open(&claim, store.fate(claim.key)?.as_ref());
            if open && after == After::Process {
                hosts.not_waiting(claim.key.host);
            }
        }
    }
    let mut claims = Claims::default();
    if after == After::Trouble {
        claims = open_claims(store)?;
        claims.keys().for_each(|key| hosts.not_waiting(key.host));
    }
    hosts.begin_turns();
    let ledger = store.meta("ledger")?.unwrap_or_default();
    let last_doc = store.meta("last_doc")?.unwrap_or(0);
    let mut fold = Fold::new(seed, ledger, hosts, last_doc);
    fold.latest = store.meta("latest")?.unwrap_or_default();
    fold.next_due = next_due;
    let first = store.visits.iter().next();
    let first = first.map(|guard| guard.key()).transpose()?;
    fold.results = store.meta("results")?.unwrap_or(0);
    fold.next_visit = first.and_then(|key| Some(read_due_key(&key)?.0));
    fold.last_batch = last_batch;
    fold.keep_claims(claims);
    fold.seen = seen;
    read_known(store, &fold.seen)?;
    Ok(fold)
}

/// Fills the seen-set. Millions of keys have to be unpacked for that, so all cores take part; hashes spread
/// evenly, and each takes as many first bytes as the others.
fn read_known(store: &Keyspaces, seen: &Seen) -> Result<()> {
    let parts = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    let edge = |part: usize| (256 * part / parts) as u8;
    thread::scope(|scope| {
        let read = |part: usize| {
            let first = [edge(part)];
            let rows = match part + 1 == parts {
                true => store.urls.range(first..),
                false => store.urls.range(first..[edge(part + 1)]),
            };
            for row in rows {
                if let Ok(bytes) = row.key()?.as_ref().try_into() {
                    seen.insert(UrlKey::from_bytes(bytes));
                }
            }
            Ok(())
        };
        let others: Vec<_> = (1..parts)
            .map(|part| scope.spawn(move || read(part)))
            .collect();
        let first = read(0);
        let others = others
            .into_iter()
            .map(|part| part.join().unwrap_or(Err(Error::Stopped)));
        others.fold(first, Result::and)
    })
}
