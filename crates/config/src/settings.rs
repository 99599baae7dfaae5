//! What the program needs: a configuration, validated once, every mistake reported at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use orbweaver_intake::{
    CanonicalOptions, Canonicalizer, Scope, ScopeKind, ScopeOptions, TrapOptions,
};
use orbweaver_model::{Budget, Budgets, CrawlUrl, Limits, RecrawlBounds};

use crate::config::{BudgetConfig, Config, LimitsConfig, RecrawlConfig};
use crate::error::Error;
use crate::options::{LogOptions, RetryOptions};
use crate::units;

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
    /// Pages are asked for with HEAD first when they are visited again.
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
    /// URLs of one batch on one IP address beyond which its hosts are passed over in the next batch.
    pub ip_batch_max: usize,
    /// The gap of a host is at least this many times its response time; 0 means that this does not count.
    pub slow_factor: f64,
    /// The longest gap that slowness and failures of a host make.
    pub slow_max: Duration,
    /// Requests at once in all.
    pub concurrency: usize,
    /// Threads that fetch and read pages.
    pub workers: usize,
    /// Networks that may be asked although they are private.
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
}

/// Collects what is wrong, so that one run shows all of it.
#[derive(Default)]
struct Mistakes(Vec<String>);

impl Mistakes {
    fn take<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.0.push(message)).ok()
    }

    fn demand(&mut self, holds: bool, message: &str) {
        if !holds {
            self.0.push(message.into());
        }
    }
}

impl Settings {
    /// What is wrong with a configuration, each mistake in a sentence.
    pub fn mistakes(config: &Config) -> Vec<String> {
        Self::read(config).err().unwrap_or_default()
    }

    /// Validates a configuration.
    pub fn new(config: &Config) -> Result<Self, Error> {
        Self::read(config).map_err(Error::Mistakes)
    }

    fn read(config: &Config) -> Result<Self, Vec<String>> {
        let mut wrong = Mistakes::default();
        let limits = limits(&config.limits, &mut wrong);
        let canonical = CanonicalOptions {
            strip_session_ids: config.scope.strip_session_ids.unwrap_or(false),
            max_url_bytes: limits.max_url_bytes,
        };
        let scope = scope_options(config, &mut wrong);
        let canonicalizer = Canonicalizer::new(canonical.clone());
        let seeds: Vec<CrawlUrl> = (config.seeds.iter())
            .filter_map(|text| {
                let seed = orbweaver_intake::seeds::parse_seed(text, &canonicalizer);
                wrong.take(seed.map_err(|error| format!("`{text}` is not a URL to crawl: {error}")))
            })
            .collect();
        // One by one, so that each that is wrong is named.
        let include = scope
            .include
            .iter()
            .map(|pattern| (vec![pattern.clone()], Vec::new()));
        let exclude = scope
            .exclude
            .iter()
            .map(|pattern| (Vec::new(), vec![pattern.clone()]));
        for (include, exclude) in include.chain(exclude) {
            let alone = ScopeOptions {
                include,
                exclude,
                ..ScopeOptions::default()
            };
            wrong.take(Scope::new(alone, &[]).map_err(|error| error.to_string()));
        }
        let (user_agent, has_contact) = user_agent(config, &mut wrong);
        let politeness = &config.politeness;
        let host_rate = rate(politeness.rate, 1.0, "rate", &mut wrong);
        let per_host = politeness.per_host.unwrap_or(1);
        let queue_len = politeness.queue_len.unwrap_or(64);
        let fetch = &config.fetch;
        let concurrency = fetch.concurrency.unwrap_or(512);
        let memory = size("memory", &config.memory, &mut wrong).unwrap_or(512 << 20);
        let settings = Self {
            seeds,
            agent: user_agent
                .split(['/', ' '])
                .next()
                .unwrap_or_default()
                .to_owned(),
            user_agent,
            has_contact,
            memory,
            scope,
            traps: trap_options(config, &limits, memory),
            canonical,
            obey_nofollow: config.scope.nofollow.unwrap_or(true),
            sitemaps: config.scope.sitemaps.unwrap_or(true) && config.scope.depth != Some(0),
            pages: config.budget.pages.unwrap_or(0),
            budgets: budgets(&config.budget, &mut wrong),
            recrawl: recrawl(&config.recrawl, &mut wrong),
            head_first: config.recrawl.head_first.unwrap_or(false),
            time: time("budget.time", &config.budget.time, &mut wrong)
                .filter(|time| !time.is_zero()),
            host_rate,
            per_host,
            ip_rate: rate(politeness.ip_rate, host_rate, "ip_rate", &mut wrong),
            // A host is never allowed more than its address, so a raised host limit carries the other along.
            per_ip: politeness.per_ip.unwrap_or(per_host),
            queue_count: politeness.queue_count.unwrap_or(2048),
            queue_len,
            // Four full queues: more of one machine would only wait for one another.
            ip_batch_max: politeness
                .ip_batch_max
                .unwrap_or(queue_len.saturating_mul(4)),
            slow_factor: politeness.slow_factor.unwrap_or(1.0),
            slow_max: span(
                politeness.slow_max_s,
                Duration::from_secs(60),
                "politeness.slow_max_s",
                &mut wrong,
            ),
            concurrency,
            workers: fetch.workers.unwrap_or_else(half_the_cores),
            allow_net: networks(fetch.allow_net.as_deref().unwrap_or_default(), &mut wrong),
            insecure: fetch.insecure.unwrap_or(false),
            resolver: fetch
                .resolver
                .as_deref()
                .and_then(|text| wrong.take(address(text))),
            ca: fetch.ca.clone().map(PathBuf::from),
            retry: retry_options(config, &mut wrong),
            rotate: size("store.rotate", &config.store.rotate, &mut wrong).unwrap_or(1 << 30),
            log: log_options(config, &mut wrong),
            limits,
        };
        settings.demand_sense(&mut wrong);
        match wrong.0.is_empty() {
            true => Ok(settings),
            false => Err(wrong.0),
        }
    }

