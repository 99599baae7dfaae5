//! The hosts in RAM: how much waits for each, and whose turn it is.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use xxhash_rust::xxh3::Xxh3Builder;

use orbweaver_model::{Report, Timestamp};

use crate::domains::{DomainOf, Domains, Total};
use crate::record::HostRecord;

/// A host: its record, and what only this process needs to know.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) record: HostRecord,
    /// URLs in its queue that nobody has claimed.
    pub(crate) waiting: u32,
    /// URLs handed out and not yet answered.
    pub(crate) claimed: u32,
    /// No unclaimed URL has a lower rank. Skips the graves that claims leave in the store.
    pub(crate) cursor: u64,
    /// Its place among the domains; 0 when domains are not counted.
    pub(crate) domain: u64,
    in_turn: bool,
}

/// All hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Filled by accepted links; a host stays known for the whole crawl.
    by_hash: HashMap<u64, Host, Xxh3Builder>,
    /// Hosts with waiting URLs, in turn. A host is in it, or put off, at most once (`in_turn`).
    turns: VecDeque<u64>,
    /// Hosts with waiting URLs that were found to be asked too early, and when they were to be asked then.
    /// Filled when their turn comes, emptied when that time has come.
    put_off: BTreeSet<(Timestamp, u64)>,
    /// Hosts whose record changed since the last commit. Emptied by each commit.
    dirty: HashSet<u64, Xxh3Builder>,
    /// What the hosts of a domain have in common; none when no budget asks for it.
    domains: Option<Domains>,
    /// Hosts in whose queues there may be visits. Filled when visits fall due and when the store is opened; a look
    /// that finds none takes a host out.
    visited: HashSet<u64, Xxh3Builder>,
}

impl Hosts {
    pub(crate) fn new(domains: Option<Domains>) -> Self {
        Self {
            domains,
            ..Self::default()
        }
    }

    /// Counts by domain from now on, beginning with what the hosts have used so far.
    pub(crate) fn count_domains(&mut self, of: DomainOf) {
        if self.domains.is_some() {
            return;
        }
        let mut domains = Domains::new(of);
        for host in self.by_hash.values_mut() {
            host.domain = domains.add(&host.record);
            if let Some(total) = domains.get_mut(host.domain) {
                total.claimed += host.claimed;
            }
        }
        self.domains = Some(domains);
    }

    /// The host of a new URL, to be changed.
    pub(crate) fn meet(&mut self, hash: u64, name: &str) -> &mut Host {
        self.dirty.insert(hash);
        let host = self.by_hash.entry(hash).or_default();
        if host.record.name.is_empty() {
            host.record.name = name.into();
            if let Some(domains) = &mut self.domains {
                host.domain = domains.add(&host.record);
            }
        }
        host
    }

    /// Takes in what an attempt tells; `page` when it counts for the page budget.
    pub(crate) fn learn(&mut self, hash: u64, report: &Report, page: bool) {
        let host = self.touch(hash);
        host.record.asked += u32::from(page);
        host.record.learn(report);
        let domain = host.domain;
        if let Some(domains) = &mut self.domains {
            domains.learn(domain, report, page);
        }
    }

    /// A waiting URL is handed out.
    pub(crate) fn claim(&mut self, hash: u64, rank: u64) {
        let host = self.known(hash);
        host.waiting = host.waiting.saturating_sub(1);
        host.claimed += 1;
        host.cursor = host.cursor.max(rank + 1);
        let domain = host.domain;
        if let Some(total) = self.domains.as_mut().and_then(|all| all.get_mut(domain)) {
            total.claimed += 1;
        }
    }

    /// A URL was handed out before the store was opened again.
    pub(crate) fn reclaim(&mut self, hash: u64) {
        let Some(host) = self.by_hash.get_mut(&hash) else {
            return;
        };
        host.claimed += 1;
        let domain = host.domain;
        if let Some(total) = self.domains.as_mut().and_then(|all| all.get_mut(domain)) {
            total.claimed += 1;
        }
    }

