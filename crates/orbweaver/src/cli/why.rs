//! `orbweaver why`: why a URL stands where it stands, and why a crawl is not faster.

mod words;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use orbweaver_model::text;
use orbweaver_ring::{Slow, View, Why, json};

use super::damaged;
use crate::exit::Ending;

/// Explain what became of a URL, or what limits the speed
///
/// For a URL: who linked to it, what scope and robots.txt say, where it waits and for what, the earliest
/// time, every attempt, and where it lies in the archive. Works on a running and on a finished crawl; a URL
/// that is not known is explained too. With --slow: what limits a running crawl, by how much, and the setting
/// that would change it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  orbweaver why example/ https://example.org/page
  orbweaver why example/ --slow")]
pub(crate) struct Args {
    /// The directory of the crawl
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The URL
    #[arg(value_name = "URL", required_unless_present = "slow")]
    url: Option<String>,

    /// Say what limits the speed of a running crawl
    #[arg(long, conflicts_with = "url")]
    slow: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let view = View::open(&self.dir)?;
        let Some(url) = &self.url else {
            let mut slow = view.slow()?;
            let called = self.dir.display().to_string();
            slow.setting = slow.setting.map(|setting| setting.replace("DIR", &called));
            self.show(&slow_lines(&slow), &slow)?;
            return Ok(Ending::Done);
        };
        let seen = view.why(url)?;
        self.show_why(seen.answer)?;
        Ok(damaged::index(&seen.damage, &self.dir))
    }

    fn show_why(&self, mut why: Why) -> Result<()> {
        words::name_places(&mut why, &self.dir.display().to_string());
        self.show(&words::lines(&why), &why)
    }

    fn show(&self, lines: &[String], object: &impl Serialize) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", json::line(object))?);
        }
        let mut lines = lines.iter();
        Ok(lines.try_for_each(|line| writeln!(out, "{}", text::shown(line)))?)
    }
}

/// What limits the speed, for a person.
fn slow_lines(slow: &Slow) -> Vec<String> {
    let mut lines = vec![
        format!("limit      {}: {}", slow.limit, slow.sentence),
        format!(
            "now        {:.1} pages/s, {} requests out, {} hosts in work",
            slow.pages_per_second, slow.in_flight, slow.hosts
        ),
    ];
    if let Some(setting) = &slow.setting {
        lines.push(format!("to change  {setting}"));
    }
    lines
}
