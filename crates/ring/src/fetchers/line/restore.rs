//! From a record of the store back to the result of a fetch.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use orbweaver_model::{
    Exchange, FetchResult, Limits, Method, Outcome, OutcomeClass, Protocol, Timestamp, Truncation,
};
use orbweaver_wire::{HeadAnswer, Record};

/// The result as far as the record tells it. The record has neither times, address nor the request: the fetch ended when its
/// result arrived, at the latest, and that is what the gap to the next request is counted from.
pub(super) fn result(
    record: Record,
    sent: Option<Timestamp>,
    now: Timestamp,
    limits: &Limits,
) -> FetchResult {
    let took = Duration::from_millis(u64::from(record.millis));
    let status = record.http.status();
    let wire_bytes = record.data.len() as u64;
    let exchange = (!record.data.is_empty())
        .then(|| {
            let (request, protocol) = (Bytes::new(), Protocol::Http1);
            orbweaver_spider::reread(request, record.data, protocol, record.cut, limits)
        })
        .flatten();
    let located = exchange
        .as_ref()
        .is_some_and(|it| it.headers.contains_key(http::header::LOCATION));
    let class = match record.outcome {
        // Where a redirect leads is judged here, and said in the words of a crawl.
        OutcomeClass::RedirectRefused if located => OutcomeClass::RedirectFollowed,
        class => class,
    };
    FetchResult {
        outcome: Outcome::because(class, words(class, status, record.cut)),
        started: before(now, took),
        sent,
        first_byte: None,
        ended: now,
        wire_bytes,
        connected: None,
        exchange,
    }
}

fn before(now: Timestamp, span: Duration) -> Timestamp {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}

/// What came of a HEAD, by the word of the spider.
pub(super) fn head(
    answer: &HeadAnswer,
    ip: IpAddr,
    sent: Option<Timestamp>,
    now: Timestamp,
) -> FetchResult {
    let pairs = answer.fields.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    let (class, status) = (answer.outcome, answer.status);
    FetchResult {
        outcome: Outcome::because(class, words(class, Some(status), None)),
        started: before(now, Duration::from_millis(answer.millis.into())),
        sent,
        first_byte: None,
        ended: now,
        wire_bytes: answer.bytes,
        connected: Some(ip),
        exchange: Some(Exchange {
            method: Method::Head,
            request: Bytes::new(),
            response: Bytes::new(),
            spooled: None,
            head_len: 0,
            status,
            headers: pairs.collect(),
            body: Bytes::new(),
            protocol: Protocol::Http1,
            truncated: None,
        }),
    }
}

/// What the spider said of an outcome, as far as it can be told from what came.
fn words(class: OutcomeClass, status: Option<u16>, cut: Option<Truncation>) -> &'static str {
    match cut {
        None if class == OutcomeClass::Success && status == Some(304) => "not modified",
        Some(Truncation::Length) => "body over the size limit",
        Some(Truncation::Time) => "body not received in time",
        Some(Truncation::Disconnect) => "body ended early",
        None => "",
    }
}
