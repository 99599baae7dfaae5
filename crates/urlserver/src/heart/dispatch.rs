//! Who goes next: the one place that moves slots from state to state and makes orders.
//!
//! A slot thinks (`settle`) when something about it has changed, never because others have; when it
//! could go it gets in line, and `pump` serves the line as long as orders may go out. An address that
//! several hosts share has a line of its own, and only its first gets in the common one. So an order
//! costs a few steps and one entry in a heap, however many hosts wait.

use std::net::IpAddr;

use orbweaver_model::{Order, Outcome, OutcomeClass, Subject, Timestamp};

use super::{Heart, PATIENCE, Turn, Wake};
use crate::host::Host;
use crate::ips::Next;
use crate::message::{Action, RobotsAnswer};
use crate::origins::Judgement;
use crate::slot::{Slot, Stamped, Work};
use crate::slots::SlotState;
use crate::verdicts::{self, Allowance};
use crate::window::Out;
use orbweaver_turns::Neighbourhood;

/// What came of trying to send.
enum Sending {
    /// The host's own clock has moved while the slot stood in line.
    NotYet,
    /// What its robots.txt was known to allow is too old by now.
    Reconsidered,
    /// An order.
    Out(Order),
}

impl Heart {
    /// Finds out what a slot waits for, and has it wait there.
    pub(super) fn settle(&mut self, slot: u32, now: Timestamp) {
        let in_line = self.slots.state(slot) == SlotState::AwaitingVerdict;
        let is_costly = || self.slots.get(slot).is_some_and(|(s, _)| s.is_costly());
        let allowance = if in_line || is_costly() {
            Allowance::NOTHING
        } else {
            Allowance::HOST
        };
        self.settle_with(slot, allowance, now);
    }

    /// The same, when so much may be spent on verdicts.
    fn settle_with(&mut self, slot: u32, allowance: Allowance, now: Timestamp) {
        if self.slots.state(slot) == SlotState::Free {
            return;
        }
        self.yield_if_held(slot, now);
        self.pick(slot, allowance, now);
        let Some((found, host)) = self.slots.get(slot) else {
            return;
        };
        let Some(state) = next_state(found, host, now) else {
            self.release(slot, now);
            return;
        };
        let stays = match (self.slots.state(slot), state) {
            // Whoever stands in the line of the address keeps the place there.
            (SlotState::AtIp { ip }, SlotState::Ready) => host.ip(now) == Some(ip),
            (old, new) => old == new,
        };
        if !stays {
            self.enter(slot, state, now);
        }
        self.mark(slot);
    }

    /// Moves a slot and gets it in the line that belongs to the state.
    fn enter(&mut self, slot: u32, state: SlotState, now: Timestamp) {
        self.slots.enter(slot, state);
        let stamped = self.slots.stamped(slot);
        match state {
            SlotState::Ready => self.wait_for_place(Turn::Slot(stamped), now),
            SlotState::Waiting { until } => self.alarms.set(until, Wake::Slot(stamped)),
            SlotState::AtIp { ip } => self.ips.join_line(ip, stamped),
            SlotState::Resolving => self.ask_resolver_for(slot),
            SlotState::AwaitingVerdict => {
                if let Some(at) = self.verdicts.join(stamped) {
                    self.alarms.set(at, Wake::Verdicts);
                }
            }
            SlotState::Free | SlotState::Busy | SlotState::AwaitingRobots | SlotState::Emptied => {}
        }
    }

    fn ask_resolver_for(&mut self, slot: u32) {
        let out = &mut self.out;
        self.slots.change(slot, |slot, host| {
            if slot.ask_resolver() {
                let host = host.name().clone();
                out.push(Action::Resolve { host });
            }
        });
    }

    /// The slot is done with its host; any other may come.
    fn release(&mut self, slot: u32, now: Timestamp) {
        if let Some((host, hash)) = self.slots.release(slot) {
            if let Some(hash) = hash {
                self.requests.forget(hash);
            }
            self.places.left(host.speed());
            self.hosts.rest(host, now);
        }
    }

    /// A host that has asked for long patience gives its URLs back and its slot up.
    fn yield_if_held(&mut self, slot: u32, now: Timestamp) {
        let Some(until) = self.slots.host(slot).map(|host| host.clock.held_until()) else {
            return;
        };
        if until <= now.after(PATIENCE) {
            return;
        }
        let (urls, jobs) = self.empty(slot);
        if !urls.is_empty() {
            self.out.give_back(urls, Some(until));
        }
        let held = Outcome::because(
            OutcomeClass::DeniedRobots,
            "robots.txt: the host that it redirects to sent Retry-After",
        );
        let held = RobotsAnswer::Unreachable {
            outcome: held,
            wait: Some(until.since(now)),
        };
        self.drop_jobs(slot, jobs, &held, now);
    }

