//! The doc index read from its files as they lie there, without opening the store: nothing is written, nothing
//! that is damaged stops it, and everything that is damaged is named.
//!
//! The store that a crawl works with takes a lock, replays its journals, removes what it does not know, and
//! ends at the first damaged block. That is right for whoever writes. Reading needs none of it: a keyspace is its
//! tables and what the journals add to them, and of two versions of a key the one with the higher sequence number
//! counts. Where a table or a list of tables is damaged, older versions of what was lost come to light.

mod blocks;
pub(crate) mod manifest;
mod space;
mod table;

use std::collections::Bound;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use lsm_tree::{Cache, DescriptorTable, Slice};

use crate::damage::{Damage, Damages, hex};
use crate::error::{Error, Result};
use crate::journal;
use crate::keyspaces::Tables;
use crate::record::FORMAT;
use crate::store::Store;
use crate::survey;
use crate::tables::Table;
use manifest::Listed;
pub(crate) use space::{Merge, Space};
use table::{Shelf, TableFile};

/// Table files that are held open at once.
const HANDLES: usize = 256;

/// Who else may have the index open meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Others who read.
    Shared,
    /// Nobody.
    Alone,
}

/// The files of an index.
pub(crate) struct Cold {
    damages: Damages,
    /// The store's own keyspace, then ours.
    spaces: Vec<Arc<Space>>,
    /// Keeps a crawl from changing the files meanwhile; none where there is nothing to lock.
    _lock: Option<File>,
}

impl Cold {
    pub(crate) fn open(path: &Path, memory: u64, hold: Hold) -> Result<Self> {
        let lock = lock(path, hold)?;
        let damages = Damages::default();
        let name = |file: &Path| name(path, file);
        let shelf = Shelf {
            cache: Arc::new(Cache::with_capacity_bytes(memory / 2)),
            handles: Arc::new(DescriptorTable::new(HANDLES)),
            damages: damages.clone(),
        };
        survey::outside(path, &mut |file, what| {
            damages.note(&name(file), None, what)
        })?;
        let mut spaces = Vec::new();
        for number in 0..survey::KEYSPACES {
            spaces.push(read_space(path, number, &shelf)?);
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
        if let Some(meta) = spaces.get(1).filter(|meta| meta.get(b"format").is_none()) {
            match last.is_none() && meta.tables.is_empty() {
                true => damages.note("*.jnl", None, survey::NOTHING_IS_LEFT),
                false => damages.note("meta", None, "the record of the format is lost"),
            }
        }
        Ok(Self {
            damages,
            spaces: spaces.into_iter().map(Arc::new).collect(),
            _lock: lock,
        })
    }

    /// The keyspaces, for whoever reads them.
    pub(crate) fn keyspaces(&self) -> Store {
        let mut spaces = self.spaces.iter().skip(1);
        let cold = |name| match spaces.next() {
            Some(space) => Ok(Table::cold(name, Arc::clone(space))),
            None => Ok(Table::closed(name)),
        };
        Tables::each(cold).map_or_else(|_| Store::closed(), Store::of)
    }

    /// Fails when the index is of another version.
    pub(crate) fn check_format(&self, path: &Path) -> Result<()> {
        let format = self.spaces.get(1).and_then(|meta| meta.get(b"format"));
        match format.as_deref() {
            None | Some([FORMAT]) => Ok(()),
            Some(other) => Err(Error::Version {
                path: path.into(),
                found: other.first().copied().unwrap_or(0),
                expected: FORMAT,
            }),
        }
    }

    pub(crate) fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Reads everything, and says all that is damaged. `legible` says what is wrong with a record.
    pub(crate) fn survey(
        &self,
        legible: impl Fn(&'static str, &[u8], &[u8]) -> Result<()>,
    ) -> Vec<Damage> {
        let store = self.keyspaces();
        let named = std::iter::once(None).chain(store.tables().map(|table| Some(table.name())));
        for (space, name) in self.spaces.iter().zip(named) {
            for (key, value) in space.scan((Bound::Unbounded, Bound::Unbounded)) {
                let Some(Err(error)) = name.map(|name| legible(name, &key, &value)) else {
                    continue;
                };
                self.note_record(name.unwrap_or_default(), &key, &error);
            }
            space.tables.iter().for_each(|table| table.verify());
        }
        self.damages.list()
    }

    /// Remembers that a record is not what was written.
    pub(crate) fn note_record(&self, keyspace: &str, key: &[u8], error: &Error) {
        let what = format!("key {}: {}", hex(key), error.in_short());
        self.damages.note(keyspace, None, what);
    }
}

/// A file as it is named to people: by its place in the index.
fn name(index: &Path, file: &Path) -> String {
    let short = file.strip_prefix(index).unwrap_or(file);
    short.to_string_lossy().into_owned()
}

/// Makes sure that no crawl works on the index. Where nothing can be locked, as on a medium that cannot be
/// written to and has no lock file, no crawl works either.
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
        Err(error) => return Err(Error::from(fjall::Error::from(error))),
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
fn read_space(path: &Path, number: u64, shelf: &Shelf) -> Result<Space> {
    let dir = path.join("keyspaces").join(number.to_string());
    let tables = dir.join("tables");
    let listed: Vec<std::result::Result<Listed, u64>> = match manifest::tables(&dir) {
        Ok(listed) => listed.into_iter().map(Ok).collect(),
        Err(fault) => {
            let what = format!("{}; every table beside it is read", fault.why);
            shelf.damages.note(&name(path, &fault.file), None, what);
            survey::numbered(&tables)?.into_iter().map(Err).collect()
        }
    };
    let mut space = Space::default();
    for entry in listed {
        let id = entry.map_or_else(|id| id, |listed| listed.id);
        let file = tables.join(id.to_string());
        let shown = name(path, &file);
        let table = TableFile::open(file, shown, number, entry, shelf);
        let table = table.map_err(fjall::Error::from)?;
        space.tables.push(Arc::new(table));
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
    });
    let read = read.map_err(fjall::Error::from)?;
    for (begin, end) in read.damaged {
        let what = format!(
            "{} bytes are not what was written: the commits there are lost",
            end - begin
        );
        damages.note(shown, Some(begin), what);
    }
    Ok(read.last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use crate::salvage::rescue;
    use crate::tx::Tx;

    #[test]
    fn a_damaged_index_of_another_version_is_left_alone() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("index");
        let store = Store::open(&path, 4 << 20).unwrap();
        let mut tx = Tx::new(&store);
        tx.put_raw(&store.meta, b"format", &[FORMAT + 1]);
        tx.commit().unwrap();
        drop(store);
        std::fs::remove_file(path.join("version")).unwrap();
        let refused = |error: Option<Error>| {
            assert!(matches!(error, Some(Error::Version { .. })), "{error:?}");
        };
        refused(rescue(&path, 4 << 20, true).err());
        refused(Reader::open(&path, 4 << 20).err());
        assert!(path.join("0.jnl").exists());
    }
}
