//! `orbweaver check`: is everything in a crawl directory what it should be?

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_docindex::{Entry, Error, Reader};
use orbweaver_model::{CrawlUrl, text};
use orbweaver_store::Severity;

use crate::changes::Changes;
use crate::control::{self, Question};
use crate::crawl_dir::CrawlDir;
use crate::daemon::journal;
use crate::exit::Ending;
use crate::repair::repair;
use crate::terminal;
use orbweaver_config::Settings;
use orbweaver_config::units::counted;

/// Check every WARC record, digest, CDXJ line, index entry, the ledger and the small files
///
/// Says what is wrong and where, changes nothing, and ends with code 6 when something is. Works while the
/// crawl runs: what is just being written is noted, not blamed.
///
/// With --repair, on a crawl that is not running, it first repairs what can be proven from the rest: CDXJ indexes from the
/// WARC files, queue, counts and ledger from the records of the URLs; pages that are lost are queued again. Then it checks.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory of the crawl
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Print findings and the summary as JSON lines
    #[arg(long)]
    json: bool,

    /// Repair what can be proven before checking
    #[arg(long)]
    repair: bool,
}

/// One line about a finding.
fn finding(json: bool, severity: &str, place: &str, offset: Option<u64>, what: &str) -> String {
    if json {
        return terminal::json(
            &serde_json::json!({"severity": severity, "place": place, "offset": offset, "what": what}),
        );
    }
    let what = text::shown(what);
    match offset {
        Some(offset) => format!("{severity}: {place}, byte {offset}: {what}"),
        None => format!("{severity}: {place}: {what}"),
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let dir = CrawlDir::open(&self.dir)?.readable()?;
        let mut out = std::io::stdout().lock();
        if self.repair {
            for what in repair(&dir)? {
                let line = match self.json {
                    true => terminal::json(&serde_json::json!({"repaired": what})),
                    false => format!("repaired: {}", text::shown(&what)),
                };
                writeln!(out, "{line}")?;
            }
        }
        let mut failed = Ok(());
        let archive = orbweaver_store::check(dir.path(), &mut |found| {
            let severity = match found.severity {
                Severity::Error => "error",
                Severity::Note => "note",
            };
            if failed.is_ok() {
                let line = finding(self.json, severity, &found.file, found.offset, &found.what);
                failed = writeln!(out, "{line}");
            }
        });
        failed?;
        let index = self.index(&dir, &mut out)?;
        let journal = self.journal(&dir, &mut out)?;
        let papers = self.papers(&dir, &mut out)?;
        let errors = archive.errors + index.errors + journal.errors + papers;
        if self.json {
            let summary = serde_json::json!({
                "files": archive.files, "records": archive.records, "captures": archive.captures,
                "revisits": archive.revisits, "cdxj_lines": archive.lines, "urls": index.urls,
                "results": journal.entries, "notes": archive.notes + journal.notes, "errors": errors,
            });
            writeln!(out, "{summary}")?;
        } else {
            let results = match journal.entries {
                0 => String::new(),
                entries => format!(", {} in the journal", counted(entries, "result")),
            };
            writeln!(
                out,
                "{}, {} ({}, {} among them), {}, {} in the index{results}: {}",
                counted(archive.files, "WARC file"),
                counted(archive.records, "record"),
                counted(archive.captures, "capture"),
                counted(archive.revisits, "revisit"),
                counted(archive.lines, "CDXJ line"),
                counted(index.urls, "URL"),
                if errors == 0 {
                    "all sound".into()
                } else {
                    counted(errors, "error")
                },
            )?;
        }
        Ok(if errors == 0 {
            Ending::Done
        } else {
            Ending::Damaged
        })
    }

    /// The small files: settings, and the log of changes. How many errors they have.
    fn papers(&self, dir: &CrawlDir, out: &mut dyn Write) -> Result<u64> {
        let mut errors = 0;
        let mut tell = |place: &str, offset, what: &str| {
            errors += 1;
            writeln!(out, "{}", finding(self.json, "error", place, offset, what))
        };
        let settings = dir
            .stored_config()
            .and_then(|config| Ok(Settings::new(&config)?));
        if let Err(error) = settings {
            tell("crawl.toml", None, &format!("{error:#}"))?;
        }
        for offset in Changes::of(dir).damaged() {
            let what = "not an entry of the log of changes";
            tell("changes.jsonl", Some(offset), what)?;
        }
        Ok(errors)
    }

    /// The journal of a store that runs as a daemon; a crawl has none.
    fn journal(&self, dir: &CrawlDir, out: &mut dyn Write) -> Result<JournalSummary> {
        let mut summary = JournalSummary::default();
        let mut failed = Ok(());
        summary.entries = journal::audit(dir.path(), &mut |found| {
            let severity = if found.is_error { "error" } else { "note" };
            summary.errors += u64::from(found.is_error);
            summary.notes += u64::from(!found.is_error);
            if failed.is_ok() {
                let line = finding(self.json, severity, &found.place, found.offset, &found.what);
                failed = writeln!(out, "{line}");
            }
        })?;
        failed?;
        Ok(summary)
    }

    /// The doc index: asked for when a crawl runs, read otherwise. A store that runs as a daemon has none.
    fn index(&self, dir: &CrawlDir, out: &mut dyn Write) -> Result<IndexSummary> {
        if !dir.index().exists() && journal::Shelf::dir(dir.path()).exists() {
            return Ok(IndexSummary::default());
        }
        let mut lines: Box<dyn Iterator<Item = std::io::Result<String>>> =
            match control::ask(dir, &Question::Check)? {
                Some(answer) => Box::new(answer.lines()),
                None => Box::new(std::io::Cursor::new(read_index(dir)?).lines()),
            };
        let mut summary = IndexSummary::default();
        lines.try_for_each(|line| -> Result<()> {
            let line = line?;
            match serde_json::from_str(&line)? {
                IndexLine::Urls { urls } => summary.urls = urls,
                IndexLine::Finding {
                    place,
                    offset,
                    what,
                } => {
                    summary.errors += 1;
                    let place = format!("index/{place}");
                    let place = place.trim_end_matches('/');
                    let line = finding(self.json, "error", place, offset, &what);
                    writeln!(out, "{line}")?;
                }
            }
            Ok(())
        })?;
        Ok(summary)
    }
}

