//! Handing out work: candidates by host, with a reject list (A7).

use std::collections::{HashMap, HashSet};

use orbweaver_model::{Candidate, Claimed, Event, Room, Spent, Timestamp, UrlKey};

use super::Owner;
use crate::budgets;
use crate::error::Result;
use crate::hosts::Host;
use crate::keyspaces::queue_key;
use crate::log::Log;
use crate::record::{QueueRecord, decode};

/// What the URL server asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// URLs in all.
    pub urls: usize,
    /// URLs of one host.
    pub per_host: usize,
    /// Hosts that are not to be offered, by hash.
    pub reject: HashSet<u64>,
}

impl Wanted {
    /// How many of one more host, when so many URLs have been found.
    fn of_host(&self, found: usize) -> usize {
        self.per_host.min(self.urls.saturating_sub(found))
    }
}

/// How far into the queue of a host to look for visits. What was fetched ranks before what was not, but for URLs
/// that were found or promoted later.
const FURTHEST_VISIT: usize = 4096;

/// What is about to be handed out.
#[derive(Default)]
struct Taken {
    found: Vec<Candidate>,
    claims: Vec<Claimed>,
}

impl<L: Log> Owner<L> {
    /// Claims URLs for the URL server: hosts in turn, within a host by rank. Retries that are due by `now`
    /// join the queue first. Empty when nothing can be offered.
    pub fn candidates(&mut self, wanted: &Wanted, now: Timestamp) -> Result<Vec<Candidate>> {
        self.fall_due(now)?;
        let mut taken = Taken::default();
        let mut exhausted = Vec::new();
        let mut offered = HashSet::new();
        // What this call gives to the hosts of a domain, which counts for its budget before it is claimed.
        let mut lent: HashMap<u64, usize> = HashMap::new();
        while taken.found.len() < wanted.urls {
            let rejected = |hash: u64, host: &Host| {
                host.record.blocked.is_some()
                    || offered.contains(&hash)
                    || wanted.reject.contains(&hash)
            };
            let Some(host) = self.replica.fold.hosts.next_turn(now, &rejected) else {
                break;
            };
            offered.insert(host);
            let domain = self.fold.hosts.get(host).map_or(0, |host| host.domain);
            let lent_before = lent.get(&domain).copied().unwrap_or(0);
            let room = match self.room(host, lent_before, now) {
                Room::Urls(room) => room,
                Room::Spent(spent, outcome) => {
                    exhausted.push(Event::Exhaust {
                        host,
                        spent,
                        outcome,
                        at: now,
                    });
                    continue;
                }
            };
            let most = wanted.of_host(taken.found.len()).min(room);
            let before = taken.found.len();
            self.take(host, most, false, &mut taken)?;
            *lent.entry(domain).or_default() += taken.found.len() - before;
        }
        let Taken { found, claims } = taken;
        if !claims.is_empty() {
            exhausted.push(self.claim(claims, now));
        }
        let spent = exhausted.len() > usize::from(!found.is_empty());
        if !exhausted.is_empty() {
            self.apply(exhausted)?;
        }
        // What a host may still be asked for beyond its budget is found now that the budget is marked as spent.
        if found.is_empty() && spent {
            return self.candidates(wanted, now);
        }
        Ok(found)
    }

    /// Retries and visits that are due by `now` join the queue, and so do URLs that are retried later, which no
    /// crawl waits for.
    pub fn fall_due(&mut self, now: Timestamp) -> Result<()> {
        self.ready()?;
        let next = [self.next_due(), self.fold.next_visit];
        if next.into_iter().flatten().all(|due| due > now) {
            return Ok(());
        }
        let visits = self.options.recrawl;
        self.apply([Event::Due { now, visits }])
    }

