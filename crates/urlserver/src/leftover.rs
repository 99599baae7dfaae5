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
}

impl Leftover {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            by_host: HashMap::default(),
            waiting: VecDeque::new(),
            len: 0,
            bytes: 0,
            budget,
        }
    }

    /// Number of URLs.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Keeps a URL. A redirect's target goes before its host's other URLs. A host that has a queue
    /// (`has_queue`) will be refilled; one that has none gets in line for one.
    ///
    /// When the memory is full the URL comes back.
    pub(crate) fn keep(
        &mut self,
        host: &Arc<str>,
        candidate: Candidate,
        has_queue: bool,
    ) -> Result<(), Candidate> {
        let candidate = self.weigh(candidate)?;
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
        Ok(())
    }

    /// Keeps a URL that was pushed out of its queue: it comes before all that never got in.
    pub(crate) fn keep_first(
        &mut self,
        host: &Arc<str>,
        candidate: Candidate,
    ) -> Result<(), Candidate> {
        let candidate = self.weigh(candidate)?;
        self.by_host
            .entry(host.clone())
            .or_default()
            .push_front(candidate);
        Ok(())
    }

    /// Counts a URL in, if the memory allows it.
    fn weigh(&mut self, candidate: Candidate) -> Result<Candidate, Candidate> {
        let bytes = self.bytes + weight(&candidate);
        if bytes > self.budget {
            return Err(candidate);
        }
        self.bytes = bytes;
        self.len += 1;
        Ok(candidate)
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
