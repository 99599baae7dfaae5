//! Joining without a parser: the links whose canonical form can be written down in one pass.
//!
//! The full parser takes about half a microsecond per link and a string for each. Nearly all links of a page are
//! `/a/b?c=d`, `../b.html`, `?page=2` or `https://example.org/a`, made of plain ASCII; those are written
//! straight into a buffer, dot segments undone. Whatever is not certainly understood is left to the parser,
//! and a property test holds both to the same answers.

use std::cell::OnceCell;

use orbweaver_model::CrawlUrl;
use url::{Position, Url};

/// A base URL, looked at once for all the links of a page.
#[derive(Debug)]
pub(crate) struct Base<'a> {
    text: &'a str,
    /// The same for the parser, which few pages need.
    parsed: OnceCell<Option<Url>>,
    scheme: &'a str,
    /// Scheme and authority, when nothing in them is to be normalised.
    origin: Option<&'a str>,
    /// The URL up to the last slash of its path, under the same condition.
    directory: Option<&'a str>,
    /// The URL up to the end of its path, likewise.
    page: Option<&'a str>,
}

impl<'a> Base<'a> {
    /// Any http or https URL.
    pub(crate) fn new(url: &'a Url) -> Self {
        let text = url.as_str();
        let clean = url.username().is_empty()
            && url.password().is_none()
            && url.port() != Some(0)
            && url.host_str().is_some_and(host_is_usable);
        let front = clean.then(|| (&url[..Position::BeforePath], &url[..Position::AfterPath]));
        Self::of_parts(text, url.scheme(), front)
    }

    /// A page of the crawl.
    pub(crate) fn of(url: &'a CrawlUrl) -> Self {
        let text = url.as_str();
        let front = host_is_usable(url.host()).then(|| {
            let end = url.origin().len() + url.path().len();
            (url.origin(), text.get(..end).unwrap_or_default())
        });
        Self::of_parts(text, url.scheme().as_str(), front)
    }

    fn of_parts(text: &'a str, scheme: &'a str, front: Option<(&'a str, &'a str)>) -> Self {
        let is_web = matches!(scheme, "http" | "https");
        let front = front.filter(|_| is_web);
        let page = front.and_then(|(origin, page)| {
            let path = page.get(origin.len()..)?;
            is_clean_path(path).then_some(page)
        });
        Self {
            text,
            parsed: OnceCell::new(),
            scheme: if is_web { scheme } else { "" },
            origin: front.map(|(origin, _)| origin),
            directory: page.and_then(|page| page.get(..=page.rfind('/')?)),
            page,
        }
    }

    /// The URL as the parser wants it.
    pub(crate) fn url(&self) -> Option<&Url> {
        let parsed = self.parsed.get_or_init(|| Url::parse(self.text).ok());
        parsed.as_ref()
    }
}

/// Puts the canonical text of `href` against `base` into `out`; none when the parser must decide, and then
/// `out` holds something or other.
pub(crate) fn join(base: &Base<'_>, href: &str, out: &mut String) -> Option<()> {
    out.clear();
    let bytes = href.as_bytes();
    match (*bytes.first()?, bytes.get(1)) {
        (b'/', Some(b'/')) => {
            if base.scheme.is_empty() {
                return None;
            }
            out.push_str(base.scheme);
            push_authority(out, href.get(2..)?)
        }
        (b'#', _) | (b'/' | b'\\', Some(b'/' | b'\\')) => None,
        (b'/' | b'\\', _) => {
            let origin = base.origin?;
            out.push_str(origin);
            out.push('/');
            push_path(out, origin.len(), href.get(1..)?)
        }
        (b'?', _) => {
            out.push_str(base.page?);
            push_query(out, href)
        }
        (first, _) => {
            if first.is_ascii_alphabetic()
                && let Some((scheme, rest)) = absolute(href)
            {
                out.push_str(scheme);
                return push_authority(out, rest);
            }
            if !has_no_scheme(bytes) {
                return None;
            }
            out.push_str(base.directory?);
            push_path(out, base.origin?.len(), href)
        }
    }
}

