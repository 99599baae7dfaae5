//! The heart of the URL server: messages and the time in, actions out.
//!
//! It reads no clock, opens no socket and never waits; `server` does that. A candidate comes into the
//! queue of its host (`slots`) or, for want of room, into the leftover queue (`leftover`); it goes out
//! when host and address may be asked (`host`, `ips`) and robots.txt allows it (`origins`).
//! What is known of a host outlives its slot (`rest`).
//!
//! Each of these is a part with an invariant of its own, which knows nothing of the others; the heart is what stands
//! between them. Its own methods are in six files: how URLs come in (`admit`), who goes next (`dispatch`), what
//! happens to orders that are out (`orders`), robots.txt (`robots`), operators (`operators`) and their questions
//! (`report`).

mod admit;
mod dispatch;
mod operators;
mod orders;
mod report;
mod robots;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Candidate, Outcome, OutcomeClass, Pace, Timestamp, machine};

pub use self::orders::Resend;

use crate::clock;
use crate::crowds::Crowds;
use crate::host::Host;
use crate::ips::IpTable;
use crate::lasting::Lasting;
use crate::leftover::Leftover;
use crate::message::{Action, Notice, Resolved, RobotsAnswer};
use crate::options::{UrlServerError, UrlServerOptions};
use crate::origins::RobotsJob;
use crate::pace::Adapt;
use crate::policies::Policies;
use crate::recalls::Recalls;
use crate::requests::Requests;
use crate::rest::Hosts;
use crate::slot::Stamped;
use crate::slots::Slots;
use crate::verdicts::VerdictLine;
use orbweaver_turns::Alarms;
use orbweaver_turns::Places;

/// A host that asks for more patience than this gives its slot to another, and its URLs go back to the
/// doc index: a slot is too dear to be kept for a day.
const PATIENCE: Duration = Duration::from_secs(300);

/// The state of the URL server.
#[derive(Debug)]
pub struct Heart {
    options: UrlServerOptions,
    /// How the gaps of slow and failing hosts grow.
    adapt: Adapt,
    /// In a resumed crawl, when the process before may have asked anyone for the last time.
    asked_before: Option<Timestamp>,
    /// What may be asked of which host.
    policies: Policies,
    /// The queues, and the hosts that have one.
    slots: Slots,
    /// Where every host is, and those without a queue.
    hosts: Hosts,
    ips: IpTable,
    leftover: Leftover,
    alarms: Alarms<Wake>,
    /// Who waits to be told what a robots.txt says.
    verdicts: VerdictLine,
    /// Who waits for a robots.txt that the doc index has.
    recalls: Recalls,
    /// Who could go at once, and who goes next.
    places: Places<Turn>,
    /// Orders that hold their places for long.
    lasting: Lasting,
    /// Hosts that were sent away because too many wait for their addresses.
    crowds: Crowds,
    /// The conversation with the doc index.
    requests: Requests,
    paused: bool,
    draining: bool,
    out: Actions,
    #[cfg(debug_assertions)]
    unchecked: usize,
}

/// What to look at when its time comes.
#[derive(Debug)]
enum Wake {
    /// A slot whose time comes.
    Slot(Stamped),
    /// An address whose time comes.
    Ip(IpAddr),
    /// A host with a robots.txt to be requested again.
    Robots(Arc<str>),
    /// The line of those who wait for verdicts has its turn.
    Verdicts,
    /// The oldest order that is out may have outstayed.
    Lasting,
    /// The doc index may be asked for a robots.txt again.
    Recall,
    /// The doc index may be asked again.
    Candidates,
}

/// One turn to send.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Of a slot.
    Slot(Stamped),
    /// Of the first in the line of an address.
    Ip(IpAddr),
}

/// What is to be done, in the order in which it was decided. Emptied after every message.
#[derive(Debug, Default)]
struct Actions(Vec<Action>);

impl Actions {
    fn push(&mut self, action: Action) {
        self.0.push(action);
    }

    fn tell(&mut self, notice: Notice) {
        self.0.push(Action::Tell(notice));
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
}

impl Heart {
    /// A heart with empty queues.
    ///
    /// # Errors
    ///
    /// Names the first option that makes no sense.
    pub fn new(options: UrlServerOptions, now: Timestamp) -> Result<Self, UrlServerError> {
        options.validate()?;
        let asked_before = |delay| (options.resumed).then(|| clock::asked_before(now, delay));
        let ip_delay = options.ip_delay();
        Ok(Self {
            adapt: options.adapt(),
            asked_before: asked_before(options.host_delay()),
            policies: Policies::new(&options),
            slots: Slots::default(),
            hosts: Hosts::new(options.rest_bytes),
            ips: IpTable::new(options.ip_concurrent, ip_delay, asked_before(ip_delay)),
            leftover: Leftover::new(options.leftover_bytes),
            alarms: Alarms::default(),
            verdicts: VerdictLine::default(),
            recalls: Recalls::default(),
            places: Places::new(options.in_flight, options.host_concurrent),
            lasting: Lasting::new(options.in_flight),
            crowds: Crowds::default(),
            requests: Requests::default(),
            paused: false,
            draining: false,
            out: Actions::default(),
            #[cfg(debug_assertions)]
            unchecked: 0,
            options,
        })
    }

    /// What is to be done since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.out.0)
    }

