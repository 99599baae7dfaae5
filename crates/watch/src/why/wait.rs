//! What an unfinished URL waits for, and until when.

use std::time::Duration;

use orbweaver_docindex::{Entry, HostRecord, Rest};
use orbweaver_model::Timestamp;
use orbweaver_urlserver::{RobotsStanding, Spot, Wait, Whereabouts};

use super::{Sources, Why};
use orbweaver_config::units::moment;

/// Fills in where the URL is, what it waits for, and the earliest time of its request.
pub(super) fn explain(why: &mut Why, rest: Rest, host: Option<&HostRecord>, sources: &Sources<'_>) {
    let found = sources.whereabouts;
    place(why, rest, found);
    let (waits_for, earliest) = match (rest, found) {
        _ if host.is_some_and(|host| host.blocked.is_some()) && why.state != "in_flight" => (
            "its host is blocked; `orbweaver ctl DIR unblock HOST` unblocks it".into(),
            None,
        ),
        (_, None) => (
            "no crawl is running; `orbweaver crawl -o DIR` resumes it".into(),
            None,
        ),
        (_, Some(found)) if found.paused && why.state != "in_flight" => (
            "the crawl is paused; `orbweaver ctl DIR resume` resumes it".into(),
            None,
        ),
        (Rest::Retry { due }, _) => ("the time of its next attempt".into(), Some(due)),
        (Rest::Queue { ahead }, Some(found)) => on_disk(ahead, host, &found, sources.now),
        (Rest::Claimed { .. }, Some(found)) => in_memory(why, &found, sources.now),
    };
    why.waits_for = Some(waits_for);
    let not_before = host.map(|host| host.not_before);
    let earliest = earliest.max(not_before.filter(|at| *at > sources.now));
    why.earliest = earliest.filter(|at| *at > sources.now).map(moment);
}

/// A finished URL that is retried later says when.
pub(super) fn explain_chance(why: &mut Why, entry: &Entry) {
    let Some(fate) = entry.fate.as_ref().filter(|fate| fate.is_chance()) else {
        return;
    };
    let again = fate.revisit.as_ref().and_then(|revisit| revisit.due);
    why.earliest = again.map(moment);
    why.waits_for = Some(
        "a retry, because its robots.txt was unavailable: the crawl that runs at that time, or the next one, retries"
            .into(),
    );
}

fn place(why: &mut Why, rest: Rest, found: Option<Whereabouts>) {
    let (place, ahead) = match (rest, found.and_then(|found| found.spot)) {
        (Rest::Queue { ahead }, _) => ("the queue of its host on disk", Some(ahead)),
        (Rest::Retry { .. }, _) => ("among the URLs to be retried", None),
        (Rest::Claimed { .. }, None) => ("between doc index, URL server and archive", None),
        (_, Some(Spot::Out { .. })) => ("with the spider", None),
        (_, Some(Spot::Next)) => ("at the head of its host's queue", Some(0)),
        (_, Some(Spot::Queue { ahead })) => ("the queue of its host in memory", Some(ahead as u64)),
        (_, Some(Spot::Parked { ahead })) => {
            ("parked until its robots.txt is known", Some(ahead as u64))
        }
        (_, Some(Spot::Leftover { ahead })) => ("the leftover queue", Some(ahead as u64)),
    };
    why.place = Some(place.into());
    why.ahead = ahead;
    why.since = match (rest, found.and_then(|found| found.spot)) {
        (Rest::Claimed { .. }, Some(Spot::Out { since, .. })) => Some(moment(since)),
        (Rest::Claimed { since }, _) => Some(moment(since)),
        _ => None,
    };
}

/// Those before it take one gap each.
fn after_those_ahead(from: Timestamp, ahead: u64, delay: Duration) -> Timestamp {
    from.after(delay.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX)))
}

fn on_disk(
    ahead: u64,
    host: Option<&HostRecord>,
    found: &Whereabouts,
    now: Timestamp,
) -> (String, Option<Timestamp>) {
    match host.map(|host| host.not_before) {
        Some(until) if until > now => (
            "the Retry-After time of its host".into(),
            Some(after_those_ahead(until, ahead, found.delay)),
        ),
        _ => (
            format!("its turn: {ahead} URLs of its host on disk and those in memory come first"),
            Some(after_those_ahead(now, ahead, found.delay)),
        ),
    }
}

fn in_memory(why: &Why, found: &Whereabouts, now: Timestamp) -> (String, Option<Timestamp>) {
    let ahead = why.ahead.unwrap_or(0);
    let after = |from: Timestamp| Some(after_those_ahead(from.max(now), ahead, found.delay));
    let Some(wait) = found.wait else {
        let answer = match found.spot {
            Some(Spot::Out { ip, order, .. }) => format!("the response of {ip} (order {order})"),
            _ => "the stage that has it".into(),
        };
        return (answer, None);
    };
    match wait {
        Wait::Queue => (
            "a free queue for its host (`[politeness] queue_count`)".into(),
            None,
        ),
        Wait::Resolver => ("the addresses of its host (DNS)".into(), None),
        Wait::Gap { until } => (
            format!(
                "the rate limit of its host: {} s between two requests",
                found.delay.as_secs_f64()
            ),
            after(until),
        ),
        Wait::Hold { until } => ("the Retry-After time of its host".into(), after(until)),
        Wait::Answer => (
            "a response of its host to a request in flight (`--per-host`)".into(),
            None,
        ),
        Wait::Address { ip, until, line } => (
            format!(
                "its turn at {ip}, which {line} hosts wait for (`--per-ip`, `[politeness] ip_rate`)"
            ),
            until.and_then(after),
        ),
        Wait::Robots { until: Some(until) } => (
            "the robots.txt of its host, which was unavailable and is retried".into(),
            Some(until.max(now)),
        ),
        Wait::Robots { until: None } if found.robots == RobotsStanding::Asked => (
            "the robots.txt of its host, which is being fetched".into(),
            None,
        ),
        Wait::Robots { until: None } => ("the robots.txt of its host".into(), None),
        Wait::Turn => (
            "its turn among all hosts (`--concurrency`)".into(),
            after(now),
        ),
    }
}
