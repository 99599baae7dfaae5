//! From an exchange to a finished group of records: pure work, on any thread.
//!
//! A group is a response or a revisit, the request, and a metadata record that ends it. The last one names
//! the place of the group, so that the writer renders it; all else is done here. The payload
//! digest is taken over the body as received, chunked framing and content encoding included, because that
//! is what warcio verifies and what makes a revisit exact: the revisit's own head explains the bytes of
//! the original. A response has no block digest: the gzip CRC covers the whole record, and a second
//! SHA-1 would add 12 µs to a 16 KB page.

use std::path::Path;
use std::sync::Arc;

use orbweaver_model::{Exchange, Protocol, Timestamp};

use crate::capture::{Capture, Captured};
use crate::cdxj::IndexLine;
use crate::date::Date;
use crate::digest::{Digest, DigestPlace, Digests};
use crate::error::StoreError;
use crate::files::Layout;
use crate::http_head;
use crate::options::StoreOptions;
use crate::warc::bulk::{self, Bulk};
use crate::warc::last::Last;
use crate::warc::reader::read_head_in;
use crate::warc::render::{KEEP, Press, RecordId, Squeeze, one_line};

/// Bodies below this are stored again instead of referred to: a revisit adds some 150 bytes of its own
/// and a second read at replay.
const MIN_REVISIT: u64 = 1024;

/// The profile of a revisit whose payload is the same, bit by bit (WARC 1.1, section 6.7.2).
pub(crate) const IDENTICAL: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// The profile of a revisit whose server says that nothing has changed (WARC 1.1, section 6.7.3).
pub(crate) const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// What the index says where there is no payload to have a digest.
pub(crate) const NO_DIGEST: &str = "-";

/// A group of records, ready to be appended.
#[derive(Debug)]
pub struct Prepared {
    /// The response, when it is too large for memory.
    pub(crate) bulk: Option<Bulk>,
    /// Response or revisit, unless that is in bulk, and request.
    pub(crate) bytes: Vec<u8>,
    pub(crate) last: Last,
    /// The line of the index up to where it depends on the place.
    pub(crate) line: String,
    /// The payload, when later exchanges may refer to it.
    pub(crate) payload: Option<Digest>,
    pub(crate) captured: Timestamp,
    pub(crate) length: u64,
}

impl Prepared {
    /// Bytes it takes in memory.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.last.size() + self.line.len()
    }

    /// The digest of the payload, as its line of the index has it; none where there is no payload to have one.
    pub fn digest(&self) -> Option<&str> {
        // The URL before it is escaped, so that no quote is in it.
        let (_, rest) = self.line.split_once("\", \"digest\": \"")?;
        rest.split('"').next()
    }
}

/// The buffers of one preparing thread.
pub struct Scratch {
    press: Press,
    /// The group that is being made; what leaves here has the size it needs.
    group: Vec<u8>,
}

/// Turns exchanges into groups of records. Cheap to clone; every thread can use the same one.
#[derive(Clone)]
pub struct Archivist {
    layout: Layout,
    digests: Arc<Digests>,
    level: u8,
}

/// What the records of one group say in common.
struct Common<'a> {
    capture: &'a Capture<'a>,
    exchange: &'a Exchange,
    date: Date,
    /// The fields that all records have: date, URL, address, protocol.
    shared: String,
    /// Identifier of the response or revisit.
    id: RecordId,
}

/// The record that holds the same payload already.
struct Original {
    place: DigestPlace,
    id: String,
    url: String,
    date: String,
}

impl Archivist {
    pub(crate) fn new(layout: Layout, digests: Arc<Digests>, options: &StoreOptions) -> Self {
        Self {
            layout,
            digests,
            level: options.compression_level,
        }
    }

