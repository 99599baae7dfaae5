//! The summary that is printed when a crawl ends, and the commands to use next.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use orbweaver_config::units::{counted, human_bytes, human_duration};
use orbweaver_model::{OutcomeClass, text};
use orbweaver_ring::{CrawlDir, Cut, Limit, Status, Summary};

/// The flag that sets a limit, and the one that lifts it.
fn flags(limit: Limit) -> (String, &'static str) {
    match limit {
        Limit::Pages(pages) => (format!("--pages {pages}"), "--pages 0"),
        Limit::Time(time) => (format!("--time {}", human_duration(time)), "--time 0"),
    }
}

/// Prints the summary of a crawl that has just ended.
pub(crate) fn print(dir: &CrawlDir, summary: &Summary) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines(&dir.path().display().to_string(), summary) {
        writeln!(out, "{}", text::shown(&line))?;
    }
    Ok(())
}

fn lines(dir: &str, summary: &Summary) -> Vec<String> {
    let status = &summary.status;
    let mut lines = vec![
        first_line(summary),
        format!(
            "{} known, {} contacted: {} done, {} failed, {} refused ({} out of scope), {} still queued",
            counted(status.accepted, "URL"),
            counted(status.hosts, "host"),
            status.done,
            status.failed,
            status.refused,
            status.out_of_scope,
            status.queued
        ),
    ];
    lines.extend(cut_line(summary));
    lines.extend(part_line(summary.cut.in_part));
    lines.extend(
        summary
            .notices
            .iter()
            .map(|notice| format!("note: {notice}")),
    );
    lines.extend(
        (status.classes.iter())
            .map(|(class, count)| format!("  {class:<18} {count}{}", aside(status, class))),
    );
    if status.pages == 0 {
        lines.push("no page was fetched:".into());
        lines.extend(summary.why_nothing.iter().map(|line| format!("  {line}")));
    }
    if let Some(blocked) = status.hosts_seen.blocked.first() {
        let host = &blocked.host;
        lines.push(format!(
            "hosts are blocked: orbweaver ctl {dir} unblock {host}"
        ));
    }
    lines.extend(to_resume(dir, summary));
    lines.push(format!("all outcomes:      orbweaver outcomes {dir}"));
    lines.push(format!("print a page:      orbweaver get {dir} URL"));
    lines.push(format!("verify it:         orbweaver check {dir}"));
    lines
}

fn first_line(summary: &Summary) -> String {
    let ended = match (summary.stopped, summary.limit, summary.status.queued) {
        (true, ..) => "stopped".into(),
        (_, Some(limit), _) => format!("limit {} reached", flags(limit).0),
        (_, None, 0) => "finished".into(),
        _ => "ended early: the remaining URLs are not due yet".into(),
    };
    format!(
        "{ended} after {}: {} in this run ({:.1}/s), {} received in total",
        human_duration(Duration::from_secs_f64(summary.seconds)),
        counted(summary.pages, "page"),
        summary.pages as f64 / summary.seconds.max(0.001),
        human_bytes(summary.status.bytes),
    )
}

/// What to type so that the crawl goes on, where something is left.
fn to_resume(dir: &str, summary: &Summary) -> Vec<String> {
    if summary.status.queued == 0 && summary.limit.is_none() {
        return Vec::new();
    }
    let plain = format!("to resume:         orbweaver crawl -o {dir}");
    match (summary.limit, &summary.next) {
        (Some(limit @ Limit::Pages(_)), _) => {
            let (_, lift) = flags(limit);
            vec![format!(
                "{plain} {lift}    (0 removes the limit; or give a higher one)"
            )]
        }
        (Some(limit @ Limit::Time(_)), _) => {
            let (set, lift) = flags(limit);
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
        "{documents} archived completely, but only the first part was searched for links ([limits] max_decoded_bytes raises the limit)"
    ))
}

/// What is said of documents that are not whole, with what lifts the limit that cut them.
fn cut_line(summary: &Summary) -> Option<String> {
    let all = summary.status.classes.get("truncated").copied()?;
    let Cut {
        size, time, server, ..
    } = summary.cut;
    let mut causes = Vec::new();
    if size > 0 {
        causes.push(format!("{size} over the size limit (--max-size raises it)"));
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

/// What is said beside the count of a class.
pub(crate) fn aside(status: &Status, class: &str) -> String {
    match status.out_of_scope {
        0 => String::new(),
        _ if class != OutcomeClass::DeniedPolicy.as_str() => String::new(),
        count => format!(" ({count} out of scope)"),
    }
}
