//! What goes into the heart and what comes out of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{
    Candidate, CrawlUrl, FetchResult, Limits, Order, Outcome, OutcomeClass, RobotsRecord,
    Timestamp, TransId,
};

use orbweaver_robots::Robots;

/// The addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// In the order in which they should be tried; never empty.
    pub addresses: Vec<IpAddr>,
    /// How long they may be used.
    pub ttl: Duration,
}

/// How an order ended, as far as the URL server needs to know.
#[derive(Clone, Debug)]
pub struct Done {
    /// When the request was written; none when it never was.
    pub sent: Option<Timestamp>,
    /// When the first byte of the answer came.
    pub first_byte: Option<Timestamp>,
    /// When the fetch was over.
    pub ended: Timestamp,
    /// No connection could be made, so that another address of the host should be tried.
    pub connect_failed: bool,
    /// The server is in trouble: no connection, no answer in time, or one with a status of 5xx. Its host is
    /// asked less.
    pub failed: bool,
    /// For a robots.txt order, what came of it; without it the file counts as unreachable.
    pub robots: Option<RobotsAnswer>,
}

impl Done {
    /// What the URL server needs to know of a page's result.
    pub fn page(result: &FetchResult) -> Self {
        // What is our own doing says nothing about the host.
        let ours = result.is_put_back();
        Self {
            sent: result.sent,
            first_byte: result.first_byte,
            ended: result.ended,
            connect_failed: result.outcome.class == OutcomeClass::FailedConnect,
            failed: !ours && result.outcome.class.is_trouble(result.status()),
            robots: None,
        }
    }

    /// The same for a robots.txt. `moved_to` is the canonical form of the Location that the answer
    /// points to, when it points anywhere; `wait` is what its Retry-After says.
    pub fn robots(
        result: &FetchResult,
        moved_to: Option<CrawlUrl>,
        wait: Option<Duration>,
    ) -> Self {
        Self {
            robots: Some(RobotsAnswer::of(result, moved_to, wait)),
            ..Self::page(result)
        }
    }
}

/// What came of asking for a robots.txt: the cases of RFC 9309 section 2.3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// A file, whole or cut.
    Fetched {
        /// HTTP status.
        status: u16,
        /// The decoded body.
        body: Vec<u8>,
        /// When the server wants it to be requested again.
        expires: Option<Timestamp>,
    },
    /// The same, read by whoever brings it: reading half a megabyte takes milliseconds, which the heart does not have.
    Read {
        /// HTTP status.
        status: u16,
        /// The decoded body.
        body: Vec<u8>,
        /// What it says to us.
        rules: Box<Robots>,
        /// When the server wants it to be requested again.
        expires: Option<Timestamp>,
    },
    /// There is none (4xx): everything is allowed.
    Unavailable {
        /// HTTP status.
        status: u16,
    },
    /// It is elsewhere.
    Moved {
        /// HTTP status.
        status: u16,
        /// Where; none when the Location leads nowhere a crawler can go.
        location: Option<CrawlUrl>,
    },
    /// The crawler itself was in the way: it is requested again, as if it had not been.
    PutBack,
    /// It was unavailable (5xx, 429, network): everything is denied for now.
    Unreachable {
        /// What the URLs that wait for it get when no attempt is left.
        outcome: Outcome,
        /// How long the server wants to be left alone.
        wait: Option<Duration>,
    },
}

impl RobotsAnswer {
    /// Reads a file that was fetched, for the product token `agent`.
    #[must_use]
    pub fn read(self, agent: &str, limits: &Limits) -> Self {
        match self {
            Self::Fetched {
                status,
                body,
                expires,
            } => Self::Read {
                status,
                rules: Box::new(Robots::parse(&body, agent, limits.robots_max_bytes)),
                body,
                expires,
            },
            other => other,
        }
    }

