//! What the URL server tells the spider to do.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::link::LinkKind;
use crate::recrawl::Revisit;
use crate::url::{CrawlUrl, UrlKey};

/// Names one order between URL server and spider: which host slot, which place in its active
/// window, and a generation that makes a late answer to a reused place recognisable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransId {
    /// How often this place was used before.
    pub generation: u32,
    /// The host slot.
    pub slot: u32,
    /// The place in the slot's active window.
    pub active: u16,
}

impl fmt::Display for TransId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.generation, self.slot, self.active)
    }
}

/// What an order is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// A URL of the doc index.
    Page,
    /// The robots.txt of an origin, asked for by the URL server itself.
    Robots,
}

/// A URL that the doc index hands to the URL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its key.
    pub key: UrlKey,
    /// Its number in the doc index, from 1; 0 for a robots.txt, which is in no index.
    pub doc_id: u32,
    /// What to ask for.
    pub url: CrawlUrl,
    /// How it was found.
    pub kind: LinkKind,
    /// Links followed since the seed.
    pub depth: u16,
    /// Attempts made before this one.
    pub attempts: u8,
    /// The redirects that led here, oldest first.
    pub chain: Vec<UrlKey>,
    /// What the visit before left, when there was one.
    pub revisit: Option<Box<Revisit>>,
}

/// One URL to fetch now, from one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// How the answer is matched to the order.
    pub trans: TransId,
    /// The address to connect to; the spider resolves nothing.
    pub ip: IpAddr,
    /// What to ask for, and what must come back with the answer.
    pub candidate: Candidate,
    /// Page or robots.txt.
    pub purpose: Purpose,
    /// True when the URL server waits to hear that the request has been written, because a gap
    /// between two requests is counted from there.
    pub announce: bool,
}

impl Order {
    /// What to ask for.
    pub fn url(&self) -> &CrawlUrl {
        &self.candidate.url
    }
}
