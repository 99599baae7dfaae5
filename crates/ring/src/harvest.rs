//! What happens to a result: it is read, archived, and reported to the doc index, in that order of
//! acknowledgement. The report goes out only when the archive has the exchange on disk, so that a page
//! that counts as done can always be read back.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use orbweaver_model::{
    Archived, Candidate, CrawlUrl, Event, Exchange, FetchResult, Outcome, OutcomeClass,
    RecrawlBounds, Report, Visit,
};
use orbweaver_store::Kept;

use crate::archiving::Archiving;
use crate::indexer::Indexer;
use orbweaver_reading::retry::Decision;
use orbweaver_reading::revisit;
use orbweaver_reading::{Aside, PageReader, Reading};
use orbweaver_watch::counters::Counters;
use orbweaver_watch::log::{Log, LogLine};
use orbweaver_watch::notices::Notices;
use orbweaver_watch::seeds::SeedWatch;

/// The stage between spider and doc index.
pub(crate) struct Harvest {
    reader: PageReader,
    /// When finished pages are visited again; none when they are not.
    recrawl: Option<RecrawlBounds>,
    /// Where exchanges are kept; none when a store elsewhere has them before they come here.
    archiving: Option<Archiving>,
    indexer: Indexer,
    counters: Counters,
    /// What the summary has to tell beyond the counts.
    notices: Arc<Notices>,
    /// Seeds that have not answered yet.
    seeds: SeedWatch,
    /// One line per request.
    log: Log,
}

/// What a harvest is made of.
pub(crate) struct HarvestParts {
    pub(crate) reader: PageReader,
    pub(crate) recrawl: Option<RecrawlBounds>,
    pub(crate) archiving: Option<Archiving>,
    pub(crate) indexer: Indexer,
    pub(crate) notices: Notices,
    pub(crate) seeds: SeedWatch,
    pub(crate) log: Log,
}

impl Harvest {
    pub(crate) fn new(parts: HarvestParts) -> Self {
        Self {
            reader: parts.reader,
            recrawl: parts.recrawl,
            archiving: parts.archiving,
            indexer: parts.indexer,
            counters: Counters::default(),
            notices: Arc::new(parts.notices),
            seeds: parts.seeds,
            log: parts.log,
        }
    }

    /// Who reads pages and judges links.
    pub(crate) fn reader(&self) -> &PageReader {
        &self.reader
    }

