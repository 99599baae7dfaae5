//! Places in the files of a store that are not as they were written, gathered while it is read.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places that are remembered. A disk that is worse than that needs no longer list.
const MOST: usize = 10_000;

/// A place that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The file by its place in the store, `keyspaces/2/tables/17`; the keyspace when it is about a record.
    pub file: String,
    /// Where in it, when it is about a place.
    pub offset: Option<u64>,
    /// What is wrong, and what is lost by it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{}, byte {offset}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// What was found so far. Shared by all who read one store; each place is in it once.
#[derive(Clone, Debug, Default)]
pub struct Damages(Arc<Mutex<BTreeSet<Damage>>>);

impl Damages {
    /// Remembers a place.
    pub fn note(&self, file: &str, offset: Option<u64>, what: impl Into<String>) {
        let mut found = self.lock();
        if found.len() < MOST {
            found.insert(Damage {
                file: file.into(),
                offset,
                what: what.into(),
            });
        }
    }

    /// Everything, by file and place.
    pub fn list(&self) -> Vec<Damage> {
        self.lock().iter().cloned().collect()
    }

    /// True when something was found in this file.
    pub fn names(&self, file: &str) -> bool {
        self.lock().iter().any(|damage| damage.file == file)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Damage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes for people.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
