//! The leftover queue: URLs whose host's queue is full, or whose host has no queue because all are
//! taken. It grows as needed, up to a budget of bytes, and refills queues before anything new is asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use orbweaver_model::{Candidate, LinkKind, UrlKey};

use crate::hash::HashMap;

/// URLs that found no room. Filled by arriving candidates, emptied host by host as queues get room;
/// the heart asks for no more candidates while it holds as many as all queues together could.
#[derive(Debug)]
pub(crate) struct Leftover {
    by_host: HashMap<Arc<str>, VecDeque<Candidate>>,
    /// Hosts without a queue, first come first served; one that got a queue since is passed over.
    waiting: VecDeque<Arc<str>>,
    len: usize,
    bytes: usize,
    budget: usize,
    /// URLs that found no room at all and go back to the doc index with the end of the message.
    spilled: Vec<Candidate>,
    /// How many did so since the start.
    spilled_in_all: u64,
}

impl Leftover {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            by_host: HashMap::default(),
            waiting: VecDeque::new(),
            len: 0,
            bytes: 0,
            budget,
            spilled: Vec::new(),
            spilled_in_all: 0,
        }
    }

    /// Number of URLs.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Keeps a URL. A redirect's target goes before its host's other URLs. A host that has a queue
    /// (`has_queue`) will be refilled; one that has none gets in line for one.
    ///
    /// False when the memory is full: then it is spilled.
    pub(crate) fn keep(&mut self, host: &Arc<str>, candidate: Candidate, has_queue: bool) -> bool {
        let Some(candidate) = self.weigh(candidate) else {
            return false;
        };
        let urls = match self.by_host.get_mut(host) {
            Some(urls) => urls,
            None => {
                if !has_queue {
                    self.waiting.push_back(host.clone());
                }
                self.by_host.entry(host.clone()).or_default()
            }
        };
        if candidate.kind == LinkKind::Redirect {
            urls.push_front(candidate);
        } else {
            urls.push_back(candidate);
        }
        true
    }

    /// Keeps a URL that was pushed out of its queue: it comes before all that never got in.
    pub(crate) fn keep_first(&mut self, host: &Arc<str>, candidate: Candidate) -> bool {
        let Some(candidate) = self.weigh(candidate) else {
            return false;
        };
        self.by_host
            .entry(host.clone())
            .or_default()
            .push_front(candidate);
        true
    }

    /// Counts a URL in, if the memory allows it; otherwise it is spilled.
    fn weigh(&mut self, candidate: Candidate) -> Option<Candidate> {
        let bytes = self.bytes + weight(&candidate);
        if bytes > self.budget {
            self.spilled.push(candidate);
            self.spilled_in_all += 1;
            return None;
        }
        self.bytes = bytes;
        self.len += 1;
        Some(candidate)
    }

    /// The URLs that there was no memory for, which go back to the doc index: it is the disk of this queue. Their hosts
    /// have full queues or none, so they are not offered again before there is room.
    pub(crate) fn take_spilled(&mut self) -> Vec<Candidate> {
        std::mem::take(&mut self.spilled)
    }

    /// How many found no room since the start.
    pub(crate) fn spilled_in_all(&self) -> u64 {
        self.spilled_in_all
    }

    /// The next URL of a host.
    pub(crate) fn next_of(&mut self, host: &str) -> Option<Candidate> {
        let urls = self.by_host.get_mut(host)?;
        let next = urls.pop_front();
        if urls.is_empty() {
            self.by_host.remove(host);
        }
        if let Some(next) = &next {
            self.len -= 1;
            self.bytes -= weight(next);
        }
        next
    }

    /// All URLs of a host.
    pub(crate) fn all_of(&mut self, host: &str) -> Vec<Candidate> {
        let urls = self.by_host.remove(host).unwrap_or_default();
        self.len -= urls.len();
        self.bytes -= urls.iter().map(weight).sum::<usize>();
        urls.into()
    }

    /// URLs of a host that come before this one, if it is here.
    pub(crate) fn position(&self, host: &str, key: UrlKey) -> Option<usize> {
        let urls = self.by_host.get(host)?;
        urls.iter().position(|waiting| waiting.key == key)
    }

    /// Whether any URL of a host is here.
    pub(crate) fn holds(&self, host: &str) -> bool {
        self.by_host.contains_key(host)
    }

    /// The host that has waited longest for a queue.
    pub(crate) fn next_host(&mut self, has_queue: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        while let Some(host) = self.waiting.pop_front() {
            if self.holds(&host) && !has_queue(&host) {
                return Some(host);
            }
        }
        None
    }

    /// Everything, for a drain.
    pub(crate) fn take_all(&mut self) -> Vec<Candidate> {
        self.waiting.clear();
        self.len = 0;
        self.bytes = 0;
        self.by_host.drain().flat_map(|(_, urls)| urls).collect()
    }
}

/// The bytes that a URL takes here, but for what its host takes.
fn weight(candidate: &Candidate) -> usize {
    size_of::<Candidate>() + candidate.url.as_str().len() + size_of_val(candidate.chain.as_slice())
}

#[cfg(test)]
mod tests {
    use orbweaver_testkit::candidate;

    use super::*;

    fn page(n: u32, kind: LinkKind) -> Candidate {
        Candidate {
            doc_id: n,
            kind,
            ..candidate(&format!("http://a/{n}"))
        }
    }

    fn numbers(urls: &[Candidate]) -> Vec<u32> {
        urls.iter().map(|url| url.doc_id).collect()
    }

    #[test]
    fn what_was_pushed_out_comes_before_what_never_got_in() {
        let mut leftover = Leftover::new(usize::MAX);
        let host = Arc::from("a");
        for n in 1..4 {
            assert!(leftover.keep(&host, page(n, LinkKind::A), false));
        }
        assert!(leftover.keep(&host, page(4, LinkKind::Redirect), false));
        assert!(leftover.keep_first(&host, page(5, LinkKind::A)));
        assert_eq!(leftover.position("a", page(4, LinkKind::A).key), Some(1));
        assert_eq!(leftover.next_host(|_| false), Some(host.clone()));
        assert_eq!(leftover.next_host(|_| false), None, "one turn for a host");
        assert_eq!(leftover.next_of("a").map(|url| url.doc_id), Some(5));
        assert_eq!(numbers(&leftover.all_of("a")), [4, 1, 2, 3]);
        assert_eq!((leftover.len(), leftover.bytes), (0, 0));
        assert!(!leftover.holds("a"));
    }

    #[test]
    fn what_there_is_no_memory_for_is_spilled_and_counted() {
        let mut leftover = Leftover::new(2 * weight(&page(1, LinkKind::A)));
        let host = Arc::from("a");
        let kept: Vec<_> = (1..5)
            .map(|n| leftover.keep(&host, page(n, LinkKind::A), true))
            .collect();
        assert_eq!(kept, [true, true, false, false]);
        assert_eq!(numbers(&leftover.take_spilled()), [3, 4]);
        assert_eq!(numbers(&leftover.take_spilled()), [0; 0]);
        assert_eq!(leftover.spilled_in_all(), 2);
        assert_eq!(leftover.take_all().len(), 2);
        assert!(leftover.keep(&host, page(9, LinkKind::A), true));
    }
}
