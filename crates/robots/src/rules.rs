//! The rules of one group, laid out so that a verdict costs little however many there are.
//!
//! RFC 9309 section 2.2.2: the longest pattern that matches decides. Most patterns are plain prefixes: they are
//! kept in alphabetical order, and the longest one that a target begins with is found by halving. A pattern with a
//! `*` or a final `$` is found through a few bytes that it cannot match without: of all its places those that are
//! rarest in the file. Only the patterns whose bytes stand in the target are tried at all.
//!
//! Nothing is sorted by when it decides, and no automaton is built: both would take several times the memory of
//! the text, and a file may have half a megabyte of it.

use std::fmt;

use super::pattern;

/// Bytes that a pattern is found by, if it has a piece of that length.
const GRAM: usize = 4;
/// Up to so many patterns with `*` or `$` are all tried: that costs less than looking.
const FEW: usize = 16;
/// Counters for how often each gram occurs in the patterns of a file; two that share one count as the same.
const COUNTERS: usize = 1 << 14;

/// One Allow or Disallow line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// True for Allow.
    pub allow: bool,
    /// The pattern, with its percent-encoding normalised.
    pub pattern: &'a str,
}

impl Rule<'_> {
    /// RFC 9309 section 2.2.2: of two rules that match, the one with the most octets decides, and Allow between equals.
    /// That two are equal in this as well concerns only which of them is named.
    pub(super) fn decides_before(self, other: Self) -> bool {
        let rank = |rule: Self| (rule.pattern.len(), rule.allow);
        rank(self)
            .cmp(&rank(other))
            .then_with(|| other.pattern.cmp(self.pattern))
            .is_gt()
    }
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.allow { "Allow" } else { "Disallow" };
        write!(f, "{key}: {}", self.pattern)
    }
}

/// The patterns of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Every pattern, one behind the other: the plain ones in alphabetical order, then the others, the one that
    /// decides first coming first.
    text: Box<str>,
    /// For each pattern where it ends in `text`, shifted left by one; the lowest bit says Allow.
    ends: Box<[u32]>,
    /// How many are plain.
    plain: usize,
    /// For each other pattern, unless there are few, the bytes that a target must hold, and its number; sorted.
    grams: Box<[(u32, u32)]>,
}

/// What looking for a rule has cost, in steps of some ten nanoseconds.
pub(super) type Steps = usize;

