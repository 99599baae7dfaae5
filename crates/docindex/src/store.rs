//! The store under the doc index: opened, synced, kept from falling behind.

use std::fs;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fjall::config::PartitioningPolicy;
use fjall::{AbstractTree, Database, KeyspaceCreateOptions, PersistMode};
use serde::de::DeserializeOwned;

use orbweaver_coldstore::survey;
use orbweaver_model::UrlKey;

use crate::error::{Error, Result};
use crate::faults;
use crate::keyspaces::{NAMES, Tables};
use crate::record::{FORMAT, Fate, decode};
use crate::tables::{Table, View};

/// The extension of a store that is being made, before the number of the process.
const UNFINISHED: &str = "new-";

/// Journals are kept to this, the least that the store takes, because all of them are read when it is opened
/// after a crash.
const JOURNALS: u64 = 64 << 20;

/// The time between two looks at whether the store has caught up.
const BREATH: Duration = Duration::from_millis(2);

/// The store, open or closed. Cheap to clone; it is closed when the last clone is gone.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) db: Option<Database>,
    /// Bytes of a write buffer at which it goes to disk.
    buffer: u64,
    /// Journals when the write buffers were last emptied for their sake.
    journals: Arc<AtomicUsize>,
    tables: Tables,
}

/// Its keyspaces are named as if they were its own.
impl Deref for Store {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl Store {
    /// A store that is not there: every call to it fails.
    pub(crate) fn closed() -> Self {
        Self {
            db: None,
            buffer: 0,
            journals: Arc::default(),
            tables: Tables::closed(),
        }
    }

    /// Opens or creates the store; `memory` bounds its caches and write buffers.
    pub(crate) fn open(path: &Path, memory: u64) -> Result<Self> {
        if !path.exists() {
            Self::create(path, memory)?;
            // What was made just now needs no survey, which would read 64 MiB of empty journal.
            return Self::open_at(path, memory);
        }
        Self::reopen(path, memory)
    }

    /// Opens a store that is there.
    pub(crate) fn reopen(path: &Path, memory: u64) -> Result<Self> {
        let last = survey::inspect(path, NAMES.len())?;
        let store = Self::open_at(path, memory)?;
        store.agrees(last)?;
        Ok(store)
    }

    /// Fails when tables hold what no journal does. Every commit is in a journal first, and the last one stays there until
    /// the next; but tables reach the disk by themselves, so that a power cut may leave some keyspaces ahead of others.
    fn agrees(&self, last: Option<u64>) -> Result<()> {
        let tables = self.tables().into_iter().filter_map(Table::keyspace);
        let newest = tables.filter_map(|keyspace| keyspace.tree.get_highest_persisted_seqno());
        match newest.max() > last {
            true => Err(Error::Record {
                keyspace: "journal",
                why: survey::END_IS_LOST.into(),
            }),
            false => Ok(()),
        }
    }

    /// Makes the store beside its place and moves it there when it is whole, for one that a kill left half
    /// made could never be opened again.
    fn create(path: &Path, memory: u64) -> Result<()> {
        let fresh = Self::unfinished(path);
        // Left by a killed process that had the same number.
        let _ = fs::remove_dir_all(&fresh);
        Self::open_at(&fresh, memory)?.sync()?;
        match fs::rename(&fresh, path) {
            // Another process was quicker; whether it still works is for the lock to say.
            Err(_) if path.exists() => Ok(fs::remove_dir_all(&fresh).map_err(fjall::Error::from)?),
            moved => Ok(moved.map_err(fjall::Error::from)?),
        }
    }

    /// Where a store is made that is moved to `path` when it is whole.
    pub(crate) fn unfinished(path: &Path) -> PathBuf {
        path.with_extension(format!("{UNFINISHED}{}", std::process::id()))
    }

