//! SURT keys: the sort keys of CDXJ indexes, as the `surt` package for Python and pywb write them.
//!
//! `https://www.Example.org:8080/A/?b=2&a=1` becomes `org,example:8080)/a?a=1&b=2`. The key is
//! lossy on purpose (case, `www.`, order of arguments, session ids): archives look a page up by it.
//! It is not the identity of a URL in this crawler; that is the canonical URL itself. The rules
//! follow the Internet Archive's canonicaliser with its defaults, in its order, quirks included:
//! IPv4 octets are reversed like labels, IPv6 loses its brackets.

use std::borrow::Cow;
use std::sync::LazyLock;

use orbweaver_model::CrawlUrl;
use regex::Regex;

/// The SURT key of a URL.
pub fn surt(url: &CrawlUrl) -> String {
    let mut key = String::with_capacity(url.as_str().len());
    push_host(&mut key, url);
    key.push(')');
    key.push_str(&surt_path(url.path()));
    let query = url.query().map(surt_query).unwrap_or_default();
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    key
}

fn push_host(key: &mut String, url: &CrawlUrl) {
    let host = url.host();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    for (index, label) in strip_www(host).rsplit('.').enumerate() {
        if index > 0 {
            key.push(',');
        }
        key.push_str(label);
    }
    if url.port() != url.scheme().default_port() {
        key.push(':');
        key.push_str(&url.port().to_string());
    }
}

/// Drops one leading `www.`, `www1.`, `www23.` …
fn strip_www(host: &str) -> &str {
    host.strip_prefix("www")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(host)
}

fn surt_path(path: &str) -> String {
    let unescaped = unescape_repeatedly(path.as_bytes());
    let mut path = escape_once(&normalize_path(&unescaped)).to_ascii_lowercase();
    if path.contains(".aspx") {
        for pattern in PATH_SESSIONS.iter() {
            path = strip_match(pattern, path);
        }
    }
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    path
}

fn surt_query(query: &str) -> String {
    let mut query = escape_once(&unescape_repeatedly(query.as_bytes()));
    // Every pattern needs one of these; most queries have neither and skip five regexes.
    if contains_ignore_case(&query, "sid")
        || contains_ignore_case(&query, "ssionid")
        || contains_ignore_case(&query, "cfid")
    {
        for pattern in QUERY_SESSIONS.iter() {
            query = strip_match(pattern, query);
        }
    }
    query.make_ascii_lowercase();
    sort_arguments(&query)
}

fn contains_ignore_case(text: &str, needle: &str) -> bool {
    text.as_bytes()
        .windows(needle.len())
        .any(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// Sorts by name, then value; an argument without `=` comes before the same name with one.
fn sort_arguments(query: &str) -> String {
    let mut arguments: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|argument| match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        })
        .collect();
    arguments.sort_unstable();
    let mut sorted = String::with_capacity(query.len());
    for (index, (name, value)) in arguments.into_iter().enumerate() {
        if index > 0 {
            sorted.push('&');
        }
        sorted.push_str(name);
        if let Some(value) = value {
            sorted.push('=');
            sorted.push_str(value);
        }
    }
    sorted
}

/// Undoes percent escapes until none is left: `%2541` is `A`.
fn unescape_repeatedly(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'%') {
        return Cow::Borrowed(text);
    }
    let mut current = text.to_vec();
    for _ in 0..MAX_UNESCAPE_PASSES {
        let next = unescape(&current);
        if next.len() == current.len() {
            break;
        }
        current = next;
    }
    Cow::Owned(current)
}

/// `%2525…41` unfolds by one layer a pass. Escapes nested deeper than this are nobody's honest URL,
/// and without a bound such a URL would cost the square of its length.
const MAX_UNESCAPE_PASSES: usize = 64;

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        let pair = (b == b'%')
            .then(|| {
                Some((
                    hex_value(*text.get(at + 1)?)?,
                    hex_value(*text.get(at + 2)?)?,
                ))
            })
            .flatten();
        if let Some((high, low)) = pair {
            out.push(high << 4 | low);
            at += 3;
        } else {
            out.push(b);
            at += 1;
        }
    }
    out
}

const fn hex_value(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    }
}

/// Escapes everything but printable ASCII, and `%` and `#` too.
fn escape_once(bytes: &[u8]) -> String {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or('0');
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        if b.is_ascii_graphic() && !matches!(b, b'%' | b'#') {
            out.push(char::from(b));
        } else {
            out.push('%');
            out.push(digit(b >> 4));
            out.push(digit(b & 15));
        }
    }
    out
}

/// Resolves dot segments that unescaping brought to light and collapses slashes. A `..` that has
/// nothing to climb out of stays.
fn normalize_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|b| *b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." => {
                if kept.pop().is_none() {
                    kept.push(segment);
                }
            }
            _ => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    out.push(b'/');
    if let Some((last, directories)) = kept.split_last() {
        for directory in directories.iter().filter(|segment| !segment.is_empty()) {
            out.extend_from_slice(directory);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

static PATH_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile(&[
        r"(?i)^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$",
        r"(?i)^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$",
    ])
});

static QUERY_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile(&[
        r"(?i)^(.*)(?:jsessionid=[0-9a-z]{32})(?:&(.*))?$",
        r"(?i)^(.*)(?:phpsessid=[0-9a-z]{32})(?:&(.*))?$",
        r"(?i)^(.*)(?:sid=[0-9a-z]{32})(?:&(.*))?$",
        r"(?i)^(.*)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(.*))?$",
        r"(?i)^(.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$",
    ])
});

/// Compiles our own constant patterns; a test proves that none is lost.
fn compile(patterns: &[&str]) -> Vec<Regex> {
    patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
}

/// The text without what the pattern matches between its two groups.
fn strip_match(pattern: &Regex, text: String) -> String {
    let stripped = pattern.captures(&text).map(|groups| {
        let group = |index| groups.get(index).map_or("", |found| found.as_str());
        format!("{}{}", group(1), group(2))
    });
    stripped.unwrap_or(text)
}
