//! Bits that flip, files that are cut short, gone or replaced, and files that do not belong there: whatever happens
//! to one place of an index is named, and the rest is still served, to those who read and to the next crawl.
//!
//! A few dozen cases in the usual tests; `ORBWEAVER_ROT=100000` tries all of them, `ORBWEAVER_ROT_SEED` others.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use orbweaver_docindex::{DocIndex, Error, IndexOptions, Reader, Wanted, check};
use orbweaver_model::{
    CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report, Revisit,
    RobotsRecord, Timestamp,
};
use orbweaver_testkit::{Harm, Random, copy, files, number};

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
            // To be visited again, long after these tests.
            revisit: Some(Box::new(Revisit {
                visits: 1,
                due: Some(at(1_000_000)),
                ..Revisit::unvisited(at(3))
            })),
            archived: None,
        };
        let finished = found.into_iter().take(if round == 7 { 100 } else { 400 });
        index.apply(finished.map(done)).unwrap();
    }
    drop(index);
    // Opened once more the journal is as short as it can be.
    drop(open(dir).unwrap());
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
                archived: None,
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
    let damaged = |place: &str| place == "files" || findings.len() == 1;
    let damaged = findings.iter().any(|finding| damaged(&finding.place));
    assert!(findings.is_empty() || damaged, "{what}: {findings:?}");
    Some((served as u64, said || damaged))
}

/// Reads everything without opening the index for work. How many URLs there are; what is named.
fn read(dir: &Path, what: &str) -> (u64, Vec<String>) {
    let reader = Reader::open(dir, 4 << 20).unwrap_or_else(|error| panic!("{what}: {error}"));
    let served = reader.entries().map(|entry| entry.map(drop));
    let served = served
        .collect::<Result<Vec<()>, _>>()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    reader.ledger().unwrap();
    assert_eq!(reader.hosts().filter(Result::is_err).count(), 0, "{what}");
    let mut found = Vec::new();
    check(&reader, &mut |finding| {
        found.push(format!("{}: {}", finding.place, finding.what))
    })
    .unwrap_or_else(|error| panic!("{what}: {error}"));
    (served.len() as u64, found)
}

/// Whether a file belongs to the index. The store may leave lists and tables behind that it has replaced, and removes
/// them when it is opened next.
fn is_in_use(dir: &Path, file: &Path) -> bool {
    let name = file.file_name().unwrap().to_str().unwrap();
    let replaceable = name.starts_with('v') || file.parent().unwrap().ends_with("tables");
    if !replaceable || file == dir.join("version") {
        return true;
    }
    let away = file.with_extension("away");
    let away = dir.with_file_name(away.file_name().unwrap());
    fs::rename(file, &away).unwrap();
    let (_, found) = read(dir, "without a file");
    fs::rename(&away, file).unwrap();
    !found.is_empty()
}

#[test]
fn whatever_happens_to_a_file_is_named_and_the_rest_is_served() {
    let around = tempfile::tempdir().unwrap();
    let whole = around.path().join("whole");
    make(&whole);
    let (served, found) = read(&whole, "whole");
    assert_eq!((served, found), (URLS, Vec::new()));
    let mut all = files(&whole);
    all.retain(|file| is_in_use(&whole, file));
    let seed = number("ORBWEAVER_ROT_SEED").unwrap_or(1);
    let mut random = Random::new(seed);
    let mut cases: Vec<(u64, &PathBuf, Harm)> = Vec::new();
    for file in &all {
        let table = file.parent().is_some_and(|dir| dir.ends_with("tables"));
        for what in Harm::ALL {
            let times = if what == Harm::Flip && table { 4 } else { 1 };
            cases.extend((0..times).map(|_| (random.any(), file, what)));
        }
    }
    cases.sort_by_key(|case| case.0);
    cases.truncate(number("ORBWEAVER_ROT").unwrap_or(24) as usize);
    let (mut tried, mut unopenable) = (0, 0);
    for (place, file, what) in cases {
        let name = file.strip_prefix(&whole).unwrap();
        let dir = around.path().join("index");
        copy(&whole, &dir);
        let case = format!("seed {seed}: {what:?} of {}", name.display());
        if what.inflict(&dir.join(name), &mut Random::new(place)) {
            tried += 1;
            unopenable += u64::from(try_case(&dir, name, what, &case));
        }
        let _ = fs::remove_dir_all(&dir);
        let _ = fs::remove_dir_all(around.path().join("index.damaged-1"));
    }
    println!("{tried} cases, {unopenable} of which left nothing to go on with");
}

