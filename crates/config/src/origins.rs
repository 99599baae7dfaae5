//! Where a setting was written, so that a mistake can name the place.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The place of a key in a file.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) file: Arc<Path>,
    /// The first line is 1.
    pub(crate) line: usize,
    /// The key as it stands there.
    pub(crate) written: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            written,
        } = self;
        write!(f, "{written} (line {line} of {})", file.display())
    }
}

/// The places of keys, by the path of each. What was given by a flag has none.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<String, Origin>);

/// A configuration is the same wherever it was read from.
impl PartialEq for Origins {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Origins {
    pub(crate) fn get(&self, path: &str) -> Option<&Origin> {
        self.0.get(path)
    }

    /// Notes the place of a key; answers with the place where it stands already, if it does.
    pub(crate) fn note(&mut self, path: &str, origin: Origin) -> Option<&Origin> {
        match self.0.entry(path.to_owned()) {
            std::collections::btree_map::Entry::Occupied(before) => Some(before.into_mut()),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(origin);
                None
            }
        }
    }

    /// The key has another value from now on.
    pub(crate) fn forget(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// With the places of a layer above.
    pub(crate) fn add(&mut self, upper: Self) {
        self.0.extend(upper.0);
    }

    /// What a message calls a key: as it was written and where, or by its path.
    pub(crate) fn name(&self, path: &str) -> String {
        match self.get(path) {
            Some(origin) => origin.to_string(),
            None => path.to_owned(),
        }
    }
}
