//! Where an order is carried out: a place, a fetch, a parcel for the store, and DONE.
//!
//! Every order is read at once and spoken of from then on; those for which there is no place wait here, as many as a
//! sixteenth of the memory holds.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use orbweaver_intake::{CanonicalOptions, Canonicalizer};
use orbweaver_model::{
    Clock, CrawlUrl, FetchRequest, FetchResult, Method, Outcome, OutcomeClass, Purpose,
};
use orbweaver_spider::{Open, Spider};
use orbweaver_wire::{Data, Dialect, HttpCode, OrderLine, Record};

use super::parcels::Parcels;
use super::tickets::{Duty, Errand, Target, Tickets, Waiter};
use orbweaver_config::{Mode, SpiderSettings};

/// The room for waiting orders is counted in pieces of so many bytes.
const PIECE: usize = 256;

/// Bytes that a waiting order takes besides its URL, which is kept twice.
const ORDER: usize = 1024;

/// An order that waits for a place.
pub(super) struct Held {
    line: OrderLine,
    duty: Duty,
    /// Its part of the room, until it has a place.
    room: OwnedSemaphorePermit,
}

/// All that fetches share.
pub(super) struct Bench {
    spider: Spider,
    pub(super) tickets: Arc<Tickets>,
    parcels: Parcels,
    fetching: Handle,
    places: Arc<Semaphore>,
    pub(super) concurrency: usize,
    /// Orders that wait for a place; bounded by `room`.
    held: mpsc::UnboundedSender<Held>,
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

impl Bench {
    pub(super) fn new(
        spider: Spider,
        tickets: Arc<Tickets>,
        parcels: Parcels,
        fetching: Handle,
        clock: Clock,
        settings: &SpiderSettings,
    ) -> (Self, mpsc::UnboundedReceiver<Held>) {
        let (held, waiting) = mpsc::unbounded_channel();
        let room = settings.memory / 16;
        let bench = Self {
            spider,
            held,
            room: Arc::new(Semaphore::new((room / PIECE).min(Semaphore::MAX_PERMITS))),
            max_orders: settings.concurrency.saturating_add(room / ORDER),
            tickets,
            parcels,
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
        (bench, waiting)
    }

    /// Fetches under way, those whose results wait for the store included.
    pub(super) fn under_way(&self) -> usize {
        self.tickets.len()
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        let all = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }

    /// True when results pile up because the store does not take them.
    pub(super) fn is_full(&self) -> bool {
        self.parcels.held() > self.max_held
    }

    /// What an order asks for, and what is wrong with it. Our own URL server sends canonical URLs; another peer's are
    /// made so. One that cannot be fetched is recorded all the same, for somebody waits for its result.
    pub(super) fn errand(&self, line: &OrderLine) -> (Errand, Option<&'static str>) {
        let refuse = |why| ((line.doc_id, Target::Refuse(line.url.clone())), Some(why));
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
            _ => ((line.doc_id, Target::Fetch(url)), None),
        }
    }

    /// Takes an order. When its errand is under way it joins that; otherwise it waits for its turn, and is spoken of
    /// meanwhile. Only when there is no room for more the caller waits.
    pub(super) async fn take(self: &Arc<Self>, line: OrderLine, errand: Errand, waiter: Waiter) {
        let Some(duty) = self.tickets.add(errand, waiter, Instant::now()) else {
            return;
        };
        let pieces = (2 * line.url.len() + ORDER).div_ceil(PIECE);
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(pieces).await;
        if let Ok(room) = room {
            // Refused only when the spider ends.
            let _ = self.held.send(Held { line, duty, room });
        }
    }

    /// Gives places to the orders that wait, in their turn, until told to stop.
    pub(super) async fn serve(
        self: Arc<Self>,
        mut waiting: mpsc::UnboundedReceiver<Held>,
        mut stopped: watch::Receiver<bool>,
    ) {
        loop {
            let next = async {
                let held = waiting.recv().await?;
                self.parcels.room(self.max_held).await;
                let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
                Some((held, place))
            };
            let next = tokio::select! {
                next = next => next,
                _ = stopped.wait_for(|stop| *stop) => None,
            };
            let Some((Held { line, duty, room }, place)) = next else {
                return;
            };
            drop(room);
            // Who went away meanwhile orders it again, from whomever.
            if self.tickets.is_wanted(duty.errand()) {
                let bench = Arc::clone(&self);
                self.fetching
                    .spawn(async move { bench.carry_out(line, duty, place).await });
            }
        }
    }

    async fn carry_out(&self, line: OrderLine, duty: Duty, place: OwnedSemaphorePermit) {
        let url = match &duty.errand().1 {
            Target::Fetch(url) => url.clone(),
            Target::Refuse(url) => {
                let outcome = Outcome::plain(OutcomeClass::DeniedPolicy);
                let record = empty_record(line.doc_id, url, &outcome, 0);
                self.parcels.deliver(record).await;
                duty.done().await;
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
            method: Method::Get,
            known: None,
            announce: false,
        };
        // Timeout_Req is the server's time, and kept inside: what the fetch waits for here does not count.
        if let Ok(result) = self.spider.fetch(&request, &Open).await {
            let record = self.record(line.doc_id, &request.url, result);
            self.parcels.deliver(record).await;
        }
        duty.done().await;
        drop(place);
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