    /// Sorts a fetch into the cases.
    pub fn of(result: &FetchResult, moved_to: Option<CrawlUrl>, wait: Option<Duration>) -> Self {
        if result.is_put_back() {
            return Self::PutBack;
        }
        let Some(exchange) = &result.exchange else {
            return Self::unreachable(&result.outcome);
        };
        let status = exchange.status;
        match status {
            // Without its whole content a body that could not be decoded says nothing.
            200..=299 if result.outcome.class == OutcomeClass::FailedDecode => {
                Self::unreachable(&result.outcome)
            }
            200..=299 => Self::Fetched {
                status,
                body: exchange.body.to_vec(),
                expires: None,
            },
            300..=399 => Self::Moved {
                status,
                location: moved_to,
            },
            // 429 is no statement about the file but a request to come back later.
            400..=499 if status != 429 => Self::Unavailable { status },
            _ => Self::Unreachable {
                outcome: Outcome::because(
                    OutcomeClass::DeniedRobots,
                    format!("robots.txt: status {status}"),
                ),
                wait,
            },
        }
    }

    /// A failure without an answer. When the host itself cannot be reached, its URLs fail as they
    /// would have failed without a robots.txt; any other failure is a denial.
    pub fn unreachable(failure: &Outcome) -> Self {
        use OutcomeClass::{
            DeniedPolicy, DeniedRobots, FailedConnect, FailedDns, FailedProtocol, FailedTimeout,
            FailedTls,
        };
        let class = match failure.class {
            class @ (FailedConnect | FailedTimeout | FailedDns | FailedTls | FailedProtocol
            | DeniedPolicy) => class,
            _ => DeniedRobots,
        };
        let why = if failure.reason.is_empty() {
            failure.class.as_str()
        } else {
            &failure.reason
        };
        Self::Unreachable {
            outcome: Outcome::because(class, format!("robots.txt: {why}")),
            wait: None,
        }
    }
}

/// What the heart wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give this order to the spider.
    Send(Order),
    /// Find the addresses of this host and answer with `resolved`. A host that is an address itself is
    /// asked for too, because whoever resolves also knows which addresses are forbidden.
    Resolve {
        /// The host as it stands in URLs; an IPv6 address has its brackets.
        host: Arc<str>,
    },
    /// Stop carrying this order out and say so with `given_up`; its URL goes back to the doc index. When it is over
    /// already, nothing is to be done. Only with `can_give_up`.
    GiveUp {
        /// The order.
        order: TransId,
    },
    /// Pass this on to the doc index.
    Tell(Notice),
}

/// What the doc index must hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// This URL will not be asked for.
    Refuse {
        /// The URL.
        candidate: Candidate,
        /// Class and reason.
        outcome: Outcome,
        /// When it is retried: its robots.txt was unavailable, and is requested again then.
        again: Option<Timestamp>,
    },
    /// These URLs go back to the doc index unasked.
    Return {
        /// The URLs.
        candidates: Vec<Candidate>,
        /// Their host asked for patience until then, or its robots.txt rests so long, or it is slow and others need its
        /// queue; none when the URL server is being drained, or has no memory left for them, or their host is blocked.
        until: Option<Timestamp>,
    },
    /// A queue is empty and nothing left over can fill it. Answer with `candidates`, with an empty list
    /// when there are none; until then nothing more is asked for.
    NeedCandidates {
        /// How many would be welcome.
        want: usize,
        /// Hashes of the hosts whose queues have enough.
        reject: Vec<u64>,
    },
    /// A robots.txt asks for a longer gap than is kept: its Crawl-delay was capped.
    DelayCapped {
        /// Scheme and authority of the robots.txt.
        origin: String,
        /// What it asks for.
        asked: Duration,
        /// What is kept.
        kept: Duration,
    },
    /// A robots.txt names these sitemaps, as written.
    Sitemaps {
        /// Scheme and authority of the robots.txt.
        origin: String,
        /// The values of its Sitemap lines.
        urls: Vec<Box<str>>,
    },
    /// Is a robots.txt kept for this origin? Answer with `known_robots`; its URLs wait for that.
    RecallRobots {
        /// Scheme and authority.
        origin: String,
    },
    /// Keep this answer, so that nobody need be asked again while it holds.
    StoreRobots {
        /// Scheme and authority.
        origin: String,
        /// The answer.
        record: RobotsRecord,
    },
}

