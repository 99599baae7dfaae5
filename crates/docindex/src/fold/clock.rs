//! What the time does by itself: repetitions fall due, and a clock is set back between two runs.
//!
//! Waits are noted as the moments at which they end. When the machine's clock was ten years ahead and has been
//! set right, those moments lie ten years away, and the crawl would stand still until then. So the fold
//! keeps the latest time that it was told, and a process that starts before it moves the waits along: each
//! has as long to go as the process before had seen, and what that had seen as over is over. A clock that was
//! set forward cannot be told from time that has passed, and nothing is done about it.

use std::time::Duration;

use orbweaver_model::{Event, Timestamp, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::keyspaces::{due_key, read_due_key};
use crate::store::Store;
use crate::tx::Tx;

/// Clocks are put right by less than this all the time, and a wait that is longer by so much hurts nobody.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Visits that get another time in one commit.
const AT_ONCE: usize = 4096;

/// The end of a wait by a clock that was set back to `at` by `ahead`.
fn moved(end: Timestamp, ahead: Duration, at: Timestamp) -> Timestamp {
    let millis = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(end.as_millis().saturating_sub(millis)).max(at)
}

impl Fold {
    /// Takes note of the time that an event was made at. What a dead process has fetched is reported with its
    /// own times, so the end of an attempt says nothing about the clock of this one.
    pub(super) fn note_time(&mut self, event: &Event) {
        let told = match event {
            Event::Claim { at, .. } => *at,
            Event::Due { now, .. } => *now,
            Event::Robots { robots, .. } => robots.fetched,
            Event::Retry { key, report, .. } if self.claimed.contains_key(key) => report.at,
            _ => return,
        };
        self.latest = self.latest.max(told);
    }

    /// By how much the clock of an earlier process was ahead of one that shows `at`.
    pub(crate) fn ahead_of(&self, at: Timestamp) -> Option<Duration> {
        Some(self.latest.since(at)).filter(|ahead| *ahead > TOLERANCE)
    }

    /// A process starts whose clock shows `at`: waits that an earlier one noted by another clock move along.
    pub(super) fn set_clock(&mut self, at: Timestamp, tx: &mut Tx<'_>) -> Result<()> {
        let ahead = self.ahead_of(at);
        self.latest = at;
        let Some(ahead) = ahead else {
            return Ok(());
        };
        self.hosts.each_end_of_wait(|end| {
            if *end > at {
                *end = moved(*end, ahead, at);
            }
        });
        self.next_due = None;
        for guard in tx.iter(&tx.store().due) {
            let bytes = guard.key()?;
            let Some((old, key)) = read_due_key(&bytes) else {
                continue;
            };
            let due = if old > at { moved(old, ahead, at) } else { old };
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
            let fate = tx.fate(key)?.filter(|fate| fate.due == Some(old));
            if let (true, Some(mut fate)) = (due != old, fate) {
                tx.remove(&tx.store().due, &bytes);
                tx.mark(&tx.store().due, &due_key(due, key));
                fate.due = Some(due);
                tx.put(&tx.store().fates, &key.to_bytes(), &fate);
            }
        }
        Ok(())
    }

    /// Queues the URLs that are to be requested again by now.
    pub(super) fn due(&mut self, now: Timestamp, tx: &mut Tx<'_>) -> Result<()> {
        self.next_due = None;
        for guard in tx.iter(&tx.store().due) {
            let bytes = guard.key()?;
            let Some((due, key)) = read_due_key(&bytes) else {
                continue;
            };
            if due > now {
                self.next_due = Some(due);
                break;
            }
            tx.remove(&tx.store().due, &bytes);
            if let (Some(link), Some(fate)) = (tx.link(key)?, tx.fate(key)?) {
                let waiting = link.queued(key, fate.attempts, fate.revisit);
                self.enqueue(key, &link, waiting, tx);
            }
        }
        Ok(())
    }

    /// Some of the visits that were planned by a clock `ahead` of the one that shows `at`, with their new
    /// times: those after `cursor`, which moves on.
    pub(crate) fn misplanned(
        &self,
        ahead: Duration,
        at: Timestamp,
        cursor: &mut (Timestamp, UrlKey),
        store: &Store,
    ) -> Result<Vec<(UrlKey, Option<Timestamp>)>> {
        let mut visits = Vec::new();
        let from = due_key(cursor.0, cursor.1);
        for guard in store.visits.range(from..) {
            if let Some((due, key)) = read_due_key(&guard.key()?)
                && (due, key) != *cursor
            {
                visits.push((key, Some(moved(due, ahead, at))));
                *cursor = (due, key);
            }
            if visits.len() >= AT_ONCE {
                break;
            }
        }
        Ok(visits)
    }
}
