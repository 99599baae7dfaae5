//! What becomes of a record: archived and entered in the results, then answered.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot, watch};
use tracing::warn;

use orbweaver_config::StoreSettings;
use orbweaver_intake::{CanonicalOptions, Canonicalizer, surt};
use orbweaver_model::{
    Clock, CrawlUrl, Exchange, FetchResult, Method, Outcome, OutcomeClass, Protocol, Purpose,
    Timestamp,
};
use orbweaver_store::{Attempt, Capture, Captured, Entry, Keep, Kept, Placed, Results, StoreError};
use orbweaver_wire::{Data, Record, Verdict};

use super::known::{Found, Known, key};
use super::note;

/// Permits of the byte budget stand for so many bytes each.
const UNIT: usize = 1024;

/// Whoever waits for the answer to a record.
type Reply = oneshot::Sender<Verdict>;

/// A record that is to be stored.
pub(super) struct Received {
    at: Timestamp,
    key: u128,
    /// Without its data.
    record: Record,
    reply: Reply,
}

/// The store behind its ports.
pub(super) struct Receiver {
    archive: Arc<dyn Keep>,
    known: Arc<Mutex<Known<Received>>>,
    /// How far results can be followed, as it grows.
    durable: watch::Receiver<u64>,
    dir: PathBuf,
    pub(super) max_data: usize,
    /// Memory for records that are being received.
    pub(super) budget: Arc<Semaphore>,
    units: usize,
    pub(super) clock: Clock,
    canonicalizer: Canonicalizer,
}

impl Receiver {
    pub(super) fn new(
        archive: Arc<dyn Keep>,
        known: Known<Received>,
        durable: watch::Receiver<u64>,
        dir: &Path,
        settings: &StoreSettings,
        clock: Clock,
    ) -> Self {
        let units = (settings.memory / UNIT).clamp(1, u32::MAX as usize);
        Self {
            archive,
            known: Arc::new(Mutex::new(known)),
            durable,
            dir: dir.to_path_buf(),
            max_data: settings.max_data,
            budget: Arc::new(Semaphore::new(units)),
            units,
            clock,
            canonicalizer: Canonicalizer::new(CanonicalOptions {
                max_url_bytes: CrawlUrl::MAX_LEN,
                ..CanonicalOptions::default()
            }),
        }
    }

