//! All per-host queues: `queue_count` slots, each holding one host at a time, and the state of each.
//!
//! What a slot holds is its own business (`slot`); when it moves from one state to another is the dispatcher's. Here the
//! counts are kept that must agree with all of them: slots by state, URLs in slots, bytes of robots.txt rules.

use std::collections::BTreeSet;
use std::net::IpAddr;

use orbweaver_model::Timestamp;

use crate::host::Host;
use crate::origins::LIGHT;
use crate::slot::{Slot, Stamped};

/// Where a slot stands. Each move goes through `Slots::enter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// No host; any host may come.
    #[default]
    Free,
    /// The next request waits for the host's addresses.
    Resolving,
    /// The next request waits for its time: the gap, or a Retry-After.
    Waiting {
        /// When.
        until: Timestamp,
    },
    /// The window is full, or the last request is not known to be written yet.
    Busy,
    /// The next request could go out; the slot stands in the line of those.
    Ready,
    /// The next request could go out but for its address; the slot stands in that address's line.
    AtIp {
        /// The address.
        ip: IpAddr,
    },
    /// Every URL left waits for a robots.txt that is being asked for, or will be.
    AwaitingRobots,
    /// URLs wait for a verdict of a robots.txt that is known; the slot stands in the line for those.
    AwaitingVerdict,
    /// Nothing is left but the orders that are out.
    Emptied,
}

impl SlotState {
    /// Number of states.
    const COUNT: usize = 9;

    const fn index(self) -> usize {
        match self {
            Self::Free => 0,
            Self::Resolving => 1,
            Self::Waiting { .. } => 2,
            Self::Busy => 3,
            Self::Ready => 4,
            Self::AtIp { .. } => 5,
            Self::AwaitingRobots => 6,
            Self::Emptied => 7,
            Self::AwaitingVerdict => 8,
        }
    }
}

/// A slot and what is kept about it.
#[derive(Debug, Default)]
struct Seat {
    slot: Slot,
    /// None only when it is free.
    host: Option<Host>,
    state: SlotState,
    /// A number that any move changes.
    stamp: u64,
    /// Bytes of its host's robots.txt rules when they were last counted.
    rules: usize,
}

/// All slots. Their number grows to `queue_count`, and beyond it only for hosts that another host's
/// robots.txt has moved to: those must not wait for a slot held by the very host that waits for them.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    seats: Vec<Seat>,
    free: Vec<u32>,
    counts: [usize; SlotState::COUNT],
    /// URLs in slots.
    queued: usize,
    /// Bytes of robots.txt rules of all hosts in slots.
    rules: usize,
    /// Slots whose rules could be given up, by their bytes.
    heavy: BTreeSet<(usize, u32)>,
}

impl Slots {
    /// Slots that hold a host.
    pub(crate) fn occupied(&self) -> usize {
        self.seats.len() - self.free.len()
    }

    /// Slots in a state like this one.
    pub(crate) fn count(&self, state: SlotState) -> usize {
        self.counts.get(state.index()).copied().unwrap_or_default()
    }

    /// URLs in slots.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// The state of a slot.
    pub(crate) fn state(&self, slot: u32) -> SlotState {
        let seat = self.seats.get(slot as usize);
        seat.map(|seat| seat.state).unwrap_or_default()
    }

    /// A slot as it stands now, for an entry in a line.
    pub(crate) fn stamped(&self, slot: u32) -> Stamped {
        let seat = self.seats.get(slot as usize);
        (slot, seat.map(|seat| seat.stamp).unwrap_or_default())
    }

    /// Whether a slot has not moved since it got in a line.
    pub(crate) fn is_current(&self, (slot, stamp): Stamped) -> bool {
        self.stamped(slot) == (slot, stamp)
    }

    /// A slot and the host in it.
    pub(crate) fn get(&self, slot: u32) -> Option<(&Slot, &Host)> {
        let seat = self.seats.get(slot as usize)?;
        Some((&seat.slot, seat.host.as_ref()?))
    }

    pub(crate) fn host(&self, slot: u32) -> Option<&Host> {
        self.get(slot).map(|(_, host)| host)
    }

