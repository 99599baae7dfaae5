//! The hash tables of the URL server: those of the standard library with another hash function.
//!
//! Host names, addresses and hashes of hosts are looked up several times for every order, and the
//! standard function takes a tenth of the whole. This one is seeded anew for every table, so that names
//! cannot be chosen to collide.

use foldhash::fast::RandomState;

/// A hash map.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A hash set.
pub(crate) type HashSet<K> = std::collections::HashSet<K, RandomState>;
