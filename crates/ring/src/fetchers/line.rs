//! The URL server as a daemon: the ring with a spider and a store that are other processes.
//!
//! Doc index, URL server, intake and extract are those of a crawl. Orders go to spiders by the line protocol; results come
//! back from the store by the results protocol, in the order in which they became durable, and how far they are
//! folded is kept in the doc index. So a result is never lost: what was not folded comes again.

mod orders;
mod restore;
mod spiders;
mod window;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use orbweaver_config::{Mode, UrlServerSettings};
use orbweaver_docindex::Reader;
use orbweaver_model::{
    Clock, CrawlUrl, Event, FetchResult, Order, Outcome, OutcomeClass, Report, Subject, Visit,
};
use orbweaver_urlserver::{Resend, RobotsAnswer};
use orbweaver_wire::{
    Complaints, Decoded, Dialect, Followed, Follower, FromSpider, Place, Places, Record, Service,
    WireError,
};

use self::orders::{Orders, Over};
use self::spiders::{Heard, Spider};
use self::window::Window;
use crate::fetchers::here::{Counter, LAST_REQUESTS};
use crate::indexer::Standing;
use crate::sync::lock;

/// Words of spiders that wait to be taken in.
const WORDS: usize = 1024;
/// The most credit that a spider can have: more than any has sockets.
const MAX_CREDIT: u64 = 1 << 20;
/// How long no result may come after the store is found before the first order goes out. What the process before has
/// not folded comes at once, and is not to be fetched again.
const QUIET: Duration = Duration::from_millis(250);

/// Where spiders and store are.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    pub(crate) spiders: Vec<Place>,
    pub(crate) dialect: Dialect,
    /// Timeout_Spider_Status.
    pub(crate) status_timeout: Duration,
    /// None when the spiders' store is nobody's business here: then DONE is all that is known of a document.
    pub(crate) store: Option<Place>,
    /// Bytes of one result.
    pub(crate) max_data: usize,
}

/// What ties the desk to the rest of the ring.
pub(crate) struct Ties {
    pub(crate) counter: Counter,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) reader: Reader,
    pub(crate) standing: Arc<Mutex<Standing>>,
    /// How far results are folded.
    pub(crate) followed: u64,
    pub(crate) clock: Clock,
    /// Orders that can be out.
    pub(crate) room: usize,
}

/// What takes the place of the desk.
pub(crate) struct LineDesk {
    counter: Counter,
    permits: Arc<Semaphore>,
    reader: Reader,
    standing: Arc<Mutex<Standing>>,
    clock: Clock,
    orders: Orders,
    peers: Vec<Peer>,
    dialect: Dialect,
    heard: mpsc::Receiver<Heard>,
    follower: Option<Follower>,
    /// It has been said that the store cannot be reached.
    store_is_lost: bool,
    /// When orders may go out, once the store is found; none before that.
    quiet_from: Option<Instant>,
    tick: Duration,
}

struct Peer {
    /// Host and port, for the log.
    name: String,
    /// The way to it; none while it is not connected.
    orders: Option<mpsc::Sender<Order>>,
    /// Orders that it has asked for and not got.
    credit: u64,
    /// Orders that it gets without asking.
    window: Window,
    /// About its silence.
    complaints: Complaints,
}

impl Elsewhere {
    /// What the settings say of them. Reads the key.
    pub fn new(settings: &UrlServerSettings) -> Result<Self, WireError> {
        let places = Places::new(settings.key_file.as_deref())?;
        let spiders = settings.spiders.iter();
        let store = settings.store.as_ref();
        Ok(Self {
            spiders: spiders
                .map(|at| places.at(&at.host, at.port, Service::Line))
                .collect::<Result<_, _>>()?,
            dialect: match settings.mode {
                Mode::Push => Dialect::Push,
                Mode::Pull => Dialect::Pull,
            },
            status_timeout: settings.status_timeout,
            store: store
                .map(|at| places.at(&at.host, at.port, Service::Results))
                .transpose()?,
            max_data: settings.max_data,
        })
    }

    /// Connects to everybody, now and whenever they come back.
    pub(crate) fn desk(self, ties: Ties) -> LineDesk {
        let (sender, heard) = mpsc::channel(WORDS);
        for (number, place) in self.spiders.iter().enumerate() {
            let spider = Spider {
                number,
                place: place.clone(),
                dialect: self.dialect,
                room: ties.room,
                heard: sender.clone(),
                clock: Clock::clone(&ties.clock),
            };
            tokio::spawn(spider.run());
        }
        let follower = self.store.map(|place| {
            let source = orbweaver_wire::follower::Source {
                host: place.host,
                port: place.number,
                max_data: self.max_data,
            };
            Follower::start(place.port, source, ties.followed)
        });
        LineDesk {
            orders: Orders::new(self.status_timeout, follower.is_some()),
            quiet_from: follower.is_none().then(Instant::now),
            counter: ties.counter,
            permits: ties.permits,
            reader: ties.reader,
            standing: ties.standing,
            clock: ties.clock,
            peers: (self.spiders.iter())
                .map(|place| Peer {
                    name: format!("{}:{}", place.host, place.number),
                    orders: None,
                    credit: 0,
                    window: Window::new(ties.room),
                    complaints: Complaints::default(),
                })
                .collect(),
            dialect: self.dialect,
            heard,
            follower,
            store_is_lost: false,
            tick: (self.status_timeout / 8)
                .clamp(Duration::from_millis(20), Duration::from_millis(500)),
        }
    }
}

