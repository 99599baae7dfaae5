//! What the user wrote for the daemons: one flat TOML file by the documents' names, which all of them can
//! share. What each daemon needs of it is validated here, every mistake reported at once.

mod keys;
mod mistakes;
mod urlserver;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;

use orbweaver_model::{CrawlUrl, Limits};

pub use self::mistakes::both;
pub use self::urlserver::UrlServerSettings;

use self::keys::Names;
use self::mistakes::{Mistakes, bytes, half_the_cores};
use crate::config::Config;
use crate::error::Error;

/// A configuration as written. Every key is optional here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
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
    /// Milliseconds to a connection, and again to its TLS handshake.
    #[serde(alias = "Timeout_Connect")]
    timeout_connect: Option<u64>,
    /// Milliseconds from the request to the end of the head.
    #[serde(alias = "Timeout_Header")]
    timeout_header: Option<u64>,
    /// Milliseconds of silence inside a body.
    #[serde(alias = "Timeout_Idle")]
    timeout_idle: Option<u64>,
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
    /// How the keys above are written in the file.
    #[serde(skip)]
    names: Names,
    /// What in the file could not be read.
    #[serde(skip)]
    mistakes: Vec<String>,
}

/// Who begins on the line between URL server and spider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The URL server sends orders as they are ready.
    #[default]
    Push,
    /// The spider asks for orders.
    Pull,
}

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A name or an address.
    pub host: String,
    /// The port; 0 takes a free one.
    pub port: u16,
}

/// A store as it is to be run.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The file with the secret that all daemons share.
    pub key_file: Option<PathBuf>,
    /// Where spiders are listened to.
    pub records: Place,
    /// Where the doc index is listened to.
    pub results: Place,
    /// Where everything is kept.
    pub dir: PathBuf,
    /// Bytes of data that are kept of one record.
    pub max_data: usize,
    /// Bytes at which a WARC file is closed.
    pub rotate: u64,
    /// Bytes of records that are received at once.
    pub memory: usize,
    /// Threads.
    pub workers: usize,
}

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
    /// Networks that may be asked although they are private.
    pub allow_net: Vec<IpNet>,
    /// Any certificate is accepted.
    pub insecure: bool,
    /// Further certificate authorities.
    pub roots_pem: Vec<u8>,
    /// What is worth a warning.
    pub doubtful: Option<String>,
}

