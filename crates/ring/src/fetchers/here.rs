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
use orbweaver_model::{
    CrawlUrl, Event, FetchRequest, FetchResult, Order, Subject, Timestamp, TransId, Visit,
};
use orbweaver_spider::{Gate, Refused, Spider};
use orbweaver_urlserver::{Done, Handle, Notice};

use crate::harvest::Harvest;
use crate::redirect;
use crate::retry::{self, Decision};
use crate::sync::lock;
use orbweaver_model::Clock;

/// How long requests that are out may take to end when the crawl is told to stop. With the last commit
/// it stays below the ten seconds that a user waits.
pub(crate) const LAST_REQUESTS: Duration = Duration::from_secs(6);

/// What a worker needs to carry out an order.
pub(crate) struct Desk {
    pub(crate) spider: Spider,
    /// Documents that were fetched before are asked for with HEAD first.
    pub(crate) head_first: bool,
    pub(crate) counter: Counter,
    pub(crate) announcements: mpsc::UnboundedSender<(TransId, Timestamp)>,
    pub(crate) given_up: GivenUp,
}

impl Desk {
    async fn carry_out(&self, order: Order, permit: OwnedSemaphorePermit) {
        let (trans, request) = (order.trans, order.request(self.head_first));
        let gate = Announcer {
            trans,
            announcements: &self.announcements,
        };
        let given_up = self.given_up.register(trans);
        let result = tokio::select! {
            result = self.spider.fetch(&request, &gate) => result,
            Ok(()) = given_up => Err(Refused),
        };
        self.given_up.forget(trans);
        match result {
            Ok(result) => self.counter.take(order, result, permit).await,
            Err(Refused) => self.counter.give_up(order, permit).await,
        }
    }
}

/// Passes on that a request has been written.
struct Announcer<'a> {
    trans: TransId,
    announcements: &'a mpsc::UnboundedSender<(TransId, Timestamp)>,
}

impl Gate for Announcer<'_> {
    fn may_send(&self, _request: &FetchRequest) -> bool {
        true
    }

    fn sent(&self, at: Timestamp) {
        // Nobody listens only when the crawl is over.
        let _ = self.announcements.send((self.trans, at));
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
    async fn take(&self, order: Order, result: FetchResult, permit: OwnedSemaphorePermit) {
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
                self.keep_robots(&url, &result);
            }
        }
    }

    /// An order was given up because others need its place: its URL goes back to the queue as it came.
    async fn give_up(&self, order: Order, permit: OwnedSemaphorePermit) {
        let _ = self.urlserver.given_up(order.trans).await;
        if let Subject::Page(candidate) = order.subject {
            let keys = vec![candidate.key];
            let event = Event::Return { keys };
            self.harvest.indexer.event(event, Some(permit));
        }
    }

    /// What the URL server is to hear of a robots.txt.
    pub(crate) fn judge_robots(&self, url: &CrawlUrl, result: &FetchResult) -> Done {
        let (moved_to, _) = redirect::location(url, result, &self.harvest.outlinks);
        Done::robots(result, moved_to, retry::asked_for(result))
    }

    /// What the URL server is to hear when the order is over, and whether it is repeated. A host that asks for
    /// patience gets it at once, before its place is free, lest the next order slip out.
    pub(crate) async fn judge(&self, visit: &Visit) -> (Done, Decision) {
        let decision = retry::decide(visit, &self.retry, &self.harvest.limits);
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
            self.harvest.indexer.event(wait, None);
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
    pub(crate) fn keep_robots(&self, url: &CrawlUrl, result: &FetchResult) {
        (self.harvest).watch_seeds(url, &result.outcome, result.exchange.is_some());
        self.harvest.robots(url, result);
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
