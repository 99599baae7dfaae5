//! The ring as a program sees it that embeds it: whole crawls of a simulated web on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "everything here is a test, helpers included"
)]

mod crawl;
mod examples;
mod pages;

use orbweaver_ring::{Crawl, CrawlBuilder};
use orbweaver_simweb::{SimConfig, SimWeb};

/// A small web and the crawl of all of it, as fast as it goes.
fn small(hosts: u32, pages: u32) -> (SimWeb, tempfile::TempDir) {
    let sim = SimWeb::start(SimConfig {
        hosts,
        pages,
        ..SimConfig::default()
    })
    .unwrap();
    (sim, tempfile::tempdir().unwrap())
}

/// The crawl of a web.
fn crawl_of(sim: &SimWeb, dir: &tempfile::TempDir) -> CrawlBuilder {
    Crawl::builder(dir.path().join("crawl"))
        .seeds(sim.seeds())
        .allow_net("127.0.0.0/8")
        .rate(0.0)
        .configure(|config| {
            config.scope.kind = Some("any".into());
            config.scope.sitemaps = Some(false);
        })
}
