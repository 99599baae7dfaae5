//! The keyspaces of the doc index: which there are, what their records are, and how their keys are made.
//!
//! All keys are big-endian, so that they sort as they count, and what belongs to a host lies together.

use serde::de::DeserializeOwned;

use orbweaver_model::{RobotsRecord, Timestamp, UrlKey};

use crate::error::{Error, Result};
use crate::record::{ClaimRecord, Fate, HostRecord, LinkRecord, QueueRecord, decode, is_intact};
use crate::tables::Table;

/// Says what is wrong with a record of a keyspace, by its name, key and value.
type Legible = fn(&'static str, &[u8], &[u8]) -> Result<()>;

macro_rules! keyspaces {
    ($($(#[$doc:meta])* $name:ident: $check:expr,)*) => {
        /// All keyspaces, in the order in which they were made and are listed everywhere.
        pub(crate) const NAMES: [&str; CHECKS.len()] = [$(stringify!($name)),*];

        const CHECKS: &[Legible] = &[$($check),*];

        /// One table for each keyspace.
        #[derive(Clone)]
        pub(crate) struct Tables {
            $($(#[$doc])* pub(crate) $name: Table,)*
        }

        impl Tables {
            /// Makes each by its place and name.
            pub(crate) fn each(
                mut make: impl FnMut(usize, &'static str) -> Result<Table>,
            ) -> Result<Self> {
                let mut places = 0..;
                Ok(Self {
                    $($name: make(places.next().unwrap_or_default(), stringify!($name))?,)*
                })
            }

            /// Every call to these fails.
            pub(crate) fn closed() -> Self {
                let mut places = 0..;
                Self {
                    $($name: Table::closed(places.next().unwrap_or_default(), stringify!($name)),)*
                }
            }

            /// All of them.
            pub(crate) fn tables(&self) -> [&Table; NAMES.len()] {
                [$(&self.$name),*]
            }
        }
    };
}

// The numbers under which the store keeps them follow from this order: new ones come last.
keyspaces! {
    /// Name: format, seed, epoch, ledger, applied position and what else there is one of.
    meta: meta,
    /// Host hash, URL hash: [`LinkRecord`].
    urls: record::<16, LinkRecord>,
    /// Host hash, URL hash: [`Fate`].
    fates: record::<16, Fate>,
    /// Host hash, rank: queue record.
    queue: record::<16, QueueRecord>,
    /// Time, host hash, URL hash: nothing.
    due: mark::<24>,
    /// Time, host hash, URL hash: nothing.
    visits: mark::<24>,
    /// Batch number: claimed URLs.
    claims: record::<8, ClaimRecord>,
    /// Host hash: [`HostRecord`].
    hosts: record::<8, HostRecord>,
    /// Origin: robots.txt.
    robots: named::<RobotsRecord>,
    /// URL: nothing.
    seeds: |_, _, _| Ok(()),
    /// Host hash, URL hash: nothing.
    reconsider: mark::<16>,
}

/// Whether a record of this keyspace is what was written.
pub(crate) fn legible(keyspace: &'static str, key: &[u8], value: &[u8]) -> Result<()> {
    let place = NAMES.iter().position(|name| *name == keyspace);
    match place.and_then(|place| CHECKS.get(place)) {
        Some(check) => check(keyspace, key, value),
        None => Ok(()),
    }
}

fn record<const KEY: usize, T: DeserializeOwned>(
    keyspace: &'static str,
    key: &[u8],
    value: &[u8],
) -> Result<()> {
    mark::<KEY>(keyspace, key, value).and(named::<T>(keyspace, key, value))
}

fn named<T: DeserializeOwned>(keyspace: &'static str, _: &[u8], value: &[u8]) -> Result<()> {
    decode::<T>(keyspace, value).map(drop)
}

fn mark<const KEY: usize>(keyspace: &'static str, key: &[u8], _: &[u8]) -> Result<()> {
    match key.len() == KEY {
        true => Ok(()),
        false => Err(Error::Record {
            keyspace,
            why: "its key has a wrong length".into(),
        }),
    }
}

fn meta(keyspace: &'static str, key: &[u8], value: &[u8]) -> Result<()> {
    match key == b"format" || is_intact(value) {
        true => Ok(()),
        false => Err(Error::Record {
            keyspace,
            why: "its checksum is wrong".into(),
        }),
    }
}

/// The key of a place in a host's queue.
pub(crate) fn queue_key(host: u64, rank: u64) -> [u8; 16] {
    UrlKey { host, url: rank }.to_bytes()
}

/// The key of a retry.
pub(crate) fn due_key(due: Timestamp, key: UrlKey) -> [u8; 24] {
    let mut bytes = [0; 24];
    let (time, url) = bytes.split_at_mut(8);
    time.copy_from_slice(&due.as_millis().to_be_bytes());
    url.copy_from_slice(&key.to_bytes());
    bytes
}

/// Reads what `due_key` wrote.
pub(crate) fn read_due_key(bytes: &[u8]) -> Option<(Timestamp, UrlKey)> {
    let (time, url) = bytes.split_first_chunk::<8>()?;
    Some((
        Timestamp::from_millis(u64::from_be_bytes(*time)),
        UrlKey::from_bytes(url.try_into().ok()?),
    ))
}
