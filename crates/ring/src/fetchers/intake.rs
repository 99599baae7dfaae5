//! Takes the results of both kinds of fetchers.
//!
//! What a result means is decided in `harvest.rs` and `retry.rs`; here it is only handed on, in the right order.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use orbweaver_config::RetryOptions;
use orbweaver_model::{CrawlUrl, Event, FetchResult, Order, Subject, Visit};
use orbweaver_urlserver::{Done, Handle};

use crate::harvest::Harvest;
use orbweaver_reading::location;
use orbweaver_reading::retry::{self, Decision};

/// The way of a result to the URL server, the archive and the doc index.
#[derive(Clone)]
pub(crate) struct ResultIntake {
    pub(crate) urlserver: Handle,
    pub(crate) harvest: Arc<Harvest>,
    pub(crate) retry: RetryOptions,
}

impl ResultIntake {
    /// Hands a result in: to the URL server first, because a place that is free can be given to the next order,
    /// then to the archive and the doc index.
    pub(crate) async fn take(
        &self,
        order: Order,
        result: FetchResult,
        permit: OwnedSemaphorePermit,
    ) {
        let trans = order.trans;
        match order.subject {
            Subject::Page(candidate) => {
                let visit = Visit {
                    candidate,
                    ip: Some(order.ip),
                    result,
                };
                let (done, decision) = self.judge(&visit).await;
                // The URL server ends only when the crawl does.
                let _ = self.urlserver.done(trans, done).await;
                self.keep(visit, decision, permit);
            }
            Subject::Robots(url) => {
                let done = self.judge_robots(&url, &result);
                let _ = self.urlserver.done(trans, done).await;
                self.keep_robots(&url, &result, permit);
            }
        }
    }

    /// An order was given up, because others need its place or because its request may not be sent any more: its URL
    /// goes back to the queue as it came.
    pub(crate) async fn give_up(&self, order: Order, permit: Option<OwnedSemaphorePermit>) {
        let _ = self.urlserver.given_up(order.trans).await;
        if let Subject::Page(candidate) = order.subject {
            let keys = vec![candidate.key];
            let event = Event::Return { keys };
            match permit {
                Some(permit) => self.harvest.indexer().report(event, permit),
                None => self.harvest.indexer().event(event).await,
            }
        }
    }

    /// What the URL server is to hear of a robots.txt.
    pub(crate) fn judge_robots(&self, url: &CrawlUrl, result: &FetchResult) -> Done {
        let (moved_to, _) = location(url, result, self.harvest.reader().outlinks());
        Done::robots(result, moved_to, retry::asked_for(result))
    }

    /// What the URL server is to hear when the order is over, and whether it is repeated. A host that asks for
    /// patience gets it at once, before its place is free, lest the next order slip out.
    pub(crate) async fn judge(&self, visit: &Visit) -> (Done, Decision) {
        let decision = retry::decide(visit, &self.retry, self.harvest.reader().limits());
        if let Decision::Again {
            due,
            whole_host: true,
        } = decision
        {
            let candidate = &visit.candidate;
            let _ = self.urlserver.hold(candidate.url.host(), due).await;
            let wait = Event::Host {
                host: candidate.key.host,
                not_before: due,
            };
            self.harvest.indexer().event(wait).await;
        }
        (Done::page(&visit.result), decision)
    }

    /// Archives a page and reports it to the doc index.
    pub(crate) fn keep(&self, visit: Visit, decision: Decision, permit: OwnedSemaphorePermit) {
        let result = &visit.result;
        let answered = result.exchange.is_some();
        (self.harvest).watch_seeds(&visit.candidate.url, &result.outcome, answered);
        self.harvest.page(visit, decision, permit);
    }

    /// Archives a robots.txt, which the URL server reads itself.
    pub(crate) fn keep_robots(
        &self,
        url: &CrawlUrl,
        result: &FetchResult,
        permit: OwnedSemaphorePermit,
    ) {
        (self.harvest).watch_seeds(url, &result.outcome, result.exchange.is_some());
        self.harvest.robots(url, result, permit);
    }
}
