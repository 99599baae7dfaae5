//! How much may be taken from a host, and from all hosts of a domain together.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::event::Spent;
use crate::outcome::{Outcome, OutcomeClass};

/// The budget of a host or a domain; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// URLs that may be asked for.
    pub pages: u32,
    /// Bytes after which nothing more is asked for.
    pub bytes: u64,
    /// Time since the first request after which nothing more is asked for.
    pub time: Duration,
}

impl Budget {
    /// True when nothing is limited.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// The budgets of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// For each host.
    pub host: Budget,
    /// For the hosts of each registered domain together.
    pub domain: Budget,
}

/// What a budget leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many URLs may be handed out; it can be none, while all that is left is lent to claims.
    Urls(usize),
    /// It is used up for good.
    Spent(Spent, Outcome),
}

/// What was used of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Used<'a> {
    /// By whom.
    pub name: &'a str,
    /// URLs for which a request was made.
    pub asked: u32,
    /// URLs handed out and unanswered.
    pub claimed: u32,
    /// Bytes received.
    pub bytes: u64,
    /// When the first request ended.
    pub since: Option<Timestamp>,
}

impl Used<'_> {
    /// What a budget leaves of which this much is used.
    pub fn room(&self, budget: &Budget, now: Timestamp) -> Room {
        let spent = |spent, amount: String| {
            let reason = format!("the budget of {amount} for {} is used up", self.name);
            Room::Spent(spent, Outcome::because(OutcomeClass::DeniedPolicy, reason))
        };
        if budget.bytes > 0 && self.bytes >= budget.bytes {
            return spent(Spent::Bytes, format!("{} bytes", budget.bytes));
        }
        let time_over = self
            .since
            .is_some_and(|since| now.since(since) >= budget.time);
        if !budget.time.is_zero() && time_over {
            return spent(Spent::Time, format!("{} seconds", budget.time.as_secs()));
        }
        if budget.pages > 0 && self.asked >= budget.pages {
            return spent(Spent::Pages, format!("{} pages", budget.pages));
        }
        let mut room = usize::MAX;
        if budget.pages > 0 {
            room = room.min(budget.pages.saturating_sub(self.asked) as usize);
        }
        if budget.bytes > 0 {
            room = room.min(self.pages_for(budget.bytes, self.bytes));
        }
        if let Some(since) = self.since.filter(|_| !budget.time.is_zero()) {
            let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            room = room.min(self.pages_for(millis(budget.time), millis(now.since(since))));
        }
        Room::Urls(room.saturating_sub(self.claimed as usize))
    }

    /// How many more pages a budget is good for, when they cost what those before did; one at least, and one only
    /// while nothing is known. What is handed out cannot be called back, so that it must not be too much.
    fn pages_for(&self, budget: u64, used: u64) -> usize {
        let left = budget.saturating_sub(used);
        match used / u64::from(self.asked.max(1)) {
            0 if self.asked == 0 => 1,
            each => usize::try_from(left / each.max(1)).map_or(usize::MAX, |pages| pages.max(1)),
        }
    }
}
