//! Running the crawler on a tree: to its end, or killed on the way, and what it says of itself afterwards.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use orbweaver_testkit::Random;
use serde_json::Value;
use tempfile::TempDir;

use super::site::Site;

/// A crawl that has sent no request for so long, with a server that answers within milliseconds, hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// One way to crawl a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Requests at once.
    pub(crate) at_once: usize,
    /// A request takes up to so many milliseconds.
    pub(crate) latency_ms: u64,
    pub(crate) requisites: bool,
    /// How often the crawl is killed before it may end.
    pub(crate) kills: usize,
}

impl std::fmt::Display for Manner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} at once, up to {} ms",
            self.at_once, self.latency_ms
        )?;
        if self.requisites {
            write!(out, ", with requisites")?;
        }
        if self.kills > 0 {
            write!(out, ", killed up to {} times", self.kills)?;
        }
        Ok(())
    }
}

/// What a crawl left behind.
pub(crate) struct Crawl {
    dir: TempDir,
    /// How often it was killed in fact.
    pub(crate) kills: usize,
    /// Why it did not end as it should.
    pub(crate) complaint: Option<String>,
}

/// Crawls a site of about so many URLs from these targets in this manner.
pub(crate) fn crawl(
    site: &Site,
    seeds: &[String],
    size: usize,
    manner: Manner,
    random: &mut Random,
) -> Crawl {
    let dir = tempfile::tempdir().unwrap();
    let mut crawl = Crawl {
        dir,
        kills: 0,
        complaint: None,
    };
    // As many requests between two kills, on average, as leave some for the end.
    let spacing = (size / (manner.kills + 1)).max(8) as u64;
    while crawl.kills < manner.kills {
        let limit = site.requests() + 1 + random.below(2 * spacing) as usize;
        let mut child = start(&crawl, site, seeds, manner);
        match wait(&mut child, site, |requests| requests >= limit) {
            Ended::Stopped => crawl.kills += 1,
            Ended::ByItself(output) => {
                crawl.complaint = complaint(&output);
                return crawl;
            }
            Ended::Hangs => {
                crawl.complaint = Some(hangs());
                return crawl;
            }
        }
    }
    let mut child = start(&crawl, site, seeds, manner);
    crawl.complaint = match wait(&mut child, site, |_| false) {
        Ended::ByItself(output) => complaint(&output),
        Ended::Hangs | Ended::Stopped => Some(hangs()),
    };
    crawl
}

fn hangs() -> String {
    format!(
        "it does not end: no request for {} s, and still running",
        PATIENCE.as_secs()
    )
}

fn complaint(output: &Output) -> Option<String> {
    (!output.status.success()).then(|| {
        format!(
            "it ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )
    })
}

fn start(crawl: &Crawl, site: &Site, seeds: &[String], manner: Manner) -> Child {
    let at_once = manner.at_once.to_string();
    let mut command = binary();
    command
        .arg("crawl")
        .args(seeds.iter().map(|seed| site.url(seed)))
        .arg("-o")
        .arg(crawl.path())
        .args(["--allow-net", "127.0.0.0/8"])
        .args(["--contact", "mailto:test@example.org"])
        .args(["--rate", "0", "--progress", "off"])
        .args(["--concurrency", &at_once])
        .args(["--per-host", &at_once, "--per-ip", &at_once]);
    if manner.requisites {
        command.arg("--requisites");
    }
    command.spawn().unwrap()
}

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orbweaver"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

enum Ended {
    ByItself(Output),
    /// Killed, because what was waited for came.
    Stopped,
    /// Killed, because nothing came any more.
    Hangs,
}

/// Waits until a process ends, or kills it: when `enough` says so of the number of requests, or when it hangs.
fn wait(child: &mut Child, site: &Site, enough: impl Fn(usize) -> bool) -> Ended {
    let mut last = (site.requests(), Instant::now());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Ended::ByItself(rest_of(child, status));
        }
        let requests = site.requests();
        if requests != last.0 {
            last = (requests, Instant::now());
        }
        let enough = enough(requests);
        if enough || last.1.elapsed() > PATIENCE {
            child.kill().unwrap();
            let status = child.wait().unwrap();
            // It may have ended by itself just before.
            return match (status.code(), enough) {
                (Some(_), _) => Ended::ByItself(rest_of(child, status)),
                (None, true) => Ended::Stopped,
                (None, false) => Ended::Hangs,
            };
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// What a process wrote before it ended; it writes less than a pipe holds.
fn rest_of(child: &mut Child, status: std::process::ExitStatus) -> Output {
    use std::io::Read as _;

    let mut output = Output {
        status,
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    out.read_to_end(&mut output.stdout).unwrap();
    err.read_to_end(&mut output.stderr).unwrap();
    output
}

/// A line of `outcomes`, as far as it is compared.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) class: String,
    pub(crate) reason: String,
}

/// A line of the archive's index.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) status: String,
    pub(crate) digest: String,
}

impl Crawl {
    fn path(&self) -> PathBuf {
        self.dir.path().join("crawl")
    }

    /// Runs a command on the crawl.
    fn ask(&self, words: &[&str]) -> Output {
        let mut command = binary();
        let (first, rest) = words.split_first().unwrap();
        command.arg(first).arg(self.path()).args(rest);
        command.output().unwrap()
    }

    /// Where the crawl stands, by its own account.
    pub(crate) fn status(&self) -> Value {
        let output = self.ask(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// What `check` finds wrong.
    pub(crate) fn check(&self) -> Option<String> {
        let output = self.ask(&["check"]);
        (!output.status.success()).then(|| {
            let told = [output.stdout, output.stderr].concat();
            format!(
                "check ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&told).trim_end()
            )
        })
    }

    /// What became of every URL that is not out of scope, by its target on this site.
    pub(crate) fn outcomes(&self, site: &Site) -> HashMap<String, Outcome> {
        let output = self.ask(&["outcomes"]);
        let origin = site.url("");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut all = HashMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(target) = line["url"]
                .as_str()
                .and_then(|url| url.strip_prefix(&origin))
            else {
                continue;
            };
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let outcome = Outcome {
                class: text("class"),
                reason: text("reason"),
            };
            all.insert(target.to_owned(), outcome);
        }
        all
    }

    /// What is in the archive of every URL, by its target on this site.
    pub(crate) fn captures(&self, site: &Site) -> HashMap<String, Vec<Capture>> {
        let origin = site.url("");
        let mut all: HashMap<String, Vec<Capture>> = HashMap::new();
        let Ok(files) = fs::read_dir(self.path().join("cdxj")) else {
            return all;
        };
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines() {
                let json = line.splitn(3, ' ').nth(2).unwrap();
                let line: Value = serde_json::from_str(json).unwrap();
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                if let Some(target) = text("url").strip_prefix(&origin) {
                    all.entry(target.to_owned()).or_default().push(Capture {
                        status: text("status"),
                        digest: text("digest"),
                    });
                }
            }
        }
        all
    }
}
