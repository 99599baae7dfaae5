//! What a crawl needs: a configuration, validated once, every mistake reported at once. `Default` of [`Settings`], and of
//! the options in it, is the only place where defaults live.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use orbweaver_intake::{CanonicalOptions, Canonicalizer, ScopeOptions, TrapOptions};
use orbweaver_model::{Budgets, CrawlUrl, Limits, RecrawlBounds};

use crate::config::Config;
use crate::error::Error;
use crate::mistakes::Mistakes;
use crate::options::{LogOptions, RetryOptions};
use crate::parts::{
    address, budgets, half_the_cores, limits, log_options, recrawl, retry_options, scope_options,
    trap_options, user_agent, usual_agent,
};
use crate::rules::{AddressLimits, HostSettings, Usual, rules};

/// A crawl as it is to be run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// URLs to start from.
    pub seeds: Vec<CrawlUrl>,
    /// The whole User-Agent header.
    pub user_agent: String,
    /// The first word of the user agent: the name in robots.txt.
    pub agent: String,
    /// The User-Agent says how its owner can be reached.
    pub has_contact: bool,
    /// The byte budget of the process.
    pub memory: u64,
    /// What belongs to the crawl.
    pub scope: ScopeOptions,
    /// When a family of URLs is taken for endless.
    pub traps: TrapOptions,
    /// When two URLs are the same.
    pub canonical: CanonicalOptions,
    /// rel=nofollow, meta robots and X-Robots-Tag are obeyed.
    pub obey_nofollow: bool,
    /// Sitemaps that robots.txt files name are fetched.
    pub sitemaps: bool,
    /// Pages in all; 0 means no limit.
    pub pages: u64,
    /// What may be taken from a host and from a domain.
    pub budgets: Budgets,
    /// When finished pages are visited again; none when the crawl ends instead.
    pub recrawl: Option<RecrawlBounds>,
    /// Revisits send HEAD first.
    pub head_first: bool,
    /// Running time at most; none means no limit.
    pub time: Option<Duration>,
    /// Requests per second to one host; 0 means no limit.
    pub host_rate: f64,
    /// Requests at once to one host.
    pub per_host: u16,
    /// Requests per second to one IP address; 0 means no limit.
    pub ip_rate: f64,
    /// Requests at once to one IP address.
    pub per_ip: u16,
    /// Hosts that are served at the same time.
    pub queue_count: usize,
    /// URLs held in RAM for one host.
    pub queue_len: usize,
    /// URLs of one batch on one IP address beyond which its hosts are skipped in the next batch.
    pub ip_batch_max: usize,
    /// The gap of a host is at least this many times its response time; 0 means that this does not count.
    pub slow_factor: f64,
    /// The longest gap that slowness and failures of a host make.
    pub slow_max: Duration,
    /// Requests at once in all.
    pub concurrency: usize,
    /// Threads that fetch and read pages.
    pub workers: usize,
    /// Private networks that may be contacted.
    pub allow_net: Vec<IpNet>,
    /// Any TLS certificate is accepted.
    pub insecure: bool,
    /// The DNS server; none means the system's.
    pub resolver: Option<SocketAddr>,
    /// A PEM file with further certificate authorities.
    pub ca: Option<PathBuf>,
    /// When a failed attempt is repeated.
    pub retry: RetryOptions,
    /// Bytes at which a WARC file is closed.
    pub rotate: u64,
    /// How the log of requests is kept.
    pub log: LogOptions,
    /// How much is taken from any server.
    pub limits: Limits,
    /// What holds for single hosts only.
    pub hosts: HostSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let queue_len = 64;
        Self {
            seeds: Vec::new(),
            user_agent: usual_agent(),
            agent: "orbweaver".into(),
            has_contact: false,
            memory: 512 << 20,
            scope: ScopeOptions::default(),
            traps: TrapOptions::default(),
            canonical: CanonicalOptions::default(),
            obey_nofollow: true,
            sitemaps: true,
            pages: 0,
            budgets: Budgets::default(),
            recrawl: None,
            head_first: false,
            time: None,
            host_rate: 1.0,
            per_host: 1,
            ip_rate: 1.0,
            per_ip: 1,
            queue_count: 2048,
            queue_len,
            // Four full queues: more of one machine would only wait for one another.
            ip_batch_max: 4 * queue_len,
            slow_factor: 1.0,
            slow_max: Duration::from_secs(60),
            concurrency: 512,
            workers: half_the_cores(),
            allow_net: Vec::new(),
            insecure: false,
            resolver: None,
            ca: None,
            retry: RetryOptions::default(),
            rotate: 1 << 30,
            log: LogOptions::default(),
            limits: Limits::default(),
            hosts: HostSettings::default(),
        }
    }
}

