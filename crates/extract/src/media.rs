//! What a body is: by its label, and by its first bytes where the label is missing or says nothing.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// What kind of document a body is, as far as links are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// HTML, XHTML or SVG.
    Html,
    /// A style sheet.
    Css,
    /// A sitemap, a sitemap index, a feed or a list of URLs.
    Sitemap,
    /// Plain text, in which nothing is a link.
    Text,
    /// Pictures, archives and all the rest.
    Other,
}

/// The Content-Type header, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentType<'a> {
    /// `text/html`, in whatever case; none when the header is missing or is no media type.
    pub(crate) essence: Option<&'a [u8]>,
    /// The value of its charset parameter.
    pub(crate) charset: Option<&'a [u8]>,
}

/// Reads the last Content-Type header, the one that counts when there are several.
pub(crate) fn content_type(headers: &HeaderMap) -> ContentType<'_> {
    let Some(value) = headers.get_all(CONTENT_TYPE).iter().next_back() else {
        return ContentType::default();
    };
    let mut parts = value.as_bytes().split(|b| *b == b';');
    let essence = parts
        .next()
        .map(|part| part.trim_ascii())
        .filter(|part| is_media_type(part));
    let charset = parts.find_map(|part| {
        let at = part.iter().position(|b| *b == b'=')?;
        let (name, value) = part.split_at_checked(at)?;
        let value = value.get(1..)?.trim_ascii();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        let value = value.strip_suffix(b"\"").unwrap_or(value);
        name.trim_ascii()
            .eq_ignore_ascii_case(b"charset")
            .then_some(value)
    });
    ContentType { essence, charset }
}

fn is_media_type(essence: &[u8]) -> bool {
    let token = |part: &[u8]| {
        !part.is_empty()
            && part
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(b))
    };
    match essence.iter().position(|b| *b == b'/') {
        Some(slash) => {
            token(essence.get(..slash).unwrap_or_default())
                && token(essence.get(slash + 1..).unwrap_or_default())
        }
        None => false,
    }
}

/// What the body is.
pub(crate) fn classify(label: ContentType<'_>, body: &[u8]) -> Media {
    let Some(essence) = label.essence else {
        return sniff(body);
    };
    let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
    if is(b"text/html") || is(b"application/xhtml+xml") || is(b"image/svg+xml") {
        return if is_binary(body) {
            Media::Other
        } else {
            Media::Html
        };
    }
    if is(b"text/css") {
        return Media::Css;
    }
    if is(b"text/plain") {
        return Media::Text;
    }
    if is(b"application/octet-stream")
        || is(b"application/unknown")
        || is(b"unknown/unknown")
        || is(b"*/*")
    {
        return sniff(body);
    }
    let tail = essence.get(essence.len().saturating_sub(4)..);
    if tail.is_some_and(|tail| {
        tail.eq_ignore_ascii_case(b"+xml") || tail.eq_ignore_ascii_case(b"/xml")
    }) {
        return sniff_xml(body).unwrap_or(Media::Other);
    }
    Media::Other
}

/// Whether a document that is read as HTML is XML. Only its label makes it so: with `text/html` a browser reads the
/// most beautiful XHTML as HTML.
pub(crate) fn is_xml(headers: &HeaderMap, body: &[u8]) -> bool {
    match content_type(headers).essence {
        Some(essence) => {
            let tail = essence.get(essence.len().saturating_sub(4)..);
            tail.is_some_and(|tail| {
                tail.eq_ignore_ascii_case(b"+xml") || tail.eq_ignore_ascii_case(b"/xml")
            })
        }
        None => skip_mark(body).trim_ascii_start().starts_with(b"<?xml"),
    }
}

/// Beginnings of formats that are served as HTML by mistake.
const MAGIC: &[&[u8]] = &[
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"RIFF",
    b"\x7fELF",
];

fn is_binary(body: &[u8]) -> bool {
    MAGIC.iter().any(|magic| body.starts_with(magic))
}

/// Beginnings that make a body HTML (MIME Sniffing standard, section 7.1); a space or `>` must follow.
const HTML_STARTS: &[&[u8]] = &[
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<meta",
    b"<link",
    b"<base",
];

/// What an unlabelled body is.
fn sniff(body: &[u8]) -> Media {
    if looks_like_html(body) {
        return Media::Html;
    }
    sniff_xml(body).unwrap_or(Media::Other)
}

/// True when a body begins like HTML.
pub(crate) fn looks_like_html(body: &[u8]) -> bool {
    let start = skip_mark(body).trim_ascii_start();
    start.starts_with(b"<!--")
        || HTML_STARTS.iter().any(|known| {
            start
                .get(..known.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(known))
                && start
                    .get(known.len())
                    .is_some_and(|b| matches!(b, b'>' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c))
        })
}

fn skip_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// An XML document is known by its root element.
fn sniff_xml(body: &[u8]) -> Option<Media> {
    match root_element(body)? {
        b"urlset" | b"sitemapindex" | b"rss" | b"feed" | b"RDF" => Some(Media::Sitemap),
        b"html" | b"svg" => Some(Media::Html),
        _ => None,
    }
}

/// The root must come within this many bytes; what stands before it is a declaration, a doctype
/// and perhaps a licence.
const ROOT_WITHIN: usize = 8 << 10;

/// The local name of the first element.
fn root_element(body: &[u8]) -> Option<&[u8]> {
    let mut rest = skip_mark(body);
    rest = rest.get(..ROOT_WITHIN).unwrap_or(rest);
    loop {
        rest = rest.trim_ascii_start().strip_prefix(b"<")?;
        let end = if rest.starts_with(b"!--") {
            memchr::memmem::find(rest, b"-->")? + 3
        } else if rest.starts_with(b"?") {
            memchr::memmem::find(rest, b"?>")? + 2
        } else if rest.starts_with(b"!") {
            memchr::memchr(b'>', rest)? + 1
        } else {
            let end = rest
                .iter()
                .position(|b| b.is_ascii_whitespace() || matches!(b, b'>' | b'/'))?;
            let name = rest.get(..end)?;
            return name.rsplit(|b| *b == b':').next();
        };
        rest = rest.get(end..)?;
    }
}
