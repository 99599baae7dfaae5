//! How much may be taken from a host, and from all hosts of a domain together.

use std::time::Duration;

use orbweaver_model::{Budget, Budgets, Outcome, OutcomeClass, Spent, Timestamp};

use crate::domains::Total;
use crate::record::HostRecord;

/// What a budget leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// So many URLs may be handed out; it can be none, while all that is left is lent to claims.
    Urls(usize),
    /// It is used up for good.
    Spent(Spent, Outcome),
}

/// What was used of a budget.
struct Used<'a> {
    name: &'a str,
    asked: u32,
    claimed: u32,
    bytes: u64,
    since: Option<Timestamp>,
}

impl Used<'_> {
    /// What a budget leaves of which this much is used.
    fn room(&self, budget: &Budget, now: Timestamp) -> Room {
        let spent = |spent, amount: String| {
            let reason = format!("the budget of {amount} for {} is spent", self.name);
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

/// What may still be asked of a host. With what its domain has used comes what is about to be handed out for it.
pub(crate) fn room(
    budgets: &Budgets,
    host: &HostRecord,
    claimed: u32,
    domain: Option<(&Total, usize)>,
    now: Timestamp,
) -> Room {
    let used = Used {
        name: &host.name,
        asked: host.asked,
        claimed,
        bytes: host.bytes,
        since: host.since,
    };
    let of_host = used.room(&budgets.host, now);
    let Some((total, lent)) = domain else {
        return of_host;
    };
    let used = Used {
        name: &total.name,
        asked: total.asked,
        claimed: total
            .claimed
            .saturating_add(u32::try_from(lent).unwrap_or(u32::MAX)),
        bytes: total.bytes,
        since: total.since,
    };
    match (of_host, used.room(&budgets.domain, now)) {
        (Room::Urls(ours), Room::Urls(its)) => Room::Urls(ours.min(its)),
        (spent @ Room::Spent(..), _) | (_, spent) => spent,
    }
}
