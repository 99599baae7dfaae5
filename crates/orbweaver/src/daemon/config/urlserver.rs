//! What a URL server needs of the configuration that all daemons share.

use std::path::PathBuf;

use anyhow::Result;

use orbweaver_wire::Service;
use orbweaver_wire::line::{MAX_ACTIVE, MAX_SLOTS};

use super::mistakes::{all_right, demand};
use super::{DaemonConfig, Place, RESULTS_PORT, SPIDER_PORT, place};
use crate::config::Config;
use crate::daemon::urlserver::Elsewhere;
use crate::units;

/// A URL server as it is to be run; the settings of its crawl are beside it.
#[derive(Clone, Debug)]
pub(crate) struct UrlServerSettings {
    pub(crate) dir: PathBuf,
    pub(crate) elsewhere: Elsewhere,
}

impl DaemonConfig {
    /// What a URL server needs besides the settings of its crawl.
    pub(crate) fn urlserver(&self) -> Result<UrlServerSettings> {
        let mut wrong = Vec::new();
        let key = self.key(&mut wrong);
        let first = place(
            self.spider_host.as_deref(),
            self.spider_port,
            SPIDER_PORT,
            Service::Line,
            key.as_ref(),
        )?;
        let mut spiders = Vec::new();
        if self.spider_host.is_some() || self.spider_port.is_some() || self.spiders.is_none() {
            spiders.push(first.clone());
        }
        for text in self.spiders.iter().flatten() {
            let parts = text.rsplit_once(':');
            match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
                Some((host, number)) => spiders.push(Place {
                    host: host.trim_matches(['[', ']']).to_owned(),
                    number,
                    port: first.port.clone(),
                }),
                None => wrong.push(format!("`{text}` in Spiders is not host:port")),
            }
        }
        let asks_store = self.store_host.is_some() || self.results_port.is_some();
        let results = place(
            self.store_host.as_deref(),
            self.results_port,
            RESULTS_PORT,
            Service::Results,
            key.as_ref(),
        )?;
        let seconds = self.timeout_spider_status.unwrap_or(60.0);
        let status_timeout = units::seconds_to(seconds).filter(|span| !span.is_zero());
        demand(
            status_timeout.is_some(),
            "Timeout_Spider_Status must be a number of seconds above 0",
            &mut wrong,
        );
        let names_none = spiders.is_empty() && self.spiders.iter().all(Vec::is_empty);
        demand(!names_none, "Spiders must not be empty", &mut wrong);
        demand(
            self.queue_count
                .is_none_or(|count| count <= MAX_SLOTS as usize),
            "Queue_Count must be at most 1048576",
            &mut wrong,
        );
        demand(
            self.req_host_concurrent
                .is_none_or(|count| count <= MAX_ACTIVE),
            "Req_Host_Concurrent must be at most 4096",
            &mut wrong,
        );
        for place in spiders.iter().chain(asks_store.then_some(&results)) {
            place.demand_key(self, &mut wrong);
        }
        let settings = UrlServerSettings {
            dir: (self.index_dir.clone()).unwrap_or_else(|| PathBuf::from("urlserver")),
            elsewhere: Elsewhere {
                spiders,
                dialect: self.dialect(&mut wrong),
                status_timeout: status_timeout.unwrap_or_default(),
                store: asks_store.then_some(results),
                max_data: self.limits(&mut wrong).max_data(),
            },
        };
        all_right(settings, wrong)
    }

    /// The settings of the crawl: what is in the table `crawl`, and over it what the documents have names for.
    pub(crate) fn crawl(&self) -> Config {
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
        self.crawl.clone().under(upper)
    }
}
