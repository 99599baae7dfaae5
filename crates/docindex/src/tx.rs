//! The transaction: writes of one commit that can be read before they are made.
//!
//! Whoever reads through it sees the store with its own writes on top, point by point and in scans, so that what an
//! event does never depends on which events share its commit. Nothing reaches the store before [`Tx::commit`], and
//! then all of it does.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::RangeBounds;
use std::vec;

use fjall::{Database, Slice};
use serde::Serialize;
use serde::de::DeserializeOwned;

use orbweaver_coldstore::Keys;
use orbweaver_model::UrlKey;

use crate::error::{Error, Result};
use crate::faults;
use crate::record::{Fate, LinkRecord, decode, encode};
use crate::store::Store;
use crate::tables::{Row, Scan, Table, owned};

/// What a transaction does to one keyspace: a value, or none where the record goes.
type Writes = BTreeMap<Slice, Option<Slice>>;

/// The writes of one commit: all of them become visible and durable together.
pub(crate) struct Tx<'a> {
    store: &'a Store,
    /// By the place of the keyspace among all. Filled by what is put and removed, emptied by the commit; bounded by the
    /// events of one commit.
    writes: Vec<Writes>,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            writes: vec![Writes::new(); store.tables().len()],
            store,
        }
    }

    /// The keyspaces, to name them in calls. What is read from them directly misses the writes of this transaction.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    pub(crate) fn meta<T: Serialize>(&mut self, name: &str, value: &T) {
        self.put(&self.store.meta, name.as_bytes(), value);
    }

    pub(crate) fn put<T: Serialize>(&mut self, table: &Table, key: &[u8], value: &T) {
        self.write(table, key, Some(encode(value).into()));
    }

    pub(crate) fn mark(&mut self, table: &Table, key: &[u8]) {
        self.put_raw(table, key, &[]);
    }

    pub(crate) fn put_raw(&mut self, table: &Table, key: &[u8], value: &[u8]) {
        self.write(table, key, Some(value.into()));
    }

    pub(crate) fn remove(&mut self, table: &Table, key: &[u8]) {
        self.write(table, key, None);
    }

    fn write(&mut self, table: &Table, key: &[u8], value: Option<Slice>) {
        if let Some(writes) = self.writes.get_mut(table.place()) {
            writes.insert(key.into(), value);
        }
    }

    fn written(&self, table: &Table, key: &[u8]) -> Option<&Option<Slice>> {
        self.writes.get(table.place())?.get(key)
    }

    pub(crate) fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Slice>> {
        match self.written(table, key) {
            Some(value) => Ok(value.clone()),
            None => table.get(key),
        }
    }

    pub(crate) fn contains(&self, table: &Table, key: &[u8]) -> Result<bool> {
        match self.written(table, key) {
            Some(value) => Ok(value.is_some()),
            None => table.contains_key(key),
        }
    }

    pub(crate) fn link(&self, key: UrlKey) -> Result<Option<LinkRecord>> {
        self.read(&self.store.urls, &key.to_bytes())
    }

    pub(crate) fn fate(&self, key: UrlKey) -> Result<Option<Fate>> {
        self.read(&self.store.fates, &key.to_bytes())
    }

    fn read<T: DeserializeOwned>(&self, table: &Table, key: &[u8]) -> Result<Option<T>> {
        let bytes = self.get(table, key)?;
        bytes.map(|bytes| decode(table.name(), &bytes)).transpose()
    }

    /// All records of a keyspace as they are now; what is written while it runs does not appear in it.
    pub(crate) fn iter(&self, table: &Table) -> TxScan {
        self.scan(table, table.iter(), &owned::<&[u8]>(&..))
    }

    /// The same for the keys that begin so.
    pub(crate) fn prefix(&self, table: &Table, prefix: &[u8]) -> TxScan {
        let range = owned(&fjall::util::prefix_to_range(prefix));
        self.scan(table, table.prefix(prefix), &range)
    }

    fn scan(&self, table: &Table, stored: Scan, range: &Keys) -> TxScan {
        let writes = self.writes.get(table.place());
        let inside = |key: &&Slice| range.contains(*key);
        let written: Vec<_> = writes
            .into_iter()
            .flatten()
            .filter(|(key, _)| inside(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        TxScan {
            stored: stored.peekable(),
            written: written.into_iter().peekable(),
        }
    }

    /// Makes the writes.
    pub(crate) fn commit(self) -> Result<()> {
        faults::call()?;
        let db = self.store.database()?;
        let mut batch = db.batch();
        for (table, writes) in self.store.tables().into_iter().zip(self.writes) {
            let Some(keyspace) = table.keyspace() else {
                return Err(Error::Stopped);
            };
            for (key, value) in writes {
                match value {
                    Some(value) => batch.insert(keyspace, key, value),
                    None => batch.remove(keyspace, key),
                }
            }
        }
        self.store.breathe(db)?;
        batch.commit()?;
        self.store.tend(db)?;
        faults::committed()
    }

    /// Makes the writes and begins with the next.
    pub(crate) fn flush(&mut self) -> Result<()> {
        std::mem::replace(self, Self::new(self.store)).commit()
    }
}

/// Records in the order of their keys: those of the store with those of a transaction over them.
pub(crate) struct TxScan {
    stored: Peekable<Scan>,
    written: Peekable<vec::IntoIter<(Slice, Option<Slice>)>>,
}

impl Iterator for TxScan {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            let stored = self.stored.peek().map(Row::peek);
            let over = match (stored, self.written.peek()) {
                // An error comes first, for nothing after it can be trusted.
                (Some(None), _) | (Some(_), None) => return self.stored.next(),
                (Some(Some(stored)), Some((written, _))) if stored < written => {
                    return self.stored.next();
                }
                (Some(Some(stored)), Some((written, _))) => stored == written,
                (None, _) => false,
            };
            if over {
                self.stored.next();
            }
            if let (key, Some(value)) = self.written.next()? {
                return Some(Row::of(key, value));
            }
        }
    }
}

