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
    fn follow(&self, from: u64) -> Option<(u64, &Event)>;

    /// Everything up to `position` is folded and on the disk itself; it will not be asked for again.
    fn forget(&mut self, position: u64);
}

/// The log of a single machine: records live here only from their append until what they caused is on the
/// disk itself. A store that failed is opened again and takes up from whatever it has kept.
#[derive(Debug)]
pub struct LocalLog {
    tail: u64,
    /// Filled by `append`, emptied by `forget`; bounded by how much the index folds between two syncs.
    kept: VecDeque<Event>,
}

impl LocalLog {
    /// A log that continues after the position that the store has applied.
    pub fn after(applied: u64) -> Self {
        Self {
            tail: applied,
            kept: VecDeque::new(),
        }
    }
}

impl PartitionLog for LocalLog {
    fn append(&mut self, expected_tail: u64, record: Event) -> Result<u64> {
        extend(&mut self.tail, expected_tail)?;
        self.kept.push_back(record);
        Ok(self.tail)
    }

    fn follow(&self, from: u64) -> Option<(u64, &Event)> {
        let oldest = self.tail - self.kept.len() as u64 + 1;
        let position = oldest.max(from + 1);
        let event = self.kept.get(usize::try_from(position - oldest).ok()?)?;
        Some((position, event))
    }

    fn forget(&mut self, position: u64) {
        let newer = self.tail.saturating_sub(position);
        let folded = (self.kept.len() as u64).saturating_sub(newer);
        self.kept.drain(..usize::try_from(folded).unwrap_or(0));
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

    fn follow(&self, from: u64) -> Option<(u64, &Event)> {
        let record = self.records.get(usize::try_from(from).ok()?)?;
        Some((from + 1, record))
    }

    fn forget(&mut self, _: u64) {}
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
        assert_eq!(log.follow(0), Some((1, &tick(1))));
        assert_eq!(log.follow(1), Some((2, &tick(2))));
        assert_eq!(log.follow(2), None);
        log.forget(1);
        assert_eq!(log.follow(1), Some((2, &tick(2))), "kept until it is safe");
        assert_eq!(log.append(2, tick(4)).unwrap(), 3);
        log.forget(2);
        assert_eq!(log.follow(2), Some((3, &tick(4))));
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
