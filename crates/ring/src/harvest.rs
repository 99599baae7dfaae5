//! What happens to a result: it is read, archived, and reported to the doc index, in that order of
//! acknowledgement. The report goes out only when the archive has the exchange on disk, so that a page
//! that counts as done can always be read back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::sync::OwnedSemaphorePermit;

use orbweaver_docindex::{Entry, Seen};
use orbweaver_extract::{Media, Page};
use orbweaver_intake::{Found, Outlinks, PageRef};
use orbweaver_model::{
    Candidate, Column, CrawlUrl, Event, Exchange, FetchResult, KeySeed, Limits, Link, LinkKind,
    NewLink, Outcome, OutcomeClass, RecrawlBounds, Report, Timestamp, Truncation, UrlKey, Visit,
};
use orbweaver_spider::{AddressPolicy, IN_PART};

use crate::indexer::Indexer;
use crate::log::{Log, LogLine};
use crate::redirect;
use crate::retry::Decision;
use crate::revisit;
use crate::seeds::SeedWatch;
use crate::shelf::Shelf;
use crate::sync::lock;
use crate::watch::counters::Counters;
use crate::watch::notices::Notices;

/// URLs that move up in their queues with one event. What is left when the crawl ends has no queue to move in.
const PROMOTED: usize = 256;

/// The stage between spider and doc index.
pub(crate) struct Harvest {
    pub(crate) outlinks: Outlinks,
    pub(crate) seed: KeySeed,
    pub(crate) seen: Arc<Seen>,
    pub(crate) limits: Limits,
    pub(crate) agent: String,
    pub(crate) obey_nofollow: bool,
    /// Sitemaps that robots.txt files name are fetched.
    pub(crate) sitemaps: bool,
    /// When finished pages are visited again; none when they are not.
    pub(crate) recrawl: Option<RecrawlBounds>,
    pub(crate) policy: AddressPolicy,
    /// Where exchanges are kept; none when a store elsewhere has them before they come here.
    pub(crate) shelf: Option<Shelf>,
    pub(crate) indexer: Indexer,
    /// URLs that many pages link to, with their better priorities, until there are enough for an event.
    pub(crate) promoted: Mutex<Vec<(UrlKey, u8)>>,
    pub(crate) counters: Counters,
    /// What the summary has to tell beyond the counts.
    pub(crate) notices: Arc<Notices>,
    /// Seeds that have not answered yet.
    pub(crate) seeds: SeedWatch,
    /// A line for each request.
    pub(crate) log: Log,
}

/// A result, read.
struct Reading {
    outcome: Outcome,
    redirect: Option<String>,
    links: Vec<NewLink>,
}

impl Harvest {
    /// Takes in the result of a page.
    pub(crate) fn page(&self, visit: Visit, decision: Decision, permit: OwnedSemaphorePermit) {
        let (key, result) = (visit.candidate.key, &visit.result);
        if decision == Decision::PutBack {
            let reason = &result.outcome.reason;
            self.notices
                .add(format!("{reason}; what that broke off is asked for again"));
            let keys = vec![key];
            self.indexer.event(Event::Return { keys }, Some(permit));
            return;
        }
        if result.exchange.as_ref().is_some_and(Exchange::is_head_only) {
            let event = self.head_only(&visit);
            if let Some(report) = report_of(&event) {
                self.log.add(LogLine::page(&visit, report));
            }
            self.indexer.event(event, Some(permit));
            return;
        }
        let reading = self.read_guarded(&visit);
        self.count(result, &reading.outcome);
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
        self.archive(&visit, event, permit);
    }

