//! What a fetch needs to know, and what it brings back.

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::outcome::{Outcome, OutcomeClass};
use crate::url::CrawlUrl;

/// What an order is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// A URL of the doc index.
    Page,
    /// The robots.txt of an origin, asked for by the URL server itself.
    Robots,
}

/// How a document is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// The document.
    #[default]
    Get,
    /// Its head alone.
    Head,
}

/// What is known of a document that was fetched before; a server that has nothing newer says so (304).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// The ETag that it had.
    pub etag: Option<String>,
    /// The Last-Modified that it had.
    pub last_modified: Option<String>,
}

/// One request to one address: all that a fetch needs to know, and nothing of why it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// What to ask for.
    pub url: CrawlUrl,
    /// The address to connect to.
    pub ip: IpAddr,
    /// Page or robots.txt; their bodies have different limits.
    pub purpose: Purpose,
    /// GET or HEAD.
    pub method: Method,
    /// What the last visit left; none on the first.
    pub known: Option<Box<Conditions>>,
    /// Somebody counts a gap from when the request is written: it is told, and the request is written once at most.
    pub announce: bool,
}

/// The protocol an exchange was held in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2. The head in an `Exchange` is then a rendering, for the wire holds frames.
    Http2,
}

/// Why a body is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Truncation {
    /// It passed a size limit.
    Length,
    /// It passed a time limit.
    Time,
    /// The connection ended before the body did.
    Disconnect,
}

impl Truncation {
    /// The word that WARC-Truncated has for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
        }
    }
}

/// A body in a file that has no name: whoever holds it last removes it. It is read elsewhere.
pub struct Spooled {
    file: File,
    len: u64,
    _place: Box<dyn Any + Send + Sync>,
}

impl Spooled {
    /// The first `len` bytes of a file. `place` is dropped with it.
    pub fn new(file: File, len: u64, place: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            file,
            len,
            _place: place,
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes of the body.
    pub fn size(&self) -> u64 {
        self.len
    }
}

impl fmt::Debug for Spooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spooled({} bytes)", self.len)
    }
}

/// One request and its answer, as they went over the wire.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Whether the document was asked for, or its head alone.
    pub method: Method,
    /// The request message as sent; empty when nobody kept it.
    pub request: Bytes,
    /// The response message as received: final head and body, chunked framing and content encoding
    /// untouched. Interim (1xx) heads are not kept.
    pub response: Bytes,
    /// The body as received, when it was too large for memory; `response` is then its head alone.
    pub spooled: Option<Arc<Spooled>>,
    /// Where in `response` the body begins.
    pub head_len: usize,
    /// The status code.
    pub status: u16,
    /// The header fields of the final head.
    pub headers: HeaderMap,
    /// The body with framing and content encoding undone, or its beginning up to the limit for what is
    /// read; the same bytes as the tail of `response` when there was nothing to undo. Empty when it was
    /// spooled and nobody reads bodies of its kind.
    pub body: Bytes,
    /// HTTP/1 or HTTP/2.
    pub protocol: Protocol,
    /// Set when the body is not whole.
    pub truncated: Option<Truncation>,
}

impl Exchange {
    /// True when only the head of a document was asked for.
    pub fn is_head_only(&self) -> bool {
        self.method == Method::Head
    }
}

/// What came of a request: always something, whatever happened.
#[derive(Clone, Debug)]
pub struct FetchResult {
    /// What became of it, as far as the spider can say; the ring may still turn a followed redirect
    /// into a refused one.
    pub outcome: Outcome,
    /// When the fetch began.
    pub started: Timestamp,
    /// When the request was written; none when it never was.
    pub sent: Option<Timestamp>,
    /// When the first byte of the answer came; none when none came.
    pub first_byte: Option<Timestamp>,
    /// When the fetch ended.
    pub ended: Timestamp,
    /// Bytes read from the socket, below TLS decoding but above TCP.
    pub wire_bytes: u64,
    /// The address that was connected to; none when no connection was made.
    pub connected: Option<IpAddr>,
    /// Request and answer, when there was an answer with a head.
    pub exchange: Option<Exchange>,
}

impl FetchResult {
    /// True when what went wrong is this machine's doing: it was no attempt, and the URL goes back to where
    /// it was.
    pub fn is_put_back(&self) -> bool {
        self.outcome.class == OutcomeClass::Deferred
    }

    /// How long the fetch took.
    pub fn millis(&self) -> u32 {
        u32::try_from(self.ended.since(self.started).as_millis()).unwrap_or(u32::MAX)
    }

    /// The status code, when there was one.
    pub fn status(&self) -> Option<u16> {
        self.exchange.as_ref().map(|exchange| exchange.status)
    }
}
