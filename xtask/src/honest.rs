//! `cargo xtask honest`: what the hostile web costs those who behave, and what it costs in memory.
//!
//! Twenty hosts of the simulated web are crawled alone, and then in one crawl with the hostile web; the
//! ratio of the two speeds is printed. The same with sixty hosts beside 1, 20, 200 and 2,000 that are slow, fail,
//! send without end, or have a long robots.txt (`crowd`). Then the memory: 24 hostile fetches at once, and a thousand bodies
//! without end at once, plain and in each encoding. Both webs are processes of their own.

mod crowd;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::hostile::{ask, orbweaver, peak_rss};
use crate::shell;

/// What a crawl of honest hosts is like.
struct Honest {
    hosts: &'static str,
    pages: &'static str,
    rate: &'static str,
}

/// Beside crowds of hostile hosts: sixty hosts for half a minute.
const BESIDE_CROWDS: Honest = Honest {
    hosts: "60",
    pages: "60",
    rate: "2",
};

/// How many hostile hosts there are.
const CROWDS: [usize; 4] = [1, 20, 200, 2000];

/// Hosts of the honest web, and pages of each: enough that the crawl of them takes a quarter of a minute.
///
/// Requests a second to a host, ten times the default. With many more the two webs would share the
/// processor as any hosts do, which tells nothing about one holding up the other.
const BESIDE_THE_HOSTILE_WEB: Honest = Honest {
    hosts: "20",
    pages: "150",
    rate: "10",
};

/// Bodies without end at once.
const ENDLESS: u16 = 1000;

/// What is promised.
const LEAST_SPEED: f64 = 0.8;
const MOST_MIB: u64 = 512;
const MOST_ENDLESS_MIB: u64 = 1024;

/// What can be measured by itself.
pub(crate) const PARTS: [&str; 3] = ["web", "crowds", "memory"];

/// Only one of `PARTS`, when it is named.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    shell::run(&mut shell::cargo(["build", "--release", "-p", "orbweaver"]))?;
    let place = shell::target().join("honest");
    shell::fresh_dir(&place)?;
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut broken = false;
    if wanted("web") {
        broken |= speed(&place)?;
    }
    if wanted("crowds") {
        broken |= crowds(&place)?;
    }
    if wanted("memory") {
        broken |= memory(&place)?;
    }
    if broken {
        bail!("a promise of docs/reliability.md does not hold here");
    }
    Ok(())
}

/// Prints the two speeds; true when the ratio is too small.
fn speed(place: &Path) -> Result<bool> {
    let honest = &BESIDE_THE_HOSTILE_WEB;
    let Honest { hosts, pages, rate } = honest;
    let alone = honest_seconds(&place.join("alone"), honest, |_| Ok(()))?;
    let hostile = Web::hostile(&place.join("hostile-web"))?;
    let beside = honest_seconds(&place.join("beside"), honest, |crawl| {
        crawl.args(["--resolver", hostile.text("resolver")?]);
        crawl.arg("--seeds").arg(hostile.folder.join("seeds.txt"));
        crawl.arg("--ca").arg(hostile.folder.join("ca.pem"));
        Ok(())
    })?;
    let ratio = alone / beside;
    shell::say(&format!(
        "{hosts} honest hosts of {pages} pages, {rate} requests a second to each: {alone:.1} s alone, {beside:.1} s beside the hostile web: {:.0} % of the speed",
        ratio * 100.0
    ));
    Ok(ratio < LEAST_SPEED)
}

/// Prints the speeds beside crowds of hostile hosts; true when one is too small.
fn crowds(place: &Path) -> Result<bool> {
    let honest = &BESIDE_CROWDS;
    let Honest { hosts, pages, rate } = honest;
    let alone = honest_seconds(&place.join("sixty"), honest, |_| Ok(()))?;
    shell::say(&format!(
        "{hosts} honest hosts of {pages} pages, {rate} requests a second to each: {alone:.1} s alone"
    ));
    let mut broken = false;
    for kind in crowd::KINDS {
        let port = crowd::serve(kind)?;
        for size in CROWDS {
            let place = place.join(format!("{kind:?}-{size}"));
            fs::create_dir_all(&place)?;
            let seeds = place.join("seeds.txt");
            fs::write(&seeds, crowd::seeds(size, port))?;
            let beside = honest_seconds(&place, honest, |crawl| {
                crawl.arg("--seeds").arg(&seeds);
                Ok(())
            })?;
            let ratio = alone / beside;
            shell::say(&format!(
                "beside {size} of the kind {}: {beside:.1} s, {:.0} % of the speed",
                kind.name(),
                ratio * 100.0
            ));
            broken |= ratio < LEAST_SPEED;
            fs::remove_dir_all(&place)?;
        }
    }
    Ok(broken)
}

