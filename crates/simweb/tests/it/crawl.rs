//! A complete and polite crawl finds every page, and the counters find nothing wrong with it.

use std::collections::{HashMap, HashSet, VecDeque};

use orbweaver_simweb::{SimConfig, SimWeb, Sizes, VisitLimits};
use url::Url;

use crate::client::{Client, Reply};
use crate::links;
use crate::names;

/// Asks one URL after the other, on a connection for each address.
struct Crawl<'a> {
    web: &'a SimWeb,
    clients: HashMap<String, Client>,
    queue: VecDeque<String>,
    known: HashSet<String>,
}

impl<'a> Crawl<'a> {
    fn new(web: &'a SimWeb) -> Self {
        let mut crawl = Self {
            web,
            clients: HashMap::new(),
            queue: VecDeque::new(),
            known: HashSet::new(),
        };
        web.seeds().into_iter().for_each(|seed| crawl.found(seed));
        crawl
    }

    fn found(&mut self, url: String) {
        let path = Url::parse(&url).unwrap().path().to_owned();
        let private = path.starts_with("/private/") && !path.starts_with("/private/open/");
        let forbidden = private || path.starts_with("/search") || path.ends_with(".pdf");
        if !forbidden && self.known.insert(url.clone()) {
            self.queue.push_back(url);
        }
    }

    /// Asks again on a new connection when a host resets the old one, as often as hosts fail here.
    fn get(&mut self, url: &str) -> Reply {
        let host = Url::parse(url).unwrap().host_str().unwrap().to_owned();
        for _ in 0..5 {
            if !self.clients.contains_key(&host) {
                let client = Client::to(names::address(self.web, &host), self.web.http_port());
                let mut client = client;
                let robots = Url::parse(url).unwrap().join("/robots.txt").unwrap();
                assert_eq!(client.get(robots.as_str()).status, 200);
                self.clients.insert(host.clone(), client);
            }
            let client = self.clients.get_mut(&host).unwrap();
            client.ask(url, "");
            match client.answer() {
                Some(reply) if reply.status < 500 => return reply,
                Some(_) => {}
                None => drop(self.clients.remove(&host)),
            }
        }
        panic!("{url} never answered");
    }

    fn run(mut self) -> usize {
        let mut redirects = 0;
        while let Some(url) = self.queue.pop_front() {
            let reply = self.get(&url);
            match reply.status {
                200 => {
                    assert_eq!(self.web.body_of(&url).as_ref(), Some(&reply.body), "{url}");
                    let html = String::from_utf8(reply.body).unwrap();
                    for link in links::canonical(&html, &url) {
                        self.found(link);
                    }
                }
                301 | 302 | 307 | 308 => {
                    redirects += 1;
                    let location = reply.field("location").unwrap();
                    let to = Url::parse(&url).unwrap().join(location).unwrap();
                    self.found(links::canonical_form(to));
                }
                404 => assert!(url.contains("/gone/"), "{url} is missing"),
                other => panic!("{url} answered {other}"),
            }
        }
        redirects
    }
}

fn crawl_all(config: SimConfig) {
    let web = SimWeb::start(config).unwrap();
    let redirects = Crawl::new(&web).run();
    let stats = web.stats();
    let limits = VisitLimits {
        per_host: Some(1),
        per_ip: Some(1),
        ..VisitLimits::default()
    };
    assert_eq!(stats.faults(&limits), Vec::<String>::new());
    let expected: HashSet<String> = web.expected_pages().collect();
    assert_eq!(stats.fetched, expected.len() as u64);
    assert_eq!(stats.expected, expected.len() as u64);
    assert!(redirects > 0 && stats.redirects == redirects as u64);
    assert!(stats.not_found > 0);
}

fn small() -> SimConfig {
    SimConfig {
        page_bytes: 4096,
        redirects: 100,
        broken: 50,
        disallowed: 100,
        ..SimConfig::default()
    }
}

#[test]
fn every_page_is_reached_once() {
    crawl_all(SimConfig {
        hosts: 25,
        pages: 60,
        ..small()
    });
}

#[test]
fn every_page_of_one_large_host_is_reached_without_extra_links() {
    crawl_all(SimConfig {
        hosts: 1,
        pages: 1500,
        links_per_page: 0,
        page_bytes: 0,
        ..small()
    });
}

#[test]
fn names_that_share_addresses_and_differ_in_size() {
    crawl_all(SimConfig {
        seed: 7,
        hosts: 40,
        pages: 20,
        ips: 6,
        sizes: Sizes::Zipf,
        threads: 2,
        ..small()
    });
}

#[test]
fn failing_hosts_recover() {
    let config = SimConfig {
        hosts: 12,
        pages: 20,
        failing_hosts: 7,
        recover_after: 3,
        ..small()
    };
    crawl_all(config);
}
