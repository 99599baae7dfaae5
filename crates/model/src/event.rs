//! The events whose fold is the doc index.
//!
//! Nothing else changes it. On one machine they live only as the writes they cause; in a cluster they
//! are the records of a replicated log, so every one must mean the same to whoever folds it. [`codec`] writes
//! and reads them as bytes.

pub mod codec;

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capture::Archived;
use crate::clock::Timestamp;
use crate::link::Link;
use crate::outcome::Outcome;
use crate::recrawl::{RecrawlBounds, Revisit};
use crate::url::{KeySeed, UrlKey};

/// A link with intake's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLink {
    /// The link.
    pub link: Link,
    /// Why it is not to be fetched; none when it is.
    pub refused: Option<Outcome>,
}

/// What one attempt at a URL came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Class and reason.
    pub outcome: Outcome,
    /// HTTP status, when there was one.
    pub status: Option<u16>,
    /// The address asked.
    pub ip: Option<IpAddr>,
    /// Bytes received.
    pub bytes: u64,
    /// Duration in milliseconds.
    pub millis: u32,
    /// When the attempt ended.
    pub at: Timestamp,
    /// The redirect's target as an absolute URL; bounded and with hidden characters escaped when it is none.
    pub redirect: Option<String>,
}

impl Report {
    /// The report on a URL that nobody was asked for.
    pub fn unasked(outcome: Outcome, at: Timestamp) -> Self {
        Self {
            outcome,
            status: None,
            ip: None,
            bytes: 0,
            millis: 0,
            at,
            redirect: None,
        }
    }
}

/// A queued URL that is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The URL.
    pub key: UrlKey,
    /// Its place in the queue of its host.
    pub rank: u64,
    /// Attempts made before.
    pub attempts: u8,
}

/// The time during which one process serves an index and nobody else does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// One more than that of the epoch before; the first is 1.
    pub number: u64,
    /// The node whose process it is.
    pub node: String,
}

/// One change to the doc index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The index begins: the first event of every log.
    Begin {
        /// The secret that keys the hashes of this crawl, for as long as it lasts.
        seed: KeySeed,
    },
    /// A process begins to serve this index; claims of earlier epochs return to the queue.
    Epoch {
        /// Which.
        epoch: Epoch,
        /// When.
        at: Timestamp,
    },
    /// Links that did not come from a page: seeds, sitemaps named by robots.txt.
    Links {
        /// The links.
        links: Vec<NewLink>,
        /// When.
        at: Timestamp,
    },
    /// These queued URLs are handed to the URL server.
    Claim {
        /// Number of the batch, one more than the last.
        batch: u64,
        /// When.
        at: Timestamp,
        /// The URLs.
        urls: Vec<Claimed>,
    },
    /// A URL is finished, and these links were found in it: one change, so that a page never counts
    /// as done while its links are lost.
    Done {
        /// The URL.
        key: UrlKey,
        /// What came of it.
        report: Report,
        /// What it linked to.
        links: Vec<NewLink>,
        /// What the next visit needs to know, when there may be one.
        revisit: Option<Box<Revisit>>,
        /// Where the exchange is kept; none when nothing was archived, or not beside this index.
        archived: Option<Archived>,
    },
    /// A URL is to be requested again at a later time.
    Retry {
        /// The URL.
        key: UrlKey,
        /// What came of this attempt.
        report: Report,
        /// Not before.
        due: Timestamp,
        /// Where the exchange is kept; none when nothing was archived, or not beside this index.
        archived: Option<Archived>,
    },
    /// Claimed URLs come back unasked, because their host has to wait or the crawl stops.
    Return {
        /// The URLs.
        keys: Vec<UrlKey>,
    },
    /// Finished URLs are to be visited again at other times.
    Schedule {
        /// The URLs and their times; none when no visit is planned any more.
        visits: Vec<(UrlKey, Option<Timestamp>)>,
    },
    /// The visits of all finished URLs are planned by these bounds, which `Schedule` events before have said one by one.
    Planned {
        /// The bounds; none when no visit is planned.
        bounds: Option<RecrawlBounds>,
    },
    /// Retries and visits whose time has come go to the queue.
    Due {
        /// The time.
        now: Timestamp,
        /// True when finished URLs are visited again. Those whose robots.txt was unavailable are retried later
        /// in any case.
        visits: bool,
    },
    /// Queued URLs move up, because many pages link to them.
    Promote {
        /// The URLs and their new priorities.
        urls: Vec<(UrlKey, u8)>,
    },
    /// What is left in the queue of a host is refused: its budget is spent.
    Exhaust {
        /// Hash of the host.
        host: u64,
        /// Which budget. When it is that of pages, URLs that were asked for before may be requested again.
        spent: Spent,
        /// Class and reason for each URL.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
    /// These URLs are to be judged again: the rules have changed, or a better link to them was found. Refused ones may be
    /// accepted by now, and finished ones may have links that were refused for their sake.
    Reconsider {
        /// The URLs.
        keys: Vec<UrlKey>,
    },
    /// These URLs were judged again; what came of it are links that follow.
    Reconsidered {
        /// The URLs.
        keys: Vec<UrlKey>,
    },
    /// Finished URLs are asked for once more, because their links are needed and nobody has kept them.
    Reopen {
        /// The URLs.
        keys: Vec<UrlKey>,
        /// When.
        at: Timestamp,
    },
    /// All that is refused was judged, or is marked to be judged, by these rules.
    Judged {
        /// The rules.
        rules: Rules,
    },
    /// Everything up to this position of a store's results is folded.
    Results {
        /// The position.
        position: u64,
    },
    /// What a host's robots.txt said.
    Robots {
        /// Scheme and authority, as in `CrawlUrl::origin`.
        origin: String,
        /// The answer.
        robots: RobotsRecord,
    },
    /// Requests for robots.txt files were made, which no URL of the index stands for.
    RobotsAsked {
        /// How many.
        requests: u32,
    },
    /// When a host may be asked again; outlives the URL server.
    Host {
        /// Hash of the host.
        host: u64,
        /// Not before.
        not_before: Timestamp,
    },
    /// What an operator wants of a host; outlives the URL server.
    Setting {
        /// Hash of the host, which is known.
        host: u64,
        /// What.
        setting: HostSetting,
        /// When.
        at: Timestamp,
    },
}

/// The rules by which links are judged, as far as it matters whether they have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// A hash of scope, seeds and everything else that a verdict depends on.
    pub hash: u64,
    /// What pages need to be shown is fetched too.
    pub requisites: bool,
}

/// A budget of a host or of its domain that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Spent {
    /// URLs that were requested.
    Pages,
    /// Bytes received.
    Bytes,
    /// Time since the first request.
    Time,
}

/// What an operator can set for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostSetting {
    /// While true nothing more is asked of it, and its URLs wait.
    Blocked(bool),
    /// The time between two requests to it instead of the crawl's own; none for the crawl's own. A longer
    /// Crawl-delay is obeyed all the same.
    Gap(Option<Duration>),
}

/// A robots.txt as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// When it was received.
    pub fetched: Timestamp,
    /// When it must be fetched again.
    pub expires: Timestamp,
    /// HTTP status of the final answer.
    pub status: u16,
    /// The rules; empty when everything is allowed.
    pub body: Vec<u8>,
}