    /// The buffers that a thread keeps from one call to the next.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            press: Press::new(self.level),
            group: Vec::new(),
        }
    }

    /// Renders an exchange; none when there was no answer, for then there is nothing to archive. It fails only
    /// when the answer is on disk and that cannot be read or has no room left.
    pub fn prepare(
        &self,
        capture: &Capture<'_>,
        scratch: &mut Scratch,
    ) -> Result<Option<Prepared>, StoreError> {
        let Some(exchange) = capture.result.exchange.as_ref() else {
            return Ok(None);
        };
        let response = exchange.response.as_ref();
        let split = response.split_at_checked(http_head::head_len(response));
        let Some((head, body)) = split else {
            return Ok(None);
        };
        let failed = |e| StoreError::io("keep a large body in", &self.layout.warc, e);
        let spooled = exchange.spooled.as_deref();
        let (digest, body_len) = match spooled {
            Some(spooled) => (bulk::digest_of(spooled).map_err(failed)?, spooled.size()),
            None => (Digest::of(body), body.len() as u64),
        };
        let original = self.original(exchange, head, body_len, digest);
        let captured = capture.result.started;
        let date = Date::new(captured);
        let common = Common {
            capture,
            exchange,
            date,
            shared: shared_fields(capture, exchange, date),
            id: RecordId::new(),
        };
        let mut bytes = std::mem::take(&mut scratch.group);
        bytes.clear();
        let unchanged = common.unchanged();
        let mut bulk = None;
        let length = match (&original, unchanged) {
            (_, Some(since)) => common.not_modified(scratch, since, &mut bytes),
            (Some(original), _) => common.revisit(scratch, head, digest, original, &mut bytes),
            (None, None) => match spooled {
                None => common.response(scratch, head, digest, &mut bytes),
                Some(body) => {
                    let press = common.response_head(scratch, digest);
                    let record = press.finish_head(head.len() as u64 + body.size());
                    let dir = &self.layout.warc;
                    let made =
                        bulk::press(dir, record, head, body, squeeze(head)).map_err(failed)?;
                    bulk.insert(made).len
                }
            },
        };
        common.request(scratch, &mut bytes);
        let fields = common.fields(original.as_ref());
        let revisit = original.is_some() || unchanged.is_some();
        let digest_word = match unchanged {
            Some(_) => NO_DIGEST.to_owned(),
            None => digest.base32(),
        };
        let line = index_line(&common, head, digest_word, revisit, length);
        let group = bytes.as_slice().to_vec();
        if bytes.capacity() <= KEEP {
            scratch.group = bytes;
        }
        Ok(Some(Prepared {
            bulk,
            bytes: group,
            last: Last {
                fields,
                main: common.id,
                id: RecordId::new(),
                shared: common.shared,
            },
            line: line.render_start(),
            payload: (original.is_none() && body_len >= MIN_REVISIT).then_some(digest),
            captured,
            length,
        }))
    }

    /// The stored record with the same payload. What cannot be read or does not agree in every bit of the
    /// digest counts as absent: storing a body twice is no harm.
    fn original(
        &self,
        exchange: &Exchange,
        head: &[u8],
        body_len: u64,
        digest: Digest,
    ) -> Option<Original> {
        // A redirect is replayed without its body by pywb when it is a revisit, so it never becomes one.
        let redirect = http_head::status(head).is_some_and(|status| (300..400).contains(&status));
        if body_len < MIN_REVISIT || exchange.truncated.is_some() || redirect {
            return None;
        }
        let place = self.digests.find(digest)?;
        let record = read_head_in(&self.layout, &place.file, place.offset).ok()?;
        let same = record.kind() == "response"
            && record.field("WARC-Payload-Digest").and_then(Digest::parse) == Some(digest);
        same.then(|| {
            let field = |name| record.field(name).unwrap_or_default().to_owned();
            Original {
                id: field("WARC-Record-ID"),
                url: field("WARC-Target-URI"),
                date: field("WARC-Date"),
                place,
            }
        })
    }

    /// The crawl directory's layout, for those who only have an archivist.
    pub fn warc_dir(&self) -> &Path {
        &self.layout.warc
    }
}

