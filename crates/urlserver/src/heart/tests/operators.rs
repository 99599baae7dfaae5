//! What operators set while the heart beats, and what they can ask it.

use orbweaver_model::{HostPolicy, HostSetting, PerHost};

use super::*;
use crate::message::{RobotsStanding, Spot, Wait};
use crate::options::Rates;

fn returned(rig: &mut Rig) -> Vec<String> {
    let notices = std::mem::take(&mut rig.notices);
    let urls = notices.into_iter().filter_map(|notice| match notice {
        Notice::Return {
            candidates,
            until: None,
        } => Some(candidates),
        _ => None,
    });
    urls.flatten().map(|c| c.url.to_string()).collect()
}

fn set(rig: &mut Rig, host: &str, setting: HostSetting) {
    rig.heart.set(host, setting, rig.now);
    rig.collect();
}

fn whereis(rig: &Rig, url: &str) -> (Option<Spot>, Option<Wait>) {
    let candidate = candidate(url);
    let found = rig.heart.whereis(&candidate.url, candidate.key);
    (found.spot, found.wait)
}

#[test]
fn while_paused_nothing_goes_out_and_nothing_is_asked_for() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a", "http://b"]);
    rig.give(&["http://a/1", "http://a/2"]);
    let order = rig.order("http://a/1");
    rig.heart.pause(true, rig.now);
    rig.done(&order);
    rig.notices.clear();
    rig.give(&["http://b/1"]);
    rig.pass(10_000);
    rig.none_out();
    assert!(rig.requests().is_empty());
    assert!(rig.heart.census().paused);
    rig.heart.pause(false, rig.now);
    rig.collect();
    rig.order("http://a/2");
    rig.order("http://b/1");
}

#[test]
fn a_blocked_host_gives_its_urls_back_and_takes_no_more() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_len: 2,
        ..quick()
    });
    rig.free(&["http://a", "http://b"]);
    // In the queue, left over, waiting for a robots.txt, and out.
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a/4",
        "http://a:81/5",
        "http://b/1",
    ]);
    let order = rig.order("http://a/1");
    rig.order("http://b/1");
    set(&mut rig, "a", HostSetting::Blocked(true));
    let mut home = returned(&mut rig);
    home.sort();
    let expected = ["http://a/2", "http://a/3", "http://a/4", "http://a:81/5"];
    assert_eq!(home, expected);
    rig.done(&order);
    rig.give(&["http://a/6"]);
    assert_eq!(returned(&mut rig), ["http://a/6"]);
    rig.none_out();
    assert_eq!(rig.heart.census().hosts, 1, "its queue is free for others");
    set(&mut rig, "a", HostSetting::Blocked(false));
    rig.give(&["http://a/2"]);
    rig.order("http://a/2");
}

#[test]
fn a_robots_txt_that_moves_to_a_blocked_host_cannot_be_had() {
    let mut rig = Rig::new(UrlServerOptions {
        settings: vec![("b".into(), HostSetting::Blocked(true))],
        ..quick()
    });
    rig.give(&["http://a/1"]);
    for _ in 0..5 {
        rig.robots("http://a", moved(Some("http://b/robots.txt")));
        rig.none_out();
        rig.pass(60_000);
    }
    rig.none_out();
    let refusals = rig.refusals();
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].1.reason.contains("blocked"), "{refusals:?}");
}

#[test]
fn a_host_with_a_gap_of_its_own_keeps_it() {
    let gap = |seconds| HostSetting::Gap(Some(Duration::from_secs(seconds)));
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        settings: vec![("a".into(), gap(5))],
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2", "http://a/3", "http://a/4"]);
    let order = rig.order("http://a/1");
    rig.done(&order);
    rig.pass(5000);
    rig.none_out();
    rig.pass(1);
    let order = rig.order("http://a/2");
    rig.done(&order);
    // A longer one holds for the wait that has begun.
    set(&mut rig, "a", gap(9));
    rig.pass(9000);
    rig.none_out();
    rig.pass(1);
    let order = rig.order("http://a/3");
    rig.done(&order);
    // And the crawl's own again.
    set(&mut rig, "a", HostSetting::Gap(None));
    rig.pass(1001);
    rig.order("http://a/4");
}

