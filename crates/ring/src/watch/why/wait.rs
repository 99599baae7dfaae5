//! What an unfinished URL waits for, and until when.

use std::time::Duration;

use orbweaver_docindex::{Entry, HostRecord, Rest};
use orbweaver_model::Timestamp;
use orbweaver_urlserver::{RobotsStanding, Spot, Wait, Whereabouts};

use super::{Sources, Why};
use orbweaver_config::units::moment;

/// Fills in where the URL rests, what it waits for, and the earliest time at which it can be asked for.
pub(super) fn explain(why: &mut Why, rest: Rest, host: Option<&HostRecord>, sources: &Sources<'_>) {
    let found = sources.whereabouts;
    place(why, rest, found);
    let (waits_for, earliest) = match (rest, found) {
        _ if host.is_some_and(|host| host.blocked.is_some()) && why.state != "in_flight" => (
            "its host is blocked; `orbweaver ctl DIR unblock HOST` frees it".into(),
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

/// A finished URL that gets another chance says when.
pub(super) fn explain_chance(why: &mut Why, entry: &Entry) {
    let Some(fate) = entry.fate.as_ref().filter(|fate| fate.is_chance()) else {
        return;
    };
    let again = fate.revisit.as_ref().and_then(|revisit| revisit.due);
    why.earliest = again.map(moment);
    why.waits_for = Some(
        "another chance, because its robots.txt could not be had: a crawl that runs then, or the next, asks again"
            .into(),
    );
}

fn place(why: &mut Why, rest: Rest, found: Option<Whereabouts>) {
    let (place, ahead) = match (rest, found.and_then(|found| found.spot)) {
        (Rest::Queue { ahead }, _) => ("the queue of its host on disk", Some(ahead)),
        (Rest::Retry { .. }, _) => ("among those that are asked for again later", None),
        (Rest::Claimed { .. }, None) => {
            ("on its way between doc index, URL server and archive", None)
        }
        (_, Some(Spot::Out { .. })) => ("with the spider", None),
        (_, Some(Spot::Next)) => ("at the head of its host's queue", Some(0)),
        (_, Some(Spot::Queue { ahead })) => ("the queue of its host in memory", Some(ahead as u64)),
        (_, Some(Spot::Parked { ahead })) => (
            "beside its host's queue, for its robots.txt",
            Some(ahead as u64),
        ),
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
            "the patience that its host has asked for (Retry-After)".into(),
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
            Some(Spot::Out { ip, order, .. }) => format!("the answer of {ip} (order {order})"),
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
                "the gap of {} s between two requests to its host",
                found.delay.as_secs_f64()
            ),
            after(until),
        ),
        Wait::Hold { until } => (
            "the patience that its host has asked for (Retry-After)".into(),
            after(until),
        ),
        Wait::Answer => (
            "an answer of its host to what is out (`--per-host`)".into(),
            None,
        ),
        Wait::Address { ip, until, line } => (
            format!(
                "the turn of {ip}: {line} hosts are in its line (`--per-ip`, `[politeness] ip_rate`)"
            ),
            until.and_then(after),
        ),
        Wait::Robots { until: Some(until) } => (
            "the robots.txt of its host, which could not be had and is asked for again".into(),
            Some(until.max(now)),
        ),
        Wait::Robots { until: None } if found.robots == RobotsStanding::Asked => (
            "the robots.txt of its host, which is being asked for".into(),
            None,
        ),
        Wait::Robots { until: None } => ("the robots.txt of its host".into(), None),
        Wait::Turn => (
            "its turn among all hosts (`--concurrency`)".into(),
            after(now),
        ),
    }
}
