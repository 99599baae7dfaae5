//! Orders carried out by spiders that are other processes, spoken to by the line protocol.
//!
//! Their results come back from the store by the results protocol, in the order in which they became durable, and how far
//! they are folded is kept in the doc index. So a result is never lost: what was not folded comes again.

mod restore;
mod results;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tracing::warn;

use orbweaver_config::{Mode, UrlServerSettings};
use orbweaver_docindex::Reader;
use orbweaver_model::{
    Clock, Event, Order, Outcome, OutcomeClass, Report, Subject, Timestamp, TransId,
};
use orbweaver_urlserver::{Resend, RobotsAnswer};
use orbweaver_wire::{
    Dialect, Followed, Follower, FromSpider, Place, Places, Service, Terms, ToSpider, WireError,
    Word, extension,
};

use super::gate::SendGate;
use super::intake::ResultIntake;
use super::{Fetchers, LAST_REQUESTS, Work};
use crate::indexer::Published;
use crate::sync::lock;
use orbweaver_remote::{Heard, Orders, Over, Peer, Spider, Wish};

/// Words of spiders that wait to be taken in.
const WORDS: usize = 1024;

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

/// What the line form needs of the rest of the ring.
pub(crate) struct LineParts {
    pub(crate) intake: ResultIntake,
    /// Results that may be on their way to the doc index.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) reader: Reader,
    pub(crate) standing: Published,
    /// How far results are folded.
    pub(crate) followed: u64,
    pub(crate) clock: Clock,
    /// Orders that can be out.
    pub(crate) room: usize,
    /// Documents that were fetched before are requested with HEAD first, from spiders that support it.
    pub(crate) head_first: bool,
}