impl Common<'_> {
    fn begin<'p>(&self, press: &'p mut Press, kind: &str, id: RecordId) -> &'p mut Press {
        press.begin(kind, id).lines(&self.shared)
    }

    fn response(
        &self,
        scratch: &mut Scratch,
        head: &[u8],
        digest: Digest,
        out: &mut Vec<u8>,
    ) -> u64 {
        let press = self.response_head(scratch, digest);
        press.finish(&[&self.exchange.response], squeeze(head), out)
    }

    /// The head of the response, all but its length.
    fn response_head<'p>(&self, scratch: &'p mut Scratch, digest: Digest) -> &'p mut Press {
        let press = self.begin(&mut scratch.press, "response", self.id);
        press
            .text("Content-Type", "application/http;msgtype=response")
            .text("WARC-Payload-Digest", &digest.labelled());
        if let Some(truncation) = self.exchange.truncated {
            press.text("WARC-Truncated", truncation.as_str());
        }
        press
    }

    fn revisit(
        &self,
        scratch: &mut Scratch,
        head: &[u8],
        digest: Digest,
        original: &Original,
        out: &mut Vec<u8>,
    ) -> u64 {
        self.begin(&mut scratch.press, "revisit", self.id)
            .text("Content-Type", "application/http;msgtype=response")
            .text("WARC-Profile", IDENTICAL)
            .text("WARC-Payload-Digest", &digest.labelled())
            .text("WARC-Block-Digest", &Digest::of(head).labelled())
            .text("WARC-Refers-To", &original.id)
            .text("WARC-Refers-To-Target-URI", &original.url)
            .text("WARC-Refers-To-Date", &original.date)
            // WARC 1.1, section 6.7.2: the block is cut to the head because the payload is elsewhere.
            .text("WARC-Truncated", "length")
            .finish(&[head], Squeeze::Stored, out)
    }

    /// When the document was captured that the server says is still the same.
    fn unchanged(&self) -> Option<Timestamp> {
        (self.capture.unchanged_since).filter(|_| self.exchange.status == 304)
    }

    fn not_modified(&self, scratch: &mut Scratch, since: Timestamp, out: &mut Vec<u8>) -> u64 {
        let url = self.capture.url;
        self.begin(&mut scratch.press, "revisit", self.id)
            .text("Content-Type", "application/http;msgtype=response")
            .text("WARC-Profile", NOT_MODIFIED)
            .text("WARC-Refers-To-Target-URI", url.as_str())
            .field("WARC-Refers-To-Date", Date::new(since).iso())
            .finish(&[&self.exchange.response], Squeeze::Stored, out)
    }

    fn request(&self, scratch: &mut Scratch, out: &mut Vec<u8>) {
        let request = self.exchange.request.as_ref();
        if request.is_empty() {
            return;
        }
        let id = RecordId::new();
        self.begin(&mut scratch.press, "request", id)
            .text("Content-Type", "application/http;msgtype=request")
            .text("WARC-Concurrent-To", self.id.as_str())
            .text("WARC-Block-Digest", &Digest::of(request).labelled())
            .finish(&[request], Squeeze::Stored, out);
    }

    /// The block of the metadata record: what the index and the doc index need to be rebuilt.
    fn fields(&self, original: Option<&Original>) -> String {
        use std::fmt::Write as _;
        let Capture {
            of,
            result,
            surt,
            outcome,
            via,
            ..
        } = self.capture;
        let mut fields = String::with_capacity(512);
        // Writing to a String does not fail.
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            let _ = write!(fields, "{name}: {value}\r\n");
        };
        field("surt", &one_line(surt));
        field("outcome", &outcome.class);
        if !outcome.reason.is_empty() {
            field("reason", &one_line(&outcome.reason));
        }
        field("fetchTimeMs", &result.millis());
        match of {
            Captured::Page(candidate) => {
                field("wireBytes", &result.wire_bytes);
                field("hopsFromSeed", &candidate.depth);
                field("kind", &candidate.kind.as_str());
                field("attempts", &(u32::from(candidate.attempts) + 1));
            }
            Captured::Robots => field("wireBytes", &result.wire_bytes),
            Captured::Record { .. } => {}
        }
        if let Some(via) = via {
            field("via", &one_line(via));
        }
        match of {
            Captured::Page(candidate) => field("docId", &candidate.doc_id),
            Captured::Record {
                doc_id: Some(number),
            } => field("docId", number),
            Captured::Robots | Captured::Record { doc_id: None } => field("purpose", &"robots"),
        }
        if let Some(original) = original {
            field(
                "revisitOf",
                &format_args!("{} {}", original.place.file, original.place.offset),
            );
        }
        fields
    }
}