impl Store {
    fn database(&self) -> Result<&Database> {
        self.db.as_ref().ok_or(Error::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn rows(scan: TxScan) -> Vec<(Vec<u8>, Vec<u8>)> {
        scan.map(|row| row.into_inner().unwrap())
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// Whatever was committed before and whatever is written now, reading is as if it were one map.
        #[test]
        fn reads_its_own_writes(steps in prop::collection::vec((0..3u8, 0..20u8, any::<u8>()), 0..60)) {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(&dir.path().join("index"), 8 << 20).unwrap();
            let mut model = BTreeMap::new();
            let mut tx = Tx::new(&store);
            for (what, n, value) in steps {
                let key = vec![n / 5, n];
                match what {
                    0 => {
                        tx.put_raw(&store.queue, &key, &[value]);
                        model.insert(key, vec![value]);
                    }
                    1 => {
                        tx.remove(&store.queue, &key);
                        model.remove(&key);
                    }
                    _ => tx.flush().unwrap(),
                }
                let all: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(rows(tx.iter(&store.queue)), all.clone());
                let some = all.into_iter().filter(|(key, _)| key[0] == 2).collect::<Vec<_>>();
                prop_assert_eq!(rows(tx.prefix(&store.queue, &[2])), some);
                for n in 0..20u8 {
                    let key = [n / 5, n];
                    let read = tx.get(&store.queue, &key).unwrap().map(|value| value.to_vec());
                    prop_assert_eq!(tx.contains(&store.queue, &key).unwrap(), read.is_some());
                    prop_assert_eq!(read, model.get(&key[..]).cloned());
                }
            }
        }
    }

    #[test]
    fn a_closed_store_takes_nothing() {
        let store = Store::closed();
        let mut tx = Tx::new(&store);
        tx.put_raw(&store.queue, b"k", b"v");
        assert!(tx.get(&store.queue, b"other").is_err());
        assert!(tx.commit().is_err());
    }
}
