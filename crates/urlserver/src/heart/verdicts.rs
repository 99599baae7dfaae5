//! Verdicts take turns: a host with a long robots.txt, or with thousands of URLs that it denies, must not keep the
//! heart from everybody else.
//!
//! When a host looks for its next URL, a few refusals are made on the spot. One that needs more, or whose rules are
//! costly to ask, gets in a line. Every few milliseconds the line gets a turn, in which no more than a set number of
//! refusals and steps is made, by each host in it in turn. So a host pays for its rules with its own time, and all of
//! them together cannot take more than a small part of the heart's.

use std::time::Duration;

use orbweaver_model::Timestamp;

use super::Heart;
use super::alarm::Wake;
use crate::politeness::Ticket;
use crate::slot::SlotState;

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
pub(super) struct Allowance {
    refusals: usize,
    steps: usize,
}

impl Allowance {
    /// For one host at once.
    pub(super) const HOST: Self = Self {
        refusals: REFUSALS,
        steps: STEPS,
    };
    /// For a host that stands in the line.
    pub(super) const NOTHING: Self = Self {
        refusals: 0,
        steps: 0,
    };

    pub(super) fn is_spent(self) -> bool {
        self.refusals == 0 || self.steps == 0
    }

    pub(super) fn spend(&mut self, steps: usize, refused: bool) {
        self.refusals = self.refusals.saturating_sub(usize::from(refused));
        self.steps = self.steps.saturating_sub(steps);
    }
}

/// Whether a verdict that took so many steps is one that a host has to stand in line for.
pub(super) fn is_costly(steps: usize) -> bool {
    steps > STEPS
}

/// Hosts whose URLs wait to be looked at. Filled by the dispatcher, emptied turn by turn; at most one live entry per
/// slot.
#[derive(Debug, Default)]
pub(super) struct VerdictLine {
    line: std::collections::VecDeque<Ticket>,
    /// When the line has its next turn, at the earliest.
    next: Timestamp,
    /// An alarm is set for it.
    is_awaited: bool,
    /// Refusals and steps of the turn that is being had.
    spent: (usize, usize),
}

impl VerdictLine {
    /// Notes what a verdict has cost.
    pub(super) fn count(&mut self, steps: usize, refused: bool) {
        self.spent.0 += usize::from(refused);
        self.spent.1 += steps;
    }
}

impl Heart {
    /// A slot gets in the line.
    pub(super) fn await_verdicts(&mut self, ticket: Ticket) {
        self.verdicts.line.push_back(ticket);
        if !std::mem::replace(&mut self.verdicts.is_awaited, true) {
            self.alarms.set(self.verdicts.next, Wake::Verdicts);
        }
    }

    /// The line has its turn.
    pub(super) fn give_verdicts(&mut self, now: Timestamp) {
        self.verdicts.spent = (0, 0);
        while self.verdicts.spent.0 < LINE_REFUSALS
            && self.verdicts.spent.1 < LINE_STEPS
            && let Some((slot, stamp)) = self.verdicts.line.pop_front()
        {
            if self.bench.get(slot).is_some_and(|s| s.stamp() == stamp) {
                // Its place in line is used up; if it has not come to an end, it gets in line again.
                self.bench.enter(slot, SlotState::Emptied);
                self.settle_with(slot, Allowance::HOST, now);
            }
        }
        let turns = 1 + self.verdicts.spent.1 / LINE_STEPS;
        self.verdicts.next = now.after(GAP.saturating_mul(turns as u32));
        self.verdicts.is_awaited = !self.verdicts.line.is_empty();
        if self.verdicts.is_awaited {
            self.alarms.set(self.verdicts.next, Wake::Verdicts);
        }
    }
}
