//! What an order costs the heart, with few hosts and with many. By hand:
//! `cargo test --release -p orbweaver-urlserver --test it cost -- --ignored --nocapture`.
//!
//! The same load goes over ever more hosts: a thousand orders a second, three hosts to an address, random
//! answering times, so that the hosts come up in no order that memory could have been laid out in. Only
//! the calls of the heart are measured, and the making of URLs is not. Nothing is asserted about time,
//! which is the machine's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, LinkKind, RobotsRecord, Timestamp, TransId, UrlKey,
};
use orbweaver_testkit::Random;
use orbweaver_urlserver::{Action, Done, Heart, Resolved, UrlServerOptions};

/// The allocator of the program, for what the heart allocates belongs to its cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Orders in one round.
const ORDERS: usize = 50_000;
/// Rounds of each size.
const ROUNDS: usize = 20;
/// URLs that a host gets at once, and again when it has half of them left.
const PAGES: usize = 4;
/// Messages are handed in at every so many milliseconds, so that reading the watch costs nothing.
const STEP: u64 = 10;

enum Message {
    Sent(TransId, Timestamp),
    Done(TransId, Timestamp),
    Give(Vec<Candidate>),
    Resolved(std::sync::Arc<str>, Resolved),
}

struct Bench {
    heart: Heart,
    now: u64,
    random: Random,
    /// (when, whether it is the end, order, when it was written)
    events: BinaryHeap<Reverse<(u64, bool, TransId, u64)>>,
    messages: Vec<Message>,
    held: Vec<u8>,
    keys: Vec<u64>,
    pages: u32,
    orders: usize,
    /// For each step what it took and how many orders it made.
    steps: Vec<(u128, usize)>,
}

/// The time that this thread has had the processor, in nanoseconds: others may use the machine.
fn processor() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u128 * 1_000_000_000 + time.tv_nsec as u128
}

fn name(host: usize) -> String {
    format!("h{host}")
}

impl Bench {
    fn new(hosts: usize) -> Self {
        // A thousand hosts at one request a second, a million at one in a thousand seconds.
        let rate = 1000.0 / hosts as f64;
        let options = UrlServerOptions {
            queue_count: hosts,
            queue_len: PAGES * 2,
            host_per_sec: rate,
            ip_per_sec: rate * 3.0,
            rest_bytes: usize::MAX,
            ..UrlServerOptions::default()
        };
        let now = 1_000_000_000;
        Self {
            heart: Heart::new(options, Timestamp::from_millis(now)).unwrap(),
            now,
            random: Random::new(1),
            events: BinaryHeap::new(),
            messages: Vec::new(),
            held: vec![0; hosts],
            keys: (0..hosts)
                .map(|host| KeySeed(1).host(&name(host)))
                .collect(),
            pages: 0,
            orders: 0,
            steps: Vec::new(),
        }
    }

    fn give(&mut self, host: usize) {
        let pages = (0..PAGES).map(|_| {
            self.pages += 1;
            let url = format!("http://h{host}/some/page/{}", self.pages);
            Candidate {
                key: UrlKey {
                    host: self.keys[host],
                    url: u64::from(self.pages),
                },
                doc_id: self.pages,
                url: CrawlUrl::from_canonical(&url).unwrap(),
                kind: LinkKind::A,
                depth: 0,
                attempts: 0,
                chain: Vec::new(),
                revisit: None,
            }
        });
        let pages = pages.collect();
        self.held[host] += PAGES as u8;
        self.messages.push(Message::Give(pages));
    }

    /// Hosts come in at random, so that neighbours in memory are not neighbours in time.
    fn populate(&mut self, hosts: usize) {
        let mut order: Vec<usize> = (0..hosts).collect();
        self.random.shuffle(&mut order);
        for host in order {
            let now = Timestamp::from_millis(self.now);
            let record = RobotsRecord {
                fetched: now,
                expires: now.after(Duration::from_secs(80_000)),
                status: 404,
                body: Vec::new(),
            };
            self.heart
                .known_robots(&format!("http://h{host}"), Some(record), now);
            self.give(host);
            if host % 16 == 0 {
                self.step();
            }
        }
    }

