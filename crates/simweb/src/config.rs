//! What a simulated web looks like: one struct, every default, and the check that it can be built.
//!
//! Nothing here knows how a page or a host is made from these numbers; that is `layout`.

use serde::{Deserialize, Serialize};

use crate::SimError;
use crate::shape::Shape;
use crate::trap::Trap;

/// No web has more hosts: their names are held in memory, about a hundred bytes each.
const MAX_HOSTS: u32 = 1_000_000;

/// No web has more pages: each costs eight bytes of counters.
const MAX_PAGES: u64 = 200_000_000;

/// How the pages are spread over the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Every host has the same number of pages.
    #[default]
    Equal,
    /// Host n has a share of the pages in proportion to 1/(n+1), so that host 0 is the largest.
    Zipf,
}

/// A simulated web. Two webs with equal settings (and the same port) are equal byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Everything that looks random follows from this number.
    pub seed: u64,
    /// Number of hosts, at least one.
    pub hosts: u32,
    /// Pages per host; their mean when `sizes` is Zipf.
    pub pages: u32,
    /// How the pages are spread over the hosts.
    pub sizes: Sizes,
    /// Zero makes every host an address of its own (`http://127.10.0.7:PORT/`); another number gives
    /// the hosts names under `sim.test` and, from the 500th on, `sim1.test` and so forth, some of them
    /// IDN, spread over that many addresses.
    pub ips: u32,
    /// Mean size of a page in bytes, without content encoding; a page differs by up to a quarter.
    pub page_bytes: usize,
    /// Links of a page; more only where the tree that makes every page reachable needs more.
    pub links_per_page: usize,
    /// Of a thousand links that are not part of the tree, how many lead to another host.
    pub cross_host: u32,
    /// Of a thousand pages, how many are linked through a redirect or link to one.
    pub redirects: u32,
    /// Of a thousand pages, how many link to a page that is not there.
    pub broken: u32,
    /// Of a thousand pages, how many link to a page that robots.txt disallows.
    pub disallowed: u32,
    /// Crawl-delay in every robots.txt, in seconds; none leaves the line out.
    pub crawl_delay: Option<f64>,
    /// Whether every robots.txt names a sitemap that lists all allowed pages of its host.
    pub sitemaps: bool,
    /// Whether a page is sent with gzip content encoding to a client that accepts it.
    pub gzip: bool,
    /// Milliseconds between a request and its answer; zero answers at once.
    pub latency_ms: u64,
    /// Additional random latency, up to this many milliseconds, the same for the same URL each time.
    pub jitter_ms: u64,
    /// How many hosts answer slowly.
    pub slow_hosts: u32,
    /// Milliseconds that a slow host takes longer than the others.
    pub slow_ms: u64,
    /// How many hosts fail at first; by turns with 500, 503 and Retry-After, or a connection reset.
    /// Their robots.txt is always answered.
    pub failing_hosts: u32,
    /// How many requests a failing host fails before it recovers; zero means never, and then its
    /// pages are not expected.
    pub recover_after: u32,
    /// Whether host 0 also links to six hosts without end, one of each kind that `trap` knows, which come on
    /// top of `hosts` and have twenty honest pages each.
    pub traps: bool,
    /// Honest sites of unusual shapes, which come on top of `hosts`; the root of host 0 links to them.
    pub shapes: Vec<Shape>,
    /// Port of every host; zero takes a free one.
    pub port: u16,
    /// Port on 127.0.0.1 of the control endpoint; zero takes a free one.
    pub control_port: u16,
    /// Port on 127.0.0.1 of the DNS server, which runs when `ips` is not zero; zero takes a free one.
    pub dns_port: u16,
    /// Time to live of a DNS answer in seconds.
    pub dns_ttl: u32,
    /// Threads that serve the pages, at least one.
    pub threads: usize,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            hosts: 10,
            pages: 100,
            sizes: Sizes::Equal,
            ips: 0,
            page_bytes: 16 << 10,
            links_per_page: 30,
            cross_host: 100,
            redirects: 10,
            broken: 10,
            disallowed: 20,
            crawl_delay: None,
            sitemaps: true,
            gzip: true,
            latency_ms: 0,
            jitter_ms: 0,
            slow_hosts: 0,
            slow_ms: 1000,
            failing_hosts: 0,
            recover_after: 3,
            traps: false,
            shapes: Vec::new(),
            port: 0,
            control_port: 0,
            dns_port: 0,
            dns_ttl: 60,
            threads: 1,
        }
    }
}

