//! What the doc index costs when it is large. Not an assertion but a measurement: run it with
//! `cargo test --release -p orbweaver-docindex --test scale -- --ignored --nocapture`; ORBWEAVER_URLS says how
//! many URLs (default one million), and the same work on 100,000 stands beside it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use orbweaver_docindex::{DocIndex, IndexOptions, Wanted};
use orbweaver_model::{
    CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report, Timestamp,
};

const SEED: KeySeed = KeySeed(7);
/// Links in one event: what a page brings that is new.
const GROUP: u64 = 1000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// The n-th URL of a web of `hosts` hosts, in an order in which neighbours are on different hosts.
fn url(n: u64, hosts: u64) -> CrawlUrl {
    let (host, page) = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % hosts, n);
    CrawlUrl::from_canonical(&format!(
        "http://www.host-{host}.example/section/{}/article-{page}.html",
        page % 97
    ))
    .unwrap()
}

fn links(from: u64, hosts: u64) -> Event {
    let link = |n| Link {
        url: url(n, hosts),
        kind: LinkKind::A,
        depth: 3,
        priority: 16,
        via: None,
        chain: Vec::new(),
    };
    let links = (from..from + GROUP)
        .map(|n| NewLink {
            link: link(n),
            refused: None,
        })
        .collect();
    Event::Links { links, at: at(1) }
}

fn open(dir: &Path) -> DocIndex {
    let options = IndexOptions {
        seed: SEED,
        memory: 128 << 20,
        ..IndexOptions::default()
    };
    DocIndex::open(dir, options, at(0)).unwrap()
}

fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    Duration::from_millis(
        fields
            .skip(11)
            .take(2)
            .map(|f| f.parse::<u64>().unwrap() * 10)
            .sum(),
    )
}

fn rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn disk(dir: &Path) -> u64 {
    let sizes = std::fs::read_dir(dir).unwrap().flatten().map(|entry| {
        let kind = entry.metadata().unwrap();
        if kind.is_dir() {
            disk(&entry.path())
        } else {
            kind.len()
        }
    });
    sizes.sum()
}

struct Timer(Instant, Duration);

impl Timer {
    fn start() -> Self {
        Self(Instant::now(), cpu())
    }

    fn show(&self, what: &str, each: u64) {
        let (wall, used) = (self.0.elapsed(), cpu().saturating_sub(self.1));
        let micros = |span: Duration| span.as_secs_f64() * 1e6 / each.max(1) as f64;
        println!(
            "  {what:<34} {:8.2} CPU us each  {:8.2} wall us each  {:7.2} s",
            micros(used),
            micros(wall),
            wall.as_secs_f64()
        );
    }
}

fn measure(urls: u64) {
    let hosts = (urls / 100).max(1);
    let dir = tempfile::tempdir().unwrap();
    println!("{urls} URLs on {hosts} hosts");
    let mut index = open(dir.path());
    let timer = Timer::start();
    for from in (0..urls).step_by(GROUP as usize) {
        index.apply([links(from, hosts)]).unwrap();
    }
    index.sync().unwrap();
    timer.show("insert a new URL", urls);
    let seen = index.seen();
    println!(
        "  {:<34} {:8.1} bytes a URL",
        "seen-set",
        seen.bytes() as f64 / seen.len() as f64
    );
    let timer = Timer::start();
    let known = 1_000_000.min(urls);
    let hits = (0..known)
        .filter(|n| seen.contains(url(n * 7 % urls, hosts).key(SEED)))
        .count();
    timer.show("look up a known URL (URL built too)", known);
    assert_eq!(hits as u64, known);

    let timer = Timer::start();
    let rounds = 20_000.min(urls / 2);
    let mut taken = Vec::new();
    while (taken.len() as u64) < rounds {
        let wanted = Wanted {
            urls: 1024,
            per_host: 64,
            reject: HashSet::new(),
        };
        taken.extend(index.candidates(&wanted, at(2)).unwrap());
    }
    timer.show("hand out a URL", taken.len() as u64);
    let timer = Timer::start();
    let report = || Report {
        outcome: Outcome::plain(OutcomeClass::Success),
        status: Some(200),
        ip: Some([127, 0, 0, 1].into()),
        bytes: 16_000,
        millis: 20,
        at: at(3),
        redirect: None,
    };
    for group in taken.chunks(256) {
        let done = |candidate: &orbweaver_model::Candidate| Event::Done {
            key: candidate.key,
            report: report(),
            links: Vec::new(),
            revisit: None,
        };
        index.apply(group.iter().map(done)).unwrap();
    }
    timer.show("finish a URL", taken.len() as u64);
    println!("  {:<34} {:8} MB", "memory", rss_mb());
    drop(index);
    println!(
        "  {:<34} {:8.1} bytes a URL",
        "disk",
        disk(dir.path()) as f64 / urls as f64
    );
    let timer = Timer::start();
    let mut index = open(dir.path());
    let wanted = Wanted {
        urls: 1,
        per_host: 1,
        reject: HashSet::new(),
    };
    assert_eq!(index.candidates(&wanted, at(4)).unwrap().len(), 1);
    timer.show("reopen, to the first URL handed out", urls);
}

#[test]
#[ignore = "a measurement of minutes"]
fn scale() {
    let urls = std::env::var("ORBWEAVER_URLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    measure(100_000);
    measure(urls);
}
