//! Windows and gaps: when a host, or an address, may be asked again.
//!
//! The promise is about what the *server* counts. It sees a request later than we write it, by an
//! unknown time; only its answer proves that it has seen it. So with one request out at a time the gap
//! starts at the first byte of the answer, and is exact whatever stalls on the way. With several out, the
//! next must not wait for an answer that is slow: then it starts at the written request plus a twentieth
//! of the delay, the jitter between our write and the server's read that we reckon with, if that is earlier.

use std::time::Duration;

use orbweaver_model::Timestamp;

use crate::message::Done;

/// What every timestamp has lost by being cut to whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// How long after the start of a process the last request of the one before it has reached its server, at the
/// least. No answer will prove it any more, and a start is rare enough to be generous.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// When the process before may have asked anybody for the last time, as a server sees it.
pub(crate) fn asked_before(start: Timestamp, delay: Duration) -> Timestamp {
    start.after(way(delay).max(LAST_WORDS))
}

/// How long after it was written a request has reached its server, at the latest. A host without a
/// delay may get one at any time, from its robots.txt, and is reckoned with as if it had one of a second.
fn way(delay: Duration) -> Duration {
    if delay.is_zero() {
        Duration::from_millis(50)
    } else {
        delay / 20
    }
}

/// The clock of one host or one address: how many orders may be with it at once, and when the next may go out.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Orders that may be out at once.
    window: u16,
    /// Time between two requests.
    delay: Duration,
    /// Orders that are out.
    active: u32,
    /// Orders that are out and whose request is not known to be written.
    unsent: u32,
    /// Orders that were lost and wait to be sent again, before any new one.
    again: u32,
    /// When the server has seen the last request of those that are over, at the latest.
    seen: Option<Timestamp>,
    /// The same, as reckoned, for those whose requests are written and that are still out.
    reckoned: Option<Timestamp>,
    /// Not before: Retry-After.
    hold: Timestamp,
}

impl Clock {
    /// A clock that counts as asked at `asked`, or as never asked.
    pub(crate) fn new(window: u16, delay: Duration, asked: Option<Timestamp>) -> Self {
        Self {
            window,
            delay,
            active: 0,
            unsent: 0,
            again: 0,
            seen: asked,
            reckoned: None,
            hold: Timestamp::default(),
        }
    }

    /// Another window and delay from now on.
    pub(crate) fn set_limits(&mut self, window: u16, delay: Duration) {
        self.window = window;
        self.delay = delay;
    }

    pub(crate) fn window(&self) -> u16 {
        self.window
    }

    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// The first moment at which the gap is kept.
    pub(crate) fn next_at(&self) -> Timestamp {
        match self.seen.max(self.reckoned) {
            Some(base) if !self.delay.is_zero() => {
                let gap = self.delay.saturating_add(ROUNDING);
                self.hold.max(base.after(gap))
            }
            _ => self.hold,
        }
    }

    /// Whether an answer or a sign of life must come before the next order.
    pub(crate) fn is_blocked(&self) -> bool {
        let on_its_way = self.unsent + self.again > 0;
        self.active >= u32::from(self.window) || (!self.delay.is_zero() && on_its_way)
    }

    /// Whether an order may go out now.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        !self.is_blocked() && self.next_at() <= now
    }

    /// Nobody before `until`.
    pub(crate) fn hold(&mut self, until: Timestamp) {
        self.hold = self.hold.max(until);
    }

    /// Until when the host wants to be left alone.
    pub(crate) fn held_until(&self) -> Timestamp {
        self.hold
    }

    /// An order goes out.
    pub(crate) fn give(&mut self) {
        self.active += 1;
        self.unsent += 1;
    }

    /// The request of an order was written; `first` unless that was known.
    pub(crate) fn sent(&mut self, at: Timestamp, first: bool) {
        self.unsent -= u32::from(first && self.unsent > 0);
        self.reckoned = self.reckoned.max(Some(at.after(way(self.delay))));
    }

    /// An order is lost. Up to now its request may have been written, and reached the server.
    pub(crate) fn lose(&mut self, now: Timestamp, announced: bool) {
        self.unsent -= u32::from(!announced && self.unsent > 0);
        self.again += 1;
        self.reckoned = self.reckoned.max(Some(now.after(way(self.delay))));
    }

    /// When a lost order may go out again; none while another one is on its way out.
    pub(crate) fn again_at(&self) -> Option<Timestamp> {
        let waits = !self.delay.is_zero() && self.unsent > 0;
        (!waits).then(|| self.next_at())
    }

    /// A lost order goes out again.
    pub(crate) fn give_again(&mut self) {
        self.again = self.again.saturating_sub(1);
        self.unsent += 1;
    }

    /// An order is over.
    pub(crate) fn done(&mut self, done: &Done, announced: bool, lost: bool) {
        self.active = self.active.saturating_sub(1);
        match lost {
            true => self.again = self.again.saturating_sub(1),
            false => self.unsent -= u32::from(!announced && self.unsent > 0),
        }
        self.seen = self.seen.max(Some(self.seen_of(done)));
        // Once nothing is out, everything that was reckoned is known.
        if self.active == 0 {
            self.reckoned = None;
        }
    }

    /// When the server had seen a request that is over, at the latest.
    fn seen_of(&self, done: &Done) -> Timestamp {
        let reckoned = done.sent.map(|at| at.after(way(self.delay)));
        match (reckoned, done.first_byte) {
            (Some(reckoned), Some(proof)) if self.window > 1 => reckoned.min(proof),
            (Some(reckoned), None) if self.window > 1 => reckoned,
            (_, Some(proof)) => proof,
            // Until the end a request may have been read, or a connection been opened; Req_Host_Per_Sec counts both.
            (_, None) => done.ended,
        }
    }

    /// Whether forgetting this clock changes nothing.
    pub(crate) fn is_spent(&self, now: Timestamp) -> bool {
        self.active == 0 && self.next_at() <= now
    }
}
