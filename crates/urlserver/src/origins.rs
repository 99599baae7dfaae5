//! The origins of a host: what each one's robots.txt says or why that is not known, and the URLs that wait for it.
//!
//! One robots.txt governs one origin. Until it is known the origin's URLs are parked here, beside the queue, so that the
//! other origins of the host go on. When a file is asked for, and of whom, is decided by whoever gets a `Judgement`;
//! here stands what is known, and every move of an origin from one state to another is a method.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, Outcome, OutcomeClass, Scheme, Timestamp, UrlKey};
use orbweaver_robots::Robots;

use crate::hash::HashSet;
use crate::message::RobotsStanding;

/// Origins of one host that are remembered without being waited for.
const MAX_ORIGINS: usize = 64;
/// Bytes of rules that are never given up: getting them back would cost more.
pub(crate) const LIGHT: usize = 1024;

/// Scheme and port: what makes an origin, given the host.
pub(crate) type Door = (Scheme, u16);

/// The door that a URL goes through.
pub(crate) fn door(url: &CrawlUrl) -> Door {
    (url.scheme(), url.port())
}

/// A robots.txt to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct RobotsJob {
    /// The host whose robots.txt it is; the request may go to another one.
    pub(crate) host: Arc<str>,
    /// The origin of that host.
    pub(crate) door: Door,
    /// What to ask for.
    pub(crate) url: CrawlUrl,
    /// Redirects followed so far.
    pub(crate) hops: usize,
    /// Attempts that failed before this one.
    pub(crate) attempts: u8,
}

impl RobotsJob {
    /// The robots.txt of a URL's own origin.
    fn new(host: &Arc<str>, url: &CrawlUrl, attempts: u8) -> Self {
        Self {
            host: host.clone(),
            door: door(url),
            url: url.robots_txt(),
            hops: 0,
            attempts,
        }
    }
}

/// What is to be done with a URL.
#[derive(Debug)]
pub(crate) enum Judgement {
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

/// Where an origin stands with its robots.txt.
#[derive(Debug)]
enum State {
    /// It was never asked for, or what it said is too old.
    Unknown,
    /// A robots.txt order waits for its turn or is out, here or on the host that it moved to.
    Asked,
    /// An attempt failed, and the next one comes later.
    Resting {
        /// When.
        until: Timestamp,
        /// Attempts made.
        attempts: u8,
    },
    /// The rules are known.
    Known {
        /// The rules.
        robots: Robots,
        /// How long they hold.
        expires: Timestamp,
    },
    /// The rules were known, but take too much memory: the doc index has them.
    Kept {
        /// How long they hold.
        expires: Timestamp,
        /// URLs that they were found to allow, by hash, and that have not been asked for yet.
        allowed: HashSet<u64>,
    },
    /// The doc index is asked for the rules.
    Recalled {
        /// As before; what is allowed stays so until then.
        expires: Timestamp,
        /// As before.
        allowed: HashSet<u64>,
    },
    /// Every attempt failed: RFC 9309 section 2.3.1.4 has everything denied.
    Unreachable {
        /// What its URLs get.
        outcome: Outcome,
        /// When it may be requested again.
        until: Timestamp,
    },
}

/// One origin of a host, and the URLs that wait for its robots.txt.
#[derive(Debug)]
struct Origin {
    door: Door,
    state: State,
    /// URLs beside the queue, so that the other origins of the host go on. They count as queued.
    parked: VecDeque<Candidate>,
    /// How often all attempts at its robots.txt have failed since it was last had.
    outages: u8,
    /// The Crawl-delay of the robots.txt that was last had.
    crawl_delay: Option<Duration>,
}

impl Origin {
    fn new(door: Door) -> Self {
        Self {
            door,
            state: State::Unknown,
            parked: VecDeque::new(),
            outages: 0,
            crawl_delay: None,
        }
    }

    fn is_forgettable(&self) -> bool {
        self.parked.is_empty()
            && !matches!(
                self.state,
                State::Asked | State::Recalled { .. } | State::Resting { .. }
            )
    }