/// True when the text is certainly a URL of another scheme than http and https: `mailto:x`, `javascript:y`.
/// Those that the standard calls special have rules of their own.
pub(crate) fn is_foreign(href: &str) -> bool {
    let Some((scheme, rest)) = href.split_once(':') else {
        return false;
    };
    let special = ["http", "https", "ws", "wss", "ftp", "file"];
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
        && !special.iter().any(|it| scheme.eq_ignore_ascii_case(it))
        && !rest.starts_with(['/', '\\'])
}

/// The scheme of an absolute href, and what follows its two slashes.
fn absolute(href: &str) -> Option<(&'static str, &str)> {
    ["http", "https"].into_iter().find_map(|scheme| {
        let (front, rest) = href.split_at_checked(scheme.len())?;
        let rest = rest.strip_prefix("://")?;
        front.eq_ignore_ascii_case(scheme).then_some((scheme, rest))
    })
}

/// True when no colon comes before the first slash, question mark or hash.
fn has_no_scheme(href: &[u8]) -> bool {
    !href
        .iter()
        .take_while(|b| !matches!(b, b'/' | b'?' | b'#'))
        .any(|b| *b == b':')
}

/// Adds an authority to the scheme in `out`, then the path and the query after it. Only plain names and
/// plain IPv4 addresses are taken; odd spellings of addresses, IDN and user names are the parser's.
fn push_authority(out: &mut String, rest: &str) -> Option<()> {
    let default = if out == "https" { 443 } else { 80 };
    out.push_str("://");
    let start = out.len();
    let end = rest
        .bytes()
        .position(|b| matches!(b, b'/' | b'\\' | b'?' | b'#'));
    let (authority, tail) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    out.push_str(host);
    out.get_mut(start..)?.make_ascii_lowercase();
    if !is_plain_host(out.get(start..)?) {
        return None;
    }
    if let Some(port) = port {
        let plain =
            port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
        let number: u16 = port.parse().ok().filter(|_| plain)?;
        if number != default {
            out.push(':');
            out.push_str(port);
        }
    }
    let floor = out.len();
    out.push('/');
    push_path(out, floor, tail.strip_prefix(['/', '\\']).unwrap_or(tail))
}

/// A last label that begins with a digit may make the name an IPv4 address in disguise, and "xn--" labels
/// must be checked by IDNA.
fn is_plain_host(host: &str) -> bool {
    if !host_is_usable(host) || host.starts_with('[') {
        return false;
    }
    let last = host.bytes().rposition(|b| b == b'.').map_or(0, |at| at + 1);
    let numeric = host.as_bytes().get(last).is_some_and(u8::is_ascii_digit);
    match numeric {
        true => is_plain_ipv4(host),
        false => !host.split('.').any(|label| label.starts_with("xn--")),
    }
}

