//! One HTTP/1 connection and the exchanges held on it.
//!
//! The connection is driven by the fetch that uses it: no task of its own, no wake-ups between two
//! tasks, and dropping the fetch drops the connection. Between two fetches nobody reads it, so a
//! server that goes on talking talks into a full socket buffer.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::Request;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use memchr::memchr_iter;
use orbweaver_model::{Clock, Limits, Protocol, Truncation};

use crate::deadline::Deadline;
use crate::exchange::{Answer, Errand, Failure};
use crate::framing::{Chunks, Framing, ends_in_location, final_head};
use crate::spool::{SHORT_BYTES, SPOOL_BYTES};
use crate::stream::Stream;
use crate::tap::{Tap, TapHandle};

/// An open connection on which at most one exchange is under way.
pub(crate) struct Http1 {
    sender: SendRequest<Empty<Bytes>>,
    connection: Pin<Box<Connection<Tap, Empty<Bytes>>>>,
    tap: TapHandle,
    /// hyper has closed the connection.
    closed: bool,
    max_headers: usize,
}

/// hyper, set to read what browsers read: folded lines (RFC 9112, 5.2 tells a user agent to), blanks
/// before the colon, and lines that are no header at all, which are left out. An archive keeps the
/// head as it came, and one odd line of it is no reason to lose the page.
pub(crate) fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        // Old servers are known to want the names as the RFCs print them.
        .title_case_headers(true)
        .max_headers(limits.max_headers)
        // The tap bounds the head; this buffer must only be able to hold one.
        .max_buf_size(limits.max_header_bytes.max(56 << 10) + (8 << 10));
    builder
}

/// What happened while a body was awaited.
enum Event {
    Piece(Bytes),
    End,
    Broken,
    Starved,
    TimedOut,
}

impl Http1 {
    /// Speaks HTTP/1 over `stream`. Nothing is sent yet.
    pub(crate) async fn open(
        builder: &Builder,
        max_headers: usize,
        stream: Stream,
        clock: Clock,
    ) -> Option<Self> {
        let (tap, handle) = Tap::new(stream, clock);
        let (sender, connection) = builder.handshake(tap).await.ok()?;
        Some(Self {
            sender,
            connection: Box::pin(connection),
            tap: handle,
            closed: false,
            max_headers,
        })
    }

    /// True when the connection can take a request: it is open, and nobody spoke out of turn.
    pub(crate) async fn is_ready(&mut self) -> bool {
        if !self.closed {
            self.closed =
                poll_fn(|cx| Poll::Ready(self.connection.as_mut().poll(cx).is_ready())).await;
        }
        !self.closed && self.sender.is_ready()
    }

