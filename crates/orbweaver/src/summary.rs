//! What a crawl did, in a few lines, and what to do with it.

use std::io::Write;

use anyhow::Result;

use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;
use crate::pipeline::Outline;
use crate::units::{human_bytes, human_duration};

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
    for (class, count) in &status.classes {
        writeln!(out, "  {class:<18} {count}")?;
    }
    if status.queued > 0 {
        writeln!(out, "to go on:          orbweaver crawl -o {shown}")?;
    }
    writeln!(out, "what became of it: orbweaver outcomes {shown}")?;
    writeln!(out, "a page again:      orbweaver get {shown} URL")?;
    writeln!(out, "is it all sound:   orbweaver check {shown}")?;
    Ok(())
}
