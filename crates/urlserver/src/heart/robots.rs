//! robots.txt in the heart: when one is asked for, what its answers mean, and when it is requested again.
//!
//! One file governs one origin. It is asked for like any URL of the host, before the first page of the
//! origin, and the origin's URLs are parked meanwhile (`origins`). RFC 9309 section 2.3 decides the rest: a file
//! that moved is followed, one that is not there allows everything, and one that cannot be reached
//! denies everything for now.
//!
//! A restart takes seconds, a broken deployment minutes, a move of the machine a day. So a file that cannot be reached is
//! asked for five times within a minute, while the URLs of its origin wait for it. When that has not helped they are
//! refused, and are retried ten minutes later, then twice as long after each failure, up to a day. Such
//! a chance is one request: whoever has been down for minutes is not helped by five.
//! What becomes of that chance is the business of the doc index.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use orbweaver_model::{CrawlUrl, Outcome, OutcomeClass, RobotsRecord, Scheme, Timestamp};
use orbweaver_robots::Robots;

use super::{Heart, PATIENCE, Wake};
use crate::hash::HashSet;
use crate::message::{Notice, RobotsAnswer};
use crate::origins::{self, Door, RobotsJob};

/// RFC 9309 section 2.4: a cached copy is not used for more than a day.
const MAX_LIFE: Duration = Duration::from_secs(86_400);
/// A server that wants its file asked for more often is not followed: a short crawl asks once.
const MIN_LIFE: Duration = Duration::from_secs(3600);
/// The pauses between attempts in halves of `robots_delay`, which is two seconds unless it is set: 2, 6, 15
/// and 30 seconds. The first attempt may have met a restart; the later ones will hardly be helped by hurry.
const PAUSES: [u32; 4] = [2, 6, 15, 30];
/// The time from the last attempt to the first other chance, in the same measure: ten minutes.
const FIRST_CHANCE: u32 = 600;
/// It is not shorter than this: whoever wants no pauses wants no crawl that begins again at once, either.
const LEAST_CHANCE: Duration = Duration::from_secs(1);
/// It does not grow beyond this: RFC 9309 section 2.4 has files asked for once a day.
const LAST_CHANCE: Duration = Duration::from_secs(86_400);
/// Why a robots.txt that moved is unavailable.
pub(super) const MOVED_TO_BLOCKED: &str = "the host that it redirects to is blocked";

impl Heart {
    /// What came of asking for a robots.txt.
    pub(super) fn robots_answered(&mut self, job: RobotsJob, answer: RobotsAnswer, now: Timestamp) {
        let limits = &self.options.limits;
        match answer {
            RobotsAnswer::Fetched {
                status,
                body,
                expires,
            } => {
                let rules = Robots::parse(&body, &self.options.agent, limits.robots_max_bytes);
                self.learn(&job, status, body, rules, expires, now);
            }
            RobotsAnswer::Read {
                status,
                body,
                rules,
                expires,
            } => self.learn(&job, status, body, *rules, expires, now),
            RobotsAnswer::Unavailable { status } => self.learn_nothing(&job, status, now),
            RobotsAnswer::Moved {
                location: Some(url),
                ..
            } if job.hops < limits.robots_max_redirects => {
                let hops = job.hops + 1;
                self.ask_at(job, url, hops, now);
            }
            // RFC 9309 section 2.3.1.2: after five hops the file may be taken as unavailable.
            RobotsAnswer::Moved { status, .. } => self.learn_nothing(&job, status, now),
            RobotsAnswer::Unreachable { outcome, wait } => self.miss(&job, outcome, wait, now),
            RobotsAnswer::PutBack => {
                let url = job.url.clone();
                let hops = job.hops;
                self.ask_at(job, url, hops, now);
            }
        }
    }

    /// A robots.txt is asked for at this URL, which may be another host's, when the turn of that host comes.
    fn ask_at(&mut self, job: RobotsJob, url: CrawlUrl, hops: usize, now: Timestamp) {
        if self.draining {
            self.with_host(&job.host, now, |host| {
                host.origins.forget_question(job.door);
            });
            return;
        }
        if self.policies.is_blocked(url.host()) {
            let outcome = Outcome::because(
                OutcomeClass::DeniedRobots,
                format!("robots.txt: {MOVED_TO_BLOCKED}"),
            );
            self.miss(&job, outcome, None, now);
            return;
        }
        let slot = match self.hosts.slot(url.host()) {
            Some(slot) => slot,
            None => {
                let name = self.hosts.shared_name(url.host());
                self.assign_slot(&name)
            }
        };
        self.slots.change(slot, |slot, _| {
            slot.add_jobs([RobotsJob { url, hops, ..job }]);
        });
        self.settle(slot, now);
    }

