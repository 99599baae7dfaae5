//! The canonical form of a URL: WHATWG parsing plus the few rules below, and nothing else.
//!
//! A URL text is parsed by the WHATWG standard (the `url` crate): default ports and dot segments
//! (`%2e` forms too) go, hosts become lower-case ASCII, addresses lose their odd spellings. On top:
//!
//! - the fragment and the user information are dropped; neither is ever sent,
//! - one trailing dot of the host is dropped,
//! - the hex digits of percent escapes are upper case; no escape is decoded, so the server sees what
//!   the author wrote (`%7E` and `~` stay two URLs, as in every browser),
//! - `"` `<` `>` `\` `^` `` ` `` `{` `|` `}` are escaped where WHATWG leaves them (RFC 3986 allows them
//!   in no request target and strict servers answer 400); `[` and `]` stay, as browsers send them,
//! - an empty query keeps its `?` (RFC 3986, section 6.2.3: removing it may change the resource),
//! - session ids are removed only when asked for (see `session`).
//!
//! Hosts that no resolver can be asked for (empty labels, labels over 63 bytes, names over 253,
//! characters other than letters, digits, `-`, `_` and `.`) and port 0 are refused here, so that no
//! queue ever holds them.

use std::borrow::Cow;

use orbweaver_model::{CrawlUrl, Limits, UrlError};
use url::{ParseError, Url};

use crate::fast::{self, Base, host_is_usable};
use crate::session::strip_session_ids;

/// How characters outside ASCII in a query are turned into bytes: with the encoding of the document
/// they stand in, as browsers do. None means UTF-8.
pub type QueryEncoding<'a> = url::EncodingOverride<'a>;

/// How URLs are made canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// Remove session ids (`;jsessionid=`, `PHPSESSID=`, …) from paths and queries.
    pub strip_session_ids: bool,
    /// Longest canonical URL in bytes; a longer one is refused, never cut.
    pub max_url_bytes: usize,
}

impl Default for CanonicalOptions {
    fn default() -> Self {
        Self {
            strip_session_ids: false,
            max_url_bytes: Limits::default().max_url_bytes,
        }
    }
}

/// Why a text is no URL that can be crawled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// mailto:, javascript: and the like; nothing to be done.
    #[error("only http and https URLs can be crawled")]
    Scheme,
    /// There is no host, or no resolver could be asked for it.
    #[error("the host name is missing or malformed")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// A relative reference without a base: write `https://` in front.
    #[error("the URL is not absolute")]
    Relative,
    /// The URL is longer than `max_url_bytes`.
    #[error("the URL is too long")]
    TooLong,
    /// The text cannot be read as a URL at all.
    #[error("this is not a URL")]
    Syntax,
}

impl From<ParseError> for CanonicalError {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::InvalidPort => Self::Port,
            ParseError::RelativeUrlWithoutBase
            | ParseError::RelativeUrlWithCannotBeABaseBase
            | ParseError::SetHostOnCannotBeABaseUrl => Self::Relative,
            ParseError::Overflow => Self::TooLong,
            ParseError::EmptyHost
            | ParseError::IdnaError
            | ParseError::InvalidIpv4Address
            | ParseError::InvalidIpv6Address
            | ParseError::InvalidDomainCharacter => Self::Host,
            _ => Self::Syntax,
        }
    }
}

impl From<UrlError> for CanonicalError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::Scheme => Self::Scheme,
            UrlError::Host => Self::Host,
            UrlError::Port => Self::Port,
            UrlError::TooLong => Self::TooLong,
            UrlError::NotCanonical => Self::Syntax,
        }
    }
}

/// Makes URLs canonical.
#[derive(Clone, Debug, Default)]
pub struct Canonicalizer {
    options: CanonicalOptions,
}

impl Canonicalizer {
    /// A canonicalizer with these options.
    pub fn new(options: CanonicalOptions) -> Self {
        Self { options }
    }

    /// The canonical form of an absolute URL.
    pub fn parse(&self, text: &str) -> Result<CrawlUrl, CanonicalError> {
        self.bound_input(text)?;
        self.finish(&Url::parse(text)?)
    }

    /// The canonical form of `href` as it stands in a document whose base URL is `base`.
    pub fn resolve(
        &self,
        base: &Url,
        href: &str,
        encoding: QueryEncoding<'_>,
    ) -> Result<CrawlUrl, CanonicalError> {
        let mut text = String::new();
        self.resolve_into(&Base::new(base), href, encoding, &mut text)?;
        Ok(CrawlUrl::from_canonical(&text)?)
    }

