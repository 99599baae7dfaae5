//! Webs of several shapes, crawled to the end: every page once, nothing rude, everything kept.

use std::collections::HashSet;
use std::time::Duration;

use orbweaver_simweb::{SimConfig, SimWeb, Sizes, VisitLimits};

use crate::support::{Place, Status, run, sim};

/// Requests at once to a host, to an address, and the least time between two to either.
struct Manners {
    per_host: u32,
    per_ip: u32,
    gap: Option<Duration>,
}

/// Crawls a web whole and holds the result against what its servers counted.
fn crawl_whole(config: SimConfig, flags: &[&str], manners: &Manners) -> Status {
    let web = sim(config);
    let place = Place::new();
    run(command(&web, &place, flags, manners)).expect(0);
    let stats = web.stats();
    let limits = VisitLimits {
        per_host: Some(manners.per_host),
        per_ip: Some(manners.per_ip),
        host_gap: manners.gap,
        ip_gap: manners.gap,
    };
    assert_eq!(stats.faults(&limits), Vec::<String>::new());
    assert_eq!(stats.fetched, stats.expected);
    assert_eq!(stats.delivered, stats.fetched);
    assert_eq!(stats.aborted, 0);
    let origins = u64::from(web.hosts());
    assert_eq!(stats.robots_requests, origins, "robots.txt once a host");
    agrees(&web, &place)
}

fn command(web: &SimWeb, place: &Place, flags: &[&str], manners: &Manners) -> Vec<String> {
    let (per_host, per_ip) = (manners.per_host.to_string(), manners.per_ip.to_string());
    let seed = web.seeds().remove(0);
    let resolver = web.dns_addr().map(|addr| addr.to_string());
    let mut all = vec![
        seed.as_str(),
        "--scope",
        "any",
        "--per-host",
        &per_host,
        "--per-ip",
        &per_ip,
    ];
    if let Some(resolver) = &resolver {
        all.extend(["--resolver", resolver]);
    }
    all.extend(flags);
    place.crawl(&all)
}

/// The ledger, the listing, the archive and the servers tell the same story.
fn agrees(web: &SimWeb, place: &Place) -> Status {
    let stats = web.stats();
    let status = place.status();
    assert!(status.balanced && !status.running, "{status:?}");
    assert_eq!(status.queued, 0);
    assert_eq!(
        status.accepted,
        status.done + status.failed + status.refused
    );
    // A request on a connection that the server gave up is sent again on a new one: one attempt, seen twice.
    let asked = stats.requests;
    assert!(
        (status.requests..=status.requests + stats.failures).contains(&asked),
        "{asked} requests at the servers, {} at the crawler",
        status.requests
    );
    let fates = place.outcomes();
    assert_eq!(fates.len() as u64, status.accepted);
    let of_class = |class| fates.iter().filter(move |fate| fate.class == class);
    // Sitemaps are documents beside the pages.
    let sitemaps = of_class("success").filter(|fate| fate.kind == "sitemap_file");
    assert_eq!(status.pages, stats.fetched + sitemaps.count() as u64);
    let succeeded: HashSet<&str> = of_class("success").map(|fate| fate.url.as_str()).collect();
    let missing: Vec<String> = web
        .expected_pages()
        .filter(|page| !succeeded.contains(page.as_str()))
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "not listed as fetched");
    assert_eq!(
        of_class("redirect_followed").count() as u64,
        stats.redirects
    );
    assert_eq!(
        of_class("http_error").count() as u64,
        stats.not_found,
        "what is linked and not there"
    );
    for denied in of_class("denied_robots") {
        assert!(
            denied.why().starts_with("robots.txt: Disallow"),
            "{denied:?}"
        );
        assert_eq!((denied.attempts, denied.bytes), (0, 0), "{denied:?}");
    }
    let found = place.check();
    assert_eq!(found["errors"], 0);
    assert_eq!(found["urls"], status.accepted);
    status
}

/// Small pages: what is tested is their number.
fn many() -> SimConfig {
    SimConfig {
        page_bytes: 2048,
        ..SimConfig::default()
    }
}

const QUICK: Manners = Manners {
    per_host: 4,
    per_ip: 4,
    gap: None,
};

#[test]
fn one_host_of_twenty_thousand_pages() {
    let config = SimConfig {
        hosts: 1,
        pages: 20_000,
        ..many()
    };
    let status = crawl_whole(config, &[], &QUICK);
    assert!(status.classes["denied_robots"] > 100, "{status:?}");
}

#[test]
fn two_hundred_hosts_of_a_hundred_pages() {
    let config = SimConfig {
        hosts: 200,
        pages: 100,
        ..many()
    };
    crawl_whole(config, &[], &QUICK);
}

#[test]
fn two_thousand_names_on_two_hundred_addresses() {
    let config = SimConfig {
        hosts: 2000,
        pages: 10,
        ips: 200,
        ..many()
    };
    let manners = Manners {
        per_host: 1,
        per_ip: 2,
        gap: None,
    };
    let status = crawl_whole(config, &[], &manners);
    assert_eq!(status.hosts, 2000);
}