impl Rules {
    /// Lays out normalised patterns, each with whether it is an Allow. Without a Disallow there is nothing to look
    /// up, however many Allow lines there are.
    pub(super) fn new(rules: Vec<(String, bool)>) -> Self {
        if rules.iter().all(|(_, allow)| *allow) {
            return Self::default();
        }
        let (mut plain, mut other): (Vec<_>, Vec<_>) = rules
            .into_iter()
            .partition(|(text, _)| !text.contains('*') && !text.ends_with('$'));
        // Of two that are equal but for this, the Allow comes last, where the search finds it.
        plain.sort_unstable();
        plain.dedup();
        other.sort_unstable_by(|(a, a_allow), (b, b_allow)| {
            (b.len(), b_allow)
                .cmp(&(a.len(), a_allow))
                .then_with(|| a.cmp(b))
        });
        other.dedup();
        let size =
            |rules: &[(String, bool)]| rules.iter().map(|(text, _)| text.len()).sum::<usize>();
        let mut text = String::with_capacity(size(&plain) + size(&other));
        let mut ends = Vec::with_capacity(plain.len() + other.len());
        for (pattern, allow) in plain.iter().chain(&other) {
            text.push_str(pattern);
            // A file is cut at `MOST_BYTES` and encoding at most triples it: below 2^31.
            ends.push((text.len() as u32) << 1 | u32::from(*allow));
        }
        Self {
            text: text.into(),
            ends: ends.into(),
            plain: plain.len(),
            grams: grams(&other, plain.len()).into(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.text.len() + size_of_val(self.ends.as_ref()) + size_of_val(self.grams.as_ref())
    }

    /// All rules, in no order that means anything.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = Rule<'_>> {
        (0..self.ends.len()).filter_map(|number| self.get(number))
    }

    fn get(&self, number: usize) -> Option<Rule<'_>> {
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)? >> 1,
            None => 0,
        };
        let packed = *self.ends.get(number)?;
        Some(Rule {
            allow: packed & 1 == 1,
            pattern: self.text.get(start as usize..(packed >> 1) as usize)?,
        })
    }

    /// The rule that decides about a normalised target, and what finding it has cost.
    pub(super) fn decisive(&self, target: &str) -> (Option<Rule<'_>>, Steps) {
        let mut steps = 1;
        let plain = self.longest_prefix(target, &mut steps);
        let others = self.ends.len() - self.plain;
        // Whatever decides before the plain rule that was found.
        let rivals = match plain {
            Some(found) => halve(others, |n| {
                self.get(self.plain + n)
                    .is_some_and(|rule| rule.decides_before(found))
            }),
            None => others,
        };
        let other = if self.grams.is_empty() {
            (0..rivals)
                .filter_map(|n| self.get(self.plain + n))
                .find(|rule| matches(*rule, target, &mut steps))
        } else {
            self.find_by_grams(target, self.plain + rivals, &mut steps)
        };
        (other.or(plain), steps)
    }

    /// The longest plain pattern that the target begins with.
    ///
    /// Every pattern that `head` begins with lies, in the alphabet, between itself and `head`, and so does the last
    /// one that is not behind `head`, of which it is therefore a beginning too. So what that last one does not share
    /// with `head` can be cut off.
    fn longest_prefix(&self, target: &str, steps: &mut Steps) -> Option<Rule<'_>> {
        let mut head = target.as_bytes();
        while !head.is_empty() {
            *steps += 8 + head.len() / 16;
            let behind = halve(self.plain, |n| {
                self.get(n)
                    .is_some_and(|rule| rule.pattern.as_bytes() <= head)
            });
            let last = self.get(behind.checked_sub(1)?)?;
            let pattern = last.pattern.as_bytes();
            let shared = head.iter().zip(pattern).take_while(|(a, b)| a == b).count();
            if shared == pattern.len() {
                return Some(last);
            }
            head = head.get(..shared)?;
        }
        None
    }

    /// The first of the other patterns below number `end` that matches, by what they cannot match without.
    fn find_by_grams(&self, target: &str, end: usize, steps: &mut Steps) -> Option<Rule<'_>> {
        // What consists of nothing but stars needs nothing.
        let mut keys = vec![0];
        for at in 0..target.len() {
            let tail = target.as_bytes().get(at..).unwrap_or_default();
            keys.extend(
                (1..=GRAM.min(tail.len())).filter_map(|length| Some(key(tail.get(..length)?))),
            );
        }
        keys.sort_unstable();
        keys.dedup();
        *steps += 6 * keys.len();
        let mut numbers: Vec<u32> = Vec::new();
        for key in keys {
            let from = self.grams.partition_point(|(gram, _)| *gram < key);
            let found = self.grams.get(from..).unwrap_or_default().iter();
            let found = found
                .take_while(|(gram, _)| *gram == key)
                .map(|(_, number)| *number);
            numbers.extend(found.take_while(|number| (*number as usize) < end));
        }
        *steps += 2 * numbers.len();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| self.get(number as usize))
            .find(|rule| matches(*rule, target, steps))
    }
}

fn matches(rule: Rule<'_>, target: &str, steps: &mut Steps) -> bool {
    *steps += 4 + target.len() / 32;
    pattern::matches(rule.pattern.as_bytes(), target.as_bytes())
}

/// How many of the first `count` numbers fulfil a condition that none fulfils after one that does not.
fn halve(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Up to four bytes as a number; no pattern or target holds a NUL, so a shorter one is none of the longer ones.
fn key(gram: &[u8]) -> u32 {
    gram.iter().fold(0, |key, byte| key << 8 | u32::from(*byte))
}

/// The grams that a pattern could be found by: all of the length `GRAM` in its pieces, or else the whole of its
/// longest piece.
fn choices(text: &str) -> impl Iterator<Item = u32> {
    let text = text.strip_suffix('$').unwrap_or(text).as_bytes();
    let pieces = || text.split(|byte| *byte == b'*');
    let long = pieces().flat_map(|piece| piece.windows(GRAM)).map(key);
    let short = pieces()
        .max_by_key(|piece| piece.len())
        .filter(|piece| piece.len() < GRAM)
        .map(key);
    long.chain(short)
}

/// For each pattern the rarest gram of the file among its own. `first` is the number of the first pattern.
fn grams(patterns: &[(String, bool)], first: usize) -> Vec<(u32, u32)> {
    if patterns.len() <= FEW {
        return Vec::new();
    }
    let counter = |gram: u32| (gram.wrapping_mul(0x9e37_79b1) >> 18) as usize % COUNTERS;
    let mut counts = vec![0u32; COUNTERS];
    for gram in patterns.iter().flat_map(|(text, _)| choices(text)) {
        if let Some(count) = counts.get_mut(counter(gram)) {
            *count += 1;
        }
    }
    let rarity = |gram: &u32| counts.get(counter(*gram)).copied();
    let mut grams: Vec<_> = (first as u32..)
        .zip(patterns)
        .map(|(number, (text, _))| (choices(text).min_by_key(rarity).unwrap_or(0), number))
        .collect();
    grams.sort_unstable();
    grams
}
