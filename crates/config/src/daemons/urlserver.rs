//! What a URL server needs besides the settings of its crawl.

use std::path::PathBuf;
use std::time::Duration;

use super::{Mode, Place, Shared};
use crate::config::Config;
use crate::error::Error;
use crate::mistakes::Mistakes;
use crate::settings;

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
    /// The time without a word about an order after which it is sent again.
    pub status_timeout: Duration,
    /// Where the store tells results; without it DONE is all that is known of a document.
    pub store: Option<Place>,
    /// Bytes of one result.
    pub max_data: usize,
    /// What is worth a warning.
    pub doubtful: Option<String>,
}

impl Default for UrlServerSettings {
    fn default() -> Self {
        let shared = Shared::default();
        Self {
            dir: "urlserver".into(),
            spiders: vec![Place::local(8701)],
            mode: shared.mode,
            status_timeout: shared.status_timeout,
            store: None,
            max_data: shared.max_data(),
            doubtful: None,
            key_file: shared.key_file,
        }
    }
}

impl UrlServerSettings {
    /// Validates a configuration, that of its crawl included.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let mut wrong = Mistakes::new(&config.origins);
        let usual = Self::default();
        let (own, store) = (&config.urlserver, &config.store);
        let asks_store = store.host.is_some() || store.results_port.is_some();
        let results = Place::local(8703).or_given(store.host.as_ref(), store.results_port);
        let shared = Shared::new(config, &mut wrong);
        let settings = Self {
            dir: own.dir.as_ref().map_or(usual.dir, PathBuf::from),
            spiders: spiders(config, &mut wrong),
            mode: shared.mode,
            status_timeout: shared.status_timeout,
            store: asks_store.then_some(results),
            max_data: shared.max_data(),
            doubtful: shared.doubtful(config),
            key_file: shared.key_file,
        };
        if let Some(store) = &settings.store {
            store.demand_key("store.host", config, &mut wrong);
        }
        wrong.add(settings::mistakes(config));
        wrong.unless(settings)
    }
}

/// The one of `Spider_Host`, unless there are only others, and those.
fn spiders(config: &Config, wrong: &mut Mistakes<'_>) -> Vec<Place> {
    let (first, others) = (&config.spider, config.urlserver.spiders.as_ref());
    let mut spiders = Vec::new();
    if first.host.is_some() || first.port.is_some() || others.is_none() {
        let place = Place::local(8701).or_given(first.host.as_ref(), first.port);
        place.demand_key("spider.host", config, wrong);
        spiders.push(place);
    }
    let path = "urlserver.spiders";
    wrong.demand(
        !spiders.is_empty() || others.is_some_and(|others| !others.is_empty()),
        path,
        "must not be empty",
    );
    for text in others.into_iter().flatten() {
        let parts = text.rsplit_once(':');
        match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
            Some((host, port)) => {
                let host = host.trim_matches(['[', ']']).to_owned();
                let place = Place { host, port };
                place.demand_key(path, config, wrong);
                spiders.push(place);
            }
            None => wrong.about(path, format_args!("`{text}` is not host:port")),
        }
    }
    spiders
}
