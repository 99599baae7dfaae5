//! `orbweaver demo`: a whole crawl without a network.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};

use super::crawl::Progress;
use crate::config::Config;
use crate::crawl_dir::CrawlDir;
use crate::exit::{Ending, Fatal};
use crate::pipeline::{self, Hands};
use crate::settings::Settings;
use crate::sources::Sources;

/// Crawl a simulated web on this machine, offline, and show what came of it
///
/// Serves forty small sites on loopback, crawls all of them with robots.txt, politeness and archive as for
/// real sites, and ends with what the servers counted and what the crawler recorded. Takes about half a
/// minute.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory of the crawl; an earlier demo there is replaced
    #[arg(short, long, value_name = "DIR", default_value = "crawl/demo")]
    output: PathBuf,

    /// How progress is shown
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Progress::Auto)]
    progress: Progress,
}

/// Requests per second to a host: fast enough for a demo, slow enough to be seen.
const RATE: f64 = 4.0;

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let sim = SimWeb::start(SimConfig {
            hosts: 40,
            pages: 60,
            latency_ms: 10,
            jitter_ms: 30,
            ..SimConfig::default()
        })
        .map_err(|error| Fatal::with(Ending::Failed, error.to_string()))?;
        self.replace_earlier()?;
        let seeds = sim.seeds();
        let mut out = std::io::stdout();
        writeln!(
            out,
            "a simulated web: 40 hosts with {} pages on port {} of 127.0.0.0/8",
            sim.expected_pages().count(),
            sim.http_port()
        )?;
        writeln!(
            out,
            "the same by hand: orbweaver crawl {} --scope any --allow-net 127.0.0.0/8 --rate {RATE} -o DIR\n",
            seeds.join(" ")
        )?;
        let mut config = Config {
            seeds,
            contact: Some("https://example.org/bot".into()),
            ..Config::default()
        };
        config.scope.kind = Some("any".into());
        config.politeness.rate = Some(RATE);
        config.fetch.allow_net = Some(vec!["127.0.0.0/8".into()]);
        let dir = CrawlDir::create(&self.output)?;
        dir.store_config(&config)?;
        let ending = pipeline::run(
            &dir,
            Settings::new(&config)?,
            Sources::default(),
            Hands::Own,
            self.progress.form(),
        )?;
        let stats = sim.stats();
        let limits = VisitLimits {
            per_host: Some(1),
            per_ip: Some(1),
            ..VisitLimits::default()
        };
        let faults = stats.faults(&limits);
        writeln!(
            out,
            "\nas the servers counted: {} requests, {} distinct pages, {} fetched twice, {} before robots.txt, {} against it",
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

    /// A demo starts afresh; anything that is no crawl of ours is left alone.
    fn replace_earlier(&self) -> Result<()> {
        if self.output.exists()
            && std::fs::read_dir(&self.output).is_ok_and(|mut dir| dir.next().is_some())
        {
            CrawlDir::open(&self.output)?;
            std::fs::remove_dir_all(&self.output).map_err(|error| {
                Fatal::with(
                    Ending::Directory,
                    format!("cannot replace {}: {error}", self.output.display()),
                )
            })?;
        }
        Ok(())
    }
}
