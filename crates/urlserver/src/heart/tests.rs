//! The behaviour of the heart, in the order in which the design of the URL server tells it.

mod addresses;
mod again;
mod operators;
mod outage;
mod pace;
mod recall;
mod verdicts;

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::{
    CrawlUrl, LinkKind, Order, Outcome, OutcomeClass, Pace, Purpose, RobotsRecord, Timestamp,
};
use orbweaver_testkit::{SEED, candidate};

use super::Heart;
use crate::message::{Action, Bottleneck, Done, Notice, Resolved, RobotsAnswer};
use crate::options::UrlServerOptions;

const START: u64 = 1_000_000;

/// A heart with hands: it resolves at once and keeps what comes out.
struct Rig {
    heart: Heart,
    now: Timestamp,
    orders: VecDeque<Order>,
    notices: Vec<Notice>,
    questions: Vec<String>,
    /// Every name resolves to this, unless it is none.
    addresses: Option<Vec<[u8; 4]>>,
}

fn hash(host: &str) -> u64 {
    SEED.host(host)
}

/// Two queues of four, without any waiting unless a test wants it.
fn quick() -> UrlServerOptions {
    UrlServerOptions {
        queue_count: 2,
        queue_len: 4,
        host_per_sec: 0.0,
        ip_per_sec: 0.0,
        ip_concurrent: 100,
        ..UrlServerOptions::default()
    }
}

impl Rig {
    fn new(options: UrlServerOptions) -> Self {
        let now = Timestamp::from_millis(START);
        Self {
            heart: Heart::new(options, now).unwrap(),
            now,
            orders: VecDeque::new(),
            notices: Vec::new(),
            questions: Vec::new(),
            addresses: Some(vec![[127, 0, 0, 1]]),
        }
    }

    fn collect(&mut self) {
        loop {
            let actions = self.heart.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Send(order) => self.orders.push_back(order),
                    Action::Tell(notice) => self.notices.push(notice),
                    Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
                    Action::Resolve { host } => {
                        self.questions.push(host.to_string());
                        if let Some(addresses) = &self.addresses {
                            let found = Resolved {
                                addresses: addresses.iter().map(|ip| (*ip).into()).collect(),
                                ttl: Duration::from_secs(600),
                            };
                            self.heart.resolved(&host, Ok(found), self.now);
                        }
                    }
                }
            }
        }
    }

    fn give(&mut self, urls: &[&str]) {
        let urls = urls.iter().map(|url| candidate(url)).collect();
        self.heart.candidates(urls, self.now);
        self.collect();
    }

    /// The next order must be for this URL.
    fn order(&mut self, url: &str) -> Order {
        let order = self.orders.pop_front();
        assert_eq!(order.as_ref().map(|o| o.url().as_str()), Some(url));
        order.unwrap()
    }

    fn none_out(&mut self) {
        self.collect();
        let out: Vec<_> = self.orders.iter().map(|o| o.url().to_string()).collect();
        assert!(out.is_empty(), "{out:?} must not be out at {}", self.now);
    }

    fn done_with(&mut self, order: &Order, robots: Option<RobotsAnswer>) {
        let done = Done {
            sent: Some(self.now),
            first_byte: Some(self.now),
            ended: self.now,
            connect_failed: false,
            failed: false,
            robots,
        };
        self.heart.done(order.trans, done, self.now);
        self.collect();
    }

    fn done(&mut self, order: &Order) {
        self.done_with(order, None);
    }

    /// The next order is for the robots.txt of this origin, and this is the answer.
    fn robots(&mut self, origin: &str, answer: RobotsAnswer) {
        let order = self.order(&format!("{origin}/robots.txt"));
        assert_eq!(order.purpose(), Purpose::Robots);
        self.done_with(&order, Some(answer));
    }

    /// There is no robots.txt, neither kept nor on the server.
    fn no_robots(&mut self, origin: &str) {
        let wanted = |notice: &Notice| matches!(notice, Notice::RecallRobots { origin: asked } if asked == origin);
        if self.notices.iter().any(wanted) {
            self.heart.known_robots(origin, None, self.now);
            self.collect();
        }
        self.robots(origin, RobotsAnswer::Unavailable { status: 404 });
    }

    fn pass(&mut self, millis: u64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + millis);
        self.heart.tick(self.now);
        self.collect();
    }

    /// Skips robots.txt for these origins.
    fn free(&mut self, origins: &[&str]) {
        for origin in origins {
            let record = RobotsRecord {
                fetched: self.now,
                expires: self.now.after(Duration::from_secs(3600)),
                status: 404,
                body: Vec::new(),
            };
            self.heart.known_robots(origin, Some(record), self.now);
        }
        self.collect();
    }

    fn refusals(&mut self) -> Vec<(String, Outcome)> {
        let refused = self.notices.iter().filter_map(|notice| match notice {
            Notice::Refuse {
                candidate, outcome, ..
            } => Some((candidate.url.to_string(), outcome.clone())),
            _ => None,
        });
        refused.collect()
    }

    fn requests(&mut self) -> Vec<Vec<u64>> {
        let notices = std::mem::take(&mut self.notices);
        let requests = notices.into_iter().filter_map(|notice| match notice {
            Notice::NeedCandidates { want, reject } => {
                assert!(want > 0);
                Some(reject)
            }
            _ => None,
        });
        requests.collect()
    }
}

