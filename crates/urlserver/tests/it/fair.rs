//! Hostile hosts beside sixty honest ones, in virtual time: slow, failing, endless, and with a long robots.txt that
//! denies all they link to. The honest ones keep four fifths of the speed that they have alone, whether there is one
//! hostile host or two thousand. All share the same networks, and the honest ones come last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, LinkKind, Order, Outcome, OutcomeClass, Purpose, RobotsRecord,
    Subject, Timestamp, TransId,
};
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, RobotsAnswer, UrlServerOptions};

const SEED: KeySeed = KeySeed(5);
const HONEST: usize = 60;
const PAGES: usize = 30;
/// URLs of each hostile host.
const BAIT: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Every answer drips until its time is over.
    Slow,
    /// Nobody answers a connection.
    Failing,
    /// robots.txt comes at once, pages never end.
    Endless,
    /// A long robots.txt denies every URL.
    Robots,
}

struct World {
    heart: Heart,
    now: u64,
    kind: Kind,
    hostile: usize,
    body: Vec<u8>,
    queues: HashMap<u64, (usize, Vec<Candidate>)>,
    turns: VecDeque<u64>,
    held: BTreeMap<u64, Vec<u64>>,
    flights: HashMap<TransId, Order>,
    ends: BinaryHeap<Reverse<(u64, TransId)>>,
    request: Option<(usize, HashSet<u64>)>,
    kept: HashMap<String, RobotsRecord>,
    honest_left: usize,
    given_up: HashMap<String, usize>,
    refused: usize,
    most_refused_at_once: usize,
}

fn is_honest(host: &str) -> bool {
    host.starts_with("honest")
}

impl World {
    fn new(kind: Kind, hostile: usize) -> Self {
        let options = UrlServerOptions {
            can_give_up: true,
            ..UrlServerOptions::default()
        };
        let mut body = String::from("User-agent: *\nDisallow: /\n");
        for n in 0..300 {
            body.push_str(&format!("Disallow: /*{n:05}x\nDisallow: /{n:05}\n"));
        }
        let now = 1_000_000;
        let mut world = Self {
            heart: Heart::new(options, Timestamp::from_millis(now)).unwrap(),
            now,
            kind,
            hostile,
            body: body.into_bytes(),
            queues: HashMap::new(),
            turns: VecDeque::new(),
            held: BTreeMap::new(),
            flights: HashMap::new(),
            ends: BinaryHeap::new(),
            request: None,
            kept: HashMap::new(),
            honest_left: HONEST * PAGES,
            given_up: HashMap::new(),
            refused: 0,
            most_refused_at_once: 0,
        };
        let bad = (0..hostile).map(|n| (format!("hostile{n}"), BAIT));
        let good = (0..HONEST).map(|n| (format!("honest{n}"), PAGES));
        for (number, (host, pages)) in bad.chain(good).enumerate() {
            let urls: Vec<_> = (0..pages).rev().map(|n| candidate(&host, n)).collect();
            let hash = urls[0].key.host;
            world.queues.insert(hash, (number, urls));
            world.turns.push_back(hash);
        }
        world.heart.tick(Timestamp::from_millis(now));
        world
    }

    /// Runs until every honest page is fetched; how long that took, in milliseconds.
    fn run(mut self) -> (u64, Self) {
        let start = self.now;
        self.perform();
        while self.honest_left > 0 {
            let wake = self.heart.next_wake().map(Timestamp::as_millis);
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            let host = self.held.keys().next().copied();
            let answer = self.request.as_ref().map(|_| self.now + 3);
            let next = [wake, end, host, answer].into_iter().flatten().min();
            let next = next.unwrap_or_else(|| panic!("stuck: {:?}", self.heart.census()));
            self.now = self.now.max(next);
            assert!(self.now - start < 3_600_000, "{:?}", self.heart.census());
            self.step();
        }
        (self.now - start, self)
    }

