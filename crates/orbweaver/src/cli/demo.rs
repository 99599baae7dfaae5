//! `orbweaver demo`: a whole crawl without a network.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};

use orbweaver_ring::Crawl;

use super::crawl::ShowArgs;
use crate::exit::{Ending, Fatal};
use crate::run::run;

/// Crawl a simulated web on this machine, offline, and show the result
///
/// Serves forty small sites on loopback and crawls them like real ones, with robots.txt, rate limits and an
/// archive. At the end it shows what the servers counted and what the crawler recorded. Takes about half a
/// minute.
#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// The crawl directory; an earlier demo there is replaced, anything else is left alone
    #[arg(short, long, value_name = "DIR", default_value = "demo")]
    output: PathBuf,

    #[command(flatten)]
    show: ShowArgs,
}

/// Requests per second to a host: fast enough for a demo, slow enough to be seen.
const RATE: f64 = 4.0;

impl DemoArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let sim = SimWeb::start(SimConfig {
            hosts: 40,
            pages: 60,
            latency_ms: 10,
            jitter_ms: 30,
            ..SimConfig::default()
        })
        .map_err(|error| Fatal::with(Ending::Failed, error.to_string()))?;
        let seeds = sim.seeds();
        let mut out = std::io::stdout();
        writeln!(
            out,
            "simulated web: 40 hosts with {} pages on port {} of 127.0.0.0/8",
            sim.expected_pages().count(),
            sim.http_port()
        )?;
        writeln!(
            out,
            "to crawl it yourself while this runs: orbweaver crawl {} --scope any --allow-net 127.0.0.0/8 --rate {RATE} -o by-hand\n",
            seeds.join(" ")
        )?;
        let crawl = Crawl::builder(self.output)
            .seeds(seeds)
            .contact("https://example.org/bot")
            .rate(RATE)
            .configure(|config| {
                config.scope.kind = Some("any".into());
                config.fetch.allow_net = Some(vec!["127.0.0.0/8".into()]);
            })
            .replaceable();
        let ending = run(crawl, self.show.show(), false)?;
        let stats = sim.stats();
        let limits = VisitLimits {
            per_host: Some(1),
            per_ip: Some(1),
            ..VisitLimits::default()
        };
        let faults = stats.faults(&limits);
        writeln!(
            out,
            "\ncounted by the servers: {} requests, {} distinct pages, {} duplicates, {} before robots.txt, {} robots.txt violations",
            stats.requests,
            stats.fetched,
            stats.duplicates.count,
            stats.before_robots.count,
            stats.robots_violations.count,
        )?;
        for fault in faults.iter().filter(|_| ending == Ending::Done) {
            writeln!(out, "  {fault}")?;
        }
        Ok(ending)
    }
}
