//! What is kept is what was served, byte for byte, for us and for other people's readers.

use std::fmt::Write as _;
use std::process::Command;

use data_encoding::HEXLOWER;
use orbweaver_simweb::{SimConfig, SimWeb};
use rustix::process::Signal;
use sha1::{Digest, Sha1};

use crate::script::{Reply, Site};
use crate::support::{Place, is_ci, run, sim, start, until};

/// A web whose archive has several files, and a crawl of it.
fn crawled(seed: u64) -> (SimWeb, Place) {
    let web = sim(SimConfig {
        seed,
        hosts: 12,
        pages: 50,
        redirects: 40,
        ..SimConfig::default()
    });
    let place = Place::new();
    let config = place.file("config.toml", "[store]\nrotate = \"1M\"\n");
    let seed = web.seeds().remove(0);
    let command = place.crawl(&[&seed, "--scope", "any", "-c", &config]);
    // A kill in the middle leaves an unfinished file, which the next run makes whole.
    let crawl = start(&command);
    until("half of the pages", || web.stats().fetched > 300);
    crawl.signal(Signal::KILL);
    crawl.wait();
    run(&command).expect(0);
    (web, place)
}

#[test]
fn a_page_reads_back_byte_for_byte() {
    let (web, place) = crawled(1);
    let pages: Vec<String> = web.expected_pages().collect();
    for url in pages.iter().step_by(23) {
        assert_eq!(place.get(url), web.body_of(url).unwrap(), "{url}");
    }
    let found = place.check();
    assert!(found["files"].as_u64().unwrap() >= 3, "{found}");
    assert_eq!(found["captures"], found["cdxj_lines"]);
    // A file that was never finished would have another name.
    for file in std::fs::read_dir(place.dir().join("warc")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(name.ends_with(".warc.gz"), "{name}");
    }
}

#[test]
fn get_prints_head_raw_message_or_body() {
    let site = Site::start([14, 0, 1], |asked| {
        (asked.target == "/").then(|| Reply::html("the body").with("X-Some: thing"))
    });
    let place = Place::new();
    place.crawl_to_the_end(&[&site.url("/")]);
    let url = site.url("/");
    assert_eq!(place.get(&url), b"the body");
    // Spelled otherwise it is the same page.
    let other = url.replace("http://", "HTTP://") + "#there";
    assert_eq!(place.get(&other), b"the body");
    let whole = run(["get", "--raw", place.arg(), &url]).expect(0);
    let head = run(["get", "-i", place.arg(), &url]).expect(0);
    assert_eq!(whole.stdout, head.stdout);
    assert!(head.out().contains("\r\nX-Some: thing\r\n"));
    let missing = run(["get", place.arg(), &site.url("/other")]).expect(7);
    assert!(missing.complaint().ends_with("is not in the archive"));
}

/// A document refers to an earlier one only when that is safe on disk, so the first repetition may come too
/// early for it; the last of twelve does not.
#[test]
fn the_same_document_again_is_kept_as_a_reference() {
    let text = "the same everywhere ".repeat(200);
    let sent = text.clone();
    let site = Site::start([14, 0, 2], move |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links((0..12).map(|n| format!("/{n}")))),
        _ => Some(Reply::html(sent.clone())),
    });
    let place = Place::new();
    place.crawl_to_the_end(&[&site.url("/"), "--rate", "20"]);
    let found = place.check();
    assert!(found["revisits"].as_u64().unwrap() > 0, "{found}");
    for page in 0..12 {
        let url = site.url(&format!("/{page}"));
        assert_eq!(place.get(&url), text.as_bytes(), "{url}");
    }
}

/// `warcio check` accepts every record, pywb's indexer makes the same index, and pywb gives back the
/// documents that were served.
#[test]
fn warcio_and_pywb_read_the_archive() {
    let Ok(python) = std::env::var("ORBWEAVER_PYTHON") else {
        assert!(!is_ci(), "ORBWEAVER_PYTHON is not set");
        println!(
            "skipped: ORBWEAVER_PYTHON names no Python with warcio and pywb; `cargo xtask test` sets it"
        );
        return;
    };
    let (web, place) = crawled(2);
    let mut expected = String::new();
    for url in web.expected_pages() {
        let digest = HEXLOWER.encode(&Sha1::digest(web.body_of(&url).unwrap()));
        writeln!(expected, "{url}\t{digest}").unwrap();
    }
    let expected = place.file("expected.tsv", expected);
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../store/tests/interop/check_warc.py"
    );
    let read = Command::new(python)
        .args([script, place.arg(), &expected])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&read.stdout);
    println!("{said}");
    assert!(
        read.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&read.stderr)
    );
    assert!(said.contains("600 documents replayed, 0 problems"));
}
