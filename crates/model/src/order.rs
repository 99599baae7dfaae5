//! What the URL server tells the spider to do.

use std::fmt;
use std::net::IpAddr;

use crate::fetch::{Conditions, FetchRequest, FetchResult, Method, Purpose};
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

/// A URL that the doc index hands to the URL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its key.
    pub key: UrlKey,
    /// Its number in the doc index, from 1.
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

/// What an order is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A URL of the doc index, with what must come back with the answer.
    Page(Candidate),
    /// The robots.txt of an origin, which is in no index.
    Robots(CrawlUrl),
}

/// One URL to fetch now, from one address: what the URL server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// How the answer is matched to the order.
    pub trans: TransId,
    /// The address to connect to; the spider resolves nothing.
    pub ip: IpAddr,
    /// Page or robots.txt.
    pub subject: Subject,
    /// True when the URL server waits to hear that the request has been written, because a gap
    /// between two requests is counted from there.
    pub announce: bool,
}

impl Subject {
    /// What to ask for.
    pub fn url(&self) -> &CrawlUrl {
        match self {
            Self::Page(candidate) => &candidate.url,
            Self::Robots(url) => url,
        }
    }

    /// Page or robots.txt.
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::Page(_) => Purpose::Page,
            Self::Robots(_) => Purpose::Robots,
        }
    }

    /// The URL of the doc index; none for a robots.txt.
    pub fn page(&self) -> Option<&Candidate> {
        match self {
            Self::Page(candidate) => Some(candidate),
            Self::Robots(_) => None,
        }
    }
}

impl Order {
    /// What to ask for.
    pub fn url(&self) -> &CrawlUrl {
        self.subject.url()
    }

    /// Page or robots.txt.
    pub fn purpose(&self) -> Purpose {
        self.subject.purpose()
    }

    /// The URL of the doc index; none for a robots.txt.
    pub fn page(&self) -> Option<&Candidate> {
        self.subject.page()
    }

    /// What a fetch has to know of it. With `head_first` a document that was fetched before is asked for with HEAD; a
    /// repeated attempt asks for the document, for either HEAD failed or it told of a change.
    pub fn request(&self, head_first: bool) -> FetchRequest {
        let revisit = self
            .page()
            .and_then(|it| Some((it.attempts, it.revisit.as_ref()?)));
        FetchRequest {
            url: self.url().clone(),
            ip: self.ip,
            purpose: self.purpose(),
            method: match revisit {
                Some((0, _)) if head_first => Method::Head,
                _ => Method::Get,
            },
            known: revisit.map(|(_, before)| {
                Box::new(Conditions {
                    etag: before.etag.clone(),
                    last_modified: before.last_modified.clone(),
                })
            }),
            announce: self.announce,
        }
    }
}

/// A page that was asked for: which, and what came of it.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The page, as the doc index knew it when it was asked for.
    pub candidate: Candidate,
    /// The address that was to be asked; none when nobody remembers.
    pub ip: Option<IpAddr>,
    /// What came of it.
    pub result: FetchResult,
}
