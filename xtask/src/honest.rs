//! `cargo xtask honest`: what the hostile web costs those who behave, and what it costs in memory.
//!
//! Twenty hosts of the simulated web are crawled alone, and then in one crawl with the hostile web; the
//! ratio of the two speeds is printed. Then the memory: 24 hostile fetches at once, and a thousand bodies
//! without end at once, plain and in each encoding. Both webs are processes of their own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::hostile::{ask, orbweaver, peak_rss};
use crate::shell;

/// Hosts of the honest web, and pages of each: enough that the crawl of them takes a quarter of a minute.
const HOSTS: &str = "20";
const PAGES: &str = "150";

/// Requests a second to a host, ten times the default. With many more the two webs would share the
/// processor as any hosts do, which tells nothing about one holding up the other.
const RATE: &str = "10";

/// Bodies without end at once.
const ENDLESS: u16 = 1000;

/// What is promised.
const LEAST_SPEED: f64 = 0.8;
const MOST_MIB: u64 = 512;
const MOST_ENDLESS_MIB: u64 = 1024;

pub(crate) fn run() -> Result<()> {
    shell::run(&mut shell::cargo(["build", "--release", "-p", "orbweaver"]))?;
    let place = shell::target().join("honest");
    shell::fresh_dir(&place)?;
    let mut broken = speed(&place)?;
    broken |= memory(&place)?;
    if broken {
        bail!("a promise of docs/reliability.md does not hold here");
    }
    Ok(())
}

/// Prints the two speeds; true when the ratio is too small.
fn speed(place: &Path) -> Result<bool> {
    let alone = honest_seconds(&place.join("alone"), None)?;
    let hostile = Web::hostile(&place.join("hostile-web"))?;
    let beside = honest_seconds(&place.join("beside"), Some(&hostile))?;
    let ratio = alone / beside;
    shell::say(&format!(
        "{HOSTS} honest hosts of {PAGES} pages, {RATE} requests a second to each: {alone:.1} s alone, {beside:.1} s beside the hostile web: {:.0} % of the speed",
        ratio * 100.0
    ));
    Ok(ratio < LEAST_SPEED)
}

/// Crawls the honest web, with the hostile one if there is one, until its last page is fetched.
fn honest_seconds(place: &Path, hostile: Option<&Web>) -> Result<f64> {
    fs::create_dir_all(place)?;
    let mut sim = orbweaver();
    sim.args([
        "sim",
        "--hosts",
        HOSTS,
        "--pages",
        PAGES,
        "--latency-ms",
        "5",
    ]);
    let honest = Web::start(&mut sim)?;
    let mut crawl = crawl(place);
    crawl.args(["--allow-net", "127.0.0.0/8", "--rate", RATE]);
    crawl.arg(honest.text("seed_url")?);
    if let Some(hostile) = hostile {
        crawl.args(["--resolver", hostile.text("resolver")?]);
        crawl.arg("--seeds").arg(hostile.folder.join("seeds.txt"));
        crawl.arg("--ca").arg(hostile.folder.join("ca.pem"));
    }
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
