//! A crawl in virtual time: a doc index, a resolver, a spider and servers made of random numbers, and
//! every promise of the URL server checked as the servers would see it. A failing seed is printed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, LinkKind, Order, Outcome, OutcomeClass, Purpose, RobotsRecord,
    Timestamp, TransId,
};
use orbweaver_testkit::Random;
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, RobotsAnswer, UrlServerOptions};

struct World {
    seed: u64,
    hosts: usize,
    ips: usize,
    urls: usize,
    options: UrlServerOptions,
}

/// Time in the simulation is in microseconds, so that what the heart loses by milliseconds shows.
type Micros = u64;

const START: Micros = 1_000_000_000;

fn stamp(at: Micros) -> Timestamp {
    Timestamp::from_millis(at / 1000)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrive(u64),
    Sent(u64),
    Done(u64),
    Resolved(String),
    Answer,
    Recall(String),
    Tick(Micros),
}

/// An order on its way.
struct Flight {
    order: Order,
    given: Micros,
    sent: Option<Micros>,
    first_byte: Option<Micros>,
    ended: Micros,
}

/// What a server has counted.
#[derive(Default)]
struct Server {
    open: u32,
    last: Option<Micros>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Temper {
    Rules,
    Missing,
    Broken,
    Moved,
    Gone,
}

struct Sim {
    world: World,
    random: Random,
    heart: Heart,
    now: Micros,
    events: BinaryHeap<Reverse<(Micros, u64, What)>>,
    count: u64,
    flights: HashMap<u64, Flight>,
    old: Vec<TransId>,
    /// The doc index: what is queued, by host, and the open request.
    index: BTreeMap<u64, VecDeque<Candidate>>,
    request: Option<(usize, Vec<u64>)>,
    claimed: HashSet<String>,
    finished: HashSet<String>,
    hosts: HashMap<String, Server>,
    ips: HashMap<IpAddr, Server>,
    robots_known: HashMap<String, RobotsRecord>,
    crawl_delay: HashMap<String, (Micros, Micros)>,
    held: HashMap<String, Micros>,
    requests: u64,
    wake: Option<Micros>,
}

fn temper(host: &str) -> Temper {
    let number: u64 = host.trim_start_matches('h').parse().unwrap_or(0);
    match number % 20 {
        0..=9 => Temper::Rules,
        10..=15 => Temper::Missing,
        16 => Temper::Broken,
        17 | 18 => Temper::Moved,
        _ => Temper::Gone,
    }
}

impl Sim {
    fn new(world: World) -> Self {
        let mut index = BTreeMap::<u64, VecDeque<Candidate>>::new();
        for n in 0..world.urls {
            let host = n % world.hosts;
            let port = if n % 7 == 0 { ":8080" } else { "" };
            let path = if n % 11 == 0 { "private" } else { "p" };
            let url =
                CrawlUrl::from_canonical(&format!("http://h{host}{port}/{path}/{n}")).unwrap();
            let key = url.key(KeySeed(3));
            index.entry(key.host).or_default().push_back(Candidate {
                key,
                doc_id: n as u32 + 1,
                url,
                kind: if n % 13 == 0 {
                    LinkKind::Redirect
                } else {
                    LinkKind::A
                },
                depth: 0,
                attempts: 0,
                chain: Vec::new(),
                revisit: None,
            });
        }
        Self {
            random: Random::new(world.seed),
            heart: Heart::new(world.options.clone(), stamp(START)).unwrap(),
            now: START,
            events: BinaryHeap::new(),
            count: 0,
            flights: HashMap::new(),
            old: Vec::new(),
            index,
            request: None,
            claimed: HashSet::new(),
            finished: HashSet::new(),
            hosts: HashMap::new(),
            ips: HashMap::new(),
            robots_known: HashMap::new(),
            crawl_delay: HashMap::new(),
            held: HashMap::new(),
            requests: 0,
            wake: None,
            world,
        }
    }

