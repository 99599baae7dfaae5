//! Pages as HTML: text from a pool made once, links in between, and nothing that costs the server
//! more than copying.
//!
//! Each piece of text is kept compressed as well, so that a gzip body is put together like a plain one.

use crate::gzip::{Member, Splice};
use crate::layout::{Layout, Use};
use crate::place::{Place, What, put};
use crate::rng::{Rng, mix};
use crate::spell::{self, Base};
use crate::words;

/// Pieces of each size. 128 large ones are 320 KiB, which a core's own cache holds.
const PIECES: usize = 128;

/// Paragraphs of a large piece: long enough that it compresses well on its own.
const LARGE: usize = 8;

/// Turns of phrase that all texts share. People repeat themselves too, and with this many a page
/// compresses about four to one, as pages on the web do.
const PHRASES: usize = 160;

/// Bytes that a link with its list item usually takes, for planning.
const LINK_BYTES: usize = 80;

/// One page in this many has a `<base>` element.
const BASE_EVERY: u32 = 12;

/// Text in one or more paragraphs.
struct Piece {
    text: Vec<u8>,
    zipped: Splice,
}

/// The texts that all pages of a web share.
pub(crate) struct Pool {
    large: Vec<Piece>,
    small: Vec<Piece>,
}

/// A page, and where in it the pieces of the pool stand.
pub(crate) struct Page<'a> {
    pub(crate) body: Vec<u8>,
    pieces: Vec<(usize, &'a Piece)>,
}

impl Pool {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(mix([seed, 0, 0, Use::Body as u64]));
        let phrases: Vec<String> = (0..PHRASES).map(|_| phrase(&mut rng)).collect();
        let mut pieces = |paragraphs| {
            (0..PIECES)
                .map(|_| Piece::new(paragraphs, &phrases, &mut rng))
                .collect()
        };
        Self {
            large: pieces(LARGE),
            small: pieces(1),
        }
    }

    /// The page, the same bytes every time.
    pub(crate) fn page(&self, layout: &Layout, host: u32, page: u32) -> Page<'_> {
        if let Some(site) = layout.site(host) {
            return Page {
                body: site.body(layout, page),
                pieces: Vec::new(),
            };
        }
        let mut rng = layout.rng(host, page, Use::Body);
        let size = layout.config.page_bytes * (768 + rng.below(513) as usize) / 1024;
        let mut made = Page {
            body: Vec::with_capacity(size + 4096),
            pieces: Vec::with_capacity(size / 1024 + 2),
        };
        let mut links = Vec::with_capacity(layout.config.links_per_page + 16);
        layout.links(host, page, &mut links);
        let base = made.head(layout, host, page, &mut rng);
        made.main(self, layout, &links, size, &base, &mut rng);
        made.body.extend_from_slice(FOOT);
        made
    }
}

const FOOT: &[u8] = b"</main>\n<footer><p>Nobody wrote this &copy; 2024. \
    <a href=\"mailto:desk@sim.test\">Mail</a> <a href=\"tel:+15550100\">Call</a></p></footer>\n\
    </body>\n</html>\n";

impl<'a> Page<'a> {
    /// The page with gzip content encoding.
    pub(crate) fn gzip(&self, out: &mut Vec<u8>) {
        let mut member = Member::new(out);
        let mut at = 0;
        for (start, piece) in &self.pieces {
            member.store(self.body.get(at..*start).unwrap_or_default());
            member.splice(&piece.zipped);
            at = start + piece.text.len();
        }
        member.store(self.body.get(at..).unwrap_or_default());
        member.finish();
    }

    fn text(&mut self, bytes: &str) {
        self.body.extend_from_slice(bytes.as_bytes());
    }

    fn piece(&mut self, piece: Option<&'a Piece>) {
        if let Some(piece) = piece {
            self.pieces.push((self.body.len(), piece));
            self.body.extend_from_slice(&piece.text);
        }
    }

    fn head(&mut self, layout: &Layout, host: u32, page: u32, rng: &mut Rng) -> Base {
        self.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
        self.text(words::frequent(rng));
        self.text(" ");
        self.text(words::for_path(rng.next()));
        put(&mut self.body, &[" "], page, "</title>\n");
        let base = if rng.below(BASE_EVERY) == 0 {
            self.text("<base href=\"http://");
            if let Some(name) = layout.name(host) {
                self.text(&name.authority);
            }
            self.text("/\">\n");
            Base::root(host)
        } else {
            let what = What::Page(page);
            Base::of(layout, Place { host, what })
        };
        self.text("<link rel=\"stylesheet\" href=\"/style.css\">\n");
        // Two addresses that are no links: whoever asks for them has read a page with a rough eye.
        put(
            &mut self.body,
            &["<script>var last = \"/trap/script-"],
            page,
            ".html\";</script>\n</head>\n<body>\n<!-- <a href=\"/trap/comment-",
        );
        put(&mut self.body, &[], page, HEADER);
        base
    }

