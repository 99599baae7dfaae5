//! Where a URL is, and what it waits for: questions of operators, asked rarely and answered by looking
//! through the queue of one host.

use orbweaver_model::{CrawlUrl, TransId, UrlKey};

use super::Heart;
use crate::host::{self, Host, RobotsState};
use crate::message::{RobotsStanding, Spot, Wait, Whereabouts};
use crate::slot::{Slot, SlotState, Work};

impl Heart {
    /// What is known here of a URL and of its host.
    pub fn whereis(&self, url: &CrawlUrl, key: UrlKey) -> Whereabouts {
        let name = url.host();
        let number = self.hosts.slot(name);
        let slot = number.and_then(|number| self.bench.get(number));
        let host = match number {
            Some(number) => self.bench.host(number),
            None => self.hosts.at_rest(name),
        };
        let spot = match (slot, host, number) {
            (Some(slot), Some(host), Some(number)) => spot_in(slot, host, number, url, key),
            _ => None,
        };
        let ahead = || self.leftover.position(name, key);
        let spot = spot.or_else(|| Some(Spot::Leftover { ahead: ahead()? }));
        Whereabouts {
            slot: number,
            wait: spot.and_then(|spot| self.wait(spot, slot, host, url)),
            spot,
            delay: host.map_or(self.least_delay(name), |host| host.delay),
            robots: host.map_or(RobotsStanding::Unknown, |host| standing(host, url)),
            blocked: self.is_blocked(name),
            paused: self.paused,
        }
    }

    fn wait(
        &self,
        spot: Spot,
        slot: Option<&Slot>,
        host: Option<&Host>,
        url: &CrawlUrl,
    ) -> Option<Wait> {
        let (Some(slot), Some(host)) = (slot, host) else {
            return Some(Wait::Queue);
        };
        match (spot, slot.state()) {
            (Spot::Out { .. }, _) => None,
            (Spot::Parked { .. }, _) | (_, SlotState::AwaitingRobots) => {
                let until = match standing(host, url) {
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
            (_, SlotState::AtIp { ip }) => {
                let state = self.ips.get(ip);
                let clock = state.map(|state| &state.clock);
                let blocked = |clock: &&crate::politeness::Clock| {
                    !clock.is_blocked(self.options.ip_concurrent, self.ip_delay)
                };
                Some(Wait::Address {
                    ip,
                    until: clock
                        .filter(blocked)
                        .map(|clock| clock.next_at(self.ip_delay)),
                    line: state.map_or(0, |state| state.line.len()),
                })
            }
            (_, SlotState::Busy | SlotState::Emptied) => Some(Wait::Answer),
            (_, SlotState::Ready | SlotState::AwaitingVerdict | SlotState::Free) => {
                Some(Wait::Turn)
            }
        }
    }
}

fn spot_in(slot: &Slot, host: &Host, number: u32, url: &CrawlUrl, key: UrlKey) -> Option<Spot> {
    if let Some((active, generation, out)) = slot.order_of(key) {
        let order = TransId {
            generation,
            slot: number,
            active,
        };
        return Some(Spot::Out {
            order,
            ip: out.ip,
            since: out.since,
        });
    }
    let next = matches!(&slot.next, Some(Work::Page(page, _)) if page.key == key);
    if next {
        return Some(Spot::Next);
    }
    let position = |queue: &std::collections::VecDeque<orbweaver_model::Candidate>| {
        queue.iter().position(|waiting| waiting.key == key)
    };
    if let Some(ahead) = position(&slot.queue) {
        let next = usize::from(slot.next.is_some());
        return Some(Spot::Queue {
            ahead: ahead + next,
        });
    }
    let origin = host.find_origin(host::door(url))?;
    let ahead = position(&origin.parked)?;
    Some(Spot::Parked { ahead })
}

fn standing(host: &Host, url: &CrawlUrl) -> RobotsStanding {
    match host
        .find_origin(host::door(url))
        .map(|origin| &origin.robots)
    {
        None | Some(RobotsState::Unknown) => RobotsStanding::Unknown,
        Some(RobotsState::Asked | RobotsState::Recalled { .. }) => RobotsStanding::Asked,
        Some(RobotsState::Resting { until, .. }) => RobotsStanding::Resting { until: *until },
        Some(RobotsState::Known { expires, .. } | RobotsState::Kept { expires, .. }) => {
            RobotsStanding::Known { expires: *expires }
        }
        Some(RobotsState::Unreachable { until, .. }) => {
            RobotsStanding::Unreachable { until: *until }
        }
    }
}