    /// A URL that was handed out is answered.
    pub(crate) fn unclaim(&mut self, hash: u64) {
        let host = self.known(hash);
        host.claimed = host.claimed.saturating_sub(1);
        let domain = host.domain;
        if let Some(total) = self.domains.as_mut().and_then(|all| all.get_mut(domain)) {
            total.claimed = total.claimed.saturating_sub(1);
        }
    }

    /// What the domain of a host has used.
    pub(crate) fn domain(&self, host: &Host) -> Option<&Total> {
        self.domains.as_ref()?.get(host.domain)
    }

    pub(crate) fn get(&self, hash: u64) -> Option<&Host> {
        self.by_hash.get(&hash)
    }

    /// The hosts with certain names.
    pub(crate) fn named(&self, of: &dyn Fn(&str) -> bool) -> impl Iterator<Item = u64> {
        let hosts = self.by_hash.iter();
        hosts
            .filter(move |(_, host)| of(&host.record.name))
            .map(|(hash, _)| *hash)
    }

    /// The host, when only what this process knows of it changes: its record need not be written.
    fn known(&mut self, hash: u64) -> &mut Host {
        self.by_hash.entry(hash).or_default()
    }

    /// The host, to be changed; its record goes into the next commit.
    pub(crate) fn touch(&mut self, hash: u64) -> &mut Host {
        self.dirty.insert(hash);
        self.by_hash.entry(hash).or_default()
    }

    /// Takes over a record from disk. All that is queued counts as waiting until `not_waiting` says no.
    pub(crate) fn load(&mut self, hash: u64, record: HostRecord) {
        let waiting = record.queued;
        let domain = self.domains.as_mut().map(|domains| domains.add(&record));
        self.by_hash.insert(
            hash,
            Host {
                record,
                waiting,
                domain: domain.unwrap_or_default(),
                ..Host::default()
            },
        );
    }

    /// One of the host's queued URLs is a retry or a claim, and lies elsewhere than in its queue.
    pub(crate) fn not_waiting(&mut self, hash: u64) {
        if let Some(host) = self.by_hash.get_mut(&hash) {
            host.waiting = host.waiting.saturating_sub(1);
        }
    }

    /// After loading: every host with waiting URLs gets its turn.
    pub(crate) fn begin_turns(&mut self) {
        for (hash, host) in &mut self.by_hash {
            if host.waiting > 0 {
                host.in_turn = true;
                self.turns.push_back(*hash);
                self.visited.insert(*hash);
            }
        }
    }

    /// A URL waits for the host at this rank.
    pub(crate) fn waits(&mut self, hash: u64, rank: u64) {
        let host = self.known(hash);
        host.waiting += 1;
        host.cursor = host.cursor.min(rank);
        if !host.in_turn {
            host.in_turn = true;
            // A host that comes into turn anew has been asked for everything below its new URL.
            if host.waiting == 1 {
                host.cursor = rank;
            }
            self.turns.push_back(hash);
        }
    }

    /// The next host in turn that is not rejected; a host with nothing waiting leaves the round, and one that
    /// must not be asked yet comes back when it may, so that a hundred thousand of them cost nothing.
    pub(crate) fn next_turn(
        &mut self,
        now: Timestamp,
        rejected: &dyn Fn(u64, &Host) -> bool,
    ) -> Option<u64> {
        while self.put_off.first().is_some_and(|(end, _)| *end <= now) {
            let host = self.put_off.pop_first();
            self.turns.extend(host.map(|(_, hash)| hash));
        }
        for _ in 0..self.turns.len() {
            let hash = self.turns.pop_front()?;
            let Some(host) = self.by_hash.get_mut(&hash) else {
                continue;
            };
            if host.waiting == 0 {
                host.in_turn = false;
                continue;
            }
            if host.record.not_before > now {
                self.put_off.insert((host.record.not_before, hash));
                continue;
            }
            let skip = rejected(hash, host);
            self.turns.push_back(hash);
            if !skip {
                return Some(hash);
            }
        }
        None
    }

