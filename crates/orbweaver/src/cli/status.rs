//! `orbweaver status`: where a crawl stands.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use orbweaver_docindex::{Ledger, Reader};
use orbweaver_model::{Column, OutcomeClass, Timestamp};
use orbweaver_urlserver::Census;

use super::damaged;
use crate::clock;
use crate::control::{self, Question};
use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;
use crate::hosts::{HostLine, Hosts};
use crate::terminal;
use orbweaver_config::units::{counted, human_bytes, moment};

/// Memory for reading an index that nobody else has open.
pub(crate) const READER_MEMORY: u64 = 64 << 20;

/// Show where a crawl stands, running or not
///
/// Counts of URLs by what became of them, hosts by state, and the hosts that stand out: those that wait or
/// are blocked, the slowest, and those with most failed attempts.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory of the crawl
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The state of a crawl in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Whether a process is crawling now.
    pub(crate) running: bool,
    /// Whether an operator has paused it.
    pub(crate) paused: bool,
    /// URLs known.
    pub(crate) accepted: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    /// Those of the refused that do not belong to the crawl; policy, robots.txt or a trap rule denied the others.
    pub(crate) out_of_scope: u64,
    pub(crate) queued: u64,
    /// accepted = done + failed + refused + queued.
    pub(crate) balanced: bool,
    /// Pages among the done.
    pub(crate) pages: u64,
    /// Requests that were made: for pages and robots.txt files, with repetitions and redirects.
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Hosts that were asked for a page.
    pub(crate) hosts: u64,
    /// Hosts by state, and those that stand out.
    pub(crate) hosts_seen: Hosts,
    /// What the URL server works on; none while no crawl runs.
    pub(crate) serving: Option<Serving>,
    /// URLs by outcome class, without the classes that have none.
    pub(crate) classes: std::collections::BTreeMap<String, u64>,
}

/// Hosts with a queue in the URL server, by what they wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Serving {
    pub(crate) hosts: usize,
    /// To be asked as soon as a request may go out.
    pub(crate) ready: usize,
    /// For the gap after their last request, or for the patience that they asked for.
    pub(crate) waiting_for_time: usize,
    /// For the turn of their address.
    pub(crate) waiting_for_address: usize,
    pub(crate) waiting_for_robots: usize,
    pub(crate) waiting_for_dns: usize,
    /// For an answer.
    pub(crate) busy: usize,
    /// Requests that are out.
    pub(crate) in_flight: usize,
    /// URLs in the queues, and beside them.
    pub(crate) queued: usize,
    pub(crate) leftover: usize,
    /// When the next of those that wait for a time may be asked.
    pub(crate) next: Option<String>,
}

impl Status {
    /// Reads it from the doc index, as of a crawl that does not run.
    pub(crate) fn read(reader: &Reader, now: Timestamp) -> Result<Self> {
        let (hosts, hosts_seen) = Hosts::read(reader, now)?;
        let ledger: Ledger = reader.ledger()?;
        let classes = OutcomeClass::ALL
            .iter()
            .map(|class| (class.to_string(), ledger.class(*class)))
            .filter(|(_, count)| *count > 0)
            .collect();
        Ok(Self {
            running: false,
            paused: false,
            accepted: ledger.accepted,
            done: ledger.column(Column::Done),
            failed: ledger.column(Column::Failed),
            refused: ledger.column(Column::Refused),
            out_of_scope: ledger.out_of_scope,
            queued: ledger.queued,
            balanced: ledger.balances(),
            pages: ledger.documents(),
            requests: ledger.requests(),
            bytes: ledger.bytes,
            hosts,
            hosts_seen,
            serving: None,
            classes,
        })
    }

    /// What is said beside the count of a class.
    pub(crate) fn aside(&self, class: &str) -> String {
        match self.out_of_scope {
            0 => String::new(),
            _ if class != OutcomeClass::DeniedPolicy.as_str() => String::new(),
            count => format!(" ({count} out of scope)"),
        }
    }

