//! What the user wrote for the daemons: one flat TOML file by the documents' names, which all of them can
//! share. What each daemon needs of it is validated here, every mistake reported at once.

mod mistakes;
mod urlserver;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::IpNet;
use serde::Deserialize;

use orbweaver_model::{CrawlUrl, Limits};
use orbweaver_wire::{Dialect, Key, Port, PortOptions, Service};

use self::mistakes::{all_right, bytes, demand, half_the_cores, networks};
use crate::config::Config;
use crate::exit::Fatal;
use crate::units;

/// A configuration as written. Every key is optional here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DaemonConfig {
    /// Where the spider listens for URL servers.
    #[serde(alias = "Spider_Host")]
    spider_host: Option<String>,
    #[serde(alias = "Spider_Port")]
    spider_port: Option<u16>,
    /// Where the store listens for spiders.
    #[serde(alias = "Store_Host")]
    store_host: Option<String>,
    #[serde(alias = "Store_Port")]
    store_port: Option<u16>,
    /// Where the store listens for the doc index.
    #[serde(alias = "Results_Port")]
    results_port: Option<u16>,
    /// A file with the secret that all daemons share.
    #[serde(alias = "Key_File")]
    key_file: Option<PathBuf>,
    /// push or pull.
    #[serde(alias = "Mode")]
    mode: Option<String>,
    /// Milliseconds between two WORKING for one order.
    #[serde(alias = "Timeout_Update")]
    timeout_update: Option<u64>,
    /// Milliseconds after which a fetch is over.
    #[serde(alias = "Timeout_Req")]
    timeout_req: Option<u64>,
    /// Bytes of a body that are kept.
    #[serde(alias = "Max_Doc_Size")]
    max_doc_size: Option<usize>,
    /// The directory of the store.
    #[serde(alias = "Dir")]
    dir: Option<PathBuf>,
    /// Size at which a WARC file is closed, such as "1G".
    #[serde(alias = "Rotate")]
    rotate: Option<String>,
    /// Fetches at once.
    #[serde(alias = "Concurrency")]
    concurrency: Option<usize>,
    /// Threads that fetch, or that compress.
    #[serde(alias = "Workers")]
    workers: Option<usize>,
    /// The byte budget for documents, such as "256M".
    #[serde(alias = "Memory")]
    memory: Option<String>,
    /// The whole User-Agent header.
    #[serde(alias = "User_Agent")]
    user_agent: Option<String>,
    /// How a site's owner can reach you; becomes part of the User-Agent.
    #[serde(alias = "Contact")]
    contact: Option<String>,
    /// Networks that may be asked although they are private.
    #[serde(alias = "Allow_Net")]
    allow_net: Option<Vec<String>>,
    /// A PEM file with further certificate authorities.
    #[serde(alias = "Ca")]
    ca: Option<PathBuf>,
    /// Accept any certificate.
    #[serde(alias = "Insecure")]
    insecure: Option<bool>,
    /// Further spiders of a URL server, as host:port.
    #[serde(alias = "Spiders")]
    spiders: Option<Vec<String>>,
    /// Seconds without a word after which an order is sent again.
    #[serde(alias = "Timeout_Spider_Status")]
    timeout_spider_status: Option<f64>,
    #[serde(alias = "Queue_Count")]
    queue_count: Option<usize>,
    #[serde(alias = "Queue_Len")]
    queue_len: Option<usize>,
    #[serde(alias = "Req_Host_Concurrent")]
    req_host_concurrent: Option<u16>,
    #[serde(alias = "Req_Host_Per_Sec")]
    req_host_per_sec: Option<f64>,
    /// The directory of the doc index.
    #[serde(alias = "Index_Dir")]
    index_dir: Option<PathBuf>,
    /// What belongs to the crawl, and all else that a crawl has settings for.
    #[serde(alias = "Crawl")]
    crawl: Config,
}

/// Where a service is, and how it is spoken.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) number: u16,
    pub(crate) port: Port,
}

