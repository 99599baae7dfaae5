//! Looking ahead: memory is asked for before it is needed, for many hosts at once.
//!
//! With a million hosts nothing of a host whose time comes is in the processor's caches, and going from one
//! to the next costs a wait for each piece of memory: slot, host, queue, address. A first pass over all that
//! come up together, which only reads, has the processor wait for many of them at the same time. Nothing is
//! decided here, and leaving it out would change nothing but the time.

use std::hint::black_box;

use orbweaver_model::{Candidate, Timestamp};

use super::Heart;
use super::alarm::Wake;

/// Hosts looked at together: as many as a processor can wait for, and few enough to stay in its cache.
pub(super) const TOGETHER: usize = 32;

impl Heart {
    /// Reads what those whose time has come will need.
    pub(super) fn look_ahead(&self, wakes: &[Wake], now: Timestamp) {
        if wakes.len() < 2 {
            return;
        }
        let mut slots = [0; TOGETHER];
        for (slot, wake) in slots.iter_mut().zip(wakes) {
            *slot = match wake {
                Wake::Slot((slot, _)) => *slot,
                Wake::Ip(ip) => self.ips.first_in_line(*ip).unwrap_or(u32::MAX),
                _ => u32::MAX,
            };
        }
        let slots = slots.get(..wakes.len()).unwrap_or(&slots);
        self.read_slots(slots, now);
    }

    /// Reads what the hosts of arriving candidates will need.
    pub(super) fn look_ahead_for(&self, candidates: &[Candidate], now: Timestamp) {
        let hosts = candidates.chunk_by(|a, b| a.key.host == b.key.host);
        let mut slots = [u32::MAX; TOGETHER];
        let mut filled = 0;
        for (slot, urls) in slots.iter_mut().zip(hosts) {
            let name = urls.first().map(|first| first.url.host());
            *slot = name
                .and_then(|name| self.hosts.slot(name))
                .unwrap_or(u32::MAX);
            filled += 1;
        }
        if filled > 1 {
            self.read_slots(slots.get(..filled).unwrap_or(&slots), now);
        }
    }

    fn read_slots(&self, slots: &[u32], now: Timestamp) {
        for slot in slots {
            black_box(self.bench.read(*slot));
        }
        for slot in slots {
            let queued = self.bench.get(*slot).and_then(|slot| slot.queue.front());
            black_box(queued.map(|candidate| candidate.doc_id));
            let ip = self.bench.host(*slot).and_then(|host| host.ip(now));
            black_box(ip.and_then(|ip| self.ips.get(ip)).map(|ip| ip.is_ready));
        }
    }
}
