//! Whether the pages of a pattern, or of a host, still tell anything new.
//!
//! Two pages are near-copies when the fingerprints of their texts differ in at most three of 64 bits,
//! the distance that Manku, Jain and Das Sarma found to separate copies from other pages (WWW 2007).
//!
//! A pattern is stopped when nearly all of its last pages are near-copies of one of the few before them.
//! That finds calendars and pagination without end. What makes up words for its URLs has no
//! pattern; so for every host there are also the largest families of near-copies, whatever their URLs.

use crate::generations::Generations;

/// Bits in which the fingerprints of near-copies differ at most.
const NEAR: u32 = 3;

/// Fingerprints that a page is compared with: more than one, because traps alternate between a few texts.
const RECENT: usize = 8;

/// Families of near-copies that are known of one host.
const FAMILIES: usize = 8;

/// Fingerprints of a pattern after which it can be known as one with new pages.
const FEW: u32 = 4;

/// Of the pages of a pattern whose pages were new so far, one in this many is looked at.
const PATTERN_SAMPLE: u32 = 8;

/// Of the pages of a host without a family, one in this many is looked at.
const HOST_SAMPLE: u32 = 16;

/// All pages of a host are looked at while it has a family of this many.
const SUSPICIOUS: u32 = 2;

/// After so many pages in a row that are new, the families of a host count half.
const QUIET: u8 = 32;

/// What is remembered of pages.
#[derive(Debug)]
pub(super) struct Novelty {
    near_copies: u32,
    /// Filled by pages that were read, never by links.
    patterns: Generations<Pages>,
    hosts: Generations<Host>,
}

/// How a pattern stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Too little is known of it.
    Unproven,
    /// Most of its pages are new.
    Novel,
    /// Nearly all of its last pages were near-copies.
    Stopped { pages: u32, copies: u32, of: u32 },
}

/// The pages of one pattern.
#[derive(Debug, Default)]
struct Pages {
    seen: u32,
    /// Fingerprints taken.
    prints: u32,
    /// The last fingerprints, in a ring.
    recent: [u64; RECENT],
    /// A bit for each of the last fingerprints: whether it was a near-copy; the last one lowest.
    copies: u64,
    window: u8,
    stopped: bool,
}

/// The pages of one host.
#[derive(Debug, Default)]
struct Host {
    seen: u32,
    quiet: u8,
    families: [Family; FAMILIES],
}

/// Near-copies on one host.
#[derive(Clone, Copy, Debug, Default)]
struct Family {
    print: u64,
    pages: u32,
}

impl Novelty {
    pub(super) fn new(near_copies: u32, memory: usize) -> Self {
        Self {
            near_copies,
            patterns: Generations::new(memory, |_| 0),
            hosts: Generations::new(memory, |_| 0),
        }
    }

    /// Counts a page; true when its fingerprint is wanted.
    pub(super) fn arrives(&mut self, pattern: u64, host: u64) -> bool {
        let patience = self.near_copies;
        let pages = self.patterns.get_or_default(pattern);
        pages.seen = pages.seen.saturating_add(1);
        let by_pattern = pages.seen > patience - window(patience)
            && (pages.is_undecided() || pages.seen.is_multiple_of(PATTERN_SAMPLE));
        let host = self.hosts.get_or_default(host);
        host.seen = host.seen.saturating_add(1);
        let by_host = host.seen > patience / 3
            && (host.is_suspicious() || host.seen.is_multiple_of(HOST_SAMPLE));
        by_pattern || by_host
    }

    /// Takes in the fingerprint of a page. Says how large its family on the host is, when it is so large
    /// that links of its members lead nowhere new.
    pub(super) fn learns(&mut self, pattern: u64, host: u64, print: u64) -> Option<u32> {
        let patience = self.near_copies;
        self.patterns
            .get_or_default(pattern)
            .learn(print, window(patience), patience);
        let copies = self.hosts.get_or_default(host).learn(print);
        (copies >= self.near_copies).then_some(copies)
    }

    /// How a pattern stands.
    pub(super) fn standing(&mut self, pattern: u64) -> Standing {
        match self.patterns.get(pattern) {
            Some(pages) if pages.stopped => {
                let of = pages.prints.min(u32::from(pages.window));
                let copies = pages.copies_of_last(of);
                Standing::Stopped {
                    pages: pages.seen,
                    copies,
                    of,
                }
            }
            Some(pages) if !pages.is_undecided() => Standing::Novel,
            _ => Standing::Unproven,
        }
    }
}

/// Of the pages of a pattern, the last ones that decide: two thirds of its patience.
fn window(patience: u32) -> u32 {
    (patience - patience / 3).min(u64::BITS)
}

impl Pages {
    fn learn(&mut self, print: u64, window: u32, patience: u32) {
        let known = (self.prints as usize).min(RECENT);
        let copy = self.recent.iter().take(known).any(|old| near(*old, print));
        if let Some(slot) = self.recent.get_mut(self.prints as usize % RECENT) {
            *slot = print;
        }
        self.prints = self.prints.saturating_add(1);
        self.copies = self.copies << 1 | u64::from(copy);
        self.window = window as u8;
        // The first of all prints has nothing to be a copy of, so nine of ten it is.
        self.stopped = self.seen >= patience
            && self.prints >= window
            && self.copies_of_last(window) * 10 >= window * 9;
    }

    fn copies_of_last(&self, window: u32) -> u32 {
        let mask = u64::MAX >> (u64::BITS - window.clamp(1, u64::BITS));
        (self.copies & mask).count_ones()
    }

    /// True until some fingerprints have shown that more than half of the pages are new.
    fn is_undecided(&self) -> bool {
        let last = self.prints.min(self.window.into());
        last < FEW || self.copies_of_last(last) * 2 >= last
    }
}

impl Host {
    fn is_suspicious(&self) -> bool {
        self.families
            .iter()
            .any(|family| family.pages >= SUSPICIOUS)
    }

    /// Adds a page to its family, and says how large that is now.
    fn learn(&mut self, print: u64) -> u32 {
        let own = self
            .families
            .iter_mut()
            .find(|family| family.pages > 0 && near(family.print, print));
        if let Some(family) = own {
            family.pages = family.pages.saturating_add(1);
            self.quiet = 0;
            return family.pages;
        }
        self.quiet += 1;
        if self.quiet >= QUIET {
            self.quiet = 0;
            for family in &mut self.families {
                family.pages /= 2;
            }
        }
        // The last of the smallest goes, so that newcomers displace one another and no family.
        if let Some(last) = self.families.iter_mut().rev().min_by_key(|f| f.pages) {
            *last = Family { print, pages: 1 };
        }
        1
    }
}

/// Whether two fingerprints are those of near-copies.
pub(super) fn near(one: u64, other: u64) -> bool {
    (one ^ other).count_ones() <= NEAR
}
