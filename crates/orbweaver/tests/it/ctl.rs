//! Steering a crawl while it runs, and what of it outlives the run.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::script::{Reply, Site};
use crate::support::{Place, Running, run, start, until};

/// A host may have a rate that its address does not limit.
const ANY_ADDRESS: &str = "[politeness]\nip_rate = 0.0\n";

/// Holds answers back until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn pass(&self) {
        let (open, changed) = &*self.0;
        let open = open.lock().unwrap();
        drop(changed.wait_while(open, |open| !*open).unwrap());
    }

    pub(crate) fn open(&self) {
        let (open, changed) = &*self.0;
        *open.lock().unwrap() = true;
        changed.notify_all();
    }
}

/// A site with so many pages, all linked from its root.
pub(crate) fn many(address: [u8; 3], pages: usize) -> Site {
    Site::start(address, move |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links((0..pages).map(|n| format!("/{n}")))),
        _ => Some(Reply::html("a page")),
    })
}

/// A site whose root is answered only when the gate is open, and links to these.
fn gated(address: [u8; 3], gate: &Gate, links: &[&str]) -> Site {
    let links: Vec<String> = links.iter().map(|link| (*link).to_owned()).collect();
    let gate = gate.clone();
    Site::start(address, move |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => {
            gate.pass();
            Some(Reply::links(&links))
        }
        _ => Some(Reply::html("a page")),
    })
}

pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).expect(0).out()).unwrap()
}

/// `ctl` on a place; what it says.
fn ctl(place: &Place, what: &[&str]) -> Value {
    let mut args = vec!["ctl", place.arg(), "--json"];
    args.extend(what);
    json(&args)
}

/// `ctl` that must fail with this code; its sentence.
fn ctl_fails(place: &Place, what: &[&str], code: i32) -> String {
    let mut args = vec!["ctl", place.arg()];
    args.extend(what);
    let ended = run(args).expect(code);
    assert_eq!(
        ended.complaint().lines().count(),
        1,
        "{}",
        ended.complaint()
    );
    ended.complaint().to_owned()
}

fn status(place: &Place) -> Value {
    json(&["status", place.arg(), "--json"])
}

/// Starts a crawl and waits until it answers.
pub(crate) fn begin(place: &Place, more: &[&str]) -> Running {
    let crawl = start(place.crawl(more));
    until("the crawl answers", || {
        place.dir().join("control.sock").exists()
    });
    crawl
}

/// Waits until no request is out.
fn settle(place: &Place) {
    until("no request is out", || {
        status(place)["serving"]["in_flight"] == 0
    });
}

/// Asks for the status so often that a crawl at full speed would have gone on meanwhile.
fn stays(place: &Place, site: &Site) {
    let before = site.log().len();
    for _ in 0..10 {
        status(place);
    }
    assert_eq!(site.log().len(), before);
}

#[test]
fn a_paused_crawl_asks_for_nothing_until_it_is_resumed() {
    let site = many([4, 0, 1], 600);
    let place = Place::new();
    let config = place.file("config.toml", ANY_ADDRESS);
    let crawl = begin(&place, &[&site.url("/"), "--rate", "50", "-c", &config]);
    until("some pages", || site.pages().len() > 5);
    assert_eq!(ctl(&place, &["pause"])["said"], "paused");
    settle(&place);
    stays(&place, &site);
    assert!(site.pages().len() < 600, "paused too late to show anything");
    assert_eq!(status(&place)["paused"], true);
    let slow = json(&["why", place.arg(), "--slow", "--json"]);
    assert_eq!(slow["limit"], "paused");
    let next = json(&["why", place.arg(), &site.url("/599"), "--json"]);
    let waits_for = next["waits_for"].as_str().unwrap();
    assert!(waits_for.contains("paused"), "{waits_for}");
    ctl(&place, &["rate", &site.ip().to_string(), "0"]);
    ctl(&place, &["resume"]);
    crawl.wait().expect(0);
    assert_eq!(site.pages().len(), 601);
    place.check();
}