impl LineDesk {
    /// Sends orders and takes in what comes back, until told to stop; then waits a while for what is out.
    pub(crate) async fn run(
        mut self,
        mut queue: mpsc::Receiver<Order>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last_call = None;
        loop {
            let now = (self.clock)();
            // What is due already waits for a spider, and that is heard of.
            let lost_at = self.orders.lost_at().filter(|at| *at > now);
            tokio::select! {
                // Words before the clock: after a pause of this process nothing must seem overdue that is not.
                biased;
                Some(heard) = self.heard.recv() => self.hear(heard).await,
                Some(followed) = next(&mut self.follower) => self.follow(followed).await,
                Some(order) = queue.recv(), if last_call.is_none() => self.orders.add(order, now),
                () = told(&mut stop), if last_call.is_none() => {
                    last_call = Some(Instant::now() + LAST_REQUESTS);
                }
                () = tokio::time::sleep(lost_at.unwrap_or(now).since(now)), if lost_at.is_some() => {}
                _ = ticks.tick() => {
                    self.look_for_silence(now).await;
                    if let Some(follower) = &self.follower {
                        follower.have(lock(&self.standing).results);
                    }
                }
            }
            match last_call {
                Some(end) if self.orders.is_empty() || Instant::now() >= end => return,
                Some(_) => {}
                None => self.send_orders().await,
            }
        }
    }

    /// Gives waiting orders to spiders that can take them.
    async fn send_orders(&mut self) {
        if self.quiet_from.is_none_or(|from| from > Instant::now()) {
            return;
        }
        while let Some(spider) = self.choose() {
            self.release_lost().await;
            let Some(order) = self.orders.next().cloned() else {
                return;
            };
            let trans = order.trans;
            let Some(peer) = self.peers.get_mut(spider) else {
                return;
            };
            // It has room for all that can be out; when it takes none, it is about to be reported gone.
            if peer
                .orders
                .as_ref()
                .is_none_or(|way| way.try_send(order).is_err())
            {
                peer.orders = None;
                continue;
            }
            peer.credit = peer.credit.saturating_sub(1);
            let now = (self.clock)();
            self.orders.give(spider, now);
            // The URL server ends only when this does.
            let _ = self.counter.urlserver.sent(trans, now).await;
        }
    }

    /// Lost orders go out again as their hosts allow, before any that were never sent.
    async fn release_lost(&mut self) {
        let now = (self.clock)();
        while let Some(trans) = self.orders.next_lost(now) {
            match self.counter.urlserver.resend(trans).await {
                Ok(Resend::Now(new)) => return self.orders.rename(trans, new),
                Ok(Resend::At(until)) => self.orders.put_off(trans, until),
                Ok(Resend::Never) | Err(_) => self.orders.forget(trans),
            }
        }
    }

    /// What was not heard of for too long is sent again, and who kept silent about it gets less at once.
    async fn look_for_silence(&mut self, now: orbweaver_model::Timestamp) {
        let (over, silent) = self.orders.overdue(now);
        for over in over {
            self.end(over).await;
        }
        for (spider, silence) in silent {
            let Some(peer) = self.peers.get_mut(spider) else {
                continue;
            };
            peer.window.fell_silent(silence.at_work, now);
            if let Some(times) = peer.complaints.count(now) {
                warn!(
                    spider = peer.name,
                    orders = silence.lost,
                    at_work = silence.at_work,
                    times,
                    "a spider says nothing of some orders for Timeout_Spider_Status; they are sent again"
                );
            }
        }
    }

    /// The spider for the next order: of those that are there, and want one if that is the custom, the one with
    /// the fewest.
    fn choose(&self) -> Option<usize> {
        let able = (0..).zip(&self.peers).filter(|(number, peer)| {
            let wants = match self.dialect {
                Dialect::Push => self.orders.count_of(*number) < peer.window.size(),
                Dialect::Pull => peer.credit > 0,
            };
            peer.orders.is_some() && wants
        });
        able.map(|(number, _)| number)
            .min_by_key(|number| self.orders.count_of(*number))
    }

