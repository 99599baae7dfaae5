//! Reading the doc index without changing it.

use std::path::Path;

use fjall::{Readable, Snapshot};

use orbweaver_model::{CrawlUrl, KeySeed, UrlKey};

use crate::error::{Error, Result};
use crate::keyspaces::Keyspaces;
use crate::ledger::Ledger;
use crate::record::{Fate, HostRecord, LinkRecord, decode};

/// One URL with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How it became known.
    pub link: LinkRecord,
    /// What became of it; none while it waits for its first attempt.
    pub fate: Option<Fate>,
}

/// A view of the index for listings. Cheap to clone; each listing sees one moment.
#[derive(Clone)]
pub struct Reader {
    pub(crate) store: Keyspaces,
    pub(crate) seed: KeySeed,
}

impl Reader {
    pub(crate) fn new(store: Keyspaces, seed: KeySeed) -> Self {
        Self { store, seed }
    }

    /// Opens the index of a crawl that is not running.
    pub fn open(path: &Path, memory: u64) -> Result<Self> {
        let store = Keyspaces::open(path, memory)?;
        let seed = store.meta("seed")?.unwrap_or(KeySeed(0));
        Ok(Self { store, seed })
    }

    /// The secret that keys this crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        self.seed
    }

    /// The counts.
    pub fn ledger(&self) -> Result<Ledger> {
        Ok(self.store.meta("ledger")?.unwrap_or_default())
    }

    /// One URL.
    pub fn entry(&self, key: UrlKey) -> Result<Option<Entry>> {
        let Some(link) = self.store.link(key)? else {
            return Ok(None);
        };
        Ok(Some(Entry {
            link,
            fate: self.store.fate(key)?,
        }))
    }

    /// Every URL, ordered by key, as of now.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + use<> {
        let snapshot = self.store.db.snapshot();
        let urls = snapshot.iter(&self.store.urls);
        let fates = self.store.fates.clone();
        urls.map(move |guard| {
            let (key, value) = guard.into_inner()?;
            let fate = snapshot.get(&fates, &key)?;
            Ok(Entry {
                link: decode("urls", &value)?,
                fate: fate.map(|bytes| decode("fates", &bytes)).transpose()?,
            })
        })
    }

    /// Every seed, those that were given and those that seeds have moved to.
    pub fn seeds(&self) -> impl Iterator<Item = Result<CrawlUrl>> + use<> {
        self.store.seeds.iter().map(|guard| {
            let key = guard.key()?;
            let url = CrawlUrl::from_canonical(&String::from_utf8_lossy(&key));
            url.map_err(|error| Error::Record {
                keyspace: "seeds",
                why: error.to_string(),
            })
        })
    }

    /// Every host.
    pub fn hosts(&self) -> impl Iterator<Item = Result<HostRecord>> + use<> {
        self.store
            .hosts
            .iter()
            .map(|guard| decode("hosts", &guard.value()?))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.store.db.snapshot()
    }
}