    /// Chooses what goes out next, if that is not chosen yet: a robots.txt before any page, and of the
    /// pages the first one that is allowed.
    ///
    /// When the allowance is spent, the others wait for the next one.
    fn pick(&mut self, slot: u32, mut allowance: Allowance, now: Timestamp) {
        let recalls = self.recalls_robots();
        loop {
            self.refill(slot);
            let verdicts = &mut self.verdicts;
            let judgement = self.slots.change(slot, |slot, host| {
                if slot.next().is_some() || slot.choose_job() || allowance.is_spent() {
                    return None;
                }
                let candidate = slot.pop()?;
                let mut steps = 0;
                let judgement = host.judge(candidate, recalls, &mut steps, now);
                let refused = matches!(judgement, Judgement::Denied(..));
                slot.set_costly(verdicts::is_costly(steps));
                allowance.spend(steps, refused);
                verdicts.count(steps, refused);
                match judgement {
                    Judgement::Allowed(candidate, until) => {
                        slot.choose(candidate, until);
                        None
                    }
                    Judgement::Parked(job) => {
                        slot.add_jobs(job);
                        Some(Judgement::Parked(None))
                    }
                    judgement => Some(judgement),
                }
            });
            match judgement.flatten() {
                Some(Judgement::Denied(candidate, outcome, again)) => {
                    self.out.refuse(candidate, outcome, again);
                }
                Some(Judgement::Recalled(origin, again)) => {
                    self.recalls.add(origin, again);
                    self.recall_robots(now);
                }
                Some(Judgement::Parked(_)) => {}
                Some(Judgement::Allowed(..)) | None => return,
            }
        }
    }

    /// The leftover queue fills the host's queue before anything new does.
    fn refill(&mut self, slot: u32) {
        let (leftover, queue_len) = (&mut self.leftover, self.options.queue_len);
        self.slots.change(slot, |slot, host| {
            while slot.has_leftover() && slot.holds(host) < queue_len {
                match leftover.next_of(host.name()) {
                    Some(candidate) => {
                        slot.name(candidate.key.host);
                        slot.push(candidate);
                    }
                    None => slot.set_leftover(false),
                }
            }
        });
    }

    /// The line of those who wait for verdicts has its turn.
    pub(super) fn give_verdicts(&mut self, now: Timestamp) {
        self.verdicts.begin_turn();
        while let Some(stamped) = self.verdicts.next_in_turn() {
            if self.slots.is_current(stamped) {
                // Its place in line is used up; if it has not come to an end, it gets in line again.
                self.slots.enter(stamped.0, SlotState::Emptied);
                self.settle_with(stamped.0, Allowance::HOST, now);
            }
        }
        if let Some(at) = self.verdicts.end_turn(now) {
            self.alarms.set(at, Wake::Verdicts);
        }
    }

    /// Hands out orders in turn, as long as more may be out.
    pub(super) fn pump(&mut self, now: Timestamp) {
        if self.draining || self.paused {
            return;
        }
        while let Some(turn) = self.places.next_turn() {
            match turn {
                Turn::Slot(stamped) => self.serve_slot(stamped, now),
                Turn::Ip(ip) => self.serve_ip(ip, now),
            }
        }
        self.take_places_back();
    }

    /// A slot, or the first in the line of an address, gets in line for a place.
    pub(super) fn wait_for_place(&mut self, turn: Turn, now: Timestamp) {
        let (slot, ip) = match turn {
            Turn::Slot((slot, _)) => (Some(slot), None),
            Turn::Ip(ip) => (self.ips.first_in_line(ip), Some(ip)),
        };
        let host = slot.and_then(|slot| self.slots.host(slot));
        let ip = ip.or_else(|| host.and_then(|host| host.ip(now)));
        // Nobody is ready without a host and its address; whoever comes to be so has no neighbours.
        let nowhere = Neighbourhood::Network(u64::MAX);
        let home = host
            .zip(ip)
            .map_or([nowhere; 2], |(host, ip)| host.home(ip));
        let speed = host.map(Host::speed).unwrap_or_default();
        self.places.wait(speed, home, turn);
    }

    fn serve_slot(&mut self, stamped: Stamped, now: Timestamp) {
        if !self.slots.is_current(stamped) {
            return;
        }
        let (slot, _) = stamped;
        let Some(ip) = self.slots.host(slot).and_then(|host| host.ip(now)) else {
            self.settle(slot, now);
            return;
        };
        if self.ips.is_open(ip, now) {
            self.send(slot, ip, now);
        } else if self.is_one_too_many(slot, ip) {
            self.send_away(slot, ip, now);
        } else {
            self.enter(slot, SlotState::AtIp { ip }, now);
            self.watch_ip(ip, now);
        }
    }

