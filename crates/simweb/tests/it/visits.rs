//! Visitors that misbehave on purpose, and what is said about them.

use std::io::Read;
use std::net::Ipv4Addr;
use std::time::Duration;

use flate2::read::GzDecoder;
use orbweaver_simweb::{SimConfig, SimWeb, Stats, VisitLimits};

use crate::client::{Client, get};

fn web(config: SimConfig) -> SimWeb {
    SimWeb::start(SimConfig {
        hosts: 3,
        pages: 30,
        ..config
    })
    .unwrap()
}

fn robots_of(url: &str) -> String {
    format!("{}robots.txt", &url[..url[7..].find('/').unwrap() + 8])
}

/// A URL on some page that satisfies `wanted`, in canonical form.
fn link(web: &SimWeb, wanted: impl Fn(&str) -> bool) -> String {
    (0..web.hosts())
        .flat_map(|host| (0..web.pages(host)).map(move |page| (host, page)))
        .find_map(|(host, page)| {
            let html = String::from_utf8(web.page(host, page)).unwrap();
            let links = crate::links::canonical(&html, &web.url(host, page));
            links.into_iter().find(|link| wanted(link))
        })
        .unwrap()
}

#[test]
fn a_page_fetched_twice_is_a_duplicate() {
    let web = web(SimConfig::default());
    let url = web.url(1, 4);
    get(&robots_of(&url));
    get(&url);
    assert_eq!(web.stats().duplicates.count, 0);
    get(&url);
    let stats = web.stats();
    assert_eq!((stats.delivered, stats.fetched), (2, 1));
    assert_eq!(stats.duplicates.count, 1);
    assert!(stats.duplicates.examples[0].starts_with(&url));
    assert_eq!(stats.missed.count, 89);
}

#[test]
fn a_page_asked_for_in_another_case_of_its_escapes_is_a_duplicate() {
    let web = web(SimConfig::default());
    let url = web
        .expected_pages()
        .find(|url| url.contains("%7E"))
        .unwrap();
    assert_eq!(get(&url).status, 200);
    assert_eq!(get(&url.replace("%7E", "%7e")).status, 200);
    let stats = web.stats();
    assert_eq!((stats.duplicates.count, stats.unlinked.count), (1, 0));
}

#[test]
fn a_request_before_robots_txt_is_seen() {
    let web = web(SimConfig::default());
    let (one, two) = (web.url(0, 3), web.url(1, 3));
    get(&robots_of(&two));
    get(&two);
    assert_eq!(web.stats().before_robots.count, 0);
    get(&one);
    let stats = web.stats();
    assert_eq!(stats.before_robots.count, 1);
    assert_eq!(stats.before_robots.examples, [one]);
    assert_eq!(stats.robots_requests, 1);
}

#[test]
fn a_disallowed_page_is_a_violation() {
    let web = web(SimConfig {
        disallowed: 200,
        ..SimConfig::default()
    });
    for part in ["/search?", ".pdf"] {
        let url = link(&web, |url| url.contains(part));
        assert_eq!(get(&url).status, 200);
    }
    let private = |url: &str| url.contains("/private/") && !url.contains("/open/");
    let url = link(&web, private);
    get(&url);
    let open = web
        .expected_pages()
        .find(|url| url.contains("/private/open/"));
    get(&open.unwrap());
    let stats = web.stats();
    assert_eq!(stats.robots_violations.count, 3);
    assert_eq!(stats.unlinked.count, 0);
}

#[test]
fn a_path_nobody_linked_is_seen() {
    let web = web(SimConfig::default());
    let root = &web.seeds()[0];
    for path in ["trap/comment-0.html", "favicon.ico", "go/999999", "x/../y"] {
        assert_eq!(get(&format!("{root}{path}")).status, 404);
    }
    // A number written otherwise is another path.
    let plain = web.expected_pages().find(|url| url.ends_with("-7.html"));
    if let Some(url) = plain {
        assert_eq!(get(&url.replace("-7.", "-07.")).status, 404);
        assert_eq!(web.stats().unlinked.count, 5);
    } else {
        assert_eq!(web.stats().unlinked.count, 4);
    }
}

