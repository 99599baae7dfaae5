//! The hostile web of `simweb`: every case ends in a recorded outcome that a good crawler would record,
//! with no more requests and bytes than that takes, and nothing is reached that must not be.
//!
//! Two crawls: one of the cases that end by themselves, with limits of time that nobody meets; and one
//! of those that only the crawler's patience ends, with little of it. So no verdict depends on how fast
//! the machine is.

use orbweaver_simweb::hostile::{Case, HostileWeb, Kind};

use crate::support::{Place, run};

/// Small limits on bytes, so that what is over them is cheap to make; two attempts, close together.
const SETTINGS: &str = "\
[budget]
host_pages = 100
[politeness]
slow_factor = 0
slow_max_s = 0.1
[retry]
delay_s = 0.05
patience_s = 3
[limits]
max_body_bytes = 1048576
max_decoded_bytes = 2097152
crawl_delay_cap_s = 0.2
";

const PATIENT: &str =
    "connect_timeout_s = 60\nheader_timeout_s = 60\nidle_timeout_s = 60\ntotal_timeout_s = 200\n";

const HASTY: &str =
    "connect_timeout_s = 1\nheader_timeout_s = 1\nidle_timeout_s = 1\ntotal_timeout_s = 2.5\n";

/// Crawls the cases that are chosen; a sentence for each thing that is wrong.
fn crawl(time_limits: &str, choose: impl Fn(&Case) -> bool) -> Vec<String> {
    let web = HostileWeb::start().unwrap();
    let chosen: Vec<Case> = web
        .cases()
        .iter()
        .filter(|case| choose(case))
        .cloned()
        .collect();
    assert!(!chosen.is_empty());
    let place = Place::new();
    let seeds: String = chosen.iter().map(|case| web.url(case) + "\n").collect();
    let seeds = place.file("seeds.txt", seeds);
    let config = place.file("crawl.toml", format!("{SETTINGS}{time_limits}"));
    let ca = place.file("ca.pem", web.issuer_pem());
    let resolver = web.dns_addr().to_string();
    let args = [
        "crawl",
        "-o",
        place.arg(),
        "--contact",
        "mailto:test@example.org",
        "--rate",
        "0",
        "--progress",
        "off",
        "--allow-net",
        HostileWeb::NETWORK,
        "--scope",
        "any",
        "--resolver",
        &resolver,
        "--seeds",
        &seeds,
        "--config",
        &config,
        "--ca",
        &ca,
    ];
    run(args).expect(0);
    let status = place.status();
    assert!(status.balanced, "{status:?}");
    place.check();
    let fates = place.fates();
    let mut faults = web.trespasses();
    for case in &chosen {
        let url = web.url(case);
        let fate = fates.knows(&url).then(|| fates.of(&url));
        let found = web.faults(case, fate.map(|fate| fate.class.as_str()));
        let why = fate.map_or("", |fate| fate.why());
        faults.extend(found.into_iter().map(|fault| format!("{fault} [{why}]")));
    }
    faults
}

#[test]
fn every_case_that_ends_by_itself() {
    let faults = crawl(PATIENT, |case| !case.slow);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_case_that_only_patience_ends() {
    let faults = crawl(HASTY, |case| case.slow);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_kind_has_its_cases() {
    let web = HostileWeb::start().unwrap();
    for kind in Kind::ALL {
        let count = web.cases().iter().filter(|case| case.kind == *kind).count();
        println!("{}: {count}", kind.as_str());
        assert!(count >= 6, "{kind:?} has only {count} cases");
    }
    let mut names: Vec<_> = web
        .cases()
        .iter()
        .map(|case| (case.kind, case.name))
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
    println!("all: {count}");
}
