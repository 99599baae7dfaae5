//! The two maps of a batch of candidates: domain → address, and address → URLs.
//!
//! They show how many URLs of a batch share an address, whatever names it has. When there are more than
//! `ip_batch_max`, every domain of the batch on that address goes on the reject list of the next request,
//! once; with that request both maps begin anew. Politeness does not depend on them: the window and the
//! gap of an address hold in any case. They keep the queues from filling with hosts that could only wait
//! for one another.
//!
//! A request waits a moment for the resolver to answer for the names of the last batch. A name that is not
//! answered for by then counts for no address: what is unknown is no reason to reject. If it shares a
//! crowded one, the next batch will show it.

use std::net::IpAddr;
use std::sync::Arc;

use orbweaver_model::{Candidate, Timestamp};

use super::{Action, Asking, Heart};
use crate::hash::HashMap;

/// Names of one batch that are counted; more than any request asks for, and a bound on what comes unasked.
const MAX_NAMES: usize = 4096;

/// What is known of the batch since the last request.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Filled by arriving candidates, emptied by the next request; at most `MAX_NAMES`.
    forward: HashMap<Arc<str>, Domain>,
    /// Filled as addresses become known, emptied with the other.
    by_ip: HashMap<IpAddr, Crowd>,
    /// Domains that the resolver has not answered for.
    open: usize,
}

/// A domain of the batch.
#[derive(Debug)]
struct Domain {
    hash: u64,
    urls: usize,
    answer: Answer,
}

/// What the resolver has said of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing yet.
    Open,
    /// It has this address first of all.
    At(IpAddr),
    /// It has none, or is not asked for.
    Nowhere,
}

/// What a batch has on one address.
#[derive(Debug, Default)]
struct Crowd {
    urls: usize,
    domains: Vec<u64>,
}

impl Batch {
    /// Counts URLs of a domain; true when the domain is new and counted.
    fn count(&mut self, name: &Arc<str>, hash: u64, urls: usize, answer: Answer) -> bool {
        if let Some(domain) = self.forward.get_mut(name) {
            domain.urls += urls;
            if let Answer::At(ip) = domain.answer {
                self.by_ip.entry(ip).or_default().urls += urls;
            }
            return false;
        }
        if self.forward.len() >= MAX_NAMES {
            return false;
        }
        let domain = Domain { hash, urls, answer };
        match answer {
            Answer::At(ip) => self.by_ip.entry(ip).or_default().join(&domain),
            Answer::Open => self.open += 1,
            Answer::Nowhere => {}
        }
        self.forward.insert(name.clone(), domain);
        true
    }

    /// The resolver has answered for a name.
    fn answered(&mut self, name: &str, ip: Option<IpAddr>) {
        let Some(domain) = self.forward.get_mut(name) else {
            return;
        };
        if domain.answer != Answer::Open {
            return;
        }
        self.open -= 1;
        domain.answer = ip.map_or(Answer::Nowhere, Answer::At);
        if let Some(ip) = ip {
            self.by_ip.entry(ip).or_default().join(domain);
        }
    }

    /// Whether an answer of the resolver is awaited.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether a name belongs to the batch.
    pub(super) fn has(&self, name: &str) -> bool {
        self.forward.contains_key(name)
    }

    /// The domains on addresses with more than `max` URLs, and both maps anew.
    pub(super) fn take_crowded(&mut self, max: usize) -> Vec<u64> {
        self.forward.clear();
        self.open = 0;
        let crowds = self.by_ip.drain();
        crowds
            .filter(|(_, crowd)| crowd.urls > max)
            .flat_map(|(_, crowd)| crowd.domains)
            .collect()
    }
}

impl Crowd {
    fn join(&mut self, domain: &Domain) {
        self.urls += domain.urls;
        self.domains.push(domain.hash);
    }
}

impl Heart {
    /// Enters arriving candidates in the maps; gives the names that have no address yet.
    pub(super) fn map_batch(&mut self, candidates: &[Candidate], now: Timestamp) -> Vec<Arc<str>> {
        let mut unknown = Vec::new();
        for urls in candidates.chunk_by(|a, b| a.url.host() == b.url.host()) {
            let Some(first) = urls.first() else {
                continue;
            };
            let name = self.hosts.shared_name(first.url.host());
            let ip = match self.hosts.slot(&name) {
                Some(slot) => self.bench.host(slot),
                None => self.hosts.at_rest(&name),
            }
            .and_then(|host| host.ip(now));
            let answer = match ip {
                Some(ip) => Answer::At(ip),
                None if self.is_blocked(&name) => Answer::Nowhere,
                None => Answer::Open,
            };
            let is_new = self.batch.count(&name, first.key.host, urls.len(), answer);
            if is_new && answer == Answer::Open {
                unknown.push(name);
            }
        }
        unknown
    }

    /// Asks for the addresses of a host, whether it has a queue or not, unless its slot has asked.
    pub(super) fn ask_resolver(&mut self, host: Arc<str>) {
        let slot = self.hosts.slot(&host);
        let slot = slot.and_then(|slot| self.bench.get_mut(slot));
        if slot.is_none_or(|slot| !std::mem::replace(&mut slot.asked_resolver, true)) {
            self.actions.push(Action::Resolve { host });
        }
    }

    /// Enters an answer of the resolver.
    pub(super) fn map_address(&mut self, host: &str, ip: Option<IpAddr>) {
        self.batch.answered(host, ip);
        let gathering = matches!(
            self.asking,
            Asking::Paused {
                gathering: true,
                ..
            }
        );
        if gathering && !self.batch.is_open() {
            self.asking = Asking::Idle;
        }
    }
}
