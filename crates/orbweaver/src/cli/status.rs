//! `orbweaver status`: the state of a crawl.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use orbweaver_config::units::{counted, human_bytes};
use orbweaver_ring::{HostLine, Status, View, json};

use super::damaged;
use crate::exit::Ending;
use crate::summary::aside;

/// Show the state of a crawl, running or not
///
/// Counts of URLs by outcome, hosts by state, and a few hosts by name: those that wait or are blocked, the slowest, and
/// those with most failed attempts.
#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows a status to a person.
fn print(status: &Status, dir: &Path, out: &mut dyn Write) -> Result<()> {
    let dir = dir.display();
    let state = match (status.running, status.queued) {
        (true, _) if status.paused => format!("paused; `orbweaver ctl {dir} resume` resumes it"),
        (true, _) => "running".into(),
        (false, 0) => "finished".into(),
        (false, _) => format!("stopped; `orbweaver crawl -o {dir}` resumes it"),
    };
    writeln!(out, "state      {state}")?;
    writeln!(out, "known      {}", counted(status.accepted, "URL"))?;
    writeln!(
        out,
        "done       {} ({}, {})",
        status.done,
        counted(status.pages, "page"),
        human_bytes(status.bytes)
    )?;
    writeln!(out, "failed     {}", status.failed)?;
    writeln!(
        out,
        "refused    {} ({} out of scope)",
        status.refused, status.out_of_scope
    )?;
    writeln!(out, "queued     {}", status.queued)?;
    writeln!(out, "requests   {} made", status.requests)?;
    match status.balanced {
        true => writeln!(out, "ledger     balances")?,
        false => writeln!(
            out,
            "ledger     DOES NOT BALANCE: run `orbweaver check {dir}`"
        )?,
    }
    for (class, count) in &status.classes {
        writeln!(out, "  {class:<18} {count}{}", aside(status, class))?;
    }
    print_hosts(status, out)
}

fn print_hosts(status: &Status, out: &mut dyn Write) -> Result<()> {
    let states = &status.hosts_seen.by_state;
    writeln!(
        out,
        "hosts      {} contacted; {} ready, {} waiting, {} blocked, {} done",
        status.hosts, states.ready, states.waiting, states.blocked, states.done
    )?;
    if let Some(serving) = &status.serving {
        writeln!(
            out,
            "active     {}, {} in flight: {} wait for the rate limit, {} for a response, {} for their \
             IP address, {} for robots.txt, {} for DNS",
            counted(serving.hosts as u64, "host"),
            counted(serving.in_flight as u64, "request"),
            serving.waiting_for_time,
            serving.busy,
            serving.waiting_for_address,
            serving.waiting_for_robots,
            serving.waiting_for_dns,
        )?;
    }
    let time = |line: &HostLine| line.time.clone().unwrap_or_default();
    let seen = &status.hosts_seen;
    print_list(out, "waiting", &seen.waiting, |line| {
        format!("until {}", time(line))
    })?;
    print_list(out, "blocked", &seen.blocked, |line| {
        format!("{} queued, since {}", line.queued, time(line))
    })?;
    print_list(out, "slowest", &seen.slowest, |line| {
        let requests = counted(line.requests.into(), "request");
        format!("{} ms per response, {requests}", line.ms)
    })?;
    print_list(out, "failing", &seen.failing, |line| {
        let failed = counted(line.failed.into(), "failed attempt");
        format!("{failed}, {}", counted(line.requests.into(), "request"))
    })
}

/// A list of hosts, its name before the first.
fn print_list(
    out: &mut dyn Write,
    name: &str,
    lines: &[HostLine],
    say: impl Fn(&HostLine) -> String,
) -> Result<()> {
    for (index, line) in lines.iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        writeln!(out, "{name:<10} {}: {}", line.host, say(line))?;
    }
    Ok(())
}

impl StatusArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let seen = View::open(&self.dir)?.status()?;
        self.show(&seen.answer)?;
        Ok(damaged::index(&seen.damage, &self.dir))
    }

    fn show(&self, status: &Status) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", json::line(status))?);
        }
        print(status, &self.dir, &mut out)
    }
}
