//! What the user wrote: configuration file, stored settings of a crawl directory, and flags, all in one
//! shape that can be laid over one another. What the program needs is in `settings.rs`.
//!
//! Every key is optional here; the defaults live with the structs that use them.

mod mistakes;

pub(crate) use self::mistakes::in_plain_words;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::Settings;

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
    /// How often servers are asked.
    pub politeness: PolitenessConfig,
    /// How connections are made.
    pub fetch: FetchConfig,
    /// When a failed attempt is repeated.
    pub retry: RetryConfig,
    /// How pages are kept.
    pub store: StoreConfig,
    /// How the log of requests is kept.
    pub log: LogConfig,
    /// How much is taken from any server.
    pub limits: LimitsConfig,
}

macro_rules! layer {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$inner])* pub $field: Option<$type>,)*
        }

        impl $name {
            fn under(self, upper: Self) -> Self {
                Self { $($field: upper.$field.or(self.$field),)* }
            }
        }
    };
}

layer! {
    /// What belongs to the crawl.
    ScopeConfig {
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
}

layer! {
    /// When a family of URLs is taken for endless.
    TrapsConfig {
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
}

layer! {
    /// When to stop.
    BudgetConfig {
        /// Pages in all.
        pages: u64,
        /// Pages of one host.
        #[serde(alias = "max_pages_per_host")]
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
}

layer! {
    /// When pages are visited again.
    RecrawlConfig {
        /// Go on for ever, visiting each page again when it is likely to have changed.
        on: bool,
        /// The shortest time between two visits, such as "1h".
        min: String,
        /// The longest time between two visits, such as "720h".
        max: String,
        /// Ask with HEAD first.
        head_first: bool,
    }
}

layer! {
    /// How often servers are asked.
    PolitenessConfig {
        /// Requests per second to one host; 0 means no limit.
        #[serde(alias = "Req_Host_Per_Sec", alias = "req_host_per_sec")]
        rate: f64,
        /// Requests at once to one host.
        #[serde(alias = "Req_Host_Concurrent", alias = "req_host_concurrent")]
        per_host: u16,
        /// Requests per second to one IP address; 0 means no limit. The same as `rate` unless given.
        ip_rate: f64,
        /// Requests at once to one IP address.
        per_ip: u16,
        /// Hosts that are served at the same time.
        #[serde(alias = "Queue_Count")]
        queue_count: usize,
        /// URLs held in RAM for one host.
        #[serde(alias = "Queue_Len")]
        queue_len: usize,
        /// URLs of one batch on one IP address beyond which its hosts are passed over in the next batch.
        ip_batch_max: usize,
        /// The gap of a host is at least this many times its response time; 0 means that this does not count.
        slow_factor: f64,
        /// The longest gap in seconds that slowness and failures of a host make.
        slow_max_s: f64,
    }
}

layer! {
    /// How connections are made.
    FetchConfig {
        /// Fetches at once.
        concurrency: usize,
        /// Threads that fetch and read pages.
        workers: usize,
        /// Networks that may be asked although they are private.
        allow_net: Vec<String>,
        /// Accept any certificate.
        insecure: bool,
        /// The DNS server, as address:port.
        resolver: String,
        /// A PEM file with further certificate authorities.
        ca: String,
    }
}

layer! {
    /// When a failed attempt is repeated.
    RetryConfig {
        /// Attempts at a URL whose server is overloaded (429, 503).
        busy_attempts: u8,
        /// Attempts at a URL that failed otherwise but may come back.
        attempts: u8,
        /// Seconds before the first repetition; each further one waits four times as long.
        delay_s: f64,
        /// Seconds that a crawl with nothing else to do waits for a repetition.
        patience_s: f64,
    }
}

layer! {
    /// How pages are kept.
    StoreConfig {
        /// Size at which a WARC file is closed, such as "1G".
        rotate: String,
    }
}

layer! {
    /// How the log is kept.
    LogConfig {
        /// Size at which a file of the log is closed, such as "64M".
        rotate: String,
        /// Files of the log that are kept; 0 writes none.
        files: u32,
    }
}

layer! {
    /// How much is taken from any server.
    LimitsConfig {
        /// Seconds to a TCP connection, and again to a finished TLS handshake.
        connect_timeout_s: f64,
        /// Seconds from the request to the end of the response head.
        header_timeout_s: f64,
        /// Seconds of silence inside a body.
        idle_timeout_s: f64,
        /// Seconds after which a fetch is over.
        #[serde(alias = "Timeout_Req_s")]
        total_timeout_s: f64,
        /// Bytes of all heads of one response.
        max_header_bytes: usize,
        /// Header lines of one head.
        max_headers: usize,
        /// Bytes of a body that are kept.
        #[serde(alias = "Max_Doc_Size")]
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
}

impl Config {
    /// Reads a file; unknown keys and wrong types are named all at once, with their lines.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let (config, mut wrong) = mistakes::read(&text);
        if wrong.is_empty() {
            return Ok(config);
        }
        // What could be read may be wrong in other ways, which are named along.
        wrong.extend(Settings::mistakes(&config));
        Err(Error::File {
            path: path.to_owned(),
            mistakes: wrong,
        })
    }

    /// This configuration with another laid over it.
    pub fn under(self, upper: Self) -> Self {
        Self {
            seeds: if upper.seeds.is_empty() {
                self.seeds
            } else {
                upper.seeds
            },
            user_agent: upper.user_agent.or(self.user_agent),
            contact: upper.contact.or(self.contact),
            memory: upper.memory.or(self.memory),
            scope: self.scope.under(upper.scope),
            traps: self.traps.under(upper.traps),
            budget: self.budget.under(upper.budget),
            recrawl: self.recrawl.under(upper.recrawl),
            politeness: self.politeness.under(upper.politeness),
            fetch: self.fetch.under(upper.fetch),
            retry: self.retry.under(upper.retry),
            store: self.store.under(upper.store),
            log: self.log.under(upper.log),
            limits: self.limits.under(upper.limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_layers_win_key_by_key() {
        let lower: Config =
            toml::from_str("contact = \"a\"\n[politeness]\nReq_Host_Per_Sec = 2.0\nper_host = 3")
                .unwrap();
        let upper: Config = toml::from_str("[politeness]\nrate = 5.0").unwrap();
        let both = lower.under(upper);
        assert_eq!(
            (both.politeness.rate, both.politeness.per_host),
            (Some(5.0), Some(3))
        );
        assert_eq!(both.contact.as_deref(), Some("a"));
    }

    #[test]
    fn the_names_of_the_design_are_understood_and_so_are_ours() {
        let by_design: Config = toml::from_str(
            "[politeness]\nQueue_Count = 3\nQueue_Len = 4\nReq_Host_Concurrent = 2\nReq_Host_Per_Sec = 0.5",
        )
        .unwrap();
        let in_small_letters: Config = toml::from_str(
            "[politeness]\nqueue_count = 3\nqueue_len = 4\nreq_host_concurrent = 2\nreq_host_per_sec = 0.5",
        )
        .unwrap();
        let ours: Config = toml::from_str(
            "[politeness]\nqueue_count = 3\nqueue_len = 4\nper_host = 2\nrate = 0.5",
        )
        .unwrap();
        assert_eq!(by_design, ours);
        assert_eq!(in_small_letters, ours);
        assert_eq!(
            (ours.politeness.queue_count, ours.politeness.queue_len),
            (Some(3), Some(4))
        );
        assert_eq!(
            (ours.politeness.per_host, ours.politeness.rate),
            (Some(2), Some(0.5))
        );
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let error = toml::from_str::<Config>("[politeness]\nratte = 5.0")
            .unwrap_err()
            .to_string();
        assert!(error.contains("ratte") && error.contains("rate"), "{error}");
    }

    #[test]
    fn a_stored_configuration_reads_back() {
        let config: Config =
            toml::from_str("seeds = [\"http://a/\"]\n[scope]\nkind = \"domain\"").unwrap();
        assert_eq!(
            toml::from_str::<Config>(&toml::to_string(&config).unwrap()).unwrap(),
            config
        );
    }
}
