//! Who is compared, and how each is started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

/// Requests at once to one host, for everyone who can be told.
pub(crate) const PER_HOST: usize = 16;

/// Requests at once in all.
pub(crate) const CONCURRENCY: usize = 64;

/// What a contestant is told.
pub(crate) struct Task<'a> {
    pub(crate) orbweaver: &'a Path,
    /// An earlier one, to compare it with.
    pub(crate) before: Option<&'a Path>,
    pub(crate) seeds: &'a [String],
    pub(crate) control: SocketAddr,
    /// An empty directory to write to.
    pub(crate) out: PathBuf,
}

/// Somebody who fetches pages.
#[derive(Clone, Copy)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// Fetched by others than us: what it misses is shown, and its figures stand all the same.
    pub(crate) peer: bool,
    pub(crate) command: fn(&Task<'_>) -> Result<Command>,
}

/// Ours, in the order of what they do.
const OURS: [Contestant; 4] = [
    Contestant {
        name: "raw",
        peer: false,
        command: raw,
    },
    Contestant {
        name: "loop",
        peer: false,
        command: naive,
    },
    Contestant {
        name: "orbweaver",
        peer: false,
        command: orbweaver,
    },
    Contestant {
        name: "all-cores",
        peer: false,
        command: all_cores,
    },
];

/// An earlier Orbweaver, when one is named.
const BEFORE: Contestant = Contestant {
    name: "before",
    peer: false,
    command: before,
};

/// Crawlers from the package registries.
const PEERS: [Contestant; 2] = [
    Contestant {
        name: "wget2",
        peer: true,
        command: wget2,
    },
    Contestant {
        name: "wget",
        peer: true,
        command: wget,
    },
];

/// Those to run: the named ones, or else ours, with the peers when they are wanted and installed.
pub(crate) fn chosen(only: &[String], peers: bool, before: bool) -> Result<Vec<Contestant>> {
    let earlier = before.then_some(BEFORE);
    let all = || OURS.iter().chain(&earlier).chain(&PEERS).copied();
    for name in only {
        ensure!(
            all().any(|contestant| contestant.name == name),
            "there is no contestant {name}; there are {}",
            all().map(|c| c.name).collect::<Vec<_>>().join(", ")
        );
    }
    let wanted = |contestant: &Contestant| match only {
        [] => !contestant.peer || (peers && installed(contestant.name)),
        names => names.iter().any(|name| name == contestant.name),
    };
    let chosen: Vec<_> = all().filter(wanted).collect();
    for peer in chosen.iter().filter(|contestant| contestant.peer) {
        if !installed(peer.name) {
            bail!("{} is not installed", peer.name);
        }
    }
    Ok(chosen)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn raw(task: &Task<'_>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("raw").arg(task.control.to_string());
    Ok(command)
}

fn naive(task: &Task<'_>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("loop").args(task.seeds);
    Ok(command)
}

/// Everything on: archive and index, both durable.
fn orbweaver(task: &Task<'_>) -> Result<Command> {
    Ok(crawl(task.orbweaver, task))
}

/// The same of an earlier build.
fn before(task: &Task<'_>) -> Result<Command> {
    let program = task.before.unwrap_or(task.orbweaver);
    Ok(crawl(program, task))
}

fn crawl(program: &Path, task: &Task<'_>) -> Command {
    let mut command = Command::new(program);
    command
        .arg("crawl")
        .args(task.seeds)
        .args(["--rate", "0", "--scope", "any"])
        .args(["--allow-net", "127.0.0.0/8", "--progress", "off"])
        .args(["--contact", "https://example.org/bot"])
        .args(["--per-host", &PER_HOST.to_string()])
        .args(["--per-ip", &PER_HOST.to_string()])
        .args(["--concurrency", &CONCURRENCY.to_string()])
        .arg("-o")
        .arg(&task.out);
    command
}

/// The same with a worker for every core instead of every other.
fn all_cores(task: &Task<'_>) -> Result<Command> {
    let cores = std::thread::available_parallelism()?;
    let config = task.out.with_extension("toml");
    std::fs::write(&config, format!("[fetch]\nworkers = {cores}\n"))?;
    let mut command = orbweaver(task)?;
    command.arg("-c").arg(config);
    Ok(command)
}

fn wget2(task: &Task<'_>) -> Result<Command> {
    let mut command = Command::new("wget2");
    command
        .args(["--quiet", "--recursive", "--level=0", "--span-hosts"])
        .args(["--tries=1", "--no-config", "--no-compression"])
        .arg(format!("--max-threads={PER_HOST}"))
        .arg("--directory-prefix")
        .arg(&task.out)
        .args(task.seeds);
    Ok(command)
}

fn wget(task: &Task<'_>) -> Result<Command> {
    let mut command = Command::new("wget");
    command
        .args(["--quiet", "--recursive", "--level=0", "--span-hosts"])
        .args(["--tries=1", "--no-config"])
        .arg("--directory-prefix")
        .arg(&task.out)
        .args(task.seeds);
    Ok(command)
}
