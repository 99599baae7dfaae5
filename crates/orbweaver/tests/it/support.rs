//! Running the binary, asking it about a crawl, and waiting for what can be observed.
//!
//! Servers that follow a script are in `script`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use orbweaver_simweb::{SimConfig, SimWeb};

/// No process of these tests needs as long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Stops the test unless the process ended with this code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "standard output: {}\nstandard error: {}",
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        );
        self
    }

    /// The one sentence of a refusal; more than one line of it is a mistake of its own.
    pub(crate) fn complaint(&self) -> &str {
        self.stderr.trim_end()
    }
}

/// A process that runs. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<String>>,
    /// Each line of standard error as it comes.
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// The next line of standard error; none when it has ended.
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line for {PATIENCE:?}"),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        // It may have ended by itself just now, and then stays to be waited for.
        let _ = kill_process(pid, signal);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn wait(self) -> Ended {
        self.wait_for(PATIENCE)
    }

    /// Waits for the end; takes longer than `most` to be a failure.
    pub(crate) fn wait_for(mut self, most: Duration) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < most, "still running after {most:?}");
            thread::sleep(Duration::from_millis(5));
        };
        Ended {
            code: status.code(),
            stdout: self.stdout.take().unwrap().join().unwrap(),
            stderr: self.stderr.take().unwrap().join().unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the binary with these arguments.
pub(crate) fn start<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Running {
    start_with(args, Vec::new())
}

/// Starts the binary and gives it this on standard input.
pub(crate) fn start_with<S: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: Vec<u8>,
) -> Running {
    launch(args, input, 0)
}

/// Starts the binary with a wall clock that is so many seconds ahead.
pub(crate) fn start_at<S: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = S>,
    ahead: i64,
) -> Running {
    launch(args, Vec::new(), ahead)
}

fn launch<S: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: Vec<u8>,
    ahead: i64,
) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orbweaver"))
        .args(args)
        .env("ORBWEAVER_CLOCK_OFFSET", ahead.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::spawn(move || {
        // A process that does not read to the end has its reasons.
        let _ = stdin.write_all(&input);
    });
    let mut out = child.stdout.take().unwrap();
    let stdout = thread::spawn(move || {
        let mut all = Vec::new();
        out.read_to_end(&mut all).unwrap();
        all
    });
    let err = BufReader::new(child.stderr.take().unwrap());
    let (sender, lines) = mpsc::channel();
    let stderr = thread::spawn(move || {
        let mut all = String::new();
        for line in err.lines().map_while(Result::ok) {
            all.push_str(&line);
            all.push('\n');
            let _ = sender.send(line);
        }
        all
    });
    Running {
        child,
        stdout: Some(stdout),
        stderr: Some(stderr),
        lines,
    }
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ended {
    start(args).wait()
}

/// Waits until something can be observed.
pub(crate) fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(
            began.elapsed() < PATIENCE,
            "waited in vain for this: {what}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// A line of `outcomes`; a field that is not here, or missing there, is an error.
#[allow(dead_code, reason = "every field is read to see that it is there")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome {
    pub(crate) url: String,
    pub(crate) class: String,
    pub(crate) status: Option<u16>,
    pub(crate) ip: Option<std::net::IpAddr>,
    pub(crate) bytes: u64,
    pub(crate) ms: u32,
    pub(crate) attempts: u8,
    pub(crate) redirect: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) depth: u16,
    pub(crate) kind: String,
    pub(crate) out_of_scope: bool,
    pub(crate) time: Option<String>,
    pub(crate) via: Option<String>,
    #[serde(rename = "type")]
    pub(crate) media: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) archive: Option<Value>,
}

impl Outcome {
    pub(crate) fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }
}

/// A line of `status --json`, as strictly.
#[allow(dead_code, reason = "every field is read to see that it is there")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) running: bool,
    pub(crate) paused: bool,
    pub(crate) accepted: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) out_of_scope: u64,
    pub(crate) queued: u64,
    pub(crate) balanced: bool,
    pub(crate) pages: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) hosts: u64,
    pub(crate) hosts_seen: Value,
    pub(crate) serving: Option<Value>,
    pub(crate) classes: HashMap<String, u64>,
}

/// A directory for a crawl, gone with the test.
pub(crate) struct Place {
    _around: TempDir,
    dir: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        Self {
            dir: around.path().join("crawl"),
            _around: around,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path beside the crawl, for configuration and seed files.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.with_file_name(name)
    }

    /// Writes a file beside the crawl.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.beside(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn arg(&self) -> &str {
        self.dir.to_str().unwrap()
    }

    /// `crawl` into this directory, allowed on loopback, quiet, as fast as it goes.
    pub(crate) fn crawl(&self, more: &[&str]) -> Vec<String> {
        let usual = [
            "crawl",
            "-o",
            self.arg(),
            "--allow-net",
            "127.0.0.0/8",
            "--contact",
            "mailto:test@example.org",
        ];
        let mut args: Vec<String> = usual.map(str::to_owned).into();
        for (flag, value) in [("--rate", "0"), ("--progress", "off")] {
            if !more.contains(&flag) {
                args.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    /// Crawls to the end, sees that all is sound, and returns what became of each URL.
    pub(crate) fn crawl_to_the_end(&self, more: &[&str]) -> Fates {
        run(self.crawl(more)).expect(0);
        let status = self.status();
        assert!(status.balanced && status.queued == 0, "{status:?}");
        self.check();
        self.fates()
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let listed = run(["outcomes", self.arg()]).expect(0).out();
        let read = |line| serde_json::from_str(line).unwrap();
        listed.lines().map(read).collect()
    }

    /// The outcomes by URL.
    pub(crate) fn fates(&self) -> Fates {
        let lines = self.outcomes();
        let count = lines.len();
        let fates = Fates(lines.into_iter().map(|o| (o.url.clone(), o)).collect());
        assert_eq!(fates.0.len(), count, "a URL is listed twice");
        fates
    }

    pub(crate) fn status(&self) -> Status {
        let line = run(["status", self.arg(), "--json"]).expect(0).out();
        serde_json::from_str(&line).unwrap()
    }

    /// What `check` counts; stops the test unless all is sound.
    pub(crate) fn check(&self) -> Value {
        let lines = run(["check", self.arg(), "--json"]).expect(0).out();
        let last = lines.lines().last().unwrap();
        serde_json::from_str(last).unwrap()
    }

    /// The body of a page in the archive.
    pub(crate) fn get(&self, url: &str) -> Vec<u8> {
        run(["get", self.arg(), url]).expect(0).stdout
    }
}

/// The outcomes of a crawl by URL.
#[derive(Debug)]
pub(crate) struct Fates(HashMap<String, Outcome>);

impl Fates {
    pub(crate) fn of(&self, url: &str) -> &Outcome {
        self.0
            .get(url)
            .unwrap_or_else(|| panic!("{url} is not listed in {:#?}", self.0))
    }

    pub(crate) fn knows(&self, url: &str) -> bool {
        self.0.contains_key(url)
    }

    /// Class and reason of a URL, for a comparison in one line.
    pub(crate) fn verdict(&self, url: &str) -> (&str, &str) {
        let outcome = self.of(url);
        (&outcome.class, outcome.why())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Outcome> {
        self.0.values()
    }
}

/// A simulated web with these settings.
pub(crate) fn sim(config: SimConfig) -> SimWeb {
    SimWeb::start(config).unwrap()
}

/// Whether a test that the machine may not be able to run must run here.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false" && value != "0")
}
