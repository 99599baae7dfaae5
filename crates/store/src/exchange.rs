//! Exchanges read back: the records of one group put together again.

use std::net::IpAddr;
use std::path::Path;

use orbweaver_model::{CapturePlace, Outcome, Protocol, Purpose, Timestamp, Truncation};

use crate::cdxj::{IndexLine, captures, captures_anywhere, lookup};
use crate::date::{Date, parse_iso};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::files::Layout;
use crate::http_head;
use crate::numbers;
use crate::warc::group::{Groups, Item, MAX_SIDE_BLOCK, revisit_of, warc_field};
use crate::warc::prepare::NOT_MODIFIED;
use crate::warc::reader::{
    RecordHead, Records, StoredRecord, read_beginning, read_head_in, read_next,
};

/// No limit: what was stored is read back.
const WHOLE: u64 = u64::MAX;

/// A request and its answer, as they were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredExchange {
    /// The URL.
    pub url: String,
    /// The key it is indexed under.
    pub surt: String,
    /// When the fetch began.
    pub started: Timestamp,
    /// The address that answered.
    pub ip: Option<IpAddr>,
    /// The request message; empty when none was stored.
    pub request: Vec<u8>,
    /// The response message: head and body as received. The body of a revisit comes from its original.
    pub response: Vec<u8>,
    /// Where in `response` the body begins.
    pub head_len: usize,
    /// The status code; 0 when the status line has none.
    pub status: u16,
    /// HTTP/1 or HTTP/2.
    pub protocol: Protocol,
    /// Set when the body is not whole.
    pub truncated: Option<Truncation>,
    /// True when the record is a revisit.
    pub revisit: bool,
    /// When the document was captured that the server said is unchanged, for an answer that says so.
    pub unchanged_since: Option<Timestamp>,
    /// What became of the URL; none when the record does not say it in a way known here.
    pub outcome: Option<Outcome>,
    /// Duration in milliseconds.
    pub millis: u32,
    /// Bytes read from the socket.
    pub wire_bytes: u64,
    /// What it was for.
    pub purpose: Purpose,
    /// The number of the document in the doc index; none when it has none.
    pub doc_id: Option<u32>,
    pub(crate) metadata: Vec<u8>,
}

impl StoredExchange {
    /// A field of the metadata record: `docId`, `kind`, `hopsFromSeed`, `via`, `attempts`, `purpose`, …
    pub fn metadata(&self, name: &str) -> Option<&str> {
        warc_field(&self.metadata, name)
    }

    /// The head of the response.
    pub fn head(&self) -> &[u8] {
        self.response.get(..self.head_len).unwrap_or_default()
    }

    /// The body as received.
    pub fn body(&self) -> &[u8] {
        self.response.get(self.head_len..).unwrap_or_default()
    }
}

/// What was found of a URL.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The newest document that can be read; none when there is none.
    pub document: Option<StoredExchange>,
    /// What could not be read on the way to it: newer captures, and lines of indexes.
    pub damage: Vec<StoreError>,
}

/// The newest stored document of a URL, at the place that the record of the URL has: one look at the table of files and one
/// file read, whatever the size of the archive. Without a place, or when nothing of this URL can be read there, it is looked
/// for in the CDXJ.
pub fn newest(
    dir: &Path,
    place: Option<CapturePlace>,
    surt: &dyn Fn() -> String,
    url: &str,
) -> Result<Found, StoreError> {
    let mut damage = Vec::new();
    match place.map(|place| read_place(dir, place, WHOLE)) {
        // An answer that nothing has changed is not the document.
        Some(Ok(stored)) if stored.url == url && stored.unchanged_since.is_none() => {
            let document = Some(stored);
            return Ok(Found { document, damage });
        }
        Some(Err(error)) if error.is_damage() => damage.push(error),
        Some(Err(other)) => return Err(other),
        Some(Ok(_)) | None => {}
    }
    let found = get(dir, &surt(), url)?;
    // What was damaged at the place is damaged in the same words when it is found again.
    damage.retain(|error| {
        let said = error.to_string();
        found.damage.iter().all(|other| other.to_string() != said)
    });
    damage.extend(found.damage);
    Ok(Found {
        damage,
        document: found.document,
    })
}

