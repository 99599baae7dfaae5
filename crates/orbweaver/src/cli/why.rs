//! `orbweaver why`: the state of a URL explained, and what limits the speed of a crawl.

mod words;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use orbweaver_model::text;
use orbweaver_ring::{Slow, View, Why, json};

use super::damaged;
use crate::exit::Ending;

/// Explain the state of a URL, or what limits the speed
///
/// For a URL: which page linked to it, what scope and robots.txt say, where it waits and for what, the earliest time of its
/// request, every attempt, and its place in the archive. Works on running and ended crawls, and for unknown URLs. With
/// --slow: what limits a running crawl, by how much, and which setting would change that.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  orbweaver why example/ https://example.org/page
  orbweaver why example/ --slow")]
pub(crate) struct WhyArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The URL
    #[arg(value_name = "URL", required_unless_present = "slow")]
    url: Option<String>,

    /// Show what limits the speed of a running crawl
    #[arg(long, conflicts_with = "url")]
    slow: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl WhyArgs {
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
            "now        {:.1} pages/s, {} requests in flight, {} active hosts",
            slow.pages_per_second, slow.in_flight, slow.hosts
        ),
    ];
    if let Some(setting) = &slow.setting {
        lines.push(format!("setting    {setting}"));
    }
    lines
}
