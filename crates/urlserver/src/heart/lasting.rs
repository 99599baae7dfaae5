//! Orders that hold their place for longer than is usual.
//!
//! A host whose order lasts too long is slow from then on, until it has been quick again a few times: it waits for
//! its next place with the slow ones (`places`). When slow hosts hold more places than is their part while others
//! wait, the orders that have outstayed last are given up: the spider stops, the URL goes back to the doc index, and
//! that costs it no attempt. This happens to a host once, not again and again, for what it is asked next is asked
//! within the part of the slow ones, and whoever has such a place may keep it to the end.
//!
//! Time in which this process itself did not get on is nobody's slowness: it is noticed by how late the alarm is.

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::{Outcome, OutcomeClass, Timestamp, TransId};

use super::alarm::Wake;
use super::{Action, Heart};
use crate::host::Host;
use crate::message::{Done, RobotsAnswer};
use crate::places::{Speed, Usual};

/// An alarm that is later than this was held up by ourselves.
const LATE: Duration = Duration::from_millis(250);
/// How long the URLs of a slow host stay with the doc index when its queue is needed for others.
const AWAY: Duration = Duration::from_secs(60);
/// Slow hosts that make way for others at once.
const TOGETHER: usize = 16;

/// The watch over orders that are out.
#[derive(Debug)]
pub(super) struct Lasting {
    /// Orders by when they began, in milliseconds in which we got on; those that are over are passed over. As many
    /// as begin within the patience.
    out: VecDeque<(u64, TransId)>,
    /// Orders that have outstayed, the last one last; those that are over are passed over, and go when they are many.
    outstayed: Vec<TransId>,
    usual: Usual,
    /// The alarm that is set.
    due: Option<Timestamp>,
    /// Milliseconds in which we did not get on.
    lost: u64,
    /// Orders that are being given up.
    given_up: usize,
}

impl Lasting {
    pub(super) fn new(places: usize) -> Self {
        Self {
            out: VecDeque::new(),
            outstayed: Vec::new(),
            usual: Usual::new(places),
            due: None,
            lost: 0,
            given_up: 0,
        }
    }

    /// The time in which we got on.
    fn own(&self, now: Timestamp) -> u64 {
        now.as_millis().saturating_sub(self.lost)
    }
}

impl Heart {
    /// An order went out.
    pub(super) fn watch_order(&mut self, trans: TransId, now: Timestamp) {
        let began = self.lasting.own(now);
        self.lasting.out.push_back((began, trans));
        self.watch_the_oldest(now);
    }

    /// Sets the alarm, unless it is set; not so often that it would go off for every single order.
    fn watch_the_oldest(&mut self, now: Timestamp) {
        if self.lasting.due.is_none()
            && let Some((began, _)) = self.lasting.out.front()
        {
            let patience = self.lasting.usual.patience();
            let began = began.saturating_add(self.lasting.lost);
            let at = Timestamp::from_millis(began).after(patience);
            self.set_watch(at.max(now.after(patience / 8)), now);
        }
    }

    fn set_watch(&mut self, at: Timestamp, now: Timestamp) {
        // At the end of time there is no later.
        if at > now {
            self.lasting.due = Some(at);
            self.alarms.set(at, Wake::Lasting);
        }
    }

    /// The oldest order may have outstayed.
    pub(super) fn check_lasting(&mut self, now: Timestamp) {
        let Some(due) = self.lasting.due.take() else {
            return;
        };
        let (late, patience) = (now.since(due), self.lasting.usual.patience());
        if late > LATE {
            self.lasting.lost = self.lasting.lost.saturating_add(late.as_millis() as u64);
            // Whatever is ready to be read is read first.
            self.set_watch(now.after(patience / 2), now);
            return;
        }
        let own = self.lasting.own(now);
        while let Some((began, trans)) = self.lasting.out.front().copied()
            && u128::from(own.saturating_sub(began)) >= patience.as_millis()
        {
            self.lasting.out.pop_front();
            self.outstay(trans);
        }
        if self.lasting.outstayed.len() > 2 * self.options.in_flight {
            let bench = &mut self.bench;
            let mut lives = |trans: &TransId| bench.get_mut(trans.slot)?.out(*trans).map(|_| ());
            self.lasting
                .outstayed
                .retain(|trans| lives(trans).is_some());
        }
        self.watch_the_oldest(now);
    }

