//! Windows and gaps: when a host, or an address, may be asked again.
//!
//! The promise is about what the *server* counts. It sees a request later than we write it, by an
//! unknown time; only its answer proves that it has seen it. So with one request out at a time the gap
//! starts at the first byte of the answer, and is exact whatever stalls on the way. With several out, the
//! next must not wait for an answer that is slow: then it starts at the written request plus a twentieth
//! of the delay, the jitter between our write and the server's read that we reckon with, if that is earlier.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::Timestamp;

use crate::hash::HashMap;
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

/// The clock of one host or one address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// Orders that are out.
    pub(crate) active: u32,
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
    pub(crate) fn starting(asked: Option<Timestamp>) -> Self {
        Self {
            seen: asked,
            ..Self::default()
        }
    }

    /// The first moment at which the gap is kept.
    pub(crate) fn next_at(&self, delay: Duration) -> Timestamp {
        match self.seen.max(self.reckoned) {
            Some(base) if !delay.is_zero() => {
                self.hold.max(base.after(delay.saturating_add(ROUNDING)))
            }
            _ => self.hold,
        }
    }

    /// Whether an answer or a sign of life must come before the next order.
    pub(crate) fn is_blocked(&self, window: u16, delay: Duration) -> bool {
        let on_its_way = self.unsent + self.again > 0;
        self.active >= u32::from(window) || (!delay.is_zero() && on_its_way)
    }

    /// Whether an order may go out now.
    pub(crate) fn is_open(&self, now: Timestamp, window: u16, delay: Duration) -> bool {
        !self.is_blocked(window, delay) && self.next_at(delay) <= now
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
    pub(crate) fn sent(&mut self, at: Timestamp, delay: Duration, first: bool) {
        self.unsent -= u32::from(first && self.unsent > 0);
        self.reckoned = self.reckoned.max(Some(at.after(way(delay))));
    }

    /// An order is lost. Up to now its request may have been written, and reached the server.
    pub(crate) fn lose(&mut self, now: Timestamp, delay: Duration, announced: bool) {
        self.unsent -= u32::from(!announced && self.unsent > 0);
        self.again += 1;
        self.reckoned = self.reckoned.max(Some(now.after(way(delay))));
    }

    /// When a lost order may go out again; none while another one is on its way out.
    pub(crate) fn again_at(&self, delay: Duration) -> Option<Timestamp> {
        let waits = !delay.is_zero() && self.unsent > 0;
        (!waits).then(|| self.next_at(delay))
    }

    /// A lost order goes out again.
    pub(crate) fn give_again(&mut self) {
        self.again = self.again.saturating_sub(1);
        self.unsent += 1;
    }

    /// An order is over. `seen` is when the server had seen its request, at the latest.
    pub(crate) fn done(&mut self, seen: Timestamp, announced: bool, lost: bool) {
        self.active = self.active.saturating_sub(1);
        match lost {
            true => self.again = self.again.saturating_sub(1),
            false => self.unsent -= u32::from(!announced && self.unsent > 0),
        }
        self.seen = self.seen.max(Some(seen));
        // Once nothing is out, everything that was reckoned is known.
        if self.active == 0 {
            self.reckoned = None;
        }
    }

    /// Whether forgetting this clock changes nothing.
    pub(crate) fn is_spent(&self, now: Timestamp, delay: Duration) -> bool {
        self.active == 0 && self.next_at(delay) <= now
    }
}

/// When the server had seen a request that is over, at the latest. `window` is how many may be out.
pub(crate) fn seen(done: &Done, delay: Duration, window: u16) -> Timestamp {
    match (done.sent.map(|at| at.after(way(delay))), done.first_byte) {
        (Some(reckoned), Some(proof)) if window > 1 => reckoned.min(proof),
        (Some(reckoned), None) if window > 1 => reckoned,
        (_, Some(proof)) => proof,
        // Until the end a request may have been read, or a connection been opened; Req_Host_Per_Sec counts both.
        (_, None) => done.ended,
    }
}

/// A slot in a line, with the stamp by which an entry that has become stale is known.
pub(crate) type Ticket = (u32, u64);

/// What is known of one address.
#[derive(Debug, Default)]
pub(crate) struct Ip {
    /// Its clock.
    pub(crate) clock: Clock,
    /// Hosts that could go but for this address, first come first served. Filled and emptied by the
    /// dispatcher; at most one live entry per slot.
    pub(crate) line: VecDeque<Ticket>,
    /// It stands in the line of those that are ready.
    pub(crate) is_ready: bool,
    /// When it will be looked at again.
    pub(crate) wake: Option<Timestamp>,
}

/// Every address that is being asked or was asked less than one delay ago.
#[derive(Debug)]
pub(crate) struct IpTable {
    ips: HashMap<IpAddr, Ip>,
    /// Addresses without orders or waiting hosts, in the order in which they came to rest; emptied as
    /// their delay passes, so that the table is as large as what one delay can touch.
    resting: VecDeque<(Timestamp, IpAddr)>,
    delay: Duration,
    /// When a process before us may have asked any of them.
    asked: Option<Timestamp>,
}

impl IpTable {
    pub(crate) fn new(delay: Duration, asked: Option<Timestamp>) -> Self {
        Self {
            ips: HashMap::default(),
            resting: VecDeque::new(),
            delay,
            asked,
        }
    }

    /// Another delay from now on; every address is to be looked at again.
    pub(crate) fn set_delay(&mut self, delay: Duration) -> Vec<IpAddr> {
        self.delay = delay;
        let all: Vec<IpAddr> = self.ips.keys().copied().collect();
        // Those at rest are noted anew, for they are forgotten in the order of their times.
        self.resting.clear();
        for ip in &all {
            self.rest(*ip);
        }
        self.resting.make_contiguous().sort_unstable();
        all
    }

    /// Addresses in the table.
    pub(crate) fn len(&self) -> usize {
        self.ips.len()
    }

    pub(crate) fn get(&self, ip: IpAddr) -> Option<&Ip> {
        self.ips.get(&ip)
    }

    /// The slot that is first in the line of an address.
    pub(crate) fn first_in_line(&self, ip: IpAddr) -> Option<u32> {
        Some(self.ips.get(&ip)?.line.front()?.0)
    }

    pub(crate) fn get_mut(&mut self, ip: IpAddr) -> Option<&mut Ip> {
        self.ips.get_mut(&ip)
    }

    pub(crate) fn entry(&mut self, ip: IpAddr) -> &mut Ip {
        let asked = self.asked;
        self.ips.entry(ip).or_insert_with(|| Ip {
            clock: Clock::starting(asked),
            ..Ip::default()
        })
    }

    #[cfg(debug_assertions)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&IpAddr, &Ip)> {
        self.ips.iter()
    }

    /// Notes that nobody asks or awaits this address now.
    pub(crate) fn rest(&mut self, ip: IpAddr) {
        if let Some(state) = self.ips.get(&ip)
            && state.clock.active == 0
            && state.line.is_empty()
        {
            self.resting
                .push_back((state.clock.next_at(self.delay), ip));
        }
    }

    /// Forgets the addresses whose clocks mean nothing any more.
    pub(crate) fn prune(&mut self, now: Timestamp) {
        while let Some((at, ip)) = self.resting.front().copied()
            && at <= now
        {
            self.resting.pop_front();
            if self
                .ips
                .get(&ip)
                .is_some_and(|state| state.line.is_empty() && state.clock.is_spent(now, self.delay))
            {
                self.ips.remove(&ip);
            }
        }
    }
}
