//! What the visitors did, as numbers to read, to send and to judge.
//!
//! How they are counted is `count`'s business.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How often something happened that should not, and a few cases of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offence {
    /// How often.
    pub count: u64,
    /// The first few cases, as URLs with what is worth knowing about them.
    pub examples: Vec<String>,
}

/// The most requests that were in flight at once, and to whom. A request is in flight from its
/// arrival until its answer is handed to the kernel, so a web without latency sees little of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busiest {
    /// Requests at once.
    pub requests: u32,
    /// The host or address; empty when nobody came.
    pub at: String,
}

/// The shortest time between the arrivals of two requests, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortestGap {
    /// Microseconds; none when nobody was asked twice.
    pub micros: Option<u64>,
    /// The host or address.
    pub at: String,
}

/// What was asked of a trap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrapVisits {
    /// Which one: `calendar`, `session`, `growing`, `facets`, `soft404` or `pagination`.
    pub trap: String,
    /// Pages of the endless kind, its root among them.
    pub lures: u64,
    /// Different honest pages.
    pub good: u64,
    /// Honest pages there are.
    pub good_expected: u64,
}

/// Everything that was counted since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests that could be read, whatever for.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Requests for a robots.txt.
    pub robots_requests: u64,
    /// Requests for a sitemap.
    pub sitemap_requests: u64,
    /// Requests for a style sheet or a picture.
    pub asset_requests: u64,
    /// Questions to the DNS server.
    pub dns_queries: u64,
    /// Pages that can be had.
    pub expected: u64,
    /// Different expected pages that were delivered whole, or confirmed with 304.
    pub fetched: u64,
    /// Pages delivered whole with 200, each time counted. An answer whose connection is reset before
    /// the client has read it all is not delivered.
    pub delivered: u64,
    /// Answers 304.
    pub not_modified: u64,
    /// Answers with a redirect.
    pub redirects: u64,
    /// Answers 404.
    pub not_found: u64,
    /// Requests that a failing host failed.
    pub failures: u64,
    /// Answers that the client did not take whole.
    pub aborted: u64,
    /// Bytes of all answers, heads included.
    pub bytes_sent: u64,
    /// Expected pages that were neither delivered nor confirmed.
    pub missed: Offence,
    /// Deliveries of a page beyond its first.
    pub duplicates: Offence,
    /// Requests to a host before its robots.txt was answered.
    pub before_robots: Offence,
    /// Requests that robots.txt forbids.
    pub robots_violations: Offence,
    /// Requests for something that nothing links to.
    pub unlinked: Offence,
    /// Requests for a host that does not live at the address that was asked.
    pub misdirected: Offence,
    /// Requests that could not be read.
    pub malformed: Offence,
    /// What was asked of each trap.
    pub traps: Vec<TrapVisits>,
    /// Most requests in flight to one host.
    pub max_per_host: Busiest,
    /// Most requests in flight to one address.
    pub max_per_ip: Busiest,
    /// Shortest time between two requests to one host.
    pub min_host_gap: ShortestGap,
    /// Shortest time between two requests to one address.
    pub min_ip_gap: ShortestGap,
}

/// How far a visitor may go; none leaves a thing unjudged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitLimits {
    /// Requests in flight to one host.
    pub per_host: Option<u32>,
    /// Requests in flight to one address.
    pub per_ip: Option<u32>,
    /// Time between two requests to one host, less what the clocks of two programs may differ by.
    pub host_gap: Option<Duration>,
    /// Time between two requests to one address, less the same.
    pub ip_gap: Option<Duration>,
}

impl Stats {
    /// A sentence for each thing that is wrong; nothing when the visit was complete and polite.
    pub fn faults(&self, limits: &VisitLimits) -> Vec<String> {
        let offences = [
            ("expected pages were not fetched", &self.missed),
            ("pages were delivered more than once", &self.duplicates),
            (
                "requests came before robots.txt was answered",
                &self.before_robots,
            ),
            (
                "requests were forbidden by robots.txt",
                &self.robots_violations,
            ),
            (
                "requests were for paths that no page links to",
                &self.unlinked,
            ),
            ("requests went to the wrong address", &self.misdirected),
            ("requests could not be parsed", &self.malformed),
        ];
        let mut faults: Vec<String> = offences
            .into_iter()
            .filter(|(_, offence)| offence.count > 0)
            .map(|(what, offence)| {
                format!("{} {what}: {}", offence.count, offence.examples.join(", "))
            })
            .collect();
        for (kind, seen, limit) in [
            ("host", &self.max_per_host, limits.per_host),
            ("address", &self.max_per_ip, limits.per_ip),
        ] {
            if limit.is_some_and(|limit| seen.requests > limit) {
                faults.push(format!(
                    "{} concurrent requests to one {kind}: {}",
                    seen.requests, seen.at
                ));
            }
        }
        for (kind, seen, limit) in [
            ("host", &self.min_host_gap, limits.host_gap),
            ("address", &self.min_ip_gap, limits.ip_gap),
        ] {
            if let (Some(micros), Some(limit)) = (seen.micros, limit)
                && Duration::from_micros(micros) < limit
            {
                faults.push(format!(
                    "two requests to one {kind} within {micros} µs: {}",
                    seen.at
                ));
            }
        }
        faults
    }
}