    /// The same as a text, in a buffer of the caller's: most links of a page are known, and nothing more than
    /// their keys is wanted then. What is not known has still to pass [`CrawlUrl::from_canonical`].
    pub(crate) fn resolve_into(
        &self,
        base: &Base<'_>,
        href: &str,
        encoding: QueryEncoding<'_>,
        text: &mut String,
    ) -> Result<(), CanonicalError> {
        self.bound_input(href)?;
        // Nearly all links need no parser.
        if fast::join(base, href, text).is_some() {
            return self.accept(text);
        }
        if fast::is_foreign(href) {
            return Err(CanonicalError::Scheme);
        }
        let url = Url::options()
            .base_url(Some(base.url().ok_or(CanonicalError::Syntax)?))
            .encoding_override(encoding)
            .parse(two_slashes(href))?;
        write_canonical(&url, text)?;
        self.accept(text)
    }

    /// Refuses what no parser should spend time on. Tabs, newlines and a fragment may vanish from a
    /// text, so the bound on what goes in is looser than the one on what comes out.
    fn bound_input(&self, text: &str) -> Result<(), CanonicalError> {
        if text.len() > self.options.max_url_bytes.saturating_mul(4) {
            return Err(CanonicalError::TooLong);
        }
        Ok(())
    }

    fn finish(&self, url: &Url) -> Result<CrawlUrl, CanonicalError> {
        let mut text = String::new();
        write_canonical(url, &mut text)?;
        self.accept(&mut text)?;
        Ok(CrawlUrl::from_canonical(&text)?)
    }

    /// Applies what is set to a canonical text.
    fn accept(&self, text: &mut String) -> Result<(), CanonicalError> {
        if self.options.strip_session_ids
            && let Cow::Owned(stripped) = strip_session_ids(text)
        {
            *text = stripped;
        }
        if text.len() > self.options.max_url_bytes {
            return Err(CanonicalError::TooLong);
        }
        Ok(())
    }
}

/// A reference that begins with three slashes or more, with two of them: to a browser `///host/` is
/// `//host/` (WHATWG, "special authority ignore slashes state"), which the parser knows only behind a
/// scheme.
fn two_slashes(href: &str) -> &str {
    let text = href.trim_start_matches(|c: char| c <= ' ');
    let rest = text.trim_start_matches(['/', '\\']);
    match text.len() - rest.len() {
        0..=2 => href,
        slashes => text.get(slashes - 2..).unwrap_or(href),
    }
}

/// Writes the canonical form of a parsed URL in place of what `out` has.
fn write_canonical(url: &Url, out: &mut String) -> Result<(), CanonicalError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(CanonicalError::Scheme);
    }
    if url.port() == Some(0) {
        return Err(CanonicalError::Port);
    }
    let host = url.host_str().ok_or(CanonicalError::Host)?;
    let name = host.strip_suffix('.').unwrap_or(host);
    if !host_is_usable(name) {
        return Err(CanonicalError::Host);
    }
    out.clear();
    let whole = url.as_str();
    let as_written = url.fragment().is_none()
        && name.len() == host.len()
        && url.username().is_empty()
        && url.password().is_none()
        && tail_is_clean(whole.as_bytes());
    match as_written {
        true => out.push_str(whole),
        false => rebuild(url, name, out),
    }
    Ok(())
}

/// True when `b` may stand in no request target, though WHATWG leaves it in some places.
pub(crate) const fn is_unwise(b: u8) -> bool {
    matches!(
        b,
        b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
    )
}

fn tail_is_clean(text: &[u8]) -> bool {
    let mut escape = 0u8;
    for &b in text {
        if escape > 0 {
            escape -= 1;
            if matches!(b, b'a'..=b'f') {
                return false;
            }
        }
        if b == b'%' {
            escape = 2;
        } else if is_unwise(b) {
            return false;
        }
    }
    true
}

/// Writes the URL anew without fragment, user information and trailing dot, with clean escapes.
fn rebuild(url: &Url, host: &str, text: &mut String) {
    use std::fmt::Write as _;

    text.reserve(url.as_str().len() + 16);
    // Writing to a String cannot fail.
    let _ = write!(text, "{}://{host}", url.scheme());
    if let Some(port) = url.port() {
        let _ = write!(text, ":{port}");
    }
    push_clean(text, url.path());
    if let Some(query) = url.query() {
        text.push('?');
        push_clean(text, query);
    }
}

fn push_clean(out: &mut String, part: &str) {
    let bytes = part.as_bytes();
    let mut escape = 0u8;
    for (at, &b) in bytes.iter().enumerate() {
        if b == b'%' {
            // Only a whole escape is one: in `%zz` the letters are the author's, not hex digits.
            let hex = |offset: usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
            escape = if hex(1) && hex(2) { 3 } else { 0 };
        }
        if is_unwise(b) {
            out.push('%');
            out.push(char::from(hex_digit(b >> 4)));
            out.push(char::from(hex_digit(b & 15)));
        } else if escape > 0 {
            out.push(char::from(b.to_ascii_uppercase()));
        } else {
            out.push(char::from(b));
        }
        escape = escape.saturating_sub(1);
    }
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 {
        b'0' + nibble
    } else {
        b'A' + nibble - 10
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
