//! `cargo xtask scale`: the doc index with ten million URLs, by itself and under a crawl.
//!
//! First the measurement of the crate `docindex`, which leaves an index whose hosts are all put off for a
//! year. Then the crawler, as a user would start it, on the simulated web: in an empty directory, and in one
//! with that index, and the ratio of the two.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::honest::Web;
use crate::hostile::{ask, orbweaver, peak_rss};
use crate::shell;

const URLS: &str = "10000000";

/// The simulated web: a crawl of it takes the better part of a minute.
const HOSTS: &str = "200";
const PAGES: &str = "500";

/// The default of `--memory`, which the crawler is told all the same.
const BUDGET_MIB: u64 = 512;

/// The mark of a crawl directory, from `docs/formats/crawl-directory.md`.
const MARK: (&str, &str) = ("orbweaver-crawl", "orbweaver crawl directory, format 1\n");

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let urls = match arguments {
        [] => URLS,
        [urls] => urls,
        _ => bail!("scale takes at most one number: URLS"),
    };
    urls.parse::<u64>()
        .with_context(|| format!("`{urls}` is not a number"))?;
    shell::run(&mut shell::cargo(["build", "--release", "-p", "orbweaver"]))?;
    let place = shell::target().join("scale");
    shell::fresh_dir(&place)?;
    let (empty, full) = (place.join("empty"), place.join("full"));
    fs::create_dir_all(&full)?;
    fs::write(full.join(MARK.0), MARK.1)?;
    let test = [
        "test",
        "--release",
        "-p",
        "orbweaver-docindex",
        "--test",
        "it",
        "--",
        "--ignored",
        "--exact",
        "scale::scale",
        "--nocapture",
    ];
    let mut command = shell::cargo(test);
    command.env("ORBWEAVER_URLS", urls);
    shell::run(command.env("ORBWEAVER_SCALE_DIR", &full))?;
    shell::step("the same crawl with nothing known, and with all that");
    let few = crawl(&empty)?;
    let many = crawl(&full)?;
    few.show("nothing known", &few);
    many.show(&format!("{urls} URLs known"), &few);
    fs::remove_dir_all(&place).context("cannot remove what was measured")
}

/// What a crawl of the simulated web took.
struct Figures {
    first_fetch: Duration,
    peak_mib: u64,
    /// CPU in milliseconds for a page: of the whole run, and of its second half.
    whole: f64,
    late: f64,
}

impl Figures {
    fn show(&self, what: &str, beside: &Self) {
        shell::say(&format!(
            "{what}: first fetch after {:.1} s, peak memory {} MiB ({:.2} of the budget), CPU per page {:.3} ms ({:.2} ×), of the second half {:.3} ms ({:.2} ×)",
            self.first_fetch.as_secs_f64(),
            self.peak_mib,
            self.peak_mib as f64 / BUDGET_MIB as f64,
            self.whole,
            self.whole / beside.whole,
            self.late,
            self.late / beside.late,
        ));
    }
}

/// Crawls the simulated web until its last page is fetched.
fn crawl(dir: &Path) -> Result<Figures> {
    let web = Web::start(orbweaver().args(["sim", "--hosts", HOSTS, "--pages", PAGES]))?;
    let control = web
        .text("control")?
        .trim_start_matches("http://")
        .to_owned();
    let mut crawl = orbweaver();
    crawl.args(["crawl", "--scope", "any", "--progress", "off"]);
    crawl.args(["--allow-net", "127.0.0.0/8", "--rate", "0"]);
    crawl.args(["--per-host", "16", "--per-ip", "16", "--concurrency", "64"]);
    crawl.args(["--contact", "https://example.org/bot"]);
    crawl.arg("--memory").arg(format!("{BUDGET_MIB}M"));
    crawl.arg("--output").arg(dir).arg(web.text("seed_url")?);
    let began = Instant::now();
    let mut child = crawl
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start the crawler")?;
    let (mut first_fetch, mut half, mut peak) = (None, None, 0);
    let (whole, late) = loop {
        let stats: Value = serde_json::from_slice(&ask(&control, "GET", "/stats")?)?;
        let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (fetched, expected) = (number("fetched"), number("expected"));
        peak = peak_rss(child.id()).unwrap_or(peak);
        if fetched > 0 {
            first_fetch.get_or_insert(began.elapsed());
        }
        let used = cpu_ms(child.id()).unwrap_or(0.0);
        if fetched * 2 >= expected {
            half.get_or_insert((fetched, used));
        }
        if fetched == expected {
            let (before, then) = half.unwrap_or_default();
            break (
                used / fetched as f64,
                (used - then) / (fetched - before).max(1) as f64,
            );
        }
        if let Some(status) = child.try_wait()? {
            bail!("the crawl ended before all was fetched ({status})");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    child.kill()?;
    child.wait()?;
    Ok(Figures {
        first_fetch: first_fetch.unwrap_or_default(),
        peak_mib: peak / 1024,
        whole,
        late,
    })
}

/// User and system time of a process in milliseconds.
fn cpu_ms(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = stat.rsplit(')').next()?.split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<f64>().ok());
    Some(ticks.sum::<f64>() * 10.0)
}
