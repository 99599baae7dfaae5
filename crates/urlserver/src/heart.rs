//! The heart of the URL server: messages and the time in, actions out.
//!
//! It reads no clock, opens no socket and never waits; `server` does that. A candidate comes into the
//! queue of its host (`slot`) or, for want of room, into the leftover queue (`leftover`); it goes out
//! when host and address may be asked (`politeness`, `dispatch`) and robots.txt allows it (`obey`).
//! What is known of a host outlives its slot (`host`, `rest`).

mod admit;
mod again;
mod ahead;
mod alarm;
mod batch;
mod census;
mod crowd;
mod dispatch;
mod lasting;
mod obey;
mod outage;
mod recall;
mod steer;
#[cfg(test)]
mod tests;
mod verdicts;
mod whereis;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Candidate, Outcome, OutcomeClass, Pace, Timestamp, TransId, machine};

pub use self::again::Resend;

use self::ahead::TOGETHER;
use self::alarm::{Alarms, Wake};
use self::batch::Batch;
use self::crowd::Crowds;
use self::lasting::Lasting;
use self::recall::Recalls;
use self::steer::Steering;
use self::verdicts::VerdictLine;
use crate::hash::{HashMap, HashSet};
use crate::host::Host;
use crate::leftover::Leftover;
use crate::message::{Action, Done, Notice, Resolved, RobotsAnswer};
use crate::options::{UrlServerError, UrlServerOptions};
use crate::pace::Adapt;
use crate::places::Places;
use crate::politeness::{self, IpTable, Ticket};
use crate::rest::Hosts;
use crate::slot::{Bench, RobotsJob, Work};

/// The most candidates that are asked for at once, so that one answer of the doc index stays small.
const MAX_WANT: usize = 1024;
/// After an answer shorter than what was wanted the doc index is left alone for this long.
const PAUSE: Duration = Duration::from_millis(100);
/// With more hosts than this on the reject list for each empty queue, a request waits for more of those.
const REJECTS_PER_QUEUE: usize = 64;
/// A host that asks for more patience than this gives its slot to another, and its URLs go back to the
/// doc index: a slot is too dear to be kept for a day.
const PATIENCE: Duration = Duration::from_secs(300);

/// The state of the URL server.
#[derive(Debug)]
pub struct Heart {
    options: UrlServerOptions,
    host_delay: Duration,
    ip_delay: Duration,
    /// How the gaps of slow and failing hosts grow.
    adapt: Adapt,
    /// In a resumed crawl, when the process before may have asked anyone for the last time.
    asked_before: Option<Timestamp>,
    bench: Bench,
    hosts: Hosts,
    ips: IpTable,
    leftover: Leftover,
    alarms: Alarms,
    /// Who waits to be told what a robots.txt says.
    verdicts: VerdictLine,
    /// Who waits for a robots.txt that the doc index has.
    recalls: Recalls,
    /// Who could go at once, and who goes next.
    places: Places<Turn>,
    /// Orders that hold their places for long.
    lasting: Lasting,
    /// Orders that are out.
    orders: usize,
    /// URLs in slots.
    queued: usize,
    /// Hashes of the hosts whose queues have enough: the reject list.
    laden: HashSet<u64>,
    /// The two maps of the last batch of candidates.
    batch: Batch,
    /// Hosts that were sent away because too many wait for their addresses.
    crowds: Crowds,
    /// URLs that found no room at all and go back to the doc index with the end of the message.
    spilled: Vec<Candidate>,
    /// How many did so since the start.
    spilled_in_all: u64,
    /// What operators have set for hosts; as many as they have typed.
    steering: HashMap<Arc<str>, Steering>,
    asking: Asking,
    /// The doc index has just been left alone for a whole pause.
    has_waited: bool,
    paused: bool,
    draining: bool,
    actions: Vec<Action>,
    #[cfg(debug_assertions)]
    unchecked: usize,
}

/// Where the conversation with the doc index stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// The next empty queue makes a request.
    Idle,
    /// A request is open.
    Asked {
        /// What was wanted.
        want: usize,
        /// Domains were rejected because their address is crowded; the next request takes them.
        crowded: bool,
    },
    /// The last answer was short, or the next request would say little; it waits.
    Paused {
        /// Until then.
        until: Timestamp,
        /// For more to say; otherwise for more to be there.
        gathering: bool,
    },
}

