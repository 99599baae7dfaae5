//! The shell around the heart: it waits, resolves, and passes messages and actions on.
//!
//! What may be asked when is decided in `heart`. Here are the queues between the URL server and its
//! neighbours:
//!
//! - inbox: everyone with a `Handle` → here, `INBOX` messages; senders wait when it is full. The loop
//!   takes from it whatever else it does, so that nobody who both sends here and reads from here can
//!   lock up with it.
//! - orders: here → spider, at least `in_flight`; never full, because no more orders are out than that.
//! - notices: here → doc index, as large as the caller made it; while it is full, notices wait here,
//!   as many as the URLs that were handed in.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{
    Candidate, Clock, CrawlUrl, HostSetting, Limits, Order, Outcome, OutcomeClass, Pace,
    RobotsRecord, Timestamp, TransId, UrlKey,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{Id, JoinHandle, JoinSet};
use tracing::{debug, error};

use crate::heart::{Heart, Resend};
use crate::message::{Action, Census, Done, Notice, Resolved, RobotsAnswer, Whereabouts};
use crate::options::{Rates, UrlServerError, UrlServerOptions};
use orbweaver_robots::Robots;

/// Messages that wait for the loop. A few hundred spiders can report at once without waiting.
const INBOX: usize = 1024;
/// Messages taken at once, so that one wake-up of the task serves many.
const BATCH: usize = 256;
/// Bytes of a robots.txt that takes longer to read than a task should keep its thread.
const LONG: usize = 16 << 10;
/// Names that are being resolved at once.
const RESOLUTIONS: usize = 256;

/// What `Resolve` gives.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Resolved, Outcome>> + Send + 'a>>;

/// Finds the addresses of hosts.
pub trait Resolve: Send + Sync {
    /// The addresses of `host`, which may itself be an address, or what becomes of its URLs:
    /// failed_dns when there is no address, denied_policy when it is a forbidden one.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The neighbours of a URL server.
pub struct Links {
    /// Takes the orders to the spider; its capacity is at least `in_flight`.
    pub orders: mpsc::Sender<Order>,
    /// Takes the names of orders that are to be given up; none when the spider cannot do so. Each is answered with `done`
    /// or `given_up`. What finds it full is not given up.
    pub give_up: Option<mpsc::Sender<TransId>>,
    /// Takes what the doc index must hear.
    pub notices: mpsc::Sender<Notice>,
    /// Finds addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Tells the time.
    pub clock: Clock,
}

/// A running URL server.
pub struct UrlServer {
    heart: Heart,
    links: Links,
    inbox: mpsc::Receiver<Message>,
    /// Notices for which there was no room yet.
    outbox: VecDeque<Notice>,
    /// Hosts for which no resolution is free yet; each slot is here at most once.
    to_resolve: VecDeque<Arc<str>>,
    resolving: JoinSet<Result<Resolved, Outcome>>,
    resolving_hosts: HashMap<Id, Arc<str>>,
    resolve_timeout: Duration,
}

enum Message {
    Candidates(Vec<Candidate>),
    Sent(TransId, Timestamp),
    Done(TransId, Box<Done>),
    GivenUp(TransId),
    Resend(TransId, oneshot::Sender<Resend>),
    Hold(String, Timestamp),
    KnownRobots(String, Option<Box<(RobotsRecord, Robots)>>),
    KnownPaces(Vec<(String, Pace)>),
    Drain(oneshot::Sender<Vec<Candidate>>),
    Census(oneshot::Sender<Census>),
    Pause(bool),
    Set(String, HostSetting),
    Rates(Rates),
    WhereIs(CrawlUrl, UrlKey, oneshot::Sender<Whereabouts>),
}

/// How the rest of the ring speaks to the URL server. It ends when the last one is dropped.
#[derive(Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    /// The product token and the limits that a robots.txt is read with.
    reading: Arc<(String, Limits)>,
    /// Whose turn it is to have a long one read.
    turn: Arc<Semaphore>,
}

