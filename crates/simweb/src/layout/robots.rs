//! What robots.txt says, and whether a path obeys it.
//!
//! The rules are few and fixed, so that the server can judge a path without a parser that could be
//! wrong in the same way as the crawler's.

use crate::layout::{Layout, sitemap};
use crate::place::{Place, What, put};
use crate::words;

/// A longer rule allows this again inside the directory that a shorter one disallows (RFC 9309, 2.2.2).
pub(crate) const OPEN_PREFIX: &str = "/private/open/";

/// The robots.txt of a host.
pub(crate) fn body(layout: &Layout, host: u32) -> Vec<u8> {
    let mut out = b"# A group for somebody else, which must not be taken for one's own.\n\
        User-agent: badbot\n\
        Disallow: /\n\
        \n\
        User-agent: *\n\
        Disallow: /private/\n\
        Allow: /private/open/\n\
        Disallow: /search\n\
        Disallow: /*.pdf$\n"
        .to_vec();
    if let Some(delay) = layout.config.crawl_delay {
        out.extend_from_slice(format!("Crawl-delay: {delay}\n").as_bytes());
    }
    if let Some(file) = sitemap::top(layout, host) {
        out.extend_from_slice(b"\nSitemap: ");
        let what = What::Sitemap(file);
        layout.write_url(&mut out, Place { host, what });
        out.push(b'\n');
    }
    out
}

/// Whether the rules forbid a path and query.
pub(crate) fn forbids(target: &str) -> bool {
    (target.starts_with("/private/") && !target.starts_with(OPEN_PREFIX))
        || target.starts_with("/search")
        || target.ends_with(".pdf")
}

/// Writes a path that one of the rules forbids, which one depending on `number`.
pub(crate) fn write_disallowed(out: &mut Vec<u8>, number: u64, page: u32) {
    let word = words::for_path(number >> 16);
    match (number >> 8) % 4 {
        0 => put(out, &["/", word, "/"], page, ".pdf"),
        1 => put(out, &["/search?q=", word, "&page="], page, ""),
        _ => put(out, &["/private/"], page, ".html"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_disallowed_is_forbidden() {
        for number in 0..2000_u64 {
            let mut out = Vec::new();
            write_disallowed(&mut out, number << 6, 17);
            let target = String::from_utf8(out).unwrap();
            assert!(forbids(&target), "{target}");
        }
        for target in ["/", "/private/open/3.html", "/a/b.pdf.html", "/robots.txt"] {
            assert!(!forbids(target), "{target}");
        }
    }
}