    /// When `tick` must be called next; none when only a message can change anything.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.alarms.next()
    }

    /// The answer to `NeedCandidates`: URLs to be asked for, or an empty list.
    pub fn candidates(&mut self, candidates: Vec<Candidate>, now: Timestamp) {
        if self.draining {
            if !candidates.is_empty() {
                self.out.give_back(candidates, None);
            }
            return;
        }
        let unknown = self.map_batch(&candidates, now);
        if let Some(at) = self.requests.answered(candidates.len(), now) {
            self.alarms.set(at, Wake::Candidates);
        }
        for candidate in candidates {
            self.admit(candidate, now);
        }
        for host in unknown {
            self.ask_resolver(host);
        }
        self.finish(now);
    }

    /// Asks for the addresses of a host, whether it has a queue or not, unless its slot has asked.
    fn ask_resolver(&mut self, host: Arc<str>) {
        let slot = self.hosts.slot(&host);
        let asks = slot.and_then(|slot| self.slots.change(slot, |slot, _| slot.ask_resolver()));
        if asks != Some(false) {
            self.out.push(Action::Resolve { host });
        }
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
        self.requests.map_address(host, ip.copied().map(machine));
        match (self.hosts.slot(host), found) {
            (Some(slot), Ok(found)) => {
                self.slots.change(slot, |slot, host| {
                    slot.resolver_answered();
                    host.settle_at(found, now);
                });
                self.settle(slot, now);
            }
            (Some(slot), Err(outcome)) => self.fail_host(slot, &outcome, now),
            // Asked for with its batch: what is found waits with the host for a queue.
            (None, Ok(found)) if self.hosts.knows(host) || self.requests.is_mapped(host) => {
                self.with_host(host, now, |host| host.settle_at(found, now));
            }
            (None, Ok(_)) => {}
            (None, Err(outcome)) => {
                for candidate in self.leftover.all_of(host) {
                    self.out.refuse(candidate, outcome.clone(), None);
                }
            }
        }
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
        while let Some(wake) = self.alarms.due(now) {
            self.wake(wake, now);
        }
        self.finish(now);
    }

    fn wake(&mut self, wake: Wake, now: Timestamp) {
        match wake {
            Wake::Slot(stamped) => {
                if self.slots.is_current(stamped) {
                    self.settle(stamped.0, now);
                }
            }
            Wake::Ip(ip) => {
                self.ips.woken(ip);
                self.watch_ip(ip, now);
            }
            Wake::Robots(host) => self.retry_robots(&host, now),
            Wake::Verdicts => self.give_verdicts(now),
            Wake::Lasting => self.check_lasting(now),
            Wake::Recall => {
                self.recalls.woken();
                self.recall_robots(now);
            }
            Wake::Candidates => self.requests.woken(now),
        }
    }

    /// Stops handing out orders and gives back every URL that is not out. What arrives later is given
    /// back by an action; orders that are out are awaited as before.
    pub fn drain(&mut self, now: Timestamp) -> Vec<Candidate> {
        self.draining = true;
        let mut all = self.leftover.take_all();
        for slot in self.slots.numbers() {
            let (urls, _) = self.empty(slot);
            all.extend(urls);
            self.settle(slot, now);
        }
        self.finish(now);
        all
    }

    /// Takes every URL and every robots.txt that is not out from a slot.
    fn empty(&mut self, slot: u32) -> (Vec<Candidate>, Vec<RobotsJob>) {
        let leftover = &mut self.leftover;
        let all = self.slots.change(slot, |slot, host| {
            let (mut urls, jobs) = slot.take_all(host);
            if slot.has_leftover() {
                slot.set_leftover(false);
                urls.extend(leftover.all_of(host.name()));
            }
            (urls, jobs)
        });
        all.unwrap_or_default()
    }

    /// Every URL of a host fails alike.
    fn fail_host(&mut self, slot: u32, outcome: &Outcome, now: Timestamp) {
        self.slots.change(slot, |slot, _| slot.resolver_answered());
        let (urls, jobs) = self.empty(slot);
        for candidate in urls {
            self.out.refuse(candidate, outcome.clone(), None);
        }
        self.drop_jobs(slot, jobs, &RobotsAnswer::unreachable(outcome), now);
        self.settle(slot, now);
    }

    /// Whether a host without a queue could get one.
    fn has_empty_queue(&self) -> bool {
        self.slots.occupied() < self.options.queue_count
    }

    /// What is known of a host, wherever it is.
    fn known_host(&self, name: &str) -> Option<&Host> {
        match self.hosts.slot(name) {
            Some(slot) => self.slots.host(slot),
            None => self.hosts.at_rest(name),
        }
    }

    /// Changes what is known of a host, wherever it is; it becomes known if it was not.
    fn with_host(&mut self, name: &str, now: Timestamp, change: impl FnOnce(&mut Host)) {
        if let Some(slot) = self.hosts.slot(name) {
            self.slots.change(slot, |_, host| change(host));
        } else if self.hosts.at_rest(name).is_some() {
            self.hosts.change(name, change);
        } else {
            let mut host = Host::new(name.into(), self.policies.grant(name), self.asked_before);
            change(&mut host);
            self.hosts.rest(host, now);
        }
    }

    /// Ends every message: empty queues are filled, those that may go go, and the doc index is asked.
    fn finish(&mut self, now: Timestamp) {
        self.fill_empty_queues(now);
        self.pump(now);
        self.make_way_for_others(now);
        let spilled = self.leftover.take_spilled();
        if !spilled.is_empty() {
            self.out.give_back(spilled, None);
        }
        self.ask_for_candidates(now);
        self.ips.prune(now);
        #[cfg(debug_assertions)]
        self.check_sometimes();
    }
}
