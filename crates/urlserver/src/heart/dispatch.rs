//! Who goes next: the one place that moves slots from state to state and makes orders.
//!
//! A slot thinks (`settle`) when something about it has changed, never because others have; when it
//! could go it gets in line, and `pump` serves the line as long as orders may go out. An address that
//! several hosts share has a line of its own, and only its first gets in the common one. So an order
//! costs a few steps and one entry in a heap, however many hosts wait.

use std::net::IpAddr;

use orbweaver_model::{Order, Outcome, OutcomeClass, Subject, Timestamp};

use super::alarm::Wake;
use super::obey::{self, Judgement};
use super::verdicts::{self, Allowance};
use super::{Action, Heart, PATIENCE, Turn};
use crate::host::Host;
use crate::message::RobotsAnswer;
use crate::places::Neighbourhood;
use crate::politeness::Ticket;
use crate::slot::{Out, RobotsJob, Slot, SlotState, Work};

impl Heart {
    /// Finds out what a slot waits for, and has it wait there.
    pub(super) fn settle(&mut self, slot: u32, now: Timestamp) {
        let allowance = match self.bench.get(slot) {
            Some(found) if found.state() == SlotState::AwaitingVerdict || found.is_costly => {
                Allowance::NOTHING
            }
            _ => Allowance::HOST,
        };
        self.settle_with(slot, allowance, now);
    }