    /// Adds what the URL server of a running crawl has counted.
    pub(crate) fn set_census(&mut self, census: &Census) {
        self.paused = census.paused;
        self.serving = Some(Serving {
            hosts: census.hosts,
            ready: census.ready,
            waiting_for_time: census.waiting_for_time,
            waiting_for_address: census.waiting_for_ip,
            waiting_for_robots: census.waiting_for_robots,
            waiting_for_dns: census.resolving,
            busy: census.busy,
            in_flight: census.orders,
            queued: census.queued,
            leftover: census.leftover,
            next: census.next_wake.map(moment),
        });
    }

    /// Shows it to a person.
    pub(crate) fn print(&self, dir: &Path, out: &mut dyn Write) -> Result<()> {
        let dir = dir.display();
        let state = match (self.running, self.queued) {
            (true, _) if self.paused => format!("paused; `orbweaver ctl {dir} resume` resumes it"),
            (true, _) => "running".into(),
            (false, 0) => "finished".into(),
            (false, _) => format!("stopped; `orbweaver crawl -o {dir}` resumes it"),
        };
        writeln!(out, "state      {state}")?;
        writeln!(out, "known      {}", counted(self.accepted, "URL"))?;
        writeln!(
            out,
            "done       {} ({}, {})",
            self.done,
            counted(self.pages, "page"),
            human_bytes(self.bytes)
        )?;
        writeln!(out, "failed     {}", self.failed)?;
        writeln!(
            out,
            "refused    {} ({} out of scope)",
            self.refused, self.out_of_scope
        )?;
        writeln!(out, "queued     {}", self.queued)?;
        writeln!(out, "requests   {} made", self.requests)?;
        match self.balanced {
            true => writeln!(out, "ledger     balances")?,
            false => writeln!(
                out,
                "ledger     DOES NOT BALANCE: run `orbweaver check {dir}`"
            )?,
        }
        for (class, count) in &self.classes {
            writeln!(out, "  {class:<18} {count}{}", self.aside(class))?;
        }
        self.print_hosts(out)
    }

    fn print_hosts(&self, out: &mut dyn Write) -> Result<()> {
        let states = &self.hosts_seen.by_state;
        writeln!(
            out,
            "hosts      {} asked; {} ready, {} waiting, {} blocked, {} done",
            self.hosts, states.ready, states.waiting, states.blocked, states.done
        )?;
        if let Some(serving) = &self.serving {
            writeln!(
                out,
                "in work    {}, {} in flight: {} wait for their time, {} for an answer, {} for an \
                 address's turn, {} for robots.txt, {} for DNS",
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
        let seen = &self.hosts_seen;
        print_list(out, "waiting", &seen.waiting, |line| {
            format!("until {}", time(line))
        })?;
        print_list(out, "blocked", &seen.blocked, |line| {
            format!("{} queued, since {}", line.queued, time(line))
        })?;
        print_list(out, "slowest", &seen.slowest, |line| {
            let requests = counted(line.requests.into(), "request");
            format!("{} ms per answer, {requests}", line.ms)
        })?;
        print_list(out, "failing", &seen.failing, |line| {
            let failed = counted(line.failed.into(), "failed attempt");
            format!("{failed}, {}", counted(line.requests.into(), "request"))
        })
    }
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

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let dir = CrawlDir::open(&self.dir)?;
        if let Some(status) = control::ask_one(&dir, &Question::Status)? {
            self.show(&status)?;
            return Ok(Ending::Done);
        }
        let dir = dir.readable()?;
        let reader = Reader::open(&dir.index(), READER_MEMORY)?;
        self.show(&Status::read(&reader, clock::steady()())?)?;
        Ok(damaged::index(&reader, dir.path()))
    }

    fn show(&self, status: &Status) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", terminal::json(status))?);
        }
        status.print(&self.dir, &mut out)
    }
}