#[test]
fn a_web_with_latency_and_jitter() {
    let config = SimConfig {
        hosts: 60,
        pages: 40,
        page_bytes: 8192,
        latency_ms: 30,
        jitter_ms: 60,
        ..SimConfig::default()
    };
    let manners = Manners {
        per_host: 3,
        per_ip: 3,
        gap: None,
    };
    crawl_whole(config, &[], &manners);
}

#[test]
fn sizes_by_zipfs_law() {
    let config = SimConfig {
        seed: 5,
        hosts: 150,
        pages: 30,
        ips: 40,
        sizes: Sizes::Zipf,
        redirects: 60,
        broken: 40,
        disallowed: 60,
        ..many()
    };
    crawl_whole(config, &["--concurrency", "24"], &QUICK);
}

#[test]
fn without_sitemaps_every_page_is_found_by_its_links() {
    let config = SimConfig {
        seed: 11,
        hosts: 40,
        pages: 60,
        sitemaps: false,
        gzip: false,
        links_per_page: 12,
        ..many()
    };
    crawl_whole(config, &[], &QUICK);
}

/// Ten requests a second, to names of which five share an address: the gap holds for each address, as its
/// server sees it. With one request out at a time it is exact, whatever stalls: the server's clock is the
/// machine's, read in whole microseconds, and nothing is allowed for.
#[test]
fn the_gap_holds_for_hosts_and_for_addresses_they_share() {
    let config = SimConfig {
        hosts: 30,
        pages: 6,
        ips: 6,
        jitter_ms: 20,
        ..many()
    };
    crawl_whole(config, &["--rate", "10"], &ONE_IN_TEN);
}

/// One request at a time, ten a second.
const ONE_IN_TEN: Manners = Manners {
    per_host: 1,
    per_ip: 1,
    gap: Some(Duration::from_millis(100)),
};

#[test]
fn the_gap_holds_while_answers_are_slow() {
    let config = SimConfig {
        hosts: 8,
        pages: 6,
        latency_ms: 250,
        jitter_ms: 100,
        ..many()
    };
    crawl_whole(config, &["--rate", "10"], &ONE_IN_TEN);
}

/// With several requests out, the next may go before the last is answered, and only the reckoned way of a
/// twentieth of the delay stands between our clock and the server's: a machine that stalls for longer than
/// that can shorten a gap by the rest. Half of it is far more than any stall.
#[test]
fn the_gap_holds_for_windows_that_do_not_wait_for_slow_answers() {
    let config = SimConfig {
        hosts: 8,
        pages: 6,
        latency_ms: 700,
        ..many()
    };
    let manners = Manners {
        per_host: 3,
        per_ip: 3,
        gap: Some(Duration::from_millis(125)),
    };
    crawl_whole(config, &["--rate", "4"], &manners);
}

/// Hosts that answer their first requests with 500, with 503 and Retry-After, or not at all.
fn troubled(recover_after: u32) -> SimConfig {
    SimConfig {
        hosts: 20,
        pages: 12,
        slow_hosts: 3,
        slow_ms: 600,
        failing_hosts: 6,
        recover_after,
        ..many()
    }
}

fn stubborn(place: &Place) -> String {
    // Each failing host spends three requests before it recovers, and one URL may meet all of them.
    let text = "[retry]\nattempts = 5\nbusy_attempts = 5\ndelay_s = 0.1\n";
    place.file("retry.toml", text)
}

#[test]
fn failing_and_slow_hosts_that_recover() {
    let beside = Place::new();
    let config = stubborn(&beside);
    let status = crawl_whole(troubled(3), &["-c", &config], &QUICK);
    assert!(status.requests >= status.pages + 18, "{status:?}");
}

#[test]
fn the_gap_holds_for_hosts_that_break_connections_off() {
    let beside = Place::new();
    let config = stubborn(&beside);
    let web = SimConfig {
        slow_hosts: 0,
        ..troubled(5)
    };
    crawl_whole(web, &["-c", &config, "--rate", "10"], &ONE_IN_TEN);
}

#[test]
fn hosts_that_never_recover_fail_and_hold_up_nobody() {
    let web = sim(troubled(0));
    let place = Place::new();
    let config = stubborn(&place);
    run(command(&web, &place, &["-c", &config], &QUICK)).expect(0);
    assert_eq!(
        web.stats().faults(&VisitLimits::default()),
        Vec::<String>::new()
    );
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    let fates = place.fates();
    for host in 14..20 {
        let root = fates.of(&web.url(host, 0));
        let (class, code) = match host % 3 {
            2 => ("http_error", Some(500)),
            0 => ("http_error", Some(503)),
            _ => ("failed_protocol", None),
        };
        assert_eq!(
            (root.class.as_str(), root.status),
            (class, code),
            "{root:?}"
        );
        assert_eq!(root.attempts, 5, "{root:?}");
    }
    place.check();
}