#[test]
fn two_requests_at_once_are_two() {
    let web = web(SimConfig {
        latency_ms: 100,
        ..SimConfig::default()
    });
    let (one, two) = (web.url(0, 1), web.url(0, 2));
    let mut clients = [Client::for_url(&one), Client::for_url(&two)];
    clients[0].ask(&one, "");
    clients[1].ask(&two, "");
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status, 200);
    }
    let stats = web.stats();
    assert_eq!(
        (stats.max_per_host.requests, stats.max_per_ip.requests),
        (2, 2)
    );
    assert!(one.contains(&stats.max_per_host.at));
    assert!(stats.min_host_gap.micros.unwrap() < 100_000);
    let limits = VisitLimits {
        per_host: Some(1),
        host_gap: Some(Duration::from_millis(100)),
        ..VisitLimits::default()
    };
    let faults = stats.faults(&limits).join("\n");
    assert!(
        faults.contains("2 concurrent requests to one host"),
        "{faults}"
    );
    assert!(
        faults.contains("two requests to one host within"),
        "{faults}"
    );
}

#[test]
fn one_request_after_the_other_is_one_at_a_time() {
    let web = web(SimConfig {
        latency_ms: 20,
        threads: 2,
        ..SimConfig::default()
    });
    for page in 0..5 {
        get(&web.url(0, page));
    }
    let stats = web.stats();
    assert_eq!(stats.max_per_host.requests, 1);
    assert!(stats.min_host_gap.micros.unwrap() >= 20_000);
}

#[test]
fn names_on_one_address_share_its_limits() {
    let web = SimWeb::start(SimConfig {
        hosts: 4,
        pages: 2,
        ips: 1,
        latency_ms: 100,
        ..SimConfig::default()
    })
    .unwrap();
    let ip = Ipv4Addr::new(127, 10, 0, 1);
    let mut clients = [0, 1].map(|_| Client::to(ip, web.http_port()));
    clients[0].ask(&web.url(0, 0), "");
    clients[1].ask(&web.url(1, 0), "");
    for client in &mut clients {
        client.answer().unwrap();
    }
    let stats = web.stats();
    assert_eq!(
        (stats.max_per_host.requests, stats.max_per_ip.requests),
        (1, 2)
    );
    assert_eq!(stats.min_host_gap.micros, None);
    assert!(stats.min_ip_gap.micros.is_some());
}

#[test]
fn a_host_asked_at_the_wrong_address_is_misdirected() {
    let web = web(SimConfig::default());
    let url = web.url(1, 0);
    let mut client = Client::for_url(&web.url(0, 0));
    assert_eq!(client.get(&url).status, 421);
    let mut rubbish = Client::for_url(&url);
    rubbish.send(b"EHLO there\r\n\r\n");
    assert_eq!(rubbish.answer().unwrap().status, 400);
    let stats = web.stats();
    assert_eq!((stats.misdirected.count, stats.malformed.count), (1, 1));
}

#[test]
fn an_answer_that_was_not_read_is_not_delivered() {
    let web = web(SimConfig {
        page_bytes: 64 << 10,
        ..SimConfig::default()
    });
    let url = web.url(2, 1);
    let mut client = Client::for_url(&url);
    client.ask(&url, "");
    // Whether the server has written all of it or still writes, closing now leaves bytes unread.
    client.wait_unread();
    drop(client);
    until(&web, |stats| stats.aborted == 1);
    let stats = web.stats();
    assert_eq!((stats.delivered, stats.fetched), (0, 0));
    get(&url);
    assert_eq!(web.stats().duplicates.count, 0);
}

