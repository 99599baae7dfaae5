//! The result of a run.

use std::time::Duration;

use orbweaver_docindex::Reader;
use orbweaver_model::{CrawlUrl, Report};

use crate::error::Result;
use crate::seeds;
use crate::status::Status;

/// Pages of a run that are not whole, by what cut them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// They passed the size limit.
    pub size: u64,
    /// They did not come in time.
    pub time: u64,
    /// The server ended them, or their encoding is damaged.
    pub server: u64,
    /// Whole, but read for links in part.
    pub in_part: u64,
}

/// A limit that the user has set and the run has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Pages in all.
    Pages(u64),
    /// The time of a run.
    Time(Duration),
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// It was told to stop.
    pub stopped: bool,
    /// The limit that ended the run, if one did.
    pub limit: Option<Limit>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Pages that it fetched.
    pub pages: u64,
    /// Where the crawl stands after it.
    pub status: Status,
    /// Pages that are not whole.
    pub cut: Cut,
    /// When no page came: the first few seeds and what became of them.
    pub why_nothing: Vec<String>,
    /// What the run has to tell beyond its counts.
    pub notices: Vec<String>,
    /// When the next remaining URL is due, if that is later than the crawl was willing to wait.
    pub next: Option<String>,
}

/// Seeds named when a crawl brought nothing: enough to see the reason, which is mostly one for all.
const SHOWN: usize = 5;

/// A crawl without a single page is mostly a mistake: what became of the first seeds tells which.
pub fn why_nothing(reader: &Reader, status: &Status) -> Result<Vec<String>> {
    if status.pages > 0 {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for seed in reader.seeds().take(SHOWN) {
        lines.extend(fate(reader, &seed?)?);
    }
    Ok(lines)
}

fn fate(reader: &Reader, seed: &CrawlUrl) -> Result<Option<String>> {
    let entry = reader.entry(seed.key(reader.seed()))?;
    let Some(fate) = entry.and_then(|entry| entry.fate) else {
        return Ok(None);
    };
    let Report {
        outcome, status, ..
    } = fate.report;
    let status = status.map(|status| format!(", status {status}"));
    let reason = match outcome.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let help = seeds::help(&outcome).map_or(String::new(), |help| format!("; {help}"));
    Ok(Some(format!(
        "{seed}: {}{}{reason}{help}",
        outcome.class,
        status.unwrap_or_default()
    )))
}