#[test]
fn a_shorter_gap_never_goes_below_crawl_delay() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        ..quick()
    });
    rig.give(&["http://a/1"]);
    rig.robots("http://a", fetched("User-agent: *\nCrawl-delay: 3\n"));
    set(&mut rig, "a", HostSetting::Gap(Some(Duration::ZERO)));
    rig.pass(3000);
    rig.none_out();
    rig.pass(1);
    rig.order("http://a/1");
}

#[test]
fn other_rates_hold_for_the_waits_that_have_begun() {
    let rates = |per_sec| Rates {
        host_per_sec: per_sec,
        ip_per_sec: per_sec,
        ip_concurrent: 1,
        hosts: PerHost::default(),
    };
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        ip_per_sec: 1.0,
        ..quick()
    });
    rig.free(&["http://a", "http://b"]);
    rig.give(&["http://a/1", "http://a/2", "http://b/1", "http://b/2"]);
    let order = rig.order("http://a/1");
    rig.done(&order);
    rig.heart.set_rates(rates(0.1), rig.now);
    rig.pass(10_000);
    rig.none_out();
    rig.pass(1);
    let order = rig.orders.pop_front().unwrap();
    rig.done(&order);
    rig.none_out();
    rig.heart.set_rates(rates(10.0), rig.now);
    rig.pass(101);
    let order = rig.orders.pop_front().unwrap();
    rig.done(&order);
    rig.none_out();
}

/// One host with a policy of its own.
fn policy(host: &str, policy: HostPolicy) -> PerHost<HostPolicy> {
    let mut hosts = PerHost::default();
    hosts.set_host(host, policy);
    hosts
}

#[test]
fn a_host_has_the_rate_and_the_window_of_the_configuration() {
    let slow = HostPolicy {
        rate: Some(0.1),
        ..HostPolicy::default()
    };
    let wide = HostPolicy {
        per_host: Some(2),
        ..HostPolicy::default()
    };
    let mut rig = Rig::new(UrlServerOptions {
        hosts: policy("a", slow),
        ..quick()
    });
    rig.free(&["http://a", "http://b"]);
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://b/1",
        "http://b/2",
        "http://b/3",
    ]);
    let order = rig.order("http://a/1");
    rig.done(&order);
    let order = rig.order("http://b/1");
    rig.done(&order);
    rig.order("http://b/2");
    rig.pass(10_000);
    rig.none_out();
    rig.pass(1);
    let order = rig.order("http://a/2");
    // Others from now on, as after a reload: b may have two out, and a no longer waits.
    let rates = Rates {
        host_per_sec: 0.0,
        ip_per_sec: 0.0,
        ip_concurrent: 100,
        hosts: policy("b", wide),
    };
    rig.give(&["http://a/3"]);
    rig.heart.set_rates(rates, rig.now);
    rig.collect();
    rig.order("http://b/3");
    rig.done(&order);
    rig.order("http://a/3");
}

#[test]
fn a_robots_txt_that_is_ignored_is_neither_asked_for_nor_obeyed() {
    let ignoring = HostPolicy {
        ignore_robots: true,
        ..HostPolicy::default()
    };
    let mut rig = Rig::new(UrlServerOptions {
        hosts: policy("a", ignoring),
        ..quick()
    });
    rig.give(&["http://a/1", "http://b/1"]);
    let order = rig.order("http://a/1");
    rig.robots("http://b", fetched("User-agent: *\nDisallow: /\n"));
    assert_eq!(rig.refusals().len(), 1, "b obeys");
    rig.done(&order);
    // What is known of it does not count, a Crawl-delay neither.
    let known = RobotsRecord {
        fetched: rig.now,
        expires: rig.now.after(Duration::from_secs(3600)),
        status: 200,
        body: b"User-agent: *\nCrawl-delay: 9\nDisallow: /\n".to_vec(),
    };
    rig.heart.known_robots("http://a", Some(known), rig.now);
    rig.give(&["http://a/2", "http://a/3"]);
    let order = rig.order("http://a/2");
    rig.done(&order);
    let order = rig.order("http://a/3");
    // Without the exception it counts again.
    let rates = Rates {
        host_per_sec: 0.0,
        ip_per_sec: 0.0,
        ip_concurrent: 100,
        hosts: PerHost::default(),
    };
    rig.heart.set_rates(rates, rig.now);
    rig.done(&order);
    rig.give(&["http://a/4"]);
    rig.none_out();
}