#[test]
fn a_client_that_goes_while_it_waits_is_no_longer_in_flight() {
    let web = web(SimConfig {
        latency_ms: 600_000,
        ..SimConfig::default()
    });
    let url = web.url(2, 1);
    let mut client = Client::for_url(&url);
    client.ask(&url, "");
    until(&web, |stats| stats.requests == 1);
    drop(client);
    until(&web, |stats| stats.aborted == 1);
    Client::for_url(&url).ask(&url, "");
    until(&web, |stats| stats.requests == 2);
    assert_eq!(web.stats().max_per_host.requests, 1);
}

/// Asks until it is so; a test that waits in vain is ended by whoever runs it.
fn until(web: &SimWeb, so: impl Fn(&Stats) -> bool) {
    while !so(&web.stats()) {
        std::thread::yield_now();
    }
}

#[test]
fn a_copy_that_is_still_good_is_confirmed() {
    let web = web(SimConfig::default());
    let url = web.url(0, 5);
    let mut client = Client::for_url(&url);
    let first = client.get(&url);
    let tag = first.field("etag").unwrap();
    let date = first.field("last-modified").unwrap();
    for condition in [
        format!("If-None-Match: \"other\", {tag}\r\n"),
        format!("If-Modified-Since: {date}\r\n"),
    ] {
        client.ask(&url, &condition);
        let reply = client.answer().unwrap();
        assert_eq!((reply.status, reply.body.len()), (304, 0));
        assert_eq!(reply.field("etag"), Some(tag));
    }
    for condition in [
        "If-None-Match: \"other\"\r\n".to_owned(),
        format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"),
        "If-Modified-Since: Thu, 29 Feb 2024 23:59:59 GMT\r\n".to_owned(),
    ] {
        client.ask(&url, &condition);
        assert_eq!(client.answer().unwrap().status, 200, "{condition}");
    }
    let stats = web.stats();
    assert_eq!((stats.not_modified, stats.duplicates.count), (2, 3));
}

#[test]
fn gzip_is_sent_to_those_who_take_it() {
    let web = web(SimConfig::default());
    let plain = web.url(0, 5);
    let mut client = Client::for_url(&plain);
    for page in 0..30 {
        let url = web.url(0, page);
        client.ask(&url, "Accept-Encoding: deflate, gzip, br\r\n");
        let reply = client.answer().unwrap();
        assert_eq!(reply.field("content-encoding"), Some("gzip"));
        let mut body = Vec::new();
        GzDecoder::new(&reply.body[..])
            .read_to_end(&mut body)
            .unwrap();
        assert_eq!(body, web.page(0, page));
        assert!(
            reply.body.len() * 10 < body.len() * 6,
            "{}",
            reply.body.len()
        );
        client.ask(
            &url,
            &format!("If-None-Match: {}\r\n", reply.field("etag").unwrap()),
        );
        assert_eq!(client.answer().unwrap().status, 304);
    }
    let reply = client.get(&plain);
    assert_eq!(reply.field("content-encoding"), None);
    assert_eq!(reply.body, web.page(0, 5));
}