/// The capture at a place, as its line of the CDXJ has it.
pub fn line_at(dir: &Path, place: CapturePlace) -> Result<IndexLine, StoreError> {
    let layout = Layout::new(dir);
    let missing = || StoreError::damaged(&layout.warc, place.offset, "no exchange begins here");
    let name = numbers::name_of(&layout, place.file)?.ok_or_else(missing)?;
    let (path, handle) = layout.open_warc(&name)?;
    let records = Records::from_file(&path, handle, place.offset, 64 << 10)?;
    match Groups::new(records, name, false).next()? {
        Some(Item::Group(group)) => Ok(group.line),
        _ => Err(missing()),
    }
}

/// When the newest stored document of a URL was captured, by the head of its record: the body, however large, is not read.
/// None when there is none, or when its record cannot be read.
pub fn captured_at(dir: &Path, surt: &str, url: &str) -> Result<Option<Timestamp>, StoreError> {
    let Some(line) = lookup(dir, surt, url)? else {
        return Ok(None);
    };
    let head = match read_head_in(&Layout::new(dir), &line.filename, line.offset) {
        Err(error) if error.is_damage() => return Ok(None),
        head => head?,
    };
    // An answer that nothing has changed speaks of an older document.
    let field = match head.field("WARC-Profile") == Some(NOT_MODIFIED) {
        true => "WARC-Refers-To-Date",
        false => "WARC-Date",
    };
    Ok(head.field(field).and_then(parse_iso))
}

