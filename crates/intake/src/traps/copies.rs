//! Pages that say the same as other pages of their host, and where they lead.
//!
//! That a page says nothing of its own makes it no trap: it may be the way to pages that do. What gives an
//! endless site away is that its copies lead to ever more copies. So the copies of a host have an allowance of
//! links, each link that they lead to is paid from it, and each page with something of its own that is found so
//! pays ten of them back. A site where one page in ten has something to say is never bounded.
//!
//! A link on a copy that was itself found on a copy has its full price; on one that was found on a page of its own
//! it costs a tenth, for a thousand forms that are all the same and end there are no way without end. A link
//! with another sign of endlessness (a date that nobody has reached, a path that repeats itself) costs more.

use orbweaver_model::{Fingerprint, UrlKey};

use crate::generations::Generations;

/// Pages that say the same before the next one counts as a copy that pays for its links.
pub(super) const MANY: u32 = 20;

/// Pages that say the same before the next one counts as a copy whose links are looked at for other signs of
/// endlessness, and pay for those that have one.
pub(super) const SOME: u32 = 3;

/// What one link of the allowance is worth, so that there are tenths of it.
pub(super) const WHOLE: u8 = 10;

/// What a page with something of its own pays back, if its link cost no more.
const REFUND: u8 = 10 * WHOLE;

/// Numbers that the last page of the same words did not have, from which on a page is one of data. A clock and a
/// counter change some six, a list of pages a dozen.
const DATA: u32 = 16;

/// Pages of a host that are all looked at.
const FIRST: u32 = 16;

/// Of the pages of a host without copies, one in this many is looked at.
const SAMPLE: u32 = 8;

/// Pages in a row with something of their own after which a host counts as one without copies.
const QUIET: u8 = 64;

/// What is remembered of pages.
#[derive(Debug)]
pub(super) struct Copies {
    /// By host and words: filled by pages that were read, never by links.
    families: Generations<Family>,
    hosts: Generations<Host>,
    /// By URL: what copies have paid for it, until it is paid back.
    paid: Generations<u8>,
}

/// Pages of one host with the same words.
#[derive(Debug, Default)]
struct Family {
    pages: u32,
    /// The numbers of the last one.
    numbers: [u64; 4],
}

#[derive(Debug, Default)]
struct Host {
    seen: u32,
    /// Counts down from `QUIET` after a copy.
    suspicious: u8,
    /// What was paid from the allowance, in tenths of a link.
    spent: u32,
}

impl Copies {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            families: Generations::new(memory / 2, |_| 0),
            hosts: Generations::new(memory / 4, |_| 0),
            paid: Generations::new(memory / 4, |_| 0),
        }
    }

    /// Counts a page of a host; true when its fingerprint is wanted.
    pub(super) fn wants(&mut self, key: UrlKey) -> bool {
        let host = self.hosts.get_or_default(key.host);
        host.seen = host.seen.saturating_add(1);
        host.seen <= FIRST || host.suspicious > 0 || host.seen.is_multiple_of(SAMPLE)
    }

    /// Takes in a page, and says how many pages of the host said the same before it.
    pub(super) fn learns(&mut self, key: UrlKey, print: &Fingerprint) -> u32 {
        let family = self
            .families
            .get_or_default(key.host ^ print.words.rotate_left(1));
        let before = family.pages;
        let is_data = before > 0 && print.numbers_beyond(&family.numbers) >= DATA;
        family.numbers = print.numbers;
        let copies = if is_data { 0 } else { before };
        if !is_data {
            family.pages = before.saturating_add(1);
        }
        let host = self.hosts.get_or_default(key.host);
        host.suspicious = match copies {
            0 => host.suspicious.saturating_sub(1),
            _ => QUIET,
        };
        if copies < SOME {
            self.brings(key);
        }
        copies
    }

    /// A document with something of its own was found.
    pub(super) fn brings(&mut self, key: UrlKey) {
        let Some(paid) = self.paid.get(key.url) else {
            return;
        };
        let cost = std::mem::take(paid);
        if cost > 0 {
            let host = self.hosts.get_or_default(key.host);
            host.spent = host.spent.saturating_sub(cost.max(REFUND).into());
        }
    }

    /// Pays for a link on a copy; false when the allowance of the host is spent. An allowance of 0 has no end.
    pub(super) fn pays(&mut self, key: UrlKey, cost: u8, allowance: u32) -> bool {
        if allowance == 0 {
            return true;
        }
        let host = self.hosts.get_or_default(key.host);
        if host.spent >= allowance.saturating_mul(WHOLE.into()) {
            return false;
        }
        host.spent = host.spent.saturating_add(cost.into());
        *self.paid.get_or_default(key.url) = cost;
        true
    }

    /// Whether a page was found on a copy.
    pub(super) fn is_paid(&mut self, key: UrlKey) -> bool {
        self.paid.get(key.url).is_some_and(|cost| *cost > 0)
    }

    /// A redirect leads on: what was paid for its source was paid for its target.
    pub(super) fn moves(&mut self, from: UrlKey, to: UrlKey) {
        if let Some(cost) = self.paid.get(from.url).copied() {
            *self.paid.get_or_default(to.url) = cost;
        }
    }
}
