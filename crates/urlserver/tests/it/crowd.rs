//! Thousands of names on one address among a few hosts with addresses of their own: the crowd waits for its
//! address, and nobody else waits for the crowd. In virtual time, with a doc index that offers hosts in turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, KeySeed, LinkKind, Order, Purpose, Timestamp};
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, RobotsAnswer, UrlServerOptions};

const SEED: KeySeed = KeySeed(3);

fn candidate(host: &str, number: u32) -> Candidate {
    let url = CrawlUrl::from_canonical(&format!("http://{host}/{number}")).unwrap();
    Candidate {
        key: url.key(SEED),
        doc_id: number,
        url,
        kind: LinkKind::A,
        depth: 0,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

struct World {
    heart: Heart,
    now: Timestamp,
    /// URLs of each host that are queued.
    queues: HashMap<u64, Vec<Candidate>>,
    /// Hosts in turn.
    turns: VecDeque<u64>,
    flights: Vec<Order>,
    request: Option<(usize, HashSet<u64>)>,
    /// Pages of the crowd, and of others.
    fetched: HashMap<bool, u32>,
    /// URLs that were given back.
    returned: usize,
}

fn is_crowd(host: &str) -> bool {
    host.starts_with("crowd")
}

impl World {
    fn new(options: UrlServerOptions, crowd: u32, others: u32, pages: u32) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let mut world = Self {
            heart: Heart::new(options, now).unwrap(),
            now,
            queues: HashMap::new(),
            turns: VecDeque::new(),
            flights: Vec::new(),
            request: None,
            fetched: HashMap::new(),
            returned: 0,
        };
        let crowd = (0..crowd).map(|n| (format!("crowd{n}"), 3));
        let others = (0..others).map(|n| (format!("other{n}"), pages));
        for (host, pages) in crowd.chain(others) {
            let urls: Vec<_> = (0..pages).rev().map(|n| candidate(&host, n)).collect();
            let hash = urls[0].key.host;
            world.queues.insert(hash, urls);
            world.turns.push_back(hash);
        }
        world.heart.tick(now);
        world
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now.after(Duration::from_secs(seconds));
        self.perform();
        while self.now < end {
            self.now = self.now.after(Duration::from_millis(50));
            for order in std::mem::take(&mut self.flights) {
                let is_robots = order.purpose() == Purpose::Robots;
                self.heart.done(
                    order.trans,
                    Done {
                        sent: Some(self.now),
                        first_byte: Some(self.now),
                        ended: self.now,
                        connect_failed: false,
                        failed: false,
                        robots: is_robots.then_some(RobotsAnswer::Unavailable { status: 404 }),
                    },
                    self.now,
                );
                let crowd = is_crowd(order.url().host());
                *self.fetched.entry(crowd).or_default() += u32::from(!is_robots);
            }
            self.heart.tick(self.now);
            if let Some((want, reject)) = self.request.take() {
                let given = self.give(want, &reject);
                self.heart.candidates(given, self.now);
            }
            self.perform();
        }
    }

    fn perform(&mut self) {
        loop {
            let actions = self.heart.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.act(action);
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send(order) => self.flights.push(order),
            Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
            Action::Resolve { host } => {
                let ip = match host.strip_prefix("other") {
                    Some(number) => 0x0b00_0001 + number.parse::<u32>().unwrap(),
                    None => 0x0a00_0001,
                };
                let found = Resolved {
                    addresses: vec![IpAddr::from(Ipv4Addr::from(ip))],
                    ttl: Duration::from_secs(3600),
                };
                self.heart.resolved(&host, Ok(found), self.now);
            }
            Action::Tell(Notice::NeedCandidates { want, reject }) => {
                self.request = Some((want, reject.into_iter().collect()));
            }
            Action::Tell(Notice::Return { candidates, until }) => {
                self.returned += candidates.len();
                let host = candidates[0].key.host;
                assert!(until.is_none(), "nobody asks for patience");
                let queue = self.queues.entry(host).or_default();
                if queue.is_empty() {
                    self.turns.push_back(host);
                }
                queue.extend(candidates);
            }
            Action::Tell(_) => {}
        }
    }

    fn give(&mut self, want: usize, reject: &HashSet<u64>) -> Vec<Candidate> {
        let mut given = Vec::new();
        for _ in 0..self.turns.len() {
            let Some(host) = self.turns.pop_front() else {
                break;
            };
            if reject.contains(&host) {
                self.turns.push_back(host);
                continue;
            }
            let queue = self.queues.get_mut(&host).unwrap();
            for _ in 0..16.min(want - given.len()) {
                given.extend(queue.pop());
            }
            if !queue.is_empty() {
                self.turns.push_back(host);
            }
            if given.len() >= want {
                break;
            }
        }
        given
    }
}

#[test]
fn nobody_waits_for_a_crowd_on_one_address() {
    let options = UrlServerOptions {
        queue_count: 64,
        queue_len: 16,
        ip_batch_max: 64,
        ..UrlServerOptions::default()
    };
    let (crowd, others, seconds) = (5000, 30, 900);
    let mut world = World::new(options, crowd, others, seconds);
    world.run(u64::from(seconds));
    let fetched = |crowd| world.fetched.get(&crowd).copied().unwrap_or_default();
    let (of_crowd, of_others) = (fetched(true), fetched(false));
    // One request a second is what an address may get, a little goes by before an answer, and one in four of what the
    // crowd is asked for is a robots.txt.
    assert!(of_crowd > seconds * 6 / 10, "{of_crowd} of the crowd");
    assert!(
        of_others > others * seconds * 8 / 10,
        "{of_others} of others"
    );
    assert!(
        world.returned < 2 * 3 * crowd as usize,
        "{} returned",
        world.returned
    );
}

/// Nobody is forgotten, whoever is sent away.
#[test]
fn a_crowd_is_served_to_the_last() {
    let options = UrlServerOptions {
        queue_count: 20,
        queue_len: 2,
        ..UrlServerOptions::default()
    };
    let mut world = World::new(options, 300, 3, 10);
    world.run(1500);
    assert_eq!((world.fetched[&true], world.fetched[&false]), (900, 30));
    assert!(world.returned > 0);
}
