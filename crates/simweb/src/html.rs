//! Pages as HTML: text from a pool made once, links in between, and nothing that costs the server
//! more than copying.
//!
//! Each piece of text is kept compressed as well, ending on a byte boundary, so that a gzip body is put
//! together from finished pieces: compressing 16 KiB anew would cost more than all the rest.

use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::layout::{Layout, Place, Use, What, put};
use crate::rng::{Rng, mix};
use crate::spell::{self, Base};
use crate::words;

/// Pieces of each size. 128 large ones are 256 KiB, which a core's own cache holds.
const PIECES: usize = 128;

/// Paragraphs of a large piece: long enough that it compresses well on its own.
const LARGE: usize = 4;

/// Bytes that a link with its list item usually takes, for planning.
const LINK_BYTES: usize = 110;

/// One page in this many has a `<base>` element.
const BASE_EVERY: u32 = 12;

/// Text in one or more paragraphs.
struct Piece {
    text: Vec<u8>,
    /// The text as deflate blocks that refer to nothing before them and end on a byte boundary.
    deflated: Vec<u8>,
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
        let mut pieces = |paragraphs| {
            (0..PIECES)
                .map(|_| Piece::new(paragraphs, &mut rng))
                .collect()
        };
        Self {
            large: pieces(LARGE),
            small: pieces(1),
        }
    }

    /// The page, the same bytes every time.
    pub(crate) fn page(&self, layout: &Layout, host: u32, page: u32) -> Page<'_> {
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
        // RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system.
        out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        let mut at = 0;
        for (start, piece) in &self.pieces {
            store(out, self.body.get(at..*start).unwrap_or_default());
            out.extend_from_slice(&piece.deflated);
            at = start + piece.text.len();
        }
        store(out, self.body.get(at..).unwrap_or_default());
        // An empty last block.
        out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
        let mut crc = Crc::new();
        crc.update(&self.body);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&(self.body.len() as u32).to_le_bytes());
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
    fn new(paragraphs: usize, rng: &mut Rng) -> Self {
        let mut text = Vec::new();
        for _ in 0..paragraphs {
            paragraph(&mut text, rng);
        }
        Self {
            deflated: deflate(&text),
            text,
        }
    }
}

fn paragraph(out: &mut Vec<u8>, rng: &mut Rng) {
    out.extend_from_slice(b"<p>");
    for sentence in 0..4 + rng.below(4) {
        if sentence > 0 {
            out.push(b' ');
        }
        let length = 6 + rng.below(10);
        let emphasis = rng.below(length * 3);
        for nth in 0..length {
            let word = words::frequent(rng);
            let start = out.len();
            match nth {
                0 => {}
                _ if rng.below(12) == 0 => out.extend_from_slice(b", "),
                _ => out.push(b' '),
            }
            if nth == emphasis {
                out.extend_from_slice(format!("<em>{word}</em>").as_bytes());
            } else {
                out.extend_from_slice(word.as_bytes());
            }
            if let (0, Some(first)) = (nth, out.get_mut(start)) {
                first.make_ascii_uppercase();
            }
        }
        let end = if rng.below(20) == 0 { "&hellip;" } else { "." };
        out.extend_from_slice(end.as_bytes());
    }
    out.extend_from_slice(b"</p>\n");
}

/// Deflate blocks that end with an empty stored block, as a full flush leaves them.
fn deflate(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let done =
        Compress::new(Compression::best(), false).compress_vec(text, &mut out, FlushCompress::Full);
    match done {
        Ok(_) if out.ends_with(&[0, 0, 0xff, 0xff]) => out,
        // Never seen; the text uncompressed means the same.
        _ => {
            out.clear();
            store(&mut out, text);
            out
        }
    }
}

/// Stored deflate blocks (RFC 1951, 3.2.4), at most 65,535 bytes each.
fn store(out: &mut Vec<u8>, bytes: &[u8]) {
    for block in bytes.chunks(65_535) {
        let len = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}
