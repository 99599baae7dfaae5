//! Where an order is carried out: a place, a fetch, a record for the store, and DONE.
//!
//! Every order is read at once and spoken of from then on; those for which there is no place wait here, as many as a
//! sixteenth of the memory holds.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use orbweaver_config::{Mode, SpiderSettings};
use orbweaver_intake::{CanonicalOptions, Canonicalizer};
use orbweaver_model::{
    Clock, CrawlUrl, Exchange, FetchRequest, FetchResult, Outcome, OutcomeClass, Purpose,
};
use orbweaver_spider::{Refused, Spider};
use orbweaver_wire::{Data, Dialect, HeadAnswer, HttpCode, OrderLine, Record, Terms, Word};

use super::orders::{Assignment, Job, Orders, Peer, Target, Waiter};
use super::outbox::Outbox;

/// The room for waiting orders is counted in pieces of so many bytes.
const PIECE: usize = 256;

/// Bytes that a waiting order takes besides its URL, which is kept twice.
const ORDER: usize = 1024;

/// An order that waits for a place.
pub(super) struct Held {
    line: OrderLine,
    announce: bool,
    assignment: Assignment,
    /// Its part of the room, until it has a place.
    room: OwnedSemaphorePermit,
}

/// All that fetches share.
pub(super) struct Fetches {
    spider: Spider,
    pub(super) orders: Arc<Orders>,
    outbox: Outbox,
    fetching: Handle,
    places: Arc<Semaphore>,
    pub(super) concurrency: usize,
    /// Orders that wait for a place. `room` lets in fewer than it has places.
    held: mpsc::Sender<Held>,
    room: Arc<Semaphore>,
    /// Orders that there can be at once, under way and waiting.
    pub(super) max_orders: usize,
    canonicalizer: Canonicalizer,
    /// Bytes of results that wait for the store beyond which no order is taken. What is out then may still
    /// come in, and finds the other half.
    max_held: usize,
    pub(super) clock: Clock,
    pub(super) dialect: Dialect,
}

impl Fetches {
    pub(super) fn new(
        spider: Spider,
        orders: Arc<Orders>,
        outbox: Outbox,
        fetching: Handle,
        clock: Clock,
        settings: &SpiderSettings,
    ) -> (Self, mpsc::Receiver<Held>) {
        let room = settings.memory / 16;
        let max_orders = settings.concurrency.saturating_add(room / ORDER);
        let (held, waiting) = mpsc::channel(max_orders.min(Semaphore::MAX_PERMITS));
        let fetches = Self {
            spider,
            held,
            room: Arc::new(Semaphore::new((room / PIECE).min(Semaphore::MAX_PERMITS))),
            max_orders,
            orders,
            outbox,
            fetching,
            places: Arc::new(Semaphore::new(settings.concurrency)),
            concurrency: settings.concurrency,
            canonicalizer: Canonicalizer::new(CanonicalOptions {
                max_url_bytes: CrawlUrl::MAX_LEN,
                ..CanonicalOptions::default()
            }),
            max_held: settings.memory / 2,
            clock,
            dialect: match settings.mode {
                Mode::Push => Dialect::Push,
                Mode::Pull => Dialect::Pull,
            },
        };
        (fetches, waiting)
    }

    /// Fetches under way, those whose results wait for the store included.
    pub(super) fn under_way(&self) -> usize {
        self.orders.len()
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        let all = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }

