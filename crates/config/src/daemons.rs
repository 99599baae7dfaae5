//! What the daemons need of the configuration that all of them share, besides the settings of a crawl. How keys and
//! ports are opened is theirs to know.

mod spider;
mod store;
mod urlserver;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use orbweaver_model::{CrawlUrl, Limits};

pub use self::spider::SpiderSettings;
pub use self::store::StoreSettings;
pub use self::urlserver::UrlServerSettings;

use crate::config::Config;
use crate::mistakes::Mistakes;
use crate::parts::limits;

/// Who begins on the line between URL server and spider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The URL server sends orders as they are ready.
    #[default]
    Push,
    /// The spider requests orders.
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

impl Place {
    fn local(port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port,
        }
    }

    /// This place unless another one is given.
    fn or_given(self, host: Option<&String>, port: Option<u16>) -> Self {
        Self {
            host: host.cloned().unwrap_or(self.host),
            port: port.unwrap_or(self.port),
        }
    }

    /// A mistake when it is an address of another machine and there is no key. Where a name leads is seen when it is
    /// used.
    fn demand_key(&self, path: &str, config: &Config, wrong: &mut Mistakes<'_>) {
        let Ok(ip) = self.host.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return;
        };
        if !ip.to_canonical().is_loopback() && config.daemons.key_file.is_none() {
            let address = SocketAddr::new(ip, self.port);
            wrong.about(
                path,
                format_args!(
                    "{address} is not a loopback address and no key is set: \
                     give both sides the same Key_File, or use 127.0.0.1"
                ),
            );
        }
    }
}

/// What all daemons have in common.
struct Shared {
    key_file: Option<PathBuf>,
    mode: Mode,
    /// The longest time between two WORKING for one order.
    update: Duration,
    /// The time without a word about an order after which it is sent again.
    status_timeout: Duration,
    limits: Limits,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            key_file: None,
            mode: Mode::default(),
            update: Duration::from_secs(10),
            status_timeout: Duration::from_secs(60),
            limits: Limits {
                // A record is in memory whole, in three processes.
                max_body_bytes: 8 << 20,
                // The time for a fetch is all the time that there is.
                min_body_rate: 0,
                max_url_bytes: CrawlUrl::MAX_LEN,
                ..Limits::default()
            },
        }
    }
}

impl Shared {
    fn new(config: &Config, wrong: &mut Mistakes<'_>) -> Self {
        let usual = Self::default();
        let status = wrong.seconds(
            "urlserver.status_timeout_s",
            config.urlserver.status_timeout_s,
        );
        let update = wrong.seconds("spider.update_s", config.spider.update_s);
        let shared = Self {
            key_file: key_file(config, wrong),
            mode: mode(config, wrong),
            update: update.unwrap_or(usual.update),
            status_timeout: status.unwrap_or(usual.status_timeout),
            limits: daemon_limits(config, usual.limits, wrong),
        };
        let (path, must) = ("urlserver.status_timeout_s", "must be above 0");
        wrong.demand(!shared.status_timeout.is_zero(), path, must);
        let must = "must be at least 10 milliseconds";
        let enough = shared.update >= Duration::from_millis(10);
        wrong.demand(enough, "spider.update_s", must);
        shared
    }

    /// Bytes of a record's data: a body as received, and before it the head of the message.
    fn max_data(&self) -> usize {
        self.limits.max_body_bytes + self.limits.max_header_bytes
    }

    /// What is worth a warning although it can be run: an order that is sent again before its spider has to say a word
    /// about it.
    fn doubtful(&self, config: &Config) -> Option<String> {
        let written =
            config.spider.update_s.is_some() || config.urlserver.status_timeout_s.is_some();
        (written && self.status_timeout < 2 * self.update).then(|| {
            format!(
                "{} is {} s, less than twice {}, {} s: orders may be sent again while they are being fetched",
                config.origins.name("urlserver.status_timeout_s"),
                self.status_timeout.as_secs_f64(),
                config.origins.name("spider.update_s"),
                self.update.as_secs_f64(),
            )
        })
    }
}

/// Whether the file can be a key is seen when a port is opened with it.
fn key_file(config: &Config, wrong: &mut Mistakes<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(config.daemons.key_file.as_ref()?);
    if let Err(error) = std::fs::File::open(&path) {
        let message = format!("cannot read {}: {error}", path.display());
        wrong.about("daemons.key_file", message);
    }
    Some(path)
}

fn mode(config: &Config, wrong: &mut Mistakes<'_>) -> Mode {
    match config.daemons.mode.as_deref() {
        None => Mode::default(),
        Some("push") => Mode::Push,
        Some("pull") => Mode::Pull,
        Some(other) => {
            let message = format!("`{other}` is neither push nor pull");
            wrong.about("daemons.mode", message);
            Mode::default()
        }
    }
}

fn daemon_limits(config: &Config, usual: Limits, wrong: &mut Mistakes<'_>) -> Limits {
    let limits = limits(&config.limits, usual, wrong);
    // The length of a message with its head must fit in 32 bits.
    wrong.demand(
        limits.max_body_bytes <= 1 << 30,
        "limits.max_body_bytes",
        "must be at most 1073741824 for daemons",
    );
    Limits {
        max_decoded_bytes: limits.max_decoded_bytes.max(limits.max_body_bytes),
        ..limits
    }
}

