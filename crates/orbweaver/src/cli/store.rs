//! `orbweaver store`: the store as a process of its own.

use std::path::PathBuf;

use anyhow::Result;

use orbweaver_config::{Config, StoreSettings};
use orbweaver_daemons::store;

use crate::exit::Ending;

/// Run the store daemon: archives what spiders send, and passes results on
///
/// Listens on Store_Host:Store_Port for spiders, archives each record in WARC files with a CDXJ index, adds it to a journal,
/// and acknowledges it when both are on disk. Listens on Results_Port for the URL server, which receives every result in
/// order. A crash loses nothing that was acknowledged. `get` and `check` work on its directory, also while it runs.
///
/// Shuts down cleanly on SIGINT or SIGTERM, with code 3.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Settings:
  Store_Host     where to listen                                      127.0.0.1
  Store_Port     for spiders; 0 takes a free port                     8702
  Results_Port   for the URL server; 0 takes a free port              8703
  Key_File       a file of at least 32 secret bytes, mode 600, the    none
                 same for all daemons; without it only loopback
                 is listened on
  Dir            the directory of archive and journal                 store
  Max_Doc_Size   bytes of a body that are stored                      8388608
  Rotate         size at which a WARC file is closed                  1G
  Memory         bytes of records in memory                           128M
  Workers        threads                                              half the cores

The file is TOML, as for `orbweaver crawl -c`; all daemons can share one. Names may be in lower case;
docs/formats/config.md has the sections and keys that they stand for.

Example:
  printf 'Dir = \"/var/lib/orbweaver\"\\n' > store.toml
  orbweaver store -c store.toml")]
pub(crate) struct StoreArgs {
    /// The TOML file with the settings
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl StoreArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        store::run(&StoreSettings::new(&Config::read(&self.config)?)?)?;
        Ok(Ending::Interrupted)
    }
}
