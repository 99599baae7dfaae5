//! What happens to orders that are out: they are written, they end, they last too long, they are lost and sent again.

use std::time::Duration;

use orbweaver_model::{Outcome, OutcomeClass, Timestamp, TransId};

use super::{Heart, Turn, Wake};
use crate::host::Host;
use crate::message::{Action, Done, RobotsAnswer};
use crate::slots::SlotState;
use orbweaver_turns::Speed;

/// How long the URLs of a slow host stay with the doc index when its queue is needed for others.
const AWAY: Duration = Duration::from_secs(60);
/// Slow hosts that make way for others at once.
const TOGETHER: usize = 16;
/// How soon to ask again while another order of the host or address is on its way out.
const SOON: Duration = Duration::from_millis(50);

/// What is to become of an order that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// It goes out now, under this name.
    Now(TransId),
    /// Not before then; ask again.
    At(Timestamp),
    /// It is over.
    Never,
}

impl Heart {
    /// The request of an order was written at `at`.
    pub fn sent(&mut self, trans: TransId, at: Timestamp, now: Timestamp) {
        // Where one is out at a time, the next waits for its end in any case.
        let largest = self.policies.largest_window();
        if largest.max(self.options.ip_concurrent) == 1 {
            return;
        }
        let noted = self.slots.change(trans.slot, |slot, host| {
            let out = slot.window.out(trans)?;
            let first = !std::mem::replace(&mut out.announced, true);
            host.clock.sent(at, first);
            Some((out.ip, first))
        });
        let Some((ip, first)) = noted.flatten() else {
            return;
        };
        self.ips.clock(ip).sent(at, first);
        self.settle(trans.slot, now);
        self.watch_ip(ip, now);
        self.finish(now);
    }

    /// An order is over. A name that is unknown, or whose place has been used again, is passed over.
    pub fn done(&mut self, trans: TransId, done: Done, now: Timestamp) {
        let out = self
            .slots
            .change(trans.slot, |slot, _| slot.window.vacate(trans));
        let Some(out) = out.flatten() else {
            return;
        };
        self.places.free(out.speed, out.home);
        if out.is_given_up {
            self.lasting.gave_up();
        }
        if done.sent.is_some() || done.failed {
            let quick = self.lasting.took(now.since(out.since));
            // A robots.txt that came quickly does not promise quick pages.
            if quick && out.job.is_none() {
                self.change_speed(trans.slot, Host::was_quick);
            }
        }
        let adapt = self.adapt;
        let response = done.sent.zip(done.first_byte);
        let response = response.map(|(sent, first_byte)| first_byte.since(sent));
        self.slots.change(trans.slot, |_, host| {
            host.clock.done(&done, out.announced, out.lost);
            host.fit_pace(response, done.failed, adapt);
            if done.connect_failed {
                host.try_next_address(out.ip);
            }
        });
        self.ips.clock(out.ip).done(&done, out.announced, out.lost);
        if let Some(job) = out.job {
            let answer = done.robots.unwrap_or_else(|| {
                let lost = Outcome::because(OutcomeClass::DeniedRobots, "no answer");
                RobotsAnswer::unreachable(&lost)
            });
            self.robots_answered(*job, answer, now);
        }
        self.settle(trans.slot, now);
        self.watch_ip(out.ip, now);
        self.ips.rest(out.ip);
        self.finish(now);
    }

    /// An order is presumed lost and is to be sent again. To be called when it could go out at once.
    ///
    /// For the server such an order is one more request, so it keeps the gap like any other: from the moment at which
    /// it was lost, for until then the first may have been made. It goes out before anything new of its host, and only
    /// when it really does is it given its new name; who carries orders asks until then.
    pub fn resend(&mut self, trans: TransId, now: Timestamp) -> Resend {
        let ips = &mut self.ips;
        let resend = self.slots.change(trans.slot, |slot, host| {
            let Some(out) = slot.window.out(trans) else {
                return Resend::Never;
            };
            let ip = out.ip;
            if !std::mem::replace(&mut out.lost, true) {
                let announced = std::mem::take(&mut out.announced);
                host.clock.lose(now, announced);
                ips.clock(ip).lose(now, announced);
            }
            let (Some(host_at), Some(ip_at)) = (host.clock.again_at(), ips.clock(ip).again_at())
            else {
                return Resend::At(now.after(SOON));
            };
            let at = host_at.max(ip_at);
            if at > now {
                return Resend::At(at);
            }
            out.lost = false;
            host.clock.give_again();
            ips.clock(ip).give_again();
            let renamed = slot.window.rename(trans);
            renamed.map_or(Resend::Never, Resend::Now)
        });
        if let Some(Resend::Now(renamed)) = resend {
            self.watch_order(renamed, now);
        }
        resend.unwrap_or(Resend::Never)
    }

