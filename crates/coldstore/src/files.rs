//! All files of a store: its tables, its journals, and who may have them open.

use std::collections::Bound;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use fjall::Slice;
use lsm_tree::{Cache, DescriptorTable};

use crate::damage::{Damage, Damages, hex};
use crate::error::{Error, Result};
use crate::journal;
use crate::manifest::{self, Listed};
use crate::space::Space;
use crate::survey;
use crate::table::{Shared, TableFile};

/// Table files that are held open at once.
const HANDLES: usize = 256;

/// Who else may have the store open meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Others who read.
    Shared,
    /// Nobody.
    Alone,
}

/// The files of a store.
pub struct ColdStore {
    damages: Damages,
    /// The store's own keyspace, then those of its user.
    spaces: Vec<Arc<Space>>,
    /// Keeps others from changing the files meanwhile; none where there is nothing to lock.
    _lock: Option<File>,
}

impl ColdStore {
    /// Opens the files of a store in which so many keyspaces were made; `memory` bounds what is kept of them in RAM.
    pub fn open(path: &Path, memory: u64, hold: Hold, keyspaces: usize) -> Result<Self> {
        let lock = lock(path, hold)?;
        let damages = Damages::default();
        let name = |file: &Path| name(path, file);
        let shared = Shared {
            cache: Arc::new(Cache::with_capacity_bytes(memory / 2)),
            handles: Arc::new(DescriptorTable::new(HANDLES)),
            damages: damages.clone(),
        };
        survey::outside(path, &mut |file, what| {
            damages.note(&name(file), None, what)
        })?;
        let mut spaces = Vec::new();
        for number in 0..=keyspaces as u64 {
            spaces.push(read_space(path, number, &shared)?);
        }
        let mut last = None;
        for file in survey::journals(path)? {
            let read = read_journal(&file, &name(&file), &mut spaces, &damages)?;
            last = last.max(read);
        }
        let newest = spaces.iter().skip(1).filter_map(Space::newest);
        if newest.max() > last {
            damages.note("*.jnl", None, survey::END_IS_LOST);
        }
        if last.is_none() && spaces.get(1).is_some_and(|first| first.tables.is_empty()) {
            damages.note("*.jnl", None, survey::NOTHING_IS_LEFT);
        }
        Ok(Self {
            damages,
            spaces: spaces.into_iter().map(Arc::new).collect(),
            _lock: lock,
        })
    }

    /// The keyspaces, in the order in which they were made.
    pub fn spaces(&self) -> impl Iterator<Item = &Arc<Space>> {
        self.spaces.iter().skip(1)
    }

    /// What was found to be damaged so far.
    pub fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Reads everything, and says all that is damaged. `check` says what is wrong with a record, by the place of its
    /// keyspace, and how that keyspace is called.
    pub fn survey<'a>(
        &self,
        check: impl Fn(usize, &[u8], &[u8]) -> std::result::Result<(), (&'a str, String)>,
    ) -> Vec<Damage> {
        for (number, space) in self.spaces.iter().enumerate() {
            for (key, value) in space.scan((Bound::Unbounded, Bound::Unbounded)) {
                // What the store keeps for itself is its own to judge.
                let Some(place) = number.checked_sub(1) else {
                    continue;
                };
                if let Err((keyspace, why)) = check(place, &key, &value) {
                    self.note_record(keyspace, &key, &why);
                }
            }
            space.tables.iter().for_each(|table| table.verify());
        }
        self.damages.list()
    }

    /// Remembers that a record is not what was written.
    pub fn note_record(&self, keyspace: &str, key: &[u8], why: &str) {
        let what = format!("key {}: {why}", hex(key));
        self.damages.note(keyspace, None, what);
    }
}

/// A file as it is named to people: by its place in the store.
fn name(store: &Path, file: &Path) -> String {
    let short = file.strip_prefix(store).unwrap_or(file);
    short.to_string_lossy().into_owned()
}

/// Makes sure that nobody works on the store. Where nothing can be locked, as on a medium that cannot be
/// written to and has no lock file, nobody works either.
fn lock(path: &Path, hold: Hold) -> Result<Option<File>> {
    let file = path.join("lock");
    let opened = match hold {
        Hold::Shared => File::open(&file),
        Hold::Alone => OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file),
    };
    let handle = match opened {
        Ok(handle) => handle,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let locked = match hold {
        Hold::Shared => handle.try_lock_shared(),
        Hold::Alone => handle.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(handle)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(path.into())),
        // A file system without locks.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Opens the tables of one keyspace: those that its list names, or all that are there when that is damaged.
fn read_space(path: &Path, number: u64, shared: &Shared) -> Result<Space> {
    let dir = path.join("keyspaces").join(number.to_string());
    let tables = dir.join("tables");
    let listed: Vec<std::result::Result<Listed, u64>> = match manifest::tables(&dir) {
        Ok(listed) => listed.into_iter().map(Ok).collect(),
        Err(fault) => {
            let what = format!("{}; every table beside it is read", fault.why);
            shared.damages.note(&name(path, &fault.file), None, what);
            survey::numbered(&tables)?.into_iter().map(Err).collect()
        }
    };
    let mut space = Space::default();
    for entry in listed {
        let id = entry.map_or_else(|id| id, |listed| listed.id);
        let file = tables.join(id.to_string());
        let shown = name(path, &file);
        let table = TableFile::open(file, shown, number, entry, shared);
        space.tables.push(Arc::new(table?));
    }
    Ok(space)
}

/// Adds to the keyspaces what a journal says of them; the sequence number of its last commit.
fn read_journal(
    file: &Path,
    shown: &str,
    spaces: &mut [Space],
    damages: &Damages,
) -> Result<Option<u64>> {
    let read = journal::read(file, &mut |seqno, writes| {
        for write in writes {
            let number = usize::try_from(write.space).unwrap_or(usize::MAX);
            if let Some(space) = spaces.get_mut(number) {
                let value = write.value.map(Slice::from);
                space.write(Slice::from(write.key), seqno, value);
            }
        }
    })?;
    for (begin, end) in read.damaged {
        let what = format!(
            "{} bytes are damaged: the commits there are lost",
            end - begin
        );
        damages.note(shown, Some(begin), what);
    }
    Ok(read.last)
}
