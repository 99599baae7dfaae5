//! What a crawl did, in a few lines, and what to do with it.

use std::io::Write;

use anyhow::Result;

use orbweaver_docindex::Reader;
use orbweaver_model::Report;

use crate::cli::status::Status;
use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;
use crate::units::{human_bytes, human_duration};

/// What a run came to, for the summary.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) ending: Ending,
    pub(crate) seconds: f64,
    pub(crate) pages: u64,
    pub(crate) status: Status,
    /// When no document came: the first few URLs and what became of them.
    pub(crate) why_nothing: Vec<String>,
    /// What the run has to tell beyond its counts (`notices.rs`).
    pub(crate) notices: Vec<String>,
}

/// URLs shown when a crawl brought nothing: enough to see the reason, which is mostly one for all.
const SHOWN: usize = 5;

/// A crawl without a single document is mostly a mistake: what became of the first URLs tells which.
pub(crate) fn why_nothing(reader: &Reader, status: &Status) -> Result<Vec<String>> {
    if status.documents > 0 {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for entry in reader.entries().take(SHOWN) {
        let entry = entry?;
        if let Some(fate) = entry.fate {
            let Report {
                outcome, status, ..
            } = fate.report;
            let status = status
                .map(|status| format!(", status {status}"))
                .unwrap_or_default();
            lines.push(format!(
                "{}: {}{status}: {}",
                entry.link.url, outcome.class, outcome.reason
            ));
        }
    }
    Ok(lines)
}

/// Prints the summary of a crawl that has just ended.
pub(crate) fn print(dir: &CrawlDir, outline: &Outline) -> Result<()> {
    let status = &outline.status;
    let mut out = std::io::stdout().lock();
    let shown = dir.path().display();
    let ended = match (outline.ending, status.queued) {
        (Ending::Interrupted, _) => "stopped",
        (_, 0) => "finished",
        _ => "paused",
    };
    let time = std::time::Duration::from_secs_f64(outline.seconds);
    writeln!(
        out,
        "{ended} after {}: {} pages in this run ({:.1}/s), {} received in all",
        human_duration(time),
        outline.pages,
        outline.pages as f64 / outline.seconds.max(0.001),
        human_bytes(status.bytes),
    )?;
    writeln!(
        out,
        "{} URLs known on {} hosts: {} done, {} failed, {} refused, {} still queued",
        status.accepted, status.hosts, status.done, status.failed, status.refused, status.queued,
    )?;
    for notice in &outline.notices {
        writeln!(out, "note: {notice}")?;
    }
    for (class, count) in &status.classes {
        writeln!(out, "  {class:<18} {count}")?;
    }
    for line in &outline.why_nothing {
        writeln!(out, "{}", line.trim_end_matches([':', ' ']))?;
    }
    if outline
        .why_nothing
        .iter()
        .any(|line| line.contains("denied_policy"))
    {
        writeln!(
            out,
            "private addresses are asked only on request: --allow-net CIDR"
        )?;
    }
    if let Some(blocked) = status.hosts_seen.blocked.first() {
        let host = &blocked.host;
        writeln!(
            out,
            "blocked:           orbweaver ctl {shown} unblock {host}"
        )?;
    }
    if status.queued > 0 {
        writeln!(out, "to go on:          orbweaver crawl -o {shown}")?;
    }
    writeln!(out, "what became of it: orbweaver outcomes {shown}")?;
    writeln!(out, "a page again:      orbweaver get {shown} URL")?;
    writeln!(out, "is it all sound:   orbweaver check {shown}")?;
    Ok(())
}
