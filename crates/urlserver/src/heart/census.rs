//! Counting: what the progress line shows, and whether all counts agree.

use std::net::IpAddr;

use orbweaver_model::Timestamp;

use super::Heart;
use crate::message::{Bottleneck, Census};
use crate::places::Speed;
use crate::slot::SlotState;

impl Heart {
    /// A count of everything.
    pub fn census(&self) -> Census {
        let count = |state| self.bench.count(state);
        let zero = Timestamp::default();
        let any_ip = IpAddr::from([0, 0, 0, 0]);
        let census = Census {
            hosts: self.bench.occupied(),
            waiting_for_time: count(SlotState::Waiting { until: zero }),
            waiting_for_ip: count(SlotState::AtIp { ip: any_ip }),
            waiting_for_robots: count(SlotState::AwaitingRobots)
                + count(SlotState::AwaitingVerdict),
            resolving: count(SlotState::Resolving),
            busy: count(SlotState::Busy) + count(SlotState::Emptied),
            ready: count(SlotState::Ready),
            slow: self.places.waiting(Speed::Slow),
            orders: self.orders,
            queued: self.queued,
            leftover: self.leftover.len(),
            spilled: self.spilled_in_all,
            addresses: self.ips.len(),
            paused: self.paused,
            next_wake: self.next_wake(),
            bottleneck: Bottleneck::Candidates,
        };
        let waiting = census.waiting_for_time
            + census.waiting_for_ip
            + census.waiting_for_robots
            + count(SlotState::Busy);
        let bottleneck = if self.orders >= self.options.in_flight {
            Bottleneck::Sockets
        } else if census.resolving > waiting {
            Bottleneck::Resolver
        } else if waiting > 0 {
            Bottleneck::Politeness
        } else {
            Bottleneck::Candidates
        };
        Census {
            bottleneck,
            ..census
        }
    }

    /// Hosts that are remembered, in slots and at rest.
    pub fn known_hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A whole check costs as much as there are slots, so with many of them it is rare; few are
    /// checked after every message.
    #[cfg(debug_assertions)]
    pub(super) fn check_sometimes(&mut self) {
        self.unchecked += 1;
        if self.bench.occupied() < 16 || self.unchecked > 4 * self.bench.numbers().len() {
            self.unchecked = 0;
            self.check();
        }
    }

    /// The counts agree with what they count.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let mut per_ip = std::collections::HashMap::<IpAddr, u32>::new();
        let (mut orders, mut queued, mut occupied) = (0, 0, 0);
        for (slot, host) in self.bench.iter() {
            orders += slot.active();
            debug_assert_eq!(slot.state() == SlotState::Free, host.is_none());
            if let Some(host) = host {
                occupied += 1;
                queued += slot.holds(host);
                debug_assert_eq!(host.clock.active as usize, slot.active(), "{}", host.name);
            }
            for out in slot.outs() {
                *per_ip.entry(out.ip).or_default() += 1;
            }
        }
        debug_assert_eq!(orders, self.orders, "orders");
        debug_assert_eq!(queued, self.queued, "queued");
        debug_assert_eq!(occupied, self.bench.occupied(), "occupied slots");
        debug_assert!(orders <= self.options.in_flight, "too many orders");
        debug_assert_eq!(orders, self.places.held(), "places");
        for (ip, state) in self.ips.iter() {
            let counted = per_ip.remove(ip).unwrap_or_default();
            debug_assert_eq!(state.clock.active, counted, "{ip}");
        }
        debug_assert!(per_ip.is_empty(), "orders at forgotten addresses");
    }
}
