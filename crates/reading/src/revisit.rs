//! What a visit leaves for the next one, and when that is due.
//!
//! | what came of the visit | what is learnt | next visit |
//! |---|---|---|
//! | a document | whether its body is the same as before | when a change has become likely |
//! | 304, or a HEAD that shows no change | unchanged | when a change has become likely |
//! | 302, 303, 307 | whether the target is the same as before | when a change has become likely |
//! | 301, 308 | its target takes its place | never |
//! | 410 | it is gone for good | never |
//! | any other error or failure | nothing | after the longest time |
//! | refused by scope, policy, robots.txt, trap | nothing | never |
//! | robots.txt was unavailable (`retry.rs`) | nothing | at the next retry |

use std::time::Duration;

use http::header::{CONTENT_LENGTH, ETAG, HeaderName, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use orbweaver_model::{
    ChangeRate, Column, Exchange, FetchResult, Outcome, OutcomeClass, RecrawlBounds, Revisit, Visit,
};
use orbweaver_spider::{Action, action};
use xxhash_rust::xxh3::xxh3_64;

/// The longest ETag or Last-Modified that is kept. Real ones have 30 bytes; a server must not fill the index.
const MAX_VALIDATOR: usize = 256;

/// What the next visit needs to know; none when there will be none. Without bounds nothing is planned, but what
/// was seen is kept, so that a later crawl can plan.
pub fn after(
    visit: &Visit,
    outcome: &Outcome,
    redirect: Option<&str>,
    bounds: Option<RecrawlBounds>,
) -> Option<Box<Revisit>> {
    let Visit {
        candidate, result, ..
    } = visit;
    let before = candidate.revisit.as_deref();
    let mut next = match (outcome.class, &result.exchange) {
        (class, Some(exchange)) if class.is_document() => match before {
            Some(before) if exchange.status == 304 || exchange.is_head_only() => {
                unchanged(before, exchange)
            }
            _ => seen(result, exchange, xxh3_64(&exchange.body)),
        },
        (OutcomeClass::RedirectFollowed, Some(exchange)) => match action(exchange.status) {
            Action::Follow { permanent: true } => return None,
            _ => seen(result, exchange, xxh3_64(redirect?.as_bytes())),
        },
        (OutcomeClass::HttpError, Some(exchange)) if action(exchange.status) == Action::Gone => {
            return None;
        }
        (class, _) if class.column() == Column::Failed => {
            let mut next = before.cloned().unwrap_or_else(|| unseen(result));
            next.visits += u32::from(before.is_some());
            next.due = bounds.map(|bounds| result.ended.after(bounds.max));
            return Some(Box::new(next));
        }
        _ => return None,
    };
    if let Some(before) = before {
        let same = next.digest == before.digest;
        let elapsed = result.ended.since(before.seen);
        learn(&mut next, before.rate, elapsed, !same, bounds);
        if same {
            next.captured = before.captured;
        }
        next.visits = before.visits.saturating_add(1);
    }
    next.seen = result.ended;
    next.due = bounds.map(|bounds| result.ended.after(next.rate.next_visit(bounds)));
    Some(Box::new(next))
}

/// What a HEAD tells: true when the document is as it was.
pub fn shows_no_change(before: &Revisit, head: &Exchange) -> bool {
    if head.status == 304 {
        return true;
    }
    let etag = text(&head.headers, &ETAG);
    let modified = text(&head.headers, &LAST_MODIFIED);
    let length_differs = length(&head.headers)
        .zip(before.length)
        .is_some_and(|(now, then)| now != then);
    if !(200..300).contains(&head.status) || length_differs {
        return false;
    }
    match (&before.etag, &etag) {
        (Some(then), Some(now)) => then == now,
        _ => before.last_modified.is_some() && before.last_modified == modified,
    }
}

/// The document is as it was, by the word of its server.
fn unchanged(before: &Revisit, exchange: &Exchange) -> Revisit {
    let mut next = before.clone();
    let newer = |name, old: Option<String>| text(&exchange.headers, name).or(old);
    next.etag = newer(&ETAG, next.etag);
    next.last_modified = newer(&LAST_MODIFIED, next.last_modified);
    next
}

fn learn(
    next: &mut Revisit,
    before: ChangeRate,
    elapsed: Duration,
    changed: bool,
    bounds: Option<RecrawlBounds>,
) {
    next.rate = before;
    next.rate
        .observe(elapsed, changed, bounds.unwrap_or_default());
}

fn seen(result: &FetchResult, exchange: &Exchange, digest: u64) -> Revisit {
    Revisit {
        digest,
        length: length(&exchange.headers),
        etag: text(&exchange.headers, &ETAG),
        last_modified: text(&exchange.headers, &LAST_MODIFIED),
        ..unseen(result)
    }
}

/// What is known after a visit that brought nothing.
fn unseen(result: &FetchResult) -> Revisit {
    Revisit {
        visits: 1,
        captured: result.started,
        ..Revisit::unvisited(result.ended)
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name).map(HeaderValue::to_str)?.ok()?.trim();
    (!value.is_empty() && value.len() <= MAX_VALIDATOR).then(|| value.to_owned())
}

fn length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_LENGTH)?.parse().ok()
}