    /// The permits for a record of this size; a record larger than the whole budget takes all of it.
    pub(super) fn permits(&self, size: usize) -> u32 {
        let units = size.div_ceil(UNIT).min(self.units);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// The results, for those who follow them.
    pub(super) fn results(&self) -> &Results {
        self.archive.results()
    }

    /// How far results can be followed, as it grows.
    pub(super) fn durable(&self) -> watch::Receiver<u64> {
        self.durable.clone()
    }

    /// The record of an entry with its data, which comes from the archive as the whole message.
    pub(super) fn read_back(&self, entry: &Entry) -> Result<Record, StoreError> {
        let noted = note::read(entry).map(|(_, record)| record);
        let Some(place) = entry.place() else {
            return noted.ok_or(StoreError::Stopped);
        };
        let stored = self.archive.read(place, u64::MAX)?;
        let record = noted.unwrap_or_else(|| note::record_of(&stored));
        Ok(Record {
            kind: Data::Message,
            data: stored.response.into(),
            ..record
        })
    }

    /// Takes a record. The answer comes when the record is durable; when it never will be, none comes.
    pub(super) fn take(&self, record: Record) -> oneshot::Receiver<Verdict> {
        let (reply, verdict) = oneshot::channel();
        if self.archive.trouble().is_some() {
            let _ = reply.send(Verdict::TryLater);
            return verdict;
        }
        let (record, url) = self.canonical(record);
        let message = message(&record);
        let key = match (&message, &url) {
            (Some(message), Some(url)) => key(record.doc_id, url, message),
            _ => 0,
        };
        let received = Received {
            at: (self.clock)(),
            key,
            record: Record {
                data: Bytes::new(),
                ..record
            },
            reply,
        };
        match (message, url) {
            (Some(message), Some(url)) => self.keep(received, &url, message),
            (None, Some(_)) => self.enter(received, None, Verdict::Stored),
            (message, None) => self.enter_refused(received, message.is_some()),
        }
        verdict
    }

    /// The record under the canonical form of its URLs, as everything here is kept and found; of a URL that has none,
    /// as it was written.
    fn canonical(&self, mut record: Record) -> (Record, Option<CrawlUrl>) {
        let url = self.canonicalizer.parse(&record.url).ok();
        if let Some(url) = &url {
            record.url = url.to_string();
            let base = url::Url::parse(url.as_str());
            let new = base.ok().filter(|_| !record.new_url.is_empty());
            let new = new.and_then(|base| {
                self.canonicalizer
                    .resolve(&base, &record.new_url, None)
                    .ok()
            });
            record.new_url = new.map_or(record.new_url, |url| url.to_string());
        }
        (record, url)
    }

    /// A result for what is no URL that can be archived: whoever waits for it hears of it, and its data, if it has any,
    /// is refused.
    fn enter_refused(&self, received: Received, has_data: bool) {
        let record = &received.record;
        warn!(
            doc_id = record.doc_id,
            url = record.url,
            has_data,
            "the URL of a record cannot be archived; the journal entry has no data"
        );
        let verdict = match has_data {
            true => Verdict::Refused,
            false => Verdict::Stored,
        };
        self.enter(received, None, verdict);
    }

    /// Enters a record that brings nothing new to archive.
    fn enter(&self, received: Received, same: Option<&Placed>, verdict: Verdict) {
        let Received {
            at,
            key,
            record,
            reply,
        } = received;
        let Some(note) = note::write(key, &record) else {
            let _ = reply.send(Verdict::Refused);
            return;
        };
        let attempt = Attempt {
            at,
            purpose: purpose(&record),
            url: &record.url,
            note: &note,
            same,
        };
        let ack = move |kept: Result<Kept, _>| answer(kept, reply, verdict);
        self.archive.enter(&attempt, Box::new(ack));
    }

    /// Archives a record, unless the archive has it.
    fn keep(&self, received: Received, url: &CrawlUrl, message: Bytes) {
        let key = received.key;
        let found = lock(&self.known).take(key, received);
        let received = match found {
            Found::New(received) => received,
            Found::At(received, placed) => {
                return self.enter(received, Some(&placed), Verdict::AlreadyHad);
            }
            Found::Waits => return,
        };
        let Some(note) = note::write(key, &received.record) else {
            lock(&self.known).remove(key);
            let _ = received.reply.send(Verdict::Refused);
            return;
        };
        let result = result(&received, message);
        let surt = surt(url);
        let capture = Capture {
            url,
            of: Captured::Record {
                doc_id: NonZeroU32::new(received.record.doc_id),
            },
            unchanged_since: self.unchanged_since(&received.record, &surt, url),
            surt: &surt,
            outcome: &result.outcome,
            via: None,
            result: &result,
        };
        let known = Arc::clone(&self.known);
        let reply = received.reply;
        let ack = move |kept: Result<Kept, StoreError>| {
            if kept.is_err() {
                lock(&known).remove(key);
            }
            answer(kept, reply, Verdict::Stored);
        };
        let placed = self.archive.put(&capture, &note, Box::new(ack));
        // From here on it is before everything that is submitted later, so that those who waited find its place.
        let waiting = lock(&self.known).submitted(key, placed.clone());
        for received in waiting {
            self.enter(received, Some(&placed), Verdict::AlreadyHad);
        }
    }

    /// When the document was captured that a server says has not changed. A record does not say it, but the archive has
    /// it; when it does not, there is nothing to refer to.
    fn unchanged_since(&self, record: &Record, surt: &str, url: &CrawlUrl) -> Option<Timestamp> {
        if record.http.status() != Some(304) || record.outcome != OutcomeClass::Success {
            return None;
        }
        let found = orbweaver_store::captured_at(&self.dir, surt, url.as_str());
        found.ok().flatten()
    }

    /// Stores and enters all that was taken.
    pub(super) fn close(&self) -> Result<()> {
        Ok(self.archive.close()?)
    }
}

/// Tells a spider what became of its record. Without an answer it sends the record again.
fn answer(kept: Result<Kept, StoreError>, reply: Reply, verdict: Verdict) {
    match kept {
        // A spider that is gone asks again.
        Ok(_) => drop(reply.send(verdict)),
        Err(error) => warn!(%error, "a record was not stored"),
    }
}

fn purpose(record: &Record) -> Purpose {
    match record.doc_id {
        0 => Purpose::Robots,
        _ => Purpose::Page,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The HTTP message that is archived: as received, or, when only a body came, behind the least head that
/// says what is known. None when there is no data.
fn message(record: &Record) -> Option<Bytes> {
    if record.data.is_empty() {
        return None;
    }
    match record.kind {
        Data::Message if is_response(&record.data) => Some(record.data.clone()),
        // What calls itself a message and is none is kept as the bytes it is.
        Data::Message | Data::Body => {
            let status = record.http.status().unwrap_or(200);
            let length = record.data.len();
            let head = format!("HTTP/1.1 {status} \r\nContent-Length: {length}\r\n\r\n");
            Some([head.as_bytes(), &record.data].concat().into())
        }
    }
}

/// True for what begins with the status line of HTTP (RFC 9112, 4): a version, a space and three digits.
fn is_response(data: &[u8]) -> bool {
    let Some(rest) = data.strip_prefix(b"HTTP/") else {
        return false;
    };
    let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let version = rest.iter().take_while(|byte| digits(byte)).count();
    let rest = rest.get(version..).unwrap_or_default();
    let code = rest.trim_ascii_start();
    let blank = rest.len() > code.len() && !rest.starts_with(b"\n") && !rest.starts_with(b"\r");
    let figures = code.iter().take_while(|byte| byte.is_ascii_digit()).count();
    version > 0 && blank && figures == 3
}

/// The record as the result that the archive knows how to write. What no record says stays empty: the
/// address, the request, how the URL was found.
fn result(received: &Received, response: Bytes) -> FetchResult {
    let record = &received.record;
    let millis = received.at.as_millis();
    let started = millis.saturating_sub(record.millis.into());
    FetchResult {
        outcome: Outcome::plain(record.outcome),
        started: Timestamp::from_millis(started),
        sent: None,
        first_byte: None,
        ended: received.at,
        wire_bytes: 0,
        connected: None,
        exchange: Some(Exchange {
            method: Method::Get,
            request: Bytes::new(),
            head_len: 0,
            status: record.http.status().unwrap_or_default(),
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
            protocol: Protocol::Http1,
            truncated: record.cut,
            response,
            spooled: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_from_what_only_says_so() {
        for message in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.0 404\n\nx",
            "HTTP/2 200\r\n",
            "HTTP/1.1  301 Moved",
        ] {
            assert!(is_response(message.as_bytes()), "{message}");
        }
        for bytes in [
            "",
            "<html>",
            "HTTP/",
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/x 200 OK",
            "HTTP/1.1 20 OK",
            "HTTP/1.1 2000 OK",
            "HTTP/1.1\r\n200",
            "ICY 200 OK\r\n",
            "GET / HTTP/1.1\r\n",
            "http/1.1 200 OK",
        ] {
            assert!(!is_response(bytes.as_bytes()), "{bytes}");
        }
    }
}
