//! robots.txt files that the doc index has: asked for before their server is asked again, and given up when the
//! rules of all hosts take too much memory.
//!
//! A file has 500 KiB at most, so that a thousand queues could hold half a gigabyte of rules. Beyond a share of
//! `rest_bytes`, rules are used once when they arrive, on all URLs that wait for them, and what they allow is
//! remembered instead. The next URLs of the host have the file recalled.

use orbweaver_model::{Candidate, CrawlUrl, Outcome, OutcomeClass, RobotsRecord, Timestamp};

use super::Heart;
use super::obey::MAX_LIFE;
use crate::hash::HashSet;
use crate::host::{self, Door, LIGHT, Origin, RobotsState};
use crate::robots::Robots;
use crate::slot::RobotsJob;

impl Origin {
    /// Until when a URL may be asked for that was found to be allowed while the rules were at hand. Asked once.
    pub(super) fn has_allowed(&mut self, url: u64, now: Timestamp) -> Option<Timestamp> {
        match &mut self.robots {
            RobotsState::Kept { expires, allowed } | RobotsState::Recalled { expires, allowed }
                if *expires > now =>
            {
                allowed.remove(&url).then_some(*expires)
            }
            _ => None,
        }
    }

    /// True when the doc index is to be asked for the rules, from now on.
    pub(super) fn recall(&mut self, recalls: bool, now: Timestamp) -> bool {
        let (expires, allowed) = match &mut self.robots {
            RobotsState::Kept { expires, allowed } if *expires > now => {
                (*expires, std::mem::take(allowed))
            }
            RobotsState::Unknown if recalls => (Timestamp::default(), HashSet::default()),
            _ => return false,
        };
        self.robots = RobotsState::Recalled { expires, allowed };
        true
    }
}

impl Heart {
    /// Whether the doc index may have the robots.txt of a host that is not known here.
    pub(super) fn recalls(&self) -> bool {
        self.options.resumed || self.hosts.has_forgotten()
    }

    /// What the doc index has of a robots.txt. One from a time to come was fetched by a clock that was wrong, so that
    /// nobody knows how old it is.
    pub fn known_robots(&mut self, origin: &str, kept: Option<RobotsRecord>, now: Timestamp) {
        let Ok(url) = CrawlUrl::from_canonical(&format!("{origin}/")) else {
            return;
        };
        match kept.filter(|kept| kept.fetched <= now && kept.expires > now) {
            Some(record) => self.remember_robots(&url, &record, now),
            None => self.ask_after_all(&url, now),
        }
        self.finish(now);
    }

    fn remember_robots(&mut self, url: &CrawlUrl, record: &RobotsRecord, now: Timestamp) {
        let mut robots = Robots::parse(&record.body, &self.options.agent, &self.options.limits);
        robots.take_sitemaps();
        let (least, adapt) = (self.least_delay(url.host()), self.adapt);
        let expires = record.expires.min(record.fetched.after(MAX_LIFE));
        let door = host::door(url);
        let mut still_allowed = HashSet::default();
        self.with_host(url.host(), now, |host| {
            match &mut host.origin(door).robots {
                RobotsState::Unknown => {}
                RobotsState::Recalled { allowed, .. } => still_allowed = std::mem::take(allowed),
                // Better is known by now.
                _ => return,
            }
            host.know(door, robots, expires);
            host.fit_delay(least, adapt);
        });
        self.shed(url.host(), door, still_allowed);
        self.unpark(url.host(), door, now);
    }

    /// The doc index has no robots.txt of the origin: its server is asked.
    fn ask_after_all(&mut self, url: &CrawlUrl, now: Timestamp) {
        let door = host::door(url);
        let is_recalled = |origin: &Origin| matches!(origin.robots, RobotsState::Recalled { .. });
        let Some(slot) = self.hosts.slot(url.host()) else {
            self.hosts.change(url.host(), |host| {
                let origin = host.origin(door);
                if is_recalled(origin) {
                    origin.robots = RobotsState::Unknown;
                }
            });
            return;
        };
        if let Some((found, host)) = self.bench.pair(slot) {
            let name = host.name.clone();
            let origin = host.origin(door);
            if is_recalled(origin) {
                let waits = !origin.parked.is_empty();
                origin.robots = match waits {
                    true => RobotsState::Asked,
                    false => RobotsState::Unknown,
                };
                found.jobs.extend(waits.then(|| RobotsJob {
                    host: name,
                    door,
                    url: url.robots_txt(),
                    hops: 0,
                    attempts: 0,
                }));
            }
        }
        self.settle(slot, now);
    }

    /// Gives up the rules of an origin when those of all hosts are too much: after they have been used on the URLs
    /// that wait for them. Those in the queue that they were found to allow before stay allowed.
    pub(super) fn shed(&mut self, name: &str, door: Door, still_allowed: HashSet<u64>) {
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        self.bench.weigh(slot);
        if !self.options.is_too_much(self.bench.rules()) {
            return;
        }
        let Some((_, host)) = self.bench.pair(slot) else {
            return;
        };
        let parked = host.take_parked(door);
        let origin = host.origin(door);
        let (mut waiting, mut denied) = (Vec::new(), Vec::new());
        if let RobotsState::Known { robots, expires } = &origin.robots
            && robots.heap_bytes() > LIGHT
        {
            for candidate in parked {
                match denial(robots, &candidate) {
                    Some(outcome) => denied.push((candidate, outcome)),
                    None => waiting.push(candidate),
                }
            }
            let (expires, mut allowed) = (*expires, still_allowed);
            allowed.extend(waiting.iter().map(|candidate| candidate.key.url));
            origin.robots = RobotsState::Kept { expires, allowed };
        } else {
            waiting.extend(parked);
        }
        waiting
            .into_iter()
            .for_each(|candidate| host.park(candidate));
        self.bench.weigh(slot);
        self.queued -= denied.len();
        for (candidate, outcome) in denied {
            self.refuse(candidate, outcome, None);
        }
    }
}

/// What becomes of a URL that the rules deny.
pub(super) fn denial(robots: &Robots, candidate: &Candidate) -> Option<Outcome> {
    let verdict = robots.verdict(candidate.url.target());
    let rule = verdict.rule.filter(|_| !verdict.allowed)?;
    let reason = format!("robots.txt: {rule}");
    Some(Outcome::because(OutcomeClass::DeniedRobots, reason))
}