    /// When the next URL can be handed out that cannot be now: a retry falls due, or a host has waited
    /// long enough. None when nothing but answers to claimed URLs can bring more.
    pub fn next_chance(&self, now: Timestamp) -> Option<Timestamp> {
        [self.next_due(), self.fold.hosts.next_end_of_wait(now)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Claims URLs that have brought a document before, and no others: what may be handed out when the page budget
    /// is spent. Retries and visits that are due by `now` join the queue first.
    pub fn visits(&mut self, wanted: &Wanted, now: Timestamp) -> Result<Vec<Candidate>> {
        self.fall_due(now)?;
        let mut taken = Taken::default();
        let ready = |(hash, host): &(u64, &Host)| {
            let record = &host.record;
            let held = record.blocked.is_some() || record.not_before > now;
            !held && !wanted.reject.contains(hash)
        };
        let hosts: Vec<(u64, u64)> = (self.fold.hosts.with_visits())
            .filter(ready)
            .map(|(hash, host)| (hash, host.cursor))
            .collect();
        let mut lent: HashMap<u64, usize> = HashMap::new();
        for (host, _) in &hosts {
            if taken.found.len() >= wanted.urls {
                break;
            }
            let domain = self.fold.hosts.get(*host).map_or(0, |host| host.domain);
            let lent = lent.entry(domain).or_default();
            let Room::Urls(room) = self.room(*host, *lent, now) else {
                continue;
            };
            let most = wanted.of_host(taken.found.len()).min(room);
            let before = taken.found.len();
            self.take(*host, most, true, &mut taken)?;
            *lent += taken.found.len() - before;
            if taken.found.len() == before && most > 0 {
                self.replica.fold.hosts.no_visits(*host);
            }
        }
        if !taken.found.is_empty() {
            let claim = self.claim(taken.claims, now);
            self.apply([claim])?;
            for (host, cursor) in hosts {
                self.replica.fold.hosts.passed_over(host, cursor);
            }
        }
        Ok(taken.found)
    }

    /// True when URLs that have brought a document before may be waiting.
    pub fn has_visits(&self) -> bool {
        let mut hosts = self.fold.hosts.with_visits();
        hosts.any(|(_, host)| host.waiting > 0)
    }

    fn claim(&self, urls: Vec<Claimed>, at: Timestamp) -> Event {
        let batch = self.fold.last_batch + 1;
        Event::Claim { batch, at, urls }
    }

    /// Reads up to `most` URLs from the front of a host's queue, all or only those that have brought a document
    /// before.
    fn take(&self, host: u64, most: usize, visits: bool, taken: &mut Taken) -> Result<()> {
        let cursor = self.fold.hosts.get(host).map_or(0, |host| host.cursor);
        let places = queue_key(host, cursor)..=queue_key(host, u64::MAX);
        let end = taken.found.len().saturating_add(most);
        for guard in self.store.queue.range(places).take(match visits {
            true => FURTHEST_VISIT,
            false => most,
        }) {
            if taken.found.len() >= end {
                break;
            }
            let (place, value) = guard.into_inner()?;
            let Ok(place) = place.as_ref().try_into().map(UrlKey::from_bytes) else {
                continue;
            };
            let waiting = decode::<QueueRecord>("queue", &value)?;
            if visits && !waiting.is_visit() {
                continue;
            }
            let candidate = waiting.candidate(host);
            taken.claims.push(Claimed {
                key: candidate.key,
                rank: place.url,
                attempts: candidate.attempts,
            });
            taken.found.push(candidate);
        }
        Ok(())
    }

    /// How many more URLs of a host may be handed out.
    fn room(&self, hash: u64, lent: usize, now: Timestamp) -> Room {
        let hosts = &self.fold.hosts;
        match hosts.get(hash) {
            // What still waits after that was asked for before, or goes on with a chain of redirects.
            Some(host) if host.record.spent == Some(Spent::Pages) => Room::Urls(usize::MAX),
            Some(host) => {
                let domain = hosts.domain(host);
                budgets::room(
                    &self.options.budgets,
                    &host.record,
                    host.claimed,
                    domain.zip(Some(lent)),
                    now,
                )
            }
            None => Room::Urls(usize::MAX),
        }
    }
}
