//! What the hosts of one registered domain have used together.
//!
//! Nothing of it is stored: it is the sum over the records of the hosts, made again when the index is opened.
//! Which domain a host belongs to is for the caller to say, because the list of registries is not ours to keep.

use std::collections::HashMap;

use xxhash_rust::xxh3::{Xxh3Builder, xxh3_64};

use orbweaver_model::{Report, Timestamp};

use crate::record::HostRecord;

/// From the name of a host to that of its registered domain.
pub type DomainOf = fn(&str) -> &str;

/// What a domain has used.
#[derive(Debug, Default)]
pub(crate) struct Total {
    pub(crate) name: Box<str>,
    /// URLs for which a request was made.
    pub(crate) asked: u32,
    /// URLs handed out and unanswered.
    pub(crate) claimed: u32,
    pub(crate) bytes: u64,
    /// When the first request ended.
    pub(crate) since: Option<Timestamp>,
}

/// All domains. One entry for each that a host belongs to, for as long as the index is open.
#[derive(Debug)]
pub(crate) struct Domains {
    of: DomainOf,
    totals: HashMap<u64, Total, Xxh3Builder>,
}

impl Domains {
    pub(crate) fn new(of: DomainOf) -> Self {
        Self {
            of,
            totals: HashMap::default(),
        }
    }

    /// Counts a host in; where its domain is found from now on.
    pub(crate) fn add(&mut self, host: &HostRecord) -> u64 {
        let name = (self.of)(&host.name);
        let place = xxh3_64(name.as_bytes());
        let total = self.totals.entry(place).or_default();
        if total.name.is_empty() {
            total.name = name.into();
        }
        total.asked = total.asked.saturating_add(host.asked);
        total.bytes = total.bytes.saturating_add(host.bytes);
        total.since = match (total.since, host.since) {
            (Some(ours), Some(its)) => Some(ours.min(its)),
            (ours, its) => ours.or(its),
        };
        place
    }

    pub(crate) fn learn(&mut self, place: u64, report: &Report, page: bool) {
        if let Some(total) = self.totals.get_mut(&place) {
            total.asked = total.asked.saturating_add(u32::from(page));
            total.bytes = total.bytes.saturating_add(report.bytes);
            if report.ip.is_some() {
                total.since = total.since.or(Some(report.at));
            }
        }
    }

    /// Bytes of RAM in use, about.
    pub(crate) fn bytes(&self) -> usize {
        const NAME: usize = 32;
        let places = self.totals.capacity() / 7 * 8;
        places * (size_of::<(u64, Total)>() + 1) + self.totals.len() * NAME
    }

    pub(crate) fn get(&self, place: u64) -> Option<&Total> {
        self.totals.get(&place)
    }

    pub(crate) fn get_mut(&mut self, place: u64) -> Option<&mut Total> {
        self.totals.get_mut(&place)
    }
}
