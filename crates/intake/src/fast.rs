//! Joining without a parser: the links whose canonical form is base and href put side by side.
//!
//! The full parser takes about half a microsecond a link. Most links of a page are `/a/b?c=d`,
//! `b.html` or `https://example.org/a`, in which nothing is to be normalised; those are recognised
//! by one pass over their bytes. Whatever is not certainly clean is left to the parser, and a
//! property test holds both to the same answers.

use url::{Position, Url};

use crate::canonical::host_is_usable;

/// A base URL, looked at once for all the links of a page.
#[derive(Debug)]
pub(crate) struct Base<'a> {
    pub(crate) url: &'a Url,
    /// Scheme and authority, when nothing in them is to be normalised.
    origin: Option<&'a str>,
    /// The URL up to the last slash of its path, under the same condition.
    directory: Option<&'a str>,
}

impl<'a> Base<'a> {
    pub(crate) fn new(url: &'a Url) -> Self {
        let origin = clean_origin(url);
        Self {
            url,
            origin,
            directory: origin.and_then(|origin| clean_directory(url, origin)),
        }
    }
}

/// The canonical text of `href` against `base`, or none when the parser must decide.
pub(crate) fn join(base: &Base<'_>, href: &str) -> Option<String> {
    let bytes = href.as_bytes();
    let first = *bytes.first()?;
    let (front, tail) = if first == b'/' {
        if matches!(bytes.get(1), Some(b'/' | b'\\')) {
            return None;
        }
        (base.origin?, href)
    } else if let Some(authority_len) = absolute(base, href) {
        href.split_at_checked(authority_len)?
    } else if first.is_ascii_alphanumeric() && has_no_scheme(bytes) {
        (base.directory?, href)
    } else {
        return None;
    };
    let end = clean_tail(tail.as_bytes())?;
    let mut text = String::with_capacity(front.len() + end);
    text.push_str(front);
    text.push_str(tail.get(..end)?);
    Some(text)
}

fn clean_origin(base: &Url) -> Option<&str> {
    let host = base.host_str()?;
    let clean = matches!(base.scheme(), "http" | "https")
        && base.username().is_empty()
        && base.password().is_none()
        && base.port() != Some(0)
        && host_is_usable(host);
    clean.then(|| &base[..Position::BeforePath])
}

fn clean_directory<'a>(base: &'a Url, origin: &str) -> Option<&'a str> {
    let path = base.path();
    let directory = path.get(..=path.rfind('/')?)?;
    if clean_tail(directory.as_bytes())? != directory.len() {
        return None;
    }
    base.as_str().get(..origin.len() + directory.len())
}

/// The length of `scheme://host` when the href is absolute and its host is a plain lower-case name.
/// Ports, addresses and IDN of other sites go to the parser.
fn absolute(base: &Base<'_>, href: &str) -> Option<usize> {
    // Most absolute links stay on their own site, whose authority is known to be clean.
    if let Some(origin) = base.origin
        && href
            .strip_prefix(origin)
            .is_some_and(|rest| rest.starts_with('/'))
    {
        return Some(origin.len());
    }
    let scheme_len = if href.starts_with("https://") {
        8
    } else if href.starts_with("http://") {
        7
    } else {
        return None;
    };
    let rest = href.get(scheme_len..)?;
    let host = rest.get(..rest.find('/')?)?;
    let last = host.rsplit('.').next()?;
    // A last label that begins with a digit may make the name an IPv4 address in disguise, and
    // "xn--" labels must be checked by IDNA.
    let plain = host_is_usable(host)
        && !host.starts_with('[')
        && !last.starts_with(|c: char| c.is_ascii_digit())
        && !host.split('.').any(|label| label.starts_with("xn--"));
    plain.then_some(scheme_len + host.len())
}

/// True when no colon comes before the first slash, question mark or hash.
fn has_no_scheme(href: &[u8]) -> bool {
    !href
        .iter()
        .take_while(|b| !matches!(b, b'/' | b'?' | b'#'))
        .any(|b| *b == b':')
}

/// Where the fragment begins in a path (or the end of one) with its query, when all that stands
/// before it is canonical as it is.
fn clean_tail(tail: &[u8]) -> Option<usize> {
    let mut segment_start = true;
    let mut in_query = false;
    let mut at = 0;
    while let Some(&b) = tail.get(at) {
        match b {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'['
            | b']' => {
                segment_start = false;
            }
            b'.' => {
                // A segment that begins with a dot may be a dot segment.
                if segment_start && !in_query {
                    return None;
                }
            }
            b'/' => segment_start = true,
            b'\'' if !in_query => segment_start = false,
            b'%' => {
                let pair = tail.get(at + 1..at + 3)?;
                // `%2E` may be a dot segment in disguise.
                let clean = pair.iter().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))
                    && (in_query || pair != b"2E");
                if !clean {
                    return None;
                }
                segment_start = false;
                at += 2;
            }
            b'?' => in_query = true,
            b'#' => return Some(at),
            _ => return None,
        }
        at += 1;
    }
    Some(at)
}
