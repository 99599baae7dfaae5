//! What both HTTP versions have in common: what they are told, and what they bring back.

use bytes::Bytes;
use http::HeaderMap;
use http::header::LOCATION;
use orbweaver_model::{Limits, Protocol, Purpose, Timestamp, TransId, Truncation};

use crate::deadline::Deadline;
use crate::gather::{Gather, Gathered};
use crate::status::{Action, action};

/// What is read of the body of a redirect: it is shown to nobody, but the archive keeps it.
const REDIRECT_BODY_BYTES: usize = 64 << 10;

/// Called when the request of an order has been written.
pub(crate) type Announce<'a> = &'a (dyn Fn(TransId, Timestamp) + Sync);

/// What an exchange needs to know besides its request.
pub(crate) struct Errand<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) purpose: Purpose,
    pub(crate) deadline: &'a mut Deadline,
    pub(crate) gather: Gather<'a>,
    pub(crate) times: &'a mut Times,
    pub(crate) announce: Announce<'a>,
    pub(crate) trans: TransId,
    /// True until it has been called: once for an order, however often it is tried.
    pub(crate) unannounced: &'a mut bool,
    pub(crate) max_body: usize,
}

/// When an exchange got how far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) sent: Option<Timestamp>,
    pub(crate) first_byte: Option<Timestamp>,
}

impl Errand<'_> {
    /// True while somebody waits to hear that the request has been written.
    pub(crate) fn awaits_sending(&self) -> bool {
        *self.unannounced
    }

    /// The request has been written.
    pub(crate) fn announce(&mut self, sent: Timestamp) {
        if std::mem::take(self.unannounced) {
            (self.announce)(self.trans, sent);
        }
    }

    /// Sets the limits for the body that follows this head.
    pub(crate) fn begin_body(&mut self, status: u16, headers: &HeaderMap) {
        let limits = self.limits;
        let redirect = leads_on(status, headers);
        let max_decoded = match self.purpose {
            Purpose::Robots => limits.robots_max_bytes.min(limits.max_decoded_bytes),
            Purpose::Page => limits.max_decoded_bytes,
        };
        self.max_body = match self.purpose {
            _ if redirect => REDIRECT_BODY_BYTES.min(limits.max_body_bytes),
            Purpose::Robots => limits.robots_max_bytes.min(limits.max_body_bytes),
            Purpose::Page => limits.max_body_bytes,
        };
        self.gather
            .begin(headers, limits.max_encodings, max_decoded);
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
    /// Why the body is not whole on the wire.
    pub(crate) cut: Option<Truncation>,
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
}