/// What all records of a group say.
fn shared_fields(capture: &Capture<'_>, exchange: &Exchange, date: Date) -> String {
    use std::fmt::Write as _;
    let url = capture.url.as_str();
    let mut fields = String::with_capacity(url.len() + 128);
    // Writing to a String does not fail.
    let _ = write!(fields, "WARC-Date: {}\r\n", date.iso());
    for part in ["WARC-Target-URI: ", url, "\r\n"] {
        fields.push_str(part);
    }
    if let Some(ip) = capture.result.connected {
        let _ = write!(fields, "WARC-IP-Address: {ip}\r\n");
    }
    // HTTP/1 says it in its first line.
    if exchange.protocol == Protocol::Http2 {
        fields.push_str("WARC-Protocol: h2\r\n");
    }
    fields
}

fn index_line(
    common: &Common<'_>,
    head: &[u8],
    digest: String,
    revisit: bool,
    length: u64,
) -> IndexLine {
    IndexLine {
        surt: one_line(common.capture.surt).to_string(),
        timestamp: common.date.digits().to_string(),
        url: common.capture.url.as_str().to_owned(),
        length,
        ..describe(head, revisit, digest)
    }
}

/// The part of an index line that the record's head decides: the same when written and when rebuilt.
pub(crate) fn describe(head: &[u8], revisit: bool, digest: String) -> IndexLine {
    let status = http_head::status(head).map(|status| status.to_string());
    let (mime, status) = match revisit {
        true => ("warc/revisit".to_owned(), String::new()),
        false => (http_head::media_type(head), status.unwrap_or_default()),
    };
    IndexLine {
        surt: String::new(),
        timestamp: String::new(),
        url: String::new(),
        mime,
        status,
        digest,
        length: 0,
        offset: 0,
        filename: String::new(),
    }
}

/// How hard a response with this head is compressed.
fn squeeze(head: &[u8]) -> Squeeze {
    match is_compressed(head) {
        true => Squeeze::Stored,
        false => Squeeze::Dense,
    }
}

/// True when the body cannot be made smaller: it has a content encoding, or its type is a compressed one.
fn is_compressed(head: &[u8]) -> bool {
    let encoding = http_head::field(head, "content-encoding").unwrap_or_default();
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return true;
    }
    let mime = http_head::media_type(head).to_ascii_lowercase();
    match mime.split_once('/') {
        Some(("audio" | "video", _)) => true,
        Some(("image", kind)) => !matches!(kind, "svg+xml" | "bmp" | "x-ms-bmp" | "tiff"),
        Some(("font", kind)) => kind.starts_with("woff"),
        Some(("application", kind)) => {
            matches!(
                kind,
                "zip"
                    | "gzip"
                    | "x-gzip"
                    | "zstd"
                    | "x-bzip2"
                    | "x-xz"
                    | "x-7z-compressed"
                    | "epub+zip"
            ) || kind.starts_with("font-woff")
                || kind.starts_with("vnd.openxmlformats")
        }
        _ => false,
    }
}