/// A store as it is to be run.
#[derive(Clone, Debug)]
pub(crate) struct StoreSettings {
    pub(crate) records: Place,
    pub(crate) results: Place,
    pub(crate) dir: PathBuf,
    /// Bytes of data that are kept of one record.
    pub(crate) max_data: usize,
    pub(crate) rotate: u64,
    pub(crate) memory: usize,
    pub(crate) workers: usize,
}

/// A spider as it is to be run.
#[derive(Clone, Debug)]
pub(crate) struct SpiderSettings {
    pub(crate) listen: Place,
    pub(crate) store: Place,
    pub(crate) dialect: Dialect,
    pub(crate) update: Duration,
    pub(crate) limits: Limits,
    pub(crate) concurrency: usize,
    pub(crate) workers: usize,
    pub(crate) memory: usize,
    pub(crate) user_agent: String,
    pub(crate) has_contact: bool,
    pub(crate) allow_net: Vec<IpNet>,
    pub(crate) insecure: bool,
    pub(crate) roots_pem: Vec<u8>,
}

impl DaemonConfig {
    /// Reads a file; an unknown key or a wrong type is an error that names the line.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fatal::input(format!("cannot read {shown}: {error}")))?;
        toml::from_str(&text)
            .map_err(|error| Fatal::input(format!("{shown} is not a valid configuration: {error}")))
    }

    /// What a store needs.
    pub(crate) fn store(&self) -> Result<StoreSettings> {
        let mut wrong = Vec::new();
        let key = self.key(&mut wrong);
        let host = self.store_host.as_deref();
        let records = place(
            host,
            self.store_port,
            STORE_PORT,
            Service::Store,
            key.as_ref(),
        );
        let results = place(
            host,
            self.results_port,
            RESULTS_PORT,
            Service::Results,
            key.as_ref(),
        );
        let settings = StoreSettings {
            dir: self.dir.clone().unwrap_or_else(|| PathBuf::from("store")),
            max_data: self.limits(&mut wrong).max_data(),
            rotate: self.size(&self.rotate, 1 << 30, &mut wrong),
            memory: bytes(self.size(&self.memory, 128 << 20, &mut wrong)),
            workers: self.workers.unwrap_or_else(half_the_cores),
            records: records?,
            results: results?,
        };
        settings.records.demand_key(self, &mut wrong);
        demand(
            settings.workers > 0,
            "workers must be at least 1",
            &mut wrong,
        );
        demand(
            settings.rotate >= 1 << 20,
            "rotate must be at least 1M",
            &mut wrong,
        );
        demand(
            settings.memory >= 16 << 20,
            "memory must be at least 16M",
            &mut wrong,
        );
        all_right(settings, wrong)
    }

    /// What a spider needs.
    pub(crate) fn spider(&self) -> Result<SpiderSettings> {
        let mut wrong = Vec::new();
        let key = self.key(&mut wrong);
        let (host, store) = (self.spider_host.as_deref(), self.store_host.as_deref());
        let listen = place(
            host,
            self.spider_port,
            SPIDER_PORT,
            Service::Line,
            key.as_ref(),
        );
        let store = place(
            store,
            self.store_port,
            STORE_PORT,
            Service::Store,
            key.as_ref(),
        );
        let (user_agent, has_contact) = self.user_agent(&mut wrong);
        let settings = SpiderSettings {
            listen: listen?,
            store: store?,
            dialect: self.dialect(&mut wrong),
            update: Duration::from_millis(self.timeout_update.unwrap_or(10_000)),
            limits: self.limits(&mut wrong).0,
            concurrency: self.concurrency.unwrap_or(512),
            workers: self.workers.unwrap_or_else(half_the_cores),
            memory: bytes(self.size(&self.memory, 256 << 20, &mut wrong)),
            user_agent,
            has_contact,
            allow_net: networks(self.allow_net.as_deref().unwrap_or_default(), &mut wrong),
            insecure: self.insecure.unwrap_or(false),
            roots_pem: self.roots(&mut wrong),
        };
        settings.listen.demand_key(self, &mut wrong);
        settings.store.demand_key(self, &mut wrong);
        demand(
            settings.workers > 0,
            "workers must be at least 1",
            &mut wrong,
        );
        demand(
            settings.concurrency > 0,
            "concurrency must be at least 1",
            &mut wrong,
        );
        demand(
            settings.memory >= 16 << 20,
            "memory must be at least 16M",
            &mut wrong,
        );
        let update = settings.update >= Duration::from_millis(10);
        demand(
            update,
            "Timeout_Update must be at least 10 (milliseconds)",
            &mut wrong,
        );
        all_right(settings, wrong)
    }

    fn dialect(&self, wrong: &mut Vec<String>) -> Dialect {
        match self.mode.as_deref().unwrap_or("push") {
            "push" => Dialect::Push,
            "pull" => Dialect::Pull,
            other => {
                wrong.push(format!("Mode = `{other}` is neither push nor pull"));
                Dialect::Push
            }
        }
    }

    fn key(&self, wrong: &mut Vec<String>) -> Option<Key> {
        let path = self.key_file.as_deref()?;
        Key::read(path)
            .map_err(|error| wrong.push(error.to_string()))
            .ok()
    }

    fn limits(&self, wrong: &mut Vec<String>) -> FetchLimits {
        let usual = Limits::default();
        let total = self
            .timeout_req
            .map_or(usual.total_timeout, Duration::from_millis);
        demand(
            !total.is_zero(),
            "Timeout_Req must be at least 1 (millisecond)",
            wrong,
        );
        let body = self.max_doc_size.unwrap_or(usual.max_body_bytes);
        // The length of a message with its head must fit in 32 bits.
        demand(
            body <= 1 << 30,
            "Max_Doc_Size must be at most 1073741824",
            wrong,
        );
        demand(body > 0, "Max_Doc_Size must be at least 1", wrong);
        FetchLimits(Limits {
            total_timeout: total,
            connect_timeout: usual.connect_timeout.min(total),
            header_timeout: usual.header_timeout.min(total),
            idle_timeout: usual.idle_timeout.min(total),
            max_body_bytes: body,
            max_decoded_bytes: usual.max_decoded_bytes.max(body),
            max_url_bytes: CrawlUrl::MAX_LEN,
            ..usual
        })
    }

    fn size(&self, given: &Option<String>, usual: u64, wrong: &mut Vec<String>) -> u64 {
        let Some(text) = given.as_deref() else {
            return usual;
        };
        units::size(text).unwrap_or_else(|error| {
            wrong.push(error);
            usual
        })
    }

    fn user_agent(&self, wrong: &mut Vec<String>) -> (String, bool) {
        let usual = concat!("orbweaver/", env!("CARGO_PKG_VERSION"));
        let name = self.user_agent.as_deref().unwrap_or(usual);
        let agent = match &self.contact {
            Some(contact) => format!("{name} (+{contact})"),
            None => name.to_owned(),
        };
        let sendable = !agent.is_empty() && agent.bytes().all(|it| (b' '..0x7f).contains(&it));
        demand(
            sendable,
            "user agent and contact must be printable ASCII",
            wrong,
        );
        let has_contact = self.contact.is_some() || agent.contains(['@', '+']);
        (agent, has_contact)
    }

    fn roots(&self, wrong: &mut Vec<String>) -> Vec<u8> {
        let Some(path) = &self.ca else {
            return Vec::new();
        };
        std::fs::read(path).unwrap_or_else(|error| {
            wrong.push(format!("cannot read {}: {error}", path.display()));
            Vec::new()
        })
    }
}