    /// Archives a robots.txt; the URL server reads it.
    pub(crate) fn robots(&self, url: &CrawlUrl, result: &FetchResult) {
        let line = LogLine::robots(url, result);
        self.indexer.event(Event::RobotsAsked { requests: 1 }, None);
        let Some(shelf) = self.shelf.as_ref().filter(|_| result.exchange.is_some()) else {
            self.log.add(line);
            return;
        };
        let log = self.log.clone();
        shelf.robots(url, result, |digest| {
            let line = line.with_digest(digest);
            Box::new(move |_| log.add(line))
        });
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

    /// The links of a page that was read before, by what is known of it now.
    pub(crate) fn links_again(&self, visit: &Visit) -> Vec<NewLink> {
        self.read_guarded(visit).links
    }

    /// Finishes a URL whose exchange an earlier process has archived but not reported.
    pub(crate) fn adopt(&self, visit: &Visit) -> Event {
        self.finished(visit, self.read_guarded(visit))
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

    /// What follows from a HEAD: either the document is as it was, or it is asked for. A HEAD is not archived,
    /// for it brings nothing to keep.
    fn head_only(&self, visit: &Visit) -> Event {
        let (key, result) = (visit.candidate.key, &visit.result);
        let before = visit.candidate.revisit.as_deref();
        let same = before
            .zip(result.exchange.as_ref())
            .filter(|(before, head)| revisit::shows_no_change(before, head));
        if same.is_none() {
            let why = "HEAD shows a change, the page is asked for";
            let outcome = Outcome::because(OutcomeClass::Deferred, why);
            return Event::Retry {
                key,
                report: report(visit, outcome, None),
                due: result.ended,
                archived: None,
            };
        }
        let outcome = Outcome::because(OutcomeClass::Success, "not modified, by HEAD");
        self.count(result, &outcome);
        Event::Done {
            key,
            revisit: revisit::after(visit, &outcome, None, self.recrawl),
            report: report(visit, outcome, None),
            links: Vec::new(),
            archived: None,
        }
    }

    /// Seeds as links, judged.
    pub(crate) fn judge_seeds(&self, urls: &[CrawlUrl]) -> Vec<NewLink> {
        let link = |url: &CrawlUrl| Link {
            url: url.clone(),
            kind: LinkKind::Seed,
            depth: 0,
            priority: orbweaver_intake::priority(LinkKind::Seed),
            via: None,
            chain: Vec::new(),
        };
        urls.iter()
            .map(|url| self.outlinks.judge(link(url)))
            .collect()
    }

    /// The candidate that an entry of the doc index stands for.
    pub(crate) fn candidate(&self, entry: Entry) -> Candidate {
        let link = entry.link;
        Candidate {
            key: link.url.key(self.seed),
            doc_id: link.doc_id,
            url: link.url,
            kind: link.kind,
            depth: link.depth,
            attempts: entry.fate.as_ref().map_or(0, |fate| fate.attempts),
            chain: link.chain,
            revisit: entry.fate.and_then(|fate| fate.revisit),
        }
    }

    /// Sitemaps named by a robots.txt, as links.
    pub(crate) fn sitemaps(&self, origin: &str, urls: &[Box<str>], at: Timestamp) -> Option<Event> {
        if !self.sitemaps {
            return None;
        }
        let base = CrawlUrl::from_canonical(&format!("{origin}/robots.txt")).ok()?;
        let page = PageRef {
            key: base.key(self.seed),
            url: &base,
            kind: LinkKind::Seed,
            depth: 0,
            base: None,
            encoding: None,
            copies: 0,
        };
        let found = urls.iter().map(|href| Found {
            href,
            kind: LinkKind::SitemapFile,
            nofollow: false,
            weight: orbweaver_extract::NORMAL,
        });
        let links = self
            .outlinks
            .links(&page, found, |key, role| self.seen.is_old_news(key, role))
            .links;
        // A sitemap is no page: what it lists counts from where the crawl began.
        let links: Vec<_> = links
            .into_iter()
            .map(|new| {
                self.outlinks.judge(Link {
                    depth: 0,
                    via: None,
                    ..new.link
                })
            })
            .collect();
        (!links.is_empty()).then_some(Event::Links { links, at })
    }

    /// A reader that fails on some page must not take the crawl with it: the page is recorded so.
    fn read_guarded(&self, visit: &Visit) -> Reading {
        let read = std::panic::AssertUnwindSafe(|| self.read(visit));
        std::panic::catch_unwind(read).unwrap_or_else(|_| Reading {
            outcome: Outcome::because(
                OutcomeClass::FailedParse,
                "the page reader failed; please report this page",
            ),
            redirect: None,
            links: Vec::new(),
        })
    }

    fn read(&self, visit: &Visit) -> Reading {
        let mut outcome = visit.result.outcome.clone();
        match outcome.class {
            OutcomeClass::RedirectFollowed => {
                let key_of = |url: &CrawlUrl| url.key(self.seed);
                let max = self.limits.max_redirects;
                let way = redirect::judge(visit, &self.outlinks, &self.policy, key_of, max);
                if let Some(new) = &way.link {
                    self.admit(&new.link, new.refused.is_none());
                }
                let links = way.link.into_iter().collect();
                Reading {
                    outcome: way.outcome,
                    redirect: way.target,
                    links,
                }
            }
            class if class.is_document() => {
                let links = self.links(visit, &mut outcome);
                Reading {
                    outcome,
                    redirect: None,
                    links,
                }
            }
            _ => Reading {
                outcome,
                redirect: None,
                links: Vec::new(),
            },
        }
    }

    /// A seed that has moved takes the scope with it.
    fn admit(&self, link: &Link, accepted: bool) {
        let is_seed = link.kind == LinkKind::Seed && accepted;
        if is_seed && self.outlinks.admit_seed(&link.url) {
            self.indexer.scope_grew(link.url.clone());
        }
    }

    fn links(&self, visit: &Visit, outcome: &mut Outcome) -> Vec<NewLink> {
        let Some(exchange) = &visit.result.exchange else {
            return Vec::new();
        };
        let candidate = &visit.candidate;
        let page = Page {
            url: &candidate.url,
            headers: &exchange.headers,
            body: &exchange.body,
            limits: &self.limits,
            agent: &self.agent,
            kind: candidate.kind,
        };
        let reading = orbweaver_extract::read(&page);
        if let Some(note) = reading.notes.first().filter(|_| outcome.reason.is_empty()) {
            *outcome = Outcome::because(outcome.class, note.to_string());
        }
        let copies = self.note(&page, &reading, candidate.revisit.is_some());
        let encode = orbweaver_extract::query_encoder(reading.encoding);
        let page = PageRef {
            url: &candidate.url,
            key: candidate.key,
            kind: candidate.kind,
            depth: candidate.depth,
            base: reading.base.as_deref(),
            encoding: encode.as_ref().map(|encode| encode as _),
            copies,
        };
        let found = reading.links.iter().map(|link| Found {
            href: link.href,
            kind: link.kind,
            nofollow: link.nofollow && self.obey_nofollow,
            weight: link.weight,
        });
        let out = self
            .outlinks
            .links(&page, found, |key, role| self.seen.is_old_news(key, role));
        self.promote(out.promoted);
        if out.cut && outcome.reason.is_empty() {
            let max = self.limits.max_links_per_page;
            outcome.reason = orbweaver_extract::Note::MoreLinks(max).to_string();
        }
        out.links
    }

    /// Tells the rules against traps of a document; how many others of its host say the same. On a later visit it
    /// would be a copy of itself.
    fn note(&self, page: &Page<'_>, reading: &orbweaver_extract::Reading, again: bool) -> u32 {
        let traps = self.outlinks.traps();
        match reading.media {
            _ if again => 0,
            Media::Html => traps.note(page.url, || {
                orbweaver_extract::fingerprint(page, &reading.links)
            }),
            _ => {
                traps.note_file(page.url);
                0
            }
        }
    }

    /// Collects what moves up in the queues, for the fold reads for each of them and does that best in one go.
    fn promote(&self, promoted: Vec<(UrlKey, u8)>) {
        if promoted.is_empty() {
            return;
        }
        let mut waiting = lock(&self.promoted);
        waiting.extend(promoted);
        if waiting.len() >= PROMOTED {
            let urls = std::mem::take(&mut *waiting);
            self.indexer.event(Event::Promote { urls }, None);
        }
    }

    fn archive(&self, visit: &Visit, event: Event, permit: OwnedSemaphorePermit) {
        let result = &visit.result;
        let indexer = self.indexer.clone();
        let log = self.log.clone();
        let report = report_of(&event);
        let line = report.map(|report| LogLine::page(visit, report));
        let outcome = report
            .map_or(&result.outcome, |report| &report.outcome)
            .clone();
        let Some(shelf) = self.shelf.as_ref().filter(|_| result.exchange.is_some()) else {
            line.into_iter().for_each(|line| log.add(line));
            indexer.event(event, Some(permit));
            return;
        };
        let key = visit.candidate.key;
        shelf.page(visit, &outcome, |digest| {
            let line = line.map(|line| line.with_digest(digest));
            Box::new(move |stored: Result<_, _>| match stored {
                Ok(_) => {
                    line.into_iter().for_each(|line| log.add(line));
                    indexer.event(event, Some(permit));
                }
                // Unstored means unreported: it was no attempt, and the page is fetched again.
                Err(error) => {
                    tracing::warn!(%error, "exchange not stored");
                    indexer.event(Event::Return { keys: vec![key] }, Some(permit));
                }
            })
        });
    }

    /// Counts a URL that the URL server gave up.
    pub(crate) fn count_refusal(&self, outcome: &Outcome) {
        if outcome.class.column() == Column::Failed {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count(&self, result: &FetchResult, outcome: &Outcome) {
        self.counters.answers.fetch_add(1, Ordering::Relaxed);
        self.counters
            .bytes
            .fetch_add(result.wire_bytes, Ordering::Relaxed);
        if outcome.reason == IN_PART {
            self.counters.cut.in_part.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.class == OutcomeClass::Truncated {
            let cut = &self.counters.cut;
            let counter = match result.exchange.as_ref().and_then(|it| it.truncated) {
                Some(Truncation::Length) => &cut.by_size,
                Some(Truncation::Time) => &cut.by_time,
                Some(Truncation::Disconnect) | None => &cut.by_server,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.class.is_document() {
            self.counters.documents.fetch_add(1, Ordering::Relaxed);
        } else if outcome.class.column() == Column::Failed {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What an event says of an attempt.
fn report_of(event: &Event) -> Option<&Report> {
    match event {
        Event::Done { report, .. } | Event::Retry { report, .. } => Some(report),
        _ => None,
    }
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
        Some(status) => format!("status {status}, asked again later"),
        None if outcome.reason.is_empty() => format!("{}, asked again later", outcome.class),
        None => format!("{}: {}, asked again later", outcome.class, outcome.reason),
    };
    Outcome::because(OutcomeClass::Deferred, why)
}