fn fetched(body: &str) -> RobotsAnswer {
    RobotsAnswer::Fetched {
        status: 200,
        body: body.as_bytes().to_vec(),
        expires: None,
    }
}

fn server_error() -> RobotsAnswer {
    RobotsAnswer::Unreachable {
        outcome: Outcome::because(OutcomeClass::DeniedRobots, "robots.txt: status 503"),
        wait: None,
    }
}

#[test]
fn a_queue_holds_one_host_and_an_emptied_one_takes_any() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a", "http://b", "http://c"]);
    rig.give(&["http://a/1", "http://b/1", "http://c/1", "http://a/2"]);
    let a1 = rig.order("http://a/1");
    let b1 = rig.order("http://b/1");
    assert_eq!(rig.heart.census().leftover, 1, "c finds every queue taken");
    rig.done(&b1);
    let c1 = rig.order("http://c/1");
    assert_eq!(c1.trans.slot, b1.trans.slot, "c took the queue of b");
    rig.done(&a1);
    rig.order("http://a/2");
    rig.none_out();
}

#[test]
fn leftovers_refill_their_queue_before_anything_new_comes_in() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a"]);
    rig.give(&[
        "http://a/0",
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a/4",
        "http://a/5",
    ]);
    let census = rig.heart.census();
    assert_eq!((census.orders, census.queued + census.leftover), (1, 5));
    assert!(census.queued <= 4, "Queue_Len");
    rig.give(&["http://a/6"]);
    for n in 0..7 {
        let order = rig.order(&format!("http://a/{n}"));
        rig.done(&order);
    }
    rig.none_out();
}