/// The ports when none are given.
const SPIDER_PORT: u16 = 8701;
const STORE_PORT: u16 = 8702;
const RESULTS_PORT: u16 = 8703;

struct FetchLimits(Limits);

impl FetchLimits {
    /// Bytes of a record's data: a body as received, and before it the head of the message.
    fn max_data(&self) -> usize {
        self.0.max_body_bytes + self.0.max_header_bytes
    }
}

fn place(
    host: Option<&str>,
    number: Option<u16>,
    usual: u16,
    service: Service,
    key: Option<&Key>,
) -> Result<Place> {
    Ok(Place {
        host: host.unwrap_or("127.0.0.1").to_owned(),
        number: number.unwrap_or(usual),
        port: Port::new(service, key, PortOptions::default()).context("the key cannot be used")?,
    })
}

impl Place {
    /// A mistake when it is an address of another machine and there is no key. With a key file that cannot be read
    /// that is the mistake.
    fn demand_key(&self, config: &DaemonConfig, wrong: &mut Vec<String>) {
        if let Err(error) = self.port.check(&self.host, self.number)
            && config.key_file.is_none()
        {
            wrong.push(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_design_are_understood_and_so_are_small_letters() {
        let by_design: DaemonConfig = toml::from_str(
            "Spider_Host = \"127.0.0.1\"\nSpider_Port = 1\nTimeout_Update = 2\nTimeout_Req = 3\nMax_Doc_Size = 4\n\
             Store_Host = \"127.0.0.2\"\nStore_Port = 5\nResults_Port = 6\nKey_File = \"k\"\nDir = \"d\"\nMode = \"pull\"",
        )
        .unwrap();
        let small: DaemonConfig = toml::from_str(
            "spider_host = \"127.0.0.1\"\nspider_port = 1\ntimeout_update = 2\ntimeout_req = 3\nmax_doc_size = 4\n\
             store_host = \"127.0.0.2\"\nstore_port = 5\nresults_port = 6\nkey_file = \"k\"\ndir = \"d\"\nmode = \"pull\"",
        )
        .unwrap();
        assert_eq!(by_design, small);
        assert_eq!(small.timeout_req, Some(3));
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let config: DaemonConfig = toml::from_str(
            "Mode = \"shove\"\nmemory = \"much\"\nTimeout_Req = 0\nTimeout_Update = 0\nMax_Doc_Size = 0\n\
             allow_net = [\"10.0.0.0/99\"]\nca = \"no/such/file\"\nKey_File = \"no/such/key\"\nconcurrency = 0",
        )
        .unwrap();
        let error = config.spider().unwrap_err().to_string();
        for part in [
            "shove",
            "much",
            "Timeout_Req",
            "Timeout_Update",
            "Max_Doc_Size",
            "10.0.0.0/99",
            "no/such/file",
            "no/such/key",
            "concurrency",
        ] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }

    #[test]
    fn the_units_are_those_of_the_documents() {
        let config: DaemonConfig =
            toml::from_str("Timeout_Update = 2000\nTimeout_Req = 4000\nMax_Doc_Size = 1000")
                .unwrap();
        let spider = config.spider().unwrap();
        assert_eq!(spider.update, Duration::from_secs(2));
        assert_eq!(spider.limits.total_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.header_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.max_body_bytes, 1000);
        assert_eq!(config.store().unwrap().max_data, 1000 + (64 << 10));
    }

    #[test]
    fn other_machines_need_a_key_before_anything_is_opened() {
        let config: DaemonConfig = toml::from_str(
            "Spider_Host = \"192.0.2.7\"\nStore_Host = \"::ffff:10.0.0.1\"\nSpiders = [\"[2001:db8::1]:7\", \"x\"]",
        )
        .unwrap();
        let errors = [
            config.store().unwrap_err(),
            config.spider().unwrap_err(),
            config.urlserver().unwrap_err(),
        ]
        .map(|error| error.to_string());
        for (error, parts) in errors.iter().zip([
            &["[::ffff:10.0.0.1]:8702"][..],
            &["192.0.2.7:8701", "[::ffff:10.0.0.1]:8702"],
            &[
                "192.0.2.7:8701",
                "[2001:db8::1]:7",
                "[::ffff:10.0.0.1]:8703",
                "`x`",
            ],
        ]) {
            for part in parts {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
        }
        let local =
            "Spider_Host = \"127.0.0.9\"\nStore_Host = \"localhost\"\nSpiders = [\"[::1]:7\"]";
        let config: DaemonConfig = toml::from_str(local).unwrap();
        assert!(config.store().is_ok() && config.spider().is_ok() && config.urlserver().is_ok());
    }
}