#[derive(Default)]
struct IndexSummary {
    urls: u64,
    errors: u64,
}

#[derive(Default)]
struct JournalSummary {
    entries: u64,
    notes: u64,
    errors: u64,
}

/// A line about the doc index, as the control socket has it.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum IndexLine {
    /// Something is wrong.
    Finding {
        place: String,
        offset: Option<u64>,
        what: String,
    },
    /// The last line: how many URLs were looked at.
    Urls { urls: u64 },
}

impl IndexLine {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "{}", terminal::json(self))
    }
}

/// What is wrong with the index of a crawl that does not run.
fn read_index(dir: &CrawlDir) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    let reader = match Reader::open(&dir.index(), super::status::READER_MEMORY) {
        Err(error @ Error::Missing(_)) => {
            let line = IndexLine::Finding {
                place: String::new(),
                offset: None,
                what: error.to_string(),
            };
            line.write(&mut found)?;
            return Ok(found);
        }
        opened => opened?,
    };
    write_index_findings(&reader, &mut found)?;
    // What a URL server has heard of is in the archive of a store elsewhere.
    if reader.results()?.is_none() {
        write_unarchived(dir, &reader, &mut found)?;
    }
    Ok(found)
}

/// Writes what is wrong with a doc index, a JSON object a line, and at the end the number of URLs.
pub(crate) fn write_index_findings(reader: &Reader, out: &mut dyn Write) -> Result<()> {
    let mut failed = Ok(());
    let urls = orbweaver_docindex::check(reader, &mut |found| {
        if failed.is_ok() {
            let line = IndexLine::Finding {
                place: found.place,
                offset: found.offset,
                what: found.what,
            };
            failed = line.write(out);
        }
    })?;
    failed?;
    Ok(IndexLine::Urls { urls }.write(out)?)
}

/// A document that the index counts as fetched must be in the archive.
fn write_unarchived(dir: &CrawlDir, reader: &Reader, out: &mut dyn Write) -> Result<()> {
    unarchived(dir, reader, &mut |url| {
        let line = IndexLine::Finding {
            place: "fates".into(),
            offset: None,
            what: format!("{url} counts as fetched but is not in the archive"),
        };
        Ok(line.write(out)?)
    })
}

/// Calls back with each URL that counts as fetched and is not in the archive.
pub(crate) fn unarchived(
    dir: &CrawlDir,
    reader: &Reader,
    each: &mut dyn FnMut(&CrawlUrl) -> Result<()>,
) -> Result<()> {
    let mut archived = HashSet::new();
    let seed = reader.seed();
    orbweaver_store::each_capture(dir.path(), &mut |line| {
        archived.insert(seed.hash(&line.url));
    })?;
    for entry in reader.entries() {
        // What cannot be read has been named.
        let Ok(Entry { link, fate }) = entry else {
            break;
        };
        let fetched =
            fate.is_some_and(|fate| fate.due.is_none() && fate.report.outcome.class.is_document());
        if fetched && !archived.contains(&seed.hash(link.url.as_str())) {
            each(&link.url)?;
        }
    }
    Ok(())
}
