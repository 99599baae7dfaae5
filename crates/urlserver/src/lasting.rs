//! Orders that hold their place for longer than is usual.
//!
//! A host whose order lasts too long is slow from then on, until it has been quick again a few times: it waits for
//! its next place with the slow ones (`places`). When slow hosts hold more places than is their part while others
//! wait, the orders that have outstayed last are given up: the spider stops, the URL goes back to the doc index, and
//! that costs it no attempt. This happens to a host once, not again and again, for what it is asked next is asked
//! within the part of the slow ones, and whoever has such a place may keep it to the end.
//!
//! Time in which this process itself did not get on is nobody's slowness: it is noticed by how late the alarm is.
//! Nothing is decided here about hosts and places; this is the watch alone.

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::{Timestamp, TransId};

use orbweaver_turns::Usual;

/// An alarm that is later than this was held up by ourselves.
const LATE: Duration = Duration::from_millis(250);

/// The watch over orders that are out.
#[derive(Debug)]
pub(crate) struct Lasting {
    /// Orders by when they began, in milliseconds in which we got on; those that are over are passed over. As many
    /// as begin within the patience.
    out: VecDeque<(u64, TransId)>,
    /// Orders that have outstayed, the last one last; those that are over are passed over, and go when there are more
    /// than twice as many as places.
    outstayed: Vec<TransId>,
    places: usize,
    usual: Usual,
    /// The alarm that is set.
    due: Option<Timestamp>,
    /// Milliseconds in which we did not get on.
    lost: u64,
    /// Orders that are being given up.
    given_up: usize,
}

/// What an alarm has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// Orders that began so long ago that they have outstayed, unless they are over.
    pub(crate) orders: Vec<TransId>,
    /// The time for which the next alarm is to be set.
    pub(crate) alarm: Option<Timestamp>,
}

impl Lasting {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            out: VecDeque::new(),
            outstayed: Vec::new(),
            places,
            usual: Usual::new(places),
            due: None,
            lost: 0,
            given_up: 0,
        }
    }

    /// The time in which we got on.
    fn own(&self, now: Timestamp) -> u64 {
        now.as_millis().saturating_sub(self.lost)
    }

    /// An order went out; the time for which an alarm is to be set, if none is.
    pub(crate) fn watch(&mut self, trans: TransId, now: Timestamp) -> Option<Timestamp> {
        let began = self.own(now);
        self.out.push_back((began, trans));
        self.watch_the_oldest(now)
    }

    /// Sets the alarm, unless it is set; not so often that it would go off for every single order.
    fn watch_the_oldest(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.due.is_some() {
            return None;
        }
        let (began, _) = self.out.front()?;
        let patience = self.usual.patience();
        let began = began.saturating_add(self.lost);
        let at = Timestamp::from_millis(began).after(patience);
        self.set_watch(at.max(now.after(patience / 8)), now)
    }

    fn set_watch(&mut self, at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        // At the end of time there is no later.
        if at <= now {
            return None;
        }
        self.due = Some(at);
        self.due
    }

    /// The alarm has gone off: the oldest order may have outstayed.
    pub(crate) fn woken(&mut self, now: Timestamp) -> Overdue {
        let Some(due) = self.due.take() else {
            return Overdue::default();
        };
        let (late, patience) = (now.since(due), self.usual.patience());
        let mut overdue = Overdue::default();
        if late > LATE {
            self.lost = self.lost.saturating_add(late.as_millis() as u64);
            // Whatever is ready to be read is read first.
            overdue.alarm = self.set_watch(now.after(patience / 2), now);
            return overdue;
        }
        let own = self.own(now);
        while let Some((began, trans)) = self.out.front().copied()
            && u128::from(own.saturating_sub(began)) >= patience.as_millis()
        {
            self.out.pop_front();
            overdue.orders.push(trans);
        }
        overdue.alarm = self.watch_the_oldest(now);
        overdue
    }

    /// An order has outstayed that had not before. `lives` tells whether an order is still out.
    pub(crate) fn has_outstayed(&mut self, trans: TransId, mut lives: impl FnMut(TransId) -> bool) {
        self.outstayed.push(trans);
        if self.outstayed.len() > 2 * self.places {
            self.outstayed.retain(|trans| lives(*trans));
        }
    }

    /// An order that was not given up has ended; true when it took no longer than is usual.
    pub(crate) fn took(&mut self, took: Duration) -> bool {
        self.usual.saw(took);
        took < self.usual.patience()
    }

    /// The order to be given up next, while fewer than `wanted` are; it may be over.
    pub(crate) fn next_to_give_up(&mut self, wanted: usize) -> Option<TransId> {
        if self.given_up >= wanted {
            return None;
        }
        self.outstayed.pop()
    }

    /// An order is being given up.
    pub(crate) fn give_up(&mut self) {
        self.given_up += 1;
    }

    /// An order that was being given up is over, in whatever way.
    pub(crate) fn gave_up(&mut self) {
        self.given_up = self.given_up.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn order(slot: u32) -> TransId {
        TransId {
            generation: 1,
            slot,
            active: 0,
        }
    }

    #[test]
    fn the_oldest_order_is_watched_and_told_once() {
        let mut lasting = Lasting::new(100);
        let patience = lasting.usual.patience();
        let due = lasting.watch(order(1), at(0)).unwrap();
        assert_eq!(due, at(0).after(patience));
        assert_eq!(lasting.watch(order(2), at(500)), None, "one alarm is set");
        let overdue = lasting.woken(due);
        assert_eq!(overdue.orders, [order(1)]);
        let next = overdue.alarm.unwrap();
        assert_eq!(next, at(500).after(patience));
        assert_eq!(lasting.woken(next).orders, [order(2)]);
        assert_eq!(lasting.woken(next), Overdue::default());
    }

    #[test]
    fn time_that_we_lost_is_nobodys_slowness() {
        let mut lasting = Lasting::new(100);
        let due = lasting.watch(order(1), at(0)).unwrap();
        let late = due.after(Duration::from_secs(60));
        let overdue = lasting.woken(late);
        assert_eq!(overdue.orders, []);
        let soon = overdue.alarm.unwrap();
        assert_eq!(lasting.woken(soon).orders, [order(1)]);
    }

    #[test]
    fn those_that_outstayed_last_are_given_up_first() {
        let mut lasting = Lasting::new(2);
        for slot in 0..4 {
            lasting.has_outstayed(order(slot), |_| true);
        }
        lasting.has_outstayed(order(4), |trans| trans.slot != 1);
        assert_eq!(lasting.outstayed.len(), 4, "those that are over go");
        assert_eq!(lasting.next_to_give_up(0), None);
        assert_eq!(lasting.next_to_give_up(1), Some(order(4)));
        lasting.give_up();
        assert_eq!(lasting.next_to_give_up(1), None);
        lasting.gave_up();
        assert_eq!(lasting.next_to_give_up(1), Some(order(3)));
    }
}