    /// The first in the line of an address goes.
    fn serve_ip(&mut self, ip: IpAddr, now: Timestamp) {
        if !self.ips.has_turn(ip) {
            return;
        }
        while self.places.held() < self.options.in_flight
            && let Some(stamped) = self.ips.take_first(ip, now)
        {
            if !self.slots.is_current(stamped) {
                continue;
            }
            let (slot, _) = stamped;
            if self.slots.host(slot).and_then(|host| host.ip(now)) == Some(ip) {
                self.send(slot, ip, now);
                break;
            }
            self.settle(slot, now);
        }
        self.watch_ip(ip, now);
        self.ips.rest(ip);
    }

    /// An address with hosts in its line gets in the common line when it may be asked, or an alarm for
    /// when it may; when it waits for an answer, that answer brings it here again.
    pub(super) fn watch_ip(&mut self, ip: IpAddr, now: Timestamp) {
        match self.ips.next(ip, now) {
            Next::Ready => self.wait_for_place(Turn::Ip(ip), now),
            Next::At(at) => self.alarms.set(at, Wake::Ip(ip)),
            Next::Nothing => {}
        }
    }

    /// Whether a host that would get in the line of an address had better make way (`crowds`). One that has been asked
    /// since it got its queue stays, lest its URLs go to and fro, and so does one that others have moved their
    /// robots.txt to.
    fn is_one_too_many(&self, slot: u32, ip: IpAddr) -> bool {
        let crowded = !self.has_empty_queue() && self.crowds.is_crowded(self.ips.line(ip));
        let may_go = |(slot, host): (&Slot, &Host)| {
            !slot.is_served() && slot.hash().is_some() && slot.has_own_jobs_only(host)
        };
        crowded && self.slots.get(slot).is_some_and(may_go)
    }

    /// Sends a host away.
    fn send_away(&mut self, slot: u32, ip: IpAddr, now: Timestamp) {
        if let Some(hash) = self.slots.get(slot).and_then(|(slot, _)| slot.hash()) {
            self.crowds.send_away(hash, ip);
        }
        let (urls, jobs) = self.empty(slot);
        self.slots.change(slot, |_, host| {
            for job in jobs {
                host.origins.forget_question(job.door);
            }
        });
        if !urls.is_empty() {
            self.out.give_back(urls, None);
        }
        self.settle(slot, now);
    }

    /// Makes the order. The caller has made sure that host and address may be asked.
    fn send(&mut self, number: u32, ip: IpAddr, now: Timestamp) {
        let ip_has_gap = self.ips.has_gap();
        let places = &mut self.places;
        let sending = self.slots.change(number, |slot, host| {
            if !host.clock.is_open(now) {
                return Some(Sending::NotYet);
            }
            if slot.reconsider(now) {
                return Some(Sending::Reconsidered);
            }
            let (subject, job) = match slot.take_next()? {
                Work::Page(candidate, _) => (Subject::Page(candidate), None),
                Work::Robots(job) => (Subject::Robots(job.url.clone()), Some(Box::new(job))),
            };
            let (speed, home) = (host.speed(), host.home(ip));
            slot.window.grow(host.clock.window());
            let trans = slot.window.occupy(
                number,
                Out {
                    key: subject.page().map(|candidate| candidate.key),
                    ip,
                    since: now,
                    speed,
                    home,
                    is_given_up: false,
                    announced: false,
                    lost: false,
                    job,
                },
            )?;
            slot.serve();
            host.clock.give();
            places.take(speed, home);
            let order = Order {
                trans,
                ip: host.address(now).unwrap_or(ip),
                subject,
                announce: !host.clock.delay().is_zero() || ip_has_gap,
            };
            Some(Sending::Out(order))
        });
        match sending.flatten() {
            None => return,
            Some(Sending::NotYet) => {}
            Some(Sending::Reconsidered) => self.slots.enter(number, SlotState::Emptied),
            Some(Sending::Out(order)) => {
                self.ips.clock(ip).give();
                self.watch_order(order.trans, now);
                self.out.push(Action::Send(order));
                // Its place in line is used up; if it can go again, it gets in line at the end.
                self.slots.enter(number, SlotState::Emptied);
            }
        }
        self.settle(number, now);
    }
}

/// What a slot waits for; none when it has nothing to do any more.
fn next_state(slot: &Slot, host: &Host, now: Timestamp) -> Option<SlotState> {
    if slot.next().is_none() {
        return if slot.has_queue() {
            Some(SlotState::AwaitingVerdict)
        } else if host.origins.parked() > 0 {
            Some(SlotState::AwaitingRobots)
        } else if slot.window.active() > 0 {
            Some(SlotState::Emptied)
        } else {
            None
        };
    }
    let until = host.clock.next_at();
    Some(if host.clock.is_blocked() {
        SlotState::Busy
    } else if until > now {
        SlotState::Waiting { until }
    } else if host.ip(now).is_none() {
        SlotState::Resolving
    } else {
        SlotState::Ready
    })
}