    fn demand_sense(&self, wrong: &mut Mistakes) {
        wrong.demand(self.per_host > 0, "per_host must be at least 1");
        wrong.demand(self.per_ip > 0, "per_ip must be at least 1");
        wrong.demand(self.concurrency > 0, "concurrency must be at least 1");
        wrong.demand(self.workers > 0, "workers must be at least 1");
        wrong.demand(self.queue_count > 0, "queue_count must be at least 1");
        wrong.demand(self.queue_len > 0, "queue_len must be at least 1");
        let factor = self.slow_factor.is_finite() && self.slow_factor >= 0.0;
        wrong.demand(factor, "slow_factor must be a number, 0 or more");
        wrong.demand(self.memory >= 64 << 20, "memory must be at least 64M");
        wrong.demand(self.rotate >= 1 << 20, "rotate must be at least 1M");
        let limits = &self.limits;
        // With nothing allowed, every fetch of the crawl would fail, one after the other.
        for (allowed, name) in [
            (!limits.connect_timeout.is_zero(), "connect_timeout_s"),
            (!limits.header_timeout.is_zero(), "header_timeout_s"),
            (!limits.idle_timeout.is_zero(), "idle_timeout_s"),
            (!limits.total_timeout.is_zero(), "total_timeout_s"),
            (limits.max_header_bytes > 0, "max_header_bytes"),
            (limits.max_headers > 0, "max_headers"),
            (limits.max_body_bytes > 0, "max_body_bytes"),
            (limits.max_decoded_bytes > 0, "max_decoded_bytes"),
            (limits.max_url_bytes > 0, "max_url_bytes"),
        ] {
            wrong.demand(allowed, &format!("limits.{name} must be above 0"));
        }
    }
}

fn budgets(config: &BudgetConfig, wrong: &mut Mistakes) -> Budgets {
    Budgets {
        host: Budget {
            pages: config.host_pages.unwrap_or(0),
            bytes: size("budget.host_bytes", &config.host_bytes, wrong).unwrap_or(0),
            time: time("budget.host_time", &config.host_time, wrong).unwrap_or_default(),
        },
        domain: Budget {
            pages: config.domain_pages.unwrap_or(0),
            bytes: size("budget.domain_bytes", &config.domain_bytes, wrong).unwrap_or(0),
            time: time("budget.domain_time", &config.domain_time, wrong).unwrap_or_default(),
        },
    }
}

fn recrawl(config: &RecrawlConfig, wrong: &mut Mistakes) -> Option<RecrawlBounds> {
    let default = RecrawlBounds::default();
    let min = time("recrawl.min", &config.min, wrong).unwrap_or(default.min);
    let max = time("recrawl.max", &config.max, wrong).unwrap_or(default.max.max(min));
    wrong.demand(
        min >= Duration::from_secs(1) && min <= max,
        "recrawl.min must be at least 1s and not above recrawl.max",
    );
    let bounds = RecrawlBounds { min, max };
    config.on.unwrap_or(false).then_some(bounds)
}

/// A size as written; what is wrong with it is said with its key.
fn size(key: &str, text: &Option<String>, wrong: &mut Mistakes) -> Option<u64> {
    let read = text.as_deref().map(units::size)?;
    wrong.take(read.map_err(|why| format!("{key}: {why}")))
}

