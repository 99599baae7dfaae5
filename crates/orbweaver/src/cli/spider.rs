//! `orbweaver spider`: the spider as a process of its own.

use std::path::PathBuf;

use anyhow::Result;

use orbweaver_config::{Config, SpiderSettings};
use orbweaver_daemons::spider;

use crate::exit::Ending;

/// Run a spider daemon: fetches what URL servers order, sends the results to a store
///
/// Listens on Spider_Host:Spider_Port; URL servers connect and send one order per line. Each URL is fetched once, only
/// from the address in the order, and its result goes to the store. WORKING is sent at least every Timeout_Update,
/// DONE when the store has the result on disk. While the store is not reachable, results are kept and no fetch begins.
///
/// Shuts down cleanly on SIGINT or SIGTERM, with code 3: no more orders are accepted, and requests in flight have six seconds.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Settings:
  Spider_Host     where to listen                                     127.0.0.1
  Spider_Port     for URL servers; 0 takes a free port                8701
  Mode            push: URL servers send orders at any time;          push
                  pull: they send as many as GET requested
  Timeout_Update  longest time between two WORKING, milliseconds      10000
  Timeout_Req     timeout of a whole fetch, milliseconds              30000
  Timeout_Connect to a connection, and again to its TLS handshake,    5000
                  milliseconds
  Timeout_Header  from the request to the end of the response head,   Timeout_Req
                  milliseconds
  Timeout_Idle    longest silence inside a body, milliseconds         Timeout_Req
  Max_Doc_Size    bytes of a body that are stored                     8388608
  Store_Host      where the store listens                             127.0.0.1
  Store_Port      its port for records                                8702
  Key_File        a file of at least 32 secret bytes, mode 600, the   none
                  same for all daemons; without it only loopback
                  is listened on and connected to
  Concurrency     concurrent fetches, including those that wait       512
                  for the store; further orders wait, with WORKING
  Memory          bytes of documents in memory                        256M
  Workers         threads that fetch                                  half the cores
  User_Agent      the whole User-Agent header                         orbweaver/VERSION
  Contact         how site owners can reach you                       none
  Allow_Net       private networks that may be contacted              []
  Ca              a PEM file with more certificate authorities        none
  Insecure        accept any certificate                              false

The file is TOML, as for `orbweaver crawl -c`; all daemons can share one. Names may be in lower case;
docs/formats/config.md has the sections and keys that they stand for.

Example, by hand:
  printf 'Allow_Net = [\"127.0.0.0/8\"]\\n' > spider.toml
  orbweaver store -c spider.toml & orbweaver spider -c spider.toml &
  printf '1 1 127.0.0.1 http://127.0.0.1:8000/\\n' | nc -q 5 127.0.0.1 8701")]
pub(crate) struct SpiderArgs {
    /// The TOML file with the settings
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl SpiderArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        spider::run(SpiderSettings::new(&Config::read(&self.config)?)?)?;
        Ok(Ending::Interrupted)
    }
}