/// Spiders and a store elsewhere.
pub(crate) struct Line {
    intake: ResultIntake,
    permits: Arc<Semaphore>,
    reader: Reader,
    standing: Published,
    clock: Clock,
    head_first: bool,
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
    pub(crate) fn connect(self, parts: LineParts) -> Line {
        let (sender, heard) = mpsc::channel(WORDS);
        for (number, place) in self.spiders.iter().enumerate() {
            let spider = Spider {
                number,
                place: place.clone(),
                dialect: self.dialect,
                room: parts.room,
                heard: sender.clone(),
                clock: Clock::clone(&parts.clock),
            };
            tokio::spawn(spider.run());
        }
        let follower = self.store.map(|place| {
            let source = orbweaver_wire::follower::Source {
                host: place.host,
                port: place.number,
                max_data: self.max_data,
            };
            Follower::start(place.port, source, parts.followed)
        });
        Line {
            orders: Orders::new(self.status_timeout, follower.is_some()),
            quiet_from: follower.is_none().then(Instant::now),
            intake: parts.intake,
            permits: parts.permits,
            reader: parts.reader,
            standing: parts.standing,
            clock: parts.clock,
            head_first: parts.head_first,
            peers: (self.spiders.iter())
                .map(|place| Peer::new(format!("{}:{}", place.host, place.number), parts.room))
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

impl Fetchers for Line {
    async fn run(mut self, mut work: Work) {
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut gate_changes = work.gate.changes();
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
                Ok(()) = gate_changes.changed() => self.look_at_gate(&work.gate).await,
                Some(trans) = work.give_up.recv() => self.give_up(trans).await,
                Some(order) = work.orders.recv(), if last_call.is_none() => self.orders.add(order, now),
                () = told(&mut work.stop), if last_call.is_none() => {
                    last_call = Some(Instant::now() + LAST_REQUESTS);
                    work.gate.close();
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
                None => self.send_orders(&work.gate).await,
            }
        }
    }
}

impl Line {
    /// Gives waiting orders to spiders that can take them.
    async fn send_orders(&mut self, gate: &SendGate) {
        if self.quiet_from.is_none_or(|from| from > Instant::now()) {
            return;
        }
        while let Some(spider) = self.choose() {
            self.release_lost().await;
            let Some(order) = self.orders.next_waiting().cloned() else {
                return;
            };
            let trans = order.trans;
            // The last moment that is ours: what a spider has is asked for when its request can go out.
            if !gate.may_send(order.url()) {
                self.give_back(trans).await;
                continue;
            }
            let terms = Terms::of(&order.request(self.head_first));
            let announces = terms.announce;
            let Some(peer) = self.peers.get_mut(spider) else {
                return;
            };
            let Some(agreed) = peer.send(order, terms) else {
                continue;
            };
            let now = (self.clock)();
            self.orders.give(spider, now);
            // Who knows the extension says itself when the request has been written.
            if !(agreed && announces) {
                self.announce(trans, now).await;
            }
        }
    }

    async fn announce(&mut self, trans: TransId, at: Timestamp) {
        self.orders.announced(trans);
        // The URL server ends only when this does.
        let _ = self.intake.urlserver.sent(trans, at).await;
    }

    /// Lost orders go out again as their hosts allow, before any that were never sent.
    async fn release_lost(&mut self) {
        let now = (self.clock)();
        while let Some(trans) = self.orders.next_lost(now) {
            match self.intake.urlserver.resend(trans).await {
                Ok(Resend::Now(new)) => return self.orders.rename(trans, new),
                Ok(Resend::At(until)) => self.orders.put_off(trans, until),
                Ok(Resend::Never) | Err(_) => self.orders.forget(trans),
            }
        }
    }

    /// What was not heard of for too long is sent again, and who kept silent about it gets less at once.
    async fn look_for_silence(&mut self, now: Timestamp) {
        let (over, silent) = self.orders.overdue(now);
        for over in over {
            self.end(over).await;
        }
        for (spider, silence) in silent {
            let Some(peer) = self.peers.get_mut(spider) else {
                continue;
            };
            if let Some(times) = peer.fell_silent(silence.at_work, now) {
                warn!(
                    spider = peer.name,
                    orders = silence.lost,
                    at_work = silence.at_work,
                    times,
                    "a spider sent no status of some orders for Timeout_Spider_Status; they are sent again"
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
                Dialect::Pull => peer.has_credit(),
            };
            peer.is_connected() && wants
        });
        able.map(|(number, _)| number)
            .min_by_key(|number| self.orders.count_of(*number))
    }

    async fn hear(&mut self, heard: Heard) {
        let now = (self.clock)();
        match heard {
            Heard::Up(number, way) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.connected(way);
                }
            }
            Heard::Down(number) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.lost();
                }
                for over in self.orders.gone(number, now) {
                    self.end(over).await;
                }
            }
            Heard::Word(number, word, extended) => {
                // What asks for orders is spelled the same by everybody.
                if !matches!(word, Word::Plain(FromSpider::Get(_))) {
                    self.learn(number, extended);
                }
                self.hear_word(number, word, now).await;
            }
        }
    }

    /// The first word of a spider tells whether it knows the extension.
    fn learn(&mut self, number: usize, extended: bool) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        if !peer.learns(extended) {
            return;
        }
        // It holds the orders that it has until it knows their terms.
        for (trans, order, announced) in self.orders.of(number) {
            let mut terms = Terms::of(&order.request(self.head_first));
            terms.announce &= !announced;
            if !terms.is_plain() {
                peer.say(ToSpider::If(trans, terms));
            }
        }
        peer.say(ToSpider::Agreed(extension::VERSION));
    }

    async fn hear_word(&mut self, number: usize, word: Word, now: Timestamp) {
        match word {
            Word::Plain(FromSpider::Get(count)) => {
                if let Some(peer) = self.peers.get_mut(number) {
                    peer.asked_for(count);
                }
            }
            Word::Plain(FromSpider::Working(id)) => self.orders.working(number, id, now),
            Word::Plain(FromSpider::Done(id)) => {
                if let Some((over, order)) = self.orders.done(number, id, now) {
                    match self.follower {
                        Some(_) => self.end(over).await,
                        None => self.end_unseen(over, order).await,
                    }
                }
            }
            Word::Sent(id) => {
                if let Some(trans) = self.orders.requested(number, id, now) {
                    self.announce(trans, now).await;
                }
            }
            Word::Stopped(id) => {
                if let Some(trans) = self.orders.stopped(number, id, now) {
                    self.give_back(trans).await;
                }
            }
            Word::Head(answer) => {
                if let Some((trans, order, sent)) = self.orders.headed(number, answer.trans, now) {
                    let took = Duration::from_millis(answer.millis.into());
                    let result = restore::head(&answer, order.ip, sent, now);
                    self.take_result(trans, order, result, took).await;
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
        let _ = self.intake.urlserver.done(over.trans, over.done).await;
    }

    /// The end of an order whose result nobody here will see. A robots.txt that cannot be read is as good as none:
    /// whoever runs a URL server without a store has taken that upon himself, and is warned at the start.
    async fn end_unseen(&mut self, mut over: Over, order: Order) {
        if let Subject::Page(candidate) = order.subject {
            let said = "a spider sent DONE; its store has the result";
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
            self.intake.harvest.indexer().event(event).await;
        } else {
            over.done.robots = Some(RobotsAnswer::Unavailable { status: 404 });
        }
        self.end(over).await;
    }

    /// An order goes back to the queue as it came.
    async fn give_back(&mut self, trans: TransId) {
        if let Some(order) = self.orders.take(trans) {
            self.intake.give_up(order, None).await;
        }
    }

    /// Others need the place of an order. Of what a spider has it is asked; one that does not know the word goes on.
    async fn give_up(&mut self, trans: TransId) {
        match self.orders.wish_to_stop(trans) {
            Some(Wish::Here) => self.give_back(trans).await,
            Some(Wish::With(spider, number)) => self.say(spider, ToSpider::Stop(number)),
            None => {}
        }
    }

    /// Says something of an order to the spider that has it, if it understands that.
    fn say(&self, spider: usize, said: ToSpider) {
        if let Some(peer) = self.peers.get(spider).filter(|peer| peer.has_agreed()) {
            peer.say(said);
        }
    }

    /// Something was blocked, or the crawl ends: what waits here goes back, and spiders are told to return what they have
    /// not sent.
    async fn look_at_gate(&mut self, gate: &SendGate) {
        let closed = self.orders.unsent(|order| !gate.may_send(order.url()));
        for (trans, wish) in closed {
            match wish {
                Wish::Here => self.give_back(trans).await,
                Wish::With(spider, number) => self.say(spider, ToSpider::Recall(number)),
            }
        }
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