    /// True when results pile up because the store does not take them.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.held() > self.max_held
    }

    /// What an order asks for, and what is wrong with it. Our own URL server sends canonical URLs; another peer's are
    /// made so. One that cannot be fetched is recorded all the same, for somebody waits for its result.
    pub(super) fn target(&self, line: &OrderLine) -> (Target, Option<&'static str>) {
        let refuse = |why| (Target::Refuse(line.url.clone()), Some(why));
        let Ok(url) = self.canonicalizer.parse(&line.url) else {
            return refuse("the URL cannot be fetched");
        };
        let plain = |host: &str| {
            let host = host.trim_matches(['[', ']']);
            host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
        };
        match line.host.as_deref() {
            Some(host) if plain(host) != plain(url.host()) => {
                refuse("HOST_NAME is not the host of the URL")
            }
            _ => (Target::Fetch(url), None),
        }
    }

    /// Takes an order. When its job is under way it joins that; otherwise it waits for its turn, and is spoken of
    /// meanwhile. Only when there is no room for more the caller waits.
    pub(super) async fn take(
        self: &Arc<Self>,
        line: OrderLine,
        target: Target,
        terms: Terms,
        peer: Arc<Peer>,
    ) {
        let announce = terms.announce;
        let job = Job {
            doc_id: line.doc_id,
            target,
            method: terms.method,
            known: terms.known,
        };
        let waiter = Waiter {
            trans: line.trans,
            peer,
            announce,
            is_recalled: false,
        };
        let Some(assignment) = self.orders.add(job, waiter, Instant::now()) else {
            return;
        };
        let pieces = (2 * line.url.len() + ORDER).div_ceil(PIECE);
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(pieces).await;
        if let Ok(room) = room {
            let held = Held {
                line,
                announce,
                assignment,
                room,
            };
            // Refused only when the spider ends.
            let _ = self.held.send(held).await;
        }
    }

    /// Gives places to the orders that wait, in their turn, until told to stop.
    pub(super) async fn serve(
        self: Arc<Self>,
        mut waiting: mpsc::Receiver<Held>,
        mut stopped: watch::Receiver<bool>,
    ) {
        loop {
            let next = async {
                let held = waiting.recv().await?;
                self.outbox.room(self.max_held).await;
                let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
                Some((held, place))
            };
            let next = tokio::select! {
                next = next => next,
                _ = stopped.wait_for(|stop| *stop) => None,
            };
            let Some((held, place)) = next else {
                return;
            };
            drop(held.room);
            // Who went away meanwhile orders it again, from whomever; who gave it up is told.
            if !held.assignment.is_wanted() {
                held.assignment.stopped();
                continue;
            }
            let fetches = Arc::clone(&self);
            self.fetching.spawn(async move {
                fetches
                    .carry_out(held.line, held.announce, held.assignment)
                    .await;
                drop(place);
            });
        }
    }

    async fn carry_out(&self, line: OrderLine, announce: bool, assignment: Assignment) {
        let job = assignment.job().clone();
        let url = match job.target {
            Target::Fetch(url) => url,
            Target::Refuse(url) => {
                let outcome = Outcome::plain(OutcomeClass::DeniedPolicy);
                let record = empty_record(line.doc_id, &url, &outcome, 0);
                self.outbox.deliver(record).await;
                assignment.done(|_| None).await;
                return;
            }
        };
        let request = FetchRequest {
            url,
            ip: line.ip,
            purpose: match line.doc_id {
                0 => Purpose::Robots,
                _ => Purpose::Page,
            },
            method: job.method,
            known: job.known,
            announce,
        };
        // Timeout_Req is the server's time, and kept inside: what the fetch waits for here does not count.
        let result = tokio::select! {
            result = self.spider.fetch(&request, &assignment) => result,
            () = assignment.given_up() => Err(Refused),
        };
        let Ok(result) = result else {
            assignment.stopped();
            return;
        };
        // A HEAD brings nothing to keep; who asked for it is told what it says.
        if let Some(exchange) = result.exchange.as_ref().filter(|it| it.is_head_only()) {
            let answer = head_answer(&result, exchange);
            assignment
                .done(|trans| {
                    let answer = HeadAnswer {
                        trans,
                        ..answer.clone()
                    };
                    Some(Word::Head(Box::new(answer)))
                })
                .await;
            return;
        }
        let record = self.record(line.doc_id, &request.url, result);
        self.outbox.deliver(record).await;
        assignment.done(|_| None).await;
    }

    /// The result as the store gets it. Everything else, the decoded body first of all, is let go.
    fn record(&self, doc_id: u32, url: &CrawlUrl, result: FetchResult) -> Record {
        let mut outcome = result.outcome.clone();
        let mut new_url = None;
        if outcome.class == OutcomeClass::RedirectFollowed {
            new_url = orbweaver_ring::resolve(url, &result, &self.canonicalizer).0;
            if new_url.is_none() {
                // A Location that is no URL: there is nothing to follow.
                outcome = Outcome::plain(OutcomeClass::RedirectRefused);
            }
        }
        let record = empty_record(doc_id, url.as_str(), &outcome, result.millis());
        Record {
            cut: result.exchange.as_ref().and_then(|it| it.truncated),
            http: HttpCode::of(result.status()),
            kind: Data::Message,
            new_url: new_url.map(|url| url.to_string()).unwrap_or_default(),
            data: result.exchange.map(|it| it.response).unwrap_or_default(),
            ..record
        }
    }
}

/// What a HEAD says, for whoever asked.
fn head_answer(result: &FetchResult, exchange: &Exchange) -> HeadAnswer {
    let fields = HeadAnswer::FIELDS.iter().filter_map(|name| {
        let value = exchange.headers.get(*name)?.to_str().ok()?.trim();
        (!value.is_empty()).then(|| ((*name).to_owned(), value.to_owned()))
    });
    HeadAnswer {
        trans: 0,
        outcome: result.outcome.class,
        status: exchange.status,
        millis: result.millis(),
        bytes: result.wire_bytes,
        fields: fields.collect(),
    }
}

fn empty_record(doc_id: u32, url: &str, outcome: &Outcome, millis: u32) -> Record {
    Record {
        doc_id,
        success: outcome.class.is_document(),
        outcome: outcome.class,
        cut: None,
        http: HttpCode::NONE,
        kind: Data::Body,
        millis,
        url: url.to_owned(),
        new_url: String::new(),
        data: Bytes::new(),
    }
}
