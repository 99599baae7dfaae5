//! Many hosts on one address: they must not take the queues of hosts that could be asked meanwhile.
//!
//! Whole towns of names live on one machine, and however many of them have a queue, the machine is asked no more
//! often. So when every queue is taken and some hosts wait in the line of an address, one that comes new to that line
//! is sent away: its URLs go back to the doc index, and it is on the reject list until the line is short again. The
//! maps of a batch (`batch`) do the same for one request; this holds as long as the crowd does.

use std::collections::VecDeque;
use std::net::IpAddr;

use orbweaver_model::Timestamp;

use super::Heart;
use crate::hash::{HashMap, HashSet};
use crate::slot::Work;

/// Hosts that wait in the line of an address before others are sent away. With one request out at a time, two would
/// keep it busy.
const LINE: usize = 8;
/// Hosts that are remembered as sent away. More of them come again, after everybody else has had a turn.
const MAX_AWAY: usize = 1 << 16;

/// Who was sent away. Filled by the dispatcher, emptied with each request to the doc index for lines that have become
/// short; at most `MAX_AWAY`.
#[derive(Debug, Default)]
pub(super) struct Crowds {
    /// Hashes of hosts by the address they wait for, first come first served.
    by_ip: HashMap<IpAddr, VecDeque<u64>>,
    away: HashSet<u64>,
}

impl Crowds {
    /// The hosts, for the reject list.
    pub(super) fn hosts(&self) -> impl Iterator<Item = u64> {
        self.away.iter().copied()
    }
}

impl Heart {
    /// Whether a host that would get in the line of an address had better make way. One that has been asked since it
    /// got its queue stays, lest its URLs go to and fro, and so does one that others have moved their robots.txt to.
    pub(super) fn is_one_too_many(&self, slot: u32, ip: IpAddr) -> bool {
        let line = self.ips.get(ip).map_or(0, |ip| ip.line.len());
        let full = self.bench.occupied() >= self.options.queue_count;
        if line < LINE || !full || self.crowds.away.len() >= MAX_AWAY {
            return false;
        }
        let (Some(slot), Some(host)) = (self.bench.get(slot), self.bench.host(slot)) else {
            return false;
        };
        let next = slot.next.iter().filter_map(|next| match next {
            Work::Robots(job) => Some(job),
            Work::Page(..) => None,
        });
        let own = next.chain(&slot.jobs).all(|job| job.host == host.name);
        own && !slot.served && slot.hash.is_some()
    }

    /// Sends a host away.
    pub(super) fn send_away(&mut self, slot: u32, ip: IpAddr, now: Timestamp) {
        let hash = self.bench.get(slot).and_then(|slot| slot.hash);
        if let Some(hash) = hash.filter(|hash| self.crowds.away.insert(*hash)) {
            self.crowds.by_ip.entry(ip).or_default().push_back(hash);
        }
        let (urls, jobs) = self.empty(slot);
        for job in jobs {
            if let Some((_, host)) = self.bench.pair(slot) {
                host.origin(job.door).forget();
            }
        }
        if !urls.is_empty() {
            self.give_back(urls, None);
        }
        self.settle(slot, now);
    }

    /// The first of those who were sent away may come back when the line of their address is short. Each request
    /// calls some more, so that nobody waits for one that does not come.
    pub(super) fn call_back(&mut self) {
        let (ips, away) = (&self.ips, &mut self.crowds.away);
        self.crowds.by_ip.retain(|ip, hosts| {
            let line = ips.get(*ip).map_or(0, |ip| ip.line.len());
            if line < LINE / 2 {
                for hash in hosts.drain(..LINE.min(hosts.len())) {
                    away.remove(&hash);
                }
            }
            !hosts.is_empty()
        });
    }
}
