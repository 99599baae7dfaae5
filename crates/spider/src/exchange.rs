//! What both HTTP versions have in common: what they are told, and what they bring back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION};
use orbweaver_model::{FetchRequest, Limits, Protocol, Purpose, Spooled, Timestamp, Truncation};

use crate::chunks::ChunkWalk;
use crate::deadline::Deadline;
use crate::gate::Gate;
use crate::gather::{Gather, Gathered};
use crate::spool::{Spool, SpoolDir};
use crate::status::{Action, action};

/// What is read of the body of a redirect: it is shown to nobody, but the archive keeps it.
const REDIRECT_BODY_BYTES: usize = 64 << 10;

/// Bytes of a body that must come within the time of the whole; more of it earns more time.
const EARNS_AFTER: u64 = 1 << 20;

/// What an exchange needs to know besides the message it sends.
pub(crate) struct Errand<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) request: &'a FetchRequest,
    pub(crate) deadline: &'a mut Deadline,
    pub(crate) gather: Gather,
    /// Where a large body may go.
    pub(crate) spool_dir: Option<&'a SpoolDir>,
    /// The body on disk, once it is too large for memory.
    pub(crate) spool: Option<Spool>,
    /// Finds the end of a chunked body that goes to disk.
    pub(crate) walk: ChunkWalk,
    /// Why the fetch cannot go on, when that is our own doing.
    pub(crate) ours: &'a mut Option<String>,
    pub(crate) times: &'a mut Times,
    pub(crate) gate: &'a dyn Gate,
    /// True until the gate has been told: once for a request, however often it is tried.
    pub(crate) unannounced: &'a mut bool,
    pub(crate) max_body: usize,
    /// Nobody reads the decoded body.
    pub(crate) discard: bool,
}

/// When an exchange got how far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) sent: Option<Timestamp>,
    pub(crate) first_byte: Option<Timestamp>,
}

impl Errand<'_> {
    /// Asked right before the first byte of the request is written.
    pub(crate) fn may_send(&self) -> Result<(), Failure> {
        match self.gate.may_send(self.request) {
            true => Ok(()),
            false => Err(Failure::Refused),
        }
    }

    /// True while somebody waits to hear that the request has been written.
    pub(crate) fn awaits_sending(&self) -> bool {
        *self.unannounced
    }

    /// The request has been written.
    pub(crate) fn announce(&mut self, sent: Timestamp) {
        if std::mem::take(self.unannounced) {
            self.gate.sent(sent);
        }
    }

    /// Sets the limits for the body that follows this head.
    pub(crate) fn begin_body(&mut self, status: u16, headers: &HeaderMap) {
        let limits = self.limits;
        let redirect = leads_on(status, headers);
        let max_decoded = match self.request.purpose {
            Purpose::Robots => limits.robots_max_bytes.min(limits.max_decoded_bytes),
            Purpose::Page => limits.max_decoded_bytes,
        };
        self.max_body = match self.request.purpose {
            _ if redirect => REDIRECT_BODY_BYTES.min(limits.max_body_bytes),
            Purpose::Robots => limits.robots_max_bytes.min(limits.max_body_bytes),
            Purpose::Page => limits.max_body_bytes,
        };
        self.gather
            .begin(headers, limits.max_encodings, max_decoded);
    }

    /// True when the body, whose first `recorded` bytes are in memory, should go to disk now.
    pub(crate) fn should_spill(&self, recorded: usize, least: usize) -> bool {
        self.spool_dir.is_some() && recorded >= least
    }

    /// Brings a part of the body to disk, outside of the server's time.
    pub(crate) async fn spill(&mut self, bytes: Bytes) -> Result<(), Truncation> {
        let Some(dir) = self.spool_dir else {
            return Ok(());
        };
        self.walk.feed(&bytes);
        self.gather.spill();
        let place = &mut self.spool;
        let work = async {
            let spool = match place.take() {
                Some(spool) => spool,
                None => dir.open().await?,
            };
            place.insert(spool).write(bytes).await
        };
        self.deadline.pause(work).await.map_err(|error| {
            let what = format!("a large body could not be written to disk: {error}");
            *self.ours = Some(what);
            Truncation::Disconnect
        })
    }

    /// Bytes of the body that are on disk.
    pub(crate) fn spilled(&self) -> usize {
        let len = self.spool.as_ref().map_or(0, Spool::len);
        usize::try_from(len).unwrap_or(usize::MAX)
    }

    /// A large body that keeps coming may take longer than a small one.
    pub(crate) fn earn_time(&mut self, received: usize) {
        let rate = self.limits.min_body_rate;
        let extra = (received as u64).saturating_sub(EARNS_AFTER);
        if rate > 0 && extra > 0 {
            let millis = extra.saturating_mul(1000) / rate;
            let earned = Duration::from_millis(millis);
            self.deadline
                .extend(self.limits.total_timeout.saturating_add(earned));
        }
    }

    /// Where a body that begins at `start` must end at the latest.
    pub(crate) fn max_body_end(&self, start: usize) -> usize {
        start.saturating_add(self.max_body)
    }
}

/// True for a redirect that says where to.
pub(crate) fn leads_on(status: u16, headers: &HeaderMap) -> bool {
    matches!(action(status), Action::Follow { .. })
        && headers
            .get(LOCATION)
            .is_some_and(|location| !location.is_empty())
}

/// An answer with a head, and as much of its body as came.
pub(crate) struct Answer {
    pub(crate) protocol: Protocol,
    pub(crate) request: Bytes,
    pub(crate) response: Bytes,
    pub(crate) head_len: usize,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body without its framing, still encoded.
    pub(crate) raw: Bytes,
    pub(crate) gathered: Gathered,
    /// The body as received, when it is on disk; `response` and `raw` do not have it then.
    pub(crate) spooled: Option<Arc<Spooled>>,
    /// Why the body is not whole on the wire.
    pub(crate) cut: Option<Truncation>,
}

/// True when somebody may read the document for links: no film, picture or archive.
pub(crate) fn is_text(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let kind = kind.as_bytes().to_ascii_lowercase();
    let has = |word: &[u8]| memchr::memmem::find(&kind, word).is_some();
    kind.starts_with(b"text/") || has(b"xml") || has(b"html") || has(b"json") || has(b"script")
}

/// Why there is no answer with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection ended before a byte of the answer came. On a connection that was used before,
    /// the server had closed it meanwhile: worth one try on a fresh one.
    Unanswered,
    /// What came was no HTTP, or not all of it.
    Protocol(&'static str),
    /// A redirect to a URL longer than a whole head may be.
    Nowhere,
    /// A time limit passed.
    Timeout(&'static str),
    /// The gate let nothing out.
    Refused,
}