/// The same for a time.
fn time(key: &str, text: &Option<String>, wrong: &mut Mistakes) -> Option<Duration> {
    let read = text.as_deref().map(units::duration)?;
    wrong.take(read.map_err(|why| format!("{key}: {why}")))
}

/// E7: half the cores, so that the machine can do other work.
fn half_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

fn user_agent(config: &Config, wrong: &mut Mistakes) -> (String, bool) {
    let contact = config
        .contact
        .as_deref()
        .map(str::trim)
        .filter(|contact| !contact.is_empty());
    let agent = match (&config.user_agent, contact) {
        (Some(agent), None) => agent.clone(),
        (Some(agent), Some(contact)) => format!("{agent} (+{contact})"),
        (None, Some(contact)) => format!("orbweaver/{} (+{contact})", env!("CARGO_PKG_VERSION")),
        (None, None) => format!("orbweaver/{}", env!("CARGO_PKG_VERSION")),
    };
    let sendable = !agent.is_empty() && agent.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    wrong.demand(
        sendable,
        "user agent and contact must be printable ASCII and not empty",
    );
    let named = agent.split(['/', ' ']).next().is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_')
    });
    wrong.demand(
        named || !sendable,
        "the user agent must begin with a name of letters, - and _, for that is what robots.txt rules call it",
    );
    let has_contact = contact.is_some() || agent.contains('@') || agent.contains("://");
    (agent, has_contact)
}

fn scope_options(config: &Config, wrong: &mut Mistakes) -> ScopeOptions {
    let kind = match config.scope.kind.as_deref().unwrap_or("host") {
        "host" => ScopeKind::Host,
        "domain" => ScopeKind::Domain,
        "prefix" => ScopeKind::Prefix,
        "any" => ScopeKind::Any,
        other => {
            wrong.0.push(format!(
                "`{other}` is not a scope; choose host, domain, prefix or any"
            ));
            ScopeKind::Host
        }
    };
    ScopeOptions {
        kind,
        include: config.scope.include.clone().unwrap_or_default(),
        exclude: config.scope.exclude.clone().unwrap_or_default(),
        max_depth: config.scope.depth,
        requisites: config.scope.requisites.unwrap_or(false),
    }
}

/// A sixty-fourth of half a gigabyte holds what is known of some fifteen thousand pages that were looked at.
fn trap_options(config: &Config, limits: &Limits, memory: u64) -> TrapOptions {
    let given = &config.traps;
    let usual = TrapOptions::default();
    TrapOptions {
        enabled: given.enabled.unwrap_or(usual.enabled),
        copies: given.copies.unwrap_or(usual.copies),
        combinations: given.combinations.unwrap_or(usual.combinations),
        domain_hosts: given.domain_hosts.unwrap_or(usual.domain_hosts),
        first_year: given.first_year.unwrap_or(usual.first_year),
        years_ahead: given.years_ahead.unwrap_or(usual.years_ahead),
        path_depth: limits.max_path_depth,
        memory: usize::try_from(memory / 64).unwrap_or(usize::MAX),
    }
}

fn rate(given: Option<f64>, default: f64, name: &str, wrong: &mut Mistakes) -> f64 {
    let rate = given.unwrap_or(default);
    if !(0.0..=1e6).contains(&rate) || (rate > 0.0 && rate < 1e-6) {
        wrong.0.push(format!(
            "{name} must be 0 (no limit) or a number of requests per second up to a million"
        ));
    }
    rate
}

fn networks(texts: &[String], wrong: &mut Mistakes) -> Vec<IpNet> {
    let read = |text: &String| {
        let net = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
        net.map_err(|_| format!("`{text}` is not a network; write it like 10.0.0.0/8"))
    };
    texts
        .iter()
        .filter_map(|text| wrong.take(read(text)))
        .collect()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse::<SocketAddr>()
        .or_else(|_| {
            text.parse::<std::net::IpAddr>()
                .map(|ip| SocketAddr::new(ip, 53))
        })
        .map_err(|_| format!("`{text}` is not an address; write it like 127.0.0.1:53"))
}

fn retry_options(config: &Config, wrong: &mut Mistakes) -> RetryOptions {
    let given = &config.retry;
    let usual = RetryOptions::default();
    RetryOptions {
        busy_attempts: given.busy_attempts.unwrap_or(usual.busy_attempts),
        attempts: given.attempts.unwrap_or(usual.attempts),
        delay: span(given.delay_s, usual.delay, "retry.delay_s", wrong),
        patience: span(given.patience_s, usual.patience, "retry.patience_s", wrong),
    }
}