    fn stamp(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn step(&mut self) {
        let (now, refused) = (self.stamp(), self.refused);
        while let Some(Reverse((at, trans))) = self.ends.peek().copied()
            && at <= self.now
        {
            self.ends.pop();
            self.end(trans);
        }
        while let Some((at, hosts)) = self.held.pop_first() {
            if at > self.now {
                self.held.insert(at, hosts);
                break;
            }
            self.turns.extend(hosts);
        }
        self.heart.tick(now);
        self.perform();
        self.most_refused_at_once = self.most_refused_at_once.max(self.refused - refused);
        if let Some((want, reject)) = self.request.take() {
            let given = self.give(want, &reject);
            self.heart.candidates(given, now);
            self.perform();
        }
    }

    fn end(&mut self, trans: TransId) {
        let Some(order) = self.flights.remove(&trans) else {
            return;
        };
        let (now, host) = (self.stamp(), order.url().host());
        let honest = is_honest(host);
        let failed = !honest && self.kind == Kind::Failing;
        let robots = (order.purpose() == Purpose::Robots).then(|| match self.kind {
            Kind::Robots if !honest => RobotsAnswer::Fetched {
                status: 200,
                body: self.body.clone(),
                expires: None,
            },
            Kind::Failing if !honest => {
                RobotsAnswer::unreachable(&Outcome::because(OutcomeClass::FailedConnect, "refused"))
            }
            _ => RobotsAnswer::Unavailable { status: 404 },
        });
        self.honest_left -= usize::from(honest && robots.is_none());
        let done = Done {
            sent: (!failed).then_some(now),
            first_byte: (!failed).then_some(now),
            ended: now,
            connect_failed: failed,
            failed,
            robots,
        };
        self.heart.done(trans, done, now);
    }

    /// How long an order takes, in milliseconds.
    fn takes(&self, order: &Order) -> u64 {
        let robots = order.purpose() == Purpose::Robots;
        match self.kind {
            _ if is_honest(order.url().host()) => 20,
            Kind::Slow => 30_000,
            Kind::Failing => 5000,
            Kind::Endless if !robots => 30_000,
            Kind::Endless | Kind::Robots => 20,
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
        let now = self.stamp();
        match action {
            Action::Send(order) => {
                let at = self.now + self.takes(&order);
                self.ends.push(Reverse((at, order.trans)));
                self.heart.sent(order.trans, now, now);
                self.flights.insert(order.trans, order);
            }
            Action::GiveUp { order } => {
                let Some(order) = self.flights.remove(&order) else {
                    return;
                };
                let host = order.url().host().to_owned();
                assert!(!is_honest(&host), "{host} has answered in time");
                self.heart.given_up(order.trans, now);
                if let Subject::Page(candidate) = order.subject {
                    self.take_back(vec![candidate], None);
                }
                *self.given_up.entry(host).or_default() += 1;
            }
            Action::Resolve { host } => {
                let (kind, first) = if is_honest(&host) {
                    ("honest", self.hostile)
                } else {
                    ("hostile", 0)
                };
                let number =
                    first as u32 + host.strip_prefix(kind).unwrap().parse::<u32>().unwrap();
                let found = Resolved {
                    addresses: vec![IpAddr::from(Ipv4Addr::from(0x7f00_0001 + number))],
                    ttl: Duration::from_secs(3600),
                };
                self.heart.resolved(&host, Ok(found), now);
            }
            Action::Tell(Notice::NeedCandidates { want, reject }) => {
                self.request = Some((want, reject.into_iter().collect()));
            }
            Action::Tell(Notice::Return { candidates, until }) => self.take_back(candidates, until),
            Action::Tell(Notice::StoreRobots { origin, record }) => {
                self.kept.insert(origin, record);
            }
            Action::Tell(Notice::RecallRobots { origin }) => {
                let record = self.kept.get(&origin).cloned();
                self.heart.known_robots(&origin, record, now);
            }
            Action::Tell(Notice::Refuse { candidate, .. }) => {
                assert!(!is_honest(candidate.url.host()));
                self.refused += 1;
            }
            Action::Tell(_) => {}
        }
    }

    fn take_back(&mut self, candidates: Vec<Candidate>, until: Option<Timestamp>) {
        let host = candidates[0].key.host;
        let (_, queue) = self.queues.get_mut(&host).unwrap();
        queue.extend(candidates);
        self.turns.retain(|other| *other != host);
        self.held
            .values_mut()
            .for_each(|hosts| hosts.retain(|other| *other != host));
        match until {
            Some(until) => self.held.entry(until.as_millis()).or_default().push(host),
            None => self.turns.push_back(host),
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
            let (_, queue) = self.queues.get_mut(&host).unwrap();
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

fn candidate(host: &str, number: usize) -> Candidate {
    let url = CrawlUrl::from_canonical(&format!("http://{host}/{number}")).unwrap();
    Candidate {
        key: url.key(SEED),
        doc_id: number as u32 + 1,
        url,
        kind: LinkKind::A,
        depth: 0,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

fn honest_hosts_beside(kind: Kind) {
    let (alone, _) = World::new(kind, 0).run();
    for hostile in [1, 20, 200, 2000] {
        let (beside, world) = World::new(kind, hostile).run();
        let percent = alone * 100 / beside;
        assert!(
            percent >= 80,
            "{kind:?}, {hostile}: {alone} ms alone, {beside} ms beside"
        );
        // Nobody is asked again and again for what is given up.
        let most = world.given_up.values().max().copied().unwrap_or_default();
        assert!(
            most <= 2,
            "{kind:?}, {hostile}: an order was given up {most} times"
        );
        assert!(
            world.most_refused_at_once <= 2100,
            "{}",
            world.most_refused_at_once
        );
    }
}

#[test]
fn slow_hosts() {
    honest_hosts_beside(Kind::Slow);
}

#[test]
fn failing_hosts() {
    honest_hosts_beside(Kind::Failing);
}

#[test]
fn endless_hosts() {
    honest_hosts_beside(Kind::Endless);
}

#[test]
fn hosts_with_a_long_robots_txt() {
    honest_hosts_beside(Kind::Robots);
}
