//! Bits that flip, files that are cut short, and files that do not belong there: whatever happens to one
//! place of an index is named, and the rest is still served.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "everything here is a test, helpers included"
)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use orbweaver_docindex::{DocIndex, Error, IndexOptions, Wanted, check};
use orbweaver_model::{
    CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report, Timestamp,
};

const URLS: u64 = 9000;
/// More than any block of the store holds, and far less than all.
const BLOCK: u64 = 600;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn open(dir: &Path) -> orbweaver_docindex::Result<DocIndex> {
    let options = IndexOptions {
        seed: KeySeed(3),
        memory: 4 << 20,
        ..IndexOptions::default()
    };
    DocIndex::open(dir, options, at(0))
}

fn links(from: u64, to: u64) -> Event {
    let link = |n: u64| NewLink {
        link: Link {
            url: CrawlUrl::from_canonical(&format!(
                "http://h{}.example/{n}/{}",
                n % 50,
                "x".repeat(90)
            ))
            .unwrap(),
            kind: LinkKind::A,
            depth: 1,
            priority: 1,
            via: None,
            chain: Vec::new(),
        },
        refused: None,
    };
    let links = (from..to).map(link).collect();
    Event::Links { links, at: at(1) }
}

/// An index with some of everything, in tables and in the journal.
fn make(dir: &Path) {
    let mut index = open(dir).unwrap();
    for from in (0..URLS).step_by(500) {
        index.apply([links(from, from + 500)]).unwrap();
    }
    for round in 0..8 {
        let wanted = Wanted {
            urls: 400,
            per_host: 20,
            reject: HashSet::new(),
        };
        let found = index.candidates(&wanted, at(2)).unwrap();
        let done = |candidate: orbweaver_model::Candidate| Event::Done {
            key: candidate.key,
            report: Report {
                ip: Some([127, 0, 0, 1].into()),
                ..Report::unasked(Outcome::plain(OutcomeClass::Success), at(3))
            },
            links: Vec::new(),
            revisit: None,
        };
        let finished = found.into_iter().take(if round == 7 { 100 } else { 400 });
        index.apply(finished.map(done)).unwrap();
    }
    drop(index);
    // Opened once more the journal is as short as it can be.
    drop(open(dir).unwrap());
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &there),
            false => drop(fs::copy(&path, &there).unwrap()),
        }
    }
}

/// Opens and reads everything after something was done to a copy. How many URLs are served, and whether
/// anything was said; none when the index cannot be opened at all, which is said too.
fn serve(dir: &Path, what: &str) -> Option<(u64, bool)> {
    let mut index = match open(dir) {
        Ok(index) => index,
        Err(error) => {
            assert!(
                matches!(error, Error::Unopenable { .. } | Error::Version { .. }),
                "{what}: {error}"
            );
            let said = error.to_string();
            assert!(said.contains(dir.to_str().unwrap()), "{what}: {said}");
            return None;
        }
    };
    let mut said = index.take_lost().is_some();
    // Work until all is done: reads every queue, and makes the store sort its files.
    for _ in 0..60 {
        if index.ledger().queued == 0 {
            break;
        }
        let wanted = Wanted {
            urls: 1000,
            per_host: 1000,
            reject: HashSet::new(),
        };
        let worked = index.candidates(&wanted, at(2)).and_then(|found| {
            let done = |candidate: orbweaver_model::Candidate| Event::Done {
                key: candidate.key,
                report: Report::unasked(Outcome::plain(OutcomeClass::Success), at(3)),
                links: Vec::new(),
                revisit: None,
            };
            index.apply(found.into_iter().map(done))
        });
        if let Err(error) = worked {
            assert!(error.is_trouble(), "{what}: {error}");
            let before = index.last_batch().saturating_sub(1);
            index
                .recover(&error)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            index.take_back(before).unwrap();
            said |= index.take_lost().is_some();
        }
    }
    assert_eq!(index.ledger().queued, 0, "{what}: work that nobody can do");
    assert!(index.ledger().balances(), "{what}");
    let served = index
        .reader()
        .entries()
        .filter(|entry| entry.is_ok())
        .count();
    let mut findings = Vec::new();
    check(&index.reader(), &mut |finding| findings.push(finding)).unwrap();
    // Damage in a file that the crawl did not come across is named by the check.
    let damaged = findings.iter().any(|finding| finding.keyspace == "files");
    assert!(findings.is_empty() || damaged, "{what}: {findings:?}");
    Some((served as u64, said || damaged))
}

