//! robots.txt in the heart: when one is asked for, who waits for it, and what its answers mean.
//!
//! One file governs one origin. It is asked for like any URL of the host, before the first page of the
//! origin, and the origin's URLs are parked meanwhile. RFC 9309 section 2.3 decides the rest: a file
//! that moved is followed, one that is not there allows everything, and one that cannot be reached
//! denies everything for now: it is asked for some more times, and then the URLs are refused with the
//! time at which they deserve another chance (`outage`).

use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, Outcome, OutcomeClass, RobotsRecord, Scheme, Timestamp,
};

use super::Heart;
use super::recall::denial;
use super::steer::MOVED_TO_BLOCKED;
use crate::hash::HashSet;
use crate::host::{self, Door, Host, Origin, RobotsState};
use crate::message::{Notice, RobotsAnswer};
use crate::slot::RobotsJob;
use orbweaver_robots::Robots;

/// RFC 9309 section 2.4: a cached copy is not used for more than a day.
pub(super) const MAX_LIFE: Duration = Duration::from_secs(86_400);
/// A server that wants its file asked for more often is not followed: a short crawl asks once.
const MIN_LIFE: Duration = Duration::from_secs(3600);
/// What is to be done with a URL.
pub(super) enum Judgement {
    /// It may be asked for, until then.
    Allowed(Candidate, Timestamp),
    /// It may not; not before the time that is given, if one is.
    Denied(Candidate, Outcome, Option<Timestamp>),
    /// It waits with its origin for the robots.txt, which is to be asked for when a job is given.
    Parked(Option<RobotsJob>),
    /// It waits as well, and the doc index is to be asked whether it has the file of this origin; `true` when it was
    /// given up here for its size.
    Recalled(String, bool),
}

/// Asks the origin of a URL what is to be done with it. `recalls` when the doc index may have the robots.txt of an
/// origin that nothing is known of. `steps` becomes what the rules have cost.
pub(super) fn judge(
    host: &mut Host,
    candidate: Candidate,
    recalls: bool,
    steps: &mut usize,
    now: Timestamp,
) -> Judgement {
    let door = host::door(&candidate.url);
    if let Some(until) = host.is_free(door, now) {
        return Judgement::Allowed(candidate, until);
    }
    let origin = host.origin(door);
    if let Some(until) = origin.has_allowed(candidate.key.url, now) {
        return Judgement::Allowed(candidate, until);
    }
    let again = matches!(origin.robots, RobotsState::Kept { .. });
    if origin.recall(recalls, now) {
        let name = candidate.url.origin().to_owned();
        host.park(candidate);
        return Judgement::Recalled(name, again);
    }
    let attempts = match &origin.robots {
        RobotsState::Known { robots, expires } if *expires > now => {
            return match denial(robots, &candidate, steps) {
                Some(outcome) => Judgement::Denied(candidate, outcome, None),
                None => Judgement::Allowed(candidate, *expires),
            };
        }
        RobotsState::Unreachable { outcome, until } if *until > now => {
            let outcome = outcome.clone();
            return Judgement::Denied(candidate, outcome, Some(*until));
        }
        RobotsState::Asked | RobotsState::Recalled { .. } => None,
        RobotsState::Resting { until, .. } if *until > now => None,
        RobotsState::Resting { attempts, .. } => Some(*attempts),
        RobotsState::Unknown
        | RobotsState::Known { .. }
        | RobotsState::Kept { .. }
        | RobotsState::Unreachable { .. } => Some(0),
    };
    if attempts.is_some() {
        origin.robots = RobotsState::Asked;
    }
    let job = attempts.map(|attempts| RobotsJob {
        host: host.name.clone(),
        door,
        url: candidate.url.robots_txt(),
        hops: 0,
        attempts,
    });
    host.park(candidate);
    Judgement::Parked(job)
}

impl Origin {
    /// Nothing is asked any more, so the next URL asks again.
    pub(crate) fn forget(&mut self) {
        if matches!(self.robots, RobotsState::Asked) {
            self.robots = RobotsState::Unknown;
        }
    }
}

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
            } if job.hops < limits.robots_max_redirects => self.follow(job, url, now),
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

    /// The file moved: its new place is asked, on that host's time.
    fn follow(&mut self, job: RobotsJob, url: CrawlUrl, now: Timestamp) {
        let hops = job.hops + 1;
        self.ask_at(job, url, hops, now);
    }

    /// A robots.txt is asked for at this URL, when the turn of its host comes.
    fn ask_at(&mut self, job: RobotsJob, url: CrawlUrl, hops: usize, now: Timestamp) {
        if self.draining {
            self.with_host(&job.host, now, |host| host.origin(job.door).forget());
            return;
        }
        if self.is_blocked(url.host()) {
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
                self.seat(&name)
            }
        };
        if let Some(found) = self.bench.get_mut(slot) {
            found.jobs.push_back(RobotsJob { url, hops, ..job });
        }
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
            self.tell(Notice::DelayCapped {
                origin,
                asked,
                kept,
            });
        }
        if !urls.is_empty() {
            let origin = origin.clone();
            self.tell(Notice::Sitemaps { origin, urls });
        }
        self.tell(Notice::StoreRobots {
            origin,
            record: RobotsRecord {
                fetched: now,
                expires,
                status,
                body,
            },
        });
        let (least, adapt) = (self.least_delay(&job.host), self.adapt);
        self.with_host(&job.host, now, |host| {
            host.know(job.door, robots, cap, expires);
            host.fit_delay(least, adapt);
        });
        self.shed(&job.host, job.door, HashSet::default());
        self.unpark(&job.host, job.door, now);
    }

    /// Sends the URLs of an origin back to the front of the queue, in their order; the next look at
    /// each will judge it by what is known now.
    pub(super) fn unpark(&mut self, host: &str, door: Door, now: Timestamp) {
        let Some(slot) = self.hosts.slot(host) else {
            return;
        };
        if let Some((found, host)) = self.bench.pair(slot) {
            for candidate in host.take_parked(door).into_iter().rev() {
                found.queue.push_front(candidate);
            }
        }
        self.settle(slot, now);
    }
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