    /// Sends a request and reads the answer. The flag says whether the connection can be used again.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Empty<Bytes>>,
        mut errand: Errand<'_>,
    ) -> (Result<Answer, Failure>, bool) {
        let limits = errand.limits;
        if let Err(refused) = errand.may_send() {
            return (Err(refused), self.is_ready().await);
        }
        self.tap
            .lock()
            .begin(limits.max_header_bytes, errand.gather.allowance());
        errand.deadline.step(limits.header_timeout);
        let (head, mut body) = match self.head(request, &mut errand).await {
            Ok(response) => response.into_parts(),
            Err(failure) => {
                let mut tap = self.tap.lock();
                errand.times.sent = tap.sent();
                errand.times.first_byte = tap.first_byte();
                tap.end();
                return (Err(failure), false);
            }
        };
        let framing = Framing::of(body.size_hint().exact(), &head.headers);
        let Some(place) = self.expect_body(&head, framing, &mut errand) else {
            return (Err(Failure::Protocol("no response head")), false);
        };
        let mut cut = match body.is_end_stream() {
            true => None,
            false => {
                let read = self.body(&mut body, place.end, &mut errand);
                read.await.err()
            }
        };
        if errand.spool.is_some() {
            let rest = self.tap.lock().take_body(place.end, true);
            if !rest.is_empty() {
                cut = cut.or(errand.spill(rest).await.err());
            }
        }
        let (answer, clean) = self.answer(head, place, framing, cut, errand);
        let reusable = clean && self.is_ready().await;
        (Ok(answer), reusable)
    }

    /// Waits for the head of the answer.
    async fn head(
        &mut self,
        request: Request<Empty<Bytes>>,
        errand: &mut Errand<'_>,
    ) -> Result<http::Response<Incoming>, Failure> {
        let mut response = pin!(self.sender.send_request(request));
        loop {
            let starved = poll_fn(|cx| {
                if !self.closed {
                    self.closed = self.connection.as_mut().poll(cx).is_ready();
                }
                if errand.awaits_sending()
                    && let Some(sent) = self.tap.lock().sent()
                {
                    errand.announce(sent);
                }
                if let Poll::Ready(response) = response.as_mut().poll(cx) {
                    return Poll::Ready(Some(response.map_err(|error| self.failure(&error))));
                }
                if self.tap.lock().starved() {
                    return Poll::Ready(None);
                }
                errand
                    .deadline
                    .poll(cx)
                    .map(|()| Some(Err(Failure::Timeout("no response in time"))))
            })
            .await;
            match starved {
                Some(result) => return result,
                None => {
                    errand.gather.grow(errand.deadline).await;
                    errand.deadline.step(errand.limits.header_timeout);
                    self.tap.lock().allow(errand.gather.allowance());
                }
            }
        }
    }

    /// What an error before the end of the head means.
    fn failure(&self, error: &hyper::Error) -> Failure {
        let tap = self.tap.lock();
        let lines = || memchr_iter(b'\n', tap.record()).count();
        if tap.tripped() && ends_in_location(tap.record()) {
            Failure::Nowhere
        } else if tap.tripped() || (error.is_parse() && lines() > self.max_headers) {
            Failure::Protocol("response head too large")
        } else if error.is_parse() {
            Failure::Protocol("not an HTTP response")
        } else if tap.sent().is_none() || tap.record().is_empty() {
            Failure::Unanswered
        } else {
            Failure::Protocol("closed inside the response head")
        }
    }

    /// Finds the head in the record and sets the tap to what may follow it.
    fn expect_body(
        &mut self,
        head: &Parts,
        framing: Framing,
        errand: &mut Errand<'_>,
    ) -> Option<Range<usize>> {
        let mut tap = self.tap.lock();
        let place = final_head(tap.record())?;
        errand.begin_body(head.status.as_u16(), &head.headers);
        let limit = errand.max_body_end(place.end);
        match framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                tap.expect(limit, Some(place.end.saturating_add(length)));
            }
            Framing::Chunked => tap.expect(limit, None),
            // One byte more than allowed shows that there is more.
            Framing::Close => tap.expect(limit.saturating_add(1), None),
        }
        errand.times.sent = tap.sent();
        errand.times.first_byte = tap.first_byte();
        Some(place)
    }

    /// Reads the body, which begins at `start`, to its end or to where it is cut.
    async fn body(
        &mut self,
        body: &mut Incoming,
        start: usize,
        errand: &mut Errand<'_>,
    ) -> Result<(), Truncation> {
        let idle = errand.limits.idle_timeout;
        errand.deadline.step(idle);
        loop {
            match poll_fn(|cx| self.poll_event(body, errand.deadline, cx)).await {
                Event::Piece(piece) => {
                    let (recorded, received) = {
                        let tap = self.tap.lock();
                        (tap.record().len(), tap.received())
                    };
                    errand.gather.take(piece, recorded, errand.deadline).await?;
                    errand.earn_time(received);
                    if errand.should_spill(recorded, start + SPOOL_BYTES)
                        || errand.gather.wants_spill()
                    {
                        self.spill(start, errand).await?;
                    }
                    errand.deadline.step(idle);
                    self.tap.lock().allow(errand.gather.allowance());
                }
                Event::End => return Ok(()),
                Event::Broken if self.tap.lock().tripped() => return Err(Truncation::Length),
                Event::Broken => return Err(Truncation::Disconnect),
                Event::Starved => {
                    let recorded = self.tap.lock().record().len();
                    if !errand.gather.try_grow() {
                        match errand.should_spill(recorded, start + SHORT_BYTES) {
                            true => self.spill(start, errand).await?,
                            false => errand.gather.grow(errand.deadline).await,
                        }
                    }
                    errand.deadline.step(idle);
                    self.tap.lock().allow(errand.gather.allowance());
                }
                Event::TimedOut => return Err(Truncation::Time),
            }
        }
    }

    /// Brings what has come of the body to disk.
    async fn spill(&mut self, start: usize, errand: &mut Errand<'_>) -> Result<(), Truncation> {
        let body = self.tap.lock().take_body(start, false);
        errand.spill(body).await
    }

    fn poll_event(
        &mut self,
        body: &mut Incoming,
        deadline: &mut Deadline,
        cx: &mut Context<'_>,
    ) -> Poll<Event> {
        // Asking the body first tells the connection that the next piece is wanted.
        if let Poll::Ready(event) = poll_piece(body, cx) {
            return Poll::Ready(event);
        }
        if !self.closed {
            self.closed = self.connection.as_mut().poll(cx).is_ready();
            if let Poll::Ready(event) = poll_piece(body, cx) {
                return Poll::Ready(event);
            }
        }
        if self.closed {
            return Poll::Ready(Event::Broken);
        }
        if self.tap.lock().starved() {
            return Poll::Ready(Event::Starved);
        }
        deadline.poll(cx).map(|()| Event::TimedOut)
    }

    /// Puts the answer together. The flag says that the record ended exactly where the answer did.
    fn answer(
        &mut self,
        head: Parts,
        place: Range<usize>,
        framing: Framing,
        cut: Option<Truncation>,
        errand: Errand<'_>,
    ) -> (Answer, bool) {
        let received = self.tap.lock().received();
        let (request, record) = self.tap.lock().end();
        if errand.spool.is_some() {
            return spooled_answer(
                head,
                place,
                framing,
                cut,
                errand,
                (request, record, received),
            );
        }
        let record = shrunk(record);
        // A body that came with its head in one read can pass a small limit before anybody looked.
        let most = errand.max_body_end(place.end);
        let whole = match framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                place.end.saturating_add(length).min(record.len())
            }
            Framing::Chunked if record.len() > most => Chunks::walk(&record, place.end).end,
            Framing::Chunked | Framing::Close => record.len(),
        };
        let cut = cut.or((whole > most).then_some(Truncation::Length));
        let limit = most.min(record.len());
        let (end, raw) = match framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let end = place.end.saturating_add(length).min(limit);
                (end, record.slice(place.end..end))
            }
            Framing::Chunked => {
                let message = record.slice(..limit);
                let chunks = Chunks::walk(&message, place.end);
                let raw = match errand.discard {
                    true => chunks.first(&message),
                    false => chunks.gather(&message),
                };
                (chunks.end, raw)
            }
            Framing::Close => (limit, record.slice(place.end..limit)),
        };
        let clean = cut.is_none() && received == end && is_delimited(&head, framing);
        let head_len = place.end - place.start;
        let response = record.slice(place.start..end);
        let recorded = record.len();
        let (response, gathered) = errand.gather.finish(response, recorded, raw.len());
        let answer = Answer {
            protocol: Protocol::Http1,
            request,
            response,
            head_len,
            status: head.status.as_u16(),
            headers: head.headers,
            raw,
            gathered,
            spooled: None,
            cut,
        };
        (answer, clean)
    }
}

