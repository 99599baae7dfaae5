//! Clocks that were set back or forward between two runs: nothing waits longer than it was to, and nothing
//! is forgotten.
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use orbweaver_docindex::{DocIndex, IndexOptions, Wanted, check};
use orbweaver_model::{
    ChangeRate, CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report,
    Revisit, RobotsRecord, Timestamp, UrlKey,
};

const SEED: KeySeed = KeySeed(42);
const HOUR: u64 = 3_600_000;
const TEN_YEARS: u64 = 87_660 * HOUR;
/// When the crawl begins, by a clock that is right.
const START: u64 = 20 * TEN_YEARS;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::from_canonical(text).unwrap()
}

fn key(text: &str) -> UrlKey {
    url(text).key(SEED)
}

fn link(text: &str) -> NewLink {
    let link = Link {
        url: url(text),
        kind: LinkKind::A,
        depth: 0,
        priority: 16,
        via: None,
        chain: Vec::new(),
    };
    NewLink {
        link,
        refused: None,
    }
}

fn report(class: OutcomeClass, now: u64) -> Report {
    Report {
        outcome: Outcome::plain(class),
        status: Some(200),
        ip: Some([127, 0, 0, 1].into()),
        bytes: 1000,
        millis: 5,
        at: at(now),
        redirect: None,
    }
}

fn open(dir: &Path, now: u64) -> DocIndex {
    let options = IndexOptions {
        seed: SEED,
        recrawl: true,
        ..IndexOptions::default()
    };
    DocIndex::open(&dir.join("index"), options, at(now)).unwrap()
}

/// The URLs that can be had at a time.
fn had(index: &mut DocIndex, now: u64) -> Vec<String> {
    let wanted = Wanted {
        urls: 10,
        per_host: 10,
        reject: HashSet::new(),
    };
    let found = index.candidates(&wanted, at(now)).unwrap();
    let mut urls: Vec<String> = found.iter().map(|c| c.url.to_string()).collect();
    urls.sort();
    urls
}

fn sound(index: &DocIndex) {
    let mut findings = Vec::new();
    check(&index.reader(), &mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
}

/// A run at `now`, in which a URL is to be repeated, a host asks for patience, a page is to be visited again and
/// a host gets its robots.txt, each for `wait`; and the process is killed.
fn run(dir: &Path, now: u64, wait: u64) {
    let mut index = open(dir, now);
    let urls = ["http://a/retry", "http://b/held", "http://c/visit"];
    index
        .apply([Event::Links {
            links: urls.map(link).into(),
            at: at(now),
        }])
        .unwrap();
    assert_eq!(had(&mut index, now), urls);
    let due = at(now + wait);
    let visit = Revisit {
        visits: 1,
        rate: ChangeRate::default(),
        seen: at(now),
        captured: at(now),
        digest: 1,
        length: None,
        etag: None,
        last_modified: None,
        due: Some(due),
    };
    index
        .apply([
            Event::Retry {
                key: key(urls[0]),
                report: report(OutcomeClass::Deferred, now),
                due,
                archived: None,
            },
            Event::Host {
                host: key(urls[1]).host,
                not_before: due,
            },
            Event::Done {
                key: key(urls[2]),
                report: report(OutcomeClass::Success, now),
                links: Vec::new(),
                revisit: Some(Box::new(visit)),
                archived: None,
            },
            Event::Robots {
                origin: "http://a".into(),
                robots: RobotsRecord {
                    fetched: at(now),
                    expires: due,
                    status: 200,
                    body: Vec::new(),
                },
            },
        ])
        .unwrap();
    index.sync().unwrap();
}

#[test]
fn a_clock_that_was_ahead_makes_nothing_wait_longer() {
    for ahead in [HOUR, TEN_YEARS] {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), START + ahead, HOUR / 60);
        let mut index = open(dir.path(), START);
        assert_eq!(had(&mut index, START + HOUR / 60 - 1), [""; 0], "{ahead}");
        assert_eq!(index.next_chance(at(START)), Some(at(START + HOUR / 60)));
        sound(&index);
        let all = ["http://a/retry", "http://b/held", "http://c/visit"];
        assert_eq!(had(&mut index, START + HOUR / 60), all, "{ahead}");
        sound(&index);
    }
}

#[test]
fn a_clock_that_was_set_forward_ends_waits_and_loses_nothing() {
    for ahead in [HOUR, TEN_YEARS] {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), START, HOUR / 60);
        let mut index = open(dir.path(), START + ahead);
        let all = ["http://a/retry", "http://b/held", "http://c/visit"];
        assert_eq!(had(&mut index, START + ahead), all);
        sound(&index);
    }
}

#[test]
fn a_clock_that_is_right_leaves_waits_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), START, HOUR);
    let mut index = open(dir.path(), START + HOUR / 2);
    assert_eq!(had(&mut index, START + HOUR - 1), [""; 0]);
    assert_eq!(had(&mut index, START + HOUR).len(), 3);
}

/// Ahead, right, ahead again, right again, killed each time: as if no clock had moved.
#[test]
fn a_clock_that_goes_to_and_fro() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), START + TEN_YEARS, HOUR);
    for shift in [0, TEN_YEARS, 1000] {
        drop(open(dir.path(), START + shift));
    }
    let mut index = open(dir.path(), START + 2000);
    // The second time ahead all waits were over by its clock.
    assert_eq!(had(&mut index, START + 2000).len(), 3);
    sound(&index);
}

/// More visits than fit into one commit.
#[test]
fn many_visits_move_along() {
    let dir = tempfile::tempdir().unwrap();
    let now = START + TEN_YEARS;
    let mut index = open(dir.path(), now);
    let urls: Vec<String> = (0..9000).map(|n| format!("http://a/{n}")).collect();
    let links = urls.iter().map(|text| link(text)).collect();
    index.apply([Event::Links { links, at: at(now) }]).unwrap();
    let wanted = Wanted {
        urls: urls.len(),
        per_host: urls.len(),
        reject: HashSet::new(),
    };
    let found = index.candidates(&wanted, at(now)).unwrap();
    assert_eq!(found.len(), urls.len());
    let done = found.iter().zip(1..).map(|(candidate, n)| Event::Done {
        key: candidate.key,
        report: report(OutcomeClass::Success, now),
        links: Vec::new(),
        revisit: Some(Box::new(Revisit {
            visits: 1,
            rate: ChangeRate::default(),
            seen: at(now),
            captured: at(now),
            digest: 1,
            length: None,
            etag: None,
            last_modified: None,
            due: Some(at(now + n)),
        })),
        archived: None,
    });
    index.apply(done.collect::<Vec<_>>()).unwrap();
    drop(index);
    let mut index = open(dir.path(), START);
    sound(&index);
    let mut total = 0;
    let end = at(START).after(Duration::from_secs(10));
    loop {
        let found = index.candidates(&wanted, end).unwrap();
        if found.is_empty() {
            break;
        }
        total += found.len();
    }
    assert_eq!(total, urls.len());
    sound(&index);
}
