//! The fingerprint of a page: two pages that say the same have the same one.
//!
//! What a page says is the words that a reader sees, the data that it brings for scripts, its pictures and
//! the files it links to. What all pages of a site share, its frame, is in all their fingerprints and makes
//! none of them alike: one word of its own in a thousand makes a page another page. That is
//! why this is an exact hash and no simhash, which forgives one word in a hundred.
//!
//! What says nothing is left out: what a page repeats of its own URL (its numbers, and its words where they are
//! written with a slash), links to other pages, and numbers, which clocks and counters change on every visit.
//! Numbers are kept apart, so that a table of measurements is still another page than the next.

use orbweaver_model::{Fingerprint, LinkKind};

use crate::Page;
use crate::html::Scanner;
use crate::links::Links;
use crate::media;

/// Bytes after which a run of letters beyond ASCII is cut: three characters of Chinese or Japanese, which
/// are written without spaces.
const PIECE: u32 = 9;

/// Letters mixed with digits are a word up to this length, such as the name of a product; longer ones are
/// ids that a server makes up.
const MIXED: u32 = 12;

/// Words between two spaces that can be taken back because of a slash behind them.
const PENDING: usize = 8;

/// Shingles among which one that comes again does not count: ten times "more" are as good as eleven.
const RECENT: usize = 8;

/// Odd numbers to multiply with, from the golden ratio and square roots.
const MIX: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
];

/// The fingerprint of a HTML page with these references.
///
/// Works on the undecoded bytes: copies come in the same encoding.
pub fn fingerprint(page: &Page<'_>, links: &Links) -> Fingerprint {
    let mut words = Words {
        echoes: words_of(page.url.target()),
        ..Words::default()
    };
    let mut scanner = match media::is_xml(page.headers, page.body) {
        true => Scanner::for_xml(page.body),
        false => Scanner::new(page.body),
    };
    let mut scratch = Vec::new();
    while let Some(text) = scanner.next_text(&mut scratch) {
        words.read(text);
    }
    let mut print = words.shingles.finish();
    for link in links.iter().filter(|link| is_content(link.href, link.kind)) {
        print.words = print.words.wrapping_add(of_file(link.href));
    }
    print
}

/// Whether a reference is a part of what the page says, and not the way to another page.
fn is_content(href: &str, kind: LinkKind) -> bool {
    kind.is_requisite() || is_file(href)
}

/// Ends of names of files that are no pages: pictures, sound, films, documents, archives, data.
#[rustfmt::skip]
const FILES: &[&str] = &[
    "7z", "apk", "avi", "avif", "bmp", "bz2", "csv", "deb", "djvu", "doc", "docx", "epub", "exe", "flac", "gif",
    "gz", "ico", "iso", "jar", "jpeg", "jpg", "json", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg",
    "odp", "ods", "odt", "ogg", "ogv", "pdf", "png", "ppt", "pptx", "ps", "rar", "rpm", "rtf", "svg", "tar", "tgz",
    "tif", "tiff", "tsv", "txt", "wav", "webm", "webp", "wmv", "xls", "xlsx", "xz", "zip", "zst",
];

fn is_file(href: &str) -> bool {
    let path = href.split(['?', '#']).next().unwrap_or_default();
    path.rsplit_once('.').is_some_and(|(_, end)| {
        end.len() <= 5 && FILES.iter().any(|known| known.eq_ignore_ascii_case(end))
    })
}

/// A picture or file as a feature. Parameters that only keep a cache from answering do not count.
fn of_file(href: &str) -> u64 {
    let href = href.split('#').next().unwrap_or_default();
    let (path, query) = href.split_once('?').unwrap_or((href, ""));
    let mut hash = of_bytes(path.as_bytes());
    for argument in query.split('&').filter(|argument| !is_fleeting(argument)) {
        hash = mix(hash, of_bytes(argument.as_bytes()), 1);
    }
    mix(hash, MIX[1], MIX[2])
}

/// Whether an argument is a time in seconds or milliseconds, of the years 2017 to 2033.
fn is_fleeting(argument: &str) -> bool {
    let (_, value) = argument.split_once('=').unwrap_or(("", argument));
    matches!(value.len(), 10 | 13)
        && value.bytes().all(|b| b.is_ascii_digit())
        && matches!(value.as_bytes(), [b'1', b'5'..=b'9', ..])
}

fn of_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().copied().fold(Word::default(), Word::with).bits
}

/// The words of a URL, in the form in which words are compared.
fn words_of(target: &str) -> Vec<Word> {
    let words = target.as_bytes().split(|b| !b.is_ascii_alphanumeric());
    words
        .map(|bytes| bytes.iter().copied().fold(Word::default(), Word::with))
        .filter(|word| word.len > 0)
        .collect()
}

/// A word, as a number, and what it is made of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Word {
    bits: u64,
    len: u32,
    /// The kinds of its bytes.
    kinds: u8,
}

impl Word {
    fn with(self, b: u8) -> Self {
        Self {
            bits: step(self.bits, b),
            len: self.len + 1,
            kinds: self.kinds | kind_of(b),
        }
    }
}