fn memory(config: &Config, usual: usize, wrong: &mut Mistakes<'_>) -> usize {
    let memory = wrong.size("memory", config.memory.as_ref());
    let memory = memory.map_or(usual, |memory| {
        usize::try_from(memory).unwrap_or(usize::MAX)
    });
    wrong.demand(memory >= 16 << 20, "memory", "must be at least 16M");
    memory
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> Config {
        let (config, mistakes) = crate::reader::read(text, Path::new("d.toml"));
        assert_eq!(mistakes, [""; 0]);
        config
    }

    #[test]
    fn nothing_written_is_the_default() {
        let spider = SpiderSettings::new(&Config::default()).unwrap();
        let usual = SpiderSettings::default();
        assert_eq!(format!("{spider:?}"), format!("{usual:?}"));
        let store = StoreSettings::new(&Config::default()).unwrap();
        assert_eq!(
            format!("{store:?}"),
            format!("{:?}", StoreSettings::default())
        );
        let urlserver = UrlServerSettings::new(&Config::default()).unwrap();
        let usual = UrlServerSettings::default();
        assert_eq!(format!("{urlserver:?}"), format!("{usual:?}"));
    }

    #[test]
    fn a_mistake_has_the_name_that_was_written_and_all_are_told() {
        let config = read(
            "Timeout_Req = 0\nMemory = \"5\"\nworkers = 0\nTimeout_Idle = 0\ntimeout_header = 0\nReq_Host_Concurrent = 5000\n\
             Rotate = \"1\"\nContact = \"\u{e4}\"\nqueue_len = 0\nReq_Host_Per_Sec = -1.0\nMode = \"shove\"\n\
             Timeout_Update = 0\nMax_Doc_Size = 0\nallow_net = [\"10.0.0.0/99\"]\nca = \"no/such/file\"\n\
             Key_File = \"no/such/key\"\nconcurrency = 0\n[crawl.scope]\nkind = \"x\"",
        );
        let all = [
            "Timeout_Req (line 1 of d.toml) must be",
            "Memory (line 2 of d.toml) must be",
            "workers (line 3 of d.toml) must be",
            "no/such/key",
            "Max_Doc_Size (line 13 of d.toml) must be",
        ];
        let has = |error: crate::Error, parts: &[&str]| {
            let error = error.to_string();
            for part in parts.iter().chain(&all) {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
            let mut lines: Vec<&str> = error.lines().collect();
            lines.sort_unstable();
            let count = lines.len();
            lines.dedup();
            assert_eq!(lines.len(), count, "{error}");
        };
        has(
            SpiderSettings::new(&config).unwrap_err(),
            &[
                "Timeout_Idle (line 4 of d.toml) must be",
                "timeout_header (line 5 of d.toml) must be",
                "Contact (line 8 of d.toml) must be",
                "`shove`",
                "Timeout_Update (line 12 of d.toml) must be",
                "10.0.0.0/99",
                "no/such/file",
                "concurrency (line 17 of d.toml) must be",
            ],
        );
        has(
            StoreSettings::new(&config).unwrap_err(),
            &["Rotate (line 7 of d.toml) must be"],
        );
        has(
            UrlServerSettings::new(&config).unwrap_err(),
            &[
                "Req_Host_Concurrent (line 6 of d.toml) must be at most 4096",
                "queue_len (line 9 of d.toml) must be",
                "Req_Host_Per_Sec (line 10 of d.toml) must be",
                "kind (line 19 of d.toml): `x`",
            ],
        );
    }

    #[test]
    fn times_that_do_not_go_together_are_told_and_not_refused() {
        let told = |text: &str| SpiderSettings::new(&read(text)).unwrap().doubtful;
        let said = told("Timeout_Update = 1000\ntimeout_spider_status = 1.5").unwrap();
        assert!(
            said.starts_with(
                "timeout_spider_status (line 2 of d.toml) is 1.5 s, less than twice Timeout_Update"
            ),
            "{said}"
        );
        assert_eq!(
            told("Timeout_Update = 1000\ntimeout_spider_status = 2"),
            None
        );
        assert!(told("Timeout_Update = 31000").is_some());
        assert!(told("Timeout_Spider_Status = 19").is_some());
        assert_eq!(told(""), None);
    }

    #[test]
    fn the_units_are_those_of_the_documents() {
        let config = read("Timeout_Update = 2000\nTimeout_Req = 4000\nMax_Doc_Size = 1000");
        let spider = SpiderSettings::new(&config).unwrap();
        assert_eq!(spider.update, Duration::from_secs(2));
        assert_eq!(spider.limits.total_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.header_timeout, Duration::from_secs(4));
        assert_eq!(spider.limits.max_body_bytes, 1000);
        let store = StoreSettings::new(&config).unwrap();
        assert_eq!(store.max_data, 1000 + (64 << 10));
    }

    #[test]
    fn no_time_is_shorter_than_the_one_that_was_asked_for() {
        let limits = |text: &str| SpiderSettings::new(&read(text)).unwrap().limits;
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
    fn other_machines_need_a_key_before_anything_is_opened() {
        let config = read(
            "Spider_Host = \"192.0.2.7\"\nStore_Host = \"::ffff:10.0.0.1\"\nSpiders = [\"[2001:db8::1]:7\", \"x\"]",
        );
        let errors = [
            StoreSettings::new(&config).unwrap_err(),
            SpiderSettings::new(&config).unwrap_err(),
            UrlServerSettings::new(&config).unwrap_err(),
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
        assert!(StoreSettings::new(&config).is_ok() && SpiderSettings::new(&config).is_ok());
        assert_eq!(UrlServerSettings::new(&config).unwrap().spiders.len(), 2);
    }
}
