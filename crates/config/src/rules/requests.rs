//! What requests to single hosts say and take: header lines, credentials, limits.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use orbweaver_model::{Credentials, Limits};

use crate::config::LimitsConfig;
use crate::hosts::{AuthConfig, HostLimitsConfig};
use crate::mistakes::Mistakes;
use crate::origins::Origins;
use crate::parts;

/// Headers of one host; more are a mistake rather than a wish.
const MAX_HEADERS: usize = 32;

/// Bytes of a file with a secret.
const MAX_SECRET: usize = 4096;

/// Headers that the fetch itself has to decide, and what sets them instead.
const OURS: [(&str, &str); 17] = [
    ("host", "it follows from the URL"),
    ("content-length", "a request has no body"),
    ("transfer-encoding", "a request has no body"),
    ("connection", "connections are reused"),
    ("keep-alive", "connections are reused"),
    ("proxy-connection", "connections are reused"),
    ("upgrade", "connections are reused"),
    ("te", "bodies are archived as received"),
    ("trailer", "a request has no body"),
    ("expect", "a request has no body"),
    ("accept-encoding", "it lists what can be decoded"),
    ("range", "pages are fetched completely"),
    ("if-none-match", "it is sent on revisits"),
    ("if-modified-since", "it is sent on revisits"),
    (
        "user-agent",
        "use the setting user_agent, which robots.txt rules refer to",
    ),
    (
        "authorization",
        "use the setting auth, which is kept secret",
    ),
    ("proxy-authorization", "proxies are not supported"),
];

/// Names the headers that cannot be sent.
pub(super) fn demand_headers(
    path: &str,
    headers: &BTreeMap<String, String>,
    wrong: &mut Mistakes<'_>,
) {
    let few = headers.len() <= MAX_HEADERS;
    wrong.demand(few, &format!("{path}.headers"), "must be at most 32 lines");
    for (name, value) in headers {
        let path = format!("{path}.headers.{name:?}");
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            wrong.about(&path, "not a valid header name");
            continue;
        };
        if let Some((_, why)) = OURS.iter().find(|(ours, _)| *ours == header.as_str()) {
            wrong.about(&path, format_args!("this header cannot be set: {why}"));
        }
        let sendable = HeaderValue::from_str(value).is_ok() && value.is_ascii();
        wrong.demand(sendable, &path, "must be printable ASCII");
        let again = headers
            .keys()
            .filter(|other| other.eq_ignore_ascii_case(name));
        let must = "is given twice, in lower and upper case";
        wrong.demand(again.count() == 1, &path, must);
    }
}

