//! What a spider needs.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use orbweaver_model::{HostRequest, Limits, PerHost};

use super::{Mode, Place, Shared, memory};
use crate::config::Config;
use crate::error::Error;
use crate::mistakes::Mistakes;
use crate::parts::user_agent;
use crate::rules::{Usual, rules};
use crate::settings::Settings;

/// A spider as it is to be run.
#[derive(Clone, Debug)]
pub struct SpiderSettings {
    /// The file with the secret that all daemons share.
    pub key_file: Option<PathBuf>,
    /// Where URL servers are listened to.
    pub listen: Place,
    /// Where results are sent.
    pub store: Place,
    /// Who begins.
    pub mode: Mode,
    /// The longest time between two WORKING for one order.
    pub update: Duration,
    /// How much is taken from any server.
    pub limits: Limits,
    /// Fetches at once.
    pub concurrency: usize,
    /// Threads that fetch.
    pub workers: usize,
    /// Bytes of documents in memory.
    pub memory: usize,
    /// The whole User-Agent header.
    pub user_agent: String,
    /// The User-Agent says how its owner can be reached.
    pub has_contact: bool,
    /// Private networks that may be contacted.
    pub allow_net: Vec<IpNet>,
    /// Any certificate is accepted.
    pub insecure: bool,
    /// Further certificate authorities.
    pub roots_pem: Vec<u8>,
    /// What requests to single hosts say and take.
    pub requests: PerHost<HostRequest>,
    /// What is worth a warning.
    pub doubtful: Option<String>,
}

impl Default for SpiderSettings {
    fn default() -> Self {
        let crawl = Settings::default();
        let shared = Shared::default();
        Self {
            key_file: shared.key_file,
            listen: Place::local(8701),
            store: Place::local(8702),
            mode: shared.mode,
            update: shared.update,
            limits: shared.limits,
            concurrency: crawl.concurrency,
            workers: crawl.workers,
            memory: 256 << 20,
            user_agent: crawl.user_agent,
            has_contact: crawl.has_contact,
            allow_net: crawl.allow_net,
            insecure: crawl.insecure,
            roots_pem: Vec::new(),
            requests: PerHost::default(),
            doubtful: None,
        }
    }
}

impl SpiderSettings {
    /// Validates a configuration.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let mut wrong = Mistakes::new(&config.origins);
        let usual = Self::default();
        let (own, store, fetch) = (&config.spider, &config.store, &config.fetch);
        let (user_agent, has_contact) = user_agent(config, &mut wrong);
        let shared = Shared::new(config, &mut wrong);
        let crawl = Settings::default();
        let all = Usual {
            limits: &shared.limits,
            traps: &crawl.traps,
            address: None,
        };
        let hosts = rules(config, &all, &mut wrong);
        wrong.add(hosts.missing);
        let settings = Self {
            requests: hosts.requests,
            listen: usual.listen.or_given(own.host.as_ref(), own.port),
            store: usual.store.or_given(store.host.as_ref(), store.port),
            mode: shared.mode,
            update: shared.update,
            doubtful: shared.doubtful(config),
            limits: shared.limits,
            concurrency: fetch.concurrency.unwrap_or(usual.concurrency),
            workers: fetch.workers.unwrap_or(usual.workers),
            memory: memory(config, usual.memory, &mut wrong),
            user_agent,
            has_contact,
            allow_net: wrong.networks("fetch.allow_net", fetch.allow_net.as_ref()),
            insecure: fetch.insecure.unwrap_or(usual.insecure),
            roots_pem: roots(config, &mut wrong),
            key_file: shared.key_file,
        };
        let must = "must be at least 1";
        wrong.demand(settings.concurrency > 0, "fetch.concurrency", must);
        wrong.demand(settings.workers > 0, "fetch.workers", must);
        settings
            .listen
            .demand_key("spider.host", config, &mut wrong);
        settings.store.demand_key("store.host", config, &mut wrong);
        wrong.unless(settings)
    }
}

fn roots(config: &Config, wrong: &mut Mistakes<'_>) -> Vec<u8> {
    let Some(path) = &config.fetch.ca else {
        return Vec::new();
    };
    let read = std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"));
    wrong.take("fetch.ca", read).unwrap_or_default()
}