/// One turn to send.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Of a slot.
    Slot(Ticket),
    /// Of the first in the line of an address.
    Ip(IpAddr),
}

impl Heart {
    /// A heart with empty queues.
    ///
    /// # Errors
    ///
    /// Names the first option that makes no sense.
    pub fn new(options: UrlServerOptions, now: Timestamp) -> Result<Self, UrlServerError> {
        options.validate()?;
        let (host_delay, ip_delay) = (options.host_delay(), options.ip_delay());
        let mut steering = HashMap::<Arc<str>, Steering>::default();
        for (host, setting) in &options.settings {
            let host = host.as_str().into();
            steering.entry(host).or_default().apply(*setting);
        }
        let asked_before = |delay| (options.resumed).then(|| politeness::asked_before(now, delay));
        Ok(Self {
            host_delay,
            ip_delay,
            adapt: options.adapt(),
            asked_before: asked_before(host_delay),
            bench: Bench::new(options.host_concurrent),
            hosts: Hosts::new(options.rest_bytes),
            ips: IpTable::new(ip_delay, asked_before(ip_delay)),
            leftover: Leftover::new(options.leftover_bytes),
            alarms: Alarms::default(),
            verdicts: VerdictLine::default(),
            recalls: Recalls::default(),
            places: Places::new(options.in_flight, options.host_concurrent),
            lasting: Lasting::new(options.in_flight),
            orders: 0,
            queued: 0,
            laden: HashSet::default(),
            batch: Batch::default(),
            crowds: Crowds::default(),
            spilled: Vec::new(),
            spilled_in_all: 0,
            steering,
            asking: Asking::Idle,
            has_waited: false,
            paused: false,
            draining: false,
            actions: Vec::new(),
            #[cfg(debug_assertions)]
            unchecked: 0,
            options,
        })
    }

