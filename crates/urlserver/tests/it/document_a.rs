//! The design of the URL server, paragraph by paragraph. Each test opens with what the document says, in
//! our words; the heart is asked as the doc index and the spider would ask it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, KeySeed, LinkKind, Order, RobotsRecord, Timestamp};
use orbweaver_urlserver::{Action, Done, Heart, Notice, Resolved, UrlServerOptions};

/// The URL server between a doc index, a resolver and a spider that do what the test says.
struct Desk {
    heart: Heart,
    now: Timestamp,
    /// What the spider has been told to fetch.
    spider: VecDeque<Order>,
    /// What the doc index has been asked for: how much, and the reject list.
    requests: VecDeque<(usize, Vec<u64>)>,
    /// What went back to the doc index.
    returned: Vec<String>,
    /// Names that the resolver has been asked for and has not answered.
    questions: Vec<String>,
    addresses: HashMap<String, IpAddr>,
}

fn hash(host: &str) -> u64 {
    KeySeed(1).host(host)
}

fn candidate(url: &str) -> Candidate {
    let url = CrawlUrl::from_canonical(url).unwrap();
    Candidate {
        key: url.key(KeySeed(1)),
        doc_id: 1,
        url,
        kind: LinkKind::A,
        depth: 0,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

/// Queue_Count 3, Queue_Len 4, Req_Host_Concurrent 2, and no gaps where the paragraph is not about them.
fn settings() -> UrlServerOptions {
    UrlServerOptions {
        queue_count: 3,
        queue_len: 4,
        host_concurrent: 2,
        host_per_sec: 0.0,
        ip_concurrent: 1000,
        ip_per_sec: 0.0,
        ..UrlServerOptions::default()
    }
}

impl Desk {
    fn new(options: UrlServerOptions) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let mut heart = Heart::new(options, now).unwrap();
        heart.tick(now);
        let mut desk = Self {
            heart,
            now,
            spider: VecDeque::new(),
            requests: VecDeque::new(),
            returned: Vec::new(),
            questions: Vec::new(),
            addresses: HashMap::new(),
        };
        desk.listen();
        desk
    }

    /// Names an address for hosts; those without one are not answered for.
    fn resolve(&mut self, hosts: &[&str], ip: &str) {
        for host in hosts {
            self.addresses.insert((*host).into(), ip.parse().unwrap());
        }
        self.answer_resolver();
    }

    fn answer_resolver(&mut self) {
        loop {
            let known = |host: &String| self.addresses.contains_key(host);
            let Some(at) = self.questions.iter().position(known) else {
                return;
            };
            let host = self.questions.remove(at);
            let found = Resolved {
                addresses: vec![self.addresses[&host]],
                ttl: Duration::from_secs(3600),
            };
            self.heart.resolved(&host, Ok(found), self.now);
            self.take_actions();
        }
    }

    fn take_actions(&mut self) {
        for action in self.heart.take_actions() {
            match action {
                Action::Send(order) => self.spider.push_back(order),
                Action::GiveUp { .. } => unreachable!("nothing can be given up here"),
                Action::Resolve { host } => self.questions.push(host.to_string()),
                Action::Tell(Notice::NeedCandidates { want, mut reject }) => {
                    reject.sort_unstable();
                    self.requests.push_back((want, reject));
                }
                Action::Tell(Notice::Return { candidates, .. }) => {
                    let urls = candidates.into_iter().map(|c| c.url.to_string());
                    self.returned.extend(urls);
                }
                Action::Tell(_) => {}
            }
        }
    }

    fn listen(&mut self) {
        self.take_actions();
        self.answer_resolver();
    }

    /// The doc index answers.
    fn candidates(&mut self, urls: &[String]) {
        for url in urls {
            // robots.txt is another document's matter: everybody here has none.
            let url = CrawlUrl::from_canonical(url).unwrap();
            let record = RobotsRecord {
                fetched: self.now,
                expires: self.now.after(Duration::from_secs(3600)),
                status: 404,
                body: Vec::new(),
            };
            self.heart
                .known_robots(url.origin(), Some(record), self.now);
        }
        let urls = urls.iter().map(|url| candidate(url)).collect();
        self.heart.candidates(urls, self.now);
        self.listen();
    }

    fn done(&mut self, order: &Order) {
        let done = Done {
            sent: Some(self.now),
            first_byte: Some(self.now),
            ended: self.now,
            connect_failed: false,
            failed: false,
            robots: None,
        };
        self.heart.done(order.trans, done, self.now);
        self.listen();
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.heart.tick(self.now);
        self.listen();
    }

    /// What the spider has been told since the last time.
    fn ordered(&mut self) -> Vec<Order> {
        self.spider.drain(..).collect()
    }

    /// The reject list of the one request since the last time.
    fn rejected(&mut self) -> Vec<u64> {
        assert_eq!(self.requests.len(), 1, "{:?}", self.requests);
        self.requests.pop_front().unwrap().1
    }
}

fn pages(host: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{host}/{n}")).collect()
}

fn urls(orders: &[Order]) -> Vec<&str> {
    orders.iter().map(|order| order.url().as_str()).collect()
}

fn hashes(hosts: &[&str]) -> Vec<u64> {
    let mut hashes: Vec<u64> = hosts.iter().map(|host| hash(host)).collect();
    hashes.sort_unstable();
    hashes
}

/// "A series of per-host queues": Queue_Count of them, each Queue_Len long, one host in each; the host is
/// not fixed, an emptied queue takes any.
#[test]
fn queues() {
    let mut desk = Desk::new(settings());
    desk.resolve(&["a", "b", "c", "d"], "10.0.0.1");
    desk.candidates(&[pages("a", 1), pages("b", 1), pages("c", 1), pages("d", 1)].concat());
    let orders = desk.ordered();
    assert_eq!(urls(&orders), ["http://a/0", "http://b/0", "http://c/0"]);
    let census = desk.heart.census();
    assert_eq!((census.hosts, census.leftover), (3, 1));
    desk.done(&orders[1]);
    let order = desk.ordered().remove(0);
    assert_eq!(order.url().as_str(), "http://d/0");
    assert_eq!(order.trans.slot, orders[1].trans.slot, "the queue of b");
}

/// "Leftover queue": a growable array of what matches a host but does not fit, and of what matches none
/// because all queues are taken. It fills queues before anything new does.
#[test]
fn leftover() {
    let mut desk = Desk::new(settings());
    desk.resolve(&["a", "b", "c", "d"], "10.0.0.1");
    desk.candidates(&[pages("a", 9), pages("b", 1), pages("c", 1), pages("d", 2)].concat());
    let census = desk.heart.census();
    // Of a two are active and four wait in the queue; three do not fit. Both of d have no queue.
    assert_eq!((census.orders, census.queued, census.leftover), (4, 4, 5));
    let mut asked = Vec::new();
    while let Some(order) = desk.spider.pop_front() {
        asked.push(order.url().to_string());
        desk.done(&order);
    }
    assert_eq!(
        asked
            .iter()
            .filter(|url| url.starts_with("http://a/"))
            .count(),
        9
    );
    assert_eq!(
        asked
            .iter()
            .filter(|url| url.starts_with("http://d/"))
            .count(),
        2
    );
    let of_a = asked.iter().filter(|url| url.starts_with("http://a/"));
    assert!(of_a.eq(&pages("a", 9)), "in their order");
}

/// The array grows, but not beyond its memory: the surplus goes back to the doc index, which has a disk.
#[test]
fn leftover_spills() {
    let mut desk = Desk::new(UrlServerOptions {
        leftover_bytes: 500,
        ..settings()
    });
    desk.resolve(&["a"], "10.0.0.1");
    desk.requests.clear();
    desk.candidates(&pages("a", 30));
    let census = desk.heart.census();
    assert_eq!((census.orders, census.queued), (2, 4));
    assert!(census.leftover > 0 && census.leftover < 20, "{census:?}");
    assert_eq!(census.leftover + desk.returned.len() + 6, 30);
    assert_eq!(census.spilled, desk.returned.len() as u64);
    // a is on the reject list, so what went back does not come again while there is no room.
    assert_eq!(desk.rejected(), hashes(&["a"]));
}

/// "Any URL within the Active range, as controlled by Req_Host_Concurrent, will be sent": never more of
/// a host, and the next one only after a DONE.
#[test]
fn active_range() {
    let mut desk = Desk::new(settings());
    desk.resolve(&["a"], "10.0.0.1");
    desk.candidates(&pages("a", 4));
    let orders = desk.ordered();
    assert_eq!(urls(&orders), ["http://a/0", "http://a/1"]);
    desk.wait(600_000);
    assert!(desk.ordered().is_empty());
    desk.done(&orders[1]);
    assert_eq!(urls(&desk.ordered()), ["http://a/2"]);
}

/// "How fast we allow connections to be opened": Req_Host_Per_Sec, whatever the active range would allow.
#[test]
fn rate() {
    let mut desk = Desk::new(UrlServerOptions {
        host_per_sec: 0.5,
        ..settings()
    });
    desk.resolve(&["a"], "10.0.0.1");
    desk.candidates(&pages("a", 3));
    for page in 0..3 {
        let orders = desk.ordered();
        assert_eq!(urls(&orders), [format!("http://a/{page}")]);
        desk.done(&orders[0]);
        desk.wait(2000);
        assert!(desk.ordered().is_empty());
        desk.wait(1);
    }
}

/// "Multiple domains running from the same IP": the limits hold per address too.
#[test]
fn one_machine_many_names() {
    let mut desk = Desk::new(UrlServerOptions {
        ip_concurrent: 1,
        ip_per_sec: 1.0,
        ..settings()
    });
    desk.resolve(&["a", "b", "c"], "10.0.0.1");
    desk.candidates(&[pages("a", 1), pages("b", 1), pages("c", 1)].concat());
    for host in ["a", "b", "c"] {
        let orders = desk.ordered();
        assert_eq!(urls(&orders), [format!("http://{host}/0")]);
        desk.done(&orders[0]);
        desk.wait(1000);
        assert!(desk.ordered().is_empty());
        desk.wait(1);
    }
}

/// "Two mappings when it receives a new batch": domain → IP, and from it IP → URLs. With more than N
/// entries for one IP, all domains on it are on the reject list of the next query.
#[test]
fn two_maps() {
    let mut desk = Desk::new(UrlServerOptions {
        queue_count: 100,
        ip_batch_max: 5,
        ..settings()
    });
    desk.resolve(&["a", "b", "c"], "10.0.0.1");
    desk.resolve(&["d", "e"], "10.0.0.2");
    desk.requests.clear();
    // Six on the first address, in three domains none of whose queues is half full; two on the second.
    let batch = [
        pages("a", 3),
        pages("b", 2),
        pages("c", 1),
        pages("d", 1),
        pages("e", 1),
    ];
    desk.candidates(&batch.concat());
    desk.wait(100);
    let first = desk.rejected();
    for host in ["a", "b", "c"] {
        assert!(
            first.contains(&hash(host)),
            "{host} shares a crowded address"
        );
    }
    for host in ["d", "e"] {
        assert!(!first.contains(&hash(host)), "{host} does not");
    }
    // "This mapping is cleared every time a new request to the doc index is made."
    while let Some(order) = desk.spider.pop_front() {
        desk.done(&order);
    }
    desk.candidates(&pages("d", 1));
    desk.wait(100);
    assert_eq!(desk.requests.pop_back().unwrap().1, []);
}

/// N entries are not more than N.
#[test]
fn as_many_as_allowed_is_not_too_many() {
    let mut desk = Desk::new(UrlServerOptions {
        queue_count: 100,
        queue_len: 50,
        ip_batch_max: 5,
        ..settings()
    });
    desk.resolve(&["a", "b"], "10.0.0.1");
    desk.requests.clear();
    desk.candidates(&[pages("a", 3), pages("b", 2)].concat());
    desk.wait(100);
    assert_eq!(desk.rejected(), []);
}

/// The maps need addresses, so every name of a batch is resolved, also one without a queue. A name that is
/// not answered for in time counts for no address.
#[test]
fn names_of_a_batch_are_resolved() {
    let mut desk = Desk::new(UrlServerOptions {
        queue_count: 2,
        queue_len: 50,
        ip_batch_max: 5,
        ..settings()
    });
    desk.candidates(&[pages("a", 3), pages("b", 3), pages("c", 3)].concat());
    desk.questions.sort();
    assert_eq!(desk.questions, ["a", "b", "c"], "once each");
    // Without an answer for c there are three URLs on one address and three on the other.
    desk.resolve(&["a"], "10.0.0.1");
    desk.resolve(&["b"], "10.0.0.2");
    desk.requests.clear();
    while let Some(order) = desk.spider.pop_front() {
        desk.done(&order);
    }
    assert!(desk.requests.is_empty(), "a moment for the resolver");
    desk.wait(100);
    assert_eq!(desk.rejected(), [], "c waits for its address");
    // The same batch with an answer in time.
    let mut desk = Desk::new(UrlServerOptions {
        queue_count: 2,
        queue_len: 50,
        ip_batch_max: 5,
        ..settings()
    });
    desk.resolve(&["a"], "10.0.0.1");
    desk.resolve(&["b", "c"], "10.0.0.2");
    desk.candidates(&[pages("a", 3), pages("b", 3), pages("c", 3)].concat());
    desk.requests.clear();
    while let Some(order) = desk.spider.pop_front() {
        desk.done(&order);
    }
    desk.wait(100);
    assert_eq!(desk.rejected(), hashes(&["b", "c"]));
}

/// When nothing but a crowded address is left, its domains come with the query after the next, at once.
#[test]
fn a_crowded_address_is_not_starved() {
    let mut desk = Desk::new(UrlServerOptions {
        queue_count: 100,
        ip_batch_max: 1,
        ..settings()
    });
    desk.resolve(&["a", "b"], "10.0.0.1");
    desk.candidates(&[pages("a", 1), pages("b", 1)].concat());
    desk.wait(100);
    let rejected = desk.requests.pop_back().unwrap().1;
    assert_eq!(rejected, hashes(&["a", "b"]));
    desk.candidates(&[]);
    assert_eq!(desk.requests.pop_back().unwrap().1, []);
}

/// "While at least 1 per-host queue is empty (and no items in the leftover queue can fill them), produce
/// a request. Any queue that is full should be in the reject list."
#[test]
fn requests() {
    let mut desk = Desk::new(settings());
    let hosts = ["a", "b", "c", "d"];
    for (n, host) in hosts.iter().enumerate() {
        desk.resolve(&[host], &format!("10.0.0.{n}"));
    }
    assert_eq!(desk.rejected(), [], "every queue is empty");
    desk.candidates(&[pages("a", 6), pages("b", 1)].concat());
    desk.wait(100);
    assert_eq!(desk.rejected(), hashes(&["a"]), "one is empty, one is full");
    desk.candidates(&[pages("c", 1), pages("d", 1)].concat());
    desk.wait(100);
    assert!(desk.requests.is_empty(), "none is empty");
    let orders = desk.ordered();
    let of_b = orders.iter().find(|o| o.url().host() == "b").unwrap();
    desk.done(of_b);
    desk.wait(100);
    assert!(desk.requests.is_empty(), "d was left over and fills it");
    let of_d = desk.ordered().remove(0);
    desk.done(&of_d);
    desk.wait(100);
    assert_eq!(desk.rejected(), hashes(&["a"]));
}

/// "The ID will represent 2 pieces of data: the host slot and the active slot." When it is DONE that place
/// is free for the next URL, and a late answer to the old name changes nothing.
#[test]
fn names_of_orders() {
    let mut desk = Desk::new(settings());
    desk.resolve(&["a", "b"], "10.0.0.1");
    desk.candidates(&[pages("a", 4), pages("b", 1)].concat());
    let orders = desk.ordered();
    let slots: Vec<_> = orders
        .iter()
        .map(|o| (o.trans.slot, o.trans.active))
        .collect();
    assert_eq!(slots, [(0, 0), (0, 1), (1, 0)]);
    desk.done(&orders[1]);
    let next = desk.ordered().remove(0);
    assert_eq!((next.trans.slot, next.trans.active), (0, 1));
    desk.done(&orders[1]);
    assert!(desk.ordered().is_empty());
}
