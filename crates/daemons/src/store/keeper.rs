//! What becomes of a record: archived, entered in the journal, answered, in this order.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::sync::oneshot;

use orbweaver_config::StoreSettings;
use orbweaver_intake::{CanonicalOptions, Canonicalizer, surt};
use orbweaver_model::{
    Clock, CrawlUrl, Exchange, FetchResult, Method, Outcome, OutcomeClass, Protocol, Timestamp,
};
use orbweaver_store::{Archive, Archivist, Capture, Captured, Scratch};
use orbweaver_wire::{Data, Record, Verdict};

use super::super::journal::{Entry, Location, Standing};
use super::books::{Books, Known, Reply, key};
use orbweaver_ring::Error;

/// Permits of the byte budget stand for so many bytes each.
const UNIT: usize = 1024;

/// The store behind its ports.
pub(super) struct Keeper {
    archive: Archive,
    archivist: Archivist,
    pub(super) books: Arc<Books>,
    pub(super) dir: PathBuf,
    pub(super) max_data: usize,
    /// Memory for records that are being received.
    pub(super) budget: Arc<Semaphore>,
    units: usize,
    pub(super) clock: Clock,
    canonicalizer: Canonicalizer,
}

thread_local! {
    /// The compressor's buffers; one a worker.
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

impl Keeper {
    pub(super) fn new(
        archive: Archive,
        books: Books,
        dir: &Path,
        settings: &StoreSettings,
        clock: Clock,
    ) -> Self {
        let units = (settings.memory / UNIT).clamp(1, u32::MAX as usize);
        Self {
            archivist: archive.archivist(),
            archive,
            books: Arc::new(books),
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

    /// Takes a record. The answer comes when the record is durable; when it never will be, none comes.
    pub(super) fn take(&self, record: Record) -> oneshot::Receiver<Verdict> {
        let (reply, verdict) = oneshot::channel();
        if self.books.trouble().is_on() {
            let _ = reply.send(Verdict::TryLater);
            return verdict;
        }
        let (record, url) = self.canonical(record);
        let message = message(&record);
        let Some(url) = url else {
            self.enter_refused(record, message.is_some(), reply);
            return verdict;
        };
        let entry = Entry {
            received: (self.clock)(),
            key: match &message {
                Some(message) => key(record.doc_id, &url, message),
                None => 0,
            },
            record: Record {
                data: Bytes::new(),
                ..record
            },
            standing: Standing::Nothing,
        };
        match message {
            Some(message) => self.keep(entry, url, message, reply),
            None => self.books.enter(entry, reply, Verdict::Stored),
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
    fn enter_refused(&self, record: Record, has_data: bool, reply: Reply) {
        tracing::warn!(
            doc_id = record.doc_id,
            url = record.url,
            has_data,
            "the URL of a record cannot be archived; it is entered without data"
        );
        let entry = Entry {
            received: (self.clock)(),
            key: 0,
            record: Record {
                data: Bytes::new(),
                ..record
            },
            standing: Standing::Nothing,
        };
        let verdict = match has_data {
            true => Verdict::Refused,
            false => Verdict::Stored,
        };
        self.books.enter(entry, reply, verdict);
    }

    fn keep(&self, entry: Entry, url: CrawlUrl, message: Bytes, reply: Reply) {
        {
            let mut memory = self.books.memory();
            match memory.get(entry.key) {
                Some(Known::At(location)) => {
                    let standing = Standing::Again(location.clone());
                    drop(memory);
                    let entry = Entry { standing, ..entry };
                    self.books.enter(entry, reply, Verdict::AlreadyHad);
                    return;
                }
                Some(Known::Coming(waiting)) => {
                    waiting.push((entry, reply));
                    return;
                }
                None => {
                    memory.put(entry.key, Known::Coming(Vec::new()));
                }
            }
        }
        let result = result(&entry, message);
        let surt = surt(&url);
        let capture = Capture {
            url: &url,
            of: Captured::Record {
                doc_id: NonZeroU32::new(entry.record.doc_id),
            },
            unchanged_since: self.unchanged_since(&entry.record, &surt, &url),
            surt: &surt,
            outcome: &result.outcome,
            via: None,
            result: &result,
        };
        let prepared = SCRATCH.with_borrow_mut(|scratch| {
            let scratch = scratch.get_or_insert_with(|| self.archivist.scratch());
            self.archivist.prepare(&capture, scratch)
        });
        let Ok(Some(prepared)) = prepared else {
            self.books.memory().remove(entry.key);
            let _ = reply.send(Verdict::Refused);
            return;
        };
        let books = Arc::clone(&self.books);
        let ack = move |stored: Result<orbweaver_store::Location, _>| match stored {
            Ok(place) => enter_stored(&books, entry, reply, &place),
            Err(error) => {
                tracing::warn!(%error, "a record was not stored");
                books.memory().remove(entry.key);
            }
        };
        self.archive.submit(prepared, Box::new(ack));
    }

    /// When the document was captured that a server says has not changed. A record does not say it, but the archive has
    /// it; when it does not, there is nothing to refer to.
    fn unchanged_since(&self, record: &Record, surt: &str, url: &CrawlUrl) -> Option<Timestamp> {
        if record.http.status() != Some(304) || record.outcome != OutcomeClass::Success {
            return None;
        }
        let found = orbweaver_store::get(&self.dir, surt, url.as_str());
        found.ok()?.document.map(|document| document.started)
    }

    /// Stores and enters all that was taken.
    pub(super) fn close(&self) -> Result<()> {
        let archived = self.archive.close();
        let entered = self.books.close();
        archived?;
        if !entered {
            let what = "the journal could not be written; what was acknowledged is safe";
            return Err(Error::Disk(what.into()).into());
        }
        Ok(())
    }
}

/// Enters a record that the archive has, and those that came meanwhile and are the same.
fn enter_stored(books: &Books, entry: Entry, reply: Reply, place: &orbweaver_store::Location) {
    let location = Location {
        file: place.file.to_string(),
        offset: place.offset,
    };
    let waiting = books.memory().put(entry.key, Known::At(location.clone()));
    let standing = Standing::Archived(location.clone());
    books.enter(Entry { standing, ..entry }, reply, Verdict::Stored);
    for (entry, reply) in waiting {
        let standing = Standing::Again(location.clone());
        books.enter(Entry { standing, ..entry }, reply, Verdict::AlreadyHad);
    }
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
fn result(entry: &Entry, response: Bytes) -> FetchResult {
    let record = &entry.record;
    let millis = entry.received.as_millis();
    let started = millis.saturating_sub(record.millis.into());
    FetchResult {
        outcome: Outcome::plain(record.outcome),
        started: orbweaver_model::Timestamp::from_millis(started),
        sent: None,
        first_byte: None,
        ended: entry.received,
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
