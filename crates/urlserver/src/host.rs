//! What is known of a host, whether it has a queue now or not: its clock and gap, where it is, how it uses its places,
//! and what its robots.txt files say.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, Pace, Timestamp, machine};

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::message::Resolved;
use crate::origins::{Judgement, Origins, RobotsJob};
use crate::pace::Adapt;
use orbweaver_turns::{Home, Neighbourhood, Speed};

/// How often a host has to be quick after one order that was slow.
const SLOW: u8 = 4;

/// What the URL server grants a host that does not ask for more patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Time between two requests.
    pub(crate) gap: Duration,
    /// Requests that may be out at once.
    pub(crate) window: u16,
    /// What its robots.txt files say counts.
    pub(crate) obeys_robots: bool,
}

/// A host's memory. It outlives the slot, so that a host that comes back keeps its gap.
#[derive(Debug)]
pub(crate) struct Host {
    name: Arc<str>,
    /// When it may be asked: its delay is `least`, raised by how it answers.
    pub(crate) clock: Clock,
    addresses: Addresses,
    /// The granted gap, raised by the longest Crawl-delay of its origins.
    least: Duration,
    pace: Pace,
    obeys_robots: bool,
    /// Its registered domain.
    domain: Neighbourhood,
    /// Whether a page of it has come in the usual time.
    has_been_quick: bool,
    /// How often it has to be quick before it no longer counts as slow.
    slowness: u8,
    /// What its robots.txt files say, and which URLs wait for them.
    pub(crate) origins: Origins,
}

impl Host {
    pub(crate) fn new(name: Arc<str>, grant: Grant, asked: Option<Timestamp>) -> Self {
        Self {
            domain: Neighbourhood::domain(&name),
            has_been_quick: false,
            slowness: 0,
            name,
            clock: Clock::new(grant.window, grant.gap, asked),
            addresses: Addresses::default(),
            least: grant.gap,
            pace: Pace::default(),
            obeys_robots: grant.obeys_robots,
            origins: Origins::default(),
        }
    }

    /// Its name, shared by everything that speaks of it.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The machine to ask, by which requests are counted, unless none is known or the known ones are too old.
    pub(crate) fn ip(&self, now: Timestamp) -> Option<IpAddr> {
        self.address(now).map(machine)
    }

    /// The address of that machine to connect to.
    pub(crate) fn address(&self, now: Timestamp) -> Option<IpAddr> {
        self.addresses.current(now)
    }

    /// Takes in what the resolver found.
    pub(crate) fn settle_at(&mut self, resolved: Resolved, now: Timestamp) {
        self.addresses.found(resolved, now);
    }

    /// The machine did not answer: the next one's turn.
    pub(crate) fn try_next_address(&mut self, failed: IpAddr) {
        self.addresses.try_next(failed);
    }

    /// How it uses its places.
    pub(crate) fn speed(&self) -> Speed {
        match (self.slowness, self.has_been_quick) {
            (0, true) => Speed::Fast,
            (0, false) => Speed::New,
            _ => Speed::Slow,
        }
    }

    /// An order of it holds its place for longer than is usual.
    pub(crate) fn was_slow(&mut self) {
        self.slowness = (self.slowness + SLOW).min(2 * SLOW);
    }

    /// A page of it has come in the usual time.
    pub(crate) fn was_quick(&mut self) {
        self.has_been_quick = true;
        self.slowness = self.slowness.saturating_sub(1);
    }

    /// Its neighbourhoods, when it is on this machine.
    pub(crate) fn home(&self, ip: IpAddr) -> Home {
        [Neighbourhood::network(ip), self.domain]
    }

    /// Fits gap and window to what is granted, and the gap to the Crawl-delays that are known: they raise it, they
    /// never lower it.
    pub(crate) fn fit(&mut self, grant: Grant, adapt: Adapt) {
        let asked = self.origins.crawl_delay().unwrap_or_default();
        self.least = match grant.obeys_robots {
            true => grant.gap.max(asked),
            false => grant.gap,
        };
        self.obeys_robots = grant.obeys_robots;
        self.set_delay(grant.window, adapt);
    }

    /// Fits the delay to how an order ended: after how long it was answered, or that it failed. An order
    /// that never went out says nothing.
    pub(crate) fn fit_pace(&mut self, response: Option<Duration>, failed: bool, adapt: Adapt) {
        match response {
            _ if failed => self.pace.failed(),
            Some(response) => self.pace.answered(response),
            None => return,
        }
        self.set_delay(self.clock.window(), adapt);
    }

    /// Fits the delay to what an earlier process had learnt, unless this one has learnt something itself.
    pub(crate) fn remember_pace(&mut self, pace: Pace, adapt: Adapt) {
        if self.pace == Pace::default() {
            self.pace = pace;
            self.set_delay(self.clock.window(), adapt);
        }
    }

    fn set_delay(&mut self, window: u16, adapt: Adapt) {
        self.clock
            .set_limits(window, adapt.delay(self.pace, self.least));
    }

    /// Asks its robots.txt what is to be done with a URL of it (`Origins::judge`).
    pub(crate) fn judge(
        &mut self,
        candidate: Candidate,
        recalls: bool,
        steps: &mut usize,
        now: Timestamp,
    ) -> Judgement {
        if !self.obeys_robots {
            return Judgement::Allowed(candidate, Timestamp::from_millis(u64::MAX));
        }
        self.origins
            .judge(&self.name, candidate, recalls, steps, now)
    }

    /// The doc index does not have the robots.txt of an origin (`Origins::ask_after_all`).
    pub(crate) fn ask_after_all(&mut self, url: &CrawlUrl) -> Option<RobotsJob> {
        self.origins.ask_after_all(&self.name, url)
    }

    /// The robots.txt files for which the time has come to ask again.
    pub(crate) fn due_robots(&mut self, now: Timestamp) -> Vec<RobotsJob> {
        self.origins.due(&self.name, now)
    }

    /// Roughly the bytes that this memory takes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + 3 * self.name.len()
            + self.addresses.heap_bytes()
            + self.origins.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let grant = Grant {
            gap: Duration::from_secs(1),
            window: 1,
            obeys_robots: true,
        };
        Host::new("a.example".into(), grant, None)
    }

    #[test]
    fn a_slow_host_has_to_be_quick_several_times() {
        let mut host = host();
        assert_eq!(host.speed(), Speed::New);
        host.was_quick();
        assert_eq!(host.speed(), Speed::Fast);
        for _ in 0..9 {
            host.was_slow();
        }
        for _ in 0..2 * SLOW {
            assert_eq!(host.speed(), Speed::Slow);
            host.was_quick();
        }
        assert_eq!(host.speed(), Speed::Fast);
    }

    #[test]
    fn another_grant_changes_gap_and_window_at_once() {
        let mut host = host();
        let adapt = Adapt {
            slow_factor: 0.0,
            max: Duration::ZERO,
        };
        host.clock.give();
        assert!(host.clock.is_blocked());
        let grant = Grant {
            gap: Duration::ZERO,
            window: 2,
            obeys_robots: true,
        };
        host.fit(grant, adapt);
        assert!(host.clock.is_open(Timestamp::default()));
        assert_eq!(host.clock.delay(), Duration::ZERO);
    }
}