    /// What is to be done since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// When `tick` must be called next; none when only a message can change anything.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.alarms.next()
    }

    /// The answer to `NeedCandidates`: URLs to be asked for, or an empty list.
    pub fn candidates(&mut self, candidates: Vec<Candidate>, now: Timestamp) {
        if self.draining {
            if !candidates.is_empty() {
                self.give_back(candidates, None);
            }
            return;
        }
        self.look_ahead_for(&candidates, now);
        let unknown = self.map_batch(&candidates, now);
        match self.asking {
            // What a crowded address kept back can be had at once, for the next request has new maps.
            Asking::Asked { want, crowded } if candidates.len() < want && !crowded => {
                self.pause_asking(false, now);
            }
            Asking::Paused { .. } => {}
            _ => self.asking = Asking::Idle,
        }
        for candidate in candidates {
            self.admit(candidate, now);
        }
        for name in unknown {
            self.ask_resolver(name);
        }
        self.finish(now);
    }

    /// What the resolver found, or what becomes of the host's URLs.
    pub fn resolved(&mut self, host: &str, found: Result<Resolved, Outcome>, now: Timestamp) {
        let found = match found {
            Ok(found) if found.addresses.is_empty() => Err(Outcome::because(
                OutcomeClass::FailedDns,
                "the name has no address",
            )),
            found => found,
        };
        let ip = found
            .as_ref()
            .ok()
            .and_then(|found| found.addresses.first());
        self.map_address(host, ip.copied().map(machine));
        match (self.hosts.slot(host), found) {
            (Some(slot), Ok(found)) => {
                if let Some((slot, host)) = self.bench.pair(slot) {
                    slot.asked_resolver = false;
                    host.settle_at(found, now);
                }
                self.settle(slot, now);
            }
            (Some(slot), Err(outcome)) => self.fail_host(slot, &outcome, now),
            // Asked for with its batch: what is found waits with the host for a queue.
            (None, Ok(found)) if self.hosts.knows(host) || self.batch.has(host) => {
                self.with_host(host, now, |host| host.settle_at(found, now));
            }
            (None, Ok(_)) => {}
            (None, Err(outcome)) => {
                for candidate in self.leftover.all_of(host) {
                    self.refuse(candidate, outcome.clone(), None);
                }
            }
        }
        self.finish(now);
    }

    /// The request of an order was written at `at`.
    pub fn sent(&mut self, trans: TransId, at: Timestamp, now: Timestamp) {
        // Where one is out at a time, the next waits for its end in any case.
        if self.options.host_concurrent.max(self.options.ip_concurrent) == 1 {
            return;
        }
        let ip_delay = self.ip_delay;
        let Some((slot, host)) = self.bench.pair(trans.slot) else {
            return;
        };
        let Some(out) = slot.out(trans) else {
            return;
        };
        let first = !std::mem::replace(&mut out.announced, true);
        host.clock.sent(at, host.delay, first);
        let ip = out.ip;
        if let Some(state) = self.ips.get_mut(ip) {
            state.clock.sent(at, ip_delay, first);
        }
        self.settle(trans.slot, now);
        self.watch_ip(ip, now);
        self.finish(now);
    }

    /// An order is over. A name that is unknown, or whose place has been used again, is passed over.
    pub fn done(&mut self, trans: TransId, done: Done, now: Timestamp) {
        let Some((slot, _)) = self.bench.pair(trans.slot) else {
            return;
        };
        let Some(out) = slot.vacate(trans) else {
            return;
        };
        self.orders -= 1;
        self.places.free(out.speed, out.home);
        self.forget_given_up(out.is_given_up);
        if done.sent.is_some() || done.failed {
            self.took(trans.slot, out.since, out.job.is_none(), now);
        }
        let Some((_, host)) = self.bench.pair(trans.slot) else {
            return;
        };
        let seen = politeness::seen(&done, host.delay, self.options.host_concurrent);
        host.clock.done(seen, out.announced, out.lost);
        let response = done.sent.zip(done.first_byte);
        let response = response.map(|(sent, first_byte)| first_byte.since(sent));
        host.fit_pace(response, done.failed, self.adapt);
        if done.connect_failed {
            host.try_next_address(out.ip);
        }
        if let Some(state) = self.ips.get_mut(out.ip) {
            let seen = politeness::seen(&done, self.ip_delay, self.options.ip_concurrent);
            state.clock.done(seen, out.announced, out.lost);
        }
        if let Some(job) = out.job {
            let answer = done.robots.unwrap_or_else(|| {
                let lost = Outcome::because(OutcomeClass::DeniedRobots, "no answer");
                RobotsAnswer::unreachable(&lost)
            });
            self.robots_answered(*job, answer, now);
        }
        self.settle(trans.slot, now);
        self.watch_ip(out.ip, now);
        self.ips.rest(out.ip);
        self.finish(now);
    }

    /// How hosts have answered before this process knew them, or before it had to forget them.
    pub fn known_paces(&mut self, paces: &[(String, Pace)], now: Timestamp) {
        let adapt = self.adapt;
        for (host, pace) in paces {
            self.with_host(host, now, |host| host.remember_pace(*pace, adapt));
            if let Some(slot) = self.hosts.slot(host) {
                self.settle(slot, now);
            }
        }
        self.finish(now);
    }

    /// The host asked for patience: nobody asks it before `until`, at most the cap of the limits away.
    pub fn hold(&mut self, host: &str, until: Timestamp, now: Timestamp) {
        let until = until.min(now.after(self.options.limits.retry_after_cap));
        self.with_host(host, now, |host| host.clock.hold(until));
        if let Some(slot) = self.hosts.slot(host) {
            self.settle(slot, now);
        }
        self.finish(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Timestamp) {
        let mut wakes = Vec::with_capacity(TOGETHER);
        loop {
            while wakes.len() < TOGETHER
                && let Some(wake) = self.alarms.due(now)
            {
                wakes.push(wake);
            }
            if wakes.is_empty() {
                break;
            }
            self.look_ahead(&wakes, now);
            wakes.drain(..).for_each(|wake| self.wake(wake, now));
        }
        self.finish(now);
    }

    fn wake(&mut self, wake: Wake, now: Timestamp) {
        match wake {
            Wake::Slot((slot, stamp)) => {
                if self.bench.get(slot).is_some_and(|s| s.stamp() == stamp) {
                    self.settle(slot, now);
                }
            }
            Wake::Ip(ip) => {
                if let Some(state) = self.ips.get_mut(ip) {
                    state.wake = None;
                }
                self.watch_ip(ip, now);
            }
            Wake::Robots(host) => self.retry_robots(&host, now),
            Wake::Verdicts => self.give_verdicts(now),
            Wake::Lasting => self.check_lasting(now),
            Wake::Recall => self.ask_for_robots(now, true),
            Wake::Candidates => {
                if matches!(self.asking, Asking::Paused { until, .. } if until <= now) {
                    self.asking = Asking::Idle;
                    self.has_waited = true;
                }
            }
        }
    }

    /// Stops handing out orders and gives back every URL that is not out. What arrives later is given
    /// back by an action; orders that are out are awaited as before.
    pub fn drain(&mut self, now: Timestamp) -> Vec<Candidate> {
        self.draining = true;
        let mut all = self.leftover.take_all();
        for slot in self.bench.numbers() {
            let (urls, _) = self.empty(slot);
            all.extend(urls);
            self.settle(slot, now);
        }
        self.finish(now);
        all
    }

    /// Takes every URL and every robots.txt that is not out from a slot.
    fn empty(&mut self, slot: u32) -> (Vec<Candidate>, Vec<RobotsJob>) {
        let Some((slot, host)) = self.bench.pair(slot) else {
            return Default::default();
        };
        let mut urls = Vec::new();
        let mut jobs: Vec<_> = slot.jobs.drain(..).collect();
        match slot.next.take() {
            Some(Work::Page(candidate, _)) => urls.push(candidate),
            Some(Work::Robots(job)) => jobs.push(job),
            None => {}
        }
        host.take_all_parked(&mut urls);
        urls.extend(slot.queue.drain(..));
        self.queued -= urls.len();
        if std::mem::take(&mut slot.has_leftover) {
            urls.extend(self.leftover.all_of(&host.name));
        }
        (urls, jobs)
    }

    /// Every URL of a host fails alike.
    fn fail_host(&mut self, slot: u32, outcome: &Outcome, now: Timestamp) {
        if let Some(found) = self.bench.get_mut(slot) {
            found.asked_resolver = false;
        }
        let (urls, jobs) = self.empty(slot);
        for candidate in urls {
            self.refuse(candidate, outcome.clone(), None);
        }
        self.drop_jobs(slot, jobs, &RobotsAnswer::unreachable(outcome), now);
        self.settle(slot, now);
    }

    fn refuse(&mut self, candidate: Candidate, outcome: Outcome, again: Option<Timestamp>) {
        self.tell(Notice::Refuse {
            candidate,
            outcome,
            again,
        });
    }

    fn give_back(&mut self, candidates: Vec<Candidate>, until: Option<Timestamp>) {
        self.tell(Notice::Return { candidates, until });
    }

    fn tell(&mut self, notice: Notice) {
        self.actions.push(Action::Tell(notice));
    }

    /// Changes what is known of a host, wherever it is; it becomes known if it was not.
    fn with_host(&mut self, name: &str, now: Timestamp, change: impl FnOnce(&mut Host)) {
        if let Some(slot) = self.hosts.slot(name) {
            if let Some((_, host)) = self.bench.pair(slot) {
                change(host);
            }
        } else if self.hosts.resting(name).is_some() {
            self.hosts.change(name, change);
        } else {
            let delay = self.least_delay(name);
            let mut host = Host::new(name.into(), delay, self.asked_before);
            change(&mut host);
            self.hosts.rest(host, now);
        }
    }

    /// Ends every message: empty queues are filled, those that may go go, and the doc index is asked.
    fn finish(&mut self, now: Timestamp) {
        self.fill_empty_queues(now);
        self.pump(now);
        self.make_way_for_others(now);
        self.return_spilled();
        self.ask_for_candidates(now);
        self.ips.prune(now);
        #[cfg(debug_assertions)]
        self.check_sometimes();
    }
}
