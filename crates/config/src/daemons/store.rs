//! What a store needs.

use std::path::PathBuf;

use super::{Place, Shared, memory};
use crate::config::Config;
use crate::error::Error;
use crate::mistakes::Mistakes;
use crate::parts::half_the_cores;

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

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            key_file: None,
            records: Place::local(8702),
            results: Place::local(8703),
            dir: "store".into(),
            max_data: Shared::default().max_data(),
            rotate: 1 << 30,
            memory: 128 << 20,
            workers: half_the_cores(),
        }
    }
}

impl StoreSettings {
    /// Validates a configuration.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let mut wrong = Mistakes::new(&config.origins);
        let usual = Self::default();
        let given = &config.store;
        let shared = Shared::new(config, &mut wrong);
        let rotate = wrong.size("store.rotate", given.rotate.as_ref());
        let settings = Self {
            records: (usual.records).or_given(given.host.as_ref(), given.port),
            results: (usual.results).or_given(given.host.as_ref(), given.results_port),
            dir: given.dir.as_ref().map_or(usual.dir, PathBuf::from),
            max_data: shared.max_data(),
            rotate: rotate.unwrap_or(usual.rotate),
            memory: memory(config, usual.memory, &mut wrong),
            workers: config.fetch.workers.unwrap_or(usual.workers),
            key_file: shared.key_file,
        };
        let must = "must be at least 1M";
        wrong.demand(settings.rotate >= 1 << 20, "store.rotate", must);
        wrong.demand(settings.workers > 0, "fetch.workers", "must be at least 1");
        settings
            .records
            .demand_key("store.host", config, &mut wrong);
        wrong.unless(settings)
    }
}
