//! When a failed attempt is repeated: one table for every outcome.

use std::time::Duration;

use http::HeaderMap;

use orbweaver_config::RetryOptions;
use orbweaver_model::{
    Candidate, Event, FetchResult, Limits, Outcome, OutcomeClass, Report, Revisit, Timestamp, Visit,
};
use orbweaver_spider::{Action, action};

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The outcome stands.
    Final,
    /// It was no attempt: the URL is where it was before.
    PutBack,
    /// The URL is retried.
    Again {
        /// Not before.
        due: Timestamp,
        /// The server sent Retry-After: its whole host waits as long.
        whole_host: bool,
    },
}

/// Decides by class, status and the attempts made before this one.
pub fn decide(visit: &Visit, options: &RetryOptions, limits: &Limits) -> Decision {
    let result = &visit.result;
    if result.is_put_back() {
        return Decision::PutBack;
    }
    let made = visit.candidate.attempts.saturating_add(1);
    let status = result.status();
    let busy = status.is_some_and(|status| action(status) == Action::Busy);
    let may_pass = match result.outcome.class {
        OutcomeClass::HttpError => {
            status.is_some_and(|status| matches!(action(status), Action::Retry | Action::Busy))
        }
        OutcomeClass::FailedConnect
        | OutcomeClass::FailedTimeout
        | OutcomeClass::FailedProtocol => true,
        _ => false,
    };
    let most = if busy {
        options.busy_attempts
    } else {
        options.attempts
    };
    if !may_pass || made >= most {
        return Decision::Final;
    }
    let back_off = options
        .delay
        .saturating_mul(4u32.saturating_pow(u32::from(made - 1)));
    let asked = asked_for(result).filter(|_| busy);
    let wait = asked
        .map_or(back_off, |asked| asked.max(options.delay))
        .min(limits.retry_after_cap);
    Decision::Again {
        due: result.ended.after(wait),
        whole_host: busy,
    }
}

/// How long the server wants to be left alone.
pub fn asked_for(result: &FetchResult) -> Option<Duration> {
    let exchange = result.exchange.as_ref()?;
    retry_after(&exchange.headers, result.ended)
}

/// What is reported of a URL that the URL server gave up before any request for it. With `again` it gets another
/// chance then, whether the crawl visits pages again or not.
pub fn refusal(
    candidate: &Candidate,
    outcome: Outcome,
    again: Option<Timestamp>,
    options: &RetryOptions,
    at: Timestamp,
) -> Event {
    let key = candidate.key;
    let made = candidate.attempts.saturating_add(1);
    let report = |outcome| Report::unasked(outcome, at);
    // The URL server has asked for robots.txt as often as it makes sense; a name may resolve later.
    if outcome.class == OutcomeClass::FailedDns && made < options.attempts {
        let outcome = Outcome::because(
            OutcomeClass::Deferred,
            format!("{}, will be retried", outcome.reason),
        );
        return Event::Retry {
            key,
            report: report(outcome),
            due: at.after(options.delay),
            archived: None,
        };
    }
    Event::Done {
        key,
        report: report(outcome),
        links: Vec::new(),
        revisit: again.map(|again| {
            let before = candidate.revisit.clone();
            let mut revisit = before.unwrap_or_else(|| Box::new(Revisit::unvisited(at)));
            revisit.due = Some(again);
            revisit
        }),
        archived: None,
    }
}

/// Retry-After as seconds or as a date; none when it is absent, unreadable or in the past.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers
        .get(http::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are a very long wait, not a mistake.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let millis = date.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
    let date = Timestamp::from_millis(u64::try_from(millis).ok()?);
    Some(date.since(now)).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn after(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(
            http::header::RETRY_AFTER,
            HeaderValue::from_str(value).unwrap(),
        );
        retry_after(&headers, Timestamp::from_millis(784_111_777_000))
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        assert_eq!(after("5"), Some(Duration::from_secs(5)));
        assert_eq!(
            after("99999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        assert_eq!(
            after("Sun, 06 Nov 1994 08:50:37 GMT"),
            Some(Duration::from_secs(60))
        );
        let end = after("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
        assert!(end > Duration::from_secs(8000 * 365 * 86_400), "{end:?}");
        for useless in ["soon", "-10", "", "Sun, 06 Nov 1994 08:48:37 GMT"] {
            assert_eq!(after(useless), None, "{useless}");
        }
    }
}
