//! `orbweaver urlserver`: the URL server as a process of its own.

use std::path::PathBuf;

use anyhow::Result;
use tracing::{info, warn};

use orbweaver_config::{Config, Sources, UrlServerSettings};
use orbweaver_daemons::start_log;
use orbweaver_ring::{Crawl, Elsewhere, Error};

use crate::exit::{Ending, Fatal};
use crate::progress::Show;
use crate::run::run;

/// Run the URL server daemon: doc index, queues and politeness; orders URLs from spiders
///
/// Connects to the spiders and sends them one URL per line; robots.txt and the rate limits per host and IP address are
/// handled here. Results come from the store; their links go into the doc index. An order without a status message for
/// Timeout_Spider_Status is sent again; if a spider is not reachable, the others get its orders. It runs until it is stopped:
/// on SIGINT, SIGTERM or `orbweaver ctl Index_Dir stop` it shuts down cleanly, with code 3.
///
/// `status`, `why`, `outcomes` and `ctl` work on Index_Dir; `get` and `check` on the directory of the store.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Settings:
  Spider_Host            where the spider listens                        127.0.0.1
  Spider_Port            its port                                        8701
  Spiders                more spiders, as [\"host:port\", …]              []
  Mode                   push: orders are sent when they are ready;      push
                         pull: as many as spiders requested with GET
  Timeout_Spider_Status  seconds without a message after which an       60
                         order is sent again; at least twice the
                         spider's Timeout_Update
  Queue_Count            hosts with a queue at the same time             2048
  Queue_Len              URLs held in RAM per host                       64
  Req_Host_Concurrent    concurrent orders per host                      1
  Req_Host_Per_Sec       orders per second per host                      1
  Store_Host             where the store listens; without Store_Host     none
                         and Results_Port no results are read, and
                         only DONE is known of a document
  Results_Port           the store's port for results                    8703
  Key_File               a file of at least 32 secret bytes, mode 600,   none
                         the same for all daemons
  Index_Dir              the directory of the doc index                  urlserver
  Concurrency            concurrent orders in total; how many of them    512
                         one spider gets follows from its answers
  seeds, [scope], …      any setting of `orbweaver crawl -c`

The file is TOML, as for `orbweaver crawl -c`; all daemons can share one. Names may be in lower case;
docs/formats/config.md has the sections and keys that they stand for.

Example:
  printf 'Store_Host = \"127.0.0.1\"\\n' > daemons.toml
  orbweaver store -c daemons.toml & orbweaver spider -c daemons.toml &
  orbweaver urlserver -c daemons.toml https://example.org")]
pub(crate) struct UrlserverArgs {
    /// Seeds, in addition to those in the file
    #[arg(value_name = "URL")]
    urls: Vec<String>,

    /// The TOML file with the settings
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl UrlserverArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let own = UrlServerSettings::new(&Config::read(&self.config)?)?;
        let flags = Config {
            seeds: self.urls,
            ..Config::default()
        };
        let sources = Sources {
            file: Some(self.config),
            flags,
        };
        let elsewhere =
            Elsewhere::new(&own).map_err(|error| Fatal::input(format!("Key_File: {error}")))?;
        let crawl = Crawl::builder(&own.dir)
            .sources(sources)
            .fetch_elsewhere(elsewhere);
        // Look before anything is said: a mistake is all that there is to say.
        crawl.settings().map_err(in_words)?;
        start_log();
        for spider in &own.spiders {
            info!(host = spider.host, port = spider.port, "a spider");
        }
        if let Some(doubt) = &own.doubtful {
            warn!("{doubt}");
        }
        if own.store.is_none() {
            warn!("no store is set: no links are read, and no robots.txt is obeyed");
        }
        run(crawl, Show::NOTHING, true)
    }
}

/// What can be written when there is nothing to crawl.
fn in_words(error: Error) -> anyhow::Error {
    match error {
        Error::NoSeeds { .. } => Fatal::input("nothing to crawl: give a URL, or seeds in the file"),
        error => error.into(),
    }
}
