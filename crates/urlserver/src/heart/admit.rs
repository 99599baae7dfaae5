//! How URLs come in: into the queue of their host, an empty queue, or the leftover queue; and when
//! more of them are asked for.

use std::sync::Arc;

use orbweaver_model::{Candidate, LinkKind, Timestamp};

use super::{Heart, Wake};
use crate::batch::Answer;
use crate::host::Host;
use crate::message::Notice;
use crate::requests::Ask;
use crate::slots::SlotState;

impl Heart {
    /// Enters arriving candidates in the maps of the batch; gives the names that have no address yet.
    pub(super) fn map_batch(&mut self, candidates: &[Candidate], now: Timestamp) -> Vec<Arc<str>> {
        let mut unknown = Vec::new();
        for urls in candidates.chunk_by(|a, b| a.url.host() == b.url.host()) {
            let Some(first) = urls.first() else {
                continue;
            };
            let name = self.hosts.shared_name(first.url.host());
            let answer = match self.known_host(&name).and_then(|host| host.ip(now)) {
                Some(ip) => Answer::At(ip),
                None if self.policies.is_blocked(&name) => Answer::Nowhere,
                None => Answer::Open,
            };
            let (hash, count) = (first.key.host, urls.len());
            if self.requests.map(&name, hash, count, answer) {
                unknown.push(name);
            }
        }
        unknown
    }

    /// Finds room for a candidate: the queue of its host, an empty queue, or the leftover queue.
    pub(super) fn admit(&mut self, candidate: Candidate, now: Timestamp) {
        let name = candidate.url.host();
        if self.policies.is_blocked(name) {
            self.out.give_back(vec![candidate], None);
        } else if let Some(slot) = self.hosts.slot(name) {
            self.enqueue(slot, candidate);
            self.wake_if_idle(slot, now);
        } else if self.has_empty_queue() {
            let name = self.hosts.shared_name(name);
            let slot = self.assign_slot(&name);
            self.enqueue(slot, candidate);
            self.settle(slot, now);
        } else {
            let name = self.hosts.shared_name(name);
            self.leftover.keep(&name, candidate, false);
        }
    }

    /// Only a slot that had nothing to do has to think again when work arrives.
    fn wake_if_idle(&mut self, slot: u32, now: Timestamp) {
        match self.slots.state(slot) {
            SlotState::AwaitingRobots | SlotState::Emptied => self.settle(slot, now),
            _ => self.mark(slot),
        }
    }

    /// Gives a host a slot.
    pub(super) fn assign_slot(&mut self, name: &Arc<str>) -> u32 {
        let slot = self.slots.assign(|slot| {
            self.hosts.call(name, slot).unwrap_or_else(|| {
                Host::new(name.clone(), self.policies.grant(name), self.asked_before)
            })
        });
        let has_leftover = self.leftover.holds(name);
        let places = &mut self.places;
        self.slots.change(slot, |slot, host| {
            slot.set_leftover(has_leftover);
            places.came(host.speed());
        });
        if !self.slots.shed_others(slot, self.options.rules_bytes()) {
            self.slots
                .change(slot, |_, host| host.origins.forget_rules());
            self.slots.weigh(slot);
        }
        slot
    }

    /// Puts a candidate into the queue of its host. The target of a redirect goes to the front, and
    /// pushes out the last one when the queue is full.
    fn enqueue(&mut self, slot: u32, candidate: Candidate) {
        let (leftover, queue_len) = (&mut self.leftover, self.options.queue_len);
        self.slots.change(slot, |slot, host| {
            slot.name(candidate.key.host);
            let held = slot.holds(host);
            if candidate.kind == LinkKind::Redirect {
                slot.push_first(candidate);
                if held >= queue_len
                    && let Some(last) = slot.pop_last()
                    && leftover.keep_first(host.name(), last)
                {
                    slot.set_leftover(true);
                }
            } else if slot.has_leftover() || held >= queue_len {
                if leftover.keep(host.name(), candidate, true) {
                    slot.set_leftover(true);
                }
            } else {
                slot.push(candidate);
            }
        });
    }

    /// Gives empty queues to hosts that have URLs in the leftover queue.
    pub(super) fn fill_empty_queues(&mut self, now: Timestamp) {
        while self.has_empty_queue() {
            let hosts = &self.hosts;
            let Some(name) = self.leftover.next_host(|name| hosts.slot(name).is_some()) else {
                return;
            };
            let slot = self.assign_slot(&name);
            self.settle(slot, now);
        }
    }

    /// While a queue is empty, which no leftover could fill, more is asked for. The leftover queue
    /// never gets larger than all queues together by this.
    pub(super) fn ask_for_candidates(&mut self, now: Timestamp) {
        let (count, len) = (self.options.queue_count, self.options.queue_len);
        let full = self.leftover.len() >= count.saturating_mul(len);
        if full || self.draining || self.paused {
            return;
        }
        let empty = count.saturating_sub(self.slots.occupied());
        let ask = self
            .requests
            .ask(empty, len, self.options.ip_batch_max, now);
        match ask {
            Ask::NotNow => {}
            Ask::Later(at) => self.alarms.set(at, Wake::Candidates),
            Ask::Now { want, mut reject } => {
                let ips = &self.ips;
                self.crowds.call_back(|ip| ips.line(ip));
                reject.extend(self.crowds.hosts());
                self.out.tell(Notice::NeedCandidates { want, reject });
            }
        }
    }

    /// Keeps the reject list: hosts whose queues are at least half full.
    pub(super) fn mark(&mut self, slot: u32) {
        let half = self.options.queue_len.div_ceil(2);
        let requests = &mut self.requests;
        self.slots.change(slot, |slot, host| {
            let laden = slot.has_leftover() || slot.holds(host) >= half;
            if let Some(hash) = slot.mark(laden) {
                requests.mark(hash, laden);
            }
        });
    }
}
