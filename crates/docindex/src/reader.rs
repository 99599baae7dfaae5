//! Reading the doc index without changing it.
//!
//! A reader of a running crawl asks the store that the crawl has open. One of a crawl that does not run reads the
//! files, goes on past whatever is damaged, and remembers what that was.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use fjall::{UserKey, UserValue};
use serde::de::DeserializeOwned;

use orbweaver_coldstore::{Damage, Hold, survey};
use orbweaver_model::{CrawlUrl, KeySeed, Ledger, RobotsRecord, Timestamp, UrlKey};
use orbweaver_seen::{Known, Roles};

use crate::cold::Cold;
use crate::error::{Error, Result};
use crate::keyspaces::queue_key;
use crate::record::{ClaimRecord, Fate, HostRecord, LinkRecord, decode};
use crate::store::Store;
use crate::tables::{Row, Scan};

/// How long a reader waits for another; a listing of millions of URLs that nobody reads may take forever.
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
    /// Until it is requested again.
    Retry {
        /// When that may be.
        due: Timestamp,
    },
}

/// The store that readers use. Its owner takes it away while it is opened again.
#[derive(Clone)]
pub struct Shared(Arc<RwLock<Store>>);

impl Shared {
    pub(crate) fn of(store: &Store) -> Self {
        Self(Arc::new(RwLock::new(store.clone())))
    }

    pub(crate) fn set(&self, store: Store) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    fn get(&self) -> Store {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// What the seen-set asks of it.
impl Known for Shared {
    type Error = Error;

    fn knows(&self, key: UrlKey) -> Result<bool> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        store.urls.contains_key(key.to_bytes())
    }

    fn roles(&self, key: UrlKey) -> Result<Option<Roles>> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = store.urls.get(key.to_bytes())?;
        let record = bytes.map(|bytes| decode::<LinkRecord>("urls", &bytes));
        Ok(record.transpose()?.map(|record| record.roles()))
    }
}

/// Which URLs are known.
pub type Seen = orbweaver_seen::Seen<Shared>;

/// A view of the index for listings. Cheap to clone; each listing sees one moment.
#[derive(Clone)]
pub struct Reader {
    shared: Shared,
    pub(crate) seed: KeySeed,
    /// The files, when they are what is read.
    pub(crate) cold: Option<Arc<Cold>>,
}

impl Reader {
    pub(crate) fn new(shared: Shared, seed: KeySeed) -> Self {
        Self {
            shared,
            seed,
            cold: None,
        }
    }

    /// The store as it is open now.
    pub(crate) fn store(&self) -> Store {
        self.shared.get()
    }

    /// Reads the index of a crawl that is not running; nothing is written. While another process works on it
    /// this waits a little, for that may be one that ends just now.
    pub fn open(path: &Path, memory: u64) -> Result<Self> {
        if survey::is_empty(path)? {
            return Err(Error::Missing(path.into()));
        }
        let began = Instant::now();
        let cold = loop {
            match Cold::open(path, memory, Hold::Shared) {
                Err(Error::InUse(_)) if began.elapsed() < PATIENCE => thread::sleep(PAUSE),
                opened => break opened?,
            }
        };
        cold.check_format(path)?;
        let store = cold.keyspaces();
        let mut reader = Self {
            shared: Shared::of(&store),
            seed: KeySeed(0),
            cold: Some(Arc::new(cold)),
        };
        match reader.meta("seed")? {
            Some(seed) => reader.seed = seed,
            None if store.urls.iter().next().is_none() => {}
            None => reader.note("meta", b"seed", no_seed())?,
        }
        Ok(reader)
    }

    /// What was found to be damaged so far, in a crawl that is not running.
    pub fn damage(&self) -> Vec<Damage> {
        let cold = self.cold.as_ref();
        cold.map(|cold| cold.damages().list()).unwrap_or_default()
    }