/// The header lines that can be sent.
pub(super) fn headers(given: &BTreeMap<String, String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Names what is wrong with credentials; the answer is what is missing of them.
pub(super) fn demand_auth(
    path: &str,
    auth: &AuthConfig,
    wrong: &mut Mistakes<'_>,
) -> Option<String> {
    let AuthConfig { user, password, .. } = auth;
    let one = |text: &Option<String>, file: &Option<String>| text.is_none() || file.is_none();
    let basic = user.is_some() || password.is_some() || auth.password_file.is_some();
    let bearer = auth.token.is_some() || auth.token_file.is_some();
    let must = "must have user and password, or a token, and not both";
    wrong.demand(!(basic && bearer), path, must);
    wrong.demand(
        !basic || user.is_some(),
        path,
        "must have a user for the password",
    );
    let must = "must have one password";
    wrong.demand(one(password, &auth.password_file), path, must);
    wrong.demand(
        one(&auth.token, &auth.token_file),
        path,
        "must have one token",
    );
    let colon = user.as_deref().is_some_and(|user| user.contains(':'));
    let must = "must not contain a colon";
    wrong.demand(!colon, &format!("{path}.user"), must);
    match header(auth) {
        Ok(_) => None,
        Err(Missing::Unsendable) => {
            wrong.demand(false, path, "cannot be sent in a header");
            None
        }
        Err(Missing::Secret(why)) => Some(format!("{}: {why}", wrong.name(path))),
    }
}

/// The credentials, where they are whole.
pub(super) fn credentials(auth: &AuthConfig) -> Option<Credentials> {
    Some(Credentials {
        value: header(auth).ok()?,
        over_http: auth.over_http.unwrap_or(false),
    })
}

/// Why there is no header.
enum Missing {
    Secret(String),
    Unsendable,
}

fn header(auth: &AuthConfig) -> Result<HeaderValue, Missing> {
    let text = match &auth.user {
        Some(user) => {
            let password = secret(&auth.password, &auth.password_file, "password")?;
            let both = format!("{user}:{password}");
            format!("Basic {}", BASE64.encode(both.as_bytes()))
        }
        None => format!("Bearer {}", secret(&auth.token, &auth.token_file, "token")?),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| Missing::Unsendable)?;
    value.set_sensitive(true);
    Ok(value)
}

fn secret(text: &Option<String>, file: &Option<String>, what: &str) -> Result<String, Missing> {
    if let Some(text) = text {
        return Ok(text.clone());
    }
    let Some(path) = file else {
        return Err(Missing::Secret(format!(
            "the {what} is not given; it is not kept in the crawl directory, so give the file again with -c, \
             or name a {what}_file"
        )));
    };
    let unreadable = |why: String| Missing::Secret(format!("cannot read {path}: {why}"));
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() {
        1..=MAX_SECRET => Ok(text.to_owned()),
        0 => Err(unreadable("it is empty".into())),
        _ => Err(unreadable("it has more than 4096 bytes".into())),
    }
}

/// Names the limits that make no sense for a host.
pub(super) fn demand_limits(
    path: &str,
    given: &HostLimitsConfig,
    usual: &Limits,
    wrong: &mut Mistakes<'_>,
) {
    for (key, seconds) in [
        ("connect_timeout_s", given.connect_timeout_s),
        ("header_timeout_s", given.header_timeout_s),
        ("idle_timeout_s", given.idle_timeout_s),
        ("total_timeout_s", given.total_timeout_s),
    ] {
        let path = format!("{path}.limits.{key}");
        let time = wrong.seconds(&path, seconds);
        let some = time.is_none_or(|time| !time.is_zero());
        wrong.demand(some, &path, "must be above 0");
    }
    // Memory is shared out by the general limit.
    for (key, given, usual) in [
        ("max_body_bytes", given.max_body_bytes, usual.max_body_bytes),
        (
            "max_decoded_bytes",
            given.max_decoded_bytes,
            usual.max_decoded_bytes,
        ),
    ] {
        let path = format!("{path}.limits.{key}");
        let fits = given.is_none_or(|given| (1..=usual).contains(&given));
        let must = format!("must be above 0, and not above {usual}, the limit for all hosts");
        wrong.demand(fits, &path, &must);
    }
}

/// The limits of a host, where they differ from those of all others.
pub(super) fn over(
    usual: &Limits,
    general: &LimitsConfig,
    given: &HostLimitsConfig,
) -> Option<Limits> {
    if *given == HostLimitsConfig::default() {
        return None;
    }
    let both = LimitsConfig {
        // A time for a whole fetch is one for its parts too, unless these are given with it.
        connect_timeout_s: given.connect_timeout_s.or(general.connect_timeout_s),
        header_timeout_s: given.header_timeout_s,
        idle_timeout_s: given.idle_timeout_s,
        total_timeout_s: given.total_timeout_s,
        min_body_rate: given.min_body_rate,
        max_body_bytes: given.max_body_bytes,
        max_decoded_bytes: given.max_decoded_bytes,
        ..LimitsConfig::default()
    };
    // What is wrong with it was said under its own name.
    let origins = Origins::default();
    Some(parts::limits(
        &both,
        usual.clone(),
        &mut Mistakes::new(&origins),
    ))
}
