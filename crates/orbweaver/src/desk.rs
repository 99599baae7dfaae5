//! Between the URL server and its neighbours: orders carried out, and notices passed on to the doc index.
//!
//! What a result means is decided in `harvest.rs` and `retry.rs`; here it is only handed on, in the right
//! order. Where spider and store are other processes, `daemon/urlserver.rs` takes the place of the desk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use orbweaver_config::RetryOptions;
use orbweaver_model::{Event, FetchResult, Order, Purpose, Timestamp, TransId, UrlKey};
use orbweaver_spider::Spider;
use orbweaver_urlserver::{Done, Handle, Notice};

use crate::harvest::Harvest;
use crate::helm::lock;
use crate::redirect;
use crate::retry::{self, Decision};
use orbweaver_model::Clock;

/// How long requests that are out may take to end when the crawl is told to stop. With the last commit
/// it stays below the ten seconds that a user waits.
pub(crate) const LAST_REQUESTS: Duration = Duration::from_secs(6);

/// What a worker needs to carry out an order.
pub(crate) struct Desk {
    pub(crate) spider: Spider,
    pub(crate) counter: Counter,
    pub(crate) announcements: mpsc::UnboundedSender<(TransId, Timestamp)>,
    pub(crate) given_up: GivenUp,
}

impl Desk {
    async fn carry_out(&self, order: Order, permit: OwnedSemaphorePermit) {
        // Nobody listens only when the crawl is over.
        let announce = |trans, at| {
            let _ = self.announcements.send((trans, at));
        };
        let (trans, key, purpose) = (order.trans, order.candidate.key, order.purpose);
        let given_up = self.given_up.register(trans);
        let result = tokio::select! {
            result = self.spider.fetch(order, &announce) => Some(result),
            Ok(()) = given_up => None,
        };
        self.given_up.forget(trans);
        match result {
            Some(result) => self.counter.take(result, permit).await,
            None => self.counter.give_up(trans, key, purpose, permit).await,
        }
    }
}

/// Orders that are being carried out, and how each is told that it is to be given up. Filled and emptied by the tasks
/// that carry them out; as many as are out.
#[derive(Default)]
pub(crate) struct GivenUp {
    out: Mutex<HashMap<TransId, oneshot::Sender<()>>>,
}

impl GivenUp {
    fn register(&self, trans: TransId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.out).insert(trans, sender);
        receiver
    }

    fn forget(&self, trans: TransId) {
        lock(&self.out).remove(&trans);
    }

    /// Tells the tasks of these orders, until the URL server ends. An order that is over, or has not begun, goes on as
    /// if nothing had been said.
    pub(crate) async fn pass_on(desk: Arc<Desk>, mut wanted: mpsc::UnboundedReceiver<TransId>) {
        while let Some(trans) = wanted.recv().await {
            let out = lock(&desk.given_up.out).remove(&trans);
            let _ = out.map(|out| out.send(()));
        }
    }
}

/// Where results are handed in, whoever fetched them.
#[derive(Clone)]
pub(crate) struct Counter {
    pub(crate) urlserver: Handle,
    pub(crate) harvest: Arc<Harvest>,
    pub(crate) retry: RetryOptions,
}

impl Counter {
    /// Hands a result in: to the URL server first, because a place that is free can be given to the next order,
    /// then to the archive and the doc index.
    async fn take(&self, result: FetchResult, permit: OwnedSemaphorePermit) {
        let trans = result.order.trans;
        let (done, decision) = self.judge(&result).await;
        // The URL server ends only when the crawl does.
        let _ = self.urlserver.done(trans, done).await;
        self.keep(result, decision, permit);
    }

    /// An order was given up because others need its place: its URL goes back to the queue as it came.
    async fn give_up(
        &self,
        trans: TransId,
        key: UrlKey,
        purpose: Purpose,
        permit: OwnedSemaphorePermit,
    ) {
        let _ = self.urlserver.given_up(trans).await;
        if purpose == Purpose::Page {
            let event = Event::Return { keys: vec![key] };
            self.harvest.indexer.event(event, Some(permit));
        }
    }