impl SimConfig {
    /// Every mistake at once, so that they can be mended at once.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        let total = u64::from(self.hosts) * u64::from(self.pages);
        let mistakes: Vec<&str> = [
            (self.hosts == 0, "hosts must not be 0"),
            (self.hosts > MAX_HOSTS, "hosts must not pass 1,000,000"),
            (self.pages == 0, "pages must not be 0"),
            (total > MAX_PAGES, "hosts × pages must not pass 200,000,000"),
            (self.ips > self.hosts, "ips must not pass hosts"),
            (
                self.page_bytes > 4 << 20,
                "page_bytes must not pass 4 MiB (4194304)",
            ),
            (
                self.links_per_page > 10_000,
                "links_per_page must not pass 10,000",
            ),
            (
                [
                    self.cross_host,
                    self.redirects,
                    self.broken,
                    self.disallowed,
                ]
                .iter()
                .any(|share| *share > 1000),
                "cross_host, redirects, broken and disallowed are shares of 1000",
            ),
            (
                self.slow_hosts.saturating_add(self.failing_hosts) >= self.hosts.max(1),
                "at least one host must be neither slow nor failing",
            ),
            (
                self.crawl_delay
                    .is_some_and(|delay| !(0.0..=86_400.0).contains(&delay)),
                "crawl_delay is a number of seconds from 0 to 86400",
            ),
            (self.threads == 0, "threads must not be 0"),
        ]
        .into_iter()
        .filter_map(|(wrong, why)| wrong.then_some(why))
        .collect();
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(SimError::Config(mistakes.join("; ")))
        }
    }
}

impl SimConfig {
    /// Hosts with those of unusual shapes.
    pub(crate) fn honest_hosts(&self) -> u32 {
        let of_shapes: u32 = self.shapes.iter().map(|shape| shape.hosts()).sum();
        self.hosts + of_shapes
    }

    /// Hosts that are traps.
    pub(crate) fn trap_hosts(&self) -> u32 {
        let traps = if self.traps { Trap::ALL.len() } else { 0 };
        traps as u32
    }

    /// The number of the first page of each host among all pages, and at the end the number of pages. `more` are the
    /// pages of the hosts of unusual shapes.
    pub(crate) fn first_pages(&self, more: impl Iterator<Item = u32>) -> Vec<u32> {
        let total = f64::from(self.hosts) * f64::from(self.pages);
        let weights: f64 = (1..=self.hosts).map(|rank| 1.0 / f64::from(rank)).sum();
        let usual = (1..=self.hosts).map(|rank| match self.sizes {
            Sizes::Equal => self.pages,
            Sizes::Zipf => (total / weights / f64::from(rank)).max(1.0) as u32,
        });
        let mut sum = 0_u32;
        let mut first = vec![0];
        for pages in usual.chain(more) {
            sum = sum.saturating_add(pages);
            first.push(sum);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_named() {
        assert!(SimConfig::default().check().is_ok());
        let config = SimConfig {
            pages: 0,
            threads: 0,
            broken: 1001,
            ..SimConfig::default()
        };
        let said = config.check().unwrap_err().to_string();
        for word in ["pages", "threads", "shares of 1000"] {
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(serde_json::from_str::<SimConfig>(r#"{"hosts": 3}"#).is_ok());
        assert!(serde_json::from_str::<SimConfig>(r#"{"host": 3}"#).is_err());
    }
}
