//! `orbweaver sim`: the simulated web, to try things on.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use orbweaver_simweb::{SimConfig, SimWeb, Sizes};

use crate::exit::{Ending, Fatal};

/// Serve a simulated web on loopback until stopped
///
/// Every host is an address in 127.0.0.0/8, or, with --ips, a name that the DNS server of the simulation
/// knows. The simulation counts what its visitors do: ask the control address for /stats, /seeds or
/// /pages, or POST /reset. It prints its addresses as one JSON line when it is ready.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  orbweaver sim --hosts 20 --pages 100 --port 8080 &
  orbweaver crawl http://127.10.0.1:8080/ --scope any --allow-net 127.0.0.0/8 --rate 0 -o try/")]
pub(crate) struct Args {
    /// A TOML file with every setting of the simulation; flags win over it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// What everything random follows from
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Number of hosts
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,

    /// Pages of each host
    #[arg(long, value_name = "N")]
    pages: Option<u32>,

    /// Spread the pages by Zipf's law instead of equally
    #[arg(long)]
    zipf: bool,

    /// Give the hosts names that share this many addresses
    #[arg(long, value_name = "N")]
    ips: Option<u32>,

    /// Mean size of a page in bytes
    #[arg(long, value_name = "N")]
    page_bytes: Option<usize>,

    /// Milliseconds until a page is answered
    #[arg(long, value_name = "MS")]
    latency_ms: Option<u64>,

    /// Up to so many milliseconds more
    #[arg(long, value_name = "MS")]
    jitter_ms: Option<u64>,

    /// Port of every host; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Port of the control address on 127.0.0.1
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let config = self.config()?;
        let sim = SimWeb::start(config).map_err(|error| Fatal::input(error.to_string()))?;
        let ready = serde_json::json!({
            "ready": true,
            "seed_url": sim.seeds().first(),
            "pages": sim.expected_pages().count(),
            "http_port": sim.http_port(),
            "control": format!("http://{}", sim.control_addr()),
            "dns": sim.dns_addr().map(|addr| addr.to_string()),
        });
        let mut out = std::io::stdout();
        writeln!(out, "{ready}")?;
        out.flush()?;
        wait_for_signal()?;
        Ok(Ending::Done)
    }

    fn config(&self) -> Result<SimConfig> {
        let mut config = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Fatal::input(format!("cannot read {}: {error}", path.display()))
                })?;
                toml::from_str(&text).map_err(|error| {
                    Fatal::input(format!(
                        "{} is no valid simulation: {error}",
                        path.display()
                    ))
                })?
            }
            None => SimConfig::default(),
        };
        config.seed = self.seed.unwrap_or(config.seed);
        config.hosts = self.hosts.unwrap_or(config.hosts);
        config.pages = self.pages.unwrap_or(config.pages);
        config.sizes = if self.zipf { Sizes::Zipf } else { config.sizes };
        config.ips = self.ips.unwrap_or(config.ips);
        config.page_bytes = self.page_bytes.unwrap_or(config.page_bytes);
        config.latency_ms = self.latency_ms.unwrap_or(config.latency_ms);
        config.jitter_ms = self.jitter_ms.unwrap_or(config.jitter_ms);
        config.port = self.port.unwrap_or(config.port);
        config.control_port = self.control_port.unwrap_or(config.control_port);
        Ok(config)
    }
}

fn wait_for_signal() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}