    fn outstay(&mut self, trans: TransId) {
        let Some(out) = self
            .bench
            .get_mut(trans.slot)
            .and_then(|slot| slot.out(trans))
        else {
            return;
        };
        let was = std::mem::replace(&mut out.speed, Speed::Slow);
        if was != Speed::Slow {
            self.places.outstayed(was);
            self.lasting.outstayed.push(trans);
        }
        self.change_speed(trans.slot, Host::was_slow);
    }

    /// An order that was not given up has ended. A robots.txt that came quickly does not promise quick pages.
    pub(super) fn took(&mut self, slot: u32, since: Timestamp, is_page: bool, now: Timestamp) {
        let took = now.since(since);
        self.lasting.usual.saw(took);
        if is_page && took < self.lasting.usual.patience() {
            self.change_speed(slot, Host::was_quick);
        }
    }

    fn change_speed(&mut self, slot: u32, change: impl FnOnce(&mut Host)) {
        if let Some((_, host)) = self.bench.pair(slot) {
            let before = host.speed();
            change(host);
            if host.speed() != before {
                self.places.left(before);
                self.places.came(host.speed());
            }
        }
    }

    /// Takes places back that slow hosts hold beyond their part, as far as others wait for them.
    pub(super) fn take_places_back(&mut self) {
        if !self.options.can_give_up {
            return;
        }
        let wanted = self.places.wanted_back();
        while self.lasting.given_up < wanted
            && let Some(trans) = self.lasting.outstayed.pop()
        {
            let slot = self.bench.get_mut(trans.slot);
            if let Some(out) = slot.and_then(|slot| slot.out(trans)) {
                out.is_given_up = true;
                self.lasting.given_up += 1;
                self.actions.push(Action::GiveUp { order: trans });
            }
        }
    }

    /// An order that was to be given up is over, in whatever way.
    pub(super) fn forget_given_up(&mut self, was_given_up: bool) {
        self.lasting.given_up -= usize::from(was_given_up);
    }

    /// The spider has given an order up, as it was told. A robots.txt is asked for again; a page has gone back to the
    /// doc index.
    pub fn given_up(&mut self, trans: TransId, now: Timestamp) {
        let Some(out) = self
            .bench
            .get_mut(trans.slot)
            .and_then(|slot| slot.out(trans))
        else {
            return;
        };
        let job = out.job.take();
        let done = Done {
            sent: None,
            first_byte: None,
            ended: now,
            connect_failed: false,
            failed: false,
            robots: None,
        };
        if let Some((slot, _)) = self.bench.pair(trans.slot) {
            slot.jobs.extend(job.map(|job| *job));
        }
        self.done(trans, done, now);
    }

    /// When every queue is taken, slow hosts that only wait for a place give theirs to others: the URLs go back to the
    /// doc index for a while.
    pub(super) fn make_way_for_others(&mut self, now: Timestamp) {
        let enough = self.options.in_flight / 8 + TOGETHER;
        for _ in 0..TOGETHER {
            let full = self.bench.occupied() >= self.options.queue_count;
            if !full || self.draining || self.places.waiting(Speed::Slow) <= enough {
                return;
            }
            let Some(turn) = self.places.next_of(Speed::Slow) else {
                return;
            };
            let super::Turn::Slot((slot, stamp)) = turn else {
                // An address has a line of its own, which is kept short.
                self.wait_for_place(turn, now);
                return;
            };
            if self.bench.get(slot).is_none_or(|s| s.stamp() != stamp) {
                continue;
            }
            let until = now.after(AWAY);
            let (urls, jobs) = self.empty(slot);
            if !urls.is_empty() {
                self.give_back(urls, Some(until));
            }
            let slow = Outcome::because(
                OutcomeClass::DeniedRobots,
                "robots.txt: the host it moved to is slow, and others wait",
            );
            let slow = RobotsAnswer::Unreachable {
                outcome: slow,
                wait: Some(AWAY),
            };
            self.drop_jobs(slot, jobs, &slow, now);
            self.bench.enter(slot, crate::slot::SlotState::Emptied);
            self.settle(slot, now);
        }
    }
}