    fn at(&mut self, at: Micros, what: What) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, what)));
    }

    fn run(&mut self) {
        self.heart.tick(stamp(self.now));
        self.perform();
        while self.finished.len() < self.world.urls {
            let Some(Reverse((at, _, what))) = self.events.pop() else {
                let left = self.world.urls - self.finished.len();
                panic!("{left} URLs are stuck: {:?}", self.heart.census());
            };
            self.now = at.max(self.now);
            assert!(
                self.now < START + 20_000_000_000,
                "it never ends: {:?}",
                self.heart.census()
            );
            self.take(what);
            self.perform();
        }
        let census = self.heart.census();
        assert_eq!((census.queued, census.leftover), (0, 0));
    }

    fn take(&mut self, what: What) {
        let now = stamp(self.now);
        match what {
            What::Arrive(flight) => self.arrive(flight),
            What::Sent(flight) => {
                if let Some(flight) = self.flights.get(&flight) {
                    let at = stamp(flight.sent.unwrap());
                    self.heart.sent(flight.order.trans, at, now);
                }
            }
            What::Done(flight) => self.done(flight),
            What::Resolved(host) => {
                let found = if temper(&host) == Temper::Gone {
                    Err(Outcome::plain(OutcomeClass::FailedDns))
                } else {
                    let number: usize = host.trim_start_matches('h').parse().unwrap_or(0);
                    let [_, b, c, d] = ((number % self.world.ips) as u32 + 1).to_be_bytes();
                    Ok(Resolved {
                        addresses: vec![[127, b, c, d].into()],
                        ttl: Duration::from_secs(self.random.below(300)),
                    })
                };
                self.heart.resolved(&host, found, now);
            }
            What::Answer => self.answer(),
            What::Recall(origin) => {
                let kept = self.robots_known.get(&origin).cloned();
                self.heart.known_robots(&origin, kept, now);
            }
            // One that an earlier one has replaced is no tick.
            What::Tick(at) => {
                if self.wake == Some(at) {
                    self.wake = None;
                    self.heart.tick(now);
                }
            }
        }
        // Late and foreign answers are harmless.
        if self.random.percent(5) && !self.old.is_empty() {
            let pick = self.random.below(self.old.len() as u64) as usize;
            let done = Done {
                sent: None,
                first_byte: None,
                ended: now,
                connect_failed: true,
                failed: true,
                robots: None,
            };
            self.heart.sent(self.old[pick], now, now);
            self.heart.done(self.old[pick], done, now);
        }
    }

    fn perform(&mut self) {
        for action in self.heart.take_actions() {
            match action {
                Action::Send(order) => self.fly(order),
                Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
                Action::Resolve { host } => {
                    let at = self.now + self.random.below(30_000);
                    self.at(at, What::Resolved(host.to_string()));
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
                candidate, outcome, ..
            } => {
                let host = candidate.url.host();
                match temper(host) {
                    Temper::Gone => assert_eq!(outcome.class, OutcomeClass::FailedDns),
                    Temper::Broken => assert!(outcome.reason.starts_with("robots.txt: ")),
                    _ => assert!(
                        candidate.url.path().starts_with("/private")
                            && outcome.reason.contains("Disallow: /private")
                            || outcome.reason.starts_with("robots.txt: "),
                        "{} refused: {outcome:?}",
                        candidate.url
                    ),
                }
                self.finish(&candidate);
            }
            Notice::Return { candidates, until } => {
                assert!(until.is_some());
                for candidate in candidates {
                    assert!(self.claimed.remove(candidate.url.as_str()));
                    let queue = self.index.entry(candidate.key.host).or_default();
                    queue.push_back(candidate);
                }
            }
            Notice::NeedCandidates { want, reject } => {
                assert!(self.request.is_none(), "one request at a time");
                self.request = Some((want, reject));
                let at = self.now + self.random.below(20_000);
                self.at(at, What::Answer);
            }
            Notice::Sitemaps { .. } | Notice::DelayCapped { .. } => {}
            Notice::RecallRobots { origin } => {
                let at = self.now + self.random.below(20_000);
                self.at(at, What::Recall(origin));
            }
            Notice::StoreRobots { origin, record } => {
                assert!(record.expires > record.fetched);
                self.robots_known.insert(origin, record);
            }
        }
    }

    fn answer(&mut self) {
        let (want, reject) = self.request.take().unwrap();
        let reject: HashSet<u64> = reject.into_iter().collect();
        let share = 1 + self.random.below(40) as usize;
        let mut given = Vec::new();
        let from = self.random.any();
        let hosts: Vec<u64> = self
            .index
            .range(from..)
            .chain(self.index.range(..from))
            .map(|(host, _)| *host)
            .filter(|host| !reject.contains(host))
            .collect();
        for host in hosts {
            let queue = self.index.get_mut(&host).unwrap();
            while given.len() < want && !queue.is_empty() && given.len() % share != share - 1 {
                given.extend(queue.pop_front());
            }
            if given.len() < want {
                given.extend(queue.pop_front());
            }
            if queue.is_empty() {
                self.index.remove(&host);
            }
        }
        for candidate in &given {
            assert!(!self.finished.contains(candidate.url.as_str()));
            assert!(self.claimed.insert(candidate.url.to_string()));
        }
        self.heart.candidates(given, stamp(self.now));
    }

    /// The spider takes an order: connects, writes, reads.
    fn fly(&mut self, order: Order) {
        let host = order.url().host().to_owned();
        let origin = order.url().origin().to_owned();
        match order.purpose() {
            Purpose::Page => {
                assert!(self.claimed.contains(order.url().as_str()));
                assert!(
                    self.robots_known.contains_key(&origin),
                    "page before robots.txt"
                );
                let denied = temper(&host) == Temper::Rules || temper(&host) == Temper::Moved;
                assert!(!(denied && order.url().path().starts_with("/private")));
            }
            Purpose::Robots => assert!(order.page().is_none()),
        }
        if let Some(until) = self.held.get(&host) {
            assert!(self.now >= *until, "{host} asked for patience");
        }
        self.requests += 1;
        let options = &self.world.options;
        for (open, window) in [
            (
                &mut self.hosts.entry(host).or_default().open,
                options.host_concurrent,
            ),
            (
                &mut self.ips.entry(order.ip).or_default().open,
                options.ip_concurrent,
            ),
        ] {
            *open += 1;
            assert!(*open <= u32::from(window), "window of {}", order.url());
        }
        // The way to the server takes up to a twentieth of the shorter of the two delays.
        let jitter = [options.host_per_sec, options.ip_per_sec]
            .into_iter()
            .filter(|rate| *rate > 0.0)
            .fold(50_000.0, |least: f64, rate| least.min(50_000.0 / rate));
        let begin = self.now + self.random.below(5000);
        let mut flight = Flight {
            order,
            given: self.now,
            sent: None,
            first_byte: None,
            ended: begin + self.random.below(200_000),
        };
        let name = self.count;
        if !self.random.percent(3) {
            let sent = begin + self.random.below(40_000);
            let arrival = sent + self.random.below(jitter as u64 + 1);
            let latency = if self.random.percent(5) {
                3_000_000
            } else {
                150_000
            };
            let first_byte = arrival + self.random.below(latency);
            flight.sent = Some(sent);
            flight.ended = first_byte + self.random.below(50_000);
            flight.first_byte = (!self.random.percent(4)).then_some(first_byte);
            self.at(arrival, What::Arrive(name));
            // Not every announcement arrives; the end of the order then stands for it.
            if flight.order.announce && !self.random.percent(2) {
                let at = sent + self.random.below(3000);
                self.at(at, What::Sent(name));
            }
        }
        let at = flight.ended + self.random.below(3000);
        self.flights.insert(name, flight);
        self.at(at, What::Done(name));
        self.count += 1;
    }

    /// A request reaches its server, which looks at its watch.
    fn arrive(&mut self, name: u64) {
        // A fetch can be over before its request is seen only when nobody waited for an answer.
        let Some(flight) = self.flights.get(&name) else {
            return;
        };
        let (host, ip) = (flight.order.url().host().to_owned(), flight.order.ip);
        let gap = |rate: f64| if rate > 0.0 { (1e6 / rate) as u64 } else { 0 };
        // A Crawl-delay binds the orders that are given after it is known. Where hosts are forgotten for
        // want of memory, it has to be learnt again.
        let forgetful = self.world.options.rest_bytes < 1 << 20;
        let wanted = match self.crawl_delay.get(&host) {
            Some((known, delay)) if *known <= flight.given && !forgetful => *delay,
            _ => 0,
        };
        let options = &self.world.options;
        for (what, last, gap) in [
            (
                "host",
                &mut self.hosts.entry(host.clone()).or_default().last,
                gap(options.host_per_sec).max(wanted),
            ),
            (
                "ip",
                &mut self.ips.entry(ip).or_default().last,
                gap(options.ip_per_sec),
            ),
        ] {
            if let Some(last) = last.replace(self.now) {
                assert!(
                    self.now - last >= gap,
                    "{what} {host} {ip}: {} us apart instead of {gap}",
                    self.now - last
                );
            }
        }
    }

    fn done(&mut self, name: u64) {
        let flight = self.flights.remove(&name).unwrap();
        let host = flight.order.url().host().to_owned();
        self.hosts.get_mut(&host).unwrap().open -= 1;
        self.ips.get_mut(&flight.order.ip).unwrap().open -= 1;
        let answered = flight.first_byte.is_some();
        let robots = (flight.order.purpose() == Purpose::Robots)
            .then(|| self.robots_answer(&flight.order, answered));
        let done = Done {
            sent: flight.sent.map(stamp),
            first_byte: flight.first_byte.map(stamp),
            ended: stamp(flight.ended),
            connect_failed: flight.sent.is_none(),
            failed: flight.first_byte.is_none(),
            robots,
        };
        let patience =
            self.random.percent(1) && flight.order.purpose() == Purpose::Page && answered;
        if patience {
            let seconds = if self.random.percent(20) {
                400
            } else {
                self.random.below(60)
            };
            let until = self.now + seconds * 1_000_000;
            self.heart.hold(&host, stamp(until), stamp(self.now));
            let held = self.held.entry(host).or_default();
            *held = (*held).max(until - until % 1000);
        }
        if let Some(candidate) = flight.order.page().cloned() {
            if patience {
                assert!(self.claimed.remove(candidate.url.as_str()));
                let queue = self.index.entry(candidate.key.host).or_default();
                queue.push_back(candidate);
            } else {
                self.finish(&candidate);
            }
        }
        self.heart.done(flight.order.trans, done, stamp(self.now));
        self.old.push(flight.order.trans);
        if self.old.len() > 1000 {
            self.old.remove(0);
        }
    }

    fn robots_answer(&mut self, order: &Order, answered: bool) -> RobotsAnswer {
        if !answered {
            return RobotsAnswer::unreachable(&Outcome::plain(OutcomeClass::FailedTimeout));
        }
        let host = order.url().host();
        match temper(host) {
            Temper::Moved if order.url().path() == "/robots.txt" => {
                // To another host, which has the same rules for this one.
                let number: u64 = host.trim_start_matches('h').parse().unwrap();
                let there = number - number % 20;
                let location = CrawlUrl::from_canonical(&format!("http://h{there}/moved")).unwrap();
                RobotsAnswer::Moved {
                    status: 301,
                    location: Some(location),
                }
            }
            Temper::Rules | Temper::Moved => {
                let slow = host.ends_with('3');
                let delay = if slow { "Crawl-delay: 2\n" } else { "" };
                if slow && order.url().path() == "/robots.txt" {
                    self.crawl_delay
                        .insert(host.to_owned(), (self.now, 2_000_000));
                }
                RobotsAnswer::Fetched {
                    status: 200,
                    body: format!("User-agent: *\nDisallow: /private\n{delay}").into_bytes(),
                    expires: None,
                }
            }
            Temper::Missing => RobotsAnswer::Unavailable { status: 404 },
            Temper::Broken => RobotsAnswer::Unreachable {
                outcome: Outcome::because(OutcomeClass::DeniedRobots, "robots.txt: status 503"),
                wait: None,
            },
            Temper::Gone => panic!("{host} has no address"),
        }
    }

    fn finish(&mut self, candidate: &Candidate) {
        assert!(
            self.claimed.remove(candidate.url.as_str()),
            "{}",
            candidate.url
        );
        assert!(
            self.finished.insert(candidate.url.to_string()),
            "{} twice",
            candidate.url
        );
    }
}