    /// The same, when so much may be spent on verdicts.
    pub(super) fn settle_with(&mut self, slot: u32, allowance: Allowance, now: Timestamp) {
        if self
            .bench
            .get(slot)
            .is_none_or(|s| s.state() == SlotState::Free)
        {
            return;
        }
        self.yield_if_held(slot, now);
        self.pick(slot, allowance, now);
        let window = self.options.host_concurrent;
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        let Some(state) = next_state(found, host, window, now) else {
            self.release(slot, now);
            return;
        };
        let stays = match (found.state(), state) {
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
        self.bench.enter(slot, state);
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        let ticket = (slot, found.stamp());
        match state {
            SlotState::Ready => self.wait_for_place(Turn::Slot(ticket), now),
            SlotState::Waiting { until } => self.alarms.set(until, Wake::Slot(ticket)),
            SlotState::AtIp { ip } => self.ips.entry(ip).line.push_back(ticket),
            SlotState::Resolving => {
                if !std::mem::replace(&mut found.asked_resolver, true) {
                    let host = host.name.clone();
                    self.actions.push(Action::Resolve { host });
                }
            }
            SlotState::AwaitingVerdict => self.await_verdicts(ticket),
            SlotState::Free | SlotState::Busy | SlotState::AwaitingRobots | SlotState::Emptied => {}
        }
    }

    /// The slot is done with its host; any other may come.
    fn release(&mut self, slot: u32, now: Timestamp) {
        if let Some(found) = self.bench.get_mut(slot) {
            found.asked_resolver = false;
            found.has_leftover = false;
            found.laden = false;
            found.is_costly = false;
            found.served = false;
            if let Some(hash) = found.hash.take() {
                self.laden.remove(&hash);
            }
        }
        if let Some(host) = self.bench.release(slot) {
            self.places.left(host.speed());
            self.hosts.rest(host, now);
        }
    }

    /// A host that has asked for long patience gives its URLs back and its slot up.
    fn yield_if_held(&mut self, slot: u32, now: Timestamp) {
        let until = match self.bench.pair(slot) {
            Some((_, host)) => host.clock.held_until(),
            None => return,
        };
        if until <= now.after(PATIENCE) {
            return;
        }
        let (urls, jobs) = self.empty(slot);
        if !urls.is_empty() {
            self.give_back(urls, Some(until));
        }
        let held = Outcome::because(
            OutcomeClass::DeniedRobots,
            "robots.txt: the host it moved to asks for patience",
        );
        let held = RobotsAnswer::Unreachable {
            outcome: held,
            wait: Some(until.since(now)),
        };
        self.drop_jobs(slot, jobs, &held, now);
    }

    /// Gives up robots.txt files that were to be asked for at this slot's host. Its own are asked for
    /// when they are needed again; those of other hosts have failed.
    pub(super) fn drop_jobs(
        &mut self,
        slot: u32,
        jobs: Vec<RobotsJob>,
        answer: &RobotsAnswer,
        now: Timestamp,
    ) {
        for job in jobs {
            match self.bench.pair(slot) {
                Some((_, host)) if host.name == job.host => host.origin(job.door).forget(),
                _ => self.robots_answered(job, answer.clone(), now),
            }
        }
    }

    /// Chooses what goes out next, if that is not chosen yet: a robots.txt before any page, and of the
    /// pages the first one that is allowed.
    ///
    /// When the allowance is spent, the others wait for the next one.
    fn pick(&mut self, slot: u32, mut allowance: Allowance, now: Timestamp) {
        let recalls = self.recalls();
        loop {
            self.refill(slot);
            let Some((found, host)) = self.bench.pair(slot) else {
                return;
            };
            if found.next.is_some() {
                return;
            }
            if let Some(job) = found.jobs.pop_front() {
                found.next = Some(Work::Robots(job));
                return;
            }
            if allowance.is_spent() {
                return;
            }
            let Some(candidate) = found.queue.pop_front() else {
                return;
            };
            let mut steps = 0;
            let judgement = obey::judge(host, candidate, recalls, &mut steps, now);
            let refused = matches!(judgement, Judgement::Denied(..));
            found.is_costly = verdicts::is_costly(steps);
            allowance.spend(steps, refused);
            self.verdicts.count(steps, refused);
            match judgement {
                Judgement::Allowed(candidate, until) => {
                    found.next = Some(Work::Page(candidate, until));
                }
                Judgement::Denied(candidate, outcome, again) => {
                    self.queued -= 1;
                    self.refuse(candidate, outcome, again);
                }
                Judgement::Parked(job) => found.jobs.extend(job),
                Judgement::Recalled(origin, again) => self.recall_robots(origin, again, now),
            }
        }
    }

    /// The leftover queue fills the host's queue before anything new does.
    fn refill(&mut self, slot: u32) {
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        while found.has_leftover && found.holds(host) < self.options.queue_len {
            match self.leftover.next_of(&host.name) {
                Some(candidate) => {
                    found.hash = Some(candidate.key.host);
                    found.queue.push_back(candidate);
                    self.queued += 1;
                }
                None => found.has_leftover = false,
            }
        }
    }

    /// Hands out orders in turn, as long as more may be out.
    pub(super) fn pump(&mut self, now: Timestamp) {
        if self.draining || self.paused {
            return;
        }
        while let Some(turn) = self.places.next() {
            match turn {
                Turn::Slot(ticket) => self.serve_slot(ticket, now),
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
        let host = slot.and_then(|slot| self.bench.host(slot));
        let ip = ip.or_else(|| host.and_then(|host| host.ip(now)));
        // Nobody is ready without a host and its address; whoever comes to be so has no neighbours.
        let nowhere = Neighbourhood::Network(u64::MAX);
        let home = host
            .zip(ip)
            .map_or([nowhere; 2], |(host, ip)| host.home(ip));
        let speed = host.map(Host::speed).unwrap_or_default();
        self.places.wait(speed, home, turn);
    }

    fn serve_slot(&mut self, (slot, stamp): Ticket, now: Timestamp) {
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        if found.stamp() != stamp {
            return;
        }
        let Some(ip) = host.ip(now) else {
            self.settle(slot, now);
            return;
        };
        let open = self
            .ips
            .entry(ip)
            .clock
            .is_open(now, self.options.ip_concurrent, self.ip_delay);
        if open {
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
        let (window, delay) = (self.options.ip_concurrent, self.ip_delay);
        let Some(state) = self.ips.get_mut(ip) else {
            return;
        };
        state.is_ready = false;
        while let Some(state) = self.ips.get_mut(ip)
            && state.clock.is_open(now, window, delay)
            && self.orders < self.options.in_flight
            && let Some((slot, stamp)) = state.line.pop_front()
        {
            let lives = self.bench.get(slot).is_some_and(|s| s.stamp() == stamp);
            if !lives {
                continue;
            }
            if self.bench.pair(slot).and_then(|(_, host)| host.ip(now)) == Some(ip) {
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
        let (window, delay) = (self.options.ip_concurrent, self.ip_delay);
        let Some(state) = self.ips.get_mut(ip) else {
            return;
        };
        if state.line.is_empty() || state.is_ready || state.clock.is_blocked(window, delay) {
            return;
        }
        let at = state.clock.next_at(delay);
        if at <= now {
            state.is_ready = true;
            self.wait_for_place(Turn::Ip(ip), now);
        } else if state.wake.is_none_or(|wake| wake > at) {
            state.wake = Some(at);
            self.alarms.set(at, Wake::Ip(ip));
        }
    }

    /// Makes the order. The caller has made sure that host and address may be asked.
    fn send(&mut self, slot: u32, ip: IpAddr, now: Timestamp) {
        let window = self.options.host_concurrent;
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        // The host's own clock may have moved while the slot stood in line.
        if !host.clock.is_open(now, window, host.delay) {
            self.settle(slot, now);
            return;
        }
        // So may what its robots.txt was known to allow.
        if let Some(Work::Page(_, until)) = &found.next
            && *until <= now
        {
            if let Some(Work::Page(candidate, _)) = found.next.take() {
                found.queue.push_front(candidate);
            }
            self.bench.enter(slot, SlotState::Emptied);
            self.settle(slot, now);
            return;
        }
        let Some(work) = found.next.take() else {
            return;
        };
        let address = host.address(now).unwrap_or(ip);
        let announce = !host.delay.is_zero() || !self.ip_delay.is_zero();
        let (subject, job) = match work {
            Work::Page(candidate, _) => (Subject::Page(candidate), None),
            Work::Robots(job) => (Subject::Robots(job.url.clone()), Some(Box::new(job))),
        };
        let (speed, home) = (host.speed(), host.home(ip));
        let out = Out {
            key: subject.page().map(|candidate| candidate.key),
            ip,
            since: now,
            speed,
            home,
            is_given_up: false,
            announced: false,
            lost: false,
            job,
        };
        let Some(trans) = found.occupy(slot, out) else {
            return;
        };
        found.served = true;
        host.clock.give();
        self.ips.entry(ip).clock.give();
        self.places.take(speed, home);
        self.watch_order(trans, now);
        self.orders += 1;
        self.queued -= usize::from(subject.page().is_some());
        self.actions.push(Action::Send(Order {
            trans,
            ip: address,
            subject,
            announce,
        }));
        // Its place in line is used up; if it can go again, it gets in line at the end.
        self.bench.enter(slot, SlotState::Emptied);
        self.settle(slot, now);
    }
}

/// What a slot waits for; none when it has nothing to do any more.
fn next_state(slot: &Slot, host: &Host, window: u16, now: Timestamp) -> Option<SlotState> {
    if slot.next.is_none() {
        return if !slot.queue.is_empty() {
            Some(SlotState::AwaitingVerdict)
        } else if host.parked() > 0 {
            Some(SlotState::AwaitingRobots)
        } else if slot.active() > 0 {
            Some(SlotState::Emptied)
        } else {
            None
        };
    }
    let until = host.clock.next_at(host.delay);
    Some(if host.clock.is_blocked(window, host.delay) {
        SlotState::Busy
    } else if until > now {
        SlotState::Waiting { until }
    } else if host.ip(now).is_none() {
        SlotState::Resolving
    } else {
        SlotState::Ready
    })
}
