//! Pure reading of what was fetched: charset, links, text, robots directives, sitemaps, fingerprints.
//!
//! Bytes in, words out. Nothing here does I/O, keeps state, resolves a reference or decides whether
//! to follow one. Whatever comes from outside is read in time proportional to its length, without
//! recursion (but for documents inside `srcdoc` attributes, of which three are opened), and every count is bounded by
//! `Limits`.

pub mod charset;
mod css;
mod directives;
mod elements;
pub mod fingerprint;
mod headers;
pub mod html;
mod links;
mod media;
mod rawtext;
mod refresh;
pub mod sitemap;
mod srcset;
mod text;

use std::borrow::Cow;

use encoding_rs::Encoding;
use http::HeaderMap;
use orbweaver_model::{CrawlUrl, Limits, LinkKind};

pub use charset::query_encoder;
pub use elements::attribute_value;
pub use fingerprint::fingerprint;
pub use links::{FoundLink, Links, NORMAL};
pub use media::Media;
pub use sitemap::{Sitemap, SitemapUrl, read_sitemap};
pub use text::text;

use directives::Directives;
use elements::HtmlReader;

/// Why a document was not read whole. The document is kept in any case; nothing needs to be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// There were more links to follow than `max_links_per_page`, or twenty times as many references of all kinds;
    /// raise it if the page is honest.
    #[error("more than {0} links (max_links_per_page); the rest is ignored")]
    MoreLinks(usize),
    /// There were more URLs than `max_sitemap_urls`, which is the protocol's own limit.
    #[error("more than {0} URLs in a sitemap; the rest is ignored")]
    MoreSitemapUrls(usize),
    /// The XML of a sitemap breaks off or is wrong at this byte.
    #[error("broken XML at byte {0}: {1}")]
    BrokenXml(u64, String),
    /// The gzip stream of a sitemap is damaged or cut.
    #[error("broken gzip: {0}")]
    BrokenGzip(String),
    /// A sitemap is longer than `max_decoded_bytes` when unpacked.
    #[error("longer than {0} bytes when decompressed; the rest is ignored")]
    DecodedTooLong(usize),
    /// A sitemap's URL answers with a HTML page, usually an error page with status 200.
    #[error("an HTML page instead of a sitemap")]
    NotASitemap,
}

/// A document to read.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Where it came from.
    pub url: &'a CrawlUrl,
    /// The header fields of the response.
    pub headers: &'a HeaderMap,
    /// The body, framing and content encoding undone.
    pub body: &'a [u8],
    /// How much to take from it.
    pub limits: &'a Limits,
    /// The crawler's product token, for directives addressed to it by name.
    pub agent: &'a str,
    /// How the page was found; a sitemap is read as one whatever its label says.
    pub kind: LinkKind,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What the body is.
    pub media: Media,
    /// The encoding it is in; references in it encode their queries with it.
    pub encoding: &'static Encoding,
    /// The href of its `<base>`.
    pub base: Option<String>,
    /// Its references, those of its headers first.
    pub links: Links,
    /// The page as a whole asks not to follow its links; they are all marked so already.
    pub nofollow: bool,
    /// The page asks not to be indexed.
    pub noindex: bool,
    /// Its title, white space collapsed, at most 512 characters.
    pub title: Option<String>,
    /// Why it was not read whole.
    pub notes: Vec<Note>,
}

/// Reads a document.
pub fn read(page: &Page<'_>) -> Reading {
    let label = media::content_type(page.headers);
    let media = if page.kind == LinkKind::SitemapFile {
        Media::Sitemap
    } else {
        media::classify(label, page.body)
    };
    let tld = page.url.host().rsplit('.').next();
    let mut reading = Reading {
        media,
        encoding: charset::detect(page.body, media, label.charset, tld),
        base: None,
        links: Links::new(page.limits),
        nofollow: false,
        noindex: false,
        title: None,
        notes: Vec::new(),
    };
    let mut directives = Directives::default();
    directives.read_headers(page.headers, page.agent);
    headers::header_links(page.headers, &mut reading.links);
    match media {
        Media::Html => read_html(page, &mut reading, &mut directives),
        Media::Css => {
            let (text, _, _) = reading.encoding.decode(page.body);
            css::css_links(&text, &mut reading.links);
        }
        Media::Sitemap => add_sitemap(page, &mut reading),
        Media::Text | Media::Other => {}
    }
    if reading.links.is_cut() {
        let max = page.limits.max_links_per_page;
        reading.notes.push(Note::MoreLinks(max));
    }
    reading.noindex = directives.noindex;
    reading.nofollow = directives.nofollow;
    if directives.nofollow {
        reading.links.forbid_following();
    }
    reading
}

fn read_html(page: &Page<'_>, reading: &mut Reading, directives: &mut Directives) {
    // What shares its delimiters with ASCII is scanned as it is; only values are decoded.
    let (html, encoding): (Cow<'_, [u8]>, _) = if reading.encoding.is_ascii_compatible() {
        (Cow::Borrowed(page.body), reading.encoding)
    } else {
        let (text, _, _) = reading.encoding.decode(page.body);
        (
            Cow::Owned(text.into_owned().into_bytes()),
            encoding_rs::UTF_8,
        )
    };
    let mut reader = HtmlReader {
        xml: media::is_xml(page.headers, page.body),
        inside: 0,
        encoding,
        agent: page.agent,
        links: &mut reading.links,
        directives,
        base: None,
        title: None,
    };
    reader.read(&html);
    let (base, title) = (reader.base, reader.title);
    reading.base = base;
    reading.title = title;
}

fn add_sitemap(page: &Page<'_>, reading: &mut Reading) {
    let sitemap = read_sitemap(page.body, page.limits);
    // A sitemap has a limit of its own.
    reading
        .links
        .set_max(page.limits.max_sitemap_urls.saturating_mul(2));
    for url in &sitemap.urls {
        let kind = LinkKind::Sitemap;
        reading
            .links
            .push_weighted(&url.loc, kind, false, url.weight());
    }
    for url in &sitemap.sitemaps {
        reading.links.push(url, LinkKind::SitemapFile, false);
    }
    for url in &sitemap.enclosures {
        reading.links.push(url, LinkKind::Media, false);
    }
    reading.notes.extend(sitemap.notes);
}