    /// There are no rules.
    fn learn_nothing(&mut self, job: &RobotsJob, status: u16, now: Timestamp) {
        self.learn(job, status, Vec::new(), Robots::default(), None, now);
    }

    /// The rules are known: they are kept, and the URLs that waited go back to the queue.
    fn learn(
        &mut self,
        job: &RobotsJob,
        status: u16,
        mut body: Vec<u8>,
        mut robots: Robots,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) {
        let limits = &self.options.limits;
        let urls = robots.take_sitemaps();
        let origin = origin_name(job);
        if robots == Robots::default() {
            body.clear();
        }
        body.truncate(limits.robots_max_bytes);
        let expires = expires
            .unwrap_or_else(|| now.after(MAX_LIFE))
            .clamp(now.after(MIN_LIFE), now.after(MAX_LIFE));
        let cap = limits.crawl_delay_cap;
        if let Some(asked) = robots.crawl_delay().filter(|asked| *asked > cap) {
            let (origin, kept) = (origin.clone(), cap);
            self.out.tell(Notice::DelayCapped {
                origin,
                asked,
                kept,
            });
        }
        if !urls.is_empty() {
            let origin = origin.clone();
            self.out.tell(Notice::Sitemaps { origin, urls });
        }
        self.out.tell(Notice::StoreRobots {
            origin,
            record: RobotsRecord {
                fetched: now,
                expires,
                status,
                body,
            },
        });
        let (grant, adapt) = (self.policies.grant(&job.host), self.adapt);
        self.with_host(&job.host, now, |host| {
            host.origins.know(job.door, robots, cap, expires);
            host.fit(grant, adapt);
        });
        self.shed(&job.host, job.door, HashSet::default());
        self.unpark(&job.host, job.door, now);
    }

    /// Sends the URLs of an origin back to the front of the queue, in their order; the next look at
    /// each will judge it by what is known now.
    fn unpark(&mut self, host: &str, door: Door, now: Timestamp) {
        let Some(slot) = self.hosts.slot(host) else {
            return;
        };
        self.slots.change(slot, |slot, host| {
            slot.put_back(host.origins.take_parked(door));
        });
        self.settle(slot, now);
    }

    /// An attempt failed: there will be another, or the URLs that waited are refused. A server that names a
    /// time gets it; when that is longer than a queue is kept for anybody, it gets it as the time of the next
    /// chance.
    fn miss(&mut self, job: &RobotsJob, outcome: Outcome, wait: Option<Duration>, now: Timestamp) {
        let wait = wait.unwrap_or_default();
        let wait = wait.min(self.options.limits.retry_after_cap);
        let mut outages = 0;
        self.with_host(&job.host, now, |host| {
            outages = host.origins.outages(job.door);
        });
        // What our own policy refuses will be refused the next time, too.
        let may_pass = outages == 0 && outcome.class != OutcomeClass::DeniedPolicy;
        let pause = PAUSES.get(usize::from(job.attempts)).filter(|_| may_pass);
        let pause = pause.map(|halves| self.options.robots_delay / 2 * *halves);
        match pause.filter(|_| wait <= PATIENCE) {
            Some(pause) => {
                let until = now.after(staggered(pause, job).max(wait));
                self.rest_robots(job, until, now);
            }
            None => {
                let first = (self.options.robots_delay / 2).saturating_mul(FIRST_CHANCE);
                let doubled = 1u32.checked_shl(u32::from(outages));
                let chance = (first.max(LEAST_CHANCE)).saturating_mul(doubled.unwrap_or(u32::MAX));
                let until = now.after(staggered(chance.min(LAST_CHANCE), job).max(wait));
                self.with_host(&job.host, now, |host| {
                    host.origins.give_up(job.door, outcome, until);
                });
                self.unpark(&job.host, job.door, now);
            }
        }
    }

    fn rest_robots(&mut self, job: &RobotsJob, until: Timestamp, now: Timestamp) {
        let attempts = job.attempts.saturating_add(1);
        self.with_host(&job.host, now, |host| {
            host.origins.rest(job.door, until, attempts);
        });
        self.alarms.set(until, Wake::Robots(job.host.clone()));
        self.make_way(&job.host, job.door, until, now);
    }