fn polite() -> UrlServerOptions {
    UrlServerOptions::default()
}

fn simulate(seed: u64, hosts: usize, ips: usize, urls: usize, options: UrlServerOptions) {
    println!(
        "seed {seed}: {hosts} hosts on {ips} addresses, {urls} URLs, {} queues of {}, per host {} \
         at {}/s, per address {} at {}/s, {} in flight",
        options.queue_count,
        options.queue_len,
        options.host_concurrent,
        options.host_per_sec,
        options.ip_concurrent,
        options.ip_per_sec,
        options.in_flight
    );
    let mut sim = Sim::new(World {
        seed,
        hosts,
        ips,
        urls,
        options,
    });
    sim.run();
    println!(
        "{} requests in {} s",
        sim.requests,
        (sim.now - START) / 1_000_000
    );
    assert!(sim.requests > urls as u64 / 2);
}

#[test]
fn two_thousand_hosts_on_two_hundred_addresses() {
    simulate(1, 2000, 200, 50_000, polite());
}

#[test]
fn few_queues_for_many_hosts() {
    let options = UrlServerOptions {
        queue_count: 37,
        queue_len: 5,
        in_flight: 16,
        resumed: true,
        ..polite()
    };
    simulate(2, 500, 90, 6000, options);
}

#[test]
fn wide_windows() {
    let options = UrlServerOptions {
        host_concurrent: 3,
        host_per_sec: 5.0,
        ip_concurrent: 4,
        ip_per_sec: 8.0,
        ..polite()
    };
    simulate(3, 400, 60, 10_000, options);
}