#[test]
fn requests_in_a_row_are_answered_in_order_and_a_head_has_no_body() {
    let web = web(SimConfig::default());
    let root = web.url(0, 0);
    let mut client = Client::for_url(&root);
    let authority = &root[7..root.len() - 1];
    let head = format!("HEAD / HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let post = format!("POST / HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let get = format!("GET /robots.txt HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    client.send([get.as_str(), &get, &post, &head].concat().as_bytes());
    for _ in 0..2 {
        let robots = client.answer().unwrap();
        assert!(robots.body.starts_with(b"# A group"));
    }
    assert_eq!(client.answer().unwrap().status, 405);
    // The length is that of a GET, and nothing follows it.
    assert!(client.answer_to_head().field("content-length") > Some("0"));
    assert_eq!(client.get(&root).body, web.page(0, 0));
    let stats = web.stats();
    assert_eq!((stats.requests, stats.connections), (5, 1));
    assert_eq!((stats.delivered, stats.duplicates.count), (1, 0));
}

#[test]
fn sitemaps_list_every_page() {
    let web = SimWeb::start(SimConfig {
        hosts: 3,
        pages: 1200,
        crawl_delay: Some(0.5),
        ..SimConfig::default()
    })
    .unwrap();
    for host in 0..3 {
        let robots = get(&robots_of(&web.url(host, 0)));
        let robots = String::from_utf8(robots.body).unwrap();
        assert!(robots.contains("Crawl-delay: 0.5\n"));
        let top = robots
            .lines()
            .find_map(|line| line.strip_prefix("Sitemap: "));
        let mut files = vec![top.unwrap().to_owned()];
        let mut listed = Vec::new();
        while let Some(file) = files.pop() {
            let mut body = get(&file).body;
            if file.ends_with(".gz") {
                let zipped = std::mem::take(&mut body);
                GzDecoder::new(&zipped[..]).read_to_end(&mut body).unwrap();
            }
            let xml = String::from_utf8(body).unwrap();
            let found = xml.split("<loc>").skip(1).map(|rest| {
                let (url, _) = rest.split_once("</loc>").unwrap();
                url.replace("&amp;", "&")
            });
            if xml.contains("<sitemapindex") {
                files.extend(found);
            } else {
                listed.extend(found);
            }
        }
        listed.sort_unstable();
        let mut pages: Vec<String> = (0..1200).map(|page| web.url(host, page)).collect();
        pages.sort_unstable();
        assert_eq!(listed, pages);
    }
    let stats = web.stats();
    assert_eq!(
        (stats.sitemap_requests, stats.unlinked.count),
        (1 + 3 + 1, 0)
    );
}

#[test]
fn hosts_that_never_recover_are_not_expected() {
    let web = SimWeb::start(SimConfig {
        hosts: 5,
        pages: 4,
        failing_hosts: 3,
        recover_after: 0,
        ..SimConfig::default()
    })
    .unwrap();
    assert_eq!(web.expected_pages().count(), 8);
    for _ in 0..3 {
        assert_eq!(get(&web.url(2, 0)).status, 500);
        let busy = get(&web.url(3, 0));
        assert_eq!((busy.status, busy.field("retry-after")), (503, Some("1")));
        let url = web.url(4, 0);
        let mut client = Client::for_url(&url);
        client.ask(&url, "");
        assert!(client.answer().is_none());
    }
    assert_eq!(get(&robots_of(&web.url(4, 0))).status, 200);
    assert_eq!(web.stats().failures, 9);
}

#[test]
fn another_process_can_ask_and_reset() {
    let web = web(SimConfig::default());
    get(&web.url(0, 0));
    let control = |request: &str| {
        let address = web.control_addr();
        let mut client = Client::to(Ipv4Addr::LOCALHOST, address.port());
        client.send(format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        client.answer().unwrap()
    };
    let text = |request: &str| String::from_utf8(control(request).body).unwrap();
    let stats: Stats = serde_json::from_slice(&control("GET /stats").body).unwrap();
    assert_eq!(stats, web.stats());
    assert_eq!((stats.requests, stats.before_robots.count), (1, 1));
    assert_eq!(text("GET /seeds"), format!("{}\n", web.seeds()[0]));
    assert_eq!(text("GET /roots").lines().count(), 3);
    assert!(text("GET /pages").lines().eq(web.expected_pages()));
    assert_eq!(control("GET /nothing").status, 404);
    assert_eq!(control("POST /reset").status, 200);
    let fresh = web.stats();
    assert_eq!((fresh.requests, fresh.before_robots.count), (0, 0));
    assert_eq!((fresh.fetched, fresh.missed.count), (0, 90));
}

#[test]
fn a_port_in_use_is_an_error_and_a_dropped_web_frees_it() {
    let first = web(SimConfig::default());
    let port = first.http_port();
    let config = || SimConfig {
        port,
        ..SimConfig::default()
    };
    assert!(SimWeb::start(config()).is_err());
    drop(first);
    assert!(SimWeb::start(config()).is_ok());
}
