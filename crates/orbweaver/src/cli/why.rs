//! `orbweaver why`: why a URL stands where it stands, and why a crawl is not faster.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use orbweaver_docindex::Reader;
use orbweaver_intake::{Canonicalizer, Scope, seeds::parse_seed};
use orbweaver_model::{Link, text};

use super::damaged;
use super::status::READER_MEMORY;
use crate::clock;
use crate::control::{self, Question};
use crate::crawl_dir::CrawlDir;
use crate::exit::{Ending, Fatal};
use crate::slow::Slow;
use crate::steer;
use crate::terminal;
use crate::why::{self, Why};
use orbweaver_config::Settings;

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
        let dir = CrawlDir::open(&self.dir)?;
        let Some(text) = &self.url else {
            let slow: Option<Slow> = control::ask_one(&dir, &Question::Slow)?;
            let mut slow = slow.ok_or_else(|| steer::not_running(&dir, &Question::Slow))?;
            let called = self.dir.display().to_string();
            slow.setting = slow.setting.map(|setting| setting.replace("DIR", &called));
            self.show(&slow.lines(), &slow)?;
            return Ok(Ending::Done);
        };
        let url = text.clone();
        if let Some(why) = control::ask_one(&dir, &Question::Why { url })? {
            self.show_why(why)?;
            return Ok(Ending::Done);
        }
        let dir = dir.readable()?;
        let reader = Reader::open(&dir.index(), READER_MEMORY)?;
        self.show_why(explain(&dir, &reader, text)?)?;
        Ok(damaged::index(&reader, dir.path()))
    }

    fn show_why(&self, mut why: Why) -> Result<()> {
        why.name_places(&self.dir.display().to_string());
        self.show(&why.lines(), &why)
    }

    fn show(&self, lines: &[String], object: &impl Serialize) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", terminal::json(object))?);
        }
        let mut lines = lines.iter();
        Ok(lines.try_for_each(|line| writeln!(out, "{}", text::shown(line)))?)
    }
}

/// Reads what a crawl that does not run has left.
fn explain(dir: &CrawlDir, reader: &Reader, text: &str) -> Result<Why> {
    let settings = Settings::new(&dir.stored_config()?)?;
    let canonicalizer = Canonicalizer::new(settings.canonical.clone());
    let url = parse_seed(text, &canonicalizer)
        .map_err(|error| Fatal::input(format!("`{text}` is not a URL: {error}")))?;
    let mut scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
    for seed in reader.seeds() {
        scope.admit(&seed?);
    }
    why::gather(
        &url,
        &why::Sources {
            dir: dir.path(),
            reader,
            settings: &settings,
            scope: &|link: &Link| scope.verdict(link),
            whereabouts: None,
            now: clock::steady()(),
        },
    )
}
