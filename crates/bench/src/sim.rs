//! The simulated web as a process of its own, so that what it costs is never counted as the crawler's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use orbweaver_simweb::Stats;

use crate::measure;

/// The web to crawl. Both have 20,000 pages, so that their figures compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// 200 hosts with 100 pages each: many small queues, many connections.
    Many,
    /// One host with 20,000 pages: one long queue.
    One,
}

impl Shape {
    pub(crate) const ALL: [Self; 2] = [Self::Many, Self::One];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Many => "many",
            Self::One => "one",
        }
    }

    /// Hosts, and pages of each.
    pub(crate) fn size(self) -> (u32, u32) {
        match self {
            Self::Many => (200, 100),
            Self::One => (1, 20_000),
        }
    }

    /// The settings, spelled out, so that a change of defaults does not change the figures. Plain bodies
    /// and no sitemaps: every crawler gets the same bytes and finds its way by the same links.
    fn settings(self, port: u16) -> String {
        let (hosts, pages) = self.size();
        format!(
            "seed = 1\nhosts = {hosts}\npages = {pages}\npage_bytes = 16384\nlinks_per_page = 30\n\
             cross_host = 100\nredirects = 10\nbroken = 10\ndisallowed = 20\nsitemaps = false\n\
             gzip = false\nlatency_ms = 0\njitter_ms = 0\nthreads = 1\nport = {port}\n"
        )
    }
}

/// A running simulated web; it ends when this is dropped.
pub(crate) struct Sim {
    child: Child,
    control: Control,
    seeds: Vec<String>,
}

impl Sim {
    /// Starts one, with `orbweaver sim`.
    pub(crate) fn start(orbweaver: &Path, shape: Shape, port: u16, scratch: &Path) -> Result<Self> {
        let settings = scratch.join(format!("{}.toml", shape.name()));
        std::fs::write(&settings, shape.settings(port))?;
        let mut child = Command::new(orbweaver)
            .arg("sim")
            .arg("--config")
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", orbweaver.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let ready: serde_json::Value =
            serde_json::from_str(&line).context("the simulated web did not start")?;
        let control = ready
            .get("control")
            .and_then(|control| control.as_str()?.strip_prefix("http://"))
            .context("the simulated web has no control address")?;
        let control = Control::at(control.parse()?);
        let seeds = control.lines("/seeds")?;
        Ok(Self {
            child,
            control,
            seeds,
        })
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    pub(crate) fn seeds(&self) -> &[String] {
        &self.seeds
    }

    /// CPU time that the web has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        measure::threads_cpu(self.child.id())
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // It holds nothing worth a farewell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The control address of a simulated web.
pub(crate) struct Control(SocketAddr);

impl Control {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self(address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0
    }

    /// What was counted since the last reset.
    pub(crate) fn stats(&self) -> Result<Stats> {
        Ok(serde_json::from_str(&self.ask("GET", "/stats")?)?)
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&self) -> Result<()> {
        self.ask("POST", "/reset").map(drop)
    }

    /// A list of URLs.
    pub(crate) fn lines(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.ask("GET", path)?.lines().map(str::to_owned).collect())
    }

    fn ask(&self, method: &str, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.0)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.0
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("the simulated web did not answer")?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        Ok(body.to_owned())
    }
}