/// What is wrong with a configuration as that of a crawl, each mistake in a sentence.
pub(crate) fn mistakes(config: &Config) -> Vec<String> {
    Settings::new(config)
        .err()
        .map_or_else(Vec::new, Error::mistakes)
}

impl Settings {
    /// Validates a configuration.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let mut wrong = Mistakes::new(&config.origins);
        let usual = Self::default();
        let limits = limits(&config.limits, Limits::default(), &mut wrong);
        let canonical = CanonicalOptions {
            strip_session_ids: (config.scope.strip_session_ids)
                .unwrap_or(usual.canonical.strip_session_ids),
            max_url_bytes: limits.max_url_bytes,
        };
        let seeds = seeds(config, &canonical, &mut wrong);
        let (user_agent, has_contact) = user_agent(config, &mut wrong);
        let polite = &config.politeness;
        let host_rate = wrong.rate("politeness.rate", polite.rate);
        let per_host = polite.per_host;
        let fetch = &config.fetch;
        let memory = wrong.size("memory", config.memory.as_ref());
        let memory = memory.unwrap_or(usual.memory);
        let traps = trap_options(&config.traps, usual.traps, &limits, memory);
        // A host is never allowed more than its address, so a raised limit of hosts carries the other along.
        let ip_rate = wrong.rate("politeness.ip_rate", polite.ip_rate);
        let ip_rate = ip_rate.or(host_rate).unwrap_or(usual.ip_rate);
        let per_ip = polite.per_ip.or(per_host);
        let per_ip = wrong.some("politeness.per_ip", per_ip, usual.per_ip);
        let all = Usual {
            limits: &limits,
            traps: &traps,
            address: Some(AddressLimits {
                rate: ip_rate,
                at_once: per_ip,
            }),
        };
        let hosts = rules(config, &all, &mut wrong);
        let settings = Self {
            seeds,
            agent: agent_name(&user_agent),
            user_agent,
            has_contact,
            memory,
            scope: scope_options(&config.scope, &mut wrong),
            traps,
            hosts,
            canonical,
            obey_nofollow: config.scope.nofollow.unwrap_or(usual.obey_nofollow),
            sitemaps: config.scope.sitemaps.unwrap_or(usual.sitemaps)
                && config.scope.depth != Some(0),
            pages: config.budget.pages.unwrap_or(usual.pages),
            budgets: budgets(&config.budget, &mut wrong),
            recrawl: recrawl(&config.recrawl, &mut wrong),
            head_first: config.recrawl.head_first.unwrap_or(usual.head_first),
            time: wrong
                .time("budget.time", config.budget.time.as_ref())
                .filter(|time| !time.is_zero()),
            ip_rate,
            host_rate: host_rate.unwrap_or(usual.host_rate),
            per_ip,
            per_host: wrong.some("politeness.per_host", per_host, usual.per_host),
            queue_count: polite.queue_count.unwrap_or(usual.queue_count),
            queue_len: polite.queue_len.unwrap_or(usual.queue_len),
            ip_batch_max: (polite.ip_batch_max)
                .or(polite.queue_len.map(|len| len.saturating_mul(4)))
                .unwrap_or(usual.ip_batch_max),
            slow_factor: polite.slow_factor.unwrap_or(usual.slow_factor),
            slow_max: wrong
                .seconds("politeness.slow_max_s", polite.slow_max_s)
                .unwrap_or(usual.slow_max),
            concurrency: fetch.concurrency.unwrap_or(usual.concurrency),
            workers: fetch.workers.unwrap_or(usual.workers),
            allow_net: wrong.networks("fetch.allow_net", fetch.allow_net.as_ref()),
            insecure: fetch.insecure.unwrap_or(usual.insecure),
            resolver: (fetch.resolver.as_deref())
                .and_then(|text| wrong.take("fetch.resolver", address(text))),
            ca: fetch.ca.clone().map(PathBuf::from),
            retry: retry_options(&config.retry, &mut wrong),
            rotate: wrong
                .size("store.rotate", config.store.rotate.as_ref())
                .unwrap_or(usual.rotate),
            log: log_options(&config.log, &mut wrong),
            limits,
        };
        settings.demand_sense(&mut wrong);
        wrong.unless(settings)
    }

    /// An error when secrets are missing that requests to some hosts need. It names them all.
    pub fn demand_secrets(&self) -> Result<(), Error> {
        match self.hosts.missing.as_slice() {
            [] => Ok(()),
            missing => Err(Error::Mistakes(missing.to_vec())),
        }
    }

    fn demand_sense(&self, wrong: &mut Mistakes<'_>) {
        for (count, path) in [
            (self.concurrency, "fetch.concurrency"),
            (self.workers, "fetch.workers"),
            (self.queue_len, "politeness.queue_len"),
        ] {
            wrong.demand(count > 0, path, "must be at least 1");
        }
        // The number of an order has room for so many.
        let (count, window) = (self.queue_count, self.per_host);
        let must = "must be from 1 to 1048576";
        wrong.demand(
            (1..=1 << 20).contains(&count),
            "politeness.queue_count",
            must,
        );
        wrong.demand(
            window <= 1 << 12,
            "politeness.per_host",
            "must be at most 4096",
        );
        let factor = self.slow_factor.is_finite() && self.slow_factor >= 0.0;
        let must = "must be a number, 0 or more";
        wrong.demand(factor, "politeness.slow_factor", must);
        wrong.demand(self.memory >= 64 << 20, "memory", "must be at least 64M");
        wrong.demand(
            self.rotate >= 1 << 20,
            "store.rotate",
            "must be at least 1M",
        );
    }
}

