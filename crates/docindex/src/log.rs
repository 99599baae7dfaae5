//! The log whose fold is the doc index, as a seam.
//!
//! A log is an ordered list of batches of events with one writer at a time: a batch is appended after exactly the tail
//! that its writer has folded, or not at all. That is the fence. Whoever has not folded the whole log cannot extend
//! it, and of two who try one succeeds.
//!
//! On one machine a batch needs no record of its own: the store's journal holds the writes it caused, together with
//! its position, so a second write would say the same thing twice. In a cluster the log is replicated and comes first.
//! The fold is the same code over either.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use orbweaver_model::Event;
use orbweaver_model::event::codec;

/// Events that are appended, and folded, together. Shared rather than copied: on one machine the log keeps the very
/// batch that is folded.
pub type Batch = Arc<Vec<Event>>;

/// What came of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Append {
    /// The batch is in the log and will stay there; its position.
    Appended(u64),
    /// The tail of the log is another one: it was extended by somebody else, or by an append of which nobody knew how it
    /// had ended. [`Log::next`] tells which.
    Fenced,
}

/// Why a log could not be asked: it cannot be reached, or did not answer in time. Of an append it is not known then
/// whether it was made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct LogError(pub String);

/// An ordered log of batches with one owner at a time.
///
/// A position is where a batch ends. Positions grow from batch to batch, by how much is for the log to say; 0 is before
/// the first.
pub trait Log {
    /// Adds a batch when the log ends at exactly `expected`. An error leaves it open whether the batch was added; it
    /// is either there, whole and next after `expected`, or nowhere, as soon as anybody reads or extends the log.
    fn append(&mut self, expected: u64, batch: &Batch) -> Result<Append, LogError>;

    /// The first batch after position `from` with its own position; none at the end of the log.
    fn next(&mut self, from: u64) -> Result<Option<(u64, Batch)>, LogError>;

    /// Everything up to `position` is folded here and on the disk itself. Whether others still need it is for the log to
    /// know.
    fn forget(&mut self, position: u64);
}

/// The log of a single machine: batches live here only from their append until what they caused is on the disk itself.
/// A store that failed is opened again and takes up from whatever it has kept. Positions count events.
#[derive(Debug)]
pub struct LocalLog {
    tail: u64,
    /// Batches with their positions. Filled by `append`, emptied by `forget`; bounded by how much the index folds between
    /// two syncs.
    kept: VecDeque<(u64, Batch)>,
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

impl Log for LocalLog {
    fn append(&mut self, expected: u64, batch: &Batch) -> Result<Append, LogError> {
        if expected != self.tail {
            return Ok(Append::Fenced);
        }
        self.tail += batch.len() as u64;
        self.kept.push_back((self.tail, Arc::clone(batch)));
        Ok(Append::Appended(self.tail))
    }

    fn next(&mut self, from: u64) -> Result<Option<(u64, Batch)>, LogError> {
        let at = self.kept.partition_point(|(position, _)| *position <= from);
        let next = self.kept.get(at);
        Ok(next.map(|(position, batch)| (*position, Arc::clone(batch))))
    }

    fn forget(&mut self, position: u64) {
        let folded = self.kept.partition_point(|(end, _)| *end <= position);
        self.kept.drain(..folded);
    }
}

/// A log in RAM that keeps every batch, as the bytes that a replicated one would hold. A clone is the same log in other
/// hands, so that several processes can be played in one. Positions count events.
#[derive(Clone, Debug, Default)]
pub struct KeptLog {
    /// Filled by `append` and never emptied: it is as large as its history.
    batches: Arc<Mutex<Vec<KeptBatch>>>,
}

/// The position after a batch, and the batch as bytes.
type KeptBatch = (u64, Vec<u8>);

impl KeptLog {
    fn batches(&self) -> MutexGuard<'_, Vec<(u64, Vec<u8>)>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position at which it ends.
    pub fn tail(&self) -> u64 {
        self.batches().last().map_or(0, |(position, _)| *position)
    }
}

impl Log for KeptLog {
    fn append(&mut self, expected: u64, batch: &Batch) -> Result<Append, LogError> {
        let mut batches = self.batches();
        let tail = batches.last().map_or(0, |(position, _)| *position);
        if expected != tail {
            return Ok(Append::Fenced);
        }
        let position = tail + batch.len() as u64;
        batches.push((position, codec::encode(batch)));
        Ok(Append::Appended(position))
    }

    fn next(&mut self, from: u64) -> Result<Option<(u64, Batch)>, LogError> {
        let batches = self.batches();
        let at = batches.partition_point(|(position, _)| *position <= from);
        let Some((position, bytes)) = batches.get(at) else {
            return Ok(None);
        };
        let events = codec::decode(bytes).map_err(|error| LogError(error.to_string()))?;
        Ok(Some((*position, Arc::new(events))))
    }

    fn forget(&mut self, _: u64) {}
}

#[cfg(test)]
mod tests {
    use orbweaver_model::Timestamp;

    use super::*;

    fn ticks(times: &[u64]) -> Batch {
        let tick = |n: &u64| Event::Due {
            now: Timestamp::from_millis(*n),
            visits: false,
        };
        Arc::new(times.iter().map(tick).collect())
    }

    /// Both forms of the log pass through here.
    fn behaves_like_a_log(mut log: impl Log) {
        assert_eq!(log.next(0), Ok(None));
        assert_eq!(log.append(0, &ticks(&[1, 2])), Ok(Append::Appended(2)));
        assert_eq!(log.append(2, &ticks(&[3])), Ok(Append::Appended(3)));
        for tail in [0, 1, 2, 4] {
            assert_eq!(log.append(tail, &ticks(&[9])), Ok(Append::Fenced));
        }
        assert_eq!(log.next(0), Ok(Some((2, ticks(&[1, 2])))));
        assert_eq!(log.next(2), Ok(Some((3, ticks(&[3])))));
        assert_eq!(log.next(3), Ok(None));
        log.forget(2);
        assert_eq!(log.next(2), Ok(Some((3, ticks(&[3])))), "not yet safe");
        assert_eq!(log.append(3, &ticks(&[4])), Ok(Append::Appended(4)));
        log.forget(3);
        assert_eq!(log.next(3), Ok(Some((4, ticks(&[4])))));
    }

    #[test]
    fn the_local_log() {
        behaves_like_a_log(LocalLog::after(0));
    }

    #[test]
    fn the_kept_log() {
        behaves_like_a_log(KeptLog::default());
    }

    #[test]
    fn a_local_log_keeps_nothing_that_is_safe() {
        let mut log = LocalLog::after(7);
        log.append(7, &ticks(&[1, 2])).unwrap();
        log.append(9, &ticks(&[3])).unwrap();
        log.forget(9);
        assert_eq!(log.kept.len(), 1);
        log.forget(10);
        assert!(log.kept.is_empty());
        assert_eq!(log.append(10, &ticks(&[4])), Ok(Append::Appended(11)));
    }
}
