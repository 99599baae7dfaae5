//! One keyspace as the rest of the crate sees it: named in every complaint, closed when the store is, and
//! with a fault wherever a test wants one.

use std::ops::RangeBounds;

use fjall::{Keyspace, Readable, Snapshot, UserKey, UserValue};

use crate::error::{Error, Result};
use crate::faults;

/// A keyspace. When the store is closed every call fails.
#[derive(Clone)]
pub(crate) struct Table {
    name: &'static str,
    keyspace: Option<Keyspace>,
}

impl Table {
    pub(crate) fn new(name: &'static str, keyspace: Keyspace) -> Self {
        Self {
            name,
            keyspace: Some(keyspace),
        }
    }

    pub(crate) const fn closed(name: &'static str) -> Self {
        Self {
            name,
            keyspace: None,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The keyspace itself, for whoever writes.
    pub(crate) fn keyspace(&self) -> Option<&Keyspace> {
        self.keyspace.as_ref()
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<UserValue>> {
        let keyspace = self.open()?;
        keyspace.get(key).map_err(|error| self.blame(error))
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let keyspace = self.open()?;
        keyspace
            .contains_key(key)
            .map_err(|error| self.blame(error))
    }

    pub(crate) fn iter(&self) -> Scan {
        self.scan(Keyspace::iter)
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Scan {
        self.scan(|keyspace| keyspace.range(range))
    }

    pub(crate) fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(|keyspace| keyspace.prefix(prefix))
    }

    fn scan(&self, iter: impl FnOnce(&Keyspace) -> fjall::Iter) -> Scan {
        Scan {
            name: self.name,
            items: self.open().map(iter).map_err(Some),
        }
    }

    fn open(&self) -> Result<&Keyspace> {
        faults::call()?;
        self.keyspace.as_ref().ok_or(Error::Stopped)
    }

    fn blame(&self, error: fjall::Error) -> Error {
        Error::reading(self.name, error)
    }
}

/// The store as it is at one moment.
pub(crate) struct View(pub(crate) Option<Snapshot>);

impl View {
    pub(crate) fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>> {
        let (view, keyspace) = self.open(table)?;
        view.get(keyspace, key).map_err(|error| table.blame(error))
    }

    pub(crate) fn contains_key(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        let (view, keyspace) = self.open(table)?;
        view.contains_key(keyspace, key)
            .map_err(|error| table.blame(error))
    }

    pub(crate) fn iter(&self, table: &Table) -> Scan {
        self.scan(table, |view, keyspace| view.iter(keyspace))
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, table: &Table, range: impl RangeBounds<K>) -> Scan {
        self.scan(table, |view, keyspace| view.range(keyspace, range))
    }

    fn scan(&self, table: &Table, iter: impl FnOnce(&Snapshot, &Keyspace) -> fjall::Iter) -> Scan {
        Scan {
            name: table.name,
            items: self
                .open(table)
                .map(|(view, keyspace)| iter(view, keyspace))
                .map_err(Some),
        }
    }

    fn open<'a>(&'a self, table: &'a Table) -> Result<(&'a Snapshot, &'a Keyspace)> {
        let keyspace = table.open()?;
        Ok((self.0.as_ref().ok_or(Error::Stopped)?, keyspace))
    }
}

/// Rows in the order of their keys. After an error it ends: what the store's own iterator does then is
/// to leave records out in silence.
pub(crate) struct Scan {
    name: &'static str,
    items: std::result::Result<fjall::Iter, Option<Error>>,
}

impl Scan {
    fn wrap(&mut self, next: impl FnOnce(&mut fjall::Iter) -> Option<fjall::Guard>) -> Option<Row> {
        match &mut self.items {
            Err(error) => error.take().map(|error| Row(Err(error))),
            Ok(items) => {
                let pair = next(items)?.into_inner();
                if pair.is_err() {
                    self.items = Err(None);
                }
                Some(Row(pair.map_err(|error| Error::reading(self.name, error))))
            }
        }
    }
}

impl Iterator for Scan {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.wrap(fjall::Iter::next)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Row> {
        self.wrap(fjall::Iter::next_back)
    }
}

/// One record of a scan, or why it cannot be read.
pub(crate) struct Row(Result<(UserKey, UserValue)>);

impl Row {
    pub(crate) fn into_inner(self) -> Result<(UserKey, UserValue)> {
        self.0
    }

    pub(crate) fn key(self) -> Result<UserKey> {
        self.0.map(|(key, _)| key)
    }

    pub(crate) fn value(self) -> Result<UserValue> {
        self.0.map(|(_, value)| value)
    }
}
