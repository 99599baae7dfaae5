//! Reading the doc index without changing it.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use orbweaver_model::{CrawlUrl, KeySeed, RobotsRecord, Timestamp, UrlKey};

use crate::error::{Error, Result};
use crate::keyspaces::{Keyspaces, queue_key};
use crate::ledger::Ledger;
use crate::record::{ClaimRecord, Fate, HostRecord, LinkRecord, decode};

/// How long a reader waits for another; a listing of millions of URLs that nobody reads may take for ever.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// One URL with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How it became known.
    pub link: LinkRecord,
    /// What became of it; none while it waits for its first attempt.
    pub fate: Option<Fate>,
}

/// Where an unfinished URL rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// In the queue of its host.
    Queue {
        /// URLs of the host that come before it.
        ahead: u64,
    },
    /// With the URL server.
    Claimed {
        /// Since when.
        since: Timestamp,
    },
    /// Until it is asked for again.
    Retry {
        /// When that may be.
        due: Timestamp,
    },
}

/// The store that readers use. Its owner takes it away while it is opened again.
#[derive(Clone)]
pub(crate) struct Shared(Arc<RwLock<Keyspaces>>);

impl Shared {
    pub(crate) fn of(store: &Keyspaces) -> Self {
        Self(Arc::new(RwLock::new(store.clone())))
    }

    pub(crate) fn set(&self, store: Keyspaces) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    /// True when the URL is in the store.
    pub(crate) fn knows(&self, key: UrlKey) -> Result<bool> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        store.urls.contains_key(key.to_bytes())
    }

    fn get(&self) -> Keyspaces {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A view of the index for listings. Cheap to clone; each listing sees one moment.
#[derive(Clone)]
pub struct Reader {
    shared: Shared,
    pub(crate) seed: KeySeed,
}

impl Reader {
    pub(crate) fn new(shared: Shared, seed: KeySeed) -> Self {
        Self { shared, seed }
    }

    /// The store as it is open now.
    pub(crate) fn store(&self) -> Keyspaces {
        self.shared.get()
    }

    /// Opens the index of a crawl that is not running. The store lets one process in at a time, so this
    /// waits a while for another reader to end.
    pub fn open(path: &Path, memory: u64) -> Result<Self> {
        let began = Instant::now();
        let store = loop {
            match Keyspaces::open(path, memory) {
                Err(Error::InUse(_)) if began.elapsed() < PATIENCE => thread::sleep(PAUSE),
                opened => break opened?,
            }
        };
        let seed = store.meta("seed")?.unwrap_or(KeySeed(0));
        Ok(Self::new(Shared::of(&store), seed))
    }

    /// The secret that keys this crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        self.seed
    }

    /// The counts.
    pub fn ledger(&self) -> Result<Ledger> {
        Ok(self.store().meta("ledger")?.unwrap_or_default())
    }

    /// How far the results of a store elsewhere are folded; 0 when there is none.
    pub fn results(&self) -> Result<u64> {
        Ok(self.store().meta("results")?.unwrap_or(0))
    }

    /// One URL.
    pub fn entry(&self, key: UrlKey) -> Result<Option<Entry>> {
        let Some(link) = self.store().link(key)? else {
            return Ok(None);
        };
        Ok(Some(Entry {
            link,
            fate: self.store().fate(key)?,
        }))
    }

    /// Where a URL rests; none when it is finished.
    pub fn rest(&self, entry: &Entry) -> Result<Option<Rest>> {
        let due = match &entry.fate {
            Some(fate) if fate.due.is_none() => return Ok(None),
            fate => fate.as_ref().and_then(|fate| fate.due),
        };
        let key = entry.link.url.key(self.seed);
        let store = self.store();
        let view = store.view();
        let place = queue_key(key.host, entry.link.rank());
        if view.contains_key(&store.queue, place)? {
            let ahead = view.range(&store.queue, queue_key(key.host, 0)..place);
            let ahead = ahead.count() as u64;
            return Ok(Some(Rest::Queue { ahead }));
        }
        // The newest first: a batch of long ago may still name a URL that has been claimed again since.
        for guard in view.iter(&store.claims).rev() {
            let batch = decode::<ClaimRecord>("claims", &guard.value()?)?;
            let attempts = entry.fate.as_ref().map_or(0, |fate| fate.attempts);
            let open = |claim: &orbweaver_model::Claimed| {
                claim.key == key && (due.is_none() || attempts <= claim.attempts)
            };
            if batch.urls.iter().any(open) {
                return Ok(Some(Rest::Claimed { since: batch.at }));
            }
        }
        Ok(due.map(|due| Rest::Retry { due }))
    }

    /// The robots.txt kept for an origin.
    pub fn robots(&self, origin: &str) -> Result<Option<RobotsRecord>> {
        self.store()
            .robots
            .get(origin)?
            .map(|bytes| decode("robots", &bytes))
            .transpose()
    }

    /// What is known of a host.
    pub fn host(&self, name: &str) -> Result<Option<HostRecord>> {
        let hash = self.seed.host(name);
        self.store()
            .hosts
            .get(hash.to_be_bytes())?
            .map(|bytes| decode("hosts", &bytes))
            .transpose()
    }

    /// Every URL, ordered by key, as of now.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + use<> {
        let store = self.store();
        let view = store.view();
        view.iter(&store.urls).map(move |row| {
            let (key, value) = row.into_inner()?;
            let fate = view.get(&store.fates, &key)?;
            Ok(Entry {
                link: decode("urls", &value)?,
                fate: fate.map(|bytes| decode("fates", &bytes)).transpose()?,
            })
        })
    }

    /// Every seed, those that were given and those that seeds have moved to.
    pub fn seeds(&self) -> impl Iterator<Item = Result<CrawlUrl>> + use<> {
        self.store().seeds.iter().map(|row| {
            let key = row.key()?;
            let url = CrawlUrl::from_canonical(&String::from_utf8_lossy(&key));
            url.map_err(|error| Error::Record {
                keyspace: "seeds",
                why: error.to_string(),
            })
        })
    }

    /// Every host.
    pub fn hosts(&self) -> impl Iterator<Item = Result<HostRecord>> + use<> {
        self.store()
            .hosts
            .iter()
            .map(|row| decode("hosts", &row.value()?))
    }
}