    /// Remembers that a record is damaged. In a running crawl that is an error: the crawl will save the rest.
    fn note(&self, keyspace: &str, key: &[u8], error: Error) -> Result<()> {
        match &self.cold {
            Some(cold) if error.is_damage() => {
                cold.note_record(keyspace, key, &error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Reads a record; one that is damaged counts as absent in a crawl that is not running.
    fn read<T: DeserializeOwned>(
        &self,
        keyspace: &'static str,
        key: &[u8],
        value: Option<UserValue>,
    ) -> Result<Option<T>> {
        match value.map(|value| decode(keyspace, &value)).transpose() {
            Err(error) => self.note(keyspace, key, error).map(|()| None),
            read => read,
        }
    }

    fn meta<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.read("meta", name.as_bytes(), self.store().meta.get(name)?)
    }

    /// The secret that keys this crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        self.seed
    }

    /// The counts. When their record is lost they are counted anew, all but requests and bytes.
    pub fn ledger(&self) -> Result<Ledger> {
        if let Some(ledger) = self.meta("ledger")? {
            return Ok(ledger);
        }
        let mut ledger = Ledger::default();
        for entry in self.entries() {
            ledger.accept();
            let fate = entry?.fate;
            ledger.pages += u64::from(fate.as_ref().is_some_and(Fate::is_page));
            if let Some(fate) = fate.filter(|fate| fate.due.is_none()) {
                ledger.finish(&fate.report.outcome);
            }
        }
        Ok(ledger)
    }

    /// How far the results of a store elsewhere are folded; none when the archive is beside the index.
    pub fn results(&self) -> Result<Option<u64>> {
        self.meta("results")
    }

    /// How far the results of the archive beside the index are folded; none before the first.
    pub fn followed(&self) -> Result<Option<u64>> {
        self.meta("followed")
    }

    /// One URL.
    pub fn entry(&self, key: UrlKey) -> Result<Option<Entry>> {
        let store = self.store();
        let key = key.to_bytes();
        let Some(link) = self.read("urls", &key, store.urls.get(key)?)? else {
            return Ok(None);
        };
        let fate = self.read("fates", &key, store.fates.get(key)?)?;
        Ok(Some(Entry { link, fate }))
    }

    /// How a URL became known.
    pub fn link(&self, key: UrlKey) -> Result<Option<LinkRecord>> {
        let key = key.to_bytes();
        self.read("urls", &key, self.store().urls.get(key)?)
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
        let attempts = entry.fate.as_ref().map_or(0, |fate| fate.attempts);
        let open = |claim: &orbweaver_model::Claimed| {
            claim.key == key && (due.is_none() || attempts <= claim.attempts)
        };
        // The newest counts: a batch of long ago may still name a URL that has been claimed again since.
        let mut since = None;
        for row in view.iter(&store.claims) {
            let (number, value) = row.into_inner()?;
            let batch: Option<ClaimRecord> = self.read("claims", &number, Some(value))?;
            if let Some(batch) = batch.filter(|batch| batch.urls.iter().any(open)) {
                since = Some(batch.at);
            }
        }
        let claimed = since.map(|since| Rest::Claimed { since });
        Ok(claimed.or(due.map(|due| Rest::Retry { due })))
    }

    /// The robots.txt kept for an origin.
    pub fn robots(&self, origin: &str) -> Result<Option<RobotsRecord>> {
        let value = self.store().robots.get(origin)?;
        self.read("robots", origin.as_bytes(), value)
    }

    /// What is known of a host.
    pub fn host(&self, name: &str) -> Result<Option<HostRecord>> {
        let hash = self.seed.host(name).to_be_bytes();
        self.read("hosts", &hash, self.store().hosts.get(hash)?)
    }

    /// Every URL, ordered by key, as of now.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + use<> {
        let store = self.store();
        let view = store.view();
        Entries {
            reader: self.clone(),
            urls: view.iter(&store.urls),
            fates: view.iter(&store.fates),
            fate: None,
        }
    }

    /// Every seed, those that were given and those that seeds have moved to.
    pub fn seeds(&self) -> impl Iterator<Item = Result<CrawlUrl>> + use<> {
        let reader = self.clone();
        self.store().seeds.iter().filter_map(move |row| {
            let key = match row.key() {
                Ok(key) => key,
                Err(error) => return Some(Err(error)),
            };
            let url = CrawlUrl::from_canonical(&String::from_utf8_lossy(&key));
            let why = match url {
                Ok(url) => return Some(Ok(url)),
                Err(error) => error.to_string(),
            };
            let keyspace = "seeds";
            let noted = reader.note(keyspace, &key, Error::Record { keyspace, why });
            noted.err().map(Err)
        })
    }

    /// Every host.
    pub fn hosts(&self) -> impl Iterator<Item = Result<HostRecord>> + use<> {
        let reader = self.clone();
        self.store().hosts.iter().filter_map(move |row| {
            let (key, value) = match row.into_inner() {
                Ok(pair) => pair,
                Err(error) => return Some(Err(error)),
            };
            reader.read("hosts", &key, Some(value)).transpose()
        })
    }
}

/// Every URL with its fate: two listings in the same order, side by side.
struct Entries {
    reader: Reader,
    urls: Scan,
    fates: Scan,
    /// The next fate, when it belongs to a later URL.
    fate: Option<(UserKey, UserValue)>,
}

impl Entries {
    fn fate_of(&mut self, key: &UserKey) -> Result<Option<Fate>> {
        loop {
            let next = match self.fate.take() {
                Some(next) => next,
                None => match self.fates.next() {
                    Some(row) => row.into_inner()?,
                    None => return Ok(None),
                },
            };
            match next.0.cmp(key) {
                Ordering::Less => {}
                Ordering::Equal => return self.reader.read("fates", key, Some(next.1)),
                Ordering::Greater => {
                    self.fate = Some(next);
                    return Ok(None);
                }
            }
        }
    }

    fn entry(&mut self, row: Row) -> Result<Option<Entry>> {
        let (key, value) = row.into_inner()?;
        let fate = self.fate_of(&key)?;
        let link = self.reader.read("urls", &key, Some(value))?;
        Ok(link.map(|link| Entry { link, fate }))
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            let row = self.urls.next()?;
            if let Some(entry) = self.entry(row).transpose() {
                return Some(entry);
            }
        }
    }
}

fn no_seed() -> Error {
    Error::Record {
        keyspace: "meta",
        why: "the secret that keys all records is gone: single URLs and hosts cannot be looked up"
            .into(),
    }
}
