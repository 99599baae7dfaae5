//! How much may be taken from a host, and from all hosts of a domain together.

use std::time::Duration;

use orbweaver_model::{Outcome, OutcomeClass, Spent, Timestamp};

use crate::domains::Total;
use crate::record::HostRecord;

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

impl Budget {
    /// True when nothing is limited.
    pub(crate) fn is_open(&self) -> bool {
        *self == Self::default()
    }

    fn room(&self, used: &Used<'_>, now: Timestamp) -> Room {
        let spent = |spent, amount: String| {
            let reason = format!("the budget of {amount} for {} is spent", used.name);
            Room::Spent(spent, Outcome::because(OutcomeClass::DeniedPolicy, reason))
        };
        if self.bytes > 0 && used.bytes >= self.bytes {
            return spent(Spent::Bytes, format!("{} bytes", self.bytes));
        }
        let time_over = (used.since).is_some_and(|since| now.since(since) >= self.time);
        if !self.time.is_zero() && time_over {
            return spent(Spent::Time, format!("{} seconds", self.time.as_secs()));
        }
        if self.pages > 0 && used.asked >= self.pages {
            return spent(Spent::Pages, format!("{} pages", self.pages));
        }
        let mut room = usize::MAX;
        if self.pages > 0 {
            room = room.min(self.pages.saturating_sub(used.asked) as usize);
        }
        if self.bytes > 0 {
            room = room.min(used.pages_for(self.bytes, used.bytes));
        }
        if let Some(since) = used.since.filter(|_| !self.time.is_zero()) {
            let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            room = room.min(used.pages_for(millis(self.time), millis(now.since(since))));
        }
        Room::Urls(room.saturating_sub(used.claimed as usize))
    }
}

impl Used<'_> {
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

impl Budgets {
    /// What may still be asked of a host. With what its domain has used comes what is about to be handed out for it.
    pub(crate) fn room(
        &self,
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
        let of_host = self.host.room(&used, now);
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
        match (of_host, self.domain.room(&used, now)) {
            (Room::Urls(ours), Room::Urls(its)) => Room::Urls(ours.min(its)),
            (spent @ Room::Spent(..), _) | (_, spent) => spent,
        }
    }
}