fn seeds(config: &Config, canonical: &CanonicalOptions, wrong: &mut Mistakes<'_>) -> Vec<CrawlUrl> {
    let canonicalizer = Canonicalizer::new(canonical.clone());
    let read = |text: &String| {
        let seed = orbweaver_intake::seeds::parse_seed(text, &canonicalizer);
        let refuse = |error| {
            let message = format!("`{text}` is not a URL to crawl: {error}");
            wrong.about_given("seeds", message);
        };
        seed.map_err(refuse).ok()
    };
    config.seeds.iter().filter_map(read).collect()
}

/// The first word of a user agent: the name in robots.txt.
fn agent_name(user_agent: &str) -> String {
    let name = user_agent.split(['/', ' ']).next();
    name.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn settings(text: &str) -> Result<Settings, Error> {
        let (config, mistakes) = crate::reader::read(text, Path::new("x.toml"));
        assert_eq!(mistakes, [""; 0]);
        Settings::new(&config)
    }

    #[test]
    fn an_empty_configuration_is_the_default_and_the_safe_one() {
        let settings = settings("").unwrap();
        let usual = Settings {
            // The share of the memory.
            traps: TrapOptions {
                memory: 8 << 20,
                ..TrapOptions::default()
            },
            ..Settings::default()
        };
        assert_eq!(format!("{settings:?}"), format!("{usual:?}"));
        assert_eq!(
            (settings.host_rate, settings.per_host, settings.per_ip),
            (1.0, 1, 1)
        );
        assert_eq!(settings.ip_rate, 1.0);
        assert!(settings.allow_net.is_empty() && !settings.insecure && settings.obey_nofollow);
        assert_eq!(settings.agent, "orbweaver");
    }

    #[test]
    fn what_follows_from_another_setting_follows() {
        let settings = settings(
            "[politeness]\nrate = 5\nper_host = 3\nqueue_len = 10\n[limits]\ntotal_timeout_s = 60",
        )
        .unwrap();
        assert_eq!((settings.ip_rate, settings.per_ip), (5.0, 3));
        assert_eq!(settings.ip_batch_max, 40);
        let minute = Duration::from_secs(60);
        assert_eq!(settings.limits.header_timeout, minute);
        assert_eq!(settings.limits.idle_timeout, minute);
    }

    #[test]
    fn every_mistake_is_reported_at_once_with_its_place() {
        let error = settings(
            "seeds = [\"nonsense://x\"]\nmemory = \"much\"\nReq_Host_Concurrent = 0\n[scope]\nkind = \"galaxy\"\ninclude = [\"(\"]\n\
             [fetch]\nallow_net = [\"10.0.0.0/99\"]\nresolver = \"dns\"\n[politeness]\nrate = -1.0",
        )
        .unwrap_err()
        .to_string();
        for part in [
            "seeds (line 1 of x.toml): `nonsense",
            "memory (line 2 of x.toml): `much`",
            "Req_Host_Concurrent (line 3 of x.toml) must be at least 1",
            "kind (line 5 of x.toml): `galaxy`",
            "include (line 6 of x.toml): ",
            "10.0.0.0/99",
            "`dns`",
            "rate (line 11 of x.toml) must be 0",
        ] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }

    #[test]
    fn what_a_flag_gives_is_named_by_its_path() {
        let mut flags = Config::default();
        flags.politeness.rate = Some(-1.0);
        let (file, _) = crate::reader::read("[politeness]\nrate = 3", Path::new("x.toml"));
        let error = Settings::new(&file.under(flags)).unwrap_err().to_string();
        assert!(error.starts_with("politeness.rate must be 0"), "{error}");
    }

    #[test]
    fn a_contact_is_part_of_the_user_agent() {
        let settings = settings("contact = \"mailto:me@example.org\"").unwrap();
        assert!(settings.user_agent.ends_with("(+mailto:me@example.org)") && settings.has_contact);
    }
}