    /// Changes a slot and the host in it, without losing count of the URLs.
    pub(crate) fn change<R>(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut Slot, &mut Host) -> R,
    ) -> Option<R> {
        let seat = self.seats.get_mut(slot as usize)?;
        let host = seat.host.as_mut()?;
        let before = seat.slot.holds(host);
        let result = change(&mut seat.slot, host);
        self.queued = self.queued + seat.slot.holds(host) - before;
        Some(result)
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.seats.len() as u32
    }

    /// Puts a host into a free slot.
    pub(crate) fn assign(&mut self, host: impl FnOnce(u32) -> Host) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::default());
            if let Some(free) = self.counts.get_mut(SlotState::Free.index()) {
                *free += 1;
            }
            (self.seats.len() - 1) as u32
        });
        if let Some(seat) = self.seats.get_mut(slot as usize) {
            seat.host = Some(host(slot));
        }
        self.weigh(slot);
        self.enter(slot, SlotState::Emptied);
        slot
    }

    /// Frees a slot, which holds nothing any more; its host goes, with the hash by which the reject list knows it.
    pub(crate) fn release(&mut self, slot: u32) -> Option<(Host, Option<u64>)> {
        let seat = self.seats.get_mut(slot as usize)?;
        let host = seat.host.take()?;
        let hash = seat.slot.reset();
        self.weigh(slot);
        self.enter(slot, SlotState::Free);
        self.free.push(slot);
        Some((host, hash))
    }

    /// Moves a slot to another state.
    pub(crate) fn enter(&mut self, slot: u32, state: SlotState) {
        let Some(seat) = self.seats.get_mut(slot as usize) else {
            return;
        };
        for (index, change) in [(seat.state.index(), -1), (state.index(), 1)] {
            if let Some(count) = self.counts.get_mut(index) {
                *count = count.saturating_add_signed(change);
            }
        }
        seat.state = state;
        seat.stamp += 1;
    }

    /// Counts the rules of the host in a slot anew.
    pub(crate) fn weigh(&mut self, slot: u32) {
        let Some(seat) = self.seats.get_mut(slot as usize) else {
            return;
        };
        let now = (seat.host.as_ref()).map_or(0, |host| host.origins.rules_bytes());
        let before = std::mem::replace(&mut seat.rules, now);
        self.rules = (self.rules + now).saturating_sub(before);
        if before != now {
            self.heavy.remove(&(before, slot));
        }
        if now > LIGHT {
            self.heavy.insert((now, slot));
        }
    }

    /// Bytes of robots.txt rules of all hosts in slots, as far as they were counted.
    #[cfg(test)]
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// Gives up rules while those of all hosts take more than `budget`: first of the host that has the most, until that
    /// is the one in `slot`. So whoever has few rules keeps them, whatever others have. True when it was enough.
    pub(crate) fn shed_others(&mut self, slot: u32, budget: usize) -> bool {
        while self.rules > budget
            && let Some((before, heaviest)) = self.heavy.last().copied()
            && heaviest != slot
        {
            self.change(heaviest, |_, host| host.origins.forget_rules());
            self.weigh(heaviest);
            let after = (self.seats.get(heaviest as usize)).map_or(0, |seat| seat.rules);
            if after >= before {
                break;
            }
        }
        self.rules <= budget
    }

    /// The counts agree with what they count.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        let (mut queued, mut occupied) = (0, 0);
        for seat in &self.seats {
            debug_assert_eq!(seat.state == SlotState::Free, seat.host.is_none());
            if let Some(host) = &seat.host {
                occupied += 1;
                queued += seat.slot.holds(host);
                let active = seat.slot.window.active();
                debug_assert_eq!(host.clock.active() as usize, active, "{}", host.name());
            }
        }
        debug_assert_eq!(queued, self.queued, "queued");
        debug_assert_eq!(occupied, self.occupied(), "occupied slots");
    }

    /// Every order that is out.
    #[cfg(debug_assertions)]
    pub(crate) fn outs(&self) -> impl Iterator<Item = &crate::window::Out> {
        self.seats.iter().flat_map(|seat| seat.slot.window.outs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orbweaver_robots::Robots;
    use orbweaver_testkit::candidate;

    use super::*;
    use crate::host::Grant;

    fn host(name: &str) -> Host {
        let grant = Grant {
            gap: Duration::ZERO,
            window: 1,
            obeys_robots: true,
        };
        Host::new(name.into(), grant, None)
    }

    #[test]
    fn every_change_is_counted() {
        let mut slots = Slots::default();
        let slot = slots.assign(|_| host("a"));
        assert_eq!((slots.occupied(), slots.count(SlotState::Emptied)), (1, 1));
        slots.change(slot, |slot, host| {
            for page in 0..3 {
                slot.push(candidate(&format!("http://a/{page}")));
            }
            let first = slot.pop().unwrap();
            host.judge(first, false, &mut 0, Timestamp::default());
        });
        assert_eq!(slots.queued(), 3, "what is parked is in the slot");
        slots.change(slot, |slot, _| slot.pop());
        assert_eq!(slots.queued(), 2);
        let urls = slots.change(slot, |slot, host| slot.take_all(host).0.len());
        assert_eq!((urls, slots.queued()), (Some(2), 0));
        slots.check();
        assert!(slots.release(slot).is_some() && slots.release(slot).is_none());
        assert_eq!((slots.occupied(), slots.count(SlotState::Free)), (0, 1));
        assert_eq!(slots.assign(|_| host("b")), slot, "it is used again");
        slots.check();
    }

    #[test]
    fn a_move_makes_entries_in_lines_stale() {
        let mut slots = Slots::default();
        let slot = slots.assign(|_| host("a"));
        let entry = slots.stamped(slot);
        assert!(slots.is_current(entry));
        slots.enter(slot, SlotState::Ready);
        assert!(!slots.is_current(entry));
        assert_eq!(slots.state(slot), SlotState::Ready);
        assert_eq!(slots.state(99), SlotState::Free);
    }

    #[test]
    fn the_longest_rules_are_given_up_first() {
        let mut slots = Slots::default();
        let mut rules = |name: &str, lines: usize| {
            let slot = slots.assign(|_| host(name));
            let body = (0..lines).fold("User-agent: *\n".to_owned(), |body, line| {
                body + &format!("Disallow: /a/long/path/{line}\n")
            });
            let robots = Robots::parse(body.as_bytes(), "orbweaver", usize::MAX);
            let (door, cap) = ((orbweaver_model::Scheme::Http, 80), Duration::MAX);
            slots.change(slot, |_, host| {
                let expires = Timestamp::from_millis(u64::MAX);
                host.origins.know(door, robots, cap, expires);
            });
            slots.weigh(slot);
            slot
        };
        let (few, many, own) = (rules("a", 100), rules("b", 400), rules("c", 200));
        let bytes = |slots: &Slots, slot| slots.host(slot).unwrap().origins.rules_bytes();
        let budget = slots.rules() - 1;
        assert!(slots.shed_others(own, budget));
        assert_eq!(bytes(&slots, many), 0);
        assert!(bytes(&slots, few) > 0 && bytes(&slots, own) > 0);
        assert!(!slots.shed_others(own, 0), "its own are left to the caller");
        assert!(bytes(&slots, few) > 0, "the heaviest is its own now");
    }
}
