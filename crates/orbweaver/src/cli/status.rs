//! `orbweaver status`: where a crawl stands.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use orbweaver_docindex::{Ledger, Reader};
use orbweaver_model::{Column, OutcomeClass};

use crate::control::{self, Question};
use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;
use crate::units::human_bytes;

/// Memory for reading an index that nobody else has open.
pub(crate) const READER_MEMORY: u64 = 64 << 20;

/// Show where a crawl stands, running or not
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
    /// URLs known.
    pub(crate) accepted: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) queued: u64,
    /// accepted = done + failed + refused + queued.
    pub(crate) balanced: bool,
    /// Documents among the done.
    pub(crate) documents: u64,
    /// Requests for pages, repeated ones included.
    pub(crate) attempts: u64,
    pub(crate) bytes: u64,
    pub(crate) hosts: u64,
    /// URLs by outcome class, without the classes that have none.
    pub(crate) classes: std::collections::BTreeMap<String, u64>,
}

impl Status {
    /// Reads it from the doc index.
    pub(crate) fn read(reader: &Reader, running: bool) -> Result<Self> {
        let ledger: Ledger = reader.ledger()?;
        let classes = OutcomeClass::ALL
            .iter()
            .map(|class| (class.to_string(), ledger.class(*class)))
            .filter(|(_, count)| *count > 0)
            .collect();
        Ok(Self {
            running,
            accepted: ledger.accepted,
            done: ledger.column(Column::Done),
            failed: ledger.column(Column::Failed),
            refused: ledger.column(Column::Refused),
            queued: ledger.queued,
            balanced: ledger.balances(),
            documents: ledger.documents(),
            attempts: ledger.attempts,
            bytes: ledger.bytes,
            hosts: reader.hosts().count() as u64,
            classes,
        })
    }

    /// Shows it to a person.
    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<()> {
        let state = match (self.running, self.queued) {
            (true, _) => "running",
            (false, 0) => "finished",
            (false, _) => "stopped; run `orbweaver crawl -o DIR` to go on",
        };
        writeln!(out, "state      {state}")?;
        writeln!(
            out,
            "known      {} URLs on {} hosts",
            self.accepted, self.hosts
        )?;
        writeln!(
            out,
            "done       {} ({} documents, {})",
            self.done,
            self.documents,
            human_bytes(self.bytes)
        )?;
        writeln!(out, "failed     {}", self.failed)?;
        writeln!(out, "refused    {}", self.refused)?;
        writeln!(out, "queued     {}", self.queued)?;
        writeln!(out, "requests   {}", self.attempts)?;
        writeln!(
            out,
            "ledger     {}",
            if self.balanced {
                "balances"
            } else {
                "DOES NOT BALANCE: run `orbweaver check`"
            }
        )?;
        for (class, count) in &self.classes {
            writeln!(out, "  {class:<18} {count}")?;
        }
        Ok(())
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let dir = CrawlDir::open(&self.dir)?;
        let status = match control::ask(&dir, Question::Status)? {
            Some(mut answer) => {
                let mut line = String::new();
                answer.read_line(&mut line)?;
                serde_json::from_str(&line)
                    .context("the running crawl gave no answer; try again")?
            }
            None => Status::read(&Reader::open(&dir.index(), READER_MEMORY)?, false)?,
        };
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&status)?)?;
        } else {
            status.print(&mut out)?;
        }
        Ok(Ending::Done)
    }
}
