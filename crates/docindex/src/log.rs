//! The log whose fold is the doc index, as a seam.
//!
//! On one machine an event needs no record of its own: the store's journal holds the writes it caused,
//! together with its position, so a second write would say the same thing twice. In a cluster the log is
//! replicated and comes first. The fold is the same code over either.

use std::collections::VecDeque;

use orbweaver_model::Event;

use crate::error::{Error, Result};

/// An ordered log of events with one owner at a time.
pub trait PartitionLog {
    /// Adds a record after exactly `expected_tail`; the new tail comes back. Fails when the tail is
    /// another one, for then somebody else has written.
    fn append(&mut self, expected_tail: u64, record: Event) -> Result<u64>;

    /// The next record after position `from`, if there is one.
    fn follow(&mut self, from: u64) -> Option<(u64, Event)>;
}

/// The log of a single machine: records live here only from their append to their fold.
#[derive(Debug)]
pub struct LocalLog {
    tail: u64,
    /// Filled by `append`, emptied by `follow`; bounded by what one commit takes in.
    waiting: VecDeque<Event>,
}

impl LocalLog {
    /// A log that continues after the position that the store has applied.
    pub fn after(applied: u64) -> Self {
        Self {
            tail: applied,
            waiting: VecDeque::new(),
        }
    }
}

impl PartitionLog for LocalLog {
    fn append(&mut self, expected_tail: u64, record: Event) -> Result<u64> {
        extend(&mut self.tail, expected_tail)?;
        self.waiting.push_back(record);
        Ok(self.tail)
    }

    fn follow(&mut self, from: u64) -> Option<(u64, Event)> {
        // Whatever is at or before `from` has been folded; the caller reads in order.
        let oldest = self.tail - self.waiting.len() as u64 + 1;
        debug_assert_eq!(from + 1, oldest.min(self.tail + 1), "follow reads in order");
        self.waiting.pop_front().map(|event| (oldest, event))
    }
}

/// A log that keeps everything, for replays: two folds of it must come to the same state.
#[derive(Debug, Default, Clone)]
pub struct KeptLog {
    records: Vec<Event>,
}

impl PartitionLog for KeptLog {
    fn append(&mut self, expected_tail: u64, record: Event) -> Result<u64> {
        let mut tail = self.records.len() as u64;
        extend(&mut tail, expected_tail)?;
        self.records.push(record);
        Ok(tail)
    }

    fn follow(&mut self, from: u64) -> Option<(u64, Event)> {
        let record = self.records.get(usize::try_from(from).ok()?)?;
        Some((from + 1, record.clone()))
    }
}

fn extend(tail: &mut u64, expected: u64) -> Result<()> {
    if *tail != expected {
        return Err(Error::WrongTail {
            expected,
            found: *tail,
        });
    }
    *tail += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use orbweaver_model::Timestamp;

    use super::*;

    fn tick(n: u64) -> Event {
        Event::Due {
            now: Timestamp::from_millis(n),
            visits: false,
        }
    }

    /// Both forms of the log pass through here.
    fn behaves_like_a_log(mut log: impl PartitionLog) {
        assert_eq!(log.append(0, tick(1)).unwrap(), 1);
        assert_eq!(log.append(1, tick(2)).unwrap(), 2);
        assert!(matches!(
            log.append(1, tick(3)),
            Err(Error::WrongTail {
                expected: 1,
                found: 2
            })
        ));
        assert_eq!(log.follow(0), Some((1, tick(1))));
        assert_eq!(log.follow(1), Some((2, tick(2))));
        assert_eq!(log.follow(2), None);
        assert_eq!(log.append(2, tick(4)).unwrap(), 3);
        assert_eq!(log.follow(2), Some((3, tick(4))));
    }

    #[test]
    fn the_local_log() {
        behaves_like_a_log(LocalLog::after(0));
    }

    #[test]
    fn the_kept_log() {
        behaves_like_a_log(KeptLog::default());
    }
}
