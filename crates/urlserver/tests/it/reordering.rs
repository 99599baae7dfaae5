//! Messages in any order: answers that come late, twice, never announced, or for nothing at all must
//! not break a window, lose a URL or give one out twice.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, LinkKind, Order, Outcome, OutcomeClass, Purpose, RobotsRecord,
    Timestamp, TransId,
};
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, RobotsAnswer, UrlServerOptions};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Candidate {
        host: u8,
        page: u16,
        redirect: bool,
    },
    Sent {
        pick: u8,
    },
    Done {
        pick: u8,
        answer: u8,
    },
    Resolved {
        pick: u8,
        works: bool,
    },
    Recalled {
        pick: u8,
        kept: u8,
    },
    Hold {
        host: u8,
        seconds: u16,
    },
    Stray {
        generation: u32,
        slot: u32,
        active: u16,
    },
    Pass {
        millis: u16,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u8, any::<u16>(), any::<bool>())
            .prop_map(|(host, page, redirect)| Step::Candidate { host, page, redirect }),
        3 => any::<u8>().prop_map(|pick| Step::Sent { pick }),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(pick, answer)| Step::Done { pick, answer }),
        3 => (any::<u8>(), prop::bool::weighted(0.8))
            .prop_map(|(pick, works)| Step::Resolved { pick, works }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(pick, kept)| Step::Recalled { pick, kept }),
        1 => (0..6u8, 0..900u16).prop_map(|(host, seconds)| Step::Hold { host, seconds }),
        1 => (0..4u32, 0..4u32, 0..3u16)
            .prop_map(|(generation, slot, active)| Step::Stray { generation, slot, active }),
        3 => (0..3000u16).prop_map(|millis| Step::Pass { millis }),
    ]
}

struct Bench {
    heart: Heart,
    options: UrlServerOptions,
    now: Timestamp,
    out: Vec<Order>,
    over: Vec<TransId>,
    questions: Vec<String>,
    /// Origins whose robots.txt is wanted back.
    recalls: Vec<String>,
    /// URLs that were given in and have not come out.
    inside: HashSet<String>,
}