impl DaemonConfig {
    /// Reads a file. What is wrong with single keys is told together with all else that is wrong.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|error| Error::File {
            path: path.to_owned(),
            mistakes: vec![error.to_string()],
        })
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        text.parse().map(keys::read)
    }

    /// What a store needs.
    pub fn store(&self) -> Result<StoreSettings, Error> {
        let mut wrong = Mistakes::of(self);
        let key_file = self.key_file(&mut wrong);
        let host = self.store_host.as_deref();
        let records = place(host, self.store_port, STORE_PORT);
        let results = place(host, self.results_port, RESULTS_PORT);
        let settings = StoreSettings {
            dir: self.dir.clone().unwrap_or_else(|| PathBuf::from("store")),
            max_data: self.limits(&mut wrong).max_data(),
            rotate: wrong.size(self.rotate.as_deref(), 1 << 30, "rotate"),
            memory: self.memory(128 << 20, &mut wrong),
            workers: self.workers(&mut wrong),
            key_file,
            records,
            results,
        };
        settings.records.demand_key(self, &mut wrong);
        let rotates = settings.rotate >= 1 << 20;
        wrong.demand(rotates, "rotate", "must be at least 1M");
        wrong.unless(settings)
    }

    /// What a spider needs.
    pub fn spider(&self) -> Result<SpiderSettings, Error> {
        let mut wrong = Mistakes::of(self);
        let key_file = self.key_file(&mut wrong);
        let (host, store) = (self.spider_host.as_deref(), self.store_host.as_deref());
        let listen = place(host, self.spider_port, SPIDER_PORT);
        let store = place(store, self.store_port, STORE_PORT);
        let (user_agent, has_contact) = self.user_agent(&mut wrong);
        let settings = SpiderSettings {
            key_file,
            listen,
            store,
            mode: self.mode(&mut wrong),
            update: self.update(&mut wrong),
            limits: self.limits(&mut wrong).0,
            concurrency: self.concurrency(&mut wrong),
            workers: self.workers(&mut wrong),
            memory: self.memory(256 << 20, &mut wrong),
            user_agent,
            has_contact,
            allow_net: self.allow_net(&mut wrong),
            insecure: self.insecure.unwrap_or(false),
            roots_pem: self.roots(&mut wrong),
            doubtful: self.doubtful(),
        };
        settings.listen.demand_key(self, &mut wrong);
        settings.store.demand_key(self, &mut wrong);
        wrong.unless(settings)
    }

    /// What is worth a warning although it can be run: an order that is sent again before its spider has to say a word
    /// about it.
    fn doubtful(&self) -> Option<String> {
        let update = Duration::from_millis(self.timeout_update.unwrap_or(UPDATE_MS));
        let status = self.timeout_spider_status.unwrap_or(STATUS_S);
        let written = ["timeout_update", "timeout_spider_status"]
            .iter()
            .any(|key| self.names.has(key));
        (written && status < 2.0 * update.as_secs_f64()).then(|| {
            format!(
                "{} ({status} s) is below twice {} ({} ms): orders may be sent again while they are being fetched",
                self.names.of("timeout_spider_status"),
                self.names.of("timeout_update"),
                update.as_millis(),
            )
        })
    }

    fn mode(&self, wrong: &mut Mistakes<'_>) -> Mode {
        match self.mode.as_deref().unwrap_or("push") {
            "push" => Mode::Push,
            "pull" => Mode::Pull,
            other => {
                wrong.about("mode", format_args!("`{other}` is neither push nor pull"));
                Mode::Push
            }
        }
    }

    /// Whether the file can be a key is seen when a port is opened with it.
    fn key_file(&self, wrong: &mut Mistakes<'_>) -> Option<PathBuf> {
        let path = self.key_file.clone()?;
        if let Err(error) = std::fs::File::open(&path) {
            let shown = path.display();
            wrong.about("key_file", format_args!("cannot read {shown}: {error}"));
        }
        Some(path)
    }

    fn update(&self, wrong: &mut Mistakes<'_>) -> Duration {
        let millis = self.timeout_update.unwrap_or(UPDATE_MS);
        let must = "must be at least 10 (milliseconds)";
        wrong.demand(millis >= 10, "timeout_update", must);
        Duration::from_millis(millis)
    }

    fn limits(&self, wrong: &mut Mistakes<'_>) -> FetchLimits {
        let usual = Limits::default();
        let total = wrong.millis(self.timeout_req, usual.total_timeout, "timeout_req");
        let usual = usual.with_total_timeout(total);
        let connect = usual.connect_timeout;
        let body = self.max_doc_size.unwrap_or(MAX_DOC_SIZE);
        // The length of a message with its head must fit in 32 bits.
        wrong.demand(
            (1..=1 << 30).contains(&body),
            "max_doc_size",
            "must be from 1 to 1073741824",
        );
        FetchLimits(Limits {
            connect_timeout: wrong.millis(self.timeout_connect, connect, "timeout_connect"),
            header_timeout: wrong.millis(self.timeout_header, total, "timeout_header"),
            idle_timeout: wrong.millis(self.timeout_idle, total, "timeout_idle"),
            max_body_bytes: body,
            max_decoded_bytes: usual.max_decoded_bytes.max(body),
            // Timeout_Req is the limit.
            min_body_rate: 0,
            max_url_bytes: CrawlUrl::MAX_LEN,
            ..usual
        })
    }

    fn memory(&self, usual: u64, wrong: &mut Mistakes<'_>) -> usize {
        let memory = wrong.size(self.memory.as_deref(), usual, "memory");
        wrong.demand(memory >= 16 << 20, "memory", "must be at least 16M");
        bytes(memory)
    }

    fn workers(&self, wrong: &mut Mistakes<'_>) -> usize {
        wrong.demand(self.workers != Some(0), "workers", "must be at least 1");
        self.workers.unwrap_or_else(half_the_cores)
    }

    fn concurrency(&self, wrong: &mut Mistakes<'_>) -> usize {
        let some = self.concurrency != Some(0);
        wrong.demand(some, "concurrency", "must be at least 1");
        self.concurrency.unwrap_or(512)
    }

    fn allow_net(&self, wrong: &mut Mistakes<'_>) -> Vec<IpNet> {
        wrong.networks(self.allow_net.as_deref().unwrap_or_default(), "allow_net")
    }

    fn user_agent(&self, wrong: &mut Mistakes<'_>) -> (String, bool) {
        let usual = concat!("orbweaver/", env!("CARGO_PKG_VERSION"));
        let name = self.user_agent.as_deref().unwrap_or(usual);
        let sendable = |text: &str| text.bytes().all(|it| (b' '..0x7f).contains(&it));
        let must = "must be printable ASCII";
        wrong.demand(sendable(name) && !name.is_empty(), "user_agent", must);
        let contact = self.contact.as_deref().unwrap_or_default();
        wrong.demand(sendable(contact), "contact", must);
        let agent = match &self.contact {
            Some(contact) => format!("{name} (+{contact})"),
            None => name.to_owned(),
        };
        let has_contact = self.contact.is_some() || agent.contains(['@', '+']);
        (agent, has_contact)
    }

    fn roots(&self, wrong: &mut Mistakes<'_>) -> Vec<u8> {
        let Some(path) = &self.ca else {
            return Vec::new();
        };
        std::fs::read(path).unwrap_or_else(|error| {
            wrong.about(
                "ca",
                format_args!("cannot read {}: {error}", path.display()),
            );
            Vec::new()
        })
    }
}

