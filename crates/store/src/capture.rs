//! What is given to an archive: an exchange, and what whoever brings it knows of it.

use std::num::NonZeroU32;

use orbweaver_model::{Candidate, CrawlUrl, FetchResult, Outcome, Purpose, Timestamp};

/// What a capture is of, as far as whoever brings it knows.
#[derive(Clone, Copy, Debug)]
pub enum Captured<'a> {
    /// A page, and how it was found.
    Page(&'a Candidate),
    /// A robots.txt.
    Robots,
    /// A record of a spider elsewhere: how its URL was found, and what it cost, is not known.
    Record {
        /// The document's number; none for a robots.txt.
        doc_id: Option<NonZeroU32>,
    },
}

/// What is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// What was asked for.
    pub url: &'a CrawlUrl,
    /// What it is.
    pub of: Captured<'a>,
    /// What came.
    pub result: &'a FetchResult,
    /// When the document was captured that a server says has not changed since (304); none when it was not asked that.
    pub unchanged_since: Option<Timestamp>,
    /// The key under which the URL is indexed, a SURT.
    pub surt: &'a str,
    /// What became of the URL in the end.
    pub outcome: &'a Outcome,
    /// The page it was found on; none for a seed.
    pub via: Option<&'a str>,
}

impl Captured<'_> {
    /// What was asked for it.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Page(_) | Self::Record { doc_id: Some(_) } => Purpose::Page,
            Self::Robots | Self::Record { doc_id: None } => Purpose::Robots,
        }
    }
}
