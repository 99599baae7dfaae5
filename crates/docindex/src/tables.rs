//! One keyspace as the rest of the crate sees it: named in every complaint, closed when the store is, and
//! with a fault wherever a test wants one.

use std::collections::Bound;
use std::ops::RangeBounds;
use std::sync::Arc;

use fjall::{Keyspace, Readable, Slice, Snapshot, UserKey, UserValue};

use orbweaver_coldstore::{Keys, Merge, Space};

use crate::error::{Error, Result};
use crate::faults;

/// A keyspace.
#[derive(Clone)]
pub(crate) struct Table {
    name: &'static str,
    /// Its place among all keyspaces.
    place: usize,
    source: Source,
}

/// Where the records of a keyspace come from.
#[derive(Clone)]
enum Source {
    /// Nowhere: every call fails.
    Closed,
    /// The store.
    Store(Keyspace),
    /// Its files, which nobody writes to.
    Cold(Arc<Space>),
}

impl Table {
    pub(crate) fn new(place: usize, name: &'static str, keyspace: Keyspace) -> Self {
        let source = Source::Store(keyspace);
        Self {
            name,
            place,
            source,
        }
    }

    pub(crate) fn closed(place: usize, name: &'static str) -> Self {
        let source = Source::Closed;
        Self {
            name,
            place,
            source,
        }
    }

    pub(crate) fn cold(place: usize, name: &'static str, space: Arc<Space>) -> Self {
        let source = Source::Cold(space);
        Self {
            name,
            place,
            source,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its place among all keyspaces.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// The keyspace itself, for whoever writes.
    pub(crate) fn keyspace(&self) -> Option<&Keyspace> {
        match &self.source {
            Source::Store(keyspace) => Some(keyspace),
            Source::Closed | Source::Cold(_) => None,
        }
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<UserValue>> {
        if let Source::Cold(space) = &self.source {
            return Ok(space.get(key.as_ref()));
        }
        let keyspace = self.open()?;
        keyspace.get(key).map_err(|error| self.blame(error))
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        if let Source::Cold(space) = &self.source {
            return Ok(space.get(key.as_ref()).is_some());
        }
        let keyspace = self.open()?;
        keyspace
            .contains_key(key)
            .map_err(|error| self.blame(error))
    }

    pub(crate) fn iter(&self) -> Scan {
        self.scan::<&[u8]>(.., |keyspace, _| keyspace.iter())
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Scan {
        self.scan(range, |keyspace, range| keyspace.range(range))
    }

    pub(crate) fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.range(fjall::util::prefix_to_range(prefix.as_ref()))
    }

    fn scan<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        iter: impl FnOnce(&Keyspace, Keys) -> fjall::Iter,
    ) -> Scan {
        let range = owned(&range);
        let items = match &self.source {
            Source::Cold(space) => Ok(Items::Cold(Box::new(space.scan(range)))),
            _ => self
                .open()
                .map(|keyspace| Items::Store(iter(keyspace, range))),
        };
        Scan {
            name: self.name,
            items: items.map_err(Some),
        }
    }

    fn open(&self) -> Result<&Keyspace> {
        faults::call()?;
        self.keyspace().ok_or(Error::Stopped)
    }

    fn blame(&self, error: fjall::Error) -> Error {
        Error::reading(self.name, error)
    }
}

pub(crate) fn owned<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Keys {
    let own = |bound: Bound<&K>| bound.map(|key| Slice::from(key.as_ref()));
    (own(range.start_bound()), own(range.end_bound()))
}

/// The store as it is at one moment. Files that nobody writes to are the same at every moment.
pub(crate) struct View(pub(crate) Option<Snapshot>);

impl View {
    pub(crate) fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>> {
        let Some(view) = &self.0 else {
            return table.get(key);
        };
        let keyspace = table.open()?;
        view.get(keyspace, key).map_err(|error| table.blame(error))
    }

    pub(crate) fn contains_key(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        let Some(view) = &self.0 else {
            return table.contains_key(key);
        };
        let keyspace = table.open()?;
        view.contains_key(keyspace, key)
            .map_err(|error| table.blame(error))
    }

    pub(crate) fn iter(&self, table: &Table) -> Scan {
        match &self.0 {
            Some(view) => table.scan::<&[u8]>(.., |keyspace, _| view.iter(keyspace)),
            None => table.iter(),
        }
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, table: &Table, range: impl RangeBounds<K>) -> Scan {
        match &self.0 {
            Some(view) => table.scan(range, |keyspace, range| view.range(keyspace, range)),
            None => table.range(range),
        }
    }
}

/// Rows in the order of their keys. After an error it ends: what the store's own iterator does then is
/// to leave records out in silence.
pub(crate) struct Scan {
    name: &'static str,
    items: std::result::Result<Items, Option<Error>>,
}

enum Items {
    Store(fjall::Iter),
    Cold(Box<Merge>),
}

impl Iterator for Scan {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let pair = match &mut self.items {
            Err(error) => return error.take().map(|error| Row(Err(error))),
            Ok(Items::Cold(merge)) => return merge.next().map(|pair| Row(Ok(pair))),
            Ok(Items::Store(items)) => items.next()?.into_inner(),
        };
        if pair.is_err() {
            self.items = Err(None);
        }
        Some(Row(pair.map_err(|error| Error::reading(self.name, error))))
    }
}

/// One record of a scan, or why it cannot be read.
pub(crate) struct Row(Result<(UserKey, UserValue)>);

impl Row {
    pub(crate) fn of(key: UserKey, value: UserValue) -> Self {
        Self(Ok((key, value)))
    }

    /// Its key; none when it cannot be read.
    pub(crate) fn peek(&self) -> Option<&UserKey> {
        self.0.as_ref().ok().map(|(key, _)| key)
    }

    pub(crate) fn into_inner(self) -> Result<(UserKey, UserValue)> {
        self.0
    }

    pub(crate) fn key(self) -> Result<UserKey> {
        self.0.map(|(key, _)| key)
    }
}
