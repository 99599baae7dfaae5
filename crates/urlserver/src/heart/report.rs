//! Answers to questions: what everything counts, where a URL is and what it waits for. Nothing is changed here.

use std::net::IpAddr;

use orbweaver_model::{CrawlUrl, Timestamp, UrlKey};

use super::Heart;
use crate::host::Host;
use crate::message::{Bottleneck, Census, RobotsStanding, Spot, Wait, Whereabouts};
use crate::slot::Slot;
use crate::slots::SlotState;
use orbweaver_turns::Speed;

impl Heart {
    /// A count of everything.
    pub fn census(&self) -> Census {
        let count = |state| self.slots.count(state);
        let zero = Timestamp::default();
        let any_ip = IpAddr::from([0, 0, 0, 0]);
        let census = Census {
            hosts: self.slots.occupied(),
            waiting_for_time: count(SlotState::Waiting { until: zero }),
            waiting_for_ip: count(SlotState::AtIp { ip: any_ip }),
            waiting_for_robots: count(SlotState::AwaitingRobots)
                + count(SlotState::AwaitingVerdict),
            resolving: count(SlotState::Resolving),
            busy: count(SlotState::Busy) + count(SlotState::Emptied),
            ready: count(SlotState::Ready),
            slow: self.places.waiting(Speed::Slow),
            orders: self.places.held(),
            queued: self.slots.queued(),
            leftover: self.leftover.len(),
            spilled: self.leftover.spilled_in_all(),
            addresses: self.ips.len(),
            paused: self.paused,
            next_wake: self.next_wake(),
            bottleneck: Bottleneck::Candidates,
        };
        let waiting = census.waiting_for_time
            + census.waiting_for_ip
            + census.waiting_for_robots
            + count(SlotState::Busy);
        let bottleneck = if census.orders >= self.options.in_flight {
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

    /// What is known here of a URL and of its host: a question of operators, asked rarely and answered by looking
    /// through the queue of one host.
    pub fn whereis(&self, url: &CrawlUrl, key: UrlKey) -> Whereabouts {
        let name = url.host();
        let number = self.hosts.slot(name);
        let seat = number.and_then(|number| self.slots.get(number));
        let host = self.known_host(name);
        let spot = seat
            .zip(number)
            .and_then(|((slot, host), number)| spot_in(slot, host, number, url, key));
        let ahead = || self.leftover.position(name, key);
        let spot = spot.or_else(|| Some(Spot::Leftover { ahead: ahead()? }));
        let state = number.map(|number| self.slots.state(number));
        Whereabouts {
            slot: number,
            wait: spot.and_then(|spot| self.wait(spot, state, host, url)),
            spot,
            delay: host.map_or_else(|| self.policies.grant(name).gap, |host| host.clock.delay()),
            robots: host.map_or(RobotsStanding::Unknown, |host| host.origins.standing(url)),
            blocked: self.policies.is_blocked(name),
            paused: self.paused,
        }
    }

    fn wait(
        &self,
        spot: Spot,
        state: Option<SlotState>,
        host: Option<&Host>,
        url: &CrawlUrl,
    ) -> Option<Wait> {
        let (Some(state), Some(host)) = (state, host) else {
            return Some(Wait::Queue);
        };
        match (spot, state) {
            (Spot::Out { .. }, _) => None,
            (Spot::Parked { .. }, _) | (_, SlotState::AwaitingRobots) => {
                let until = match host.origins.standing(url) {
                    RobotsStanding::Resting { until } => Some(until),
                    _ => None,
                };
                Some(Wait::Robots { until })
            }
            (_, SlotState::Waiting { until }) if host.clock.held_until() >= until => {
                Some(Wait::Hold { until })
            }
            (_, SlotState::Waiting { until }) => Some(Wait::Gap { until }),
            (_, SlotState::Resolving) => Some(Wait::Resolver),
            (_, SlotState::AtIp { ip }) => Some(Wait::Address {
                ip,
                until: self.ips.opens_at(ip),
                line: self.ips.line(ip),
            }),
            (_, SlotState::Busy | SlotState::Emptied) => Some(Wait::Answer),
            (_, SlotState::Ready | SlotState::AwaitingVerdict | SlotState::Free) => {
                Some(Wait::Turn)
            }
        }
    }

    /// A whole check costs as much as there are slots, so with many of them it is rare; few are
    /// checked after every message.
    #[cfg(debug_assertions)]
    pub(super) fn check_sometimes(&mut self) {
        self.unchecked += 1;
        if self.slots.occupied() < 16 || self.unchecked > 4 * self.slots.numbers().len() {
            self.unchecked = 0;
            self.check();
        }
    }

    /// The counts of one part agree with those of the others.
    #[cfg(debug_assertions)]
    fn check(&self) {
        self.slots.check();
        let mut per_ip = std::collections::HashMap::<IpAddr, u32>::new();
        let mut orders = 0;
        for out in self.slots.outs() {
            orders += 1;
            *per_ip.entry(out.ip).or_default() += 1;
        }
        debug_assert!(orders <= self.options.in_flight, "too many orders");
        debug_assert_eq!(orders, self.places.held(), "places");
        for (ip, active) in self.ips.active() {
            let counted = per_ip.remove(&ip).unwrap_or_default();
            debug_assert_eq!(active, counted, "{ip}");
        }
        debug_assert!(per_ip.is_empty(), "orders at forgotten addresses");
    }
}

fn spot_in(slot: &Slot, host: &Host, number: u32, url: &CrawlUrl, key: UrlKey) -> Option<Spot> {
    if let Some((order, out)) = slot.window.order_of(key, number) {
        return Some(Spot::Out {
            order,
            ip: out.ip,
            since: out.since,
        });
    }
    if slot.is_next(key) {
        return Some(Spot::Next);
    }
    if let Some(ahead) = slot.position(key) {
        return Some(Spot::Queue { ahead });
    }
    let ahead = host.origins.position(url, key)?;
    Some(Spot::Parked { ahead })
}