    /// Hands in what has happened, and takes what is to happen.
    fn step(&mut self) {
        let now = Timestamp::from_millis(self.now);
        let messages = std::mem::take(&mut self.messages);
        let start = processor();
        for message in messages {
            match message {
                Message::Sent(trans, at) => self.heart.sent(trans, at, now),
                Message::Done(trans, sent) => {
                    let done = Done {
                        sent: Some(sent),
                        first_byte: Some(sent.after(Duration::from_millis(10))),
                        ended: now,
                        connect_failed: false,
                        failed: false,
                        robots: None,
                    };
                    self.heart.done(trans, done, now);
                }
                Message::Give(pages) => self.heart.candidates(pages, now),
                Message::Resolved(host, found) => self.heart.resolved(&host, Ok(found), now),
            }
        }
        self.heart.tick(now);
        let actions = self.heart.take_actions();
        let took = processor() - start;
        let orders = |action: &&Action| matches!(action, Action::Send(_));
        let orders = actions.iter().filter(orders).count();
        self.steps.push((took, orders));
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send(order) => {
                self.orders += 1;
                let sent = self.now + self.random.below(20);
                let ended = sent + 10 + self.random.below(400);
                self.events.push(Reverse((sent, false, order.trans, sent)));
                self.events.push(Reverse((ended, true, order.trans, sent)));
                let host: usize = order.url().host()[1..].parse().unwrap();
                self.held[host] -= 1;
                if usize::from(self.held[host]) <= PAGES / 2 {
                    self.give(host);
                }
            }
            Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
            Action::Resolve { host } => {
                let number: u32 = host[1..].parse().unwrap();
                let found = Resolved {
                    addresses: vec![Ipv4Addr::from(0x0a00_0000 + number / 3).into()],
                    ttl: Duration::from_secs(86_400),
                };
                self.messages.push(Message::Resolved(host, found));
            }
            Action::Tell(_) => {}
        }
    }

    /// Runs until `orders` more have gone out.
    fn run(&mut self, orders: usize) {
        let end = self.orders + orders;
        while self.orders < end {
            self.now += STEP;
            while let Some(Reverse((at, over, trans, sent))) = self.events.peek().copied()
                && at <= self.now
            {
                self.events.pop();
                let sent = Timestamp::from_millis(sent);
                self.messages.push(if over {
                    Message::Done(trans, sent)
                } else {
                    Message::Sent(trans, sent)
                });
            }
            self.step();
        }
    }

    /// Nanoseconds per order in one round.
    fn round(&mut self) -> u128 {
        self.steps.clear();
        self.run(ORDERS);
        // The steps in which something else emptied the caches took longest. They go, and so do as many that
        // were over too soon.
        self.steps.sort_unstable();
        let few = self.steps.len() / 20;
        let steps = &self.steps[few..self.steps.len() - few];
        let took: u128 = steps.iter().map(|(took, _)| took).sum();
        let orders: usize = steps.iter().map(|(_, orders)| orders).sum();
        took / orders as u128
    }
}

#[test]
#[ignore = "takes a minute or two and two gigabytes, and only prints figures"]
fn an_order_costs_the_same_with_a_million_hosts() {
    let sizes = [1000, 10_000, 100_000, 1_000_000];
    let mut benches = sizes.map(|hosts| {
        let mut bench = Bench::new(hosts);
        bench.populate(hosts);
        // Every host has its slot, its address and a few orders behind it.
        bench.run(3 * hosts);
        bench
    });
    // In turn, so that whatever else the machine does meets all sizes alike.
    let mut rounds = sizes.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (bench, costs) in benches.iter_mut().zip(&mut rounds) {
            costs.push(bench.round());
        }
    }
    let mut few = None;
    for (hosts, mut costs) in sizes.into_iter().zip(rounds) {
        costs.sort_unstable();
        let (best, middle) = (costs[0], costs[ROUNDS / 2]);
        let (first_best, first) = *few.get_or_insert((best, middle));
        println!(
            "{hosts} hosts: {middle} ns of processor per order, {:.2} times that of the fewest; {best} and {:.2} in the \
             best of {ROUNDS} rounds",
            middle as f64 / first as f64,
            best as f64 / first_best as f64
        );
    }
}