impl UrlServer {
    /// Starts a URL server on the current runtime.
    ///
    /// # Errors
    ///
    /// Names the first option that makes no sense.
    pub fn spawn(
        mut options: UrlServerOptions,
        links: Links,
    ) -> Result<(Handle, JoinHandle<()>), UrlServerError> {
        options.can_give_up = links.give_up.is_some();
        if links.orders.max_capacity() < options.in_flight {
            return Err(UrlServerError::Option {
                name: "in_flight",
                must: "at most the capacity of the channel for orders",
            });
        }
        let resolve_timeout = options.limits.total_timeout;
        let reading = Arc::new((options.agent.clone(), options.limits.clone()));
        let heart = Heart::new(options, (links.clock)())?;
        let (sender, inbox) = mpsc::channel(INBOX);
        let server = Self {
            heart,
            links,
            inbox,
            outbox: VecDeque::new(),
            to_resolve: VecDeque::new(),
            resolving: JoinSet::new(),
            resolving_hosts: HashMap::new(),
            resolve_timeout,
        };
        let task = tokio::spawn(server.run());
        let handle = Handle {
            inbox: sender,
            reading,
            turn: Arc::new(Semaphore::new(1)),
        };
        Ok((handle, task))
    }

    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let notices = self.links.notices.clone();
        // The first tick makes the heart ask for candidates.
        self.heart.tick(self.now());
        while self.perform() {
            let now = self.now();
            let wake = self.heart.next_wake();
            let sleep = wake.map(|at| at.since(now)).unwrap_or_default();
            tokio::select! {
                taken = self.inbox.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        break;
                    }
                    let now = self.now();
                    batch.drain(..).for_each(|message| self.take(message, now));
                }
                room = notices.reserve(), if !self.outbox.is_empty() => {
                    match (room, self.outbox.pop_front()) {
                        (Ok(room), Some(notice)) => room.send(notice),
                        _ => self.outbox.clear(),
                    }
                }
                Some(found) = self.resolving.join_next_with_id() => self.resolved(found),
                () = tokio::time::sleep(sleep), if wake.is_some() => {}
            }
            if self.heart.next_wake().is_some_and(|at| at <= self.now()) {
                self.heart.tick(self.now());
            }
        }
        for notice in self.outbox {
            // Whoever should hear it may have gone already.
            let _ = notices.send(notice).await;
        }
        debug!("url server ended");
    }

    fn now(&self) -> Timestamp {
        (self.links.clock)()
    }

    fn take(&mut self, message: Message, now: Timestamp) {
        match message {
            Message::Candidates(candidates) => self.heart.candidates(candidates, now),
            Message::Sent(trans, at) => self.heart.sent(trans, at, now),
            Message::Done(trans, done) => self.heart.done(trans, *done, now),
            Message::GivenUp(trans) => self.heart.given_up(trans, now),
            Message::Resend(trans, answer) => {
                let _ = answer.send(self.heart.resend(trans, now));
            }
            Message::Hold(host, until) => self.heart.hold(&host, until, now),
            Message::KnownRobots(origin, kept) => {
                let kept = kept.map(|kept| *kept);
                self.heart.recalled_robots(&origin, kept, now);
            }
            Message::KnownPaces(paces) => self.heart.known_paces(&paces, now),
            // One who no longer waits for the answer needs none.
            Message::Drain(answer) => drop(answer.send(self.heart.drain(now))),
            Message::Census(answer) => drop(answer.send(self.heart.census())),
            Message::Pause(paused) => self.heart.pause(paused, now),
            Message::Set(host, setting) => self.heart.set(&host, setting, now),
            Message::Rates(rates) => self.heart.set_rates(rates, now),
            Message::WhereIs(url, key, answer) => {
                let _ = answer.send(self.heart.whereis(&url, key));
            }
        }
    }

    /// Does what the heart wants; false when that has become impossible.
    fn perform(&mut self) -> bool {
        for action in self.heart.take_actions() {
            match action {
                Action::Send(order) => {
                    if let Err(failure) = self.links.orders.try_send(order) {
                        error!(%failure, "the spider takes no orders, url server ends");
                        return false;
                    }
                }
                // It ends by itself when nobody is told.
                Action::GiveUp { order } => {
                    let _ = self.links.give_up.as_ref().map(|to| to.try_send(order));
                }
                Action::Resolve { host } => self.to_resolve.push_back(host),
                Action::Tell(notice) => self.outbox.push_back(notice),
            }
        }
        while self.resolving.len() < RESOLUTIONS
            && let Some(host) = self.to_resolve.pop_front()
        {
            self.resolve(host);
        }
        true
    }

    fn resolve(&mut self, host: Arc<str>) {
        let resolver = self.links.resolver.clone();
        let (name, limit) = (host.clone(), self.resolve_timeout);
        let task = self.resolving.spawn(async move {
            match tokio::time::timeout(limit, resolver.resolve(&name)).await {
                Ok(found) => found,
                Err(_) => Err(Outcome::because(
                    OutcomeClass::FailedDns,
                    "the resolver did not answer",
                )),
            }
        });
        self.resolving_hosts.insert(task.id(), host);
    }

    fn resolved(&mut self, found: Result<(Id, Result<Resolved, Outcome>), tokio::task::JoinError>) {
        let (id, found) = found.unwrap_or_else(|failure| {
            error!(%failure, "the resolver failed");
            let outcome = Outcome::because(OutcomeClass::FailedDns, "the resolver failed");
            (failure.id(), Err(outcome))
        });
        if let Some(host) = self.resolving_hosts.remove(&id) {
            self.heart.resolved(&host, found, self.now());
        }
    }
}

impl Handle {
    /// Answers a `NeedCandidates`, with an empty list when there are none.
    ///
    /// # Errors
    ///
    /// The URL server has stopped; so for all that follow.
    pub async fn candidates(&self, candidates: Vec<Candidate>) -> Result<(), UrlServerError> {
        self.send(Message::Candidates(candidates)).await
    }

