//! robots.txt files that the doc index has, and when it is asked for them.
//!
//! A file has 500 KiB at most, so that a thousand queues could hold half a gigabyte of rules. Beyond a share of
//! `rest_bytes`, the longest rules are used once when they arrive, on all URLs that wait for them, and what they allow
//! is remembered instead (`origins`). The next URLs of the host have the file recalled: here, at a bounded rate.

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::Timestamp;

/// Questions to the doc index for a robots.txt that are open at once: each may bring half a megabyte.
const FIRST_RECALLS: usize = 32;
/// The same for those that were given up for their size and do bring as much.
const RECALLS: usize = 4;
/// After a file that was given up for its size has come back, the next such file is left alone for so long for every
/// byte: half a megabyte takes milliseconds to read, and there may be thousands of hosts that send as much.
const NANOS_PER_BYTE: u64 = 100;

/// robots.txt files that the doc index is to be asked for: each origin is here at most once. Those that are asked for
/// the first time go first; those that were given up for their size are asked for at a bounded rate.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    first: VecDeque<String>,
    again: VecDeque<String>,
    /// Questions that are open.
    open: usize,
    /// When the next of `again` may be asked for.
    next: Timestamp,
    /// An alarm is set for it.
    is_awaited: bool,
}

impl Recalls {
    /// An origin's file is to be asked for; `again` when it was given up for its size.
    pub(crate) fn add(&mut self, origin: String, again: bool) {
        let line = if again {
            &mut self.again
        } else {
            &mut self.first
        };
        line.push_back(origin);
    }

    /// A question was answered, with a file of so many bytes.
    pub(crate) fn answered(&mut self, bytes: usize, now: Timestamp) {
        self.open = self.open.saturating_sub(1);
        let pause = Duration::from_nanos(NANOS_PER_BYTE.saturating_mul(bytes as u64));
        self.next = self.next.max(now).after(pause);
    }

    /// The alarm has gone off.
    pub(crate) fn woken(&mut self) {
        self.is_awaited = false;
    }

    /// The origin whose file may be asked for now; its question is open from then on.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<String> {
        let again = self.open < RECALLS && self.next <= now;
        let origin = if self.open < FIRST_RECALLS && !self.first.is_empty() {
            self.first.pop_front()
        } else if again {
            self.again.pop_front()
        } else {
            None
        }?;
        self.open += 1;
        Some(origin)
    }

    /// The time for which an alarm is to be set, if one is needed and none is set.
    pub(crate) fn alarm(&mut self) -> Option<Timestamp> {
        let waits = self.open < RECALLS && !self.again.is_empty();
        (waits && !std::mem::replace(&mut self.is_awaited, true)).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn first_questions_go_first_and_few_are_open() {
        let mut recalls = Recalls::default();
        recalls.add("large".into(), true);
        for n in 0..FIRST_RECALLS + 1 {
            recalls.add(n.to_string(), false);
        }
        for n in 0..FIRST_RECALLS {
            assert_eq!(recalls.next(at(0)), Some(n.to_string()));
        }
        assert_eq!(recalls.next(at(0)), None, "enough are open");
        assert_eq!(recalls.alarm(), None, "an answer comes first");
        recalls.answered(0, at(0));
        assert_eq!(recalls.next(at(0)), Some(FIRST_RECALLS.to_string()));
    }

    #[test]
    fn large_files_come_back_at_a_bounded_rate() {
        let mut recalls = Recalls::default();
        for n in 0..3 {
            recalls.add(n.to_string(), true);
        }
        assert_eq!(recalls.next(at(0)).as_deref(), Some("0"));
        recalls.answered(500_000, at(0));
        assert_eq!(recalls.next(at(0)), None);
        assert_eq!(recalls.alarm(), Some(at(50)), "ten megabytes in a second");
        assert_eq!(recalls.alarm(), None, "it is set");
        recalls.woken();
        assert_eq!(recalls.next(at(50)).as_deref(), Some("1"));
    }
}
