//! `orbweaver outcomes`: what became of each URL, as JSON lines.

use std::io::{BufRead, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use orbweaver_docindex::{Entry, Reader};

use super::damaged;
use crate::control::{self, Question};
use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;

/// List every URL and what became of it, one JSON object a line
///
/// Fields: url, class, status, ip, bytes, ms, attempts, redirect, reason, depth, kind. A URL that was not
/// asked for yet has the class `queued`; one that waits for a repetition has `deferred`. Where the index is damaged,
/// the rest is listed, each damaged place is named on standard error, and the exit code is 6.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory of the crawl
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    url: &'a str,
    class: &'a str,
    status: Option<u16>,
    ip: Option<std::net::IpAddr>,
    bytes: u64,
    ms: u32,
    attempts: u8,
    redirect: Option<&'a str>,
    reason: Option<&'a str>,
    depth: u16,
    kind: &'a str,
}

/// Writes all lines of an index.
pub(crate) fn write(reader: &Reader, out: &mut dyn Write) -> Result<()> {
    for entry in reader.entries() {
        serde_json::to_writer(&mut *out, &line(&entry?))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn line(entry: &Entry) -> Line<'_> {
    let link = &entry.link;
    let report = entry.fate.as_ref().map(|fate| &fate.report);
    Line {
        url: link.url.as_str(),
        class: report.map_or("queued", |report| report.outcome.class.as_str()),
        status: report.and_then(|report| report.status),
        ip: report.and_then(|report| report.ip),
        bytes: report.map_or(0, |report| report.bytes),
        ms: report.map_or(0, |report| report.millis),
        attempts: entry.fate.as_ref().map_or(0, |fate| fate.attempts),
        redirect: report.and_then(|report| report.redirect.as_deref()),
        reason: report
            .map(|report| report.outcome.reason.as_str())
            .filter(|text| !text.is_empty()),
        depth: link.depth,
        kind: link.kind.as_str(),
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let dir = CrawlDir::open(&self.dir)?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        if let Some(answer) = control::ask(&dir, &Question::Outcomes)? {
            copy(answer, &mut out)?;
            out.flush()?;
            return Ok(Ending::Done);
        }
        let dir = dir.readable()?;
        let reader = Reader::open(&dir.index(), super::status::READER_MEMORY)?;
        write(&reader, &mut out)?;
        out.flush()?;
        Ok(damaged::index(&reader, dir.path()))
    }
}

/// Passes on what a running crawl lists. When it cannot go on, its last line says why.
fn copy(answer: impl BufRead, out: &mut dyn Write) -> Result<()> {
    for line in answer.split(b'\n') {
        let mut line = line?;
        if let Some(refused) = control::refusal(&line) {
            return Err(refused);
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}
