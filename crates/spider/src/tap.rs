//! The tap: it sits between hyper and the stream, and keeps what goes through.
//!
//! hyper parses HTTP but does not give back the bytes it parsed, and an archive wants exactly those.
//! The tap reads from the stream into one growing record and hands hyper copies of it, so a byte is
//! kept before anybody interprets it. It reads only when hyper has taken everything read before, never
//! past the ceiling of its phase, and never past the memory it was given. What the bytes mean is not
//! known here, save where a head ends.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};
use orbweaver_model::{Clock, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::framing::final_head;
use crate::stream::Stream;

/// The first reservation for a record: a head and a page of 16 KiB in one read.
const FIRST_BYTES: usize = 20 << 10;

/// The largest single reservation: a record grows with what has come, not with what was promised.
const MAX_RESERVE: usize = 256 << 10;

/// Room that is made beyond an expected length: a read that leaves some of it free has emptied the
/// socket, and tokio then knows without asking the kernel that there is nothing more.
const SPARE_BYTES: usize = 64;

/// What is read beside a record that has no room left.
const PROBE_BYTES: usize = 1 << 10;

/// Room for a request head; longer ones grow.
const REQUEST_BYTES: usize = 512;

/// What may be read while no exchange is under way: enough to see that somebody speaks out of turn.
const IDLE_CEILING: usize = 1;

/// The reading and writing half, given to hyper.
pub(crate) struct Tap {
    stream: Stream,
    state: Arc<Mutex<TapState>>,
}

/// The listening half, kept by the exchange.
#[derive(Clone)]
pub(crate) struct TapHandle {
    state: Arc<Mutex<TapState>>,
}

/// What went through the tap in the current exchange.
pub(crate) struct TapState {
    clock: Clock,
    request: BytesMut,
    sent: Option<Timestamp>,
    record: BytesMut,
    /// Bytes of the body that were taken out of `record`.
    spilled: usize,
    /// How much of `record` hyper has taken.
    delivered: usize,
    first_byte: Option<Timestamp>,
    /// The record never grows beyond this, by the limits.
    ceiling: usize,
    /// The ceiling is that of the head.
    in_head: bool,
    /// Nor beyond this, by the memory budget, until more is allowed.
    allowance: usize,
    tripped: bool,
    starved: bool,
}

impl Tap {
    pub(crate) fn new(stream: Stream, clock: Clock) -> (Self, TapHandle) {
        let state = Arc::new(Mutex::new(TapState {
            clock,
            request: BytesMut::new(),
            sent: None,
            record: BytesMut::new(),
            spilled: 0,
            delivered: 0,
            first_byte: None,
            ceiling: IDLE_CEILING,
            in_head: false,
            allowance: usize::MAX,
            tripped: false,
            starved: false,
        }));
        let handle = TapHandle {
            state: Arc::clone(&state),
        };
        (Self { stream, state }, handle)
    }
}

impl TapHandle {
    /// The state, for a moment: nothing waits while holding it, and only one task uses a connection
    /// at a time, so nobody ever waits for it either.
    pub(crate) fn lock(&self) -> MutexGuard<'_, TapState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TapState {
    /// Starts an exchange: an empty record, and a head of up to `ceiling` bytes.
    pub(crate) fn begin(&mut self, ceiling: usize, allowance: usize) {
        self.request = BytesMut::with_capacity(REQUEST_BYTES);
        self.sent = None;
        self.record = BytesMut::with_capacity(FIRST_BYTES);
        self.spilled = 0;
        self.delivered = 0;
        self.first_byte = None;
        self.ceiling = ceiling;
        self.in_head = true;
        self.allowance = allowance;
        self.tripped = false;
        self.starved = false;
    }

    /// Ends the exchange and gives out its request and its record.
    pub(crate) fn end(&mut self) -> (Bytes, BytesMut) {
        self.ceiling = IDLE_CEILING;
        self.in_head = false;
        self.allowance = usize::MAX;
        self.delivered = 0;
        (
            self.request.split().freeze(),
            std::mem::take(&mut self.record),
        )
    }

    /// Takes what has come of the body out of the record, which begins with a head of `head_end` bytes; with
    /// `all` also what hyper has not taken yet.
    pub(crate) fn take_body(&mut self, head_end: usize, all: bool) -> Bytes {
        let end = match all {
            true => self.record.len(),
            false => self.delivered,
        };
        if end <= head_end {
            return Bytes::new();
        }
        let rest = self.record.split_off(end);
        let body = self.record.split_off(head_end);
        // A buffer of its own, with room for what comes next: what was taken is to be given back.
        let mut record = BytesMut::with_capacity(head_end + rest.len() + MAX_RESERVE);
        record.extend_from_slice(&self.record);
        record.extend_from_slice(&rest);
        self.record = record;
        // What hyper has not taken is only taken out at the end, when nobody reads any more.
        self.delivered = head_end;
        self.spilled += body.len();
        body.freeze()
    }

    /// Bytes of the answer so far, those taken out included.
    pub(crate) fn received(&self) -> usize {
        self.record.len() + self.spilled
    }

    /// The bytes received so far, as far as they are here.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }

    /// The head is complete: sets how long the record may become with the body; `expected` is its
    /// likely length, for which room is made.
    pub(crate) fn expect(&mut self, ceiling: usize, expected: Option<usize>) {
        self.ceiling = ceiling;
        self.in_head = false;
        self.starved = false;
        if let Some(expected) = expected {
            let missing = expected.min(ceiling).saturating_sub(self.received());
            self.record.reserve(missing.min(MAX_RESERVE) + SPARE_BYTES);
        }
    }

    /// Sets how much memory the record may take.
    pub(crate) fn allow(&mut self, allowance: usize) {
        self.allowance = allowance;
        self.starved = false;
    }

    /// True when reading stopped at the ceiling.
    pub(crate) fn tripped(&self) -> bool {
        self.tripped
    }

    /// True when reading waits for memory.
    pub(crate) fn starved(&self) -> bool {
        self.starved
    }

    /// When the whole request had been written.
    pub(crate) fn sent(&self) -> Option<Timestamp> {
        self.sent
    }

    /// When the first byte of the answer came.
    pub(crate) fn first_byte(&self) -> Option<Timestamp> {
        self.first_byte
    }

    fn deliver(&mut self, buf: &mut ReadBufCursor<'_>) {
        let waiting = self.record.get(self.delivered..).unwrap_or_default();
        let piece = waiting.get(..buf.remaining()).unwrap_or(waiting);
        buf.put_slice(piece);
        self.delivered += piece.len();
    }

    /// Reads once from the stream into the record; zero bytes are the end of the stream.
    fn poll_fill(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let len = self.record.len();
        if self.received() >= self.ceiling {
            // hyper reads on into the body before anybody has seen the head and set the body's ceiling.
            if self.in_head && final_head(&self.record).is_some() {
                self.starved = true;
                return Poll::Pending;
            }
            self.tripped = true;
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        if len >= self.allowance {
            // The exchange sees the flag in the same poll and asks for memory; no waker is needed.
            self.starved = true;
            return Poll::Pending;
        }
        let room = (self.ceiling - self.received()).min(self.allowance - len);
        if self.record.capacity() == len {
            return self.poll_probe(stream, cx, room);
        }
        let mut target = (&mut self.record).limit(room);
        let read = ready!(pin!(stream.read_buf(&mut target)).poll(cx))?;
        if read > 0 && self.first_byte.is_none() {
            self.first_byte = Some((self.clock)());
        }
        Poll::Ready(Ok(()))
    }

    /// Reads a little beside the full record, and enlarges the record only when something came:
    /// hyper reads once more after the end of an answer, nearly always without result.
    fn poll_probe(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<io::Result<()>> {
        let mut probe = [0; PROBE_BYTES];
        let probe = probe.get_mut(..room.min(PROBE_BYTES)).unwrap_or_default();
        let read = ready!(pin!(stream.read(probe)).poll(cx))?;
        if read > 0 {
            let more = self.record.len().clamp(FIRST_BYTES, MAX_RESERVE);
            self.record.reserve(more.min(room));
            self.record.put_slice(probe.get(..read).unwrap_or_default());
            self.first_byte.get_or_insert_with(|| (self.clock)());
        }
        Poll::Ready(Ok(()))
    }
}

impl Read for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let mut state = tap.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.delivered == state.record.len() {
            ready!(state.poll_fill(&mut tap.stream, cx))?;
        }
        state.deliver(&mut buf);
        Poll::Ready(Ok(()))
    }
}

impl Write for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        let written = ready!(Pin::new(&mut tap.stream).poll_write(cx, buf))?;
        let mut state = tap.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.request.put_slice(buf.get(..written).unwrap_or(buf));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        ready!(Pin::new(&mut tap.stream).poll_flush(cx))?;
        let mut state = tap.state.lock().unwrap_or_else(PoisonError::into_inner);
        // hyper flushes only after it has handed over everything it has.
        if state.sent.is_none() && !state.request.is_empty() {
            state.sent = Some((state.clock)());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