#[test]
fn a_blocked_host_stays_blocked_over_restarts_and_loses_nothing() {
    let blocked = many([4, 0, 2], 600);
    let other = many([4, 0, 3], 20);
    let place = Place::new();
    let config = place.file(
        "patient.toml",
        format!("{ANY_ADDRESS}[retry]\npatience_s = 600.0\n"),
    );
    let seeds = [blocked.url("/"), other.url("/")];
    let args = [&*seeds[0], &*seeds[1], "--rate", "50", "-c", &*config];
    let crawl = begin(&place, &args);
    until("some pages of both", || {
        blocked.pages().len() > 3 && !other.pages().is_empty()
    });
    let host = blocked.ip().to_string();
    assert_eq!(ctl(&place, &["block", &host])["n"], 1);
    until("the other is done", || {
        let states = &status(&place)["hosts_seen"]["by_state"];
        states["done"] == 1 && states["blocked"] == 1
    });
    settle(&place);
    stays(&place, &blocked);
    let seen = status(&place);
    assert_eq!(seen["hosts_seen"]["blocked"][0]["host"], *host);
    until("it says what it waits for", || {
        json(&["why", place.arg(), "--slow", "--json"])["limit"] == "blocked hosts"
    });
    let waiting = json(&["why", place.arg(), &blocked.url("/599"), "--json"]);
    assert_eq!(waiting["state"], "queued");
    assert!(waiting["host"]["blocked_since"].is_string(), "{waiting}");
    crawl.signal(Signal::KILL);
    crawl.wait();
    let before = blocked.log().len();
    // Run again it has nothing to do, and says so by ending.
    let hasty = place.file("hasty.toml", "[retry]\npatience_s = 0.0\n");
    run(place.crawl(&["--rate", "50", "-c", &hasty])).expect(0);
    assert_eq!(blocked.log().len(), before);
    assert!(place.status().queued > 100);
    // A block can be lifted while nothing runs.
    ctl(&place, &["unblock", &host]);
    run(place.crawl(&["--rate", "0", "-c", &hasty])).expect(0);
    let status = place.status();
    assert_eq!(status.queued, 0);
    let mut pages = blocked.pages();
    pages.sort();
    pages.dedup();
    assert_eq!(pages.len(), 601);
    place.check();
}

#[test]
fn a_host_gets_a_rate_of_its_own() {
    let gate = Gate::default();
    let site = gated([4, 0, 4], &gate, &["/1", "/2", "/3", "/4"]);
    let place = Place::new();
    let crawl = begin(&place, &[&site.url("/")]);
    until("the first request", || site.asked("/") == 1);
    let host = site.ip().to_string();
    let said = ctl(&place, &["rate", &host, "5"]);
    assert_eq!(
        said["said"],
        format!("rate of {host}: 5 requests/s (was the rate of the crawl)")
    );
    let rate = || json(&["why", place.arg(), &site.url("/"), "--json"])["host"].clone();
    assert_eq!(
        (&rate()["rate"], &rate()["gap_s"]),
        (&5.0.into(), &0.2.into())
    );
    let before = site.log().len();
    gate.open();
    crawl.wait().expect(0);
    let log = site.log();
    assert_eq!(log.len(), before + 4);
    for two in log[before..].windows(2) {
        let gap = two[1].at - two[0].at;
        assert!(gap >= Duration::from_millis(200), "{gap:?}");
    }
    // It holds for the next run too, until it is taken back.
    assert_eq!(rate()["rate"], 5.0);
    ctl(&place, &["undo", "1"]);
    assert_eq!(rate()["rate"], Value::Null);
}

#[test]
fn seeds_can_be_added_also_what_was_refused_before() {
    let gate = Gate::default();
    let far = many([4, 0, 6], 3);
    let late = many([4, 0, 7], 0);
    let gate_site = gated([4, 0, 5], &gate, &["/near"]);
    let front = {
        let (far, held) = (far.url("/"), gate_site.url("/"));
        Site::start([4, 0, 8], move |asked| match asked.target.as_str() {
            "/" => Some(Reply::links([&far, &held])),
            _ => None,
        })
    };
    let place = Place::new();
    let crawl = begin(&place, &[&front.url("/"), &gate_site.url("/")]);
    let refused = || json(&["why", place.arg(), &far.url("/"), "--json"]);
    until("the link is refused", || refused()["state"] == "refused");
    assert_eq!(refused()["scope"]["accepted"], false);
    let said = ctl(&place, &["add", &far.url("/"), &late.url("/")]);
    assert_eq!(said["said"], "2 URLs added as seeds");
    until("its pages came", || {
        far.pages().len() == 4 && late.pages().len() == 1
    });
    gate.open();
    crawl.wait().expect(0);
    let fates = place.fates();
    assert_eq!(fates.of(&far.url("/2")).class, "success");
    assert_eq!(fates.of(&far.url("/")).kind, "seed");
    place.check();
    // The new seeds belong to the crawl for good.
    assert_eq!(refused()["scope"]["accepted"], true);
    let complaint = ctl_fails(&place, &["add", "http://example.org/"], 4);
    assert!(complaint.contains("orbweaver crawl"), "{complaint}");
}