#[test]
fn no_gaps_but_windows() {
    let options = UrlServerOptions {
        host_concurrent: 2,
        host_per_sec: 0.0,
        ip_concurrent: 3,
        ip_per_sec: 0.0,
        in_flight: 20,
        queue_count: 50,
        ..polite()
    };
    simulate(4, 300, 40, 10_000, options);
}

#[test]
fn one_limit_without_the_other() {
    let by_host = UrlServerOptions {
        ip_per_sec: 0.0,
        ip_concurrent: 50,
        ..polite()
    };
    simulate(5, 200, 7, 3000, by_host);
    let by_ip = UrlServerOptions {
        host_per_sec: 0.0,
        host_concurrent: 4,
        ..polite()
    };
    simulate(6, 200, 7, 1000, by_ip);
}

#[test]
fn many_small_worlds() {
    for seed in 100..200 {
        let mut random = Random::new(seed);
        let options = UrlServerOptions {
            queue_count: 1 + random.below(6) as usize,
            queue_len: 1 + random.below(6) as usize,
            host_concurrent: 1 + random.below(3) as u16,
            ip_concurrent: 1 + random.below(3) as u16,
            host_per_sec: random.below(4) as f64,
            ip_per_sec: random.below(4) as f64,
            in_flight: 1 + random.below(5) as usize,
            rest_bytes: if random.percent(50) { 2000 } else { 1 << 20 },
            resumed: random.percent(50),
            ..polite()
        };
        let hosts = 1 + random.below(40) as usize;
        simulate(seed, hosts, 1 + hosts / 4, 400, options);
    }
}
