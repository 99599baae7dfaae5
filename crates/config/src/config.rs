//! What the user wrote: configuration file, stored settings of a crawl directory, and flags, all in one shape that can
//! be laid over one another. What the program needs is in `settings.rs`.
//!
//! Every key is optional here; the defaults live with the settings. A section is listed once, in [`sections`], and the
//! reader takes its keys from there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::hosts::{self, HostConfig};
use crate::kinds::{Key, Kind, fits};
use crate::origins::Origins;

/// A configuration as written. Later layers win key by key; lists replace lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// URLs to start from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
    /// The whole User-Agent header. Its first word is the name that robots.txt rules are matched with.
    pub user_agent: Option<String>,
    /// An address or page where a site's owner can reach you; becomes part of the User-Agent.
    pub contact: Option<String>,
    /// The byte budget of the process, such as "512M".
    pub memory: Option<String>,
    /// What belongs to the crawl.
    pub scope: ScopeConfig,
    /// When a family of URLs is taken for endless.
    pub traps: TrapsConfig,
    /// When to stop.
    pub budget: BudgetConfig,
    /// When pages are visited again.
    pub recrawl: RecrawlConfig,
    /// Request rates.
    pub politeness: PolitenessConfig,
    /// How connections are made.
    pub fetch: FetchConfig,
    /// When a failed attempt is repeated.
    pub retry: RetryConfig,
    /// How pages are kept, and where the store daemon is.
    pub store: StoreConfig,
    /// How the log of requests is kept.
    pub log: LogConfig,
    /// How much is taken from any server.
    pub limits: LimitsConfig,
    /// What all daemons share.
    pub daemons: DaemonsConfig,
    /// The spider as a daemon.
    pub spider: SpiderConfig,
    /// The URL server as a daemon.
    pub urlserver: UrlServerConfig,
    /// Settings for single hosts, by their names.
    #[serde(rename = "host", skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostConfig>,
    /// Settings for all hosts of a domain, by its name.
    #[serde(rename = "domain", skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, HostConfig>,
    /// Where the keys above were read from.
    #[serde(skip)]
    pub origins: Origins,
}

/// The keys that stand above all sections.
const TOP: [Key; 4] = [
    Key::top::<Vec<String>>("seeds"),
    Key::top::<String>("user_agent"),
    Key::top::<String>("contact"),
    Key::top::<String>("memory"),
];