#[test]
fn the_active_window_is_freed_by_done_only() {
    let mut rig = Rig::new(UrlServerOptions {
        host_concurrent: 2,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/0", "http://a/1", "http://a/2", "http://a/3"]);
    let first = rig.order("http://a/0");
    let second = rig.order("http://a/1");
    assert_ne!(first.trans.active, second.trans.active);
    rig.pass(60_000);
    rig.none_out();
    rig.done(&second);
    let third = rig.order("http://a/2");
    assert_eq!(third.trans.active, second.trans.active);
    assert_ne!(third.trans.generation, second.trans.generation);
    rig.done(&second);
    rig.none_out();
    rig.done(&first);
    rig.order("http://a/3");
}

/// The order was written now, answered after `answer` milliseconds or never, and is over after `end`.
fn ended(rig: &mut Rig, order: &Order, answer: Option<u64>, end: u64) {
    let sent = rig.now;
    rig.heart.sent(order.trans, sent, rig.now);
    rig.pass(end);
    let done = Done {
        sent: Some(sent),
        first_byte: answer.map(|after| sent.after(Duration::from_millis(after))),
        ended: rig.now,
        connect_failed: false,
        failed: false,
        robots: None,
    };
    rig.heart.done(order.trans, done, rig.now);
    rig.collect();
}

/// With one request out at a time only the answer proves when the server has seen the request, however
/// long the machine at either end may have stalled; so every gap is exact, per host and per address.
#[test]
fn with_one_request_out_the_gap_counts_from_the_proof_that_the_server_has_seen_it() {
    for (host, ip) in [(1.0, 0.0), (0.0, 1.0)] {
        let mut rig = Rig::new(UrlServerOptions {
            host_per_sec: host,
            ip_per_sec: ip,
            ip_concurrent: 1,
            slow_factor: 0.0,
            ..quick()
        });
        rig.free(&["http://a"]);
        rig.give(&["http://a/0", "http://a/1", "http://a/2", "http://a/3"]);
        let order = rig.order("http://a/0");
        assert!(order.announce);
        ended(&mut rig, &order, Some(20), 300);
        rig.pass(720);
        rig.none_out();
        rig.pass(1);
        // A slow answer: when within the 900 ms the server has seen the request nobody knows.
        let order = rig.order("http://a/1");
        ended(&mut rig, &order, Some(900), 950);
        rig.pass(950);
        rig.none_out();
        rig.pass(1);
        // No answer at all: it may have been seen until the end.
        let order = rig.order("http://a/2");
        ended(&mut rig, &order, None, 400);
        rig.pass(1000);
        rig.none_out();
        rig.pass(1);
        rig.order("http://a/3");
    }
}

/// With several out, a slow answer does not hold up the next request: a twentieth of the delay is reckoned
/// for the way to the server, or what the answer proves if that is less.
#[test]
fn with_several_requests_out_the_gap_counts_from_the_written_request_and_its_way() {
    for (host, ip) in [(1.0, 0.0), (0.0, 1.0)] {
        let mut rig = Rig::new(UrlServerOptions {
            host_per_sec: host,
            ip_per_sec: ip,
            host_concurrent: 2,
            ip_concurrent: 2,
            slow_factor: 0.0,
            ..quick()
        });
        rig.free(&["http://a"]);
        rig.give(&["http://a/0", "http://a/1", "http://a/2", "http://a/3"]);
        for (url, answer) in [
            ("http://a/0", Some(900)),
            ("http://a/1", None),
            ("http://a/2", Some(20)),
        ] {
            let order = rig.order(url);
            ended(&mut rig, &order, answer, 900);
            rig.pass(100 + answer.unwrap_or(50).min(50));
            rig.none_out();
            rig.pass(1);
        }
        rig.order("http://a/3");
    }
}

#[test]
fn with_a_gap_the_next_order_waits_until_the_last_is_known_to_be_written() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 10.0,
        host_concurrent: 5,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/0", "http://a/1", "http://a/2"]);
    let order = rig.order("http://a/0");
    rig.pass(5000);
    rig.none_out();
    rig.heart.sent(order.trans, rig.now, rig.now);
    rig.pass(106);
    rig.order("http://a/1");
    rig.none_out();
}

#[test]
fn without_a_gap_nobody_needs_to_hear_that_a_request_was_written() {
    let mut rig = Rig::new(UrlServerOptions {
        host_concurrent: 2,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/0", "http://a/1"]);
    assert!(!rig.order("http://a/0").announce);
    rig.order("http://a/1");
}

#[test]
fn hosts_on_one_address_share_its_window_and_its_gap() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 10,
        ip_concurrent: 1,
        ip_per_sec: 2.0,
        ..quick()
    });
    rig.free(&["http://a", "http://b", "http://c"]);
    rig.give(&["http://a/1", "http://b/1", "http://c/1", "http://a/2"]);
    let order = rig.order("http://a/1");
    rig.pass(10_000);
    rig.none_out();
    rig.done(&order);
    rig.pass(500);
    rig.none_out();
    rig.pass(1);
    let order = rig.order("http://b/1");
    rig.done(&order);
    rig.pass(501);
    let order = rig.order("http://c/1");
    rig.done(&order);
    rig.pass(501);
    rig.order("http://a/2");
    rig.none_out();
}

