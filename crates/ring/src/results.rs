//! What the archive has and the doc index does not know yet, at the start of a crawl.
//!
//! An exchange is archived before it is reported, so a process that dies in between leaves pages that are fetched and kept but
//! still count as queued. The doc index follows the results of the archive and keeps how far it has come; what is behind
//! that is read back and reported now, instead of being asked for a second time. An index that is new, because the old one
//! was lost, follows them from the beginning.
//!
//! Once through is enough: a page is archived after the pages that led to it were reported, so that in the order of the
//! results it is known when its turn comes.

use std::collections::HashSet;

use tracing::{info, warn};

use orbweaver_docindex::DocIndex;
use orbweaver_model::{
    Archived, Candidate, Column, CrawlUrl, Event, FetchResult, Limits, Outcome, OutcomeClass,
    Purpose, Timestamp, UrlKey, Visit,
};
use orbweaver_store::{Entry, Keep, StoredExchange};

use crate::error::Result;
use crate::harvest::Harvest;

/// Events folded at once.
const GROUP: usize = 256;

/// Reports every archived exchange that no process before lived to report. The seeds must be known by now.
pub(crate) fn follow(keep: &dyn Keep, docs: &mut DocIndex, harvest: &Harvest) -> Result<()> {
    let results = keep.results();
    let from = match docs.followed() {
        Some(position) if position <= results.last() => position,
        // The index is new; or the results are fewer than it has heard of, because archive files are gone.
        _ => 0,
    };
    let mut reading = results.after(from)?;
    let mut following = Following {
        keep,
        docs,
        harvest,
        events: Vec::new(),
        waiting: HashSet::new(),
        reported: 0,
    };
    while let Some((position, entry)) = reading.next_entry()? {
        following.hear(position, &entry)?;
    }
    following.fold()?;
    let reported = following.reported;
    if reported > 0 {
        info!(reported, "pages reported from the archive");
    }
    Ok(())
}

struct Following<'a> {
    keep: &'a dyn Keep,
    docs: &'a mut DocIndex,
    harvest: &'a Harvest,
    /// Reports that are not folded yet.
    events: Vec<Event>,
    /// The URLs that they are about.
    waiting: HashSet<UrlKey>,
    reported: u64,
}

impl Following<'_> {
    fn hear(&mut self, position: u64, entry: &Entry) -> Result<()> {
        // A robots.txt is nobody's page.
        let Some(place) = entry.place().filter(|_| entry.purpose == Purpose::Page) else {
            return Ok(());
        };
        let Ok(url) = CrawlUrl::from_canonical(&entry.url) else {
            return Ok(());
        };
        let Some(candidate) = self.unreported(&url, entry.at)? else {
            return Ok(());
        };
        let limits = self.harvest.reader().limits();
        // What is beyond the limit is not read for links, as when it was fetched.
        let max = (limits.max_decoded_bytes + limits.max_header_bytes) as u64;
        let stored = match self.keep.read(place, max) {
            Err(damage) if damage.is_damage() => {
                warn!(%url, %damage, "a page in the archive is damaged and is fetched again");
                return Ok(());
            }
            stored => stored?,
        };
        // An answer that led to another attempt is not the last word.
        let is_last = (stored.outcome.as_ref())
            .is_some_and(|outcome| outcome.class.column() != Column::Queued);
        if stored.url != entry.url || !is_last {
            return Ok(());
        }
        let key = candidate.key;
        let Some(visit) = visit_of(stored, candidate, limits) else {
            return Ok(());
        };
        let archived = Archived { place, position };
        self.events
            .push(self.harvest.report_again(&visit, archived));
        self.waiting.insert(key);
        self.reported += 1;
        if self.events.len() >= GROUP {
            self.fold()?;
        }
        Ok(())
    }

    /// What the doc index has of a URL whose result it has not heard of; none when it has, or when it knows no such URL.
    fn unreported(&mut self, url: &CrawlUrl, at: Timestamp) -> Result<Option<Candidate>> {
        let key = url.key(self.harvest.reader().seed());
        let is_waiting = self.waiting.contains(&key);
        if !is_waiting && self.docs.is_finished(key)? {
            return Ok(None);
        }
        let mut entry = self.docs.reader().entry(key)?;
        // What is not folded yet may be what leads to it, or a result of its own.
        if (entry.is_none() && !self.events.is_empty()) || is_waiting {
            self.fold()?;
            if self.docs.is_finished(key)? {
                return Ok(None);
            }
            entry = self.docs.reader().entry(key)?;
        }
        // An earlier visit, or an earlier attempt of this one.
        let is_old = |entry: &orbweaver_docindex::Entry| {
            let reported = entry.fate.as_ref().map(|fate| fate.report.at);
            reported.is_some_and(|reported| at <= reported)
        };
        Ok(entry
            .filter(|entry| !is_old(entry))
            .map(|entry| self.harvest.reader().candidate(entry)))
    }

    fn fold(&mut self) -> Result<()> {
        self.waiting.clear();
        Ok(self.docs.apply(self.events.drain(..))?)
    }
}

/// A page from the archive as the spider brought it, as far as reading it again needs.
pub(crate) fn visit_of(
    stored: StoredExchange,
    candidate: Candidate,
    limits: &Limits,
) -> Option<Visit> {
    let ip = stored.ip;
    let exchange = orbweaver_spider::reread(
        stored.request.into(),
        stored.response.into(),
        stored.protocol,
        stored.truncated,
        limits,
    )?;
    let outcome = stored
        .outcome
        .unwrap_or_else(|| Outcome::plain(OutcomeClass::Success));
    let ended = Timestamp::from_millis(stored.started.as_millis() + u64::from(stored.millis));
    // What is recorded of a redirect is decided again, together with its link.
    let class = match exchange.status {
        301 | 302 | 303 | 307 | 308 => OutcomeClass::RedirectFollowed,
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
