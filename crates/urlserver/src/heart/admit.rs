//! How URLs come in: into the queue of their host, an empty queue, or the leftover queue; and when
//! more of them are asked for.

use std::sync::Arc;

use orbweaver_model::{Candidate, LinkKind, Timestamp};

use super::alarm::Wake;
use super::{Asking, Heart, MAX_WANT, PAUSE, REJECTS_PER_QUEUE};
use crate::host::Host;
use crate::message::Notice;
use crate::slot::SlotState;

impl Heart {
    /// Finds room for a candidate: the queue of its host, an empty queue, or the leftover queue.
    pub(super) fn admit(&mut self, candidate: Candidate, now: Timestamp) {
        let name = candidate.url.host();
        if self.is_blocked(name) {
            self.give_back(vec![candidate], None);
        } else if let Some(slot) = self.hosts.slot(name) {
            self.enqueue(slot, candidate);
            self.wake_if_idle(slot, now);
        } else if self.bench.occupied() < self.options.queue_count {
            let name = self.hosts.shared_name(name);
            let slot = self.seat(&name);
            self.enqueue(slot, candidate);
            self.settle(slot, now);
        } else {
            let name = self.hosts.shared_name(name);
            if let Err(candidate) = self.leftover.keep(&name, candidate, false) {
                self.spilled.push(candidate);
            }
        }
    }

    /// Only a slot that had nothing to do has to think again when work arrives.
    fn wake_if_idle(&mut self, slot: u32, now: Timestamp) {
        match self.bench.get(slot).map(|slot| slot.state()) {
            Some(SlotState::AwaitingRobots | SlotState::Emptied) => self.settle(slot, now),
            _ => self.mark(slot),
        }
    }

    /// Gives a host a slot.
    pub(super) fn seat(&mut self, name: &Arc<str>) -> u32 {
        let delay = self.least_delay(name);
        let slot = self.bench.seat(|slot| {
            self.hosts
                .call(name, slot)
                .unwrap_or_else(|| Host::new(name.clone(), delay, self.asked_before))
        });
        if let Some((found, host)) = self.bench.pair(slot) {
            found.has_leftover = self.leftover.holds(name);
            self.places.came(host.speed());
        }
        self.shed_heaviest(slot);
        if self.options.is_too_much(self.bench.rules())
            && let Some((_, host)) = self.bench.pair(slot)
        {
            host.forget_rules();
            self.bench.weigh(slot);
        }
        slot
    }

    /// Puts a candidate into the queue of its host. The target of a redirect goes to the front, and
    /// pushes out the last one when the queue is full.
    fn enqueue(&mut self, slot: u32, candidate: Candidate) {
        let queue_len = self.options.queue_len;
        let Some((slot, host)) = self.bench.pair(slot) else {
            return;
        };
        slot.hash = Some(candidate.key.host);
        let held = slot.holds(host);
        if candidate.kind == LinkKind::Redirect {
            slot.queue.push_front(candidate);
            self.queued += 1;
            if held >= queue_len
                && let Some(last) = slot.queue.pop_back()
            {
                self.queued -= 1;
                match self.leftover.keep_first(&host.name, last) {
                    Ok(()) => slot.has_leftover = true,
                    Err(last) => self.spilled.push(last),
                }
            }
        } else if slot.has_leftover || held >= queue_len {
            match self.leftover.keep(&host.name, candidate, true) {
                Ok(()) => slot.has_leftover = true,
                Err(candidate) => self.spilled.push(candidate),
            }
        } else {
            slot.queue.push_back(candidate);
            self.queued += 1;
        }
    }

    pub(super) fn fill_empty_queues(&mut self, now: Timestamp) {
        while self.bench.occupied() < self.options.queue_count {
            let hosts = &self.hosts;
            let Some(name) = self.leftover.next_host(|name| hosts.slot(name).is_some()) else {
                return;
            };
            let slot = self.seat(&name);
            self.settle(slot, now);
        }
    }

    /// What the leftover queue has no memory for goes back to the doc index, which is its disk. The hosts
    /// of these URLs have full queues or none, so they are not offered again before there is room.
    pub(super) fn return_spilled(&mut self) {
        if !self.spilled.is_empty() {
            let spilled = std::mem::take(&mut self.spilled);
            self.spilled_in_all += spilled.len() as u64;
            self.give_back(spilled, None);
        }
    }

    /// The doc index is left alone for a moment.
    pub(super) fn pause_asking(&mut self, gathering: bool, now: Timestamp) {
        let until = now.after(PAUSE);
        self.alarms.set(until, Wake::Candidates);
        self.asking = Asking::Paused { until, gathering };
    }

    /// While a queue is empty, which no leftover could fill, more is asked for. The leftover queue
    /// never gets larger than all queues together by this.
    ///
    /// A request carries the whole reject list. When that is long and few queues are empty, it waits a
    /// moment for others to become so, lest the list be written anew for every host that is finished; and
    /// when the resolver has not answered for all names of the last batch, it waits as long for that.
    pub(super) fn ask_for_candidates(&mut self, now: Timestamp) {
        let (count, len) = (self.options.queue_count, self.options.queue_len);
        let empty = count.saturating_sub(self.bench.occupied());
        let full = self.leftover.len() >= count.saturating_mul(len);
        let resting = self.draining || self.paused;
        if empty == 0 || full || resting || self.asking != Asking::Idle {
            return;
        }
        let says_little = self.batch.is_open() || self.laden.len() > REJECTS_PER_QUEUE * empty;
        if says_little && !self.has_waited {
            self.pause_asking(true, now);
            return;
        }
        self.has_waited = false;
        let want = empty.saturating_mul(len).min(MAX_WANT);
        let crowded = self.batch.take_crowded(self.options.ip_batch_max);
        self.asking = Asking::Asked {
            want,
            crowded: !crowded.is_empty(),
        };
        self.call_back();
        let mut reject: Vec<u64> = self.laden.iter().copied().collect();
        reject.extend(self.crowds.hosts());
        reject.extend(crowded.iter().filter(|hash| !self.laden.contains(hash)));
        self.tell(Notice::NeedCandidates { want, reject });
    }

    /// Keeps the reject list: hosts whose queues are at least half full. A queue that has room again
    /// ends the pause, because now the doc index may have an answer.
    pub(super) fn mark(&mut self, slot: u32) {
        let half = self.options.queue_len.div_ceil(2);
        let Some((slot, host)) = self.bench.pair(slot) else {
            return;
        };
        let laden = slot.has_leftover || slot.holds(host) >= half;
        let Some(hash) = slot.hash else {
            return;
        };
        if laden == std::mem::replace(&mut slot.laden, laden) {
            return;
        }
        if laden {
            self.laden.insert(hash);
        } else {
            self.laden.remove(&hash);
            if matches!(
                self.asking,
                Asking::Paused {
                    gathering: false,
                    ..
                }
            ) {
                self.asking = Asking::Idle;
            }
        }
    }
}