    async fn hear(&mut self, heard: Heard) {
        let now = (self.clock)();
        match heard {
            Heard::Up(number, orders) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.orders = Some(orders);
                    peer.credit = 0;
                    peer.window.restart();
                }
            }
            Heard::Down(number) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.orders = None;
                    peer.credit = 0;
                }
                for over in self.orders.gone(number, now) {
                    self.end(over).await;
                }
            }
            Heard::Word(number, FromSpider::Get(count)) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.credit = peer.credit.saturating_add(count.into()).min(MAX_CREDIT);
                }
            }
            Heard::Word(number, FromSpider::Working(id)) => self.orders.working(number, id, now),
            Heard::Word(number, FromSpider::Done(id)) => {
                if let Some((over, order)) = self.orders.done(number, id, now) {
                    match self.follower {
                        Some(_) => self.end(over).await,
                        None => self.end_unseen(over, order).await,
                    }
                }
            }
        }
    }

    async fn end(&mut self, over: Over) {
        if let Some((spider, turn)) = over.turn {
            // With the one that is over.
            let had = self.orders.count_of(spider) + 1;
            if let Some(peer) = self.peers.get_mut(spider) {
                peer.window.came_back(turn, had, (self.clock)());
            }
        }
        let _ = self.counter.urlserver.done(over.trans, over.done).await;
    }

    /// The end of an order whose result nobody here will see. A robots.txt that cannot be read is as good as none:
    /// whoever runs a URL server without a store has taken that upon himself, and is warned at the start.
    async fn end_unseen(&mut self, mut over: Over, order: Order) {
        if let Subject::Page(candidate) = order.subject {
            let said = "a spider said DONE; what came of it is with its store";
            let report = Report {
                outcome: Outcome::because(OutcomeClass::Success, said),
                ip: Some(order.ip),
                ..Report::unasked(Outcome::plain(OutcomeClass::Success), (self.clock)())
            };
            let event = Event::Done {
                key: candidate.key,
                report,
                links: Vec::new(),
                revisit: None,
                archived: None,
            };
            self.counter.harvest.indexer.event(event, None);
        } else {
            over.done.robots = Some(RobotsAnswer::Unavailable { status: 404 });
        }
        self.end(over).await;
    }

    async fn follow(&mut self, followed: Followed) {
        match followed {
            Followed::Connected => {
                info!("connected to the store");
                self.store_is_lost = false;
                self.quiet_from = self.quiet_from.or(Some(Instant::now() + QUIET));
            }
            // Once is enough: it may be down for hours.
            Followed::Lost(why) => {
                if !std::mem::replace(&mut self.store_is_lost, true) {
                    warn!(why, "no results from the store; trying on");
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
                            why, "a result of the store that says nothing, dropped"
                        );
                    }
                }
                let event = Event::Results { position };
                self.counter.harvest.indexer.event(event, None);
            }
        }
    }

    /// Takes in a result: of an order that is out, or of one that an earlier process sent.
    async fn take_in(&mut self, record: Record) {
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
            return;
        };
        match self.orders.answered_by(record.doc_id, &record.url) {
            Some((number, order, sent)) => {
                let now = (self.clock)();
                let limits = &self.counter.harvest.limits;
                let took = Duration::from_millis(record.millis.into());
                let result = restore::result(record, sent, now, limits);
                let result = FetchResult {
                    connected: result.exchange.is_some().then_some(order.ip),
                    ..result
                };
                let done = match order.subject {
                    Subject::Robots(url) => {
                        let done = self.counter.judge_robots(&url, &result);
                        self.counter.keep_robots(&url, &result);
                        done
                    }
                    Subject::Page(candidate) => {
                        let visit = Visit {
                            candidate,
                            ip: Some(order.ip),
                            result,
                        };
                        let (done, decision) = self.counter.judge(&visit).await;
                        self.counter.keep(visit, decision, permit);
                        done
                    }
                };
                if let Some(over) = self.orders.result(number, done, took, now) {
                    self.end(over).await;
                }
            }
            None => self.take_in_late(record, permit).await,
        }
    }

    async fn take_in_late(&self, record: Record, permit: OwnedSemaphorePermit) {
        let harvest = &self.counter.harvest;
        let Ok(url) = CrawlUrl::from_canonical(&record.url) else {
            return;
        };
        // The robots.txt of a time before is asked for again; a finished URL was sent twice.
        let entry = match self.reader.entry(url.key(harvest.seed)) {
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
            candidate: harvest.candidate(entry),
            ip: None,
            result: restore::result(record, None, (self.clock)(), &harvest.limits),
        };
        let (_, decision) = self.counter.judge(&visit).await;
        self.counter.keep(visit, decision, permit);
    }
}

/// Waits for the word to stop, or until nobody is left to say it.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What a follower has to tell; never when there is none.
async fn next(follower: &mut Option<Follower>) -> Option<Followed> {
    match follower {
        Some(follower) => follower.next().await,
        None => std::future::pending().await,
    }
}