    /// The way to the doc index.
    pub(crate) fn indexer(&self) -> &Indexer {
        &self.indexer
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn notices(&self) -> &Arc<Notices> {
        &self.notices
    }

    pub(crate) fn seeds(&self) -> &SeedWatch {
        &self.seeds
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Whether what is fetched is kept by this process.
    pub(crate) fn archives_here(&self) -> bool {
        self.archiving.is_some()
    }

    /// Takes in the result of a page.
    pub(crate) fn page(&self, visit: Visit, decision: Decision, permit: OwnedSemaphorePermit) {
        let (key, result) = (visit.candidate.key, &visit.result);
        if decision == Decision::PutBack {
            let reason = &result.outcome.reason;
            self.notices.add(format!(
                "{reason}; the requests that this interrupted are retried"
            ));
            let keys = vec![key];
            self.indexer.report(Event::Return { keys }, permit);
            return;
        }
        if result.exchange.as_ref().is_some_and(Exchange::is_head_only) {
            let event = self.head_only(&visit);
            if let Some(report) = report_of(&event) {
                self.log.add(LogLine::page(&visit, report));
            }
            self.indexer.report(event, permit);
            return;
        }
        let mut reading = self.reader.read(&visit);
        self.counters.count(result, &reading.outcome);
        let aside = std::mem::take(&mut reading.aside);
        let event = match decision {
            Decision::Final => self.finished(&visit, reading),
            // Handled before anything was read.
            Decision::PutBack => Event::Return { keys: vec![key] },
            Decision::Again { due, .. } => {
                let report = report(&visit, put_off(result, &reading.outcome), None);
                Event::Retry {
                    key,
                    report,
                    due,
                    archived: None,
                }
            }
        };
        self.archive(&visit, event, aside, permit);
    }

    /// Archives a robots.txt; the URL server reads it.
    pub(crate) fn robots(
        &self,
        url: &CrawlUrl,
        result: &FetchResult,
        permit: OwnedSemaphorePermit,
    ) {
        let line = LogLine::robots(url, result);
        let event = Event::RobotsAsked { requests: 1 };
        self.indexer.report(event, permit);
        let archiving = self.archiving.as_ref();
        let Some(archiving) = archiving.filter(|_| result.exchange.is_some()) else {
            self.log.add(line);
            return;
        };
        let log = self.log.clone();
        let ack = move |kept: Result<Kept, _>| {
            let digest = kept.ok().and_then(|kept| kept.digest);
            log.add(line.with_digest(digest));
        };
        archiving.robots(url, result, Box::new(ack));
    }

    /// Tells those who watch the seeds what came of a request, or of an attempt at one.
    pub(crate) fn watch_seeds(&self, url: &CrawlUrl, outcome: &Outcome, has_answered: bool) {
        (self.seeds).hear(url, outcome, has_answered, &self.notices);
    }

    /// Takes note of a URL that the URL server has given up, as `event` says.
    pub(crate) fn given_up(&self, candidate: &Candidate, event: &Event) {
        if let Some(report) = report_of(event) {
            let line = LogLine::unasked(candidate.url.as_str(), candidate.key, report);
            self.log.add(line);
        }
    }

    /// Finishes a URL whose exchange an earlier process has archived but not reported.
    pub(crate) fn report_again(&self, visit: &Visit, place: Archived) -> Event {
        let event = self.finished(visit, self.reader.read(visit));
        archived(event, Some(place))
    }

    fn finished(&self, visit: &Visit, reading: Reading) -> Event {
        let redirect = reading.redirect.as_deref();
        Event::Done {
            key: visit.candidate.key,
            revisit: revisit::after(visit, &reading.outcome, redirect, self.recrawl),
            report: report(visit, reading.outcome, reading.redirect),
            links: reading.links,
            archived: None,
        }
    }

    /// What follows from a HEAD: either the document is unchanged, or it is requested. A HEAD is not archived,
    /// for it brings nothing to keep.
    fn head_only(&self, visit: &Visit) -> Event {
        let (key, result) = (visit.candidate.key, &visit.result);
        let before = visit.candidate.revisit.as_deref();
        let same = before
            .zip(result.exchange.as_ref())
            .filter(|(before, head)| revisit::shows_no_change(before, head));
        if same.is_none() {
            let why = "HEAD shows a change, the page is fetched";
            let outcome = Outcome::because(OutcomeClass::Deferred, why);
            return Event::Retry {
                key,
                report: report(visit, outcome, None),
                due: result.ended,
                archived: None,
            };
        }
        let outcome = Outcome::because(OutcomeClass::Success, "not modified, by HEAD");
        self.counters.count(result, &outcome);
        Event::Done {
            key,
            revisit: revisit::after(visit, &outcome, None, self.recrawl),
            report: report(visit, outcome, None),
            links: Vec::new(),
            archived: None,
        }
    }

    fn archive(&self, visit: &Visit, event: Event, aside: Aside, permit: OwnedSemaphorePermit) {
        let result = &visit.result;
        let indexer = self.indexer.clone();
        let log = self.log.clone();
        let report = report_of(&event);
        let line = report.map(|report| LogLine::page(visit, report));
        let outcome = report
            .map_or(&result.outcome, |report| &report.outcome)
            .clone();
        let archiving = self.archiving.as_ref();
        let Some(archiving) = archiving.filter(|_| result.exchange.is_some()) else {
            line.into_iter().for_each(|line| log.add(line));
            indexer.page(event, aside, permit);
            return;
        };
        let key = visit.candidate.key;
        let ack = move |kept: Result<Kept, _>| match kept {
            Ok(kept) => {
                line.into_iter()
                    .for_each(|line| log.add(line.with_digest(kept.digest)));
                indexer.page(archived(event, kept.archived()), aside, permit);
            }
            // Unstored means unreported: it was no attempt, and the page is fetched again.
            Err(error) => {
                tracing::warn!(%error, "exchange not stored");
                indexer.page(Event::Return { keys: vec![key] }, aside, permit);
            }
        };
        archiving.page(visit, &outcome, Box::new(ack));
    }
}

/// What an event says of an attempt.
fn report_of(event: &Event) -> Option<&Report> {
    match event {
        Event::Done { report, .. } | Event::Retry { report, .. } => Some(report),
        _ => None,
    }
}

/// An event that says where its exchange lies.
fn archived(mut event: Event, place: Option<Archived>) -> Event {
    if let Event::Done { archived, .. } | Event::Retry { archived, .. } = &mut event {
        *archived = place;
    }
    event
}

fn report(visit: &Visit, outcome: Outcome, redirect: Option<String>) -> Report {
    let result = &visit.result;
    Report {
        outcome,
        status: result.status(),
        ip: result.connected.or(visit.ip),
        bytes: result.wire_bytes,
        millis: result.millis(),
        at: result.ended,
        redirect,
    }
}

/// The outcome of an attempt that will be repeated.
fn put_off(result: &FetchResult, outcome: &Outcome) -> Outcome {
    let why = match result.status() {
        Some(status) => format!("status {status}, will be retried"),
        None if outcome.reason.is_empty() => format!("{}, will be retried", outcome.class),
        None => format!("{}: {}, will be retried", outcome.class, outcome.reason),
    };
    Outcome::because(OutcomeClass::Deferred, why)
}
