//! `cargo xtask hostile`: a crawl of a server that misbehaves in every way it can, graded by that server.
//!
//! The server is a folder with `hostile.py`, `grade.py` and `cases.json`; it is no part of this project. What
//! the crawler records is handed to the grader as it is, so that the grade is the crawler's own.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;

/// The crawl is over long before; a crawler that hangs is a finding, not a reason to wait for ever.
const LONGEST: &str = "1h";

pub(crate) fn run(folder: &Path) -> Result<()> {
    let folder = fs::canonicalize(folder)
        .with_context(|| format!("there is no directory {}", folder.display()))?;
    let script = |name: &str| {
        let mut command = Command::new("python3");
        command.arg(folder.join(name));
        command
    };
    shell::run(&mut shell::cargo(["build", "--release", "-p", "orbweaver"]))?;
    let place = shell::target().join("hostile");
    shell::fresh_dir(&place)?;
    let file = |name: &str| place.join(name);

    let cases = fs::read(folder.join("cases.json")).context("the folder has no cases.json")?;
    let cases: Value = serde_json::from_slice(&cases).context("cases.json is not JSON")?;
    let limits = cases.get("limits").context("cases.json has no limits")?;
    fs::write(file("crawl.toml"), settings(limits, &file("ca.pem"))?)?;
    fs::write(
        file("seeds.txt"),
        shell::output(script("hostile.py").arg("--seeds"))?,
    )?;

    let (server, control) = Server::start(
        script("hostile.py")
            .arg("--log")
            .arg(file("hits.jsonl"))
            .arg("--ca-out")
            .arg(file("ca.pem")),
    )?;
    ask(&control, "POST", "/reset")?;
    let mut crawl = orbweaver();
    crawl
        .arg("crawl")
        .args(["--scope", "any", "--time", LONGEST]);
    crawl.arg("--seeds").arg(file("seeds.txt"));
    crawl.arg("--config").arg(file("crawl.toml"));
    crawl.arg("--output").arg(file("crawl"));
    let rss_mb = watched(&mut crawl)?;
    fs::write(file("stats.json"), ask(&control, "GET", "/stats")?)?;
    drop(server);

    fs::write(
        file("outcomes.jsonl"),
        shell::output(orbweaver().arg("outcomes").arg(file("crawl")))?,
    )?;
    shell::say(&format!("peak RSS {rss_mb} MB"));
    let mut grade = script("grade.py");
    grade.arg("--stats").arg(file("stats.json"));
    grade.arg("--outcomes").arg(file("outcomes.jsonl"));
    grade.args(["--all", "--rss-mb", &rss_mb.to_string()]);
    let graded = shell::run(&mut grade);
    let sound = shell::run(orbweaver().arg("check").arg(file("crawl")));
    graded.and(sound)
}

/// The crawler as it was built.
pub(crate) fn orbweaver() -> Command {
    Command::new(shell::target().join("release/orbweaver"))
}

/// The crawler's settings for the limits of the catalogue: those of the same name as they are, and the few
/// that live elsewhere in our file. A limit that we do not have is refused by the crawler itself.
fn settings(limits: &Value, ca: &Path) -> Result<String> {
    let limits = limits.as_object().context("the limits are no table")?;
    let (mut politeness, mut budget, mut fetch, mut plain) =
        (String::new(), String::new(), String::new(), String::new());
    for (name, value) in limits {
        // JSON numbers, strings and lists of strings are written the same way in TOML.
        match name.as_str() {
            "per_host_connections" => writeln!(politeness, "per_host = {value}")?,
            "per_host_delay_s" => {
                let delay = value.as_f64().context("per_host_delay_s is no number")?;
                writeln!(politeness, "rate = {:?}", 1.0 / delay)?;
            }
            "max_pages_per_host" => writeln!(budget, "host_pages = {value}")?,
            "allow_private_nets" => writeln!(fetch, "allow_net = {value}")?,
            "dns_server" => writeln!(fetch, "resolver = {value}")?,
            seconds if seconds.ends_with("_s") => {
                let span = value.as_f64().context("a time is no number")?;
                writeln!(plain, "{name} = {span:?}")?;
            }
            _ => writeln!(plain, "{name} = {value}")?,
        }
    }
    writeln!(fetch, "ca = {:?}", ca.to_string_lossy())?;
    Ok(format!(
        "contact = \"https://example.org/bot\"\n[politeness]\n{politeness}[budget]\n{budget}[fetch]\n{fetch}[limits]\n{plain}"
    ))
}

/// The hostile server while it runs; stopped when dropped.
struct Server(Child);

impl Server {
    /// Starts it; its control address comes with its first line.
    fn start(command: &mut Command) -> Result<(Self, String)> {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut server = Self(child.context("cannot start the hostile server")?);
        let mut line = String::new();
        if let Some(out) = server.0.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let ready: Value =
            serde_json::from_str(&line).context("the hostile server did not get ready")?;
        let control = ready.get("control").and_then(Value::as_str);
        let address = control
            .and_then(|url| url.strip_prefix("http://"))
            .and_then(|rest| rest.split('/').next())
            .context("the hostile server names no control address")?;
        Ok((server, address.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is ours and it is done with; that it may have ended by itself is no failure.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One request to the control address; the body of the answer.
pub(crate) fn ask(address: &str, method: &str, path: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = end.and_then(|end| answer.get(end + 4..));
    if !answer.starts_with(b"HTTP/1.1 200") && !answer.starts_with(b"HTTP/1.0 200") {
        bail!("{method} {path} on the control address was refused");
    }
    Ok(body.unwrap_or_default().to_vec())
}

/// Runs a command to its end; its peak resident memory in MB.
fn watched(command: &mut Command) -> Result<u64> {
    shell::step("orbweaver crawl");
    let began = Instant::now();
    let mut child = command.spawn().context("cannot start the crawler")?;
    let mut peak = 0;
    let status = loop {
        peak = peak_rss(child.id()).unwrap_or(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    shell::say(&format!("the crawl took {} s", began.elapsed().as_secs()));
    if !status.success() {
        bail!("the crawl ended with {status}");
    }
    Ok(peak / 1024)
}

/// The kernel's own record of the highest resident size so far, in KiB.
pub(crate) fn peak_rss(process: u32) -> Option<u64> {
    let mut status = String::new();
    let mut file = File::open(format!("/proc/{process}/status")).ok()?;
    file.read_to_string(&mut status).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
