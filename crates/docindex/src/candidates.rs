//! Handing out work: candidates by host, with a reject list (A7).

use std::collections::{HashMap, HashSet};

use orbweaver_model::{Candidate, Claimed, Event, Spent, Timestamp, UrlKey};

use crate::budgets::Room;
use crate::error::Result;
use crate::hosts::Host;
use crate::index::DocIndex;
use crate::keyspaces::queue_key;
use crate::log::PartitionLog;
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

impl<L: PartitionLog> DocIndex<L> {
    /// Claims URLs for the URL server: hosts in turn, within a host by rank. Retries that are due by `now`
    /// join the queue first. Empty when nothing can be offered.
    pub fn candidates(&mut self, wanted: &Wanted, now: Timestamp) -> Result<Vec<Candidate>> {
        self.fall_due(now)?;
        let mut found = Vec::new();
        let mut claims = Vec::new();
        let mut exhausted = Vec::new();
        let mut offered = HashSet::new();
        // What this call gives to the hosts of a domain, which counts for its budget before it is claimed.
        let mut lent: HashMap<u64, usize> = HashMap::new();
        while found.len() < wanted.urls {
            let rejected = |hash: u64, host: &Host| {
                host.record.blocked.is_some()
                    || offered.contains(&hash)
                    || wanted.reject.contains(&hash)
            };
            let Some(host) = self.fold.hosts.next_turn(now, &rejected) else {
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
            let most = wanted.per_host.min(wanted.urls - found.len()).min(room);
            let before = found.len();
            self.take(host, most, &mut found, &mut claims)?;
            *lent.entry(domain).or_default() += found.len() - before;
        }
        if !claims.is_empty() {
            let batch = self.fold.last_batch + 1;
            exhausted.push(Event::Claim {
                batch,
                at: now,
                urls: claims,
            });
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

    /// Retries and visits that are due by `now` join the queue.
    pub fn fall_due(&mut self, now: Timestamp) -> Result<()> {
        if self.next_due().is_none_or(|due| due > now) {
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

    /// Reads up to `most` URLs from the front of a host's queue.
    fn take(
        &self,
        host: u64,
        most: usize,
        found: &mut Vec<Candidate>,
        claims: &mut Vec<Claimed>,
    ) -> Result<()> {
        let cursor = self.fold.hosts.get(host).map_or(0, |host| host.cursor);
        for guard in self
            .store
            .queue
            .range(queue_key(host, cursor)..=queue_key(host, u64::MAX))
            .take(most)
        {
            let (place, value) = guard.into_inner()?;
            let Ok(place) = place.as_ref().try_into().map(UrlKey::from_bytes) else {
                continue;
            };
            let waiting = decode::<QueueRecord>("queue", &value)?;
            let key = UrlKey {
                host,
                url: waiting.url_hash,
            };
            claims.push(Claimed {
                key,
                rank: place.url,
                attempts: waiting.attempts,
            });
            found.push(Candidate {
                key,
                doc_id: waiting.doc_id,
                url: waiting.url,
                kind: waiting.kind,
                depth: waiting.depth,
                attempts: waiting.attempts,
                chain: waiting.chain,
                revisit: waiting.revisit,
            });
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
                (self.options.budgets).room(&host.record, host.claimed, domain.zip(Some(lent)), now)
            }
            None => Room::Urls(usize::MAX),
        }
    }
}
