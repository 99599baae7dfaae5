//! `orbweaver-bench`: what a page costs, in CPU time of the crawler that fetches it.
//!
//! Everything measured is a process of its own, and so is the simulated web that it visits; the web's own
//! count is the gate, and a run that does not pass it has no figures. `docs/performance.md` says how to
//! read the result. Nothing here knows the inside of Orbweaver: it is started as a user would start it.

mod client;
mod contest;
mod measure;
mod naive;
mod raw;
mod robots;
mod runner;
mod sim;
mod standing;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// What a page costs: Orbweaver beside a bare client, a naive loop and other crawlers
#[derive(Parser, Debug)]
#[command(name = "orbweaver-bench", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Crawl simulated webs with everything there is to compare
    Crawl(CrawlArgs),
    /// Fetch every page of a list, without reading it: what a client costs
    #[command(hide = true)]
    Raw {
        /// The control address of the simulated web, which has the list
        control: SocketAddr,
    },
    /// Crawl with hyper, lol_html, url and a hash set: what a naive crawler costs
    #[command(hide = true)]
    Loop {
        /// Where to start
        #[arg(required = true)]
        seeds: Vec<url::Url>,
    },
}

/// How crawlers are compared.
#[derive(clap::Args, Debug)]
struct CrawlArgs {
    /// The web to crawl: many is 200 hosts × 100 pages, one is 1 host × 20,000; both when not given
    #[arg(long, value_enum)]
    shape: Option<sim::Shape>,

    /// How often each is run, by turns; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Run only these (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Run other crawlers as well, as far as they are installed; their gate is shown, not enforced
    #[arg(long)]
    peers: bool,

    /// The Orbweaver to measure and to serve the web [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    orbweaver: Option<PathBuf>,

    /// An earlier Orbweaver to run by turns with this one, as `before`
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,

    /// Port of the web's hosts [default: any that is free; with others than ours 80, because wget2 leaves
    /// the port out of its Host header]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Where the crawlers may write; what they wrote is removed [default: the system's place]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    match Cli::parse().verb {
        Verb::Crawl(args) => runner::run(&args),
        Verb::Raw { control } => client::block_on(raw::fetch_all(control)),
        Verb::Loop { seeds } => client::block_on(naive::crawl(seeds)),
    }
}
