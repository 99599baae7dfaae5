//! Planning visits to URLs that were finished without a plan, or under other bounds.

use orbweaver_model::{Column, Event, RecrawlBounds, Timestamp, UrlKey};

use super::Owner;
use crate::error::Result;
use crate::keyspaces::read_due_key;
use crate::log::Log;
use crate::record::{Fate, decode};

/// URLs planned in one commit.
const GROUP: usize = 4096;

impl<L: Log> Owner<L> {
    /// Plans the next visit of every finished URL, unless that was done with the same bounds before. None calls
    /// them off: from now on URLs are finished without a plan. URLs that are retried later get it in any case.
    /// Returns how many were planned.
    pub fn plan_visits(&mut self, bounds: Option<RecrawlBounds>) -> Result<u64> {
        let planned: Option<Option<RecrawlBounds>> = self.store.meta("recrawl")?;
        if planned.unwrap_or_default() == bounds {
            return Ok(0);
        }
        let mut count = 0;
        if let Some(bounds) = bounds {
            let mut visits = Vec::new();
            for guard in self.store.fates.clone().iter() {
                let (key, value) = guard.into_inner()?;
                let fate = decode::<Fate>("fates", &value)?;
                let key = key.as_ref().try_into().map(UrlKey::from_bytes);
                if let (Ok(key), Some(due)) = (key, next_visit(&fate, bounds)) {
                    visits.push((key, Some(due)));
                    count += 1;
                }
                if visits.len() >= GROUP {
                    let visits = std::mem::take(&mut visits);
                    self.apply([Event::Schedule { visits }])?;
                }
            }
            self.apply([Event::Schedule { visits }])?;
        } else {
            self.call_off_visits()?;
        }
        self.apply([Event::Planned { bounds }])?;
        Ok(count)
    }

    /// A crawl that ends by itself would look at them again and again, and find nothing to do.
    fn call_off_visits(&mut self) -> Result<()> {
        let mut visits = Vec::new();
        for guard in self.store.visits.clone().iter() {
            let Some((_, key)) = read_due_key(&guard.key()?) else {
                continue;
            };
            let fate = self.store.fate(key)?;
            if fate.is_some_and(|fate| !fate.is_chance()) {
                visits.push((key, None));
            }
            if visits.len() >= GROUP {
                let visits = std::mem::take(&mut visits);
                self.apply([Event::Schedule { visits }])?;
            }
        }
        self.apply([Event::Schedule { visits }])
    }
}

fn next_visit(fate: &Fate, bounds: RecrawlBounds) -> Option<Timestamp> {
    let finished = fate.due.is_none() && !fate.is_chance();
    let revisit = fate.revisit.as_ref().filter(|_| finished)?;
    Some(match fate.report.outcome.class.column() {
        Column::Failed => fate.report.at.after(bounds.max),
        _ => revisit.seen.after(revisit.rate.next_visit(bounds)),
    })
}