/// Crawls the honest web, with what `beside` adds to the crawl, until its last page is fetched.
fn honest_seconds(
    place: &Path,
    honest: &Honest,
    beside: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<f64> {
    fs::create_dir_all(place)?;
    let mut sim = orbweaver();
    sim.args([
        "sim",
        "--hosts",
        honest.hosts,
        "--pages",
        honest.pages,
        "--latency-ms",
        "5",
    ]);
    let rate = honest.rate;
    let honest = Web::start(&mut sim)?;
    let mut crawl = crawl(place);
    crawl.args(["--allow-net", "127.0.0.0/8", "--rate", rate]);
    crawl.arg(honest.text("seed_url")?);
    beside(&mut crawl)?;
    let control = honest
        .text("control")?
        .trim_start_matches("http://")
        .to_owned();
    let began = Instant::now();
    let mut child = crawl.spawn().context("cannot start the crawler")?;
    loop {
        let stats: Value = serde_json::from_slice(&ask(&control, "GET", "/stats")?)?;
        let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or(0);
        if number("fetched") == number("expected") {
            break;
        }
        if child.try_wait()?.is_some() {
            bail!("the crawl ended before the honest web was fetched");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed().as_secs_f64();
    // What is left of the hostile web is of no interest here.
    child.kill()?;
    child.wait()?;
    Ok(took)
}

/// Prints the memory; true when it is too much.
fn memory(place: &Path) -> Result<bool> {
    let hostile = Web::hostile(&place.join("memory-web"))?;
    let folder = place.join("few");
    fs::create_dir_all(&folder)?;
    let mut few = crawl(&folder);
    few.args(["--allow-net", "127.90.0.0/16", "--concurrency", "24"]);
    few.args([
        "--rate",
        "0",
        "--time",
        "120s",
        "--resolver",
        hostile.text("resolver")?,
    ]);
    few.arg("--seeds").arg(hostile.folder.join("seeds.txt"));
    few.arg("--ca").arg(hostile.folder.join("ca.pem"));
    let peak = watched(&mut few)?;
    shell::say(&format!(
        "24 hostile fetches at once: peak memory {peak} MiB"
    ));
    let mut broken = peak >= MOST_MIB;
    let pattern = hostile.text("endless_url")?.to_owned();
    for encoding in ["plain", "gzip", "zstd", "br"] {
        let folder = place.join(encoding);
        fs::create_dir_all(&folder)?;
        let seeds: String = (1..=ENDLESS)
            .map(|host| {
                let [high, low] = host.to_be_bytes();
                let url = pattern.replace("127.91.0.1:", &format!("127.91.{high}.{low}:"));
                format!("{}\n", url.replace("/plain", &format!("/{encoding}")))
            })
            .collect();
        fs::write(folder.join("seeds.txt"), seeds)?;
        let mut many = crawl(&folder);
        many.args(["--allow-net", "127.91.0.0/16", "--concurrency", "1000"]);
        many.args(["--rate", "0"])
            .arg("--seeds")
            .arg(folder.join("seeds.txt"));
        let peak = watched(&mut many)?;
        shell::say(&format!(
            "{ENDLESS} bodies without end at once, {encoding}: peak memory {peak} MiB"
        ));
        broken |= peak >= MOST_ENDLESS_MIB;
    }
    Ok(broken)
}

fn crawl(place: &Path) -> Command {
    let mut crawl = orbweaver();
    crawl.args(["crawl", "--scope", "any", "--progress", "off"]);
    crawl.args(["--contact", "https://example.org/bot"]);
    crawl.arg("--output").arg(place.join("crawl"));
    crawl.stdout(Stdio::null()).stderr(Stdio::null());
    crawl
}

/// Runs a crawl to its end; its peak resident memory in MiB.
fn watched(command: &mut Command) -> Result<u64> {
    let mut child = command.spawn().context("cannot start the crawler")?;
    let mut peak = 0;
    loop {
        peak = peak_rss(child.id()).unwrap_or(peak);
        if child.try_wait()?.is_some() {
            return Ok(peak / 1024);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A simulated web as a process; stopped when dropped.
pub(crate) struct Web {
    child: Child,
    ready: Value,
    folder: PathBuf,
    _out: BufReader<ChildStdout>,
}

impl Web {
    fn hostile(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut web = Self::start(orbweaver().arg("sim").arg("--hostile").arg(folder))?;
        web.folder = folder.to_path_buf();
        Ok(web)
    }

    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a web")?;
        let out = child.stdout.take().context("a web without output")?;
        let mut out = BufReader::new(out);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let ready = serde_json::from_str(&line).context("a web did not get ready")?;
        Ok(Self {
            child,
            ready,
            folder: PathBuf::new(),
            _out: out,
        })
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        let value = self.ready.get(name).and_then(Value::as_str);
        value.with_context(|| format!("a web that does not say {name}"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // It is ours and it is done with; that it may have ended by itself is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
