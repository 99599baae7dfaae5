//! `orbweaver sim`: the simulated web, for experiments.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use orbweaver_simweb::hostile::HostileWeb;
use orbweaver_simweb::{Shape, SimConfig, SimWeb, Sizes};

use crate::exit::{Ending, Fatal};

/// Serve a simulated web on loopback until stopped
///
/// Every host is an address in 127.0.0.0/8, or, with --ips, a name that the DNS server of the simulation
/// knows. The simulation counts what its visitors do: GET /stats, /seeds or /pages from the control address, or
/// POST /reset. It prints its addresses as one JSON line when it is ready.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  orbweaver sim --hosts 20 --pages 100 --port 8080 &
  orbweaver crawl http://127.10.0.1:8080/ --scope any --allow-net 127.0.0.0/8 --rate 0 -o try/

With --shapes it adds legitimate sites that are easily mistaken for traps or copies; /pages lists every page
that a complete crawl fetches:
  orbweaver sim --hosts 1 --pages 1 --shapes all --no-sitemaps --port 8080 &

With --hostile DIR it serves a web that violates the protocols in many ways. DIR gets seeds.txt and
ca.pem, and visits.jsonl when it is stopped: for each case the misbehaviour, the expected outcome, and
the requests received.
  orbweaver crawl --seeds DIR/seeds.txt --ca DIR/ca.pem --resolver ADDR --scope any \\
    --allow-net 127.90.0.0/16 -o try/")]
pub(crate) struct SimArgs {
    /// A TOML file with every setting of the simulation; flags override it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Serve the misbehaving web instead, and write its files into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "seed", "hosts", "pages", "zipf", "ips", "page_bytes", "latency_ms", "jitter_ms", "shapes", "traps", "no_sitemaps", "port", "control_port"])]
    hostile: Option<PathBuf>,

    /// Seed of the random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Number of hosts
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,

    /// Pages per host
    #[arg(long, value_name = "N")]
    pages: Option<u32>,

    /// Distribute the pages over the hosts by Zipf's law instead of equally
    #[arg(long)]
    zipf: bool,

    /// Give the hosts names that share this many addresses
    #[arg(long, value_name = "N")]
    ips: Option<u32>,

    /// Mean size of a page in bytes
    #[arg(long, value_name = "N")]
    page_bytes: Option<usize>,

    /// Latency of each response, in milliseconds
    #[arg(long, value_name = "MS")]
    latency_ms: Option<u64>,

    /// Additional random latency, up to this many milliseconds
    #[arg(long, value_name = "MS")]
    jitter_ms: Option<u64>,

    /// Add legitimate sites of these unusual shapes, or `all`: fragments, catalogue, gallery, facets, chain, folders, apex, seeds
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    shapes: Vec<String>,

    /// Add six endless sites, each with twenty real pages
    #[arg(long)]
    traps: bool,

    /// Leave out the sitemaps, so that pages are found by links alone
    #[arg(long)]
    no_sitemaps: bool,

    /// Port of every host; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Port of the control address on 127.0.0.1
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,
}

impl SimArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        if let Some(folder) = &self.hostile {
            return hostile(folder);
        }
        let config = self.config()?;
        let sim = SimWeb::start(config).map_err(|error| Fatal::input(error.to_string()))?;
        let ready = serde_json::json!({
            "ready": true,
            "seed_url": sim.seeds().first(),
            "seed_urls": sim.seeds(),
            "pages": sim.expected_pages().count(),
            "http_port": sim.http_port(),
            "control": format!("http://{}", sim.control_addr()),
            "dns": sim.dns_addr().map(|addr| addr.to_string()),
        });
        say(&ready)?;
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
                        "{} is not a valid simulation: {error}",
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
        if !self.shapes.is_empty() {
            config.shapes = shapes(&self.shapes)?;
        }
        config.traps |= self.traps;
        config.sitemaps &= !self.no_sitemaps;
        config.port = self.port.unwrap_or(config.port);
        config.control_port = self.control_port.unwrap_or(config.control_port);
        Ok(config)
    }
}

fn shapes(names: &[String]) -> Result<Vec<Shape>> {
    if names.iter().any(|name| name == "all") {
        return Ok(Shape::ALL.to_vec());
    }
    let all = Shape::ALL.map(Shape::name).join(", ");
    let shape = |name: &String| {
        Shape::named(name).ok_or_else(|| {
            Fatal::input(format!(
                "`{name}` is no shape of a site; say all, or some of {all}"
            ))
        })
    };
    names.iter().map(shape).collect()
}

/// Serves the hostile web until stopped.
fn hostile(folder: &Path) -> Result<Ending> {
    let web = HostileWeb::start().map_err(|error| Fatal::input(error.to_string()))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map_err(|error| Fatal::input(format!("cannot write {}: {error}", path.display())))
    };
    let seeds = web.cases().iter().map(|case| web.url(case) + "\n");
    write("seeds.txt", seeds.collect())?;
    write("ca.pem", web.issuer_pem().to_owned())?;
    say(&serde_json::json!({
        "ready": true,
        "cases": web.cases().len(),
        "allow_net": HostileWeb::NETWORK,
        "resolver": web.dns_addr().to_string(),
        "endless_url": web.endless_url(1, "plain"),
    }))?;
    wait_for_signal()?;
    let mut lines = String::new();
    for case in web.cases() {
        let visits = web.visits(case);
        let line = serde_json::json!({
            "url": web.url(case),
            "kind": case.kind.as_str(),
            "name": case.name,
            "does": case.does,
            "expect": case.expect,
            "requests": visits.requests,
            "max_requests": case.max_requests,
            "bytes": visits.bytes,
            "max_bytes": case.max_bytes,
        });
        lines.push_str(&format!("{line}\n"));
    }
    write("visits.jsonl", lines)?;
    let (_, at_once) = web.endless_now_and_most();
    say(&serde_json::json!({ "trespasses": web.trespasses(), "endless_at_once": at_once }))?;
    Ok(Ending::Done)
}

fn say(line: &serde_json::Value) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
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