fn log_options(config: &Config, wrong: &mut Mistakes) -> LogOptions {
    let usual = LogOptions::default();
    let rotate = size("log.rotate", &config.log.rotate, wrong);
    let options = LogOptions {
        rotate: rotate.unwrap_or(usual.rotate),
        files: config.log.files.unwrap_or(usual.files),
    };
    wrong.demand(
        options.rotate >= 64 << 10,
        "log.rotate must be at least 64K",
    );
    wrong.demand(options.files <= 1000, "log.files must be at most 1000");
    options
}

fn span(given: Option<f64>, usual: Duration, name: &str, wrong: &mut Mistakes) -> Duration {
    match given.map(|seconds| units::seconds_to(seconds).ok_or(seconds)) {
        None => usual,
        Some(Ok(span)) => span,
        Some(Err(seconds)) => {
            wrong
                .0
                .push(format!("{name} = {seconds} is not a time in seconds"));
            usual
        }
    }
}

fn limits(given: &LimitsConfig, wrong: &mut Mistakes) -> Limits {
    let usual = Limits::default();
    let mut time =
        |given: Option<f64>, usual: Duration, name: &str| span(given, usual, name, wrong);
    let total = time(
        given.total_timeout_s,
        usual.total_timeout,
        "total_timeout_s",
    );
    let usual = usual.with_total_timeout(total);
    Limits {
        connect_timeout: time(
            given.connect_timeout_s,
            usual.connect_timeout,
            "connect_timeout_s",
        ),
        header_timeout: time(
            given.header_timeout_s,
            usual.header_timeout,
            "header_timeout_s",
        ),
        idle_timeout: time(given.idle_timeout_s, usual.idle_timeout, "idle_timeout_s"),
        total_timeout: total,
        max_header_bytes: given.max_header_bytes.unwrap_or(usual.max_header_bytes),
        max_headers: given.max_headers.unwrap_or(usual.max_headers),
        max_body_bytes: given.max_body_bytes.unwrap_or(usual.max_body_bytes),
        max_decoded_bytes: given.max_decoded_bytes.unwrap_or(usual.max_decoded_bytes),
        min_body_rate: given.min_body_rate.unwrap_or(usual.min_body_rate),
        max_encodings: given.max_encodings.unwrap_or(usual.max_encodings),
        max_redirects: given.max_redirects.unwrap_or(usual.max_redirects),
        robots_max_bytes: given.robots_max_bytes.unwrap_or(usual.robots_max_bytes),
        robots_max_redirects: given
            .robots_max_redirects
            .unwrap_or(usual.robots_max_redirects),
        max_url_bytes: given.max_url_bytes.unwrap_or(usual.max_url_bytes),
        max_nesting: given.max_nesting.unwrap_or(usual.max_nesting),
        max_links_per_page: given.max_links_per_page.unwrap_or(usual.max_links_per_page),
        max_path_depth: given.max_path_depth.unwrap_or(usual.max_path_depth),
        retry_after_cap: time(
            given.retry_after_cap_s,
            usual.retry_after_cap,
            "retry_after_cap_s",
        ),
        crawl_delay_cap: time(
            given.crawl_delay_cap_s,
            usual.crawl_delay_cap,
            "crawl_delay_cap_s",
        ),
        max_sitemap_urls: given.max_sitemap_urls.unwrap_or(usual.max_sitemap_urls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(toml: &str) -> Result<Settings, Error> {
        Settings::new(&toml::from_str(toml).unwrap())
    }

    #[test]
    fn an_empty_configuration_is_the_safe_one() {
        let settings = settings("").unwrap();
        assert_eq!(
            (settings.host_rate, settings.per_host, settings.per_ip),
            (1.0, 1, 1)
        );
        assert_eq!(settings.ip_rate, 1.0);
        assert_eq!(settings.memory, 512 << 20);
        assert!(settings.allow_net.is_empty() && !settings.insecure && settings.obey_nofollow);
        assert_eq!(settings.agent, "orbweaver");
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let error = settings(
            "seeds = [\"nonsense://x\"]\nmemory = \"much\"\n[scope]\nkind = \"galaxy\"\ninclude = [\"(\"]\n\
             [fetch]\nallow_net = [\"10.0.0.0/99\"]\nresolver = \"dns\"\n[politeness]\nrate = -1.0\nper_host = 0",
        )
        .unwrap_err()
        .to_string();
        for part in [
            "nonsense",
            "much",
            "galaxy",
            "10.0.0.0/99",
            "`dns`",
            "rate",
            "per_host",
            "(",
        ] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }

    #[test]
    fn a_contact_is_part_of_the_user_agent() {
        let settings = settings("contact = \"mailto:me@example.org\"").unwrap();
        assert!(settings.user_agent.ends_with("(+mailto:me@example.org)") && settings.has_contact);
    }
}
