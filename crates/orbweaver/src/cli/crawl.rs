//! `orbweaver crawl`: fetch sites into a crawl directory.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;

use orbweaver_config::{Config, Sources, units};
use orbweaver_ring::Crawl;

use crate::exit::{Ending, Fatal};
use crate::progress::{self, Show};
use crate::run::run;

/// Crawl sites into a directory; run again on the same directory to resume
///
/// Starts from the given URLs, follows links within the scope, obeys robots.txt, limits the request rate per
/// host, and stores every response in WARC files with a CDXJ index. The same command resumes a crawl that was stopped or
/// killed; `orbweaver crawl -o DIR` is enough, because the directory keeps the settings. A resumed run lists the kept
/// settings that limit the crawl, weaken its checks or make it endless.
// A negative number is a wrong number and not an unknown flag.
#[derive(clap::Args, Debug)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "\
Examples:
  orbweaver crawl https://example.org -o example/
  orbweaver crawl --seeds sites.txt --scope domain --depth 3 --contact mailto:me@example.org -o sites/
  orbweaver crawl -o example/                     resume
  orbweaver status example/                       progress so far")]
pub(crate) struct CrawlArgs {
    /// Where to start; `example.org/page` means https
    #[arg(value_name = "URL")]
    urls: Vec<String>,

    /// A file with one URL per line; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,

    /// The crawl directory
    #[arg(short, long, value_name = "DIR", default_value = "crawl")]
    output: PathBuf,

    /// A TOML file with settings; flags override it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    what: Scope,

    #[command(flatten)]
    stop: Stop,

    #[command(flatten)]
    again: Again,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    show: ShowArgs,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShowArgs {
    /// How to show progress
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ProgressForm::Auto)]
    progress: ProgressForm,

    /// Show the request log too: one line per request
    #[arg(short, long)]
    verbose: bool,
}

impl ShowArgs {
    pub(crate) fn show(&self) -> Show {
        Show {
            form: self.progress.form(),
            verbose: self.verbose,
        }
    }
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Scope")]
struct Scope {
    /// host: the seeds' hosts; domain: their registered domains; prefix: below their directories; any
    #[arg(long, value_name = "KIND", value_parser = ["host", "domain", "prefix", "any"])]
    scope: Option<String>,

    /// Only URLs that match this regular expression (repeatable)
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,

    /// No URLs that match this regular expression (repeatable)
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,

    /// Follow at most this many links from a seed; 0 fetches the seeds only
    #[arg(long, value_name = "N")]
    depth: Option<u16>,

    /// Fetch images, styles and scripts too
    #[arg(long)]
    requisites: bool,

    /// Ignore the sitemaps that robots.txt files name
    #[arg(long)]
    no_sitemaps: bool,

    /// Do not detect traps: follow every link, even where a site looks endless
    #[arg(long)]
    no_traps: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Limits of the crawl")]
struct Stop {
    /// Stop when this many pages have been fetched, in all runs together; 0 means no limit
    #[arg(long, value_name = "N")]
    pages: Option<u64>,

    /// At most this many pages of one host; 0 means no limit
    #[arg(long, value_name = "N")]
    host_pages: Option<u32>,

    /// Stop this run after this time, such as 90s, 5m or 2h; 0 means no limit
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Revisiting pages")]
struct Again {
    /// Run until stopped, and revisit each page when it is likely to have changed
    #[arg(long)]
    recrawl: bool,

    /// Do not revisit pages, although an earlier run of this crawl did
    #[arg(long, conflicts_with = "recrawl")]
    no_recrawl: bool,

    /// The shortest time between two visits to a page [default: 1h]
    #[arg(long, value_name = "TIME")]
    recrawl_min: Option<String>,

    /// The longest time between two visits to a page [default: 720h]
    #[arg(long, value_name = "TIME")]
    recrawl_max: Option<String>,

    /// On a revisit send HEAD first, and GET only when that shows a change
    #[arg(long)]
    head_first: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Requests")]
struct How {
    /// Requests per second to one host, and to one IP address; 0 means no limit [default: 1]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,

    /// Concurrent requests to one host [default: 1]
    #[arg(long, value_name = "N")]
    per_host: Option<u16>,

    /// Concurrent requests to one IP address [default: same as --per-host]
    #[arg(long, value_name = "N")]
    per_ip: Option<u16>,

    /// Concurrent requests in total [default: 512]
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,

    /// Timeout of one fetch, such as 90s or 2m; a configuration file can set shorter ones for the response head (header_timeout_s) and for silence within the body (idle_timeout_s) [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,

    /// The memory budget of the process [default: 512M]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// The largest document that is stored completely; longer ones are truncated [default: 1G]
    #[arg(long, value_name = "SIZE")]
    max_size: Option<String>,