    /// Removes what killed processes left beside the store before it was whole.
    pub(crate) fn sweep(path: &Path) {
        let (Some(parent), Some(stem)) = (path.parent(), path.file_stem()) else {
            return;
        };
        let prefix = format!("{}.{UNFINISHED}", stem.to_string_lossy());
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // What cannot be removed is in nobody's way.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    pub(crate) fn open_at(path: &Path, memory: u64) -> Result<Self> {
        faults::call()?;
        let builder = Database::builder(path)
            .cache_size((memory / 8).max(4 << 20))
            .max_journaling_size(JOURNALS)
            .worker_threads(1);
        // Some damage to its files makes the store panic while it opens them.
        let opened = panic::catch_unwind(AssertUnwindSafe(|| builder.open()));
        let db = match opened.unwrap_or(Err(fjall::Error::Unrecoverable)) {
            Err(fjall::Error::Locked) => return Err(Error::InUse(path.into())),
            opened => opened?,
        };
        // The store would keep the size of its write buffers from when it was made, but budgets change from run
        // to run: it gets its own largest, and `tend` keeps ours.
        // Filters and block indexes in parts on every level: whole ones have half a megabyte for each table, and
        // a cache that is too small for all of them would read one for each question.
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(64 << 20)
                .filter_block_partitioning_policy(PartitioningPolicy::all(true))
                .index_block_partitioning_policy(PartitioningPolicy::all(true))
        };
        let open = |place, name: &'static str| -> Result<Table> {
            Ok(Table::new(place, name, db.keyspace(name, options)?))
        };
        let keyspaces = Self {
            tables: Tables::each(open)?,
            // Four are much in use, each with one that fills and one or two on their way to disk: a quarter
            // of the memory is in use at most times.
            buffer: (memory / 32).clamp(1 << 20, 32 << 20),
            journals: Arc::new(AtomicUsize::new(db.journal_count())),
            db: Some(db.clone()),
        };
        keyspaces.check_format(path)?;
        Ok(keyspaces)
    }

    fn check_format(&self, path: &Path) -> Result<()> {
        match self.meta.get("format")?.as_deref() {
            None => {
                faults::call()?;
                let meta = self.meta.keyspace().ok_or(Error::Stopped)?;
                Ok(meta.insert("format", [FORMAT])?)
            }
            Some([FORMAT]) => Ok(()),
            Some(other) => Err(Error::Version {
                path: path.into(),
                found: other.first().copied().unwrap_or(0),
                expected: FORMAT,
            }),
        }
    }

    pub(crate) fn meta<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.meta
            .get(name)?
            .map(|bytes| decode("meta", &bytes))
            .transpose()
    }

    pub(crate) fn fate(&self, key: UrlKey) -> Result<Option<Fate>> {
        self.fates
            .get(key.to_bytes())?
            .map(|bytes| decode("fates", &bytes))
            .transpose()
    }

    /// Everything acknowledged so far survives the loss of power after this.
    pub(crate) fn sync(&self) -> Result<()> {
        faults::call()?;
        let db = self.db.as_ref().ok_or(Error::Stopped)?;
        db.persist(PersistMode::SyncData)?;
        faults::committed()
    }

    /// The store as it is now.
    pub(crate) fn view(&self) -> View {
        View(self.db.as_ref().map(Database::snapshot))
    }

    /// The same with its records from elsewhere than an open store.
    pub(crate) fn of(tables: Tables) -> Self {
        Self {
            tables,
            ..Self::closed()
        }
    }

    /// Sends full write buffers to disk, and all of them when a journal waits for that. The store itself would
    /// let journals pile up behind a keyspace that is seldom written to.
    pub(crate) fn tend(&self, db: &Database) -> Result<()> {
        let journals = db.journal_count();
        let all = journals > self.journals.swap(journals, Ordering::Relaxed);
        let least = if all { 0 } else { self.buffer };
        for keyspace in self.tables().into_iter().filter_map(Table::keyspace) {
            if keyspace.tree.active_memtable().size() > least {
                keyspace.rotate_memtable()?;
            }
        }
        Ok(())
    }

    /// Waits while the store is behind with its own work. A commit that finds four write buffers waiting
    /// or thirty tables unsorted waits for that in the store itself, and forever when the store's thread
    /// has met a full disk and ended; here the end of that thread is seen.
    pub(crate) fn breathe(&self, db: &Database) -> Result<()> {
        let behind = |table: &&Table| {
            table.keyspace().is_some_and(|keyspace| {
                keyspace.tree.sealed_memtable_count() >= 2 || keyspace.tree.l0_run_count() >= 28
            })
        };
        while self.tables().iter().any(behind) {
            // Writes nothing; fails when the store has given up.
            db.persist(PersistMode::Buffer)?;
            thread::sleep(BREATH);
        }
        Ok(())
    }
}