    /// Until when a URL may be asked for that was found to be allowed while the rules were at hand. Asked once.
    fn has_allowed(&mut self, url: u64, now: Timestamp) -> Option<Timestamp> {
        match &mut self.state {
            State::Kept { expires, allowed } | State::Recalled { expires, allowed }
                if *expires > now =>
            {
                allowed.remove(&url).then_some(*expires)
            }
            _ => None,
        }
    }

    /// True when the doc index is to be asked for the rules, from now on.
    fn recall(&mut self, recalls: bool, now: Timestamp) -> bool {
        let (expires, allowed) = match &mut self.state {
            State::Kept { expires, allowed } if *expires > now => {
                (*expires, std::mem::take(allowed))
            }
            State::Unknown if recalls => (Timestamp::default(), HashSet::default()),
            _ => return false,
        };
        self.state = State::Recalled { expires, allowed };
        true
    }

    /// Bytes that its rules take.
    fn rules_bytes(&self) -> usize {
        match &self.state {
            State::Known { robots, .. } => robots.heap_bytes(),
            State::Kept { allowed, .. } | State::Recalled { allowed, .. } => {
                allowed.len() * 2 * size_of::<u64>()
            }
            _ => 0,
        }
    }
}

/// The origins of one host: hardly ever more than http and https. As many as wait, and `MAX_ORIGINS` that do not.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    all: Vec<Origin>,
    /// URLs that wait for a robots.txt, with all origins together.
    parked: usize,
    /// An origin where everything is allowed, and until when; so it is with most, and then no rules have
    /// to be looked at.
    free: Option<(Door, Timestamp)>,
}

impl Origins {
    fn find(&self, door: Door) -> Option<&Origin> {
        self.all.iter().find(|origin| origin.door == door)
    }

