//! The text of a document as a reader sees it, for those who search or count words.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::html::Scanner;
use crate::media::{self, Media};
use crate::rawtext::ends_tag_name;
use crate::{Page, charset};

/// Elements that do not end a line. All others do, known or not: a word too few joined is better than two made one.
const INLINE: &[&[u8]] = &[
    b"a", b"abbr", b"acronym", b"b", b"bdi", b"bdo", b"big", b"cite", b"code", b"data", b"del",
    b"dfn", b"em", b"font", b"i", b"ins", b"kbd", b"label", b"mark", b"q", b"s", b"samp", b"small",
    b"span", b"strike", b"strong", b"sub", b"sup", b"time", b"tt", b"u", b"var", b"wbr",
];

/// The text of a HTML page or a text file; empty for everything else. White space is collapsed, and each block is a line of
/// its own. Scripts, styles, comments and the title are left out.
pub fn text(page: &Page<'_>) -> String {
    let label = media::content_type(page.headers);
    let kind = media::classify(label, page.body);
    let tld = page.url.host().rsplit('.').next();
    let encoding = charset::detect(page.body, kind, label.charset, tld);
    match kind {
        Media::Html => html_text(page, encoding),
        Media::Text => encoding.decode(page.body).0.into_owned(),
        Media::Css | Media::Sitemap | Media::Other => String::new(),
    }
}

fn html_text(page: &Page<'_>, encoding: &'static Encoding) -> String {
    let (html, encoding): (Cow<'_, [u8]>, _) = if encoding.is_ascii_compatible() {
        (Cow::Borrowed(page.body), encoding)
    } else {
        let (text, _, _) = encoding.decode(page.body);
        let utf8 = text.into_owned().into_bytes();
        (Cow::Owned(utf8), encoding_rs::UTF_8)
    };
    let mut scanner = match media::is_xml(page.headers, page.body) {
        true => Scanner::for_xml(&html),
        false => Scanner::new(&html),
    };
    let mut out = Lines::default();
    let mut scratch = Vec::new();
    let mut before = 0;
    while let Some(piece) = scanner.next_text(&mut scratch) {
        let start = scanner.position().saturating_sub(piece.len());
        let markup = html.get(before..start).unwrap_or_default();
        before = scanner.position();
        let mut tags = names(markup).peekable();
        let breaks = tags.peek().is_some() && names(markup).any(|name| !is_inline(name));
        if breaks {
            out.end_line();
        }
        // What such an element holds is no part of the page's text.
        let holder = names(markup).last();
        if holder.is_some_and(|name| is_one_of(name, &[b"title", b"script"])) {
            continue;
        }
        let (decoded, _) = encoding.decode_without_bom_handling(piece);
        out.push(&htmlize::unescape(decoded));
    }
    out.end_line();
    out.text
}

/// The names of the tags in a piece of markup. What stands in comments and values may be taken for one, which costs a
/// line end.
fn names(markup: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tags = markup.split(|b| *b == b'<').skip(1);
    tags.filter_map(|tag| {
        let tag = tag.strip_prefix(b"/").unwrap_or(tag);
        let end = tag.iter().position(|b| ends_tag_name(*b));
        let name = tag.get(..end.unwrap_or(tag.len()))?;
        name.first()?.is_ascii_alphabetic().then_some(name)
    })
}

fn is_inline(name: &[u8]) -> bool {
    is_one_of(name, INLINE)
}

fn is_one_of(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Lines with their white space collapsed.
#[derive(Default)]
struct Lines {
    text: String,
    /// White space was seen since the last word.
    space: bool,
}

impl Lines {
    fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            if c.is_ascii_whitespace() {
                self.space = true;
                continue;
            }
            if self.space && !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push(' ');
            }
            self.space = false;
            self.text.push(c);
        }
    }

    fn end_line(&mut self) {
        self.space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use orbweaver_model::{CrawlUrl, Limits, LinkKind};

    use super::*;

    fn text_of(content_type: &'static str, body: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(content_type);
        headers.insert(http::header::CONTENT_TYPE, value);
        text(&Page {
            url: &CrawlUrl::from_canonical("http://example.org/").unwrap(),
            headers: &headers,
            body,
            limits: &Limits::default(),
            agent: "orbweaver",
            kind: LinkKind::A,
        })
    }

    #[test]
    fn what_a_reader_sees_and_nothing_else() {
        let page = "<!doctype html><title>Not this</title><style>p{}</style><body>\n<h1>Head</h1> <p>One \
                    <b>bo</b>ld &amp; <a href=x>linked</a>\n  word.<!-- nor this --><p>Two<br>lines\
                    <script>nor(this)</script><ul><li>a<li>b</ul>";
        assert_eq!(
            text_of("text/html; charset=utf-8", page.as_bytes()),
            "Head\nOne bold & linked word.\nTwo\nlines\na\nb\n"
        );
    }

    #[test]
    fn encodings_are_undone() {
        assert_eq!(
            text_of("text/html; charset=iso-8859-1", b"<p>gr\xfc\xdfe"),
            "gr\u{fc}\u{df}e\n"
        );
        let utf16: Vec<u8> = "<p>h\u{e9}<p>x"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(
            text_of("text/html; charset=utf-16le", &utf16),
            "h\u{e9}\nx\n"
        );
        assert_eq!(text_of("text/plain", b"a  b\n"), "a  b\n");
        assert_eq!(text_of("image/png", b"\x89PNG\r\n\x1a\n"), "");
    }
}
