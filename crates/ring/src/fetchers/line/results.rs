//! Results of the store, taken in: of an order that is out, or of one that an earlier process sent.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::{info, warn};

use orbweaver_model::{CrawlUrl, Event, FetchResult, Order, Subject, Visit};
use orbweaver_wire::{Decoded, Followed, Record};

use super::{Line, restore};

/// How long no result may come after the store is found before the first order goes out. What the process before has
/// not folded comes at once, and is not to be fetched again.
const QUIET: Duration = Duration::from_millis(250);

impl Line {
    pub(super) async fn follow(&mut self, followed: Followed) {
        match followed {
            Followed::Connected => {
                info!("connected to the store");
                self.store_is_lost = false;
                self.quiet_from = self.quiet_from.or(Some(Instant::now() + QUIET));
            }
            // Once is enough: it may be down for hours.
            Followed::Lost(why) => {
                if !std::mem::replace(&mut self.store_is_lost, true) {
                    warn!(why, "no results from the store; retrying");
                }
            }
            Followed::Result(position, decoded) => {
                if self.quiet_from.is_some_and(|from| from > Instant::now()) {
                    self.quiet_from = Some(Instant::now() + QUIET);
                }
                match decoded {
                    Decoded::Record(record) => self.take_in(record).await,
                    Decoded::Refused { doc_id, why } => {
                        warn!(
                            doc_id,
                            why, "a result of the store without content was dropped"
                        );
                    }
                }
                let event = Event::Results { position };
                self.intake.harvest.indexer().event(event).await;
            }
        }
    }

    async fn take_in(&mut self, record: Record) {
        match self.orders.answered_by(record.doc_id, &record.url) {
            Some((number, order, sent)) => {
                let now = (self.clock)();
                let took = Duration::from_millis(record.millis.into());
                let result =
                    restore::result(record, sent, now, self.intake.harvest.reader().limits());
                let result = FetchResult {
                    connected: result.exchange.is_some().then_some(order.ip),
                    ..result
                };
                self.take_result(number, order, result, took).await;
            }
            None => self.take_in_late(record).await,
        }
    }

    /// The result of an order that is out. It is over when its spider has said DONE, too.
    pub(super) async fn take_result(
        &mut self,
        number: u64,
        order: Order,
        result: FetchResult,
        took: Duration,
    ) {
        let Some(permit) = self.permit().await else {
            return;
        };
        let done = match order.subject {
            Subject::Robots(url) => {
                let done = self.intake.judge_robots(&url, &result);
                self.intake.keep_robots(&url, &result, permit);
                done
            }
            Subject::Page(candidate) => {
                let visit = Visit {
                    candidate,
                    ip: Some(order.ip),
                    result,
                };
                let (done, decision) = self.intake.judge(&visit).await;
                self.intake.keep(visit, decision, permit);
                done
            }
        };
        if let Some(over) = self.orders.result(number, done, took, (self.clock)()) {
            self.end(over).await;
        }
    }

    async fn take_in_late(&self, record: Record) {
        let Some(permit) = self.permit().await else {
            return;
        };
        let reader = self.intake.harvest.reader();
        let Ok(url) = CrawlUrl::from_canonical(&record.url) else {
            return;
        };
        // The robots.txt of a time before is requested again; a finished URL was sent twice.
        let entry = match self.reader.entry(url.key(reader.seed())) {
            Ok(Some(entry)) if record.doc_id != 0 => entry,
            Ok(_) => return,
            Err(error) => {
                warn!(%error, url = record.url, "a result whose URL cannot be looked up");
                return;
            }
        };
        if entry.fate.as_ref().is_some_and(|fate| fate.due.is_none()) {
            return;
        }
        let visit = Visit {
            candidate: reader.candidate(entry),
            ip: None,
            result: restore::result(record, None, (self.clock)(), reader.limits()),
        };
        let (_, decision) = self.intake.judge(&visit).await;
        self.intake.keep(visit, decision, permit);
    }

    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }
}