    /// The origin behind a door, which becomes known.
    fn at(&mut self, door: Door) -> &mut Origin {
        let at = match self.all.iter().position(|origin| origin.door == door) {
            Some(at) => at,
            None => {
                self.make_room();
                self.all.push(Origin::new(door));
                self.all.len() - 1
            }
        };
        #[allow(
            clippy::indexing_slicing,
            reason = "the position was found or made above"
        )]
        &mut self.all[at]
    }

    fn make_room(&mut self) {
        if self.all.len() >= MAX_ORIGINS
            && let Some(oldest) = self.all.iter().position(Origin::is_forgettable)
        {
            self.all.remove(oldest);
        }
    }

    /// Asks the origin of a URL of `host` what is to be done with it. `recalls` when the doc index may have the
    /// robots.txt of an origin that nothing is known of. `steps` becomes what the rules have cost.
    pub(crate) fn judge(
        &mut self,
        host: &Arc<str>,
        candidate: Candidate,
        recalls: bool,
        steps: &mut usize,
        now: Timestamp,
    ) -> Judgement {
        let door = door(&candidate.url);
        if let Some((free, until)) = self.free
            && free == door
            && until > now
        {
            return Judgement::Allowed(candidate, until);
        }
        let origin = self.at(door);
        if let Some(until) = origin.has_allowed(candidate.key.url, now) {
            return Judgement::Allowed(candidate, until);
        }
        let again = matches!(origin.state, State::Kept { .. });
        if origin.recall(recalls, now) {
            let name = candidate.url.origin().to_owned();
            self.park(candidate);
            return Judgement::Recalled(name, again);
        }
        let attempts = match &origin.state {
            State::Known { robots, expires } if *expires > now => {
                return match denial(robots, &candidate, steps) {
                    Some(outcome) => Judgement::Denied(candidate, outcome, None),
                    None => Judgement::Allowed(candidate, *expires),
                };
            }
            State::Unreachable { outcome, until } if *until > now => {
                let outcome = outcome.clone();
                return Judgement::Denied(candidate, outcome, Some(*until));
            }
            State::Asked | State::Recalled { .. } => None,
            State::Resting { until, .. } if *until > now => None,
            State::Resting { attempts, .. } => Some(*attempts),
            State::Unknown
            | State::Known { .. }
            | State::Kept { .. }
            | State::Unreachable { .. } => Some(0),
        };
        if attempts.is_some() {
            origin.state = State::Asked;
        }
        let job = attempts.map(|attempts| RobotsJob::new(host, &candidate.url, attempts));
        self.park(candidate);
        Judgement::Parked(job)
    }

    /// URLs that wait for a robots.txt.
    pub(crate) fn parked(&self) -> usize {
        self.parked
    }

    /// Whether URLs wait, and all for the robots.txt of this origin.
    pub(crate) fn all_wait_at(&self, door: Door) -> bool {
        let here = self.find(door).map_or(0, |origin| origin.parked.len());
        here > 0 && here == self.parked
    }

    fn park(&mut self, candidate: Candidate) {
        self.parked += 1;
        self.at(door(&candidate.url)).parked.push_back(candidate);
    }

    /// The URLs that wait at an origin, in their order.
    pub(crate) fn take_parked(&mut self, door: Door) -> VecDeque<Candidate> {
        let parked = std::mem::take(&mut self.at(door).parked);
        self.parked -= parked.len();
        parked
    }

    /// All URLs that wait.
    pub(crate) fn take_all_parked(&mut self, into: &mut Vec<Candidate>) {
        for origin in self.all.iter_mut().filter(|_| self.parked > 0) {
            into.extend(origin.parked.drain(..));
        }
        self.parked = 0;
    }

    /// The rules of an origin are known. Its Crawl-delay counts up to `cap`.
    pub(crate) fn know(&mut self, door: Door, robots: Robots, cap: Duration, expires: Timestamp) {
        if robots.allows_all() {
            self.free = Some((door, expires));
        } else if self.free.is_some_and(|(free, _)| free == door) {
            self.free = None;
        }
        let origin = self.at(door);
        origin.crawl_delay = robots.crawl_delay().map(|delay| delay.min(cap));
        origin.state = State::Known { robots, expires };
        origin.outages = 0;
    }

    /// The same, from the doc index, unless better is known by now. Comes with the URLs that the rules were found to
    /// allow before.
    pub(crate) fn know_again(
        &mut self,
        door: Door,
        robots: Robots,
        cap: Duration,
        expires: Timestamp,
    ) -> HashSet<u64> {
        let allowed = match &mut self.at(door).state {
            State::Unknown => HashSet::default(),
            State::Recalled { allowed, .. } => std::mem::take(allowed),
            _ => return HashSet::default(),
        };
        self.know(door, robots, cap, expires);
        allowed
    }

    /// The doc index does not have the file of an origin: the job of asking its server, if any URL waits for it.
    pub(crate) fn ask_after_all(&mut self, host: &Arc<str>, url: &CrawlUrl) -> Option<RobotsJob> {
        let door = door(url);
        let origin = self.at(door);
        if !matches!(origin.state, State::Recalled { .. }) {
            return None;
        }
        if origin.parked.is_empty() {
            origin.state = State::Unknown;
            return None;
        }
        origin.state = State::Asked;
        Some(RobotsJob::new(host, url, 0))
    }

    /// Nothing is asked of the origin any more, so its next URL asks again.
    pub(crate) fn forget_question(&mut self, door: Door) {
        let origin = self.at(door);
        if matches!(origin.state, State::Asked) {
            origin.state = State::Unknown;
        }
    }

    /// How often all attempts at an origin's robots.txt have failed since it was last had.
    pub(crate) fn outages(&mut self, door: Door) -> u8 {
        self.at(door).outages
    }

    /// An attempt failed, and the next one comes then; so many have been made.
    pub(crate) fn rest(&mut self, door: Door, until: Timestamp, attempts: u8) {
        self.at(door).state = State::Resting { until, attempts };
    }

    /// Every attempt failed: the URLs of the origin get this outcome until then.
    pub(crate) fn give_up(&mut self, door: Door, outcome: Outcome, until: Timestamp) {
        let origin = self.at(door);
        origin.outages = origin.outages.saturating_add(1);
        origin.state = State::Unreachable { outcome, until };
    }

    /// The files for which the time has come to ask again, where URLs wait.
    pub(crate) fn due(&mut self, host: &Arc<str>, now: Timestamp) -> Vec<RobotsJob> {
        let mut jobs = Vec::new();
        for origin in &mut self.all {
            let (State::Resting { until, attempts }, Some(first)) =
                (&origin.state, origin.parked.front())
            else {
                continue;
            };
            if *until > now {
                continue;
            }
            jobs.push(RobotsJob::new(host, &first.url, *attempts));
            origin.state = State::Asked;
        }
        jobs
    }

    /// Gives up the rules of an origin, after they have been used on the URLs that wait for them: those that they deny
    /// are given, and the others wait on as allowed, beside those that `still_allowed` names. Light rules stay.
    pub(crate) fn shed(
        &mut self,
        door: Door,
        still_allowed: HashSet<u64>,
    ) -> Vec<(Candidate, Outcome)> {
        let origin = self.at(door);
        let State::Known { robots, expires } = &origin.state else {
            return Vec::new();
        };
        if robots.heap_bytes() <= LIGHT {
            return Vec::new();
        }
        let (mut waiting, mut denied) = (VecDeque::new(), Vec::new());
        for candidate in std::mem::take(&mut origin.parked) {
            match denial(robots, &candidate, &mut 0) {
                Some(outcome) => denied.push((candidate, outcome)),
                None => waiting.push_back(candidate),
            }
        }
        let (expires, mut allowed) = (*expires, still_allowed);
        allowed.extend(waiting.iter().map(|candidate| candidate.key.url));
        origin.state = State::Kept { expires, allowed };
        origin.parked = waiting;
        self.parked -= denied.len();
        denied
    }

    /// Gives up the rules of all origins where that is worth it, and what they were found to allow: the doc index
    /// has them.
    pub(crate) fn forget_rules(&mut self) {
        for origin in &mut self.all {
            let expires = match &origin.state {
                State::Known { robots, expires } if robots.heap_bytes() > LIGHT => *expires,
                State::Kept { expires, .. } => *expires,
                _ => continue,
            };
            let allowed = HashSet::default();
            origin.state = State::Kept { expires, allowed };
        }
    }

    /// Bytes that the rules of all origins take.
    pub(crate) fn rules_bytes(&self) -> usize {
        self.all.iter().map(Origin::rules_bytes).sum()
    }

    /// Roughly the bytes that all of this takes, but for the URLs that wait.
    pub(crate) fn weight(&self) -> usize {
        size_of_val(self.all.as_slice()) + self.rules_bytes()
    }

    /// Whether a robots.txt has been had, so that the doc index has it too.
    pub(crate) fn has_robots(&self) -> bool {
        let mut origins = self.all.iter();
        origins.any(|origin| matches!(origin.state, State::Known { .. } | State::Kept { .. }))
    }

    /// The longest Crawl-delay of the files that were last had.
    pub(crate) fn crawl_delay(&self) -> Option<Duration> {
        self.all
            .iter()
            .filter_map(|origin| origin.crawl_delay)
            .max()
    }

    /// URLs that wait before this one for the robots.txt of its origin, if it does.
    pub(crate) fn position(&self, url: &CrawlUrl, key: UrlKey) -> Option<usize> {
        let parked = &self.find(door(url))?.parked;
        parked.iter().position(|waiting| waiting.key == key)
    }

    /// How the origin of a URL stands with its robots.txt, for operators.
    pub(crate) fn standing(&self, url: &CrawlUrl) -> RobotsStanding {
        match self.find(door(url)).map(|origin| &origin.state) {
            None | Some(State::Unknown) => RobotsStanding::Unknown,
            Some(State::Asked | State::Recalled { .. }) => RobotsStanding::Asked,
            Some(State::Resting { until, .. }) => RobotsStanding::Resting { until: *until },
            Some(State::Known { expires, .. } | State::Kept { expires, .. }) => {
                RobotsStanding::Known { expires: *expires }
            }
            Some(State::Unreachable { until, .. }) => RobotsStanding::Unreachable { until: *until },
        }
    }
}

/// What becomes of a URL that the rules deny. `steps` becomes what finding that out has cost.
fn denial(robots: &Robots, candidate: &Candidate, steps: &mut usize) -> Option<Outcome> {
    let verdict;
    (verdict, *steps) = robots.weighed_verdict(candidate.url.target());
    let rule = verdict.rule.filter(|_| !verdict.allowed)?;
    let reason = format!("robots.txt: {rule}");
    Some(Outcome::because(OutcomeClass::DeniedRobots, reason))
}

#[cfg(test)]
mod tests;