    /// When every queue is taken, a host that does nothing but wait for this robots.txt gives its own to
    /// another, or a list of dead hosts would stop those that are alive. What is known of it stays here.
    fn make_way(&mut self, name: &Arc<str>, door: Door, until: Timestamp, now: Timestamp) {
        if self.has_empty_queue() {
            return;
        }
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        let only_waits = self.slots.get(slot).is_some_and(|(slot, host)| {
            slot.is_idle() && slot.window.active() == 0 && host.origins.all_wait_at(door)
        });
        if only_waits {
            let (urls, _) = self.empty(slot);
            self.out.give_back(urls, Some(until));
            self.settle(slot, now);
        }
    }

    /// The time has come to ask again for the robots.txt files of a host that failed.
    pub(super) fn retry_robots(&mut self, name: &Arc<str>, now: Timestamp) {
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        self.slots.change(slot, |slot, host| {
            slot.add_jobs(host.due_robots(now));
        });
        self.settle(slot, now);
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
            let is_own = self.slots.change(slot, |_, host| {
                let is_own = *host.name() == job.host;
                if is_own {
                    host.origins.forget_question(job.door);
                }
                is_own
            });
            if is_own != Some(true) {
                self.robots_answered(job, answer.clone(), now);
            }
        }
    }

    /// Whether the doc index may have the robots.txt of a host that is not known here.
    pub(super) fn recalls_robots(&self) -> bool {
        self.options.resumed || self.hosts.has_forgotten()
    }

    /// Asks the doc index for as many robots.txt files as may be asked for now.
    pub(super) fn recall_robots(&mut self, now: Timestamp) {
        while let Some(origin) = self.recalls.next(now) {
            self.out.tell(Notice::RecallRobots { origin });
        }
        if let Some(at) = self.recalls.alarm() {
            self.alarms.set(at, Wake::Recall);
        }
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
        self.recall_robots(now);
        self.finish(now);
    }

    fn remember_robots(
        &mut self,
        url: &CrawlUrl,
        record: &RobotsRecord,
        mut robots: Robots,
        now: Timestamp,
    ) {
        robots.take_sitemaps();
        let (grant, adapt) = (self.policies.grant(url.host()), self.adapt);
        let expires = record.expires.min(record.fetched.after(MAX_LIFE));
        let door = origins::door(url);
        let cap = self.options.limits.crawl_delay_cap;
        let mut still_allowed = HashSet::default();
        self.with_host(url.host(), now, |host| {
            still_allowed = host.origins.know_again(door, robots, cap, expires);
            host.fit(grant, adapt);
        });
        self.shed(url.host(), door, still_allowed);
        self.unpark(url.host(), door, now);
    }

    /// The doc index has no robots.txt of the origin: its server is asked.
    fn ask_after_all(&mut self, url: &CrawlUrl, now: Timestamp) {
        let Some(slot) = self.hosts.slot(url.host()) else {
            // A host without a queue has no URL that waits, and so nothing to ask for.
            self.hosts.change(url.host(), |host| {
                host.ask_after_all(url);
            });
            return;
        };
        self.slots.change(slot, |slot, host| {
            slot.add_jobs(host.ask_after_all(url));
        });
        self.settle(slot, now);
    }

    /// Gives up the rules of an origin when those of all hosts are too much: after they have been used on the URLs
    /// that wait for them. Those in the queue that they were found to allow before stay allowed.
    fn shed(&mut self, name: &str, door: Door, still_allowed: HashSet<u64>) {
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        self.slots.weigh(slot);
        if self.slots.shed_others(slot, self.options.rules_bytes()) {
            return;
        }
        let denied = self
            .slots
            .change(slot, |_, host| host.origins.shed(door, still_allowed));
        self.slots.weigh(slot);
        for (candidate, outcome) in denied.unwrap_or_default() {
            self.out.refuse(candidate, outcome, None);
        }
    }
}

/// A quarter longer at most, and not by the same for any two origins: hosts that one broken machine serves
/// would come back all at once.
fn staggered(pause: Duration, job: &RobotsJob) -> Duration {
    let hash = FixedState::default().hash_one((&job.host, job.door.1, job.attempts));
    pause + pause / 1024 * (hash % 256) as u32
}

/// Scheme and authority as `CrawlUrl::origin` writes them.
fn origin_name(job: &RobotsJob) -> String {
    let (scheme, port): (Scheme, u16) = job.door;
    if port == scheme.default_port() {
        format!("{}://{}", scheme.as_str(), job.host)
    } else {
        format!("{}://{}:{port}", scheme.as_str(), job.host)
    }
}
