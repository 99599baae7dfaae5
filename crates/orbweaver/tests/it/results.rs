//! The journal of results: what it brings back when a doc index is lost, when it is lost itself, and that pages are read by the
//! place in their records.

use std::fs;
use std::path::Path;

use orbweaver_simweb::{SimConfig, SimWeb};
use serde_json::Value;

use crate::support::{Place, run, sim};

fn web(seed: u64) -> SimWeb {
    sim(SimConfig {
        seed,
        hosts: 12,
        pages: 50,
        redirects: 40,
        ..SimConfig::default()
    })
}

/// A finished crawl with several WARC files, and the command that resumes it.
fn crawled(web: &SimWeb) -> (Place, Vec<String>) {
    let place = Place::new();
    let config = place.file("config.toml", "[store]\nrotate = \"1M\"\n");
    let seed = web.seeds().remove(0);
    let command = place.crawl(&[&seed, "--scope", "any", "-c", &config]);
    run(&command).expect(0);
    (place, command)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// What became of each URL, but for sitemaps: a robots.txt that names one is not read again from the archive.
fn outcomes(place: &Place) -> Vec<(String, String)> {
    let mut found: Vec<_> = (place.outcomes().into_iter())
        .map(|outcome| (outcome.url, outcome.class))
        .filter(|(url, _)| !url.contains("/sitemap"))
        .collect();
    found.sort();
    found
}

/// Everything comes back from the archive in one pass, in the order of the results, and no page is asked for again; also
/// when the directory is of a version that had no journal.
#[test]
fn a_lost_doc_index_is_made_again_from_the_results() {
    for lost in [&["index"][..], &["index", "results"], &["results"]] {
        let web = web(7);
        let (place, command) = crawled(&web);
        let before = outcomes(&place);
        for dir in lost {
            fs::remove_dir_all(place.dir().join(dir)).unwrap();
        }
        run(&command).expect(0);
        let stats = web.stats();
        assert_eq!(
            stats.duplicates.count, 0,
            "{lost:?}: {:?}",
            stats.duplicates
        );
        assert_eq!(stats.fetched, stats.expected);
        let status = place.status();
        assert!(
            status.balanced && status.queued == 0,
            "{lost:?}: {status:?}"
        );
        assert_eq!(outcomes(&place), before, "{lost:?}");
        let found = place.check();
        assert_eq!(found["results"], found["captures"], "{lost:?}: {found}");
        // And what was read so has its place: it is found without the CDXJ.
        found_by_record(&web, &place);
    }
}

#[test]
fn a_page_is_found_by_its_record_alone() {
    let web = web(8);
    let (place, _) = crawled(&web);
    assert!(names(&place.dir().join("warc")).len() > 1);
    found_by_record(&web, &place);
}

/// Takes the CDXJ away and reads pages.
fn found_by_record(web: &SimWeb, place: &Place) {
    let (cdxj, away) = (place.dir().join("cdxj"), place.beside("cdxj-away"));
    fs::rename(&cdxj, &away).unwrap();
    fs::create_dir(&cdxj).unwrap();
    let files = names(&place.dir().join("warc"));
    for url in web.expected_pages().step_by(11) {
        assert_eq!(place.get(&url), web.body_of(&url).unwrap(), "{url}");
        let why = run(["why", place.arg(), &url, "--json"]).expect(0).out();
        let why: Value = serde_json::from_str(&why).unwrap();
        let file = why["archive"]["file"].as_str().unwrap();
        assert!(files.contains(&file.replace("warc/", "")), "{why}");
    }
    fs::remove_dir(&cdxj).unwrap();
    fs::rename(&away, &cdxj).unwrap();
    place.check();
}