#[test]
fn a_url_can_be_found_wherever_it_is() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 1,
        queue_len: 3,
        host_per_sec: 1.0,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&[
        "http://a/1",
        "http://a/2",
        "http://a/3",
        "http://a:81/4",
        "http://a/5",
        "http://a/6",
        "http://b/1",
    ]);
    let order = rig.order("http://a/1");
    let (spot, wait) = whereis(&rig, "http://a/1");
    assert!(matches!(spot, Some(Spot::Out { order: found, .. }) if found == order.trans));
    assert_eq!(wait, None);
    let (spot, wait) = whereis(&rig, "http://a/2");
    assert_eq!((spot, wait), (Some(Spot::Next), Some(Wait::Answer)));
    rig.done(&order);
    let until = rig.now.after(Duration::from_millis(1001));
    let (spot, wait) = whereis(&rig, "http://a/3");
    assert_eq!(spot, Some(Spot::Queue { ahead: 1 }));
    assert_eq!(wait, Some(Wait::Gap { until }));
    let (spot, _) = whereis(&rig, "http://a/6");
    assert_eq!(spot, Some(Spot::Leftover { ahead: 1 }));
    let (spot, wait) = whereis(&rig, "http://b/1");
    assert_eq!(spot, Some(Spot::Leftover { ahead: 0 }));
    assert_eq!(wait, Some(Wait::Queue));
    assert_eq!(whereis(&rig, "http://a/unknown"), (None, None));
    // The next one is done, then the other origin's robots.txt is waited for.
    let until = rig.now.after(Duration::from_secs(9));
    rig.heart.hold("a", until, rig.now);
    let (_, wait) = whereis(&rig, "http://a/2");
    assert_eq!(wait, Some(Wait::Hold { until }));
    for page in ["http://a/2", "http://a/3"] {
        rig.pass(9000);
        rig.pass(1001);
        let order = rig.order(page);
        rig.done(&order);
    }
    let (spot, wait) = whereis(&rig, "http://a:81/4");
    assert_eq!(spot, Some(Spot::Parked { ahead: 0 }));
    assert_eq!(wait, Some(Wait::Robots { until: None }));
    let parked = candidate("http://a:81/4");
    let found = rig.heart.whereis(&parked.url, parked.key);
    assert_eq!(found.robots, RobotsStanding::Asked);
    assert_eq!(found.delay, Duration::from_secs(1));
}

/// The order of a robots.txt that was on its way when its host was blocked is not sent, and not made again.
#[test]
fn a_robots_txt_of_a_blocked_host_is_not_asked_for_again() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    let order = rig.order("http://a/robots.txt");
    set(&mut rig, "a", HostSetting::Blocked(true));
    rig.heart.given_up(order.trans, rig.now);
    rig.pass(100_000);
    rig.none_out();
    assert_eq!(rig.heart.census().hosts, 0, "it has no queue any more");
    set(&mut rig, "a", HostSetting::Blocked(false));
    rig.give(&["http://a/1"]);
    rig.order("http://a/robots.txt");
}

/// The same for the robots.txt of another host that moved to it: that host's URLs are refused for now.
#[test]
fn a_robots_txt_that_moved_to_a_blocked_host_has_failed() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 3,
        ..quick()
    });
    rig.give(&["http://a/1"]);
    rig.robots("http://a", moved(Some("http://b/r.txt")));
    let order = rig.order("http://b/r.txt");
    set(&mut rig, "b", HostSetting::Blocked(true));
    rig.heart.given_up(order.trans, rig.now);
    rig.collect();
    rig.none_out();
    let (spot, _) = whereis(&rig, "http://a/1");
    assert_eq!(spot, Some(Spot::Parked { ahead: 0 }));
    rig.pass(3000);
    rig.order("http://a/robots.txt");
}