/// What keeps the URL server from handing out more right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bottleneck {
    /// Hosts are there, and each waits for its time, its window, its address's turn or its robots.txt.
    Politeness,
    /// As many orders are out as are allowed at once.
    Sockets,
    /// Hosts wait for their addresses.
    Resolver,
    /// Nothing is queued: the doc index has nothing to give, or not yet.
    #[default]
    Candidates,
}

/// A count of everything, for the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Hosts with a queue.
    pub hosts: usize,
    /// Of these, waiting for their next time.
    pub waiting_for_time: usize,
    /// Of these, waiting for the turn of their address.
    pub waiting_for_ip: usize,
    /// Of these, waiting for nothing but a robots.txt, or for their turn to be told what it says.
    pub waiting_for_robots: usize,
    /// Of these, waiting for their addresses.
    pub resolving: usize,
    /// Of these, waiting for an answer before the next request may go out.
    pub busy: usize,
    /// Of these, ready to be asked when an order may go out.
    pub ready: usize,
    /// Of those that are ready, or whose address is, the slow ones: they leave places to others.
    pub slow: usize,
    /// Orders with the spider.
    pub orders: usize,
    /// URLs in queues.
    pub queued: usize,
    /// URLs left over.
    pub leftover: usize,
    /// URLs that were left over and went back to the doc index for want of memory, since the start.
    pub spilled: u64,
    /// Addresses that are being asked, or were less than one delay ago.
    pub addresses: usize,
    /// An operator has paused the crawl.
    pub paused: bool,
    /// When the heart next has something to do by itself.
    pub next_wake: Option<Timestamp>,
    /// What keeps more from going out.
    pub bottleneck: Bottleneck,
}

/// Where a URL is among the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// With the spider.
    Out {
        /// The order.
        order: TransId,
        /// The address it is asked from.
        ip: IpAddr,
        /// Since when.
        since: Timestamp,
    },
    /// It goes out next.
    Next,
    /// In the queue of its host.
    Queue {
        /// URLs before it.
        ahead: usize,
    },
    /// Beside the queue, until the robots.txt of its origin is there.
    Parked {
        /// URLs before it.
        ahead: usize,
    },
    /// In the leftover queue.
    Leftover {
        /// URLs of its host before it.
        ahead: usize,
    },
}

/// What the next request of a URL's host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A free queue.
    Queue,
    /// The host's addresses.
    Resolver,
    /// The gap after the last request.
    Gap {
        /// Its end.
        until: Timestamp,
    },
    /// The patience that the host has asked for.
    Hold {
        /// Its end.
        until: Timestamp,
    },
    /// An answer to what is out.
    Answer,
    /// The turn of an address that others use too.
    Address {
        /// The address.
        ip: IpAddr,
        /// When it may be asked again; none while an answer is awaited.
        until: Option<Timestamp>,
        /// Hosts in its line.
        line: usize,
    },
    /// The robots.txt of its origin.
    Robots {
        /// When it is requested again, after a failure.
        until: Option<Timestamp>,
    },
    /// Nothing but that fewer orders are out.
    Turn,
}

/// Where an origin stands with its robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsStanding {
    /// It is not known here.
    Unknown,
    /// It is being asked for.
    Asked,
    /// An attempt failed.
    Resting {
        /// When the next one comes.
        until: Timestamp,
    },
    /// It is known.
    Known {
        /// How long.
        expires: Timestamp,
    },
    /// Every attempt failed, and everything is denied.
    Unreachable {
        /// Until then.
        until: Timestamp,
    },
}

/// What the URL server knows of a URL and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The slot of its host.
    pub slot: Option<u32>,
    /// Where it is; none when it is not here.
    pub spot: Option<Spot>,
    /// What it waits for; none when it is not here, or out.
    pub wait: Option<Wait>,
    /// The gap that is kept between two requests to its host.
    pub delay: Duration,
    /// Its robots.txt.
    pub robots: RobotsStanding,
    /// An operator has blocked its host.
    pub blocked: bool,
    /// An operator has paused the crawl.
    pub paused: bool,
}