#[test]
fn a_message_about_a_host_does_not_cost_it_its_place_in_the_line_of_its_address() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 10,
        ip_concurrent: 1,
        ..quick()
    });
    rig.free(&["http://a", "http://b", "http://c"]);
    rig.give(&["http://a/1", "http://b/1", "http://c/1"]);
    let order = rig.order("http://a/1");
    rig.heart.hold("b", rig.now, rig.now);
    rig.done(&order);
    rig.order("http://b/1");
}

#[test]
fn an_empty_queue_asks_and_names_the_queues_that_have_enough() {
    let mut rig = Rig::new(quick());
    rig.pass(0);
    assert_eq!(rig.requests(), vec![Vec::<u64>::new()]);
    rig.free(&["http://a", "http://b"]);
    rig.give(&["http://a/0", "http://a/1", "http://a/2"]);
    // The answer was short, so the doc index is left alone for a moment.
    assert!(rig.requests().is_empty());
    rig.pass(100);
    assert_eq!(rig.requests(), vec![vec![hash("a")]]);
    rig.give(&[]);
    // As soon as the queue of a is less than half full, there is something new to ask.
    let order = rig.order("http://a/0");
    rig.done(&order);
    assert_eq!(rig.requests(), vec![Vec::<u64>::new()]);
    // No queue is empty: nothing to ask for.
    rig.give(&["http://b/0"]);
    rig.pass(1000);
    assert!(rig.requests().is_empty());
}

#[test]
fn robots_txt_comes_before_the_first_page_and_its_rule_is_named() {
    let mut rig = Rig::new(quick());
    rig.give(&[
        "http://a/private/1",
        "http://a/public",
        "http://a/private/2",
    ]);
    let body = "User-agent: *\nDisallow: /private/\nSitemap: http://a/map.xml\n";
    rig.robots("http://a", fetched(body));
    rig.order("http://a/public");
    let denied = Outcome::because(
        OutcomeClass::DeniedRobots,
        "robots.txt: Disallow: /private/",
    );
    let refused = ["http://a/private/1", "http://a/private/2"];
    assert_eq!(
        rig.refusals(),
        refused.map(|url| (url.to_owned(), denied.clone()))
    );
    assert!(rig.notices.iter().any(|notice| matches!(
        notice,
        Notice::Sitemaps { origin, urls } if origin == "http://a" && urls == &[Box::from("http://a/map.xml")]
    )));
    assert!(rig.notices.iter().any(|notice| matches!(
        notice,
        Notice::StoreRobots { origin, record } if origin == "http://a" && record.body == body.as_bytes()
    )));
}

#[test]
fn another_port_goes_on_while_a_robots_txt_is_awaited() {
    let mut rig = Rig::new(UrlServerOptions {
        host_concurrent: 2,
        ..quick()
    });
    rig.free(&["http://a:8080"]);
    rig.give(&["http://a/1", "http://a:8080/1"]);
    rig.order("http://a/robots.txt");
    rig.order("http://a:8080/1");
    rig.none_out();
}

#[test]
fn a_robots_txt_that_is_not_there_allows_everything() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/private/1"]);
    rig.no_robots("http://a");
    rig.order("http://a/private/1");
}

fn moved(to: Option<&str>) -> RobotsAnswer {
    RobotsAnswer::Moved {
        status: 301,
        location: to.map(|to| CrawlUrl::from_canonical(to).unwrap()),
    }
}

