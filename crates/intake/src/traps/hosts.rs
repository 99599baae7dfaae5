//! Hosts without end under one registered domain, as wildcard DNS makes them, or in one network.
//!
//! Services that give every customer a name are on the public suffix list, so that each customer is a
//! domain of its own. Hosts that are addresses have no domain; their network stands for it.

use std::net::IpAddr;

use orbweaver_model::{CrawlUrl, KeySeed};

use crate::domain::domain_or_host;
use crate::generations::Generations;

/// Hosts admitted lately, so that most links cost no look at the public suffix list.
const ADMITTED: usize = 1024;

/// What is remembered of hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    max: u32,
    /// By domain: its hosts, as hashes in order.
    domains: Generations<Vec<u32>>,
    admitted: Vec<u64>,
}

impl Hosts {
    pub(super) fn new(max: u32, memory: usize) -> Self {
        Self {
            max,
            domains: Generations::new(memory, heap),
            admitted: vec![0; ADMITTED],
        }
    }

    /// The domain or network that has hosts enough without this one, whose name hashes to `hash`; none
    /// when the host is welcome.
    pub(super) fn beyond(&mut self, seed: KeySeed, url: &CrawlUrl, hash: u64) -> Option<String> {
        self.enter(seed, url, hash, self.max as usize)
    }

    /// The host is welcome, however many there are, and so are links to it from now on.
    pub(super) fn admit(&mut self, seed: KeySeed, url: &CrawlUrl, hash: u64) {
        self.enter(seed, url, hash, usize::MAX);
    }

    /// Enters a host unless its domain has `most`, and then names that.
    fn enter(&mut self, seed: KeySeed, url: &CrawlUrl, hash: u64, most: usize) -> Option<String> {
        if self.max == 0 {
            return None;
        }
        let slot = self.admitted.get_mut(hash as usize % ADMITTED)?;
        if *slot == hash {
            return None;
        }
        let network = url.host_ip().map(network);
        let name = network
            .as_deref()
            .unwrap_or_else(|| domain_or_host(url.host()));
        let hosts = self.domains.get_or_default(seed.hash(name));
        if let Err(place) = hosts.binary_search(&((hash >> 32) as u32)) {
            if hosts.len() >= most {
                return Some(name.to_owned());
            }
            let before = heap(hosts);
            hosts.insert(place, (hash >> 32) as u32);
            let grown = heap(hosts) - before;
            self.domains.grown_by(grown);
        }
        *slot = hash;
        None
    }
}

fn heap(hosts: &Vec<u32>) -> usize {
    hosts.capacity() * size_of::<u32>()
}

/// The /16 of an IPv4 address, the /32 of an IPv6 address: what one provider commonly holds.
fn network(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            format!("{a}.{b}.0.0/16")
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            format!("{a:x}:{b:x}::/32")
        }
    }
}
