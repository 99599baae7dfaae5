//! Session ids in URLs, removed only when the user asks for it.
//!
//! Recognised are the names that web frameworks put there by themselves. Tracking parameters such
//! as `utm_source` are not session ids and stay.

use std::borrow::Cow;

/// Query arguments that are session ids, in lower case. `ASPSESSIONID…` comes with a random tail
/// and is matched by its beginning.
const NAMES: &[&str] = &[
    "cfid",
    "cftoken",
    "jsessionid",
    "oscsid",
    "phpsessid",
    "sess_id",
    "session_id",
    "sessionid",
    "sid",
    "zenid",
];

/// The canonical URL without its session ids; borrowed when there are none.
pub(crate) fn strip_session_ids(url: &str) -> Cow<'_, str> {
    let (before_query, query) = match url.split_once('?') {
        Some((front, query)) => (front, Some(query)),
        None => (url, None),
    };
    let path = strip_path(before_query);
    let query_has_id = query.is_some_and(|query| query.split('&').any(is_session_argument));
    if matches!(path, Cow::Borrowed(_)) && !query_has_id {
        return Cow::Borrowed(url);
    }
    let mut out = path.into_owned();
    let mut separator = '?';
    for argument in query.into_iter().flat_map(|query| query.split('&')) {
        if !is_session_argument(argument) {
            out.push(separator);
            out.push_str(argument);
            separator = '&';
        }
    }
    Cow::Owned(out)
}

fn is_session_argument(argument: &str) -> bool {
    is_session_name(argument.split('=').next().unwrap_or_default())
}

/// Whether a query argument with this name is a session id.
pub(crate) fn is_session_name(name: &str) -> bool {
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
        || starts_with_ignore_case(name, "aspsessionid")
}

/// Drops `;jsessionid=…` and `;phpsessid=…` parameters, and ASP.NET's `/(S(…))` segments.
fn strip_path(path: &str) -> Cow<'_, str> {
    let suspicious = path.contains(';') || path.contains("/(");
    if !suspicious {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    let mut segments = path.split('/').enumerate().peekable();
    while let Some((index, segment)) = segments.next() {
        if is_aspnet_segment(segment) {
            // In the last place its slash stays: a directory is not a file.
            if segments.peek().is_none() {
                out.push('/');
            }
            continue;
        }
        if index > 0 {
            out.push('/');
        }
        for (index, part) in segment.split(';').enumerate() {
            let id = starts_with_ignore_case(part, "jsessionid=")
                || starts_with_ignore_case(part, "phpsessid=");
            if index == 0 {
                out.push_str(part);
            } else if !id {
                out.push(';');
                out.push_str(part);
            }
        }
    }
    if out == path {
        return Cow::Borrowed(path);
    }
    Cow::Owned(out)
}

/// `(S(24 letters or digits))`, and the older `(24 letters or digits)`.
fn is_aspnet_segment(segment: &str) -> bool {
    let Some(inner) = segment.strip_prefix('(').and_then(|s| s.strip_suffix(')')) else {
        return false;
    };
    let id = inner
        .split_once('(')
        .filter(|(letter, _)| letter.len() == 1)
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(inner);
    id.len() == 24 && id.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
