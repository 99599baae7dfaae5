//! Planning visits to URLs that were finished without a plan, or under other bounds.

use std::time::Duration;

use orbweaver_model::{Column, Event, RecrawlBounds, Timestamp, UrlKey};

use crate::error::Result;
use crate::index::DocIndex;
use crate::keyspaces::Batch;
use crate::log::PartitionLog;
use crate::record::{Fate, decode};

/// URLs planned in one commit.
const GROUP: usize = 4096;

impl<L: PartitionLog> DocIndex<L> {
    /// Plans the next visit of every finished URL, unless that was done with the same bounds before. None notes
    /// that from now on URLs are finished without a plan. Returns how many were planned.
    pub fn plan_visits(&mut self, bounds: Option<RecrawlBounds>) -> Result<u64> {
        let wanted = bounds.map(|bounds| (bounds.min, bounds.max));
        let planned: Option<Option<(Duration, Duration)>> = self.store.meta("recrawl")?;
        if planned.unwrap_or_default() == wanted {
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
                    visits.push((key, due));
                    count += 1;
                }
                if visits.len() >= GROUP {
                    let visits = std::mem::take(&mut visits);
                    self.apply([Event::Schedule { visits }])?;
                }
            }
            self.apply([Event::Schedule { visits }])?;
        }
        let mut batch = Batch::new(&self.store);
        batch.meta("recrawl", &wanted);
        batch.commit()?;
        Ok(count)
    }
}

fn next_visit(fate: &Fate, bounds: RecrawlBounds) -> Option<Timestamp> {
    let revisit = fate.revisit.as_ref().filter(|_| fate.due.is_none())?;
    Some(match fate.report.outcome.class.column() {
        Column::Failed => fate.report.at.after(bounds.max),
        _ => revisit.seen.after(revisit.rate.next_visit(bounds)),
    })
}
