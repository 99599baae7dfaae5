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

use crate::hash::HashMap;

/// Names of one batch that are counted; more than any request asks for, and a bound on what comes unasked.
const MAX_NAMES: usize = 4096;

/// What is known of the batch since the last request.
#[derive(Debug, Default)]
pub(crate) struct Batch {
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
pub(crate) enum Answer {
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
    pub(crate) fn count(
        &mut self,
        name: &Arc<str>,
        hash: u64,
        urls: usize,
        answer: Answer,
    ) -> bool {
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
    pub(crate) fn answered(&mut self, name: &str, ip: Option<IpAddr>) {
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
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether a name belongs to the batch.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.forward.contains_key(name)
    }

    /// The domains on addresses with more than `max` URLs, and both maps anew.
    pub(crate) fn take_crowded(&mut self, max: usize) -> Vec<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn domains_on_a_crowded_address_are_named_once() {
        let mut batch = Batch::default();
        assert!(batch.count(&"a".into(), 1, 3, Answer::At(IP)));
        assert!(batch.count(&"b".into(), 2, 1, Answer::Open));
        assert!(!batch.count(&"a".into(), 1, 2, Answer::Open), "counted");
        assert!(batch.is_open() && batch.has("b") && !batch.has("c"));
        batch.answered("b", Some(IP));
        batch.answered("b", None);
        assert!(!batch.is_open());
        assert_eq!(batch.take_crowded(5), [1, 2], "six URLs");
        assert!(!batch.has("a"));
        assert_eq!(batch.take_crowded(0), [0; 0], "both maps begin anew");
    }

    #[test]
    fn names_that_come_unasked_are_bounded() {
        let mut batch = Batch::default();
        for n in 0..MAX_NAMES + 5 {
            batch.count(&n.to_string().into(), n as u64, 1, Answer::Open);
        }
        assert_eq!(batch.forward.len(), MAX_NAMES);
        assert_eq!(batch.open, MAX_NAMES);
    }
}