    /// Allow requests to this private network (repeatable)
    #[arg(long, value_name = "CIDR")]
    allow_net: Vec<String>,

    /// The whole User-Agent header
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,

    /// A page or address where site owners can reach you; goes into the User-Agent
    #[arg(long, value_name = "URL")]
    contact: Option<String>,

    /// Accept any TLS certificate; kept for runs that resume this crawl, which then say so
    #[arg(long)]
    insecure: bool,

    /// Verify TLS certificates, although an earlier run of this crawl did not
    #[arg(long, conflicts_with = "insecure")]
    no_insecure: bool,

    /// Use this DNS server instead of the system's
    #[arg(long, value_name = "ADDR:PORT")]
    resolver: Option<String>,

    /// Also trust the certificate authorities, or the server certificates, in this PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProgressForm {
    /// Live on a terminal, plain otherwise.
    Auto,
    /// A line every few seconds.
    Plain,
    /// A JSON object per line.
    Json,
    /// Nothing.
    Off,
}

impl ProgressForm {
    fn form(self) -> progress::Form {
        match self {
            Self::Auto if std::io::stderr().is_terminal() => progress::Form::Live,
            Self::Auto | Self::Plain => progress::Form::Plain,
            Self::Json => progress::Form::Json,
            Self::Off => progress::Form::Off,
        }
    }
}

impl CrawlArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let sources = Sources {
            file: self.config.clone(),
            flags: self.flags()?,
        };
        let crawl = Crawl::builder(self.output).sources(sources);
        run(crawl, self.show.show(), false)
    }

    fn flags(&self) -> Result<Config> {
        let mut config = Config {
            seeds: self.urls.clone(),
            ..Config::default()
        };
        if let Some(path) = &self.seeds {
            config.seeds.extend(read_seeds(path)?);
        }
        let list = |values: &[String]| (!values.is_empty()).then(|| values.to_vec());
        config.scope.kind = self.what.scope.clone();
        config.scope.include = list(&self.what.include);
        config.scope.exclude = list(&self.what.exclude);
        config.scope.depth = self.what.depth;
        config.scope.requisites = self.what.requisites.then_some(true);
        config.scope.sitemaps = self.what.no_sitemaps.then_some(false);
        config.traps.enabled = self.what.no_traps.then_some(false);
        config.budget.pages = self.stop.pages;
        config.budget.host_pages = self.stop.host_pages;
        config.budget.time = self.stop.time.clone();
        config.recrawl.on = either(self.again.recrawl, self.again.no_recrawl);
        config.recrawl.min = self.again.recrawl_min.clone();
        config.recrawl.max = self.again.recrawl_max.clone();
        config.recrawl.head_first = self.again.head_first.then_some(true);
        config.politeness.rate = self.how.rate;
        config.politeness.per_host = self.how.per_host;
        config.politeness.per_ip = self.how.per_ip;
        config.fetch.concurrency = self.how.concurrency;
        config.fetch.allow_net = list(&self.how.allow_net);
        config.fetch.insecure = either(self.how.insecure, self.how.no_insecure);
        config.fetch.resolver = self.how.resolver.clone();
        config.fetch.ca = self.how.ca.clone();
        config.limits.total_timeout_s = match self.how.timeout.as_deref().map(units::duration) {
            Some(Ok(time)) => Some(time.as_secs_f64()),
            Some(Err(error)) => return Err(Fatal::input(error)),
            None => None,
        };
        config.memory = self.how.memory.clone();
        if let Some(text) = &self.how.max_size {
            let size = units::size(text).map_err(Fatal::input)?;
            config.limits.max_body_bytes = Some(usize::try_from(size).unwrap_or(usize::MAX));
        }
        config.user_agent = self.how.user_agent.clone();
        config.contact = self.how.contact.clone();
        Ok(config)
    }
}

/// A setting that one flag turns on and another off.
fn either(on: bool, off: bool) -> Option<bool> {
    match (on, off) {
        (false, false) => None,
        (on, _) => Some(on),
    }
}

/// The seed lines of a file, checked one by one so that a mistake is shown with its line.
fn read_seeds(path: &std::path::Path) -> Result<Vec<String>> {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
            .context("cannot read standard input")?;
        bytes
    } else {
        std::fs::read(path)
            .map_err(|error| Fatal::input(format!("cannot read {}: {error}", path.display())))?
    };
    let text = String::from_utf8_lossy(&bytes);
    let canonicalizer =
        orbweaver_intake::Canonicalizer::new(orbweaver_intake::CanonicalOptions::default());
    orbweaver_intake::parse_seeds(&text, &canonicalizer)
        .map(|seeds| seeds.iter().map(ToString::to_string).collect())
        .map_err(|error| Fatal::input(format!("{}: {error}", path.display())))
}
