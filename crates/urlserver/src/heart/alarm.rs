//! What is to be looked at later.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::sync::Arc;

use orbweaver_model::Timestamp;

use crate::politeness::Ticket;

/// What to look at.
#[derive(Debug)]
pub(super) enum Wake {
    /// A slot whose time comes.
    Slot(Ticket),
    /// An address whose time comes.
    Ip(IpAddr),
    /// A host with a robots.txt to be asked for again.
    Robots(Arc<str>),
    /// The doc index may be asked again.
    Candidates,
}

/// Who is to be looked at when. Filled by whoever must wait; emptied by the heart's `tick`. At most one
/// live entry per slot, address and resting robots.txt; stale ones leave when their time comes.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    heap: BinaryHeap<Alarm>,
    count: u64,
}

/// Ordered so that the heap gives the earliest first, and of two at the same time the older one.
#[derive(Debug)]
struct Alarm {
    at: Timestamp,
    number: u64,
    what: Wake,
}

impl Alarms {
    /// Sets one.
    pub(super) fn set(&mut self, at: Timestamp, what: Wake) {
        self.count += 1;
        self.heap.push(Alarm {
            at,
            number: self.count,
            what,
        });
    }

    /// When the next one goes off.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|alarm| alarm.at)
    }

    /// The next one that has gone off.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Wake> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|alarm| alarm.what)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
