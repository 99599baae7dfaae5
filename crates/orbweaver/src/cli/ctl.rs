//! `orbweaver ctl`: control a crawl while it runs.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use orbweaver_model::text;

use orbweaver_ring::{Question, View, json};

use crate::exit::Ending;

/// Control a running crawl: pause it, block a host, add seeds
///
/// Every change is logged with its time to changes.jsonl in the crawl directory before it takes effect; `log` lists the
/// changes and `undo` reverts one. Blocked hosts and host rates survive restarts and can also be changed while no crawl
/// runs; a pause ends with the process.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  orbweaver ctl example/ pause
  orbweaver ctl example/ block www.example.org
  orbweaver ctl example/ rate www.example.org 0.2
  orbweaver ctl example/ add https://example.org/more
  orbweaver ctl example/ undo 3")]
pub(crate) struct CtlArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Print the answer as JSON, one object per line
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    what: CtlCommand,
}

#[derive(Subcommand, Debug)]
enum CtlCommand {
    /// Send no more requests; those in flight may finish
    Pause,
    /// Send requests again
    Resume,
    /// Stop the crawl like SIGTERM; the command that started it resumes it
    Stop,
    /// Send no more requests to a host; its URLs stay queued
    Block {
        /// The host
        #[arg(value_name = "HOST")]
        host: String,
    },
    /// Send requests to a blocked host again
    Unblock {
        /// The host
        #[arg(value_name = "HOST")]
        host: String,
    },
    /// Set the request rate of a host; a longer Crawl-delay is still obeyed
    Rate {
        /// The host
        #[arg(value_name = "HOST")]
        host: String,

        /// Requests per second, 0 for no limit, or `default` for the rate of the crawl
        #[arg(value_name = "R", value_parser = rate)]
        rate: Rate,
    },
    /// Add seeds
    Add {
        /// Where to start; `example.org/page` means https
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,
    },
    /// Read the settings again: rates, budgets and scope take effect at once; settings that need a restart are listed
    Reload,
    /// List the changes
    Log,
    /// Revert a change
    Undo {
        /// Its number in the log
        #[arg(value_name = "N")]
        n: u64,
    },
}

/// A rate, or the crawl's own.
#[derive(Clone, Copy, Debug)]
struct Rate(Option<f64>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "default" {
        return Ok(Rate(None));
    }
    let number = text.parse().map_err(|_| "not a number");
    Ok(Rate(Some(number?)))
}

impl CtlArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let view = View::open(&self.dir)?;
        let question = match self.what {
            CtlCommand::Log => return log(&view, self.json),
            CtlCommand::Pause => Question::Pause,
            CtlCommand::Resume => Question::Resume,
            CtlCommand::Stop => Question::Stop,
            CtlCommand::Block { host } => Question::Block { host },
            CtlCommand::Unblock { host } => Question::Unblock { host },
            CtlCommand::Rate { host, rate } => Question::Rate { host, rate: rate.0 },
            CtlCommand::Add { urls } => Question::Add { urls },
            CtlCommand::Reload => Question::Reload,
            CtlCommand::Undo { n } => Question::Undo { n },
        };
        let said = view.change(&question)?;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json::line(&said))?;
        } else {
            let number = said.n.map(|n| format!(" (change {n})")).unwrap_or_default();
            writeln!(out, "{}{number}", text::shown(&said.said))?;
            for line in &said.details {
                writeln!(out, "  {}", text::shown(line))?;
            }
        }
        Ok(Ending::Done)
    }
}

fn log(view: &View, as_json: bool) -> Result<Ending> {
    let mut out = std::io::stdout().lock();
    for entry in view.changes()? {
        if as_json {
            writeln!(out, "{}", json::line(&entry))?;
            continue;
        }
        let undoes = entry
            .undoes
            .map(|n| format!(", reverts {n}"))
            .unwrap_or_default();
        writeln!(
            out,
            "{:>4}  {}  {}{undoes}",
            entry.n,
            entry.at,
            text::shown(&entry.change.words())
        )?;
    }
    Ok(Ending::Done)
}
