//! What the doc index costs when it is large. Not an assertion but a measurement, in three processes each for
//! 100,000 URLs and for many: one fills an index, one is killed with -9 while it goes on, one opens what is
//! left. `cargo xtask scale` runs it; ORBWEAVER_URLS says how many URLs (default one million),
//! ORBWEAVER_SCALE_MEMORY how many MiB the index may have, and ORBWEAVER_SCALE_DIR where the large index is to
//! be left, with all its hosts put off for a year.
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orbweaver_docindex::{DocIndex, IndexOptions, Wanted};
use orbweaver_model::{
    Candidate, CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report,
    Timestamp,
};

/// The allocator of the binary, for memory is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: KeySeed = KeySeed(7);
/// Links in one event: what some pages bring that is new.
const GROUP: u64 = 1000;
/// What the crawler gives the index of its default budget, in MiB.
const MEMORY: u64 = 256;
/// Groups that the killed process has committed when it is killed.
const GROUPS_BEFORE_KILL: usize = 200;
const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn host(n: u64) -> String {
    format!("www.host-{n}.example")
}

/// The n-th URL of a web of `hosts` hosts, in an order in which neighbours are on different hosts.
fn url(n: u64, hosts: u64) -> CrawlUrl {
    let on = host(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % hosts);
    CrawlUrl::from_canonical(&format!("http://{on}/section/{}/article-{n}.html", n % 97)).unwrap()
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
    let memory = std::env::var("ORBWEAVER_SCALE_MEMORY").ok();
    let memory = memory.map_or(MEMORY, |mib| mib.parse().unwrap());
    let options = IndexOptions {
        seed: SEED,
        memory: memory << 20,
        ..IndexOptions::default()
    };
    DocIndex::open(dir, options, at(0)).unwrap()
}

fn wanted(urls: usize) -> Wanted {
    Wanted {
        urls,
        per_host: 64,
        reject: HashSet::new(),
    }
}

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|f| f.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// A line of `/proc/self/status`, in MB.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}

fn disk(dir: &Path) -> u64 {
    let sizes = std::fs::read_dir(dir).unwrap().flatten().map(|entry| {
        let kind = entry.metadata().unwrap();
        match kind.is_dir() {
            true => disk(&entry.path()),
            false => kind.len(),
        }
    });
    sizes.sum()
}

/// Hands a figure to the process that measures.
fn figure(name: &str, value: f64) {
    println!("\nfigure {name}={value}");
}

/// CPU in microseconds for each.
fn timed<T>(name: &str, work: impl FnOnce() -> (T, u64)) -> T {
    let before = cpu();
    let (value, count) = work();
    let used = cpu().saturating_sub(before).as_secs_f64();
    figure(name, used * 1e6 / count.max(1) as f64);
    value
}

fn fill(dir: &Path, urls: u64, hosts: u64) {
    let mut index = open(dir);
    timed("insert if absent, CPU us", || {
        for from in (0..urls).step_by(GROUP as usize) {
            index.apply([links(from, hosts)]).unwrap();
        }
        index.sync().unwrap();
        ((), urls)
    });
    let seen = index.seen();
    let each = seen.bytes() as f64 / seen.len() as f64;
    figure("RAM of the seen-set, bytes a URL", each);
    let known = 1_000_000.min(urls);
    timed("look up a known URL, CPU us", || {
        let hits = (0..known).filter(|n| seen.contains(url(n * 7 % urls, hosts).key(SEED)));
        assert_eq!(hits.count() as u64, known);
        ((), known)
    });
    timed("look up an unknown URL, CPU us", || {
        let hits = (0..known).filter(|n| seen.contains(url(urls + n, hosts).key(SEED)));
        assert_eq!(hits.count(), 0);
        ((), known)
    });
    let taken = timed("hand out a URL, CPU us", || {
        let mut taken = Vec::new();
        while (taken.len() as u64) < 20_000.min(urls / 2) {
            taken.extend(index.candidates(&wanted(1024), at(2)).unwrap());
        }
        let count = taken.len() as u64;
        (taken, count)
    });
    timed("finish a URL, CPU us", || {
        for group in taken.chunks(256) {
            index.apply(group.iter().map(done)).unwrap();
        }
        ((), taken.len() as u64)
    });
    figure("memory, MB", memory("VmRSS"));
    figure("memory at its peak, MB", memory("VmHWM"));
    figure("disk, bytes a URL", disk(dir) as f64 / urls as f64);
}

fn done(candidate: &Candidate) -> Event {
    let report = Report {
        outcome: Outcome::plain(OutcomeClass::Success),
        status: Some(200),
        ip: Some([127, 0, 0, 1].into()),
        bytes: 16_000,
        millis: 20,
        at: at(3),
        redirect: None,
    };
    Event::Done {
        key: candidate.key,
        report,
        links: Vec::new(),
        revisit: None,
        archived: None,
    }
}

