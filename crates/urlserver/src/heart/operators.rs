//! What operators change while the crawl runs: a pause, hosts that are blocked or have a gap of their
//! own, other rates. Whether a change is durable is not known here.

use std::sync::Arc;

use orbweaver_model::{HostSetting, Outcome, OutcomeClass, Timestamp};

use super::Heart;
use super::robots::MOVED_TO_BLOCKED;
use crate::message::RobotsAnswer;
use crate::options::Rates;
use crate::origins::RobotsJob;

impl Heart {
    /// While paused nothing more goes out; what is out comes back as ever.
    pub fn pause(&mut self, paused: bool, now: Timestamp) {
        self.paused = paused;
        self.finish(now);
    }

    /// Sets something for one host. The URLs of a blocked host go back to the doc index.
    pub fn set(&mut self, host: &str, setting: HostSetting, now: Timestamp) {
        let name = self.hosts.shared_name(host);
        self.policies.set(&name, setting);
        let (grant, adapt) = (self.policies.grant(&name), self.adapt);
        if self.hosts.knows(&name) {
            self.with_host(&name, now, |host| host.fit(grant, adapt));
        }
        if self.policies.is_blocked(&name) {
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
        self.policies
            .set_usual(self.options.host_delay(), rates.hosts);
        let (policies, adapt) = (&self.policies, self.adapt);
        self.hosts
            .each_at_rest(|host| host.fit(policies.grant(host.name()), adapt));
        for slot in self.slots.numbers() {
            let policies = &self.policies;
            self.slots
                .change(slot, |_, host| host.fit(policies.grant(host.name()), adapt));
            self.settle(slot, now);
        }
        let (window, delay) = (rates.ip_concurrent, self.options.ip_delay());
        for ip in self.ips.set_limits(window, delay) {
            self.watch_ip(ip, now);
        }
        self.finish(now);
    }

    /// Gives back every URL of a host that is not out.
    fn send_home(&mut self, name: &Arc<str>, now: Timestamp) {
        let slot = self.hosts.slot(name);
        let (mut urls, jobs) = slot.map(|slot| self.empty(slot)).unwrap_or_default();
        urls.extend(self.leftover.all_of(name));
        if !urls.is_empty() {
            self.out.give_back(urls, None);
        }
        if let Some(slot) = slot {
            self.drop_blocked_jobs(slot, jobs, now);
        }
    }

    /// Gives up robots.txt files that were to be asked for at a host that is blocked.
    pub(super) fn drop_blocked_jobs(&mut self, slot: u32, jobs: Vec<RobotsJob>, now: Timestamp) {
        let blocked = Outcome::because(OutcomeClass::DeniedRobots, MOVED_TO_BLOCKED);
        self.drop_jobs(slot, jobs, &RobotsAnswer::unreachable(&blocked), now);
    }
}