/// The newest stored document of a URL that can be read. Where the newest answer says that nothing has changed, it is
/// the document that the answer speaks of.
pub fn get(dir: &Path, surt: &str, url: &str) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let mut captures = captures(dir, surt, url)?;
    if captures.is_empty() {
        captures = captures_anywhere(dir, url, &mut found.damage)?;
    }
    for line in &captures {
        match document(dir, line, &captures) {
            Ok(document) => {
                found.document = Some(document);
                return Ok(found);
            }
            Err(damage) if damage.is_damage() => found.damage.push(damage),
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// The document that a capture speaks of.
fn document(
    dir: &Path,
    line: &IndexLine,
    captures: &[IndexLine],
) -> Result<StoredExchange, StoreError> {
    let stored = beginning_at(dir, &line.filename, line.offset, WHOLE)?;
    let Some(since) = stored.unchanged_since else {
        return Ok(stored);
    };
    let digits = Date::new(since).digits().to_string();
    match captures.iter().find(|other| other.timestamp == digits) {
        Some(line) => beginning_at(dir, &line.filename, line.offset, WHOLE),
        None => Ok(stored),
    }
}

/// The exchange at a place: found with one look at the table of files, whatever the size of the archive. Of its response only
/// the first `max` bytes are taken into memory; all of it is verified.
pub fn read_place(dir: &Path, place: CapturePlace, max: u64) -> Result<StoredExchange, StoreError> {
    let layout = Layout::new(dir);
    match numbers::name_of(&layout, place.file)? {
        Some(name) => beginning_at(dir, &name, place.offset, max),
        None => {
            let what = format!("there is no WARC file with the number {}", place.file);
            Err(StoreError::damaged(&layout.warc, 0, what))
        }
    }
}

/// The exchange whose response or revisit begins at `offset` of a WARC file, finished or open.
pub(crate) fn beginning_at(
    dir: &Path,
    file: &str,
    offset: u64,
    max: u64,
) -> Result<StoredExchange, StoreError> {
    let layout = Layout::new(dir);
    let (path, handle) = layout.open_warc(file)?;
    let mut records = Records::from_file(&path, handle, offset, 64 << 10)?;
    let missing = || StoreError::damaged(&path, offset, "no whole exchange begins here");
    let main = read_beginning(&mut records, max)?.ok_or_else(missing)?;
    let mut side = || {
        let record = read_next(&mut records, MAX_SIDE_BLOCK)?.ok_or_else(missing)?;
        let together = record.head.field("WARC-Concurrent-To") == main.head.field("WARC-Record-ID");
        if together { Ok(record) } else { Err(missing()) }
    };
    let mut metadata = side()?;
    let mut request = Vec::new();
    if metadata.head.kind() == "request" {
        request = std::mem::replace(&mut metadata, side()?).block;
    }
    let revisit = main.head.kind() == "revisit";
    let body = match revisit_of(&metadata.block).filter(|_| revisit) {
        Some((file, offset)) => original_body(&layout, file, offset, &main.head, max)?,
        None => Vec::new(),
    };
    assemble(main, request, metadata.block, body).ok_or_else(missing)
}

/// The body of the record that a revisit refers to, verified against the revisit's digest.
fn original_body(
    layout: &Layout,
    file: &str,
    offset: u64,
    revisit: &RecordHead,
    max: u64,
) -> Result<Vec<u8>, StoreError> {
    let (path, handle) = layout.open_warc(file)?;
    let mut records = Records::from_file(&path, handle, offset, 64 << 10)?;
    let original = read_beginning(&mut records, max)?;
    let whole = (original.as_ref()).is_some_and(|it| it.block.len() as u64 == it.head.block_len);
    let named = original
        .as_ref()
        .and_then(|it| it.head.field("WARC-Payload-Digest"));
    let named = named.and_then(Digest::parse);
    let mut block = original.map(|record| record.block).unwrap_or_default();
    let body = block.split_off(http_head::head_len(&block));
    let promised = revisit.field("WARC-Payload-Digest").and_then(Digest::parse);
    // Of a beginning no digest can be taken; what the record says of itself stands for it.
    let found = match whole {
        true => Some(Digest::of(&body)),
        false => named,
    };
    if promised.is_none() || promised != found {
        let what = "not the payload that a revisit refers to";
        return Err(StoreError::damaged(&path, offset, what));
    }
    Ok(body)
}

fn assemble(
    main: StoredRecord,
    request: Vec<u8>,
    metadata: Vec<u8>,
    original: Vec<u8>,
) -> Option<StoredExchange> {
    let head = &main.head;
    let revisit = head.kind() == "revisit";
    let mut response = main.block;
    let head_len = http_head::head_len(&response);
    response.extend_from_slice(&original);
    let number = |name| warc_field(&metadata, name).and_then(|text| text.parse::<u64>().ok());
    let class = warc_field(&metadata, "outcome").and_then(|word| word.parse().ok());
    let reason = warc_field(&metadata, "reason").unwrap_or_default();
    let unchanged = head.field("WARC-Profile") == Some(NOT_MODIFIED);
    let since = head.field("WARC-Refers-To-Date").and_then(parse_iso);
    let truncated = match head.field("WARC-Truncated").filter(|_| !revisit) {
        Some("length") => Some(Truncation::Length),
        Some("time") => Some(Truncation::Time),
        Some(_) => Some(Truncation::Disconnect),
        None => None,
    };
    Some(StoredExchange {
        url: head.field("WARC-Target-URI")?.to_owned(),
        surt: warc_field(&metadata, "surt").unwrap_or_default().to_owned(),
        started: head.field("WARC-Date").and_then(parse_iso)?,
        ip: head.field("WARC-IP-Address").and_then(|ip| ip.parse().ok()),
        request,
        status: http_head::status(&response).unwrap_or_default(),
        response,
        head_len,
        protocol: match head.field("WARC-Protocol") {
            Some("h2") => Protocol::Http2,
            _ => Protocol::Http1,
        },
        truncated,
        revisit,
        unchanged_since: since.filter(|_| unchanged),
        outcome: class.map(|class| Outcome::because(class, reason)),
        millis: number("fetchTimeMs")
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or_default(),
        wire_bytes: number("wireBytes").unwrap_or_default(),
        purpose: match warc_field(&metadata, "purpose") {
            Some("robots") => Purpose::Robots,
            _ => Purpose::Page,
        },
        doc_id: number("docId").and_then(|id| u32::try_from(id).ok()),
        metadata,
    })
}
