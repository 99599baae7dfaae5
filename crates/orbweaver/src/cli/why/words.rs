//! The answer as text, one fact per line.

use orbweaver_model::OutcomeClass;

use orbweaver_config::units::{counted, human_bytes};
use orbweaver_ring::Why;

/// Puts the directory, as the asker calls it, and the host into what is to be typed.
pub(super) fn name_places(why: &mut Why, dir: &str) {
    let host = why.host.as_ref().map_or("HOST", |host| &host.name);
    if let Some(waits_for) = &mut why.waits_for {
        *waits_for = waits_for.replace("DIR", dir).replace("HOST", host);
    }
}

/// The answer for a person.
pub(super) fn lines(why: &Why) -> Vec<String> {
    let mut lines = vec![
        format!("url        {}", why.url),
        format!("state      {}", state_words(why)),
    ];
    found_lines(why, &mut lines);
    let verdict = if why.scope.accepted {
        "accepted"
    } else {
        "refused"
    };
    let as_what = match &why.found {
        Some(_) => "",
        None => " (as a link on a seed)",
    };
    lines.push(format!("scope now  {verdict}{as_what}: {}", why.scope.rule));
    lines.push(format!("robots     {}", robots_words(why)));
    host_line(why, &mut lines);
    waiting_lines(why, &mut lines);
    outcome_lines(why, &mut lines);
    visits_line(why, &mut lines);
    lines
}

fn visits_line(why: &Why, lines: &mut Vec<String>) {
    let Some(visits) = &why.visits else {
        return;
    };
    let next = match &visits.next {
        Some(next) => format!("next visit due {next}"),
        None => "no further visit is planned (`crawl --recrawl`)".into(),
    };
    let condition = match (&visits.etag, &visits.last_modified) {
        (Some(etag), _) => format!("with ETag {etag}"),
        (None, Some(date)) => format!("with Last-Modified {date}"),
        (None, None) => "without ETag or Last-Modified".into(),
    };
    let made = visits.made;
    lines.push(format!("visits     {made}, {condition}; {next}"));
}

fn state_words(why: &Why) -> String {
    if let ("failed" | "refused", Some(earliest)) = (why.state.as_str(), &why.earliest) {
        return format!("{} for now: retried not before {earliest}", why.state);
    }
    let words = match why.state.as_str() {
        "unknown" => "not known: no fetched page links to it, and it is not a seed",
        "queued" => "queued: not requested yet",
        "claimed" => "claimed: with the URL server, to be requested next",
        "in_flight" => "in flight: its request has been sent",
        "retry" => "to be retried: an attempt failed",
        "done" => "done",
        "failed" => "failed: it is not retried",
        _ => "refused: it is not requested",
    };
    match &why.since {
        Some(since) => format!("{words} (since {since})"),
        None => words.into(),
    }
}

fn found_lines(why: &Why, lines: &mut Vec<String>) {
    let Some(found) = &why.found else {
        return;
    };
    lines.push(format!(
        "found      {}, number {}: kind {}, depth {}, priority {}",
        found.seen, found.doc_id, found.kind, found.depth, found.priority
    ));
    match found.path.as_slice() {
        [] if found.kind == "seed" => lines.push("linked by  nothing: it is a seed".into()),
        [] => lines.push("linked by  no page: robots.txt or a redirect named it".into()),
        [page, rest @ ..] => {
            lines.push(format!("linked by  {page}"));
            lines.extend(
                rest.iter()
                    .map(|page| format!("           linked by {page}")),
            );
        }
    }
    for from in &found.redirected_from {
        lines.push(format!("redirect   from {from}"));
    }
}

fn robots_words(why: &Why) -> String {
    if why.robots_ignored {
        return "ignored, as the settings say for its host (robots = \"ignore\")".into();
    }
    let Some(robots) = &why.robots else {
        return "no robots.txt of its host is known; it is fetched before the first page".into();
    };
    let verdict = match (&robots.rule, robots.allowed) {
        (Some(rule), true) => format!("allowed by `{rule}`"),
        (Some(rule), false) => format!("denied by `{rule}`"),
        (None, _) => "allowed: no rule matches".into(),
    };
    let delay = robots.crawl_delay_s;
    let delay = delay.map_or(String::new(), |delay| format!("; Crawl-delay {delay} s"));
    let expiry = if robots.expired { "expired" } else { "expires" };
    format!(
        "{verdict}{delay} (status {}, fetched {}, {expiry} {})",
        robots.status, robots.fetched, robots.expires
    )
}

fn host_line(why: &Why, lines: &mut Vec<String>) {
    let Some(host) = &why.host else {
        return;
    };
    lines.push(format!(
        "host       {}: {} queued, {}, {} failed, {} ms per response",
        host.name,
        host.queued,
        counted(host.requests.into(), "request"),
        host.failed,
        host.ms
    ));
    if let Some(since) = &host.blocked_since {
        lines.push(format!("           blocked by an operator since {since}"));
    }
    if let Some(rate) = host.rate {
        lines.push(format!(
            "           rate set to {rate} requests/s by an operator"
        ));
    }
    if host.budget_spent {
        lines.push("           its budget is used up".into());
    }
    if let Some(until) = &host.not_before {
        lines.push(format!(
            "           no requests until {until}, by Retry-After"
        ));
    }
}

fn waiting_lines(why: &Why, lines: &mut Vec<String>) {
    if let Some(place) = &why.place {
        let slot = why
            .slot
            .map_or(String::new(), |slot| format!(", slot {slot}"));
        let ahead = match why.ahead {
            Some(ahead) => format!(", {ahead} ahead of it"),
            None => String::new(),
        };
        lines.push(format!("where      {place}{slot}{ahead}"));
    }
    if let Some(waits_for) = &why.waits_for {
        lines.push(format!("waits for  {waits_for}"));
    }
    if let Some(earliest) = &why.earliest {
        lines.push(format!("earliest   {earliest}"));
    }
}

fn outcome_lines(why: &Why, lines: &mut Vec<String>) {
    let with = |reason: &Option<String>, status: Option<u16>| {
        let status = status.map_or(String::new(), |status| format!(", status {status}"));
        let reason = reason
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        format!("{status}{reason}")
    };
    let hidden = usize::from(why.attempts_made).saturating_sub(why.attempts.len());
    if hidden > 0 {
        lines.push(format!("attempts   {hidden} earlier ones are not stored"));
    }
    for attempt in &why.attempts {
        lines.push(format!(
            "attempt    {} {}{}",
            attempt.at,
            attempt.class,
            with(&attempt.reason, attempt.status)
        ));
    }
    if let Some(outcome) = &why.outcome {
        lines.push(format!(
            "outcome    {}{}",
            outcome.class,
            with(&outcome.reason, outcome.status)
        ));
        if outcome.class == OutcomeClass::TrapBounded.to_string() {
            lines.push("           by trap detection; `crawl --no-traps` turns that off".into());
        }
        if let Some(ip) = outcome.ip {
            lines.push(format!(
                "           from {ip}, {} in {} ms, {}",
                human_bytes(outcome.bytes),
                outcome.ms,
                counted(why.attempts_made.into(), "attempt")
            ));
        }
        if let Some(target) = &outcome.redirect {
            lines.push(format!("           redirects to {target}"));
        }
    }
    if let Some(archive) = &why.archive {
        let kind = if archive.revisit {
            "revisit record"
        } else {
            "record"
        };
        lines.push(format!(
            "archive    {}, {kind} at byte {} ({} bytes), captured {}",
            archive.file, archive.offset, archive.length, archive.timestamp
        ));
    }
}