/// Four numbers as they are printed: the standard library reads no other form.
fn is_plain_ipv4(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Adds a path without its first slash, and the query behind it, to what ends in a slash. Nothing above
/// `floor`, where the path begins, is ever taken away by `..`.
fn push_path(out: &mut String, floor: usize, tail: &str) -> Option<()> {
    let bytes = tail.as_bytes();
    let mut segment = out.len();
    let mut from = 0;
    let mut at = 0;
    loop {
        match bytes.get(at).map_or(END, |b| class(*b)) {
            PLAIN | QUOTE => at += 1,
            ESCAPE => {
                at = push_escape(out, tail, from, at)?;
                from = at;
            }
            SLASH => {
                out.push_str(tail.get(from..at)?);
                if !undo_dots(out, floor, segment) {
                    out.push('/');
                }
                segment = out.len();
                at += 1;
                from = at;
            }
            QUERY | END => {
                out.push_str(tail.get(from..at)?);
                undo_dots(out, floor, segment);
                return push_query(out, tail.get(at..)?);
            }
            _ => return None,
        }
    }
}

/// Adds a query with its question mark, up to the fragment. Nothing is added when there is none.
fn push_query(out: &mut String, query: &str) -> Option<()> {
    if !query.starts_with('?') {
        return Some(());
    }
    out.push('?');
    let bytes = query.as_bytes();
    let mut from = 1;
    let mut at = 1;
    loop {
        match bytes.get(at).copied() {
            None | Some(b'#') => {
                out.push_str(query.get(from..at)?);
                return Some(());
            }
            Some(b'/' | b'?') => at += 1,
            Some(b) => match class(b) {
                PLAIN => at += 1,
                ESCAPE => {
                    at = push_escape(out, query, from, at)?;
                    from = at;
                }
                _ => return None,
            },
        }
    }
}

/// Adds what stands between `from` and the escape at `at`, and the escape with its digits in upper case.
/// Returns where it ends. A percent sign that begins no escape is the parser's.
fn push_escape(out: &mut String, text: &str, from: usize, at: usize) -> Option<usize> {
    let digits = text.get(at + 1..at + 3)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    out.push_str(text.get(from..at + 3)?);
    let end = out.len();
    out.get_mut(end - 2..)?.make_ascii_uppercase();
    Some(at + 3)
}

/// True when what has been written since `segment` was a dot segment, which is gone then.
fn undo_dots(out: &mut String, floor: usize, segment: usize) -> bool {
    let name = out.get(segment..).unwrap_or_default();
    if !name.starts_with(['.', '%']) {
        return false;
    }
    match name {
        "." | "%2E" => out.truncate(segment),
        ".." | ".%2E" | "%2E." | "%2E%2E" => {
            // Without the slash at its end, up to the one before.
            let path = out.get(floor..segment.saturating_sub(1));
            let above = path.and_then(|path| path.rfind('/')).unwrap_or(0);
            out.truncate(floor + above + 1);
        }
        _ => return false,
    }
    true
}

/// True when a path that the parser has written is canonical as it is.
fn is_clean_path(path: &str) -> bool {
    let mut bytes = path.bytes();
    while let Some(b) = bytes.next() {
        let clean = match class(b) {
            PLAIN | QUOTE => true,
            SLASH => b == b'/',
            ESCAPE => {
                let upper = |b: Option<u8>| matches!(b, Some(b'0'..=b'9' | b'A'..=b'F'));
                upper(bytes.next()) && upper(bytes.next())
            }
            _ => false,
        };
        if !clean {
            return false;
        }
    }
    true
}

/// Canonical as it is, in a path and in a query.
const PLAIN: u8 = 0;
/// Canonical in a path.
const QUOTE: u8 = 1;
/// A slash, or what the standard reads as one in a path.
const SLASH: u8 = 2;
const ESCAPE: u8 = 3;
/// Where a path ends.
const QUERY: u8 = 4;
/// Where everything ends: the fragment, or the text.
const END: u8 = 5;
/// For the parser.
const OTHER: u8 = 6;

static CLASSES: [u8; 256] = classes();

#[allow(
    clippy::indexing_slicing,
    reason = "runs while compiling, where an index out of bounds is an error"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [OTHER; 256];
    let mut b = 0;
    while b < 128 {
        classes[b] = match b as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => PLAIN,
            b'-' | b'_' | b'~' | b'!' | b'$' | b'&' | b'(' | b')' | b'*' => PLAIN,
            b'+' | b',' | b';' | b'=' | b':' | b'@' | b'[' | b']' | b'.' => PLAIN,
            b'\'' => QUOTE,
            b'/' | b'\\' => SLASH,
            b'%' => ESCAPE,
            b'?' => QUERY,
            b'#' => END,
            _ => OTHER,
        };
        b += 1;
    }
    classes
}

fn class(b: u8) -> u8 {
    CLASSES.get(usize::from(b)).copied().unwrap_or(OTHER)
}

/// True when a resolver can be asked for this name, or when it is an address.
pub(crate) fn host_is_usable(host: &str) -> bool {
    if host.starts_with('[') {
        return host.ends_with(']');
    }
    let mut label = 0usize;
    for b in host.bytes() {
        match b {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' if label < 63 => label += 1,
            b'.' if label > 0 => label = 0,
            _ => return false,
        }
    }
    label > 0 && host.len() <= 253
}