/// Goes on where the filling ended, until it is killed.
fn go_on(dir: &Path, urls: u64, hosts: u64) {
    let mut index = open(dir);
    for from in (urls..).step_by(GROUP as usize) {
        index.apply([links(from, hosts)]).unwrap();
        println!("\ncommitted");
    }
}

fn reopen(dir: &Path) {
    let began = Instant::now();
    let mut index = open(dir);
    assert_eq!(index.candidates(&wanted(1), at(4)).unwrap().len(), 1);
    figure("reopen after kill -9, s", began.elapsed().as_secs_f64());
    figure("  CPU of that, s", cpu().as_secs_f64());
    // What does not fit will never be.
    while !index.seen().is_complete() && index.seen().bytes() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let all = began.elapsed().as_secs_f64();
    figure("  until all fingerprints are in RAM, s", all);
    figure("  CPU of that, s.", cpu().as_secs_f64());
    figure("  memory then, MB", memory("VmRSS"));
    figure("  memory at its peak, MB", memory("VmHWM"));
}

/// Puts all hosts off, so that a crawl of other hosts can be added to what is known.
fn postpone(dir: &Path, hosts: u64) {
    let mut index = open(dir);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let not_before = at(now.as_millis() as u64).after(YEAR);
    for from in (0..hosts).step_by(GROUP as usize) {
        let events = (from..hosts.min(from + GROUP)).map(|n| Event::Host {
            host: SEED.host(&host(n)),
            not_before,
        });
        index.apply(events).unwrap();
    }
    index.sync().unwrap();
}

/// What one process of the measurement does; ignored by everybody who does not say which.
#[test]
#[ignore = "a part of the measurement below"]
fn part() {
    let Ok(part) = std::env::var("ORBWEAVER_SCALE_PART") else {
        return;
    };
    let dir = PathBuf::from(std::env::var("ORBWEAVER_SCALE_INDEX").unwrap());
    let urls: u64 = std::env::var("ORBWEAVER_URLS").unwrap().parse().unwrap();
    let hosts = (urls / 100).max(1);
    match part.as_str() {
        "fill" => fill(&dir, urls, hosts),
        "go on" => go_on(&dir, urls, hosts),
        "reopen" => reopen(&dir),
        "postpone" => postpone(&dir, hosts),
        _ => unreachable!("a part that is not there: {part}"),
    }
}

fn start(part: &str, dir: &Path, urls: u64) -> Child {
    // Not by its path, where another build may have put another program.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", "scale::part", "--nocapture"]);
    command.env("ORBWEAVER_SCALE_PART", part);
    command.env("ORBWEAVER_SCALE_INDEX", dir);
    command.env("ORBWEAVER_URLS", urls.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs a part to its end; its figures, in their order.
fn run(part: &str, dir: &Path, urls: u64) -> Vec<(String, f64)> {
    let mut child = start(part, dir, urls);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let figures = lines.filter_map(|line| {
        let line = line.unwrap();
        let (name, value) = line.strip_prefix("figure ")?.split_once('=')?;
        Some((name.to_owned(), value.parse().unwrap()))
    });
    let figures = figures.collect();
    assert!(child.wait().unwrap().success(), "{part} failed");
    figures
}

fn kill_while_it_works(dir: &Path, urls: u64) {
    let mut child = start("go on", dir, urls);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let committed = lines.filter(|line| line.as_ref().unwrap() == "committed");
    assert_eq!(
        committed.take(GROUPS_BEFORE_KILL).count(),
        GROUPS_BEFORE_KILL
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

fn measure(urls: u64, dir: &Path) -> Vec<(String, f64)> {
    let mut figures = run("fill", dir, urls);
    kill_while_it_works(dir, urls);
    figures.extend(run("reopen", dir, urls));
    figures
}

#[test]
#[ignore = "a measurement of minutes"]
fn scale() {
    let number = std::env::var("ORBWEAVER_URLS").ok();
    let urls = number.and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let scratch = tempfile::tempdir().unwrap();
    let few: BTreeMap<_, _> = measure(100_000, &scratch.path().join("few"))
        .into_iter()
        .collect();
    let kept = std::env::var_os("ORBWEAVER_SCALE_DIR").map(PathBuf::from);
    let dir = kept
        .as_ref()
        .map_or(scratch.path().join("many"), |dir| dir.join("index"));
    let many = measure(urls, &dir);
    println!("{:<42} {:>10} {urls:>12} {:>8}", "", 100_000, "ratio");
    for (name, value) in many {
        let before = few.get(&name).copied().unwrap_or(0.0);
        println!(
            "{name:<42} {before:>10.2} {value:>12.2} {:>8.2}",
            value / before
        );
    }
    if kept.is_some() {
        run("postpone", &dir, urls);
    }
}
