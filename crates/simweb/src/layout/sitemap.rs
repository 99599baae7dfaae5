//! Sitemaps: plain, compressed, and an index over compressed parts, by turns of the host's number.
//!
//! They list the allowed pages of their host in canonical form and nothing else.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::layout::{Layout, Use};
use crate::place::{Place, SitemapFile, What, put};

/// URLs of one part under an index.
const PART: u32 = 1000;

/// A host with more pages always has an index; the protocol allows 50,000 URLs in one file.
const MAX_SINGLE: u32 = 10_000;

impl SitemapFile {
    pub(crate) fn write_target(self, out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(b"/sitemap.xml"),
            Self::Zipped => out.extend_from_slice(b"/sitemap.xml.gz"),
            Self::Index => out.extend_from_slice(b"/sitemap-index.xml"),
            Self::Part(part) => put(out, &["/sitemap-"], part, ".xml.gz"),
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Plain | Self::Index => "application/xml",
            Self::Zipped | Self::Part(_) => "application/gzip",
        }
    }
}

/// The sitemap that the robots.txt of a host names.
pub(crate) fn top(layout: &Layout, host: u32) -> Option<SitemapFile> {
    if !layout.config.sitemaps || layout.pages(host) == 0 {
        return None;
    }
    Some(match host % 3 {
        _ if layout.pages(host) > MAX_SINGLE => SitemapFile::Index,
        0 => SitemapFile::Plain,
        1 => SitemapFile::Index,
        _ => SitemapFile::Zipped,
    })
}

/// The sitemap file with this path.
pub(crate) fn find(layout: &Layout, host: u32, target: &str) -> Option<SitemapFile> {
    if !target.starts_with("/sitemap") {
        return None;
    }
    let top = top(layout, host)?;
    let parts = match top {
        SitemapFile::Index => layout.pages(host).div_ceil(PART),
        _ => 0,
    };
    let part = target
        .strip_prefix("/sitemap-")
        .and_then(|rest| rest.strip_suffix(".xml.gz"))
        .and_then(|number| number.parse().ok())
        .filter(|part| *part < parts)
        .map(SitemapFile::Part);
    [Some(top), part].into_iter().flatten().find(|file| {
        let mut written = Vec::new();
        file.write_target(&mut written);
        written == target.as_bytes()
    })
}

/// The bytes of a sitemap file.
pub(crate) fn body(layout: &Layout, host: u32, file: SitemapFile) -> Vec<u8> {
    let pages = layout.pages(host);
    match file {
        SitemapFile::Plain => urls(layout, host, 0..pages),
        SitemapFile::Zipped => zip(&urls(layout, host, 0..pages)),
        SitemapFile::Index => index(layout, host),
        SitemapFile::Part(part) => {
            let first = part.saturating_mul(PART);
            let end = first.saturating_add(PART).min(pages);
            zip(&urls(layout, host, first..end))
        }
    }
}

const DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

fn urls(layout: &Layout, host: u32, pages: std::ops::Range<u32>) -> Vec<u8> {
    let mut out = DECLARATION.to_vec();
    out.extend_from_slice(b"<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    let mut url = Vec::new();
    for page in pages {
        url.clear();
        let what = What::Page(page);
        layout.write_url(&mut url, Place { host, what });
        out.extend_from_slice(b"<url><loc>");
        escape(&mut out, &url);
        let day = 1 + layout.number(host, page, Use::Version) % 28;
        let rest = format!("</loc><lastmod>2024-03-{day:02}</lastmod></url>\n");
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(b"</urlset>\n");
    out
}

fn index(layout: &Layout, host: u32) -> Vec<u8> {
    let mut out = DECLARATION.to_vec();
    out.extend_from_slice(
        b"<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for part in 0..layout.pages(host).div_ceil(PART) {
        out.extend_from_slice(b"<sitemap><loc>");
        let what = What::Sitemap(SitemapFile::Part(part));
        layout.write_url(&mut out, Place { host, what });
        out.extend_from_slice(b"</loc></sitemap>\n");
    }
    out.extend_from_slice(b"</sitemapindex>\n");
    out
}

/// In a canonical URL only the ampersand means something to XML.
fn escape(out: &mut Vec<u8>, url: &[u8]) {
    for byte in url {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            other => out.push(*other),
        }
    }
}

fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into a vector cannot fail; were it to, the file would come out short and a test see it.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
