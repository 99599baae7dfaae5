//! What a URL server needs of the configuration that all daemons share.

use std::path::PathBuf;
use std::time::Duration;

use super::mistakes::Mistakes;
use super::{DaemonConfig, Mode, Place, RESULTS_PORT, SPIDER_PORT, STATUS_S, place};
use crate::config::Config;
use crate::error::Error;
use crate::units;

/// Host queues that fit in the number of an order, whose 20 bits of it the line protocol fixes.
const MAX_QUEUES: usize = 1 << 20;
/// Requests at once to one host that fit in the number of an order, in 12 bits.
const MAX_PER_HOST: u16 = 1 << 12;

/// A URL server as it is to be run; the settings of its crawl are beside it.
#[derive(Clone, Debug)]
pub struct UrlServerSettings {
    /// The directory of the doc index.
    pub dir: PathBuf,
    /// The file with the secret that all daemons share.
    pub key_file: Option<PathBuf>,
    /// Where spiders listen.
    pub spiders: Vec<Place>,
    /// Who begins.
    pub mode: Mode,
    /// Timeout_Spider_Status.
    pub status_timeout: Duration,
    /// Where the store tells results; without it DONE is all that is known of a document.
    pub store: Option<Place>,
    /// Bytes of one result.
    pub max_data: usize,
    /// What is worth a warning.
    pub doubtful: Option<String>,
}

impl DaemonConfig {
    /// What a URL server needs besides the settings of its crawl.
    pub fn urlserver(&self) -> Result<UrlServerSettings, Error> {
        let mut wrong = Mistakes::of(self);
        let first = place(self.spider_host.as_deref(), self.spider_port, SPIDER_PORT);
        let mut spiders = Vec::new();
        if self.spider_host.is_some() || self.spider_port.is_some() || self.spiders.is_none() {
            spiders.push(first);
        }
        for text in self.spiders.iter().flatten() {
            let parts = text.rsplit_once(':');
            match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
                Some((host, port)) => spiders.push(Place {
                    host: host.trim_matches(['[', ']']).to_owned(),
                    port,
                }),
                None => wrong.about("spiders", format_args!("`{text}` is not host:port")),
            }
        }
        let asks_store = self.store_host.is_some() || self.results_port.is_some();
        let results = place(self.store_host.as_deref(), self.results_port, RESULTS_PORT);
        let seconds = self.timeout_spider_status.unwrap_or(STATUS_S);
        let status_timeout = units::seconds_to(seconds).filter(|span| !span.is_zero());
        wrong.demand(
            status_timeout.is_some(),
            "timeout_spider_status",
            "must be a number of seconds above 0",
        );
        let names_none = spiders.is_empty() && self.spiders.iter().all(Vec::is_empty);
        wrong.demand(!names_none, "spiders", "must not be empty");
        self.demand_sense(&mut wrong);
        for place in spiders.iter().chain(asks_store.then_some(&results)) {
            place.demand_key(self, &mut wrong);
        }
        let settings = UrlServerSettings {
            dir: (self.index_dir.clone()).unwrap_or_else(|| PathBuf::from("urlserver")),
            key_file: self.key_file(&mut wrong),
            spiders,
            mode: self.mode(&mut wrong),
            status_timeout: status_timeout.unwrap_or_default(),
            store: asks_store.then_some(results),
            max_data: self.limits(&mut wrong).max_data(),
            doubtful: self.doubtful(),
        };
        wrong.unless(settings)
    }

    /// What would otherwise be found out under the names that a crawl has for it.
    fn demand_sense(&self, wrong: &mut Mistakes<'_>) {
        let (count, len) = (self.queue_count, self.queue_len);
        let fits = count.is_none_or(|count| (1..=MAX_QUEUES).contains(&count));
        wrong.demand(fits, "queue_count", "must be from 1 to 1048576");
        wrong.demand(len != Some(0), "queue_len", "must be at least 1");
        let window = self.req_host_concurrent;
        let fits = window.is_none_or(|window| (1..=MAX_PER_HOST).contains(&window));
        wrong.demand(fits, "req_host_concurrent", "must be from 1 to 4096");
        let rate = self.req_host_per_sec.unwrap_or(1.0);
        wrong.demand(
            rate == 0.0 || (1e-6..=1e6).contains(&rate),
            "req_host_per_sec",
            "must be 0 (no limit) or a number of requests per second up to a million",
        );
        let memory = wrong.size(self.memory.as_deref(), 512 << 20, "memory");
        let must = "must be at least 64M for a URL server";
        wrong.demand(memory >= 64 << 20, "memory", must);
        self.workers(wrong);
        self.concurrency(wrong);
        self.allow_net(wrong);
        self.user_agent(wrong);
    }

    /// The table `crawl` alone.
    pub fn table(&self) -> &Config {
        &self.crawl
    }

    /// The settings of the crawl: what is in the table `crawl`, and over it what the documents have names for.
    pub fn crawl(&self) -> Config {
        let mut upper = Config {
            user_agent: self.user_agent.clone(),
            contact: self.contact.clone(),
            memory: self.memory.clone(),
            ..Config::default()
        };
        upper.politeness.queue_count = self.queue_count;
        upper.politeness.queue_len = self.queue_len;
        upper.politeness.per_host = self.req_host_concurrent;
        upper.politeness.rate = self.req_host_per_sec;
        upper.fetch.allow_net = self.allow_net.clone();
        upper.fetch.concurrency = self.concurrency;
        upper.fetch.workers = self.workers;
        upper.limits.max_body_bytes = self.max_doc_size;
        let seconds = |millis: Option<u64>| millis.map(|millis| millis as f64 / 1000.0);
        upper.limits.total_timeout_s = seconds(self.timeout_req);
        upper.limits.connect_timeout_s = seconds(self.timeout_connect);
        upper.limits.header_timeout_s = seconds(self.timeout_header);
        upper.limits.idle_timeout_s = seconds(self.timeout_idle);
        self.crawl.clone().under(upper)
    }
}