/// Timeout_Update in milliseconds when it is not given.
const UPDATE_MS: u64 = 10_000;
/// Timeout_Spider_Status in seconds when it is not given.
const STATUS_S: f64 = 60.0;
/// Bytes of a document when nothing is said: a record is in memory whole, in three processes.
const MAX_DOC_SIZE: usize = 8 << 20;

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

fn place(host: Option<&str>, port: Option<u16>, usual: u16) -> Place {
    Place {
        host: host.unwrap_or("127.0.0.1").to_owned(),
        port: port.unwrap_or(usual),
    }
}

impl Place {
    /// A mistake when it is an address of another machine and there is no key. Where a name leads is seen when it is
    /// used.
    fn demand_key(&self, config: &DaemonConfig, wrong: &mut Mistakes<'_>) {
        let Ok(ip) = self.host.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return;
        };
        if !ip.to_canonical().is_loopback() && config.key_file.is_none() {
            let address = SocketAddr::new(ip, self.port);
            wrong.add(format_args!(
                "{address} is not a loopback address and no key is set: \
                 give both sides the same Key_File, or use 127.0.0.1"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DaemonConfig {
        DaemonConfig::parse(text).unwrap()
    }

    #[test]
    fn a_mistake_has_the_name_that_was_written_and_all_are_told() {
        let config = read(
            "Store_Prot = 1\nspider_port = \"x\"\nTimeout_Req = 5\ntimeout_req = 6\nMemory = 5\nworkers = 0\n\
             Timeout_Idle = 0\ntimeout_header = 0\nReq_Host_Concurrent = 5000\nRotate = \"1\"\nContact = \"\u{e4}\"\n\
             nonsense = 1\nqueue_len = 0\nReq_Host_Per_Sec = -1.0\n[crawl.scope]\nknid = \"any\"\ndepth = \"x\"\n[crawl.fetch]\nworkers = 1",
        );
        let both = [
            "Store_Prot is not a setting; Store_Port is",
            "spider_port = \"x\" must be a port",
            "Timeout_Req and timeout_req are the same",
            "Memory = 5 must be a size",
            "workers must be",
            "nonsense is not a setting",
            "[crawl.scope] knid: unknown key",
            "[crawl.scope] depth: the text \"x\", expected a whole number",
        ];
        let spider = config.spider().unwrap_err().to_string();
        for part in both.iter().chain(&[
            "Timeout_Idle must be",
            "timeout_header must be",
            "Contact must be",
        ]) {
            assert!(spider.contains(part), "{part} is missing in: {spider}");
        }
        let store = config.store().unwrap_err().to_string();
        for part in both.iter().chain(&["Rotate must be"]) {
            assert!(store.contains(part), "{part} is missing in: {store}");
        }
        let urlserver = config.urlserver().unwrap_err().to_string();
        let own = [
            "Req_Host_Concurrent must be",
            "queue_len must be",
            "Req_Host_Per_Sec must be",
        ];
        for part in both.iter().chain(&own) {
            assert!(
                urlserver.contains(part),
                "{part} is missing in: {urlserver}"
            );
        }
        assert!(
            !spider.contains("Rotate") && !spider.contains("u16"),
            "{spider}"
        );
    }

    #[test]
    fn times_that_do_not_go_together_are_told_and_not_refused() {
        let told = |text: &str| read(text).spider().unwrap().doubtful;
        let said = told("Timeout_Update = 1000\ntimeout_spider_status = 1.5").unwrap();
        assert!(
            said.contains("timeout_spider_status (1.5 s) is below twice Timeout_Update (1000 ms)"),
            "{said}"
        );
        assert_eq!(
            told("Timeout_Update = 1000\ntimeout_spider_status = 2"),
            None
        );
        assert!(
            told("Timeout_Update = 31000").is_some()
                && told("Timeout_Spider_Status = 19").is_some()
        );
        assert_eq!(told(""), None);
    }

    #[test]
    fn no_time_is_shorter_than_the_one_that_was_asked_for() {
        let limits = |text: &str| read(text).spider().unwrap().limits;
        let long = limits("Timeout_Req = 60000");
        let minute = Duration::from_secs(60);
        assert_eq!((long.header_timeout, long.idle_timeout), (minute, minute));
        let set = limits(
            "Timeout_Req = 60000\nTimeout_Header = 7000\nTimeout_Idle = 90000\nTimeout_Connect = 20000",
        );
        let seconds =
            [set.header_timeout, set.idle_timeout, set.connect_timeout].map(|it| it.as_secs());
        assert_eq!(seconds, [7, 90, 20]);
    }

    #[test]
    fn the_names_of_the_design_are_understood_and_so_are_small_letters() {
        let mut by_design = read(
            "Spider_Host = \"127.0.0.1\"\nSpider_Port = 1\nTimeout_Update = 2\nTimeout_Req = 3\nMax_Doc_Size = 4\n\
             Store_Host = \"127.0.0.2\"\nStore_Port = 5\nResults_Port = 6\nKey_File = \"k\"\nDir = \"d\"\nMode = \"pull\"",
        );
        let mut small = read(
            "spider_host = \"127.0.0.1\"\nspider_port = 1\ntimeout_update = 2\ntimeout_req = 3\nmax_doc_size = 4\n\
             store_host = \"127.0.0.2\"\nstore_port = 5\nresults_port = 6\nkey_file = \"k\"\ndir = \"d\"\nmode = \"pull\"",
        );
        assert!(by_design.mistakes.is_empty());
        (by_design.names, small.names) = Default::default();
        assert_eq!(by_design, small);
        assert_eq!(small.timeout_req, Some(3));
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let config = read(
            "Mode = \"shove\"\nmemory = \"much\"\nTimeout_Req = 0\nTimeout_Update = 0\nMax_Doc_Size = 0\n\
             allow_net = [\"10.0.0.0/99\"]\nca = \"no/such/file\"\nKey_File = \"no/such/key\"\nconcurrency = 0",
        );
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
        let config = read("Timeout_Update = 2000\nTimeout_Req = 4000\nMax_Doc_Size = 1000");
        let spider = config.spider().unwrap();
        assert_eq!(spider.update, Duration::from_secs(2));
        assert_eq!(spider.limits.total_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.header_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.max_body_bytes, 1000);
        assert_eq!(config.store().unwrap().max_data, 1000 + (64 << 10));
    }

    #[test]
    fn other_machines_need_a_key_before_anything_is_opened() {
        let config = read(
            "Spider_Host = \"192.0.2.7\"\nStore_Host = \"::ffff:10.0.0.1\"\nSpiders = [\"[2001:db8::1]:7\", \"x\"]",
        );
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
        let config = read(local);
        assert!(config.store().is_ok() && config.spider().is_ok() && config.urlserver().is_ok());
    }
}
