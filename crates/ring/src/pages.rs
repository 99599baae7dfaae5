//! Finished pages for the program that embeds the ring: one after the other, each at least once, also across kills.
//!
//! The stream follows the results of the archive under a name and keeps how far it has come beside them. So a slow reader
//! costs no memory, one that was killed hears again what it had not finished, and the crawl waits for one that is far behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::HeaderMap;
use tracing::warn;
use url::Url;

use orbweaver_intake::Canonicalizer;
use orbweaver_model::{
    Column, CrawlUrl, Exchange, Limits, LinkKind, Outcome, OutcomeClass, Purpose, Timestamp,
};
use orbweaver_store::{Begin, Entry, Follower, Keep};

use crate::error::Result;

/// Results that a reader may be behind before the crawl waits for it.
pub(crate) const MAX_LAG: u64 = 1000;
/// How long the reader waits before it looks whether the crawl has ended.
const LOOK: Duration = Duration::from_millis(100);
/// How often it is kept how far the reader has come.
const KEEP_EVERY: Duration = Duration::from_millis(250);

/// What all pages of a crawl are read with.
pub(crate) struct Reading {
    pub(crate) keep: Arc<dyn Keep>,
    pub(crate) canonicalizer: Canonicalizer,
    pub(crate) limits: Limits,
    pub(crate) agent: String,
}

/// How far a reader has come; the crawl waits for one that is alive and far behind.
pub(crate) type Progress = Arc<AtomicU64>;

/// The finished pages of a crawl, in the order in which they were archived.
///
/// Everything that was answered comes: documents, and also answers with an error status and redirects, as
/// [`Page::outcome`] tells. Each page comes at least once: when the program is killed, those of the last quarter of a second
/// may come again. The iterator waits for the next page and ends when the crawl has.
pub struct Pages {
    reading: Arc<Reading>,
    follower: Follower,
    progress: Progress,
    /// The crawl has ended, and nothing more comes.
    ended: Arc<AtomicBool>,
    /// The page that was returned last; it counts as done when the next is requested.
    given: u64,
    kept: Instant,
}

impl Pages {
    /// Follows the results under a name, from where it was or from the beginning.
    pub(crate) fn new(
        reading: Arc<Reading>,
        name: &str,
        ended: Arc<AtomicBool>,
    ) -> Result<(Self, Progress)> {
        let follower = reading.keep.results().follower(name, Begin::First)?;
        let given = follower.position();
        let progress: Progress = Arc::new(AtomicU64::new(given));
        let pages = Self {
            reading,
            follower,
            progress: Arc::clone(&progress),
            ended,
            given,
            kept: Instant::now(),
        };
        Ok((pages, progress))
    }

    /// The next page; none when the crawl has ended and all were given out.
    pub fn next_page(&mut self) -> Result<Option<Page>> {
        self.done(self.kept.elapsed() >= KEEP_EVERY)?;
        loop {
            // Looked at first: what was archived before the end is there after it.
            let over = self.ended.load(Ordering::Acquire);
            while let Some((position, entry)) = self.follower.next_entry()? {
                self.given = self.given.max(position);
                if let Some(page) = self.read(&entry) {
                    return Ok(Some(page));
                }
                self.done(self.kept.elapsed() >= KEEP_EVERY)?;
            }
            self.done(true)?;
            if over {
                return Ok(None);
            }
            self.follower.wait(LOOK);
        }
    }

    /// Everything that was given out is done.
    fn done(&mut self, keep: bool) -> Result<()> {
        self.progress.store(self.given, Ordering::Relaxed);
        if keep && self.follower.position() < self.given {
            self.follower.have(self.given)?;
            self.kept = Instant::now();
        }
        Ok(())
    }