macro_rules! sections {
    ($($(#[$outer:meta])* $section:ident: $name:ident {
        $($(#[$inner:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$outer])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub struct $name {
                $($(#[$inner])* pub $field: Option<$type>,)*
            }

            impl $name {
                const KEYS: &[Key] = &[$(Key {
                    section: stringify!($section),
                    name: stringify!($field),
                    path: concat!(stringify!($section), ".", stringify!($field)),
                    expected: <$type as Kind>::EXPECTED,
                    fits: fits::<$type>,
                },)*];

                fn under(self, upper: Self, origins: &mut Origins) -> Self {
                    $(if upper.$field.is_some() {
                        origins.forget(concat!(stringify!($section), ".", stringify!($field)));
                    })*
                    Self { $($field: upper.$field.or(self.$field),)* }
                }
            }
        )*

        /// The keys of the configuration file, by section.
        pub(crate) const SECTIONS: &[(&str, &[Key])] = &[
            ("", &TOP),
            $((stringify!($section), $name::KEYS),)*
        ];
    };
}

sections! {
    /// What belongs to the crawl.
    scope: ScopeConfig {
        /// host, domain, prefix or any.
        kind: String,
        /// Regular expressions; a URL must match one of them.
        include: Vec<String>,
        /// Regular expressions; a URL must match none of them.
        exclude: Vec<String>,
        /// Links followed from a seed at most.
        depth: u16,
        /// Fetch pictures, styles and scripts too.
        requisites: bool,
        /// Fetch the sitemaps that robots.txt files name.
        sitemaps: bool,
        /// Remove session ids from URLs.
        strip_session_ids: bool,
        /// Obey rel=nofollow, meta robots and X-Robots-Tag.
        nofollow: bool,
    }

    /// When a family of URLs is taken for endless.
    traps: TrapsConfig {
        /// False switches every rule off.
        enabled: bool,
        /// New URLs that pages of a host may lead to when they say the same as twenty others.
        copies: u32,
        /// URLs of one path with parameters in combinations that repeat each other.
        combinations: u32,
        /// Hosts under one registered domain, or in one /16 network.
        domain_hosts: u32,
        /// First year of calendars.
        first_year: u16,
        /// Last year of calendars, counted from now.
        years_ahead: u16,
    }

    /// When to stop.
    budget: BudgetConfig {
        /// Pages in all.
        pages: u64,
        /// Pages of one host.
        host_pages: u32,
        /// Bytes from one host, such as "2G".
        host_bytes: String,
        /// Time since the first request to a host, such as "2h".
        host_time: String,
        /// Pages of all hosts of one registered domain.
        domain_pages: u32,
        /// Bytes from all hosts of one registered domain.
        domain_bytes: String,
        /// Time since the first request to a registered domain.
        domain_time: String,
        /// Running time, such as "90s" or "2h".
        time: String,
    }

    /// When pages are visited again.
    recrawl: RecrawlConfig {
        /// Run until stopped, and revisit each page when it is likely to have changed.
        on: bool,
        /// The shortest time between two visits, such as "1h".
        min: String,
        /// The longest time between two visits, such as "720h".
        max: String,
        /// Ask with HEAD first.
        head_first: bool,
    }

    /// Request rates.
    politeness: PolitenessConfig {
        /// Requests per second to one host; 0 means no limit.
        rate: f64,
        /// Requests at once to one host.
        per_host: u16,
        /// Requests per second to one IP address; 0 means no limit. The same as `rate` unless given.
        ip_rate: f64,
        /// Requests at once to one IP address.
        per_ip: u16,
        /// Hosts that are served at the same time.
        queue_count: usize,
        /// URLs held in RAM for one host.
        queue_len: usize,
        /// URLs of one batch on one IP address beyond which its hosts are skipped in the next batch.
        ip_batch_max: usize,
        /// The gap of a host is at least this many times its response time; 0 means that this does not count.
        slow_factor: f64,
        /// The longest gap in seconds that slowness and failures of a host make.
        slow_max_s: f64,
    }

    /// How connections are made.
    fetch: FetchConfig {
        /// Fetches at once.
        concurrency: usize,
        /// Threads that fetch and read pages.
        workers: usize,
        /// Private networks that may be contacted.
        allow_net: Vec<String>,
        /// Accept any certificate.
        insecure: bool,
        /// The DNS server, as address:port.
        resolver: String,
        /// A PEM file with further certificate authorities.
        ca: String,
    }

    /// When a failed attempt is repeated.
    retry: RetryConfig {
        /// Attempts at a URL whose server is overloaded (429, 503).
        busy_attempts: u8,
        /// Attempts at a URL that failed otherwise but may come back.
        attempts: u8,
        /// Seconds before the first repetition; each further one waits four times as long.
        delay_s: f64,
        /// Seconds that a crawl with nothing else to do waits for a repetition.
        patience_s: f64,
    }

    /// How pages are kept.
    store: StoreConfig {
        /// Size at which a WARC file is closed, such as "1G".
        rotate: String,
        /// Where the store daemon keeps everything.
        dir: String,
        /// Where the store daemon listens, and where spiders and URL servers find it.
        host: String,
        /// The port for records of spiders.
        port: u16,
        /// The port for the results that URL servers read.
        results_port: u16,
    }

    /// How the log is kept.
    log: LogConfig {
        /// Size at which a file of the log is closed, such as "64M".
        rotate: String,
        /// Files of the log that are kept; 0 writes none.
        files: u32,
    }

    /// How much is taken from any server.
    limits: LimitsConfig {
        /// Seconds to a TCP connection, and again to a finished TLS handshake.
        connect_timeout_s: f64,
        /// Seconds from the request to the end of the response head.
        header_timeout_s: f64,
        /// Seconds of silence inside a body.
        idle_timeout_s: f64,
        /// Seconds after which a fetch is over.
        total_timeout_s: f64,
        /// Bytes of all heads of one response.
        max_header_bytes: usize,
        /// Header lines of one head.
        max_headers: usize,
        /// Bytes of a body that are kept.
        max_body_bytes: usize,
        /// Bytes of a decoded body that are read for links.
        max_decoded_bytes: usize,
        /// Bytes per second at which a large body may continue beyond the total time.
        min_body_rate: u64,
        /// Stacked content encodings.
        max_encodings: usize,
        /// Redirects of one chain.
        max_redirects: usize,
        /// Bytes of a robots.txt that are read.
        robots_max_bytes: usize,
        /// Redirects of a robots.txt.
        robots_max_redirects: usize,
        /// Bytes of a URL.
        max_url_bytes: usize,
        /// Open elements that a page reader may keep track of.
        max_nesting: usize,
        /// Links taken from one page.
        max_links_per_page: usize,
        /// Path segments of a URL.
        max_path_depth: usize,
        /// Longest wait in seconds that a server can impose with Retry-After.
        retry_after_cap_s: f64,
        /// Longest Crawl-delay in seconds that is obeyed as written.
        crawl_delay_cap_s: f64,
        /// URLs taken from one sitemap.
        max_sitemap_urls: usize,
    }

    /// What all daemons share.
    daemons: DaemonsConfig {
        /// A file with the secret that all daemons share.
        key_file: String,
        /// push or pull: who begins on the line between URL server and spider.
        mode: String,
    }

    /// The spider as a daemon.
    spider: SpiderConfig {
        /// Where the spider listens, and where URL servers find it.
        host: String,
        /// Its port.
        port: u16,
        /// The longest time in seconds between two WORKING for one order.
        update_s: f64,
    }

    /// The URL server as a daemon.
    urlserver: UrlServerConfig {
        /// The directory of the doc index.
        dir: String,
        /// Further spiders, as host:port.
        spiders: Vec<String>,
        /// Seconds without a word about an order after which it is sent again.
        status_timeout_s: f64,
    }
}

impl Config {
    /// This configuration with another laid over it.
    pub fn under(self, upper: Self) -> Self {
        let mut origins = self.origins;
        for (given, path) in [
            (!upper.seeds.is_empty(), "seeds"),
            (upper.user_agent.is_some(), "user_agent"),
            (upper.contact.is_some(), "contact"),
            (upper.memory.is_some(), "memory"),
        ] {
            if given {
                origins.forget(path);
            }
        }
        let places = &mut origins;
        let both = Self {
            seeds: match upper.seeds.is_empty() {
                true => self.seeds,
                false => upper.seeds,
            },
            user_agent: upper.user_agent.or(self.user_agent),
            contact: upper.contact.or(self.contact),
            memory: upper.memory.or(self.memory),
            scope: self.scope.under(upper.scope, places),
            traps: self.traps.under(upper.traps, places),
            budget: self.budget.under(upper.budget, places),
            recrawl: self.recrawl.under(upper.recrawl, places),
            politeness: self.politeness.under(upper.politeness, places),
            fetch: self.fetch.under(upper.fetch, places),
            retry: self.retry.under(upper.retry, places),
            store: self.store.under(upper.store, places),
            log: self.log.under(upper.log, places),
            limits: self.limits.under(upper.limits, places),
            daemons: self.daemons.under(upper.daemons, places),
            spider: self.spider.under(upper.spider, places),
            urlserver: self.urlserver.under(upper.urlserver, places),
            hosts: hosts::under(self.hosts, upper.hosts),
            domains: hosts::under(self.domains, upper.domains),
            origins: Origins::default(),
        };
        origins.add(upper.origins);
        Self { origins, ..both }
    }

    /// What a crawl directory keeps for the next run, as text: the settings of the crawl. Where daemons are is not one
    /// of them, for it can change from one start to the next, and secrets are not written down anywhere else.
    pub fn kept(&self) -> Result<String, Error> {
        let kept = Self {
            store: StoreConfig {
                rotate: self.store.rotate.clone(),
                ..StoreConfig::default()
            },
            daemons: DaemonsConfig::default(),
            spider: SpiderConfig::default(),
            urlserver: UrlServerConfig::default(),
            hosts: hosts::kept(&self.hosts),
            domains: hosts::kept(&self.domains),
            ..self.clone()
        };
        Ok(toml::to_string(&kept)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::reader;

    fn read(text: &str) -> Config {
        let (config, mistakes) = reader::read(text, Path::new("x.toml"));
        assert_eq!(mistakes, [""; 0]);
        config
    }

    #[test]
    fn upper_layers_win_key_by_key() {
        let lower = read("contact = \"a\"\n[politeness]\nReq_Host_Per_Sec = 2.0\nper_host = 3");
        let both = lower.under(read("[politeness]\nrate = 5.0"));
        let polite = &both.politeness;
        assert_eq!((polite.rate, polite.per_host), (Some(5.0), Some(3)));
        assert_eq!(both.contact.as_deref(), Some("a"));
    }

    #[test]
    fn what_is_kept_reads_back_without_the_places_of_daemons() {
        let crawl =
            "seeds = [\"http://a/\"]\n[scope]\nkind = \"domain\"\n[store]\nrotate = \"2G\"\n";
        let daemons = "host = \"127.0.0.1\"\n[spider]\nport = 1\n[urlserver]\ndir = \"d\"\n[daemons]\nmode = \"pull\"";
        let config = read(&format!("{crawl}{daemons}"));
        assert_eq!(read(&config.kept().unwrap()), read(crawl));
    }
}