/// The hash of a word by one byte more: FNV-1a, whose start does not matter here.
fn step(bits: u64, b: u8) -> u64 {
    (bits ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Takes a text apart. What stands between two spaces is held back until the second, because a slash in
/// it makes it a path, and of the page's own path nothing counts.
#[derive(Default)]
struct Words {
    /// The words of the URL.
    echoes: Vec<Word>,
    pending: [Word; PENDING],
    held: usize,
    slash: bool,
    shingles: Shingles,
}

impl Words {
    /// Reads a piece of text; where it ends, so does a word.
    fn read(&mut self, text: &[u8]) {
        let mut rest = text.iter();
        loop {
            // Most bytes are letters, and most words nothing else: this loop is nearly all that is done.
            let mut word = Word::default();
            let mut stop = SPACE;
            for &b in rest.by_ref() {
                let kind = kind_of(b);
                if kind == LETTER {
                    word.bits = step(word.bits, b);
                    word.len += 1;
                    word.kinds = LETTER;
                    continue;
                }
                if kind & (DIGIT | WIDE) != 0 {
                    word = word.with(b);
                    if kind == DIGIT || word.len < PIECE {
                        continue;
                    }
                }
                stop = kind;
                break;
            }
            if stop == SPACE {
                self.end(word);
            } else {
                self.slash |= stop == SLASH;
                self.hold(word);
            }
            if rest.as_slice().is_empty() {
                break;
            }
        }
        // The text may have ended behind a point, with something still held back.
        self.end(Word::default());
    }

    fn hold(&mut self, word: Word) {
        if word.len == 0 {
            return;
        }
        if self.held == PENDING {
            self.release();
        }
        if let Some(slot) = self.pending.get_mut(self.held) {
            *slot = word;
            self.held += 1;
        }
    }

    fn end(&mut self, word: Word) {
        if self.held == 0 && !self.slash {
            self.take(word);
            return;
        }
        self.hold(word);
        self.release();
        self.slash = false;
    }

    /// Takes what was held back: beside a slash, only what the URL does not have.
    fn release(&mut self) {
        let pending = self.pending;
        for word in pending.into_iter().take(self.held) {
            if !self.slash || !self.echoes.contains(&word) {
                self.take(word);
            }
        }
        self.held = 0;
    }

    fn take(&mut self, word: Word) {
        if word.len == 0 {
            return;
        }
        if word.kinds & DIGIT == 0 {
            self.shingles.word(word.bits);
        } else if self.echoes.contains(&word) {
            // The page repeats its URL.
        } else if word.kinds == DIGIT {
            self.shingles.number(word.bits);
        } else if word.len <= MIXED {
            self.shingles.word(word.bits);
        }
    }
}

/// The features of a text so far.
#[derive(Default)]
struct Shingles {
    /// The last two words, the last one second.
    last: [u64; 2],
    /// Words so far, up to the three that make a shingle.
    words: u8,
    /// The last shingles, in a ring.
    recent: [u64; RECENT],
    next: usize,
    print: Fingerprint,
}

impl Shingles {
    fn number(&mut self, bits: u64) {
        let bit = mix(bits, MIX[0], MIX[1]);
        if let Some(word) = self.print.numbers.get_mut((bit >> 6 & 3) as usize) {
            *word |= 1 << (bit & 63);
        }
    }

    fn word(&mut self, bits: u64) {
        let [first, second] = self.last;
        self.last = [second, bits];
        self.words = (self.words + 1).min(3);
        if self.words == 3 {
            self.shingle(mix(first, second, bits));
        }
    }

    fn shingle(&mut self, hash: u64) {
        if self.recent.contains(&hash) {
            return;
        }
        if let Some(slot) = self.recent.get_mut(self.next % RECENT) {
            *slot = hash;
        }
        self.next = self.next.wrapping_add(1);
        self.print.words = self.print.words.wrapping_add(hash);
    }

    fn finish(mut self) -> Fingerprint {
        if (1..3).contains(&self.words) {
            // One word or two are no shingle, but a text.
            let [first, second] = self.last;
            self.shingle(mix(0, first, second));
        }
        self.print
    }
}

/// Three numbers in order as one whose bits all depend on all of theirs.
fn mix(first: u64, second: u64, third: u64) -> u64 {
    let [a, b, c] = MIX;
    let sum = (first ^ c).wrapping_mul(a)
        ^ second.wrapping_mul(b).rotate_left(21)
        ^ third.wrapping_mul(c).rotate_left(42);
    let product = u128::from(sum ^ b) * u128::from(a);
    product as u64 ^ (product >> 64) as u64
}

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
/// All that is not ASCII.
const WIDE: u8 = 4;
/// White space and control characters.
const SPACE: u8 = 8;
const SLASH: u8 = 16;
/// The rest of ASCII; words end there.
const POINT: u8 = 32;

static KINDS: [u8; 256] = kinds();

#[allow(
    clippy::indexing_slicing,
    reason = "runs while compiling, where an index out of bounds is an error"
)]
const fn kinds() -> [u8; 256] {
    let mut kinds = [WIDE; 256];
    let mut b = 0;
    while b < 128 {
        kinds[b] = match b as u8 {
            0..=b' ' | 127 => SPACE,
            b'0'..=b'9' => DIGIT,
            b'/' => SLASH,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            _ => POINT,
        };
        b += 1;
    }
    kinds
}

fn kind_of(b: u8) -> u8 {
    KINDS.get(usize::from(b)).copied().unwrap_or(WIDE)
}
