//! A disk that fails under the doc index, at one call to the store after another: the crawl waits, goes on
//! by itself, and loses nothing.
//!
//! `ORBWEAVER_FAULTS` is read by debug builds only, so these tests mean nothing in release builds.

use std::process::Command;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};

use crate::support::{Place, run, sim};

fn web() -> SimWeb {
    sim(SimConfig {
        hosts: 6,
        pages: 12,
        page_bytes: 600,
        ..SimConfig::default()
    })
}

/// Crawls to the end with faults at these calls; whether it went on by itself.
fn crawl_with(web: &SimWeb, faults: &str) -> bool {
    web.reset();
    let place = Place::new();
    let command = place.crawl(&[&web.seeds()[0], "--scope", "any"]);
    let ran = Command::new(env!("CARGO_BIN_EXE_orbweaver"))
        .args(&command)
        .env("ORBWEAVER_FAULTS", faults)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    let by_itself = ran.status.code() == Some(0);
    if !by_itself {
        // Only a crawl that has not begun yet may end: nobody waits for a machine that cannot start.
        assert_eq!(ran.status.code(), Some(5), "{faults}: {said}");
        assert!(said.contains("Input/output error"), "{faults}: {said}");
        assert_eq!(web.stats().fetched, 0, "{faults}: ended in the middle");
        run(&command).expect(0);
    }
    let stats = web.stats();
    let found = stats.faults(&VisitLimits::default());
    assert_eq!(found, Vec::<String>::new(), "{faults}: {said}");
    let status = place.status();
    assert!(
        status.balanced && status.queued == 0,
        "{faults}: {status:?}"
    );
    place.check();
    by_itself
}

#[test]
fn a_disk_that_fails_at_any_call_under_the_doc_index_holds_the_crawl_up_and_no_more() {
    if !cfg!(debug_assertions) {
        println!("skipped: release builds have no faults");
        return;
    }
    let web = web();
    let mut went_on = 0;
    // Closest where a crawl of this size ends: what is asked for its summary may fail as well.
    let calls = [
        1, 5, 9, 13, 17, 21, 26, 31, 37, 44, 52, 58, 61, 63, 65, 67, 69, 71, 73, 75, 77, 80, 85,
        100, 130, 160, 200,
    ];
    for (n, call) in calls.into_iter().enumerate() {
        let faults = match n % 3 {
            0 => format!("{call}"),
            1 => format!("{call}+4"),
            _ => format!("{call},late"),
        };
        went_on += usize::from(crawl_with(&web, &faults));
    }
    assert!(
        went_on >= calls.len() / 3 * 2,
        "{went_on} went on by themselves"
    );
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &there),
            false => drop(std::fs::copy(&path, &there).unwrap()),
        }
    }
}

/// What a power cut leaves: an archive that is newer than the doc index. Nothing is lost, and nothing is
/// asked for again that has been archived.
#[test]
fn an_index_of_some_time_ago_takes_over_what_the_archive_has_since() {
    let web = web();
    let place = Place::new();
    let seed = web.seeds().remove(0);
    run(place.crawl(&[&seed, "--scope", "any", "--pages", "15"])).expect(0);
    let (index, old) = (place.dir().join("index"), place.beside("old"));
    copy(&index, &old);
    run(place.crawl(&[&seed, "--scope", "any", "--pages", "50"])).expect(0);
    std::fs::remove_dir_all(&index).unwrap();
    std::fs::rename(&old, &index).unwrap();
    run(place.crawl(&[&seed, "--scope", "any", "--pages", "0"])).expect(0);
    let faults = web.stats().faults(&VisitLimits::default());
    assert_eq!(faults, Vec::<String>::new());
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    place.check();
}

#[test]
fn an_index_that_is_lost_is_made_anew_from_the_archive() {
    let web = web();
    let place = Place::new();
    let seed = web.seeds().remove(0);
    let command = place.crawl(&[&seed, "--scope", "any"]);
    run(&command).expect(0);
    let before = place.fates();
    let documents = web.stats().fetched;
    std::fs::remove_dir_all(place.dir().join("index")).unwrap();
    run(&command).expect(0);
    assert_eq!(web.stats().fetched, documents, "nothing is fetched again");
    let after = place.fates();
    // Nobody was asked for a robots.txt, so nobody has named the sitemaps again.
    let lost: Vec<_> = before
        .iter()
        .filter(|outcome| !outcome.url.contains("sitemap") && !after.knows(&outcome.url))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(place.status().queued, 0);
    place.check();
}
