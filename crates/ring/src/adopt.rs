//! After a kill: what the archive has and the doc index does not know yet.
//!
//! An exchange is archived before it is reported, so a process that dies in between leaves pages that are
//! fetched and kept but still count as queued. They are read back from the archive and reported now,
//! instead of being asked for a second time.

use std::ops::ControlFlow;

use crate::error::Result;
use tracing::{info, warn};

use orbweaver_docindex::DocIndex;
use orbweaver_model::{
    Candidate, Column, CrawlUrl, Event, Exchange, FetchResult, Outcome, Timestamp, Visit,
};
use orbweaver_store::{IndexLine, Recovery, StoreError, StoredExchange, beginning_at, each_line};

use crate::harvest::Harvest;
use orbweaver_crawldir::CrawlDir;

/// Events folded at once.
const GROUP: usize = 256;

/// Reports every archived exchange that the process before did not live to report. Reports follow the order of
/// the archive, so that a file with one that was reported has none before it that was not; how many files
/// come after that depends on how small they are.
pub(crate) fn adopt(
    dir: &CrawlDir,
    recovery: &Recovery,
    docs: &mut DocIndex,
    harvest: &Harvest,
) -> Result<()> {
    let mut recent = Vec::new();
    for index in recovery.newest_first() {
        recent.push(index);
        let mut reported = Ok(false);
        each_line(index, &mut |line| {
            reported = is_reported(&line, docs, harvest);
            match reported {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) | Err(_) => ControlFlow::Break(()),
            }
        })?;
        if reported? {
            break;
        }
    }
    again_and_again(dir, docs, harvest, &|each| {
        for index in recent.iter().rev() {
            each_line(index, &mut |line| {
                each(line);
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    })
}

/// True when the doc index knows what became of a capture. A robots.txt is nobody's page, and says nothing.
fn is_reported(line: &IndexLine, docs: &DocIndex, harvest: &Harvest) -> Result<bool> {
    let Ok(url) = CrawlUrl::from_canonical(&line.url) else {
        return Ok(false);
    };
    let entry = docs.reader().entry(url.key(harvest.reader().seed()))?;
    let report = entry
        .and_then(|entry| entry.fate)
        .map(|fate| fate.report.at);
    Ok(report.is_some_and(|at| line.began_by(at)))
}

/// For a new doc index beside an archive, whose own was lost: reports everything that is archived and can
/// be reached from the seeds, which must be known by now.
pub(crate) fn adopt_all(dir: &CrawlDir, docs: &mut DocIndex, harvest: &Harvest) -> Result<()> {
    let path = dir.path();
    again_and_again(dir, docs, harvest, &|each| {
        orbweaver_store::each_capture(path, each)
    })
}

/// Calls back with the lines of an index.
type Lines<'a> = dyn Fn(&mut dyn FnMut(IndexLine)) -> Result<(), StoreError> + 'a;

/// The lines are not in the order in which pages were fetched, and a page is known only after one that links
/// to it; so they are gone through until nothing more is found.
fn again_and_again(
    dir: &CrawlDir,
    docs: &mut DocIndex,
    harvest: &Harvest,
    lines: &Lines<'_>,
) -> Result<()> {
    let mut adopted = 0;
    loop {
        let before = adopted;
        let mut events = Vec::new();
        let mut failed = Ok(());
        lines(&mut |line| {
            if failed.is_ok() {
                failed = take_over(dir, &line, docs, harvest, &mut events).map(|taken| {
                    adopted += u64::from(taken);
                });
            }
        })?;
        failed?;
        docs.apply(events)?;
        if adopted == before {
            break;
        }
    }
    if adopted > 0 {
        info!(adopted, "pages taken over from the archive");
    }
    Ok(())
}

fn take_over(
    dir: &CrawlDir,
    line: &IndexLine,
    docs: &mut DocIndex,
    harvest: &Harvest,
    events: &mut Vec<Event>,
) -> Result<bool> {
    let Some(result) = unreported(dir, line, docs, harvest)? else {
        return Ok(false);
    };
    events.push(harvest.adopt(&result));
    if events.len() >= GROUP {
        docs.apply(events.drain(..))?;
    }
    Ok(true)
}

fn unreported(
    dir: &CrawlDir,
    line: &IndexLine,
    docs: &DocIndex,
    harvest: &Harvest,
) -> Result<Option<Visit>> {
    let Ok(url) = CrawlUrl::from_canonical(&line.url) else {
        return Ok(None);
    };
    let key = url.key(harvest.reader().seed());
    if docs.is_finished(key)? {
        return Ok(None);
    }
    let Some(entry) = docs.reader().entry(key)? else {
        return Ok(None);
    };
    // What is beyond the limit is not read for links, as when it was fetched.
    let limits = harvest.reader().limits();
    let max = (limits.max_decoded_bytes + limits.max_header_bytes) as u64;
    let stored = match beginning_at(dir.path(), &line.filename, line.offset, max) {
        Err(damage) if damage.is_damage() => {
            warn!(url = %line.url, %damage, "a page in the archive is damaged and is asked for again");
            return Ok(None);
        }
        stored => stored?,
    };
    // An earlier visit, or an earlier attempt of this one.
    let reported = entry.fate.as_ref().map(|fate| fate.report.at);
    let ended = stored.started.as_millis() + u64::from(stored.millis);
    if reported.is_some_and(|at| ended <= at.as_millis()) {
        return Ok(None);
    }
    // A robots.txt is nobody's page, and an answer that led to another attempt is not the last word.
    let is_page = stored
        .metadata("purpose")
        .is_none_or(|purpose| purpose == "page");
    let last_word = stored
        .outcome
        .as_ref()
        .is_some_and(|outcome| outcome.class.column() != Column::Queued);
    if !is_page || !last_word {
        return Ok(None);
    }
    Ok(restore(stored, harvest.reader().candidate(entry), harvest))
}

/// The result as the spider gave it, as far as reading it again needs.
pub(crate) fn restore(
    stored: StoredExchange,
    candidate: Candidate,
    harvest: &Harvest,
) -> Option<Visit> {
    let ip = stored.ip;
    let exchange: Exchange = orbweaver_spider::reread(
        stored.request.into(),
        stored.response.into(),
        stored.protocol,
        stored.truncated,
        harvest.reader().limits(),
    )?;
    let outcome = stored
        .outcome
        .unwrap_or_else(|| Outcome::plain(orbweaver_model::OutcomeClass::Success));
    let ended = Timestamp::from_millis(stored.started.as_millis() + u64::from(stored.millis));
    // What is recorded of a redirect is decided again, together with its link.
    let class = match exchange.status {
        301 | 302 | 303 | 307 | 308 => orbweaver_model::OutcomeClass::RedirectFollowed,
        _ => outcome.class,
    };
    let result = FetchResult {
        outcome: Outcome { class, ..outcome },
        started: stored.started,
        sent: None,
        first_byte: None,
        ended,
        wire_bytes: stored.wire_bytes,
        connected: ip,
        exchange: Some(exchange),
    };
    Some(Visit {
        candidate,
        ip,
        result,
    })
}
