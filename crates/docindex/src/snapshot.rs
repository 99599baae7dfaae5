//! The state of an index at one position of its log, written to a stream and read from one: how a replica begins that
//! does not fold the log from its beginning. `docs/formats/snapshot.md` describes the bytes.
//!
//! Both ways run in little memory whatever the size of the index. What is written is one moment, while the owner goes on;
//! what is read is verified block by block, and becomes an index only when its end has been seen.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use orbweaver_coldstore::stream::{Block, Incoming, Outgoing};

use crate::error::{Error, Result};
use crate::keyspaces::{NAMES, legible};
use crate::reader::Reader;
use crate::record::FORMAT;
use crate::store::Store;
use crate::tx::Tx;

/// What a snapshot is of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// The format of the index.
    format: u8,
    /// The position in the log.
    position: u64,
    /// The keyspaces, in the order in which they follow.
    keyspaces: Vec<String>,
}

/// Records that are imported in one commit.
const GROUP: usize = 4096;

impl Reader {
    /// Writes the index as it is now, and returns the position of the log that it stands at. A damaged index is not
    /// written: that is an error, and what was written before it is no snapshot.
    pub fn export(&self, to: &mut dyn Write) -> Result<u64> {
        let store = self.store();
        let view = store.view();
        let applied = view.get(&store.meta, "applied")?;
        let position = applied.map(|bytes| crate::record::decode("meta", &bytes));
        let position = position.transpose()?.unwrap_or(0);
        let head = Head {
            format: FORMAT,
            position,
            keyspaces: NAMES.map(str::to_owned).to_vec(),
        };
        let head = postcard::to_stdvec(&head).map_err(|error| Error::Snapshot(error.to_string()));
        let mut out = Outgoing::begin(to, &head?)?;
        for table in store.tables() {
            out.keyspace(table.place());
            for row in view.iter(table) {
                let (key, value) = row.into_inner()?;
                legible(table.name(), &key, &value)?;
                out.row(&key, &value)?;
            }
        }
        // Read from its files, an index goes on past what is damaged.
        match self.damage().first() {
            Some(damage) => Err(Error::Snapshot(format!("the index is damaged: {damage}"))),
            None => Ok(out.end().map(|()| position)?),
        }
    }
}

/// Makes an index from a snapshot, in a place where there is none or an empty directory, and returns the position of the
/// log that it stands at. A snapshot that is damaged, cut short or of another version is refused, and leaves nothing
/// behind.
pub fn import(path: &Path, memory: u64, from: &mut dyn Read) -> Result<u64> {
    if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file() {
        return Err(Error::Occupied(path.into()));
    }
    let fresh = Unfinished::beside(path);
    let position = fill(&fresh.0, memory, from)?;
    fs::rename(&fresh.0, path).map_err(fjall::Error::from)?;
    if let Some(parent) = path.parent().filter(|parent| parent.is_dir()) {
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(fjall::Error::from)?;
    }
    Ok(position)
}

/// The place of an index that is not whole yet; gone when it is dropped before it has moved.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> Self {
        let fresh = Store::unfinished(path);
        // Left by a killed process that had the same number.
        let _ = fs::remove_dir_all(&fresh);
        Self(fresh)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Nothing is there when it has moved.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fill(path: &Path, memory: u64, from: &mut dyn Read) -> Result<u64> {
    let refused = |why: &str| Error::Snapshot(why.to_owned());
    let (head, mut records) = Incoming::begin(from)?;
    let head: Head = postcard::from_bytes(&head).map_err(|error| refused(&error.to_string()))?;
    if head.format != FORMAT {
        let found = head.format;
        let why = format!("it is of a doc index of format {found}, this program has {FORMAT}");
        return Err(Error::Snapshot(why));
    }
    if head.keyspaces != NAMES {
        return Err(refused("it has other keyspaces"));
    }
    let store = Store::open_at(path, memory)?;
    let tables = store.tables();
    let mut tx = Tx::new(&store);
    let mut waiting = 0;
    while let Block::Row(place, key, value) = records.read_on()? {
        let table = tables.get(place);
        let table = table.ok_or_else(|| refused("it has an unknown keyspace"))?;
        legible(table.name(), &key, &value).map_err(|error| Error::Snapshot(error.in_short()))?;
        tx.put_raw(table, &key, &value);
        waiting += 1;
        if waiting % GROUP == 0 {
            tx.flush()?;
        }
    }
    tx.commit()?;
    let position = store.meta::<u64>("applied")?.unwrap_or(0);
    if position != head.position {
        return Err(refused(
            "its records stand at another position than it says",
        ));
    }
    store.sync()?;
    Ok(position)
}
