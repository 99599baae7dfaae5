//! From a record of the store back to the result of a fetch.

use std::time::Duration;

use orbweaver_model::{
    FetchResult, Limits, Outcome, OutcomeClass, Protocol, Timestamp, Truncation,
};
use orbweaver_wire::Record;

/// The result as far as the record tells it. The record has neither times, address nor the request: the fetch ended when its
/// result arrived, at the latest, and that is what the gap to the next request is counted from.
pub(super) fn result(
    record: Record,
    sent: Option<Timestamp>,
    now: Timestamp,
    limits: &Limits,
) -> FetchResult {
    let took = Duration::from_millis(u64::from(record.millis));
    let wire_bytes = record.data.len() as u64;
    let exchange = (!record.data.is_empty())
        .then(|| {
            let (request, protocol) = (bytes::Bytes::new(), Protocol::Http1);
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
        outcome: Outcome::because(class, cut_words(record.cut)),
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

fn cut_words(cut: Option<Truncation>) -> &'static str {
    match cut {
        Some(Truncation::Length) => "body over the size limit",
        Some(Truncation::Time) => "body not received in time",
        Some(Truncation::Disconnect) => "body broke off",
        None => "",
    }
}
