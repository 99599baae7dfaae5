//! The fingerprint of a page's text: near-copies have nearly the same one.
//!
//! A simhash (Charikar, STOC 2002) of 64 bits over the different shingles of three words that a reader
//! sees. With a share s of the shingles changed, about 64·arccos(1−s)/π bits change: 3 for one per cent,
//! 9 for ten, 32 for all. Each shingle counts once however often it stands there, because "add to basket"
//! under each of fifty goods must not make all lists of goods alike.
//!
//! Numbers are set apart, so that one that changes does not take its neighbours with it; and what a page
//! repeats of its own URL says nothing: its numbers, and whatever is written with a slash.

use crate::Page;
use crate::html::Scanner;

/// Bytes of the body that are looked at. Scripts and styles at its beginning may be long, and are skipped
/// at some gigabytes a second.
const MAX_BODY: usize = 1 << 20;

/// Bytes of text that are looked at; behind this much, copies have differed already.
const MAX_TEXT: usize = 32 << 10;

/// Bytes after which a run of letters beyond ASCII is cut: three characters of Chinese or Japanese, which
/// are written without spaces.
const PIECE: u32 = 9;

/// Words between two spaces that can be taken back because of a slash behind them.
const PENDING: usize = 8;

/// Odd numbers to multiply with, from the golden ratio and square roots.
const MIX: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
];

/// The fingerprint of a HTML page; none when it shows no text.
///
/// Works on the undecoded bytes: copies come in the same encoding.
pub fn fingerprint(page: &Page<'_>) -> Option<u64> {
    let body = page.body.get(..MAX_BODY).unwrap_or(page.body);
    let mut words = Words {
        echoes: numbers(page.url.target()),
        ..Words::default()
    };
    let mut scanner = Scanner::new(body);
    let mut scratch = Vec::new();
    let mut left = MAX_TEXT;
    while let Some(text) = scanner.next_text(&mut scratch) {
        let text = text.get(..left).unwrap_or(text);
        words.read(text);
        left -= text.len();
        if left == 0 {
            break;
        }
    }
    words.shingles.finish()
}

/// The numbers in a URL, in the form in which words are compared.
fn numbers(target: &str) -> Vec<Word> {
    let words = target.as_bytes().split(|b| !b.is_ascii_alphanumeric());
    words
        .map(|bytes| bytes.iter().copied().fold(Word::default(), Word::with))
        .filter(|word| word.kinds & DIGIT != 0)
        .collect()
}

/// A word, as a number, and whether digits are in it. Seven bits a letter keep nine of them apart, which is all
/// that a word needs; nobody gains by a page that passes for another.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Word {
    bits: u64,
    len: u32,
    /// `DIGIT` or nothing.
    kinds: u8,
}

impl Word {
    fn with(self, b: u8) -> Self {
        Self {
            bits: self.bits.rotate_left(7) ^ u64::from(b),
            len: self.len + 1,
            kinds: self.kinds | kind_of(b) & DIGIT,
        }
    }
}

/// Takes a text apart. What stands between two spaces is held back until the second, because a slash in
/// it makes it a path, a date or an alternative, and all of it is left out.
#[derive(Default)]
struct Words {
    /// Numbers that stand in the URL too.
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
                    word.bits = word.bits.rotate_left(7) ^ u64::from(b);
                    word.len += 1;
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
        if !self.slash {
            self.release();
        }
        self.held = 0;
        self.slash = false;
    }

    fn release(&mut self) {
        let pending = self.pending;
        for word in pending.into_iter().take(self.held) {
            self.take(word);
        }
        self.held = 0;
    }

    fn take(&mut self, word: Word) {
        if word.kinds & DIGIT == 0 {
            if word.len > 0 {
                self.shingles.word(word.bits);
            }
        } else if !self.echoes.contains(&word) {
            self.shingles.number(word.bits);
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
    seen: Seen,
    votes: Votes,
}

impl Shingles {
    fn number(&mut self, bits: u64) {
        self.feature(mix(bits, MIX[0], MIX[1]));
    }

    fn word(&mut self, bits: u64) {
        let [first, second] = self.last;
        self.last = [second, bits];
        self.words = (self.words + 1).min(3);
        if self.words == 3 {
            self.feature(mix(first, second, bits));
        }
    }

    fn feature(&mut self, hash: u64) {
        let new = self.seen.insert(hash);
        self.votes.add_if(new, hash);
    }

    fn finish(mut self) -> Option<u64> {
        if self.words > 0 && self.votes.count == 0 {
            // One word or two are no shingle, but a text.
            let [first, second] = self.last;
            self.votes.add_if(true, mix(0, first, second));
        }
        (self.votes.count > 0).then(|| self.votes.majority())
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

/// The features counted so far, one bit for each. Of a few thousand some fall on a bit that is taken and
/// do not count; on a near-copy the same ones do.
struct Seen([u64; 256]);

impl Default for Seen {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Seen {
    /// False when it was there.
    fn insert(&mut self, hash: u64) -> bool {
        let Some(word) = self.0.get_mut((hash >> 56) as usize) else {
            return false;
        };
        let bit = 1 << (hash >> 50 & 63);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// Features that are counted at once.
const BLOCK: usize = 8;

/// For each of 64 bits, how many features have it set: sixty-four counters side by side, the lowest bits
/// of all of them in the first word. They are added to in blocks, because how far a carry goes is a guess
/// that the processor gets wrong for every other feature.
#[derive(Default)]
struct Votes {
    planes: [u64; 16],
    count: u64,
    /// Features that are not counted yet; what stands behind the last of them is none.
    waiting: [u64; BLOCK],
    held: usize,
}

impl Votes {
    /// Adds a feature if it counts. No branch depends on that, for it is as good as random.
    fn add_if(&mut self, counts: bool, bits: u64) {
        if let Some(place) = self.waiting.get_mut(self.held) {
            *place = bits;
        }
        self.held += usize::from(counts);
        self.count += u64::from(counts);
        if self.held == BLOCK {
            self.settle();
        }
    }

    /// Counts what waits: seven adders of three words each, as in the population count of Harley and Seal.
    fn settle(&mut self) {
        for place in self.waiting.iter_mut().skip(self.held) {
            *place = 0;
        }
        self.held = 0;
        let [a, b, c, d, e, f, g, h] = self.waiting;
        let [ones, twos, fours, higher @ ..] = &mut self.planes;
        let two = [add(ones, a, b), add(ones, c, d)];
        let two_more = [add(ones, e, f), add(ones, g, h)];
        let four = add(twos, two[0], two[1]);
        let four_more = add(twos, two_more[0], two_more[1]);
        let mut carry = add(fours, four, four_more);
        for plane in higher {
            if carry == 0 {
                break;
            }
            let both = *plane & carry;
            *plane ^= carry;
            carry = both;
        }
    }

    /// The bits that more than half of the features have: all counters are compared with the half at once.
    fn majority(&mut self) -> u64 {
        self.settle();
        let half = self.count / 2;
        let mut more = 0;
        let mut same = u64::MAX;
        for (place, plane) in self.planes.iter().enumerate().rev() {
            let bit = 0u64.wrapping_sub(half >> place & 1);
            more |= same & plane & !bit;
            same &= !(plane ^ bit);
        }
        more
    }
}

/// Adds two words to a plane of counters; what is carried comes back.
fn add(plane: &mut u64, a: u64, b: u64) -> u64 {
    let odd = *plane ^ a;
    let carry = (*plane & a) | (odd & b);
    *plane = odd ^ b;
    carry
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
