//! What an order costs, with few hosts and with many. By hand: `cargo test -p orbweaver-urlserver --test
//! cost -- --ignored --nocapture`. Nothing is asserted about time, which is the machine's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails should panic, and this one is there to be read"
)]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use orbweaver_model::{Candidate, CrawlUrl, KeySeed, LinkKind, RobotsRecord, Timestamp};
use orbweaver_urlserver::{Action, Done, Heart, Resolved, UrlServerOptions};

const ORDERS: usize = 1_000_000;

fn candidate(host: usize, page: usize) -> Candidate {
    let url = CrawlUrl::from_canonical(&format!("http://h{host}/{page}")).unwrap();
    Candidate {
        key: url.key(KeySeed(1)),
        doc_id: 1,
        url,
        kind: LinkKind::A,
        depth: 0,
        attempts: 0,
        chain: Vec::new(),
    }
}

/// Answers everything that the heart wants, and counts the orders.
fn serve(heart: &mut Heart, now: Timestamp) -> usize {
    let mut orders = 0;
    loop {
        let actions = heart.take_actions();
        if actions.is_empty() {
            return orders;
        }
        for action in actions {
            match action {
                Action::Send(order) => {
                    orders += 1;
                    let done = Done {
                        sent: Some(now),
                        first_byte: Some(now),
                        ended: now,
                        connect_failed: false,
                        robots: None,
                    };
                    heart.done(order.trans, done, now);
                }
                Action::Resolve { host } => {
                    let number: u32 = host.trim_start_matches('h').parse().unwrap();
                    let found = Resolved {
                        addresses: vec![Ipv4Addr::from(0x0a00_0000 + number).into()],
                        ttl: Duration::from_secs(86_400),
                    };
                    heart.resolved(&host, Ok(found), now);
                }
                Action::Tell(_) => {}
            }
        }
    }
}

/// Nanoseconds per order, once every host has its slot and its address.
fn cost(hosts: usize) -> u128 {
    // One page for the first round, and one that is left: no host leaves its slot meanwhile.
    let pages = ORDERS / hosts + 2;
    let mut now = Timestamp::from_millis(1_000_000);
    let options = UrlServerOptions {
        queue_count: hosts,
        queue_len: pages,
        in_flight: hosts,
        ..UrlServerOptions::default()
    };
    let mut heart = Heart::new(options, now).unwrap();
    for host in 0..hosts {
        let record = RobotsRecord {
            fetched: now,
            expires: now.after(Duration::from_secs(80_000)),
            status: 404,
            body: Vec::new(),
        };
        heart.known_robots(&format!("http://h{host}"), record, now);
        let pages = (0..pages).map(|page| candidate(host, page)).collect();
        heart.candidates(pages, now);
    }
    assert_eq!(serve(&mut heart, now), hosts);
    let start = Instant::now();
    let mut orders = 0;
    while orders < ORDERS {
        now = heart.next_wake().unwrap().max(now);
        heart.tick(now);
        orders += serve(&mut heart, now);
    }
    start.elapsed().as_nanos() / orders as u128
}

#[test]
#[ignore = "takes a minute and a gigabyte, and only prints figures"]
fn an_order_costs_the_same_with_a_million_hosts() {
    for hosts in [1000, 10_000, 100_000, 1_000_000] {
        println!("{hosts} hosts: {} ns per order", cost(hosts));
    }
}
