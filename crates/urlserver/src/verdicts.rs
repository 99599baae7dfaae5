//! Verdicts take turns: a host with a long robots.txt, or with thousands of URLs that it denies, must not keep the
//! heart from everybody else.
//!
//! When a host looks for its next URL, a few refusals are made on the spot. One that needs more, or whose rules are
//! costly to ask, gets in a line. Every few milliseconds the line gets a turn, in which no more than a set number of
//! refusals and steps is made, by each host in it in turn. So a host pays for its rules with its own time, and all of
//! them together cannot take more than a small part of the heart's.

use std::collections::VecDeque;
use std::time::Duration;

use orbweaver_model::Timestamp;

use crate::slot::Stamped;

/// Refusals that a host gets at once.
const REFUSALS: usize = 8;
/// Steps of some ten nanoseconds that a host gets at once: enough for refusals by any rules but the most contrived.
const STEPS: usize = 8192;
/// Time between two turns of the line.
const GAP: Duration = Duration::from_millis(5);
/// Refusals in one turn of the line: some twelve thousand in a second, which the doc index has to record as well.
const LINE_REFUSALS: usize = 64;
/// Steps in one turn of the line: about half a millisecond of the five. What one verdict takes beyond that makes the
/// time to the next turn longer.
const LINE_STEPS: usize = 50_000;

/// What may be spent on verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    refusals: usize,
    steps: usize,
}

impl Allowance {
    /// For one host at once.
    pub(crate) const HOST: Self = Self {
        refusals: REFUSALS,
        steps: STEPS,
    };
    /// For a host that stands in the line.
    pub(crate) const NOTHING: Self = Self {
        refusals: 0,
        steps: 0,
    };

    pub(crate) fn is_spent(self) -> bool {
        self.refusals == 0 || self.steps == 0
    }

    pub(crate) fn spend(&mut self, steps: usize, refused: bool) {
        self.refusals = self.refusals.saturating_sub(usize::from(refused));
        self.steps = self.steps.saturating_sub(steps);
    }
}

/// Whether a verdict that took so many steps is one that a host has to stand in line for.
pub(crate) fn is_costly(steps: usize) -> bool {
    steps > STEPS
}

/// Hosts whose URLs wait to be looked at. Filled by the dispatcher, emptied turn by turn; at most one live entry per
/// slot. Whoever fills it sets the alarm that it asks for, and gives it a turn when that goes off.
#[derive(Debug, Default)]
pub(crate) struct VerdictLine {
    line: VecDeque<Stamped>,
    /// When the line has its next turn, at the earliest.
    next: Timestamp,
    /// An alarm is set for it.
    is_awaited: bool,
    /// Refusals and steps of the turn that is being had.
    spent: (usize, usize),
}

impl VerdictLine {
    /// Gets in the line; the time for which an alarm is to be set, if none is.
    pub(crate) fn join(&mut self, who: Stamped) -> Option<Timestamp> {
        self.line.push_back(who);
        let is_set = std::mem::replace(&mut self.is_awaited, true);
        (!is_set).then_some(self.next)
    }

    /// Notes what a verdict has cost.
    pub(crate) fn count(&mut self, steps: usize, refused: bool) {
        self.spent.0 += usize::from(refused);
        self.spent.1 += steps;
    }

    /// The alarm has gone off: the line has its turn.
    pub(crate) fn begin_turn(&mut self) {
        self.spent = (0, 0);
    }

    /// Whose verdicts are next in this turn; none when it is spent.
    pub(crate) fn next_in_turn(&mut self) -> Option<Stamped> {
        if self.spent.0 >= LINE_REFUSALS || self.spent.1 >= LINE_STEPS {
            return None;
        }
        self.line.pop_front()
    }

    /// Ends the turn; the time for which an alarm is to be set, if anybody still waits.
    pub(crate) fn end_turn(&mut self, now: Timestamp) -> Option<Timestamp> {
        let turns = 1 + self.spent.1 / LINE_STEPS;
        self.next = now.after(GAP.saturating_mul(turns as u32));
        self.is_awaited = !self.line.is_empty();
        self.is_awaited.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn one_alarm_for_the_whole_line() {
        let mut line = VerdictLine::default();
        assert_eq!(line.join((1, 0)), Some(at(0)));
        assert_eq!(line.join((2, 0)), None);
        line.begin_turn();
        assert_eq!(line.next_in_turn(), Some((1, 0)));
        assert_eq!(line.join((1, 1)), None, "the end of the turn sets it");
        assert_eq!(line.end_turn(at(10)), Some(at(15)));
        line.begin_turn();
        assert_eq!(line.next_in_turn(), Some((2, 0)));
        assert_eq!(line.next_in_turn(), Some((1, 1)));
        assert_eq!(line.next_in_turn(), None);
        assert_eq!(line.end_turn(at(15)), None);
        assert_eq!(line.join((3, 0)), Some(at(20)), "not before the gap");
    }

    #[test]
    fn a_turn_ends_when_it_is_spent_and_what_it_overspent_is_waited_for() {
        let mut line = VerdictLine::default();
        line.join((1, 0));
        line.join((2, 0));
        line.begin_turn();
        line.next_in_turn();
        line.count(3 * LINE_STEPS, false);
        assert_eq!(line.next_in_turn(), None);
        assert_eq!(line.end_turn(at(0)), Some(at(20)), "four gaps");
        line.begin_turn();
        for _ in 0..LINE_REFUSALS {
            line.count(0, true);
        }
        assert_eq!(line.next_in_turn(), None);
    }
}
