//! What happens around the heart, event by event, and what must always be true.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::time::Duration;

use orbweaver_model::{CrawlUrl, Order, Outcome, OutcomeClass, RobotsRecord, Timestamp};
use orbweaver_testkit::Random;
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, RobotsAnswer, UrlServerOptions};

use super::books::{Books, Place};
use super::web::{self, Temper, temper};

/// Time in the simulation is in microseconds, so that what the heart loses by milliseconds shows.
type Micros = u64;

const START: Micros = 1_000_000_000_000;
const SECOND: Micros = 1_000_000;
const WEEK: Micros = 7 * 86_400 * SECOND;
const DAY: Micros = 86_400 * SECOND;

fn stamp(at: Micros) -> Timestamp {
    Timestamp::from_millis(at / 1000)
}

/// A run.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) urls: u32,
    /// Seconds from one restart to the next, on average.
    pub(crate) restart_every: u64,
    pub(crate) options: UrlServerOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A request reaches its server; `written` when.
    Arrive {
        host: u32,
        ip: u32,
        written: Micros,
        gap: Micros,
    },
    Sent(u32),
    Done(u32),
    Resolved(u32),
    Answer,
    Recall(u32),
    Tick(Micros),
    Restart,
    /// Nothing gets done for a while: the machine sleeps, or the clock jumps.
    Stall,
    /// The new process runs.
    Start,
}

/// An order on its way.
struct Flight {
    order: Order,
    sent: Option<Micros>,
    first_byte: Option<Micros>,
    ended: Micros,
}

/// What a server has counted.
#[derive(Clone, Copy, Default)]
struct Server {
    last: Micros,
    open: u16,
}

/// What the doc index knows of a host's robots.txt.
#[derive(Clone, Copy, Default)]
struct Kept {
    /// When it expires; 0 when it was never stored.
    expires: Micros,
    /// Since when it is known.
    known: Micros,
    /// The process whose heart knows it. What the doc index has kept it hands over when it is asked, and a
    /// host that is only asked for the robots.txt of another has none.
    process: u32,
}

pub(crate) struct World {
    plan: Plan,
    random: Random,
    heart: Heart,
    now: Micros,
    /// When the event that is being handled came about.
    happened: Micros,
    events: BinaryHeap<Reverse<(Micros, u64, u32, What)>>,
    count: u64,
    /// Which process it is: what belongs to an earlier one does not happen any more.
    process: u32,
    died: Micros,
    draining: bool,
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    books: Books,
    request: Option<(usize, HashSet<u32>)>,
    hosts: Vec<Server>,
    ips: Vec<Server>,
    held: Vec<Micros>,
    /// When the doc index may offer a host again: it has asked for patience, or made way for others.
    put_off: Vec<Micros>,
    /// The process that was told of the patience.
    held_by: Vec<u32>,
    robots: Vec<Kept>,
    wake: Option<Micros>,
    ip_count: u32,
    tally: Tally,
}

