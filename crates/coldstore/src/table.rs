//! One table file of a keyspace. Its own index leads to its records as long as all of that can be read; from the
//! first damage on they are read one after another.

mod blocks;

use std::collections::Bound;
use std::io;
use std::ops::RangeBounds;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{Cache, Checksum, DescriptorTable, InternalValue, SeqNo, Slice, Table};

use crate::damage::Damages;
use crate::manifest::{self, Listed};

use self::blocks::Blocks;

/// A range of keys.
pub type Keys = (Bound<Slice>, Bound<Slice>);

/// What all tables share while they are read.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) handles: Arc<DescriptorTable>,
    pub(crate) damages: Damages,
}

/// A table file.
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    /// As it is named to people.
    pub(crate) name: String,
    pub(crate) global_seqno: SeqNo,
    /// What the whole file should sum up to; none when nobody says.
    checksum: Option<u128>,
    /// The file with its index; none when that is damaged.
    indexed: Option<Table>,
    pub(crate) damages: Damages,
}

impl TableFile {
    /// Opens table `id` of keyspace `space`.
    pub(crate) fn open(
        path: PathBuf,
        name: String,
        space: u64,
        listed: Result<Listed, u64>,
        shared: &Shared,
    ) -> io::Result<Self> {
        let id = listed.as_ref().map_or_else(|id| *id, |listed| listed.id);
        let global_seqno = listed.as_ref().map_or(0, |listed| listed.global_seqno);
        let mut table = Self {
            path,
            name,
            global_seqno,
            checksum: listed.ok().map(|listed| listed.checksum),
            indexed: None,
            damages: shared.damages.clone(),
        };
        match table.recover(space, id, shared) {
            Ok(indexed) => table.indexed = Some(indexed),
            Err(Trouble::Disk(error)) => return Err(error),
            Err(Trouble::Damage(why)) => {
                let what = format!("its index block cannot be read: {why}");
                table.damages.note(&table.name, None, what);
            }
        }
        Ok(table)
    }

    fn recover(&self, space: u64, id: u64, shared: &Shared) -> Result<Table, Trouble> {
        if !manifest::has_directory(&self.path)? {
            return Err(Trouble::Damage("its end is damaged".into()));
        }
        let open = || {
            Table::recover(
                self.path.clone(),
                Checksum::from_raw(self.checksum.unwrap_or(0)),
                self.global_seqno,
                space,
                Arc::clone(&shared.cache),
                Some(Arc::clone(&shared.handles)),
                false,
                false,
            )
        };
        let opened = panic::catch_unwind(AssertUnwindSafe(open));
        match opened {
            Ok(Ok(table)) if table.id() == id => Ok(table),
            Ok(Ok(table)) => Err(Trouble::Damage(format!("it is table {}", table.id()))),
            Ok(Err(lsm_tree::Error::Io(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Trouble::Damage(format!("{error:?}"))),
            Err(_) => Err(Trouble::Damage("it is not a table of this version".into())),
        }
    }

    /// The sequence number of its newest record, as far as that is known.
    pub(crate) fn newest(&self) -> Option<SeqNo> {
        self.indexed.as_ref().map(Table::get_highest_seqno)
    }

    /// Whether records in this range may be in the file.
    pub(crate) fn covers(&self, keys: &Keys) -> bool {
        let Some(table) = &self.indexed else {
            return true;
        };
        let (least, most) = (
            table.metadata.key_range.min(),
            table.metadata.key_range.max(),
        );
        let after = match &keys.0 {
            Bound::Included(from) => most >= from,
            Bound::Excluded(from) => most > from,
            Bound::Unbounded => true,
        };
        let before = match &keys.1 {
            Bound::Included(to) => least <= to,
            Bound::Excluded(to) => least < to,
            Bound::Unbounded => true,
        };
        after && before
    }

    /// The newest version of a key in this file.
    pub(crate) fn get(self: &Arc<Self>, key: &Slice) -> Option<InternalValue> {
        if let Some(table) = &self.indexed {
            match table.get(key, SeqNo::MAX, Builder::get_hash(key)) {
                Ok(found) => return found,
                Err(error) => self.note(&error),
            }
        }
        let only = (Bound::Included(key.clone()), Bound::Included(key.clone()));
        self.rows(only).next()
    }

    /// The records in a range, by key, of each key the newest first.
    pub(crate) fn rows(self: &Arc<Self>, keys: Keys) -> Rows {
        let way = match &self.indexed {
            Some(table) => Way::Indexed(Box::new(table.range(keys.clone()))),
            None => Way::Plain(Blocks::of(Arc::clone(self))),
        };
        Rows {
            table: Arc::clone(self),
            keys,
            way,
            last: None,
        }
    }

    /// Holds the whole file against its checksum, after its records have been read.
    pub(crate) fn verify(&self) {
        let Some(expected) = self.checksum else {
            return;
        };
        let what = match manifest::checksum(&self.path) {
            Ok(sum) if sum == expected => return,
            Ok(_) => "its checksum is wrong, though all its records can be read".into(),
            Err(error) => error.to_string(),
        };
        if !self.damages.names(&self.name) {
            self.damages.note(&self.name, None, what);
        }
    }

    fn note(&self, error: &lsm_tree::Error) {
        let what = format!("its index block cannot be read: {error:?}");
        self.damages.note(&self.name, None, what);
    }
}

/// Why a table cannot be opened.
enum Trouble {
    /// The system refuses; that says nothing about what is in the file.
    Disk(io::Error),
    Damage(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::IsADirectory => Self::Damage(error.to_string()),
            _ => Self::Disk(error),
        }
    }
}

enum Way {
    Indexed(Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + Send>),
    Plain(Blocks),
    Over,
}

/// Records of one table file.
pub(crate) struct Rows {
    table: Arc<TableFile>,
    keys: Keys,
    way: Way,
    /// Key and sequence number of the last one.
    last: Option<(Slice, SeqNo)>,
}

impl Rows {
    /// Whether a record that was found in passing is one of those that are still to come.
    fn is_next(&self, item: &InternalValue) -> bool {
        let key = &item.key;
        let later = self.last.as_ref().is_none_or(|(last, seqno)| {
            key.user_key > *last || (key.user_key == *last && key.seqno < *seqno)
        });
        later && (self.keys.0.clone(), Bound::Unbounded).contains(&key.user_key)
    }
}

impl Iterator for Rows {
    type Item = InternalValue;

    fn next(&mut self) -> Option<InternalValue> {
        loop {
            let item = match &mut self.way {
                Way::Indexed(rows) => match rows.next() {
                    Some(Ok(item)) => Some(item),
                    Some(Err(_)) => {
                        // What exactly is damaged is found on the way.
                        self.way = Way::Plain(Blocks::of(Arc::clone(&self.table)));
                        continue;
                    }
                    None => None,
                },
                Way::Plain(blocks) => blocks.next(),
                Way::Over => None,
            };
            let within = (Bound::Unbounded, self.keys.1.clone());
            let Some(item) = item.filter(|item| within.contains(&item.key.user_key)) else {
                self.way = Way::Over;
                return None;
            };
            if self.is_next(&item) {
                self.last = Some((item.key.user_key.clone(), item.key.seqno));
                return Some(item);
            }
        }
    }
}
