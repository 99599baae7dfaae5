//! The doc index read from its files as they lie there, without opening the store.

use std::path::Path;
use std::sync::Arc;

use orbweaver_coldstore::{ColdStore, Damage, Damages, Hold};

use crate::error::{Error, Result};
use crate::keyspaces::{NAMES, Tables, legible};
use crate::record::FORMAT;
use crate::store::Store;
use crate::tables::Table;

/// The files of an index.
pub(crate) struct Cold(ColdStore);

impl Cold {
    pub(crate) fn open(path: &Path, memory: u64, hold: Hold) -> Result<Self> {
        let cold = Self(ColdStore::open(path, memory, hold, NAMES.len())?);
        if cold.format().is_none() && !cold.damages().names("*.jnl") {
            let what = "the record of the format is lost";
            cold.damages().note("meta", None, what);
        }
        Ok(cold)
    }

    /// What the index says of its format.
    fn format(&self) -> Option<u8> {
        let format = self.0.spaces().next()?.get(b"format")?;
        Some(format.first().copied().unwrap_or(0))
    }

    /// The keyspaces, for whoever reads them.
    pub(crate) fn keyspaces(&self) -> Store {
        let mut spaces = self.0.spaces();
        let cold = |place, name| match spaces.next() {
            Some(space) => Ok(Table::cold(place, name, Arc::clone(space))),
            None => Ok(Table::closed(place, name)),
        };
        Tables::each(cold).map_or_else(|_| Store::closed(), Store::of)
    }

    /// Fails when the index is of another version.
    pub(crate) fn check_format(&self, path: &Path) -> Result<()> {
        match self.format() {
            None | Some(FORMAT) => Ok(()),
            Some(found) => Err(Error::Version {
                path: path.into(),
                found,
                expected: FORMAT,
            }),
        }
    }

    pub(crate) fn damages(&self) -> &Damages {
        self.0.damages()
    }

    /// Reads everything, and says all that is damaged.
    pub(crate) fn survey(&self) -> Vec<Damage> {
        self.0.survey(|place, key, value| {
            let name = NAMES.get(place).copied().unwrap_or_default();
            legible(name, key, value).map_err(|error| (name, error.in_short()))
        })
    }

    /// Remembers that a record is not what was written.
    pub(crate) fn note_record(&self, keyspace: &str, key: &[u8], error: &Error) {
        self.0.note_record(keyspace, key, &error.in_short());
    }
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
