//! How many pages link to a URL, roughly: enough to tell what a site thinks important.
//!
//! One byte for each of a million places, found by the hash of the URL, and no more than that: a crawl of ten million
//! URLs would need a gigabyte to count exactly. Where two URLs share a place, the one with more links is the more
//! likely to be the one that passes a mark. Only in memory: after a restart the count begins again.

use std::sync::atomic::{AtomicU8, Ordering};

use orbweaver_model::UrlKey;

/// Places, a power of two.
const PLACES: usize = 1 << 20;

/// Pages with a link to a known URL at which it moves up. A page has some thirty links, so an ordinary one is linked to about as
/// often: the first mark lies above that, lest every URL pass it at the price of reads in the doc index, and the
/// second near the end of what a byte holds.
const MARKS: [u8; 2] = [64, 240];

/// The counts.
#[derive(Debug)]
pub(crate) struct Inlinks(Box<[AtomicU8]>);

impl Default for Inlinks {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU8::new(0)).collect())
    }
}

impl Inlinks {
    /// Counts another page that links to a known URL. The mark that it passes by this, from 1; each only once.
    pub(crate) fn note(&self, key: UrlKey) -> Option<u8> {
        let place = (key.url as usize) & (PLACES - 1);
        let count = self.0.get(place)?;
        let before = count.load(Ordering::Relaxed);
        if before == u8::MAX {
            return None;
        }
        // Two threads may count as one, which is as good.
        count.store(before + 1, Ordering::Relaxed);
        let passed = MARKS.iter().position(|mark| *mark == before + 1)?;
        u8::try_from(passed + 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_passed_once() {
        let inlinks = Inlinks::default();
        let key = UrlKey { host: 1, url: 77 };
        let passed: Vec<(usize, u8)> = (1..=1000)
            .filter_map(|n| Some((n, inlinks.note(key)?)))
            .collect();
        assert_eq!(passed, [(64, 1), (240, 2)]);
        assert_eq!(inlinks.note(UrlKey { host: 1, url: 78 }), None);
    }
}