    /// A visit joins the queue of a host.
    pub(crate) fn visit(&mut self, hash: u64) {
        self.visited.insert(hash);
    }

    /// The hosts that may have visits waiting.
    pub(crate) fn with_visits(&self) -> impl Iterator<Item = (u64, &Host)> {
        let hosts = self.visited.iter();
        hosts.filter_map(|hash| Some((*hash, self.by_hash.get(hash)?)))
    }

    /// A look into the queue of a host found no visit.
    pub(crate) fn no_visits(&mut self, hash: u64) {
        self.visited.remove(&hash);
    }

    /// A URL of this rank was passed over by a claim of later ones, and still waits.
    pub(crate) fn passed_over(&mut self, hash: u64, rank: u64) {
        if let Some(host) = self.by_hash.get_mut(&hash) {
            host.cursor = host.cursor.min(rank);
        }
    }

    /// Changes the ends of waits, and the times from which budgets are counted.
    pub(crate) fn each_end_of_wait(&mut self, change: impl Fn(&mut Timestamp)) {
        for (hash, host) in &mut self.by_hash {
            let before = (host.record.not_before, host.record.since);
            change(&mut host.record.not_before);
            host.record.since.iter_mut().for_each(&change);
            if before != (host.record.not_before, host.record.since) {
                self.dirty.insert(*hash);
            }
        }
        let put_off = std::mem::take(&mut self.put_off);
        self.turns.extend(put_off.into_iter().map(|(_, hash)| hash));
    }

    /// When the first of the hosts that have URLs but must wait may be asked again.
    pub(crate) fn next_end_of_wait(&self, now: Timestamp) -> Option<Timestamp> {
        let end = |hash: &u64| {
            let host = self.by_hash.get(hash)?;
            let waits = host.waiting > 0 && host.record.blocked.is_none();
            waits.then_some(host.record.not_before)
        };
        // The end that was known when a host was put off, for only then is the first the earliest. It may have
        // moved away since, and then this is a look too many.
        let mut put_off = self.put_off.iter().filter(|(_, hash)| end(hash).is_some());
        let put_off = put_off.find(|(end, _)| *end > now).map(|(end, _)| *end);
        let in_turn = self.turns.iter().filter_map(end);
        in_turn.chain(put_off).filter(|end| *end > now).min()
    }

    /// True when URLs wait, and all of them for hosts that an operator has blocked.
    pub(crate) fn only_blocked(&self) -> bool {
        let put_off = self.put_off.iter().map(|(_, hash)| hash);
        let hosts = self.turns.iter().chain(put_off);
        let hosts = hosts.filter_map(|hash| self.by_hash.get(hash));
        let mut waiting = hosts.filter(|host| host.waiting > 0).peekable();
        waiting.peek().is_some() && waiting.all(|host| host.record.blocked.is_some())
    }

    /// Hosts with URLs that could be claimed.
    pub(crate) fn in_turn(&self) -> usize {
        self.turns.len() + self.put_off.len()
    }

    /// Hosts known.
    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Bytes of RAM in use, about. A table is seven eighths full at most, and a byte a place is its own.
    pub(crate) fn bytes(&self) -> usize {
        const NAME: usize = 48;
        const TURN: usize = 16;
        let places = self.by_hash.capacity() / 7 * 8;
        let domains = self.domains.as_ref().map_or(0, Domains::bytes);
        places * (size_of::<(u64, Host)>() + 1) + self.by_hash.len() * (NAME + TURN) + domains
    }

    /// The records that changed, for the commit.
    pub(crate) fn take_dirty(&mut self) -> impl Iterator<Item = (u64, &HostRecord)> {
        let by_hash = &self.by_hash;
        self.dirty
            .drain()
            .filter_map(move |hash| Some((hash, &by_hash.get(&hash)?.record)))
    }
}
