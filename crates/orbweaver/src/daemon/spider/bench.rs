//! Where an order is carried out: a place, a fetch, a parcel for the store, and DONE.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use orbweaver_intake::{CanonicalOptions, Canonicalizer};
use orbweaver_model::{Clock, CrawlUrl, FetchResult, Outcome, OutcomeClass, UrlError};
use orbweaver_spider::Spider;
use orbweaver_wire::line::trans_of;
use orbweaver_wire::{Data, Dialect, HttpCode, OrderLine, Record};

use super::super::config::SpiderSettings;
use super::super::order;
use super::parcels::Parcels;
use super::tickets::{Duty, Errand, Tickets, Waiter};
use crate::redirect;

/// How much longer than Timeout_Req a fetch may take to notice that its time is up.
const GRACE: Duration = Duration::from_secs(1);

/// All that fetches share.
pub(super) struct Bench {
    spider: Spider,
    pub(super) tickets: Arc<Tickets>,
    parcels: Parcels,
    fetching: Handle,
    places: Arc<Semaphore>,
    pub(super) concurrency: usize,
    canonicalizer: Canonicalizer,
    timeout: Duration,
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
    ) -> Self {
        Self {
            spider,
            tickets,
            parcels,
            fetching,
            places: Arc::new(Semaphore::new(settings.concurrency)),
            concurrency: settings.concurrency,
            canonicalizer: Canonicalizer::new(CanonicalOptions {
                max_url_bytes: settings.limits.max_url_bytes,
                ..CanonicalOptions::default()
            }),
            timeout: settings.limits.total_timeout + GRACE,
            max_held: settings.memory / 2,
            clock,
            dialect: settings.dialect,
        }
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

    /// What an order asks for. Our own URL server sends canonical URLs; another peer's are made so.
    pub(super) fn errand(&self, line: &OrderLine) -> Result<Errand, &'static str> {
        let url = match CrawlUrl::from_canonical(&line.url) {
            Err(UrlError::NotCanonical) => self.canonicalizer.parse(&line.url).ok(),
            other => other.ok(),
        };
        let url = url.ok_or("the URL cannot be fetched")?;
        let same = |host: &str| host.eq_ignore_ascii_case(url.host());
        match line.host.as_deref() {
            Some(host) if !same(host) => Err("HOST_NAME is not the host of the URL"),
            _ => Ok((line.doc_id, url)),
        }
    }

    /// Takes an order: at once when its errand is under way, and otherwise when there is a place and room
    /// for its result. Until then the caller reads no other.
    pub(super) async fn take(self: &Arc<Self>, line: OrderLine, errand: Errand, waiter: Waiter) {
        let Some(duty) = self.tickets.add(errand, waiter, Instant::now()) else {
            return;
        };
        self.parcels.room(self.max_held).await;
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return;
        };
        let bench = Arc::clone(self);
        self.fetching
            .spawn(async move { bench.carry_out(line, duty, place).await });
    }

    async fn carry_out(&self, line: OrderLine, duty: Duty, place: OwnedSemaphorePermit) {
        let url = duty.errand().1.clone();
        let order = order(trans_of(line.trans), line.doc_id, line.ip, url);
        let began = (self.clock)();
        let silent = |_, _| {};
        let fetch = self.spider.fetch(order, &silent);
        let record = match tokio::time::timeout(self.timeout, fetch).await {
            Ok(result) => self.record(result),
            Err(_) => {
                let millis = (self.clock)().since(began).as_millis();
                let millis = u32::try_from(millis).unwrap_or(u32::MAX);
                let outcome = Outcome::plain(OutcomeClass::FailedTimeout);
                empty_record(duty.errand(), &outcome, millis)
            }
        };
        self.parcels.deliver(record).await;
        duty.done().await;
        drop(place);
    }

    /// The result as the store gets it. Everything else, the decoded body first of all, is let go.
    fn record(&self, result: FetchResult) -> Record {
        let candidate = &result.order.candidate;
        let errand = (candidate.doc_id, candidate.url.clone());
        let record = empty_record(&errand, &result.outcome, result.millis());
        let new_url = match result.outcome.class {
            OutcomeClass::RedirectFollowed => redirect::resolve(&result, &self.canonicalizer).0,
            _ => None,
        };
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

fn empty_record(errand: &Errand, outcome: &Outcome, millis: u32) -> Record {
    Record {
        doc_id: errand.0,
        success: outcome.class.is_document(),
        outcome: outcome.class,
        cut: None,
        http: HttpCode::NONE,
        kind: Data::Body,
        millis,
        url: errand.1.to_string(),
        new_url: String::new(),
        data: Bytes::new(),
    }
}