    /// The page of an entry; none when it is not one, or not the last word on its URL.
    fn read(&self, entry: &Entry) -> Option<Page> {
        let place = entry.place().filter(|_| entry.purpose == Purpose::Page)?;
        let url = CrawlUrl::from_canonical(&entry.url).ok()?;
        let limits = &self.reading.limits;
        let max = (limits.max_decoded_bytes + limits.max_header_bytes) as u64;
        let stored = match self.reading.keep.read(place, max) {
            Ok(stored) => stored,
            Err(error) => {
                warn!(%url, %error, "a page cannot be read from the archive and is left out");
                return None;
            }
        };
        let plain = || Outcome::plain(OutcomeClass::Success);
        let outcome = stored.outcome.clone().unwrap_or_else(plain);
        if outcome.class.column() == Column::Queued || stored.unchanged_since.is_some() {
            return None;
        }
        let fetched = stored.started;
        let exchange = orbweaver_spider::reread(
            stored.request.into(),
            stored.response.into(),
            stored.protocol,
            stored.truncated,
            limits,
        )?;
        Some(Page {
            reading: Arc::clone(&self.reading),
            url,
            exchange,
            outcome,
            fetched,
        })
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_page().transpose()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // The page that was given out last may not be done: it comes again.
        let _ = self.follower.have(self.progress.load(Ordering::Relaxed));
    }
}

/// A finished page.
pub struct Page {
    reading: Arc<Reading>,
    url: CrawlUrl,
    exchange: Exchange,
    outcome: Outcome,
    fetched: Timestamp,
}

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLink {
    /// Where it leads, in its canonical form.
    pub url: CrawlUrl,
    /// Where it stood.
    pub kind: LinkKind,
    /// The page marks it as nofollow.
    pub nofollow: bool,
}

impl Page {
    /// Its URL, in its canonical form.
    pub fn url(&self) -> &CrawlUrl {
        &self.url
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.exchange.status
    }

    /// The header fields of the answer.
    pub fn headers(&self) -> &HeaderMap {
        &self.exchange.headers
    }

    /// The body with transfer and content encoding undone, up to the limit for what is read of a document
    /// (`[limits] max_decoded_bytes`).
    pub fn body(&self) -> &[u8] {
        &self.exchange.body
    }

    /// What became of it.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// True when it is a document, and not a redirect or an error.
    pub fn is_document(&self) -> bool {
        self.outcome.class.is_document()
    }

    /// When the request was made.
    pub fn fetched(&self) -> Timestamp {
        self.fetched
    }

    /// Its title, white space collapsed. Read anew with each call.
    pub fn title(&self) -> Option<String> {
        orbweaver_extract::read(&self.as_read()).title
    }

    /// Its text as a reader sees it: one block per line, without markup, scripts and styles. Read anew with each call.
    pub fn text(&self) -> String {
        orbweaver_extract::text(&self.as_read())
    }

    /// What it links to, in the order of the page, whether that belongs to the crawl or not. Read anew with each call.
    pub fn links(&self) -> Vec<PageLink> {
        let read = orbweaver_extract::read(&self.as_read());
        let encode = orbweaver_extract::query_encoder(read.encoding);
        let encoding = || encode.as_ref().map(|encode| encode as _);
        let canonicalizer = &self.reading.canonicalizer;
        let Ok(own) = Url::parse(self.url.as_str()) else {
            return Vec::new();
        };
        let named = read.base.as_deref().and_then(|href| own.join(href).ok());
        let base = named.as_ref().unwrap_or(&own);
        let found = read.links.iter().filter_map(|link| {
            let url = canonicalizer.resolve(base, link.href, encoding()).ok()?;
            Some(PageLink {
                url,
                kind: link.kind,
                nofollow: link.nofollow,
            })
        });
        found.collect()
    }

    fn as_read(&self) -> orbweaver_extract::Page<'_> {
        orbweaver_extract::Page {
            url: &self.url,
            headers: &self.exchange.headers,
            body: &self.exchange.body,
            limits: &self.reading.limits,
            agent: &self.reading.agent,
            kind: LinkKind::A,
        }
    }
}