impl Bench {
    fn new(options: UrlServerOptions) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self {
            heart: Heart::new(options.clone(), now).unwrap(),
            options,
            now,
            out: Vec::new(),
            over: Vec::new(),
            questions: Vec::new(),
            recalls: Vec::new(),
            inside: HashSet::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Candidate {
                host,
                page,
                redirect,
            } => self.give(host, page, redirect),
            Step::Sent { pick } => {
                // Sometimes for one that is over.
                let known = self.out.iter().map(|order| order.trans);
                let all: Vec<_> = known.chain(self.over.iter().copied()).collect();
                if let Some(trans) = all.get(usize::from(pick) % all.len().max(1)) {
                    self.heart.sent(*trans, self.now, self.now);
                }
            }
            Step::Done { pick, answer } => {
                if !self.out.is_empty() {
                    let order = self.out.swap_remove(usize::from(pick) % self.out.len());
                    self.done(
                        order.trans,
                        (order.purpose() == Purpose::Robots).then_some(answer),
                    );
                    if answer % 2 == 0 {
                        self.done(order.trans, Some(answer));
                    }
                    if order.purpose() == Purpose::Page {
                        assert!(self.inside.remove(order.url().as_str()));
                    }
                    self.over.push(order.trans);
                }
            }
            Step::Resolved { pick, works } => {
                if !self.questions.is_empty() {
                    let at = usize::from(pick) % self.questions.len();
                    let host = self.questions.swap_remove(at);
                    self.resolved(&host, works);
                }
            }
            Step::Recalled { pick, kept } => {
                if !self.recalls.is_empty() {
                    let at = usize::from(pick) % self.recalls.len();
                    let origin = self.recalls.swap_remove(at);
                    self.recalled(&origin, kept);
                }
            }
            Step::Hold { host, seconds } => {
                let until = self.now.after(Duration::from_secs(seconds.into()));
                self.heart.hold(&format!("h{host}"), until, self.now);
            }
            Step::Stray {
                generation,
                slot,
                active,
            } => {
                let trans = TransId {
                    generation,
                    slot,
                    active,
                };
                if self.out.iter().all(|order| order.trans != trans) {
                    self.heart.sent(trans, self.now, self.now);
                    self.done(trans, None);
                }
            }
            Step::Pass { millis } => {
                self.now = self.now.after(Duration::from_millis(millis.into()));
                self.heart.tick(self.now);
            }
        }
        self.collect();
    }

    fn give(&mut self, host: u8, page: u16, redirect: bool) {
        let port = if page.is_multiple_of(5) { ":81" } else { "" };
        let text = format!("http://h{host}{port}/{page}");
        if !self.inside.insert(text.clone()) {
            return;
        }
        let url = CrawlUrl::from_canonical(&text).unwrap();
        let candidate = Candidate {
            key: url.key(KeySeed(1)),
            doc_id: 1,
            url,
            kind: if redirect {
                LinkKind::Redirect
            } else {
                LinkKind::A
            },
            depth: 0,
            attempts: 0,
            chain: Vec::new(),
            revisit: None,
        };
        self.heart.candidates(vec![candidate], self.now);
    }

    fn done(&mut self, trans: TransId, answer: Option<u8>) {
        let moved = |to: &str| RobotsAnswer::Moved {
            status: 302,
            location: CrawlUrl::from_canonical(to).ok(),
        };
        let robots = answer.map(|answer| match answer % 6 {
            0 | 1 => RobotsAnswer::Unavailable { status: 404 },
            2 => RobotsAnswer::Fetched {
                status: 200,
                body: b"User-agent: *\nDisallow: /1\nCrawl-delay: 2".to_vec(),
                expires: None,
            },
            3 => moved("http://h1/robots.txt"),
            4 => moved("http://h9/elsewhere"),
            _ => RobotsAnswer::unreachable(&Outcome::plain(OutcomeClass::FailedTimeout)),
        });
        let done = Done {
            sent: answer.is_none_or(|a| a % 7 != 0).then_some(self.now),
            first_byte: None,
            ended: self.now,
            connect_failed: answer.is_some_and(|a| a % 7 == 0),
            failed: answer.is_some_and(|a| a % 7 < 2),
            robots,
        };
        self.heart.done(trans, done, self.now);
    }

    /// The doc index has nothing, a few rules, or more than there is memory for.
    fn recalled(&mut self, origin: &str, kept: u8) {
        let count = match kept % 4 {
            0 => 0,
            1 => 1,
            _ => 100,
        };
        let rules = (0..count).map(|n| format!("Disallow: /{n}/of/many/paths\n"));
        let text = format!(
            "User-agent: *\nDisallow: /1\nCrawl-delay: 2\n{}",
            rules.collect::<String>()
        );
        let record = (!kept.is_multiple_of(4)).then(|| RobotsRecord {
            fetched: self.now,
            expires: self.now.after(Duration::from_secs(u64::from(kept))),
            status: 200,
            body: text.into_bytes(),
        });
        self.heart.known_robots(origin, record, self.now);
    }

    fn resolved(&mut self, host: &str, works: bool) {
        let last = host.bytes().next_back().unwrap_or_default() % 3;
        let found = Resolved {
            addresses: vec![[127, 0, 0, last].into(), [127, 0, 1, last].into()],
            ttl: Duration::ZERO,
        };
        let gone = Outcome::plain(OutcomeClass::FailedDns);
        self.heart
            .resolved(host, works.then_some(found).ok_or(gone), self.now);
    }

    fn collect(&mut self) {
        for action in self.heart.take_actions() {
            match action {
                Action::Send(order) => self.out.push(order),
                Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
                Action::Resolve { host } => self.questions.push(host.to_string()),
                Action::Tell(Notice::Refuse { candidate, .. }) => {
                    assert!(self.inside.remove(candidate.url.as_str()));
                }
                Action::Tell(Notice::Return { candidates, .. }) => {
                    for candidate in candidates {
                        assert!(self.inside.remove(candidate.url.as_str()));
                    }
                }
                Action::Tell(Notice::RecallRobots { origin }) => self.recalls.push(origin),
                Action::Tell(_) => {}
            }
        }
        let mut hosts = HashMap::<&str, u16>::new();
        let mut ips = HashMap::<IpAddr, u16>::new();
        let mut names = HashSet::new();
        for order in &self.out {
            *hosts.entry(order.url().host()).or_default() += 1;
            *ips.entry(order.ip).or_default() += 1;
            assert!(names.insert(order.trans), "one name for two orders");
        }
        assert!(
            hosts
                .values()
                .all(|open| *open <= self.options.host_concurrent)
        );
        assert!(ips.values().all(|open| *open <= self.options.ip_concurrent));
        assert!(self.out.len() <= self.options.in_flight);
        let census = self.heart.census();
        let pages = self
            .out
            .iter()
            .filter(|order| order.purpose() == Purpose::Page);
        assert_eq!(
            census.queued + census.leftover + pages.count(),
            self.inside.len()
        );
    }

    /// Answers everything until nothing is left; what never ends has lost something.
    fn run_out(&mut self) {
        for _ in 0..10_000 {
            if self.inside.is_empty() {
                return;
            }
            while let Some(host) = self.questions.pop() {
                self.resolved(&host, true);
                self.collect();
            }
            while let Some(origin) = self.recalls.pop() {
                let kept = self.now.as_millis() as u8;
                self.recalled(&origin, kept);
                self.collect();
            }
            if !self.questions.is_empty() || self.inside.is_empty() {
                continue;
            }
            if self.out.is_empty() {
                let wake = self.heart.next_wake().expect("URLs wait for nothing");
                self.now = self.now.max(wake);
                self.heart.tick(self.now);
                self.collect();
            } else {
                self.take(Step::Done { pick: 0, answer: 1 });
            }
        }
        panic!(
            "{} URLs never came out: {:?}",
            self.inside.len(),
            self.heart.census()
        );
    }
}

fn options() -> impl Strategy<Value = UrlServerOptions> {
    let sizes = (1..4usize, 1..4usize, 1..4usize);
    let windows = (1..3u16, 1..3u16, 0..3u8, 0..3u8, any::<bool>());
    (sizes, windows).prop_map(
        |((queue_count, queue_len, in_flight), (host, ip, host_rate, ip_rate, resumed))| {
            UrlServerOptions {
                queue_count,
                queue_len,
                in_flight,
                host_concurrent: host,
                ip_concurrent: ip,
                host_per_sec: host_rate.into(),
                ip_per_sec: ip_rate.into(),
                rest_bytes: 1000,
                resumed,
                ..UrlServerOptions::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn any_order_of_messages_is_survived(
        options in options(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut bench = Bench::new(options);
        for step in steps {
            bench.take(step);
        }
        bench.run_out();
    }

    #[test]
    fn a_drain_at_any_moment_gives_back_what_is_not_out(
        options in options(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new(options);
        for step in steps {
            bench.take(step);
        }
        let back = bench.heart.drain(bench.now);
        for candidate in back {
            prop_assert!(bench.inside.remove(candidate.url.as_str()));
        }
        bench.collect();
        while !bench.out.is_empty() {
            bench.take(Step::Done { pick: 0, answer: 3 });
            bench.take(Step::Pass { millis: 3000 });
        }
        prop_assert!(bench.inside.is_empty());
        prop_assert_eq!(bench.heart.census().hosts, 0);
    }
}