#[test]
fn a_moved_robots_txt_is_followed_to_another_host_even_when_every_queue_is_taken() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 1,
        ..quick()
    });
    rig.give(&["http://a/private", "http://a/2"]);
    rig.robots("http://a", moved(Some("http://b/r.txt")));
    let order = rig.order("http://b/r.txt");
    assert_eq!(order.purpose(), Purpose::Robots);
    rig.done_with(&order, Some(fetched("User-agent: *\nDisallow: /private")));
    rig.order("http://a/2");
    assert_eq!(rig.refusals().len(), 1);
    assert!(rig.notices.iter().any(
        |notice| matches!(notice, Notice::StoreRobots { origin, .. } if origin == "http://a")
    ));
}

#[test]
fn five_hops_are_followed_and_then_the_file_counts_as_missing() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    for _ in 0..5 {
        rig.robots("http://a", moved(Some("http://a/robots.txt")));
    }
    rig.robots("http://a", moved(Some("http://a/robots.txt")));
    rig.order("http://a/1");
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    rig.robots("http://a", moved(None));
    rig.order("http://a/1");
}

#[test]
fn a_robots_txt_is_used_for_a_day_at_most() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    let answer = RobotsAnswer::Fetched {
        status: 200,
        body: Vec::new(),
        expires: Some(Timestamp::from_millis(u64::MAX)),
    };
    rig.robots("http://a", answer);
    let order = rig.order("http://a/1");
    rig.done(&order);
    rig.pass(86_399_000);
    rig.give(&["http://a/2"]);
    let order = rig.order("http://a/2");
    rig.done(&order);
    rig.pass(1000);
    rig.give(&["http://a/3"]);
    rig.robots("http://a", fetched("User-agent: *\nDisallow: /"));
    rig.none_out();
}

#[test]
fn crawl_delay_raises_the_gap_and_never_lowers_it() {
    for (body, gap) in [("Crawl-delay: 3", 3001), ("Crawl-delay: 0.1", 1001)] {
        let mut rig = Rig::new(UrlServerOptions {
            host_per_sec: 1.0,
            ..quick()
        });
        rig.give(&["http://a/1"]);
        rig.robots("http://a", fetched(&format!("User-agent: *\n{body}\n")));
        rig.pass(gap - 1);
        rig.none_out();
        rig.pass(1);
        rig.order("http://a/1");
    }
}

#[test]
fn a_host_that_asks_for_patience_gets_it() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a", "http://b"]);
    rig.give(&["http://a/1", "http://a/2", "http://b/1"]);
    let order = rig.order("http://a/1");
    rig.order("http://b/1");
    rig.heart
        .hold("a", rig.now.after(Duration::from_secs(5)), rig.now);
    rig.done(&order);
    rig.pass(4999);
    rig.none_out();
    rig.pass(1);
    rig.order("http://a/2");
}

#[test]
fn a_host_that_asks_for_a_day_gives_up_its_queue() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 1,
        queue_len: 2,
        ..quick()
    });
    rig.free(&["http://a", "http://b"]);
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a/4",
        "http://b/1",
    ]);
    let order = rig.order("http://a/1");
    let day = rig.now.after(Duration::from_secs(86_400));
    rig.heart
        .hold("a", Timestamp::from_millis(u64::MAX), rig.now);
    rig.done(&order);
    let returned = rig.notices.iter().find_map(|notice| match notice {
        Notice::Return { candidates, until } => Some((candidates.len(), *until)),
        _ => None,
    });
    assert_eq!(returned, Some((3, Some(day))), "and no longer than the cap");
    let order = rig.order("http://b/1");
    rig.done(&order);
    rig.notices.clear();
    rig.give(&["http://a/5"]);
    assert!(rig.notices.iter().any(
        |notice| matches!(notice, Notice::Return { until: Some(until), .. } if *until == day)
    ));
    rig.none_out();
}

#[test]
fn a_host_that_comes_back_keeps_its_gap() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 0.1,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/1"]);
    let order = rig.order("http://a/1");
    rig.done(&order);
    assert_eq!(rig.heart.census().hosts, 0);
    rig.pass(5000);
    rig.give(&["http://a/2"]);
    rig.pass(5000);
    rig.none_out();
    rig.pass(1);
    rig.order("http://a/2");
}