    fn main(
        &mut self,
        pool: &'a Pool,
        layout: &Layout,
        links: &[Place],
        size: usize,
        base: &Base,
        rng: &mut Rng,
    ) {
        let average = pool.large.iter().map(|p| p.text.len()).sum::<usize>() / PIECES;
        let fixed = self.body.len() + FOOT.len() + links.len() * LINK_BYTES;
        let large = size.saturating_sub(fixed) / average.max(1);
        let mut scratch = Scratch::default();
        for group in links.chunks(links.len().div_ceil(large + 1).max(1)) {
            self.list(layout, group, base, rng, &mut scratch);
            if self.body.len() + average + FOOT.len() <= size {
                self.piece(rng.pick(&pool.large));
            }
        }
        loop {
            let piece = rng.pick(&pool.small);
            let half = piece.map_or(usize::MAX / 2, |piece| piece.text.len() / 2);
            if self.body.len() + FOOT.len() + half > size {
                break;
            }
            self.piece(piece);
        }
    }

    fn list(
        &mut self,
        layout: &Layout,
        links: &[Place],
        base: &Base,
        rng: &mut Rng,
        scratch: &mut Scratch,
    ) {
        self.text("<ul>\n");
        for to in links {
            scratch.value.clear();
            let Scratch { value, target } = scratch;
            spell::write(layout, value, target, base, *to, rng);
            anchor(&mut self.body, value, rng);
            self.text(words::frequent(rng));
            self.text(" ");
            self.text(words::for_path(rng.next()));
            self.text("</a></li>\n");
        }
        self.text("</ul>\n");
    }
}

const HEADER: &str = ".html\">an old link</a> -->\n<header><a href=\"#main\">Skip</a> \
    <a href=\"javascript:void(0)\">Menu</a> <img src=\"/img/logo.gif\" alt=\"\"></header>\n\
    <main id=\"main\">\n";

/// Buffers that all links of a page share.
#[derive(Default)]
struct Scratch {
    value: Vec<u8>,
    target: Vec<u8>,
}

/// Writes a list item up to the text of its link, with one of the quotings that HTML allows.
fn anchor(out: &mut Vec<u8>, value: &[u8], rng: &mut Rng) {
    let (before, after): (&[u8], &[u8]) = match rng.below(12) {
        0 => (b"<li><A HREF='", b"'>"),
        1 => (b"<li><a class=more href=", b">"),
        2 => (b"<li><a href = \"", b"\" >"),
        3 => (b"<li><a href=\" \n  ", b" \">"),
        4 => (b"<li><a title=\"a > b\" href=\"\t", b"\n\">"),
        _ => (b"<li><a href=\"", b"\">"),
    };
    out.extend_from_slice(before);
    let ampersand: &[u8] = match rng.below(8) {
        0 => b"&",
        1 => b"&#38;",
        2 => b"&#x26;",
        _ => b"&amp;",
    };
    for part in value.split_inclusive(|b| *b == b'&') {
        match part.split_last() {
            Some((b'&', head)) => {
                out.extend_from_slice(head);
                out.extend_from_slice(ampersand);
            }
            _ => out.extend_from_slice(part),
        }
    }
    out.extend_from_slice(after);
}

impl Piece {
    fn new(paragraphs: usize, phrases: &[String], rng: &mut Rng) -> Self {
        let mut text = Vec::new();
        for _ in 0..paragraphs {
            paragraph(&mut text, phrases, rng);
        }
        Self {
            zipped: Splice::new(&text),
            text,
        }
    }
}

fn phrase(rng: &mut Rng) -> String {
    let words: Vec<&str> = (0..3 + rng.below(5))
        .map(|_| words::frequent(rng))
        .collect();
    words.join(" ")
}

fn paragraph(out: &mut Vec<u8>, phrases: &[String], rng: &mut Rng) {
    out.extend_from_slice(b"<p class=\"text\">");
    for _ in 0..4 + rng.below(4) {
        let start = out.len();
        for nth in 0..2 + rng.below(3) {
            if nth > 0 {
                out.extend_from_slice(if rng.below(3) == 0 { b", " } else { b"\n " });
            }
            let phrase = rng.pick(phrases).map_or("", String::as_str);
            match rng.below(16) {
                0 => out.extend_from_slice(format!("<em>{phrase}</em>").as_bytes()),
                _ => out.extend_from_slice(phrase.as_bytes()),
            }
        }
        if let Some(first) = out.get_mut(start) {
            first.make_ascii_uppercase();
        }
        let end = if rng.below(20) == 0 {
            "&hellip; "
        } else {
            ". "
        };
        out.extend_from_slice(end.as_bytes());
    }
    out.extend_from_slice(b"</p>\n");
}