    /// An order went out: how long it lasts is watched.
    pub(super) fn watch_order(&mut self, trans: TransId, now: Timestamp) {
        if let Some(at) = self.lasting.watch(trans, now) {
            self.alarms.set(at, Wake::Lasting);
        }
    }

    /// The oldest order may have outstayed.
    pub(super) fn check_lasting(&mut self, now: Timestamp) {
        let overdue = self.lasting.woken(now);
        if let Some(at) = overdue.alarm {
            self.alarms.set(at, Wake::Lasting);
        }
        for trans in overdue.orders {
            self.outstay(trans);
        }
    }

    fn outstay(&mut self, trans: TransId) {
        let was = self.slots.change(trans.slot, |slot, _| {
            let out = slot.window.out(trans)?;
            Some(std::mem::replace(&mut out.speed, Speed::Slow))
        });
        let Some(was) = was.flatten() else {
            return;
        };
        if was != Speed::Slow {
            self.places.outstayed(was);
            let slots = &mut self.slots;
            self.lasting.has_outstayed(trans, |trans| {
                let out = slots.change(trans.slot, |slot, _| slot.window.out(trans).is_some());
                out.unwrap_or_default()
            });
        }
        self.change_speed(trans.slot, Host::was_slow);
    }

    fn change_speed(&mut self, slot: u32, change: impl FnOnce(&mut Host)) {
        let places = &mut self.places;
        self.slots.change(slot, |_, host| {
            let before = host.speed();
            change(host);
            if host.speed() != before {
                places.left(before);
                places.came(host.speed());
            }
        });
    }

    /// Takes places back that slow hosts hold beyond their part, as far as others wait for them.
    pub(super) fn take_places_back(&mut self) {
        if !self.options.can_give_up {
            return;
        }
        let wanted = self.places.wanted_back();
        while let Some(order) = self.lasting.next_to_give_up(wanted) {
            let told = self.slots.change(order.slot, |slot, _| {
                slot.window.out(order)?.is_given_up = true;
                Some(())
            });
            if told.flatten().is_some() {
                self.lasting.give_up();
                self.out.push(Action::GiveUp { order });
            }
        }
    }

    /// The spider has given an order up, as it was told, or has not sent it because its host is blocked. A robots.txt is
    /// requested again, unless it is blocked; a page has gone back to the doc index.
    pub fn given_up(&mut self, trans: TransId, now: Timestamp) {
        let given_up = self.slots.change(trans.slot, |slot, host| {
            let job = slot.window.out(trans)?.job.take();
            Some((job, host.name().clone()))
        });
        let Some((job, name)) = given_up.flatten() else {
            return;
        };
        let job = job.map(|job| *job);
        if self.policies.is_blocked(&name) {
            self.drop_blocked_jobs(trans.slot, job.into_iter().collect(), now);
        } else {
            self.slots.change(trans.slot, |slot, _| slot.add_jobs(job));
        }
        let done = Done {
            sent: None,
            first_byte: None,
            ended: now,
            connect_failed: false,
            failed: false,
            robots: None,
        };
        self.done(trans, done, now);
    }

    /// When every queue is taken, slow hosts that only wait for a place give theirs to others: the URLs go back to the
    /// doc index for a while.
    pub(super) fn make_way_for_others(&mut self, now: Timestamp) {
        let enough = self.options.in_flight / 8 + TOGETHER;
        for _ in 0..TOGETHER {
            let waiting = self.places.waiting(Speed::Slow);
            if self.has_empty_queue() || self.draining || waiting <= enough {
                return;
            }
            let Some(turn) = self.places.next_of(Speed::Slow) else {
                return;
            };
            let Turn::Slot(stamped) = turn else {
                // An address has a line of its own, which is kept short.
                self.wait_for_place(turn, now);
                return;
            };
            if !self.slots.is_current(stamped) {
                continue;
            }
            let (slot, _) = stamped;
            let (urls, jobs) = self.empty(slot);
            if !urls.is_empty() {
                self.out.give_back(urls, Some(now.after(AWAY)));
            }
            let slow = Outcome::because(
                OutcomeClass::DeniedRobots,
                "robots.txt: the host that it redirects to is slow",
            );
            let slow = RobotsAnswer::Unreachable {
                outcome: slow,
                wait: Some(AWAY),
            };
            self.drop_jobs(slot, jobs, &slow, now);
            self.slots.enter(slot, SlotState::Emptied);
            self.settle(slot, now);
        }
    }
}
