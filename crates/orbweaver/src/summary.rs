//! What a crawl did, in a few lines, and what to do with it.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use orbweaver_docindex::Reader;
use orbweaver_model::{CrawlUrl, Report, text};

use crate::cli::status::Status;
use crate::crawl_dir::CrawlDir;
use crate::exit::Ending;
use crate::seeds;
use orbweaver_config::units::{counted, human_bytes, human_duration};

/// Documents of a run that are not whole, by what cut them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) size: u64,
    pub(crate) time: u64,
    pub(crate) server: u64,
    /// Whole, but read for links in part.
    pub(crate) in_part: u64,
}

/// What a run came to, for the summary.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) ending: Ending,
    /// The limit that ended the run, if one did.
    pub(crate) limit: Option<Limit>,
    pub(crate) seconds: f64,
    pub(crate) pages: u64,
    pub(crate) status: Status,
    pub(crate) cut: Cut,
    /// When no page came: the first few seeds and what became of them.
    pub(crate) why_nothing: Vec<String>,
    /// What the run has to tell beyond its counts (`notices.rs`).
    pub(crate) notices: Vec<String>,
    /// When something that is left can be asked for, where that is later than the crawl was willing to wait.
    pub(crate) next: Option<String>,
}

/// A limit that the user has set and the run has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Pages in all.
    Pages(u64),
    /// The time of a run.
    Time(Duration),
}

impl Limit {
    /// The flag that sets it, and the one that lifts it.
    fn flags(self) -> (String, &'static str) {
        match self {
            Self::Pages(pages) => (format!("--pages {pages}"), "--pages 0"),
            Self::Time(time) => (format!("--time {}", human_duration(time)), "--time 0"),
        }
    }
}

/// Seeds shown when a crawl brought nothing: enough to see the reason, which is mostly one for all.
const SHOWN: usize = 5;

/// A crawl without a single page is mostly a mistake: what became of the first seeds tells which.
pub(crate) fn why_nothing(reader: &Reader, status: &Status) -> Result<Vec<String>> {
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

/// Prints the summary of a crawl that has just ended.
pub(crate) fn print(dir: &CrawlDir, outline: &Outline) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines(&dir.path().display().to_string(), outline) {
        writeln!(out, "{}", text::shown(&line))?;
    }
    Ok(())
}

fn lines(dir: &str, outline: &Outline) -> Vec<String> {
    let status = &outline.status;
    let mut lines = vec![
        first_line(outline),
        format!(
            "{} known, {} asked: {} done, {} failed, {} refused ({} out of scope), {} still queued",
            counted(status.accepted, "URL"),
            counted(status.hosts, "host"),
            status.done,
            status.failed,
            status.refused,
            status.out_of_scope,
            status.queued
        ),
    ];
    lines.extend(cut_line(outline));
    lines.extend(part_line(outline.cut.in_part));
    lines.extend(
        outline
            .notices
            .iter()
            .map(|notice| format!("note: {notice}")),
    );
    lines.extend(
        (status.classes.iter())
            .map(|(class, count)| format!("  {class:<18} {count}{}", status.aside(class))),
    );
    if status.pages == 0 {
        lines.push("no page was fetched:".into());
        lines.extend(outline.why_nothing.iter().map(|line| format!("  {line}")));
    }
    if let Some(blocked) = status.hosts_seen.blocked.first() {
        let host = &blocked.host;
        lines.push(format!(
            "blocked:           orbweaver ctl {dir} unblock {host}"
        ));
    }
    lines.extend(to_resume(dir, outline));
    lines.push(format!("what became of it: orbweaver outcomes {dir}"));
    lines.push(format!("a page again:      orbweaver get {dir} URL"));
    lines.push(format!("is it all sound:   orbweaver check {dir}"));
    lines
}

fn first_line(outline: &Outline) -> String {
    let ended = match (outline.ending, outline.limit, outline.status.queued) {
        (Ending::Interrupted, ..) => "stopped".into(),
        (_, Some(limit), _) => format!("limit {} reached", limit.flags().0),
        (_, None, 0) => "finished".into(),
        _ => "paused: what is left has to wait".into(),
    };
    format!(
        "{ended} after {}: {} in this run ({:.1}/s), {} received in all",
        human_duration(Duration::from_secs_f64(outline.seconds)),
        counted(outline.pages, "page"),
        outline.pages as f64 / outline.seconds.max(0.001),
        human_bytes(outline.status.bytes),
    )
}

/// What to type so that the crawl goes on, where something is left.
fn to_resume(dir: &str, outline: &Outline) -> Vec<String> {
    if outline.status.queued == 0 && outline.limit.is_none() {
        return Vec::new();
    }
    let plain = format!("to resume:         orbweaver crawl -o {dir}");
    match (outline.limit, &outline.next) {
        (Some(limit @ Limit::Pages(_)), _) => {
            let (_, lift) = limit.flags();
            vec![format!(
                "{plain} {lift}    (0: without the limit; or a higher one)"
            )]
        }
        (Some(limit @ Limit::Time(_)), _) => {
            let (set, lift) = limit.flags();
            vec![
                format!("{plain}    (again with {set})"),
                format!("without the limit: orbweaver crawl -o {dir} {lift}"),
            ]
        }
        (None, Some(next)) => vec![format!("{plain}    (not before {next})")],
        (None, None) => vec![plain],
    }
}

/// What is said of documents that are whole in the archive, but too long to be read for links to their end.
fn part_line(count: u64) -> Option<String> {
    let documents = match count {
        0 => return None,
        1 => "1 document is",
        _ => &format!("{count} documents are"),
    };
    Some(format!(
        "{documents} archived whole, but only the beginning was read for links ([limits] max_decoded_bytes lifts it)"
    ))
}

/// What is said of documents that are not whole, with what lifts the limit that cut them.
fn cut_line(outline: &Outline) -> Option<String> {
    let all = outline.status.classes.get("truncated").copied()?;
    let Cut {
        size, time, server, ..
    } = outline.cut;
    let mut causes = Vec::new();
    if size > 0 {
        causes.push(format!(
            "{size} over the size limit (--max-size SIZE lifts it)"
        ));
    }
    if time > 0 {
        causes.push(format!(
            "{time} not received in time ([limits] total_timeout_s and idle_timeout_s)"
        ));
    }
    if server > 0 {
        causes.push(format!("{server} ended early by the server"));
    }
    let earlier = all.saturating_sub(size + time + server);
    if earlier > 0 {
        causes.push(format!("{earlier} in earlier runs"));
    }
    let documents = match all {
        1 => "1 document is",
        _ => &format!("{all} documents are"),
    };
    Some(format!("{documents} truncated: {}", causes.join(", ")))
}
