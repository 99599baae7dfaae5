//! The books: where each URL is, in two bits, and what the doc index has to give.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use orbweaver_model::Candidate;

use super::web;

/// Where a URL is. Each move is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// With the doc index, to be asked for.
    Queued,
    /// In the heart.
    Held,
    /// With the spider.
    Out,
    /// Fetched, failed or refused: for good, unless another chance is noted.
    Finished,
}

const PLACES: [Place; 4] = [Place::Queued, Place::Held, Place::Out, Place::Finished];

/// The doc index of the simulation.
pub(crate) struct Books {
    /// The number of the first URL of each host, and of the one after the last.
    first: Vec<u32>,
    /// The next URL of each host that was never handed out.
    next: Vec<u32>,
    /// URLs that came back, by host.
    back: HashMap<u32, Vec<u32>>,
    /// Hosts with something to give, in the order in which they give; each at most once.
    line: VecDeque<u32>,
    in_line: Vec<bool>,
    /// Hosts that asked for patience, and until when.
    patient: BinaryHeap<Reverse<(u64, u32)>>,
    /// URLs that were refused for now, and when they get another chance.
    chances: BinaryHeap<Reverse<(u64, u32, u32)>>,
    places: Vec<u8>,
    pub(crate) counts: [u64; 4],
}

impl Books {
    pub(crate) fn new(hosts: u32, urls: u32) -> Self {
        let first = web::sizes(hosts, urls);
        let line: VecDeque<u32> = (0..hosts)
            .filter(|host| first[*host as usize] < first[*host as usize + 1])
            .collect();
        Self {
            next: first.clone(),
            first,
            back: HashMap::new(),
            in_line: vec![true; hosts as usize],
            line,
            patient: BinaryHeap::new(),
            chances: BinaryHeap::new(),
            places: vec![0; urls as usize / 4 + 1],
            counts: [u64::from(urls), 0, 0, 0],
        }
    }

    pub(crate) fn count(&self, place: Place) -> u64 {
        self.counts[place as usize]
    }

    fn place(&self, url: u32) -> Place {
        let bits = self.places[url as usize / 4] >> (url % 4 * 2) & 3;
        PLACES[usize::from(bits)]
    }

    /// Moves a URL, which must be where it is said to be.
    pub(crate) fn change(&mut self, url: u32, from: Place, to: Place) {
        assert_eq!(self.place(url), from, "URL {url} on its way to {to:?}");
        let byte = &mut self.places[url as usize / 4];
        let shift = url % 4 * 2;
        *byte = *byte & !(3 << shift) | (to as u8) << shift;
        self.counts[from as usize] -= 1;
        self.counts[to as usize] += 1;
    }

    /// A URL is to be asked for again.
    pub(crate) fn take_back(&mut self, host: u32, url: u32, from: Place) {
        self.change(url, from, Place::Queued);
        self.back.entry(host).or_default().push(url);
        self.get_in_line(host);
    }

    /// A URL is refused, and comes back at a time.
    pub(crate) fn refuse_for_now(&mut self, host: u32, url: u32, again: u64) {
        self.change(url, Place::Held, Place::Finished);
        self.chances.push(Reverse((again, host, url)));
    }

    /// Whether every URL is finished for good.
    pub(crate) fn is_over(&self) -> bool {
        self.counts[Place::Finished as usize] == self.counts.iter().sum() && self.chances.is_empty()
    }

    fn get_in_line(&mut self, host: u32) {
        if !std::mem::replace(&mut self.in_line[host as usize], true) {
            self.line.push_back(host);
        }
    }

    /// Every URL that a dead process had comes back.
    pub(crate) fn recover(&mut self) {
        let mut host = 0;
        for url in 0..*self.first.last().unwrap() {
            while self.first[host + 1] <= url {
                host += 1;
            }
            match self.place(url) {
                Place::Queued | Place::Finished => {}
                lost => self.take_back(host as u32, url, lost),
            }
        }
    }

    fn pop(&mut self, host: u32) -> Option<u32> {
        if let Some(urls) = self.back.get_mut(&host)
            && let Some(url) = urls.pop()
        {
            return Some(url);
        }
        self.back.remove(&host);
        let next = &mut self.next[host as usize];
        (*next < self.first[host as usize + 1]).then(|| {
            *next += 1;
            *next - 1
        })
    }

    /// Hands out URLs: a few per host, hosts in turn, none that is rejected or has asked for patience.
    pub(crate) fn give(
        &mut self,
        want: usize,
        per_host: usize,
        reject: &HashSet<u32>,
        held: &[u64],
        now: u64,
    ) -> Vec<Candidate> {
        while let Some(Reverse((until, host))) = self.patient.peek().copied()
            && until <= now
        {
            self.patient.pop();
            self.get_in_line(host);
        }
        while let Some(Reverse((again, host, url))) = self.chances.peek().copied()
            && again <= now
        {
            self.chances.pop();
            self.take_back(host, url, Place::Finished);
        }
        let mut given = Vec::new();
        // The whole line could be on the reject list; the next request looks further.
        let mut looks = self.line.len().min(want + reject.len() + 1000);
        while given.len() < want && looks > 0 {
            looks -= 1;
            let Some(host) = self.line.pop_front() else {
                break;
            };
            if reject.contains(&host) {
                self.line.push_back(host);
                continue;
            }
            if held[host as usize] > now {
                self.in_line[host as usize] = false;
                self.patient.push(Reverse((held[host as usize], host)));
                continue;
            }
            let room = per_host.min(want - given.len());
            let before = given.len();
            while given.len() - before < room
                && let Some(url) = self.pop(host)
            {
                self.change(url, Place::Queued, Place::Held);
                given.push(web::candidate(host, url));
            }
            if given.len() - before == room {
                self.line.push_back(host);
            } else {
                self.in_line[host as usize] = false;
            }
        }
        given
    }
}
