//! `orbweaver check`: verifies everything in a crawl directory.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_config::Settings;
use orbweaver_config::units::counted;
use orbweaver_model::text;
use orbweaver_ring::{CrawlDir, Error, IndexLine, View, json};
use orbweaver_store::Severity;

use crate::exit::Ending;

/// Verify WARC records, digests, CDXJ lines, the doc index, the ledger and the settings
///
/// Reports each error with its place, changes nothing, and exits with code 6 if there is any. Works while the crawl runs:
/// what is just being written is a note, not an error.
///
/// With --repair, on a crawl that is not running, it first rebuilds what follows from other files: CDXJ indexes from the WARC
/// files; queue, counts and ledger from the records of the URLs. Lost pages are queued again. Then it checks.
#[derive(clap::Args, Debug)]
pub(crate) struct CheckArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Print findings and the summary as JSON lines
    #[arg(long)]
    json: bool,

    /// Rebuild what can be rebuilt before checking
    #[arg(long)]
    repair: bool,
}

/// One line about a finding.
fn finding(json: bool, severity: &str, place: &str, offset: Option<u64>, what: &str) -> String {
    if json {
        return json::line(
            &serde_json::json!({"severity": severity, "place": place, "offset": offset, "what": what}),
        );
    }
    let what = text::shown(what);
    match offset {
        Some(offset) => format!("{severity}: {place}, byte {offset}: {what}"),
        None => format!("{severity}: {place}: {what}"),
    }
}

impl CheckArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let view = View::open(&self.dir)?;
        let dir = view.dir().clone().readable().map_err(Error::from)?;
        let mut out = std::io::stdout().lock();
        if self.repair {
            for what in view.repair()? {
                let line = match self.json {
                    true => json::line(&serde_json::json!({"repaired": what})),
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
        let index = self.index(&view, &mut out)?;
        let journal = self.journal(&dir, &mut out)?;
        let small_files = self.small_files(&view, &mut out)?;
        let errors = archive.errors + index.errors + journal.errors + small_files;
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
                    "no errors".into()
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
    fn small_files(&self, view: &View, out: &mut dyn Write) -> Result<u64> {
        let mut errors = 0;
        let mut tell = |place: &str, offset, what: &str| {
            errors += 1;
            writeln!(out, "{}", finding(self.json, "error", place, offset, what))
        };
        let settings = match view.dir().stored_config() {
            Ok(config) => Settings::new(&config).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(wrong) = settings {
            tell("crawl.toml", None, &wrong)?;
        }
        for offset in view.damaged_changes() {
            let what = "not an entry of the log of changes";
            tell("changes.jsonl", Some(offset), what)?;
        }
        Ok(errors)
    }

    /// The results. Those of a crawl come out of its archive again, so that damage to them is worth no more than a note; those of
    /// a store that runs as a daemon are nowhere else.
    fn journal(&self, dir: &CrawlDir, out: &mut dyn Write) -> Result<JournalSummary> {
        let mut summary = JournalSummary::default();
        let mut failed = Ok(());
        let is_store = is_store(dir);
        summary.entries = orbweaver_store::check_results(dir.path(), &mut |found| {
            let is_error = is_store && found.severity == Severity::Error;
            let severity = if is_error { "error" } else { "note" };
            summary.errors += u64::from(is_error);
            summary.notes += u64::from(!is_error);
            if failed.is_ok() {
                let line = finding(self.json, severity, &found.file, found.offset, &found.what);
                failed = writeln!(out, "{line}");
            }
        })?;
        failed?;
        Ok(summary)
    }

    /// The doc index: asked for when a crawl runs, read otherwise. A store that runs as a daemon has none.
    fn index(&self, view: &View, out: &mut dyn Write) -> Result<IndexSummary> {
        let dir = view.dir();
        if is_store(dir) {
            return Ok(IndexSummary::default());
        }
        let mut summary = IndexSummary::default();
        let mut failed = Ok(());
        view.check_index(&mut |line| {
            match line {
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
                    if failed.is_ok() {
                        failed = writeln!(out, "{line}");
                    }
                }
            }
            Ok(())
        })?;
        failed?;
        Ok(summary)
    }
}

/// True for the directory of a store that runs as a daemon: it has results, but never had a doc index or settings of a crawl.
fn is_store(dir: &CrawlDir) -> bool {
    let has = |name: &str| dir.path().join(name).exists();
    has("results") && !dir.index().exists() && !has("crawl.toml")
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
