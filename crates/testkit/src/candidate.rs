//! Candidates as the doc index would hand them out, and times.

use orbweaver_model::{Candidate, CrawlUrl, KeySeed, LinkKind, Timestamp};

/// The secret under which the keys of `candidate` are made.
pub const SEED: KeySeed = KeySeed(7);

/// So many milliseconds after the beginning of time.
pub const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A URL found by a link on a first page, never tried before.
///
/// # Panics
///
/// When the URL is not canonical.
pub fn candidate(url: &str) -> Candidate {
    let url = CrawlUrl::from_canonical(url).unwrap();
    Candidate {
        key: url.key(SEED),
        doc_id: 1,
        url,
        kind: LinkKind::A,
        depth: 1,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}