/// One case; true when the index cannot be opened for work any more.
fn try_case(dir: &Path, name: &Path, what: Harm, case: &str) -> bool {
    let (seen, found) = read(dir, case);
    let shown = name.to_str().unwrap();
    let journal = shown.ends_with(".jnl");
    // What a crash may leave of a journal is no damage: a torn end, or nothing but zeroes.
    let torn = journal && what != Harm::Missing;
    // Nobody reads the lock.
    let torn = torn || (shown == "lock" && what != Harm::Missing);
    let list = shown.contains("keyspaces") && !shown.contains("tables");
    let stem = if list { "keyspaces/" } else { shown };
    let is_named = |line: &String| line.contains(stem) || line.contains("*.jnl");
    assert!(torn || found.iter().any(is_named), "{case}: {found:?}");
    let table = shown.contains("tables");
    if table && what == Harm::Flip {
        assert!(seen + BLOCK >= URLS, "{case}: {seen} are read");
    }
    if !table && !journal {
        assert_eq!(seen, URLS, "{case}");
    }
    let Some((served, said)) = serve(dir, case) else {
        // Where the secret was, and nowhere else.
        let lost = journal || shown.starts_with("keyspaces/1/tables");
        assert!(lost && what != Harm::Flip, "{case}: nothing to go on with");
        return true;
    };
    assert!(
        said || torn || served == URLS,
        "{case}: {served} in silence"
    );
    assert!(
        served >= seen,
        "{case}: {seen} were read, {served} are served"
    );
    false
}

#[test]
fn strangers_are_named_and_left_out() {
    let around = tempfile::tempdir().unwrap();
    let dir = around.path().join("index");
    make(&dir);
    fs::write(dir.join("notes.jnl"), "mine").unwrap();
    fs::write(dir.join("readme"), "mine").unwrap();
    fs::create_dir(dir.join("keyspaces/backup")).unwrap();
    let (served, found) = read(&dir, "strangers");
    assert_eq!(served, URLS);
    for stranger in ["notes.jnl", "keyspaces/backup"] {
        let named = |line: &String| line.contains(stranger) && line.contains("does not belong");
        assert!(found.iter().any(named), "{found:?}");
    }
    let (served, said) = serve(&dir, "strangers").unwrap();
    assert_eq!((served, said), (URLS, true));
    let kept = around.path().join("index.damaged-1");
    assert!(kept.join("notes.jnl").exists() && kept.join("readme").exists());
}

/// Everything that a reader tells.
fn all(reader: &Reader) -> String {
    let entries: Vec<_> = reader.entries().map(Result::unwrap).collect();
    let hosts: Vec<_> = reader.hosts().map(Result::unwrap).collect();
    let robots = reader.robots("http://h1.example:80").unwrap();
    let seeds: Vec<_> = reader.seeds().map(Result::unwrap).collect();
    let one = &entries[entries.len() / 2];
    let again = reader.entry(one.link.url.key(reader.seed())).unwrap();
    assert_eq!(again.as_ref(), Some(one));
    let host = reader.host(one.link.url.host()).unwrap();
    let rests: Vec<_> = entries
        .iter()
        .step_by(500)
        .map(|e| reader.rest(e).unwrap())
        .collect();
    let ledger = reader.ledger().unwrap();
    format!("{entries:?} {hosts:?} {robots:?} {seeds:?} {host:?} {rests:?} {ledger:?}")
}

#[test]
fn the_files_say_what_the_store_says() {
    let around = tempfile::tempdir().unwrap();
    let dir = around.path().join("index");
    make(&dir);
    let mut index = open(&dir).unwrap();
    // Large enough to be compressed in the journal.
    let robots = RobotsRecord {
        fetched: at(5),
        expires: at(6),
        status: 200,
        body: b"Disallow: /a\n".repeat(2000),
    };
    let origin = "http://h1.example:80".into();
    index.apply([Event::Robots { origin, robots }]).unwrap();
    let wanted = Wanted {
        urls: 700,
        per_host: 30,
        reject: HashSet::new(),
    };
    index.candidates(&wanted, at(7)).unwrap();
    let live = all(&index.reader());
    drop(index);
    let cold = all(&Reader::open(&dir, 4 << 20).unwrap());
    assert!(live.contains("status: 200") && live.contains("Claimed"));
    assert!(live == cold, "they differ");
}

#[test]
fn an_index_can_be_read_where_nothing_can_be_written() {
    let around = tempfile::tempdir().unwrap();
    let dir = around.path().join("index");
    make(&dir);
    let before = files(&dir);
    let times = |files: &[PathBuf]| -> Vec<_> {
        let time = |file: &PathBuf| fs::metadata(file).unwrap().modified().unwrap();
        files.iter().map(time).collect()
    };
    let then = times(&before);
    // Two at once.
    let other = Reader::open(&dir, 4 << 20).unwrap();
    assert_eq!(read(&dir, "beside another"), (URLS, Vec::new()));
    drop(other);
    let after = files(&dir);
    assert_eq!(
        (&before, then),
        (&after, times(&after)),
        "something was written"
    );
    // As on a medium without a lock file.
    fs::remove_file(dir.join("lock")).unwrap();
    assert_eq!(read(&dir, "unlocked").0, URLS);
}

#[test]
fn a_cut_journal_costs_its_end_and_no_more() {
    let around = tempfile::tempdir().unwrap();
    let whole = around.path().join("whole");
    make(&whole);
    let all = files(&whole);
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