/// True when the next message on the connection begins where this one ends. Two lengths that contradict each
/// other: whoever reads the second one sees another message next (RFC 9112, 6.3).
fn is_delimited(head: &Parts, framing: Framing) -> bool {
    let ambiguous =
        head.headers.contains_key(CONTENT_LENGTH) && head.headers.contains_key(TRANSFER_ENCODING);
    framing != Framing::Close && !ambiguous
}

/// The answer whose body is on disk. `record` is what was sent, what is left of the record, and all that was
/// received.
fn spooled_answer(
    head: Parts,
    place: Range<usize>,
    framing: Framing,
    cut: Option<Truncation>,
    mut errand: Errand<'_>,
    (request, record, received): (Bytes, BytesMut, usize),
) -> (Answer, bool) {
    let body = errand.spilled() as u64;
    let most = errand.max_body as u64;
    let whole = match framing {
        Framing::Length(length) => length.min(body),
        Framing::Chunked => errand.walk.end().unwrap_or(body),
        Framing::Close => body,
    };
    let cut = cut.or((whole > most).then_some(Truncation::Length));
    let len = whole.min(most);
    let clean =
        cut.is_none() && received as u64 == place.end as u64 + len && is_delimited(&head, framing);
    let record = shrunk(record);
    let response = record.slice(place.clone());
    let spooled = errand.spool.take().map(|spool| spool.finish(len));
    let (response, gathered) = errand.gather.finish(response, record.len(), 1);
    let answer = Answer {
        protocol: Protocol::Http1,
        request,
        response,
        head_len: place.end - place.start,
        status: head.status.as_u16(),
        headers: head.headers,
        raw: Bytes::new(),
        gathered,
        spooled,
        cut,
    };
    (answer, clean)
}

fn poll_piece(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Event> {
    loop {
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
            return Poll::Pending;
        };
        return Poll::Ready(match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Event::Piece(data),
                // A trailer; its bytes are in the record and nobody obeys it.
                Err(_) => continue,
            },
            Some(Err(_)) => Event::Broken,
            None => Event::End,
        });
    }
}

/// The record without a tail of unused capacity that is worth a copy to give back.
fn shrunk(record: BytesMut) -> Bytes {
    if record.capacity() > record.len() + record.len() / 4 + 4096 {
        Bytes::copy_from_slice(&record)
    } else {
        record.freeze()
    }
}
