//! Stopping and going on: signals, budgets, stored settings, seeds that come later.

use std::time::{Duration, Instant};

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};
use rustix::process::Signal;

use crate::script::{Reply, Site};
use crate::support::{Place, run, sim, start, until};

/// What a user waits for after Ctrl-C.
const SOON: Duration = Duration::from_secs(10);

fn web(seed: u64) -> SimWeb {
    sim(SimConfig {
        seed,
        hosts: 10,
        pages: 60,
        page_bytes: 3000,
        latency_ms: 20,
        ..SimConfig::default()
    })
}

fn command(web: &SimWeb, place: &Place) -> Vec<String> {
    place.crawl(&[&web.seeds()[0], "--scope", "any"])
}

fn resume(place: &Place) -> Vec<String> {
    ["crawl", "-o", place.arg(), "--progress", "off"]
        .map(str::to_owned)
        .into()
}

/// Every page once over all runs, and all of it sound.
fn is_complete(web: &SimWeb, place: &Place) {
    let stats = web.stats();
    let limits = VisitLimits {
        per_host: Some(1),
        per_ip: Some(1),
        ..VisitLimits::default()
    };
    assert_eq!(stats.faults(&limits), Vec::<String>::new());
    assert_eq!(stats.robots_requests, u64::from(web.hosts()));
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    place.check();
}

fn stops_and_resumes(signal: Signal, seed: u64) {
    let web = web(seed);
    let place = Place::new();
    let crawl = start(command(&web, &place));
    until("some pages", || web.stats().fetched > 50);
    crawl.signal(signal);
    crawl.wait_for(SOON).expect(3);
    let status = place.status();
    assert!(status.balanced && status.queued > 0, "{status:?}");
    // Nothing that was delivered is forgotten.
    let delivered = web.stats().delivered;
    assert!(status.pages >= delivered, "{status:?}, {delivered}");
    place.check();
    run(command(&web, &place)).expect(0);
    is_complete(&web, &place);
}

#[test]
fn ctrl_c_ends_cleanly_and_the_same_command_resumes() {
    stops_and_resumes(Signal::INT, 1);
}

#[test]
fn a_polite_request_to_terminate_is_the_same() {
    stops_and_resumes(Signal::TERM, 2);
}

/// A server that does not answer holds the first Ctrl-C up, for what is out may still end; the second
/// waits for nothing.
#[test]
fn a_second_ctrl_c_ends_at_once() {
    let site = Site::start([15, 0, 1], |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        _ => Some(Reply::silence()),
    });
    let place = Place::new();
    let crawl = start(place.crawl(&[&site.url("/"), "--progress", "plain"]));
    until("the request", || site.asked("/") == 1);
    crawl.signal(Signal::INT);
    loop {
        let line = crawl.line().expect("it ended at the first signal");
        if line.contains("stopping") {
            break;
        }
    }
    let began = Instant::now();
    crawl.signal(Signal::INT);
    let ended = crawl.wait_for(SOON).expect(3);
    // Less than the first would have waited for the request.
    assert!(began.elapsed() < Duration::from_secs(4), "{ended:?}");
    assert!(ended.stderr.contains("resumes"), "{ended:?}");
    let status = place.status();
    assert!(status.balanced && status.queued == 1, "{status:?}");
}

#[test]
fn one_ctrl_c_is_enough_when_a_server_never_answers() {
    let site = Site::start([15, 0, 2], |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        _ => Some(Reply::silence()),
    });
    let place = Place::new();
    let crawl = start(place.crawl(&[&site.url("/")]));
    until("the request", || site.asked("/") == 1);
    crawl.signal(Signal::INT);
    crawl.wait_for(SOON).expect(3);
    assert_eq!(place.status().queued, 1);
    place.check();
}

#[test]
fn a_page_budget_is_spent_exactly_and_raised_later() {
    let web = web(3);
    let place = Place::new();
    let mut first = command(&web, &place);
    first.extend(["--pages".to_owned(), "100".to_owned()]);
    run(&first).expect(0);
    let status = place.status();
    assert_eq!(status.pages, 100);
    assert!(status.balanced && status.queued > 0, "{status:?}");
    // The budget is the crawl's, not the run's.
    run(resume(&place)).expect(0);
    assert_eq!(place.status().pages, 100);
    let mut more = resume(&place);
    more.extend(["--pages".to_owned(), "0".to_owned()]);
    run(&more).expect(0);
    is_complete(&web, &place);
}

#[test]
fn a_time_budget_ends_a_run_and_not_the_crawl() {
    let web = web(4);
    let place = Place::new();
    let seed = &web.seeds()[0];
    let slow = place.crawl(&[seed, "--scope", "any", "--time", "1s", "--rate", "5"]);
    let ended = run(&slow).expect(0);
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let status = place.status();
    assert!(status.balanced && status.queued > 0, "{status:?}");
    let mut rest = resume(&place);
    rest.extend(["--time", "10m", "--rate", "0"].map(str::to_owned));
    run(&rest).expect(0);
    is_complete(&web, &place);
}

/// Scope, networks and rate come from the directory; a flag that is given replaces the stored one.
#[test]
fn a_directory_alone_resumes_with_its_settings() {
    let web = web(5);
    let place = Place::new();
    let crawl = start(command(&web, &place));
    until("some pages", || web.stats().fetched > 20);
    crawl.signal(Signal::INT);
    crawl.wait_for(SOON).expect(3);
    run(resume(&place)).expect(0);
    is_complete(&web, &place);
    // And once more, with nothing left to do.
    let before = web.stats().requests;
    run(resume(&place)).expect(0);
    assert_eq!(web.stats().requests, before);
}

#[test]
fn a_seed_that_comes_later_joins_the_crawl() {
    let page = |asked: &crate::script::Request| match asked.target.as_str() {
        "/" => Some(Reply::links(["/more"])),
        "/more" => Some(Reply::html("more")),
        _ => None,
    };
    let (first, second) = (Site::start([15, 0, 3], page), Site::start([15, 0, 4], page));
    let place = Place::new();
    place.crawl_to_the_end(&[&first.url("/")]);
    let fates = place.crawl_to_the_end(&[&second.url("/")]);
    for site in [&first, &second] {
        assert_eq!(site.pages(), ["/", "/more"]);
        assert_eq!(site.asked("/robots.txt"), 1);
        assert_eq!(fates.of(&site.url("/more")).class, "success");
    }
}
