//! robots.txt files that the doc index has: asked for before their server is asked again, and given up when the
//! rules of all hosts take too much memory.
//!
//! A file has 500 KiB at most, so that a thousand queues could hold half a gigabyte of rules. Beyond a share of
//! `rest_bytes`, the longest rules are used once when they arrive, on all URLs that wait for them, and what they allow
//! is remembered instead. The next URLs of the host have the file recalled, at a bounded rate.

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, Outcome, OutcomeClass, RobotsRecord, Timestamp};

use super::Heart;
use super::alarm::Wake;
use super::obey::MAX_LIFE;
use crate::hash::HashSet;
use crate::host::{self, Door, LIGHT, Origin, RobotsState};
use crate::message::Notice;
use crate::slot::RobotsJob;
use orbweaver_robots::Robots;

/// Questions to the doc index for a robots.txt that are open at once: each may bring half a megabyte.
const FIRST_RECALLS: usize = 32;
/// The same for those that were given up for their size and do bring as much.
const RECALLS: usize = 4;
/// After a file that was given up for its size has come back, the next such file is left alone for so long for every
/// byte: half a megabyte takes milliseconds to read, and there may be thousands of hosts that send as much.
const NANOS_PER_BYTE: u64 = 100;

/// robots.txt files that the doc index is to be asked for: each origin is here at most once. Those that are asked for
/// the first time go first; those that were given up for their size are asked for at a bounded rate.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    first: VecDeque<String>,
    again: VecDeque<String>,
    /// Questions that are open.
    open: usize,
    /// When the next of `again` may be asked for.
    next: Timestamp,
    /// An alarm is set for it.
    is_awaited: bool,
}

impl Recalls {
    fn answered(&mut self, bytes: usize, now: Timestamp) {
        self.open = self.open.saturating_sub(1);
        let pause = Duration::from_nanos(NANOS_PER_BYTE.saturating_mul(bytes as u64));
        self.next = self.next.max(now).after(pause);
    }
}

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
        let kept = kept.map(|record| {
            let max = self.options.limits.robots_max_bytes;
            let rules = Robots::parse(&record.body, &self.options.agent, max);
            (record, rules)
        });
        self.recalled_robots(origin, kept, now);
    }

    /// The same, read by whoever brings it.
    pub fn recalled_robots(
        &mut self,
        origin: &str,
        kept: Option<(RobotsRecord, Robots)>,
        now: Timestamp,
    ) {
        let bytes = kept.as_ref().map_or(0, |(record, _)| record.body.len());
        self.recalls.answered(bytes, now);
        if let Ok(url) = CrawlUrl::from_canonical(&format!("{origin}/")) {
            match kept.filter(|(kept, _)| kept.fetched <= now && kept.expires > now) {
                Some((record, rules)) => self.remember_robots(&url, &record, rules, now),
                None => self.ask_after_all(&url, now),
            }
        }
        self.ask_for_robots(now, false);
        self.finish(now);
    }

    /// Has the doc index asked for a robots.txt, when it is its turn.
    pub(super) fn recall_robots(&mut self, origin: String, again: bool, now: Timestamp) {
        let line = if again {
            &mut self.recalls.again
        } else {
            &mut self.recalls.first
        };
        line.push_back(origin);
        self.ask_for_robots(now, false);
    }

    /// Asks the doc index for as many robots.txt files as may be asked for now. `woken` when the alarm for this has
    /// gone off.
    pub(super) fn ask_for_robots(&mut self, now: Timestamp, woken: bool) {
        self.recalls.is_awaited &= !woken;
        loop {
            let open = self.recalls.open;
            let again = open < RECALLS && self.recalls.next <= now;
            let origin = if open < FIRST_RECALLS && !self.recalls.first.is_empty() {
                self.recalls.first.pop_front()
            } else if again {
                self.recalls.again.pop_front()
            } else {
                None
            };
            let Some(origin) = origin else {
                break;
            };
            self.recalls.open += 1;
            self.tell(Notice::RecallRobots { origin });
        }
        let waits = self.recalls.open < RECALLS && !self.recalls.again.is_empty();
        if waits && !std::mem::replace(&mut self.recalls.is_awaited, true) {
            self.alarms.set(self.recalls.next, Wake::Recall);
        }
    }

    fn remember_robots(
        &mut self,
        url: &CrawlUrl,
        record: &RobotsRecord,
        mut robots: Robots,
        now: Timestamp,
    ) {
        robots.take_sitemaps();
        let (least, adapt) = (self.least_delay(url.host()), self.adapt);
        let expires = record.expires.min(record.fetched.after(MAX_LIFE));
        let door = host::door(url);
        let cap = self.options.limits.crawl_delay_cap;
        let mut still_allowed = HashSet::default();
        self.with_host(url.host(), now, |host| {
            match &mut host.origin(door).robots {
                RobotsState::Unknown => {}
                RobotsState::Recalled { allowed, .. } => still_allowed = std::mem::take(allowed),
                // Better is known by now.
                _ => return,
            }
            host.know(door, robots, cap, expires);
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

    /// While the rules of all hosts are too much, those of the host that has the most go first, until that is the one
    /// in `slot`: so whoever has few rules keeps them, whatever others have.
    pub(super) fn shed_heaviest(&mut self, slot: u32) {
        while self.options.is_too_much(self.bench.rules())
            && let Some(heaviest) = self.bench.heaviest().filter(|other| *other != slot)
            && let Some((_, host)) = self.bench.pair(heaviest)
        {
            let before = host.rules_bytes();
            host.forget_rules();
            self.bench.weigh(heaviest);
            if self
                .bench
                .host(heaviest)
                .is_none_or(|host| host.rules_bytes() >= before)
            {
                return;
            }
        }
    }

    /// Gives up the rules of an origin when those of all hosts are too much: after they have been used on the URLs
    /// that wait for them. Those in the queue that they were found to allow before stay allowed.
    pub(super) fn shed(&mut self, name: &str, door: Door, still_allowed: HashSet<u64>) {
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        self.bench.weigh(slot);
        self.shed_heaviest(slot);
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
                match denial(robots, &candidate, &mut 0) {
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

/// What becomes of a URL that the rules deny. `steps` becomes what finding that out has cost.
pub(super) fn denial(robots: &Robots, candidate: &Candidate, steps: &mut usize) -> Option<Outcome> {
    let verdict;
    (verdict, *steps) = robots.weighed_verdict(candidate.url.target());
    let rule = verdict.rule.filter(|_| !verdict.allowed)?;
    let reason = format!("robots.txt: {rule}");
    Some(Outcome::because(OutcomeClass::DeniedRobots, reason))
}