#[test]
fn a_flipped_bit_anywhere_is_named_and_the_rest_is_served() {
    let around = tempfile::tempdir().unwrap();
    let whole = around.path().join("whole");
    make(&whole);
    let mut all = Vec::new();
    files(&whole, &mut all);
    all.sort();
    let (mut tried, mut unopenable, mut named) = (0, 0, 0);
    for (n, file) in all.iter().enumerate() {
        let name = file.strip_prefix(&whole).unwrap();
        let bytes = fs::read(file).unwrap();
        let is_table = name.components().any(|part| part.as_os_str() == "tables");
        let places = if is_table { 4 } else { 3 };
        for place in 0..places.min(bytes.len()) {
            let byte = (bytes.len() - 1) * place / (places - 1).max(1);
            let what = format!("{}, byte {byte} of {}", name.display(), bytes.len());
            let dir = around.path().join(format!("index-{n}-{place}"));
            copy(&whole, &dir);
            let mut rotten = bytes.clone();
            rotten[byte] ^= 1 << (place % 8);
            fs::write(dir.join(name), rotten).unwrap();
            tried += 1;
            match serve(&dir, &what) {
                None => unopenable += 1,
                Some((served, said)) => {
                    assert!(
                        served + BLOCK >= URLS || said,
                        "{what}: {served} served in silence"
                    );
                    named += usize::from(said);
                    if is_table && served < URLS {
                        assert!(served + BLOCK >= URLS, "{what}: only {served} served");
                    }
                }
            }
            fs::remove_dir_all(dir).unwrap();
        }
    }
    println!("{tried} flips: {named} named and mended, {unopenable} left nothing to open");
    assert!(named > 0);
}

#[test]
fn strangers_are_moved_away() {
    let around = tempfile::tempdir().unwrap();
    let dir = around.path().join("index");
    make(&dir);
    fs::write(dir.join("notes.jnl"), "mine").unwrap();
    fs::write(dir.join("readme"), "mine").unwrap();
    fs::create_dir(dir.join("keyspaces/backup")).unwrap();
    let error = orbweaver_docindex::Reader::open(&dir, 4 << 20)
        .err()
        .unwrap();
    assert!(error.to_string().contains("does not belong"), "{error}");
    let (served, said) = serve(&dir, "strangers").unwrap();
    assert_eq!((served, said), (URLS, true));
    let away = around.path().join("index.strangers");
    assert_eq!(fs::read_dir(away).unwrap().count(), 2);
}

#[test]
fn a_cut_journal_costs_its_end_and_no_more() {
    let around = tempfile::tempdir().unwrap();
    let whole = around.path().join("whole");
    make(&whole);
    let mut all = Vec::new();
    files(&whole, &mut all);
    for journal in all
        .iter()
        .filter(|file| file.extension().is_some_and(|ext| ext == "jnl"))
    {
        let bytes = fs::read(journal).unwrap();
        let dir = around.path().join("index");
        copy(&whole, &dir);
        let cut = &bytes[..bytes.len().saturating_sub(3)];
        fs::write(dir.join(journal.strip_prefix(&whole).unwrap()), cut).unwrap();
        let (served, _) = serve(&dir, "cut").unwrap();
        assert_eq!(served, URLS, "the last commit only opened a new epoch");
        fs::remove_dir_all(dir).unwrap();
    }
}