#[test]
fn a_resumed_crawl_asks_nobody_before_one_delay_has_passed() {
    for (host, ip) in [(1.0, 0.0), (0.0, 1.0)] {
        let mut rig = Rig::new(UrlServerOptions {
            host_per_sec: host,
            ip_per_sec: ip,
            resumed: true,
            ..quick()
        });
        rig.free(&["http://a"]);
        rig.give(&["http://a/1"]);
        // The last request of the process before may still be on its way for a quarter of a second.
        rig.pass(1250);
        rig.none_out();
        rig.pass(1);
        rig.order("http://a/1");
    }
}

#[test]
fn addresses_rotate_after_a_failed_connection_and_expire() {
    let mut rig = Rig::new(quick());
    rig.addresses = Some(vec![[127, 0, 0, 1], [127, 0, 0, 2]]);
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2", "http://a/3"]);
    let order = rig.order("http://a/1");
    assert_eq!(order.ip.to_string(), "127.0.0.1");
    let failed = Done {
        sent: None,
        first_byte: None,
        ended: rig.now,
        connect_failed: true,
        failed: true,
        robots: None,
    };
    rig.heart.done(order.trans, failed, rig.now);
    rig.collect();
    let order = rig.order("http://a/2");
    assert_eq!(order.ip.to_string(), "127.0.0.2");
    assert_eq!(rig.questions.len(), 1);
    rig.pass(600_000);
    rig.addresses = Some(vec![[127, 0, 0, 3]]);
    rig.done(&order);
    assert_eq!(rig.order("http://a/3").ip.to_string(), "127.0.0.3");
    assert_eq!(rig.questions.len(), 2);
}

#[test]
fn a_name_that_does_not_resolve_refuses_all_urls_of_its_host() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_len: 1,
        ..quick()
    });
    rig.addresses = None;
    rig.give(&["http://a/1", "http://a/2", "http://a:81/3"]);
    rig.none_out();
    assert_eq!(rig.heart.census().bottleneck, Bottleneck::Resolver);
    let gone = Outcome::because(OutcomeClass::FailedDns, "no such name");
    rig.heart.resolved("a", Err(gone.clone()), rig.now);
    rig.collect();
    let refusals = rig.refusals();
    assert_eq!(refusals.len(), 3);
    assert!(refusals.iter().all(|(_, outcome)| *outcome == gone));
    let census = rig.heart.census();
    assert_eq!((census.hosts, census.queued, census.leftover), (0, 0, 0));
}

#[test]
fn the_target_of_a_redirect_goes_to_the_front() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a"]);
    rig.give(&[
        "http://a/0",
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a/4",
    ]);
    let first = rig.order("http://a/0");
    let mut target = candidate("http://a/target");
    target.kind = LinkKind::Redirect;
    rig.heart.candidates(vec![target], rig.now);
    assert!(rig.heart.census().queued <= 4);
    rig.done(&first);
    // The one that had been chosen already goes first.
    for url in [
        "http://a/1",
        "http://a/target",
        "http://a/2",
        "http://a/3",
        "http://a/4",
    ] {
        let order = rig.order(url);
        rig.done(&order);
    }
}

#[test]
fn ready_hosts_take_turns() {
    let mut rig = Rig::new(UrlServerOptions {
        in_flight: 1,
        host_concurrent: 4,
        ..quick()
    });
    rig.free(&["http://a", "http://b"]);
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://b/1",
        "http://b/2",
        "http://b/3",
    ]);
    assert_eq!(rig.heart.census().bottleneck, Bottleneck::Sockets);
    // a was in line for its second before b had an address.
    for url in ["a/1", "a/2", "b/1", "a/3", "b/2", "b/3"] {
        let order = rig.order(&format!("http://{url}"));
        rig.none_out();
        rig.done(&order);
    }
}

