//! What operators change while the crawl runs: a pause, hosts that are blocked or have a gap of their
//! own, other rates. Whether a change is durable is not known here.

use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{HostSetting, Outcome, OutcomeClass, Timestamp};

use super::Heart;
use crate::message::RobotsAnswer;
use crate::options::Rates;

/// What is set for one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steering {
    blocked: bool,
    gap: Option<Duration>,
}

impl Steering {
    pub(super) fn apply(&mut self, setting: HostSetting) {
        match setting {
            HostSetting::Blocked(blocked) => self.blocked = blocked,
            HostSetting::Gap(gap) => self.gap = gap,
        }
    }
}

impl Heart {
    /// While paused nothing more goes out; what is out comes back as ever.
    pub fn pause(&mut self, paused: bool, now: Timestamp) {
        self.paused = paused;
        self.finish(now);
    }

    /// Sets something for one host. The URLs of a blocked host go back to the doc index.
    pub fn set(&mut self, host: &str, setting: HostSetting, now: Timestamp) {
        let name = self.hosts.shared_name(host);
        let entry = self.steering.entry(name.clone()).or_default();
        entry.apply(setting);
        let blocked = entry.blocked;
        if *entry == Steering::default() {
            self.steering.remove(&name);
        }
        let (least, adapt) = (self.least_delay(&name), self.adapt);
        if self.hosts.knows(&name) {
            self.with_host(&name, now, |host| host.fit_delay(least, adapt));
        }
        if blocked {
            self.send_home(&name, now);
        }
        if let Some(slot) = self.hosts.slot(&name) {
            self.settle(slot, now);
        }
        self.finish(now);
    }

    /// Other rates from now on, for every host that has none of its own.
    pub fn set_rates(&mut self, rates: Rates, now: Timestamp) {
        self.options.host_per_sec = rates.host_per_sec;
        self.options.ip_per_sec = rates.ip_per_sec;
        self.options.ip_concurrent = rates.ip_concurrent;
        self.host_delay = self.options.host_delay();
        self.ip_delay = self.options.ip_delay();
        for slot in self.bench.numbers() {
            let Some((_, host)) = self.bench.pair(slot) else {
                continue;
            };
            let gap = self.steering.get(&host.name).and_then(|set| set.gap);
            host.fit_delay(gap.unwrap_or(self.host_delay), self.adapt);
            self.settle(slot, now);
        }
        let (steering, usual, adapt) = (&self.steering, self.host_delay, self.adapt);
        self.hosts.each_at_rest(|host| {
            let gap = steering.get(&host.name).and_then(|set| set.gap);
            host.fit_delay(gap.unwrap_or(usual), adapt);
        });
        for ip in self.ips.set_delay(self.ip_delay) {
            self.watch_ip(ip, now);
        }
        self.finish(now);
    }

    /// The time between two requests to a host that does not ask for more.
    pub(super) fn least_delay(&self, host: &str) -> Duration {
        let own = self.steering.get(host).and_then(|set| set.gap);
        own.unwrap_or(self.host_delay)
    }

    /// Whether nothing may be asked of a host.
    pub(super) fn is_blocked(&self, host: &str) -> bool {
        self.steering.get(host).is_some_and(|set| set.blocked)
    }

    /// Gives back every URL of a host that is not out.
    fn send_home(&mut self, name: &Arc<str>, now: Timestamp) {
        let slot = self.hosts.slot(name);
        let (mut urls, jobs) = slot.map(|slot| self.empty(slot)).unwrap_or_default();
        urls.extend(self.leftover.all_of(name));
        if !urls.is_empty() {
            self.give_back(urls, None);
        }
        if let Some(slot) = slot {
            let blocked = Outcome::because(OutcomeClass::DeniedRobots, MOVED_TO_BLOCKED);
            self.drop_jobs(slot, jobs, &RobotsAnswer::unreachable(&blocked), now);
        }
    }
}

/// Why a robots.txt that moved cannot be had.
pub(super) const MOVED_TO_BLOCKED: &str = "the host it moved to is blocked";