/// What is told at the end.
#[derive(Default)]
struct Tally {
    steps: u64,
    orders: u64,
    robots: u64,
    refused: u64,
    chances: u64,
    recalls: u64,
    returned: u64,
    patience: u64,
    resolved: u64,
    requests: u64,
    restarts: u64,
    lost_orders: u64,
    stalls: u64,
    most_hosts: usize,
    most_out: usize,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let hosts = plan.hosts as usize;
        let ip_count = (plan.hosts / 10 * 3).max(1);
        let mut world = Self {
            random: Random::new(plan.seed),
            heart: Heart::new(plan.options.clone(), stamp(START)).unwrap(),
            now: START,
            happened: START,
            events: BinaryHeap::new(),
            count: 0,
            process: 0,
            died: 0,
            draining: false,
            flights: Vec::new(),
            free: Vec::new(),
            books: Books::new(plan.hosts, plan.urls),
            request: None,
            hosts: vec![Server::default(); hosts],
            ips: vec![Server::default(); ip_count as usize],
            held: vec![0; hosts],
            put_off: vec![0; hosts],
            held_by: vec![0; hosts],
            robots: vec![Kept::default(); hosts],
            wake: None,
            ip_count,
            tally: Tally::default(),
            plan,
        };
        world.plan_restart();
        world.plan_stall();
        world
    }

    fn at(&mut self, at: Micros, what: What) {
        self.count += 1;
        self.events
            .push(Reverse((at, self.count, self.process, what)));
    }

    fn stall(&mut self) {
        self.tally.stalls += 1;
        self.now += match self.random.below(20) {
            0 => self.random.below(3 * 3600 * SECOND),
            _ => self.random.below(3 * SECOND),
        };
        self.plan_stall();
    }

    fn plan_stall(&mut self) {
        let after = self.random.below(self.plan.restart_every / 2 * SECOND);
        self.at(self.now + after, What::Stall);
    }

    fn plan_restart(&mut self) {
        let after = self.random.below(2 * self.plan.restart_every * SECOND);
        self.at(self.now + after, What::Restart);
    }

    /// Runs until every URL is finished or the week is over.
    pub(crate) fn run(&mut self) {
        self.heart.tick(stamp(self.now));
        self.perform();
        while !self.books.is_over() && self.now < START + WEEK {
            let Some(Reverse((at, _, process, what))) = self.events.pop() else {
                panic!("URLs are stuck: {:?}", self.heart.census());
            };
            // After a stall what has happened meanwhile is heard of late; servers have their own watches.
            self.now = at.max(self.now);
            self.happened = at;
            if process != self.process && !self.outlives(at, what) {
                continue;
            }
            self.take(what);
            self.perform();
            self.check();
        }
    }

    /// Whether something of a process that is over happens all the same: what it has written arrives, but
    /// not for long.
    fn outlives(&self, at: Micros, what: What) -> bool {
        let written = matches!(what, What::Arrive { written, .. } if written <= self.died);
        written && at <= self.died + SECOND / 4
    }

    /// The ledger, and the limits on the whole.
    fn check(&mut self) {
        let census = self.heart.census();
        let held = (census.queued + census.leftover) as u64;
        assert_eq!(
            held,
            self.books.count(Place::Held),
            "URLs in the heart: {census:?}"
        );
        assert_eq!(
            self.books.counts.iter().sum::<u64>(),
            u64::from(self.plan.urls),
            "the ledger"
        );
        let out = self.flights.len() - self.free.len();
        // Whoever could go has gone, unless as many are out as may be.
        let full = census.orders >= self.plan.options.in_flight;
        assert!(
            census.ready <= census.slow || full || self.draining,
            "{census:?}"
        );
        assert!(census.orders == out && out <= self.plan.options.in_flight);
        assert!(census.hosts <= self.plan.options.queue_count + census.orders + 1000);
        self.tally.most_hosts = self.tally.most_hosts.max(census.hosts);
        self.tally.most_out = self.tally.most_out.max(out);
        self.tally.steps += 1;
    }

    fn take(&mut self, what: What) {
        let now = stamp(self.now);
        match what {
            What::Arrive { host, ip, gap, .. } => self.arrive(host, ip, gap),
            What::Sent(flight) => {
                if let Some(flight) = &self.flights[flight as usize] {
                    let at = stamp(flight.sent.unwrap());
                    self.heart.sent(flight.order.trans, at, now);
                }
            }
            What::Done(flight) => self.done(flight),
            What::Resolved(host) => self.resolved(host),
            What::Answer => self.answer(),
            What::Recall(host) => self.recall(host),
            // One that an earlier one has replaced is no tick.
            What::Tick(at) => {
                if self.wake == Some(at) {
                    self.wake = None;
                    self.heart.tick(now);
                }
            }
            What::Restart => self.restart(),
            What::Stall => self.stall(),
            What::Start => self.start(),
        }
        if self.draining && self.free.len() == self.flights.len() {
            self.draining = false;
            self.begin_process();
        }
    }

    fn restart(&mut self) {
        self.tally.restarts += 1;
        if self.random.percent(50) {
            for candidate in self.heart.drain(stamp(self.now)) {
                let host = web::unhash(candidate.key.host);
                self.books
                    .take_back(host, candidate.doc_id - 1, Place::Held);
            }
            self.draining = true;
        } else {
            for flight in self.flights.drain(..).flatten() {
                let host = web::host_number(flight.order.url().host());
                self.hosts[host as usize].open -= 1;
                self.ips[web::ip_number(flight.order.ip) as usize].open -= 1;
                self.tally.lost_orders += 1;
            }
            self.books.recover();
            self.begin_process();
        }
    }

    /// A new process starts where the last one ended.
    fn begin_process(&mut self) {
        self.flights.clear();
        self.free.clear();
        self.died = self.now;
        self.process += 1;
        self.request = None;
        self.wake = None;
        let options = UrlServerOptions {
            resumed: true,
            ..self.plan.options.clone()
        };
        let pause = self.random.below(SECOND);
        self.heart = Heart::new(options, stamp(self.now + pause)).unwrap();
        self.at(self.now + pause, What::Start);
        self.plan_restart();
        self.plan_stall();
    }

    fn start(&mut self) {
        self.heart.tick(stamp(self.now));
    }

    fn perform(&mut self) {
        for action in self.heart.take_actions() {
            match action {
                Action::Send(order) => self.fly(order),
                Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
                Action::Resolve { host } => {
                    let slow = if self.random.percent(1) {
                        5 * SECOND
                    } else {
                        30_000
                    };
                    let at = self.now + self.random.below(slow);
                    self.at(at, What::Resolved(web::host_number(&host)));
                }
                Action::Tell(notice) => self.hear(notice),
            }
        }
        if let Some(wake) = self.heart.next_wake() {
            let at = (wake.as_millis() * 1000).max(self.now) + self.random.below(1500);
            if self.wake.is_none_or(|planned| at < planned) {
                self.wake = Some(at);
                self.at(at, What::Tick(at));
            }
        }
    }

    fn hear(&mut self, notice: Notice) {
        match notice {
            Notice::Refuse {
                candidate,
                outcome,
                again,
            } => {
                let host = web::unhash(candidate.key.host);
                let url = candidate.doc_id - 1;
                let denied = web::is_private(url) && outcome.reason.contains("Disallow: /private");
                match temper(host) {
                    Temper::Gone => assert_eq!(outcome.class, OutcomeClass::FailedDns),
                    _ => assert!(
                        denied || outcome.reason.starts_with("robots.txt: "),
                        "{} refused: {outcome:?}",
                        candidate.url
                    ),
                }
                self.refuse(host, url, again);
            }
            Notice::Return { candidates, until } => {
                for candidate in candidates {
                    let host = web::unhash(candidate.key.host);
                    if let Some(until) = until {
                        let put_off = &mut self.put_off[host as usize];
                        *put_off = (*put_off).max(until.as_millis() * 1000);
                    }
                    self.books
                        .take_back(host, candidate.doc_id - 1, Place::Held);
                    self.tally.returned += 1;
                }
            }
            Notice::NeedCandidates { want, reject } => {
                assert!(self.request.is_none(), "one request at a time");
                assert!(!self.draining);
                self.tally.requests += 1;
                let reject = reject.into_iter().map(web::unhash).collect();
                self.request = Some((want, reject));
                let at = self.now + self.random.below(20_000);
                self.at(at, What::Answer);
            }
            Notice::Sitemaps { .. } | Notice::DelayCapped { .. } => {}
            Notice::RecallRobots { origin } => {
                let host = web::host_number(origin.trim_start_matches("http://"));
                let at = self.now + self.random.below(20_000);
                self.at(at, What::Recall(host));
            }
            Notice::StoreRobots { origin, record } => {
                let host = web::host_number(origin.trim_start_matches("http://"));
                self.robots[host as usize] = Kept {
                    expires: record.expires.as_millis() * 1000,
                    known: self.now,
                    process: self.process,
                };
            }
        }
    }

    /// A URL is refused. Whatever a robots.txt that cannot be had refuses gets another chance, within a day and
    /// a quarter; where that is not in vain, it is waited for here.
    fn refuse(&mut self, host: u32, url: u32, again: Option<Timestamp>) {
        self.tally.refused += 1;
        let in_vain = match temper(host) {
            Temper::Broken | Temper::Down => true,
            Temper::Moved => {
                let there = temper(web::robots_host(host));
                matches!(there, Temper::Gone | Temper::Down)
            }
            _ => false,
        };
        match again.map(|again| again.as_millis() * 1000) {
            Some(again) => {
                let wait = again.saturating_sub(self.now);
                assert!((0..DAY + DAY / 4).contains(&wait), "{wait}");
                if !in_vain {
                    self.tally.chances += 1;
                    self.books.refuse_for_now(host, url, again);
                    return;
                }
            }
            None => assert!(temper(host) == Temper::Gone || web::is_private(url)),
        }
        self.books.change(url, Place::Held, Place::Finished);
    }

    /// The doc index gives back what it has kept of a host's robots.txt.
    fn recall(&mut self, host: u32) {
        self.tally.recalls += 1;
        let found = &mut self.robots[host as usize];
        let kept = (found.expires > 0).then(|| RobotsRecord {
            fetched: stamp(found.known),
            expires: stamp(found.expires),
            status: 200,
            body: match has_rules(host) {
                true => web::robots_txt(host).into_bytes(),
                false => Vec::new(),
            },
        });
        found.process = self.process;
        let origin = format!("http://h{host}");
        self.heart.known_robots(&origin, kept, stamp(self.now));
    }

    /// The doc index hands out URLs.
    fn answer(&mut self) {
        let (want, reject) = self.request.take().unwrap();
        let per_host = 1 + self.random.below(self.plan.options.queue_len as u64) as usize;
        let given = self
            .books
            .give(want, per_host, &reject, &self.put_off, self.now);
        self.heart.candidates(given, stamp(self.now));
    }

    fn resolved(&mut self, host: u32) {
        self.tally.resolved += 1;
        let found = if temper(host) == Temper::Gone {
            Err(Outcome::plain(OutcomeClass::FailedDns))
        } else {
            Ok(Resolved {
                addresses: web::addresses(host, self.ip_count, self.now),
                ttl: Duration::from_secs(self.random.below(7200)),
            })
        };
        self.heart
            .resolved(&format!("h{host}"), found, stamp(self.now));
    }

    /// The spider takes an order: connects, writes, reads.
    fn fly(&mut self, order: Order) {
        assert!(!self.draining, "an order after the drain");
        let host = web::host_number(order.url().host());
        let ip = web::ip_number(order.ip);
        // A host whose robots.txt moved here does not know what a dead process was told.
        let foreign = order.url().path().starts_with("/moved");
        if !foreign || self.held_by[host as usize] == self.process {
            assert!(
                self.now >= self.held[host as usize],
                "h{host} asked for patience"
            );
        }
        if let Some(page) = order.page() {
            let url = page.doc_id - 1;
            self.books.change(url, Place::Held, Place::Out);
            assert!(
                self.robots[host as usize].expires > self.now - SECOND,
                "page of h{host} without robots.txt"
            );
            let rules = has_rules(host);
            assert!(!(rules && web::is_private(url)), "{}", order.url());
            self.tally.orders += 1;
        } else {
            self.tally.robots += 1;
        }
        let options = &self.plan.options;
        for (server, window) in [
            (&mut self.hosts[host as usize], options.host_concurrent),
            (&mut self.ips[ip as usize], options.ip_concurrent),
        ] {
            server.open += 1;
            assert!(server.open <= window, "window of {} at {ip}", order.url());
        }
        self.launch(order, host, ip);
    }

    fn launch(&mut self, order: Order, host: u32, ip: u32) {
        let options = &self.plan.options;
        let gap = |rate: f64| if rate > 0.0 { (1e6 / rate) as u64 } else { 0 };
        // The way to the server takes up to a twentieth of the shorter of the two delays. With one request
        // out at a time it may take as long as it likes, for the answer proves that it is over.
        let mut jitter = gap(options.host_per_sec).min(gap(options.ip_per_sec)) / 20;
        if options.host_concurrent.max(options.ip_concurrent) == 1 && self.random.percent(5) {
            jitter = 3 * SECOND;
        }
        // A Crawl-delay binds the orders that are given after it is known.
        let kept = self.robots[host as usize];
        let wanted = if kept.expires > self.now && kept.process == self.process {
            web::crawl_delay(host).min(300) * SECOND
        } else {
            0
        };
        let gap = gap(options.host_per_sec).max(wanted);
        let announce = order.announce;
        let begin = self.now + self.random.below(5000);
        let mut flight = Flight {
            order,
            sent: None,
            first_byte: None,
            ended: begin + self.random.below(200_000),
        };
        let temper = temper(host);
        let name = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        let refused = temper == Temper::Down || self.random.percent(1);
        if !refused {
            let sent = begin + self.random.below(40_000);
            let arrival = sent + self.random.below(jitter + 1);
            let latency = match temper {
                Temper::Slow => 20 * SECOND,
                _ if self.random.percent(2) => 5 * SECOND,
                _ => 300_000,
            };
            let first_byte = arrival + self.random.below(latency);
            flight.sent = Some(sent);
            flight.ended = first_byte + self.random.below(50_000);
            let silent = self
                .random
                .percent(if temper == Temper::Flaky { 50 } else { 2 });
            flight.first_byte = (!silent).then_some(first_byte);
            self.at(
                arrival,
                What::Arrive {
                    host,
                    ip,
                    written: sent,
                    gap,
                },
            );
            // Not every announcement arrives; the end of the order then stands for it.
            if announce && !self.random.percent(1) {
                let at = sent + self.random.below(3000);
                self.at(at, What::Sent(name));
            }
        }
        let at = flight.ended + self.random.below(3000);
        self.flights[name as usize] = Some(flight);
        self.at(at, What::Done(name));
    }

    /// A request reaches its server, which looks at its watch.
    fn arrive(&mut self, host: u32, ip: u32, gap: Micros) {
        let rate = self.plan.options.ip_per_sec;
        let ip_gap = if rate > 0.0 { (1e6 / rate) as u64 } else { 0 };
        for (what, server, gap) in [
            ("host", &mut self.hosts[host as usize], gap),
            ("address", &mut self.ips[ip as usize], ip_gap),
        ] {
            let since = self.happened - server.last;
            assert!(
                since >= gap,
                "{what} of h{host} at {ip}: {since} us apart instead of {gap}"
            );
            server.last = self.happened;
        }
    }

    fn done(&mut self, name: u32) {
        let flight = self.flights[name as usize].take().unwrap();
        self.free.push(name);
        let now = stamp(self.now);
        let host = web::host_number(flight.order.url().host());
        self.hosts[host as usize].open -= 1;
        self.ips[web::ip_number(flight.order.ip) as usize].open -= 1;
        let answered = flight.first_byte.is_some();
        let page = flight.order.page();
        let done = Done {
            sent: flight.sent.map(stamp),
            first_byte: flight.first_byte.map(stamp),
            ended: stamp(flight.ended),
            connect_failed: flight.sent.is_none(),
            failed: flight.first_byte.is_none(),
            robots: page
                .is_none()
                .then(|| robots_answer(&flight.order, answered, self.happened)),
        };
        if let Some(page) = page {
            let url = page.doc_id - 1;
            let patience = answered && self.random.below(200) == 0;
            if patience {
                self.hold(host);
            }
            // Some that failed are tried again.
            if patience || (!answered && self.random.percent(30)) {
                self.books.take_back(host, url, Place::Out);
            } else {
                self.books.change(url, Place::Out, Place::Finished);
            }
        }
        self.heart.done(flight.order.trans, done, now);
    }

    /// The host asks for patience: mostly little, sometimes an absurd lot.
    fn hold(&mut self, host: u32) {
        self.tally.patience += 1;
        let seconds = match self.random.below(100) {
            0 => 1_000_000_000,
            1..=9 => 300 + self.random.below(3600),
            _ => self.random.below(60),
        };
        let until = self.now + seconds * SECOND;
        let name = format!("h{host}");
        self.heart.hold(&name, stamp(until), stamp(self.now));
        let held = &mut self.held[host as usize];
        // The longest patience is a day, and what is kept is whole milliseconds.
        let until = until.min(self.now + DAY) / 1000 * 1000;
        *held = (*held).max(until - until.min(1000));
        let put_off = &mut self.put_off[host as usize];
        *put_off = (*put_off).max(*held);
        self.held_by[host as usize] = self.process;
    }

    pub(crate) fn summary(&self, took: Duration) -> String {
        let tally = &self.tally;
        let days = (self.now - START) as f64 / DAY as f64;
        format!(
            "{days:.2} days in {:.1} s: {} pages and {} robots.txt asked for, {} refused, {} of them for now, {} given back, \
             {} times patience, {} names resolved, {} requests to the doc index and {} for what it has kept, {} restarts with {} orders \
             lost, {} stalls, at most {} hosts and {} orders at once; {} of {} URLs finished; {} events, each checked",
            took.as_secs_f64(),
            tally.orders,
            tally.robots,
            tally.refused,
            tally.chances,
            tally.returned,
            tally.patience,
            tally.resolved,
            tally.requests,
            tally.recalls,
            tally.restarts,
            tally.lost_orders,
            tally.stalls,
            tally.most_hosts,
            tally.most_out,
            self.books.count(Place::Finished),
            self.plan.urls,
            tally.steps
        )
    }
}