#[test]
fn a_drain_gives_everything_back_and_sends_nothing_more() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_len: 2,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a/4",
        "http://b/1",
        "http://c/1",
    ]);
    let order = rig.order("http://a/1");
    let robots = rig.order("http://b/robots.txt");
    let mut back: Vec<_> = rig
        .heart
        .drain(rig.now)
        .into_iter()
        .map(|candidate| candidate.url.to_string())
        .collect();
    back.sort();
    assert_eq!(
        back,
        [
            "http://a/2",
            "http://a/3",
            "http://a/4",
            "http://b/1",
            "http://c/1"
        ]
    );
    rig.notices.clear();
    rig.give(&["http://d/1"]);
    assert!(matches!(
        rig.notices.as_slice(),
        [Notice::Return { until: None, .. }]
    ));
    rig.done(&order);
    rig.done_with(&robots, Some(moved(Some("http://e/robots.txt"))));
    rig.pass(100_000);
    rig.none_out();
    let census = rig.heart.census();
    assert_eq!((census.hosts, census.orders, census.queued), (0, 0, 0));
}

#[test]
fn a_kept_robots_txt_is_not_asked_for_again() {
    let mut rig = Rig::new(quick());
    let record = RobotsRecord {
        fetched: rig.now,
        expires: rig.now.after(Duration::from_secs(60)),
        status: 200,
        body: b"User-agent: orbweaver\nDisallow: /no".to_vec(),
    };
    rig.heart.known_robots("http://a", Some(record), rig.now);
    rig.give(&["http://a/no", "http://a/yes"]);
    rig.order("http://a/yes");
    assert_eq!(rig.refusals().len(), 1);
}

/// What a clock that was set in between makes of a kept robots.txt: one from a time to come is asked for anew,
/// and one from long ago does not hold for more than its day, whatever it says.
#[test]
fn a_robots_txt_kept_by_a_clock_that_was_wrong_expires() {
    let now = START + 200_000_000;
    for (fetched, expires, holds) in [
        (now - 1, now + 1, true),
        (now, now + 86_400_000, true),
        (now + 1, now + 86_400_000, false),
        (now + 3_600_000, u64::MAX, false),
        (now - 86_400_000, u64::MAX, false),
        (now - 86_399_999, u64::MAX, true),
        (0, now, false),
    ] {
        let mut rig = Rig::new(quick());
        rig.pass(200_000_000);
        let record = RobotsRecord {
            fetched: Timestamp::from_millis(fetched),
            expires: Timestamp::from_millis(expires),
            status: 404,
            body: Vec::new(),
        };
        rig.heart.known_robots("http://a", Some(record), rig.now);
        rig.give(&["http://a/1"]);
        let asked = if holds { "1" } else { "robots.txt" };
        rig.order(&format!("http://a/{asked}"));
    }
}

#[test]
fn what_limits_now_is_said() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        ..quick()
    });
    assert_eq!(rig.heart.census().bottleneck, Bottleneck::Candidates);
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2"]);
    assert_eq!(rig.heart.census().bottleneck, Bottleneck::Politeness);
    let order = rig.order("http://a/1");
    rig.done(&order);
    let census = rig.heart.census();
    assert_eq!(
        (census.bottleneck, census.waiting_for_time),
        (Bottleneck::Politeness, 1)
    );
    assert!(census.next_wake.is_some());
}

#[test]
fn hosts_at_rest_are_forgotten_when_they_take_too_much_memory() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        ip_per_sec: 1.0,
        rest_bytes: 10_000,
        ..quick()
    });
    for n in 0..1000u32 {
        let [_, b, c, d] = n.to_be_bytes();
        rig.addresses = Some(vec![[127, b, c, d]]);
        rig.give(&[format!("http://h{n}/").as_str()]);
        rig.no_robots(&format!("http://h{n}"));
        rig.pass(1001);
        let order = rig.order(&format!("http://h{n}/"));
        rig.done(&order);
        rig.pass(1001);
    }
    assert!(rig.heart.known_hosts() < 100, "{}", rig.heart.known_hosts());
    rig.pass(1001);
    assert_eq!(rig.heart.ips.len(), 0);
    assert!(rig.heart.alarms.len() < 10);
}