#[test]
fn settings_are_read_again() {
    let gate = Gate::default();
    let site = gated([4, 0, 9], &gate, &["/open", "/shut"]);
    let place = Place::new();
    let config = place.file("crawl.toml", "[fetch]\nconcurrency = 9\n");
    let crawl = begin(&place, &[&site.url("/"), "-c", &config]);
    until("the first request", || site.asked("/") == 1);
    place.file("crawl.toml", "[scope]\ndepht = 1\n");
    let complaint = {
        let ended = run(["ctl", place.arg(), "reload"]).expect(2);
        ended.stderr
    };
    assert!(complaint.contains("depht"), "{complaint}");
    place.file(
        "crawl.toml",
        "[scope]\nexclude = [\"/shut\"]\n[fetch]\nconcurrency = 7\n",
    );
    let said = ctl(&place, &["reload"]);
    assert_eq!(said["said"], "reloaded: exclude [] → [\"/shut\"]");
    assert_eq!(
        said["details"][0],
        "after the next start: concurrency 9 → 7"
    );
    gate.open();
    crawl.wait().expect(0);
    assert_eq!(site.pages(), ["/", "/open"]);
    assert_eq!(place.fates().of(&site.url("/shut")).class, "denied_policy");
}

#[test]
fn changes_are_logged_and_can_be_taken_back() {
    let gate = Gate::default();
    let site = gated([4, 0, 10], &gate, &[]);
    let host = site.ip().to_string();
    let place = Place::new();
    let crawl = begin(&place, &[&site.url("/")]);
    until("the first request", || site.asked("/") == 1);
    assert!(ctl_fails(&place, &["block", "unheard.example"], 7).contains("unheard.example"));
    assert!(ctl_fails(&place, &["undo", "1"], 7).contains("no change 1"));
    ctl(&place, &["block", &host.to_ascii_uppercase()]);
    ctl(&place, &["pause"]);
    ctl(&place, &["undo", "1"]);
    assert_eq!(status(&place)["hosts_seen"]["by_state"]["blocked"], 0);
    assert!(ctl_fails(&place, &["undo", "1"], 2).contains("by change 3"));
    ctl(&place, &["undo", "2"]);
    assert_eq!(status(&place)["paused"], false);
    ctl(&place, &["stop"]);
    gate.open();
    crawl.wait().expect(3);
    assert!(ctl_fails(&place, &["undo", "5"], 2).contains("orbweaver crawl"));
    assert!(ctl_fails(&place, &["pause"], 4).contains("no crawl is running"));
    let kept = std::fs::read_to_string(place.dir().join("changes.jsonl")).unwrap();
    let kept: Vec<Value> = (kept.lines().map(|line| serde_json::from_str(line).unwrap())).collect();
    let what: Vec<_> = kept
        .iter()
        .map(|entry| (&entry["change"], &entry["undoes"]))
        .collect();
    let expected = [
        ("blocked", Value::Null),
        ("paused", Value::Null),
        ("blocked", Value::from(1)),
        ("paused", Value::from(2)),
        ("stop", Value::Null),
    ];
    for ((change, undoes), (word, of)) in what.iter().zip(&expected) {
        assert_eq!((change.as_str(), *undoes), (Some(*word), of));
    }
    assert_eq!(kept.len(), expected.len());
    assert!(kept[0]["at"].as_str().unwrap().ends_with('Z'));
    let log = run(["ctl", place.arg(), "log"]).expect(0).out();
    assert!(log.contains(&format!("blocked {host}")), "{log}");
    assert!(log.contains("reverts 1"), "{log}");
}

/// Over a whole simulated web: whatever is steered, every page comes once.
#[test]
fn a_crawl_that_is_steered_all_the_time_is_complete() {
    let web = crate::support::sim(orbweaver_simweb::SimConfig {
        hosts: 12,
        pages: 25,
        page_bytes: 2000,
        latency_ms: 5,
        ..orbweaver_simweb::SimConfig::default()
    });
    let place = Place::new();
    let config = place.file("config.toml", ANY_ADDRESS);
    let seeds = web.seeds();
    let args = [&*seeds[0], "--scope", "any", "--rate", "5", "-c", &*config];
    let crawl = begin(&place, &args);
    until("some hosts are known", || {
        status(&place)["hosts"].as_u64().unwrap() > 5
    });
    ctl(&place, &["pause"]);
    settle(&place);
    let host = |url: &str| Some(url.split('/').nth(2)?.split(':').next()?.to_owned());
    let lines = place.outcomes();
    let queued = lines.iter().filter(|line| line.class == "queued");
    let mut hosts: Vec<String> = queued.filter_map(|line| host(&line.url)).collect();
    hosts.sort();
    hosts.dedup();
    // As long as it is blocked, the crawl goes on.
    let last = hosts.pop().unwrap();
    ctl(&place, &["block", &last]);
    ctl(&place, &["resume"]);
    for host in hosts.iter().take(4) {
        ctl(&place, &["block", host]);
        ctl(&place, &["rate", host, "0"]);
        ctl(&place, &["pause"]);
        ctl(&place, &["resume"]);
        ctl(&place, &["unblock", host]);
    }
    ctl(&place, &["rate", &last, "100"]);
    ctl(&place, &["unblock", &last]);
    crawl.wait().expect(0);
    let limits = orbweaver_simweb::VisitLimits::default();
    assert_eq!(web.stats().faults(&limits), Vec::<String>::new());
    place.check();
}