fn has_rules(host: u32) -> bool {
    matches!(temper(host), Temper::Rules | Temper::Moved | Temper::Outage)
}

fn robots_answer(order: &Order, answered: bool, now: Micros) -> RobotsAnswer {
    if !answered {
        return RobotsAnswer::unreachable(&Outcome::plain(OutcomeClass::FailedTimeout));
    }
    let asked = web::host_number(order.url().host());
    // The robots.txt of another host is at /moved/ and its number.
    let (host, moved) = match order.url().path().strip_prefix("/moved/") {
        Some(host) => (host.parse().unwrap(), true),
        None => (asked, false),
    };
    match temper(host) {
        Temper::Moved if !moved => RobotsAnswer::Moved {
            status: 301,
            location: CrawlUrl::from_canonical(&format!(
                "http://h{}/moved/{host}",
                web::robots_host(host)
            ))
            .ok(),
        },
        Temper::Outage if now < START + web::outage(host) => unavailable_for_now(),
        Temper::Rules | Temper::Moved | Temper::Outage => RobotsAnswer::Fetched {
            status: 200,
            body: web::robots_txt(host).into_bytes(),
            expires: None,
        },
        Temper::Broken => unavailable_for_now(),
        _ => RobotsAnswer::Unavailable { status: 404 },
    }
}

fn unavailable_for_now() -> RobotsAnswer {
    RobotsAnswer::Unreachable {
        outcome: Outcome::because(OutcomeClass::DeniedRobots, "robots.txt: status 503"),
        wait: None,
    }
}
