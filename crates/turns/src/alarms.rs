//! What is to be looked at later.
//!
//! A wheel: rings of 64 slots, each ring 64 times as coarse as the one below it. An alarm is put where its
//! time first differs from the time that was reached, and comes down a ring whenever that one is. A heap
//! of a million alarms is twenty steps deep and each step is a miss of the cache; here setting an alarm
//! and having it go off are a few steps each, in memory that is used in order.

use std::collections::VecDeque;

use orbweaver_model::Timestamp;

/// Bits of the time that one ring tells apart.
const BITS: u32 = 6;
/// Slots of a ring.
const SLOTS: usize = 1 << BITS;
/// Rings until all 64 bits of a time in milliseconds are told apart.
const RINGS: usize = 64_usize.div_ceil(BITS as usize);

/// What is to be looked at when; `T` says what. Filled by whoever must wait, emptied by the heart's `tick`. At most
/// one live entry per slot, address and resting robots.txt; stale ones leave when their time comes.
#[derive(Debug)]
pub struct Alarms<T> {
    rings: Vec<Ring<T>>,
    /// The time up to which alarms have gone off, in milliseconds.
    reached: u64,
    /// Those that have gone off and were not taken yet, in the order in which they were set.
    due: VecDeque<T>,
    len: usize,
}

/// One ring.
#[derive(Debug)]
struct Ring<T> {
    /// One bit for each slot that holds an alarm.
    occupied: u64,
    slots: Vec<Span<T>>,
}

/// The alarms of one span of time, in the order in which they were set.
#[derive(Debug)]
struct Span<T> {
    alarms: Vec<(u64, T)>,
    /// The earliest of them.
    first: u64,
}

impl<T> Default for Alarms<T> {
    fn default() -> Self {
        let span = || Span {
            alarms: Vec::new(),
            first: 0,
        };
        let ring = || Ring {
            occupied: 0,
            slots: (0..SLOTS).map(|_| span()).collect(),
        };
        Self {
            rings: (0..RINGS).map(|_| ring()).collect(),
            reached: 0,
            due: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> Alarms<T> {
    /// Sets one. One that should have gone off before goes off next.
    pub fn set(&mut self, at: Timestamp, what: T) {
        self.len += 1;
        self.place(at.as_millis().max(self.reached), what);
    }

    fn place(&mut self, at: u64, what: T) {
        let differs = (at ^ self.reached).checked_ilog2().unwrap_or(0);
        let ring = differs / BITS;
        let slot = (at >> (ring * BITS)) as usize % SLOTS;
        let Some(ring) = self.rings.get_mut(ring as usize) else {
            return;
        };
        let occupied = ring.occupied >> slot & 1 == 1;
        ring.occupied |= 1 << slot;
        if let Some(slot) = ring.slots.get_mut(slot) {
            slot.first = if occupied { slot.first.min(at) } else { at };
            slot.alarms.push((at, what));
        }
    }

    /// The ring and slot of the earliest alarm: the finest ring that has any, for what differs from the
    /// time reached in a finer place is nearer to it.
    fn earliest(&self) -> Option<(usize, usize)> {
        let ring = self.rings.iter().position(|ring| ring.occupied != 0)?;
        let occupied = self.rings.get(ring)?.occupied;
        Some((ring, occupied.trailing_zeros() as usize))
    }

    /// When the next one goes off.
    pub fn next(&self) -> Option<Timestamp> {
        if !self.due.is_empty() {
            return Some(Timestamp::from_millis(self.reached));
        }
        let (ring, slot) = self.earliest()?;
        let first = self.rings.get(ring)?.slots.get(slot)?.first;
        Some(Timestamp::from_millis(first))
    }

    /// The next one that has gone off.
    pub fn due(&mut self, now: Timestamp) -> Option<T> {
        while self.due.is_empty() {
            self.next().filter(|at| *at <= now)?;
            let (ring, slot) = self.earliest()?;
            self.reach(ring, slot);
        }
        self.len -= 1;
        self.due.pop_front()
    }

    /// Goes on to the earliest alarm: what shares its slot is due, or comes down to finer rings.
    fn reach(&mut self, ring: usize, slot: usize) {
        let Some(found) = self.rings.get_mut(ring) else {
            return;
        };
        found.occupied &= !(1 << slot);
        let Some(found) = found.slots.get_mut(slot) else {
            return;
        };
        self.reached = found.first;
        if ring == 0 {
            self.due
                .extend(found.alarms.drain(..).map(|(_, what)| what));
            return;
        }
        for (at, what) in std::mem::take(&mut found.alarms) {
            if at == self.reached {
                self.due.push_back(what);
            } else {
                self.place(at, what);
            }
        }
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Alarms that are set.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use orbweaver_testkit::Random;

    use super::*;

    /// Alarms go off in the order of their times, and of two at the same time the older one first,
    /// whatever is set meanwhile; exactly as a sorted list would have it.
    #[test]
    fn a_wheel_is_a_sorted_list() {
        let mut random = Random::new(7);
        let mut alarms = Alarms::default();
        let mut list: Vec<(u64, u32)> = Vec::new();
        let mut now = 1_700_000_000_000;
        for number in 0..20_000 {
            let reach = [3, 70, 5000, 300_000, 90_000_000, u64::MAX >> 34][random.index(6)];
            let at = now + random.below(reach);
            alarms.set(Timestamp::from_millis(at), number);
            list.push((at, number));
            if random.one_in(3) {
                now += random.below(2000);
                list.sort();
                let next = list.first().map(|(at, _)| Timestamp::from_millis(*at));
                assert_eq!(alarms.next(), next);
                while let Some(wake) = alarms.due(Timestamp::from_millis(now)) {
                    let (at, number) = list.remove(0);
                    assert!(at <= now);
                    assert_eq!(wake, number);
                }
                assert!(list.first().is_none_or(|(at, _)| *at > now));
            }
        }
        assert_eq!(alarms.len(), list.len());
        list.sort();
        for (_, number) in list {
            let wake = alarms.due(Timestamp::from_millis(u64::MAX));
            assert_eq!(wake, Some(number));
        }
        assert!(alarms.next().is_none() && alarms.due(Timestamp::from_millis(u64::MAX)).is_none());
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut alarms = Alarms::default();
        let end = Timestamp::from_millis(u64::MAX);
        alarms.set(end, ());
        assert_eq!(alarms.next(), Some(end));
        assert!(alarms.due(Timestamp::from_millis(u64::MAX - 1)).is_none());
        assert!(alarms.due(end).is_some());
        // After it, everything is due.
        alarms.set(Timestamp::default(), ());
        assert!(alarms.due(Timestamp::default()).is_none());
        assert!(alarms.due(end).is_some());
    }
}
