//! What an exchange counts as.

use std::time::Duration;

use orbweaver_model::{FetchRequest, Outcome, OutcomeClass, Purpose, Truncation};

use crate::deadline::Deadline;
use crate::exchange::{Answer, Failure, leads_on};
use crate::status::{Action, action};

/// The outcome of a request that got an answer. The status decides; only where it promises a document
/// does the state of the body matter.
pub(crate) fn answer(answer: &Answer, request: &FetchRequest) -> Outcome {
    match action(answer.status) {
        Action::Store if answer.status == 304 && request.known.is_some() => {
            Outcome::because(OutcomeClass::Success, "not modified")
        }
        Action::Store => document(answer, request.purpose),
        Action::Follow { .. } if leads_on(answer.status, &answer.headers) => {
            Outcome::plain(OutcomeClass::RedirectFollowed)
        }
        Action::Follow { .. } => {
            Outcome::because(OutcomeClass::HttpError, "redirect without a target")
        }
        Action::Busy | Action::Retry | Action::GiveUp | Action::Missing | Action::Gone => {
            Outcome::plain(OutcomeClass::HttpError)
        }
        Action::Violation => Outcome::because(
            OutcomeClass::FailedProtocol,
            "interim status instead of a final one",
        ),
    }
}

fn document(answer: &Answer, purpose: Purpose) -> Outcome {
    let gathered = &answer.gathered;
    let body = gathered.decoded.as_ref().unwrap_or(&answer.raw);
    let is_empty = body.is_empty() && answer.spooled.is_none();
    // A robots.txt is read as far as RFC 9309 (2.5) asks; that there is more of it is no failure.
    let robots = purpose == Purpose::Robots;
    let undecoded = gathered.decoded.as_ref().is_none_or(|it| it.is_empty());
    match answer.cut {
        // How much there is of what cannot be read does not matter.
        Some(_) if undecoded && let Some(corrupt) = gathered.corrupt => {
            return Outcome::because(OutcomeClass::FailedDecode, corrupt.0);
        }
        Some(Truncation::Length) if robots && gathered.corrupt.is_none() => {}
        Some(cut) if is_empty => return nothing_came(cut, gathered.decoded.is_some()),
        Some(cut) => return Outcome::because(OutcomeClass::Truncated, cut_reason(cut)),
        None => {}
    }
    match gathered.corrupt {
        // What could be read of it is kept, like any other part of a document.
        Some(corrupt) if !undecoded => Outcome::because(OutcomeClass::Truncated, corrupt.0),
        Some(corrupt) => Outcome::because(OutcomeClass::FailedDecode, corrupt.0),
        None if is_empty => Outcome::plain(OutcomeClass::SuccessEmpty),
        None => Outcome::plain(OutcomeClass::Success),
    }
}

/// A good head and then not one byte that can be used. What fills the limit without being content is
/// swallowed by the decoder, or else by the framing.
fn nothing_came(cut: Truncation, encoded: bool) -> Outcome {
    let class = match cut {
        Truncation::Time => OutcomeClass::FailedTimeout,
        Truncation::Length if encoded => OutcomeClass::FailedDecode,
        Truncation::Disconnect | Truncation::Length => OutcomeClass::FailedProtocol,
    };
    Outcome::because(class, cut_reason(cut))
}

fn cut_reason(cut: Truncation) -> &'static str {
    match cut {
        Truncation::Length => "body over the size limit",
        Truncation::Time => "body not received in time",
        Truncation::Disconnect => "body ended early",
    }
}

/// The outcome of an order that got no answer.
pub(crate) fn failure(failure: Failure) -> Option<Outcome> {
    Some(match failure {
        Failure::Unanswered => {
            Outcome::because(OutcomeClass::FailedProtocol, "closed without a response")
        }
        Failure::Nowhere => {
            Outcome::because(OutcomeClass::RedirectRefused, "redirect target too long")
        }
        Failure::Protocol(reason) => Outcome::because(OutcomeClass::FailedProtocol, reason),
        Failure::Timeout(reason) => Outcome::because(OutcomeClass::FailedTimeout, reason),
        Failure::Refused => return None,
    })
}

/// What is said of a document that is whole and was read in part.
pub const IN_PART: &str = "only its first part was searched for links";

/// From here on, time in which nobody drove a fetch may be why it failed.
pub(crate) const STALLED: Duration = Duration::from_secs(1);

/// Servers give up writing to one who does not read after some seconds, not sooner.
const WAITED: Duration = Duration::from_secs(5);

/// The outcome of a fetch that failed because of us: it was no attempt, and the URL is put back. `ours` is what is
/// known to have failed here; `cut` is why the body is not whole.
pub(crate) fn blame(
    outcome: &Outcome,
    cut: Option<Truncation>,
    ours: Option<String>,
    deadline: &mut Deadline,
) -> Option<Outcome> {
    let put_back = |why: String| Outcome::because(OutcomeClass::Deferred, why);
    if let Some(why) = ours {
        return Some(put_back(why));
    }
    // A server that hung up may have done so because nobody was there. One that was too slow had all its time, for
    // the limits moved along; unless the machine slept, after which no connection is what it was.
    let hung_up = match outcome.class {
        OutcomeClass::FailedProtocol | OutcomeClass::FailedTls => {
            outcome.reason.starts_with("closed")
        }
        OutcomeClass::Truncated => cut == Some(Truncation::Disconnect),
        _ => false,
    };
    let too_slow = match outcome.class {
        OutcomeClass::FailedConnect | OutcomeClass::FailedTimeout => true,
        OutcomeClass::Truncated => cut == Some(Truncation::Time),
        _ => false,
    };
    if (hung_up && deadline.stalled() >= STALLED) || (too_slow && deadline.slept() >= STALLED) {
        return Some(put_back("this process was stopped for a while".into()));
    }
    (hung_up && deadline.waited() >= WAITED).then(|| {
        put_back(
            "a server closed the connection while its response waited for memory or disk here"
                .into(),
        )
    })
}
