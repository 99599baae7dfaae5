//! A robots.txt that cannot be had: how often and when it is asked for again, and who makes way meanwhile.
//!
//! A restart takes seconds, a broken deployment minutes, a move of the machine a day. So the file is asked for
//! five times within a minute, while the URLs of its origin wait for it. When that has not helped they are
//! refused, and get another chance ten minutes later, then twice as long after each time in vain, up to a day. Such
//! a chance is one request: whoever has been down for minutes is not helped by five.
//! What becomes of that chance is the business of the doc index.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use orbweaver_model::{Outcome, OutcomeClass, Timestamp};

use super::alarm::Wake;
use super::{Heart, PATIENCE};
use crate::host::{Door, RobotsState};
use crate::slot::RobotsJob;

/// The pauses between attempts in halves of `robots_delay`, which is two seconds unless it is set: 2, 6, 15
/// and 30 seconds. The first attempt may have met a restart; the later ones will hardly be helped by hurry.
const PAUSES: [u32; 4] = [2, 6, 15, 30];
/// The time from the last attempt to the first other chance, in the same measure: ten minutes.
const FIRST_CHANCE: u32 = 600;
/// It is not shorter than this: whoever wants no pauses wants no crawl that begins again at once, either.
const LEAST_CHANCE: Duration = Duration::from_secs(1);
/// It does not grow beyond this: RFC 9309 section 2.4 has files asked for once a day.
const LAST_CHANCE: Duration = Duration::from_secs(86_400);

impl Heart {
    /// An attempt failed: there will be another, or the URLs that waited are refused. A server that names a
    /// time gets it; when that is longer than a queue is kept for anybody, it gets it as the time of the next
    /// chance.
    pub(super) fn miss(
        &mut self,
        job: &RobotsJob,
        outcome: Outcome,
        wait: Option<Duration>,
        now: Timestamp,
    ) {
        let wait = wait.unwrap_or_default();
        let wait = wait.min(self.options.limits.retry_after_cap);
        let mut is_first = true;
        self.with_host(&job.host, now, |host| {
            is_first = host.origin(job.door).outages == 0;
        });
        // What our own policy refuses will be refused the next time, too.
        let may_pass = is_first && outcome.class != OutcomeClass::DeniedPolicy;
        let pause = PAUSES.get(usize::from(job.attempts)).filter(|_| may_pass);
        let pause = pause.map(|halves| self.options.robots_delay / 2 * *halves);
        match pause.filter(|_| wait <= PATIENCE) {
            Some(pause) => {
                let until = now.after(staggered(pause, job).max(wait));
                self.rest_robots(job, until, now);
            }
            None => self.give_up_robots(job, outcome, wait, now),
        }
    }

    fn rest_robots(&mut self, job: &RobotsJob, until: Timestamp, now: Timestamp) {
        let attempts = job.attempts.saturating_add(1);
        self.with_host(&job.host, now, |host| {
            host.origin(job.door).robots = RobotsState::Resting { until, attempts };
        });
        self.alarms.set(until, Wake::Robots(job.host.clone()));
        self.make_way(&job.host, job.door, until, now);
    }

    fn give_up_robots(
        &mut self,
        job: &RobotsJob,
        outcome: Outcome,
        wait: Duration,
        now: Timestamp,
    ) {
        let first = (self.options.robots_delay / 2).saturating_mul(FIRST_CHANCE);
        let first = first.max(LEAST_CHANCE);
        self.with_host(&job.host, now, |host| {
            let origin = host.origin(job.door);
            let doubled = 1u32.checked_shl(u32::from(origin.outages));
            let chance = first.saturating_mul(doubled.unwrap_or(u32::MAX));
            let chance = staggered(chance.min(LAST_CHANCE), job).max(wait);
            origin.outages = origin.outages.saturating_add(1);
            let until = now.after(chance);
            origin.robots = RobotsState::Unreachable { outcome, until };
        });
        self.unpark(&job.host, job.door, now);
    }

    /// When every queue is taken, a host that does nothing but wait for this robots.txt gives its own to
    /// another, or a list of dead hosts would stop those that are alive. What is known of it stays here.
    fn make_way(&mut self, name: &Arc<str>, door: Door, until: Timestamp, now: Timestamp) {
        if self.bench.occupied() < self.options.queue_count {
            return;
        }
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        let Some((found, host)) = self.bench.pair(slot) else {
            return;
        };
        let idle = found.next.is_none() && found.queue.is_empty() && found.jobs.is_empty();
        let waits_here = host.origin(door).parked.len() == host.parked();
        if idle && found.active() == 0 && waits_here && host.parked() > 0 {
            let (urls, _) = self.empty(slot);
            self.give_back(urls, Some(until));
            self.settle(slot, now);
        }
    }

    /// The time has come to ask again for the robots.txt files of a host that failed.
    pub(super) fn retry_robots(&mut self, name: &Arc<str>, now: Timestamp) {
        let Some(slot) = self.hosts.slot(name) else {
            return;
        };
        if let Some((found, host)) = self.bench.pair(slot) {
            for origin in host.origins() {
                let (RobotsState::Resting { until, attempts }, Some(first)) =
                    (&origin.robots, origin.parked.front())
                else {
                    continue;
                };
                if *until > now {
                    continue;
                }
                found.jobs.push_back(RobotsJob {
                    host: name.clone(),
                    door: origin.door,
                    url: first.url.robots_txt(),
                    hops: 0,
                    attempts: *attempts,
                });
                origin.robots = RobotsState::Asked;
            }
        }
        self.settle(slot, now);
    }
}

/// A quarter longer at most, and not by the same for any two origins: hosts that one broken machine serves
/// would come back all at once.
fn staggered(pause: Duration, job: &RobotsJob) -> Duration {
    let hash = FixedState::default().hash_one((&job.host, job.door.1, job.attempts));
    pause + pause / 1024 * (hash % 256) as u32
}