    /// What the URL server is to hear when the order is over, and whether it is repeated. A host that asks for
    /// patience gets it at once, before its place is free, lest the next order slip out.
    pub(crate) async fn judge(&self, result: &FetchResult) -> (Done, Decision) {
        if result.order.purpose == Purpose::Robots {
            let (moved_to, _) = redirect::location(result, &self.harvest.outlinks);
            let wait = retry::asked_for(result);
            return (Done::robots(result, moved_to, wait), Decision::Final);
        }
        let decision = retry::decide(result, &self.retry, &self.harvest.limits);
        if let Decision::Again {
            due,
            whole_host: true,
        } = decision
        {
            let candidate = &result.order.candidate;
            let _ = self.urlserver.hold(candidate.url.host(), due).await;
            let wait = Event::Host {
                host: candidate.key.host,
                not_before: due,
            };
            self.harvest.indexer.event(wait, None);
        }
        (Done::page(result), decision)
    }

    /// Archives a result and reports it to the doc index; the URL server reads a robots.txt itself.
    pub(crate) fn keep(
        &self,
        result: FetchResult,
        decision: Decision,
        permit: OwnedSemaphorePermit,
    ) {
        let answered = result.exchange.is_some();
        (self.harvest).watch_seeds(result.order.url(), &result.outcome, answered);
        match result.order.purpose {
            Purpose::Robots => self.harvest.robots(&result),
            Purpose::Page => self.harvest.page(result, decision, permit),
        }
    }
}

/// Hands each order to a task of its own.
pub(crate) async fn dispatch(
    mut orders: mpsc::Receiver<Order>,
    desk: Arc<Desk>,
    permits: Arc<Semaphore>,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut out = JoinSet::new();
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let Some(order) = order else {
            break;
        };
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok(permit) = permit else {
            break;
        };
        let desk = Arc::clone(&desk);
        out.spawn(async move { desk.carry_out(order, permit).await });
        while out.try_join_next().is_some() {}
    }
    let rest = async { while out.join_next().await.is_some() {} };
    // What does not end in time stays claimed and is fetched by the next run.
    let _ = tokio::time::timeout(LAST_REQUESTS, rest).await;
}

/// Carries announcements over: the spider calls, the URL server's inbox may be full for a moment.
pub(crate) fn announce_to(urlserver: Handle) -> mpsc::UnboundedSender<(TransId, Timestamp)> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some((trans, at)) = receiver.recv().await {
            if urlserver.sent(trans, at).await.is_err() {
                break;
            }
        }
    });
    sender
}

/// Takes what the URL server has to say to the doc index.
pub(crate) async fn hear(
    mut notices: mpsc::Receiver<Notice>,
    harvest: Arc<Harvest>,
    retry: RetryOptions,
    clock: Clock,
) {
    let indexer = harvest.indexer.clone();
    while let Some(notice) = notices.recv().await {
        let at = clock();
        match notice {
            Notice::NeedCandidates { want, reject } => indexer.wanted(want, reject),
            Notice::Refuse {
                candidate,
                outcome,
                again,
            } => {
                harvest.count_refusal(&outcome);
                harvest.watch_seeds(&candidate.url, &outcome, false);
                let event = retry::refusal(&candidate, outcome, again, &retry, at);
                harvest.given_up(&candidate, &event);
                indexer.event(event, None);
            }
            Notice::Return { candidates, until } => {
                if let (Some(first), Some(until)) = (candidates.first(), until) {
                    indexer.event(
                        Event::Host {
                            host: first.key.host,
                            not_before: until,
                        },
                        None,
                    );
                }
                let keys = candidates.iter().map(|candidate| candidate.key).collect();
                indexer.event(Event::Return { keys }, None);
            }
            Notice::DelayCapped {
                origin,
                asked,
                kept,
            } => {
                tracing::info!(origin, ?asked, ?kept, "crawl-delay capped");
            }
            Notice::Sitemaps { origin, urls } => {
                if let Some(event) = harvest.sitemaps(&origin, &urls, at) {
                    indexer.event(event, None);
                }
            }
            Notice::RecallRobots { origin } => indexer.recall(origin),
            Notice::StoreRobots { origin, record } => {
                indexer.event(
                    Event::Robots {
                        origin,
                        robots: record,
                    },
                    None,
                );
            }
        }
    }
}