    /// Says that the request of an order was written; wanted for orders with `announce`.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn sent(&self, trans: TransId, at: Timestamp) -> Result<(), UrlServerError> {
        self.send(Message::Sent(trans, at)).await
    }

    /// Says that an order is over: once for each, whatever came of it. A robots.txt is read here, by the task of
    /// whoever brings it.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn done(&self, trans: TransId, mut done: Done) -> Result<(), UrlServerError> {
        if let Some(answer) = done.robots.take() {
            done.robots = Some(self.read(answer).await);
        }
        self.send(Message::Done(trans, Box::new(done))).await
    }

    /// Says that an order was given up, as was wanted: instead of `done`.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn given_up(&self, trans: TransId) -> Result<(), UrlServerError> {
        self.send(Message::GivenUp(trans)).await
    }

    /// Gets a new name for an order that was lost and can be sent again at once, or hears when it may be.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn resend(&self, trans: TransId) -> Result<Resend, UrlServerError> {
        let (answer, renamed) = oneshot::channel();
        self.send(Message::Resend(trans, answer)).await?;
        renamed.await.map_err(|_| UrlServerError::Stopped)
    }

    /// Says that a host asked for patience (Retry-After).
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn hold(&self, host: &str, until: Timestamp) -> Result<(), UrlServerError> {
        self.send(Message::Hold(host.to_owned(), until)).await
    }

    /// Answers a `RecallRobots`, with none when no robots.txt is kept for the origin. The file is read here: not by a
    /// task that others wait for.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn known_robots(
        &self,
        origin: String,
        kept: Option<RobotsRecord>,
    ) -> Result<(), UrlServerError> {
        let (agent, limits) = &*self.reading;
        let kept = kept.map(|record| {
            let rules = Robots::parse(&record.body, agent, limits.robots_max_bytes);
            Box::new((record, rules))
        });
        self.send(Message::KnownRobots(origin, kept)).await
    }

    /// Brings back how hosts have answered: before their candidates. What is known here counts more.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn known_paces(&self, paces: Vec<(String, Pace)>) -> Result<(), UrlServerError> {
        self.send(Message::KnownPaces(paces)).await
    }

    /// Stops the handing out of orders and gets back every URL that is not out.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn drain(&self) -> Result<Vec<Candidate>, UrlServerError> {
        let (answer, given_back) = oneshot::channel();
        self.send(Message::Drain(answer)).await?;
        given_back.await.map_err(|_| UrlServerError::Stopped)
    }

    /// Counts everything.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn census(&self) -> Result<Census, UrlServerError> {
        let (answer, census) = oneshot::channel();
        self.send(Message::Census(answer)).await?;
        census.await.map_err(|_| UrlServerError::Stopped)
    }

    /// Lets no more orders out, or lets them out again.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn pause(&self, paused: bool) -> Result<(), UrlServerError> {
        self.send(Message::Pause(paused)).await
    }

    /// Sets something for a host: after the doc index knows it, so that a blocked host is not offered.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn set(&self, host: &str, setting: HostSetting) -> Result<(), UrlServerError> {
        self.send(Message::Set(host.to_owned(), setting)).await
    }

    /// Other rates from now on.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn set_rates(&self, rates: Rates) -> Result<(), UrlServerError> {
        self.send(Message::Rates(rates)).await
    }

    /// Where a URL is, and what it waits for.
    #[allow(clippy::missing_errors_doc, reason = "said at the first")]
    pub async fn whereis(&self, url: CrawlUrl, key: UrlKey) -> Result<Whereabouts, UrlServerError> {
        let (answer, found) = oneshot::channel();
        self.send(Message::WhereIs(url, key, answer)).await?;
        found.await.map_err(|_| UrlServerError::Stopped)
    }

    /// Reads a robots.txt; a long one beside the runtime, one at a time, so that nobody's fetch waits for it.
    async fn read(&self, answer: RobotsAnswer) -> RobotsAnswer {
        let is_long = |answer: &RobotsAnswer| matches!(answer, RobotsAnswer::Fetched { body, .. } if body.len() > LONG);
        let reading = Arc::clone(&self.reading);
        if !is_long(&answer) {
            return answer.read(&reading.0, &reading.1);
        }
        let _turn = self.turn.acquire().await;
        let read = tokio::task::spawn_blocking(move || answer.read(&reading.0, &reading.1));
        read.await.unwrap_or_else(|failure| {
            error!(%failure, "the reader of robots.txt failed");
            let outcome = Outcome::because(OutcomeClass::DeniedRobots, "the reader failed");
            RobotsAnswer::unreachable(&outcome)
        })
    }

    async fn send(&self, message: Message) -> Result<(), UrlServerError> {
        self.inbox
            .send(message)
            .await
            .map_err(|_| UrlServerError::Stopped)
    }
}
