//! `check --repair`: what can be proven from the rest of a crawl directory is repaired, and what is lost is fetched again.

use std::fs;
use std::path::PathBuf;

use orbweaver_simweb::SimConfig;

use crate::support::{Place, run, sim};

fn file(place: &Place, folder: &str, suffix: &str) -> PathBuf {
    let entries = fs::read_dir(place.dir().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_str().unwrap().ends_with(suffix));
    paths.sort();
    paths.remove(0)
}

#[test]
fn an_index_is_made_again_from_its_warc_file_and_lost_pages_are_fetched_again() {
    let web = sim(SimConfig {
        hosts: 2,
        pages: 30,
        ..SimConfig::default()
    });
    let place = Place::new();
    let seed = web.seeds().remove(0);
    let crawl = place.crawl(&[&seed, "--scope", "any"]);
    run(&crawl).expect(0);
    let pages = place.status().pages;
    let nothing = run(["check", place.arg(), "--repair"]).expect(0).out();
    assert!(!nothing.contains("repaired:"), "{nothing}");

    // A line that is gone, and one that says something else.
    let cdxj = file(&place, "cdxj", ".cdxj");
    let whole = fs::read_to_string(&cdxj).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.remove(3);
    let wrong = lines[5].replace("\"offset\": \"", "\"offset\": \"1");
    lines[5] = &wrong;
    fs::write(&cdxj, lines.join("\n") + "\n").unwrap();
    run(["check", place.arg()]).expect(6);
    let said = run(["check", place.arg(), "--repair"]).expect(0).out();
    assert!(
        said.contains("repaired: the CDXJ index of orbweaver-"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&cdxj).unwrap(), whole);

    // A file that is gone takes its pages with it.
    fs::remove_file(file(&place, "warc", ".warc.gz")).unwrap();
    fs::remove_file(&cdxj).unwrap();
    run(["check", place.arg()]).expect(6);
    let said = run(["check", place.arg(), "--repair"]).expect(0).out();
    assert!(said.contains("queued again"), "{said}");
    run(&crawl).expect(0);
    let status = place.status();
    assert_eq!((status.pages, status.queued), (pages, 0));
    place.check();
}

#[test]
fn a_crawl_that_runs_is_not_repaired() {
    let web = sim(SimConfig::default());
    let place = Place::new();
    let mut running = crate::support::start(place.crawl(&[&web.seeds().remove(0), "--rate", "1"]));
    crate::support::until("the crawl has begun", || web.stats().fetched > 0);
    let refused = run(["check", place.arg(), "--repair"]).expect(4);
    assert!(refused.complaint().contains("in use"), "{refused:?}");
    assert!(running.is_running());
}
