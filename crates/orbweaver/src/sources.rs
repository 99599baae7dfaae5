//! Where the settings of a run come from, so that they can be read again while it runs.

use std::path::PathBuf;

use anyhow::Result;

use crate::config::Config;
use crate::crawl_dir::CrawlDir;
use crate::daemon::config::DaemonConfig;
use crate::exit::Fatal;

/// The layers above what the crawl directory keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The file that was named on the command line.
    pub(crate) file: Option<PathBuf>,
    /// It is the file of the daemons, of which the settings of a crawl are a part.
    pub(crate) of_daemons: bool,
    /// The flags; they win over the file.
    pub(crate) flags: Config,
}

impl Sources {
    /// Reads all layers. A directory that is no crawl yet keeps nothing.
    pub(crate) fn read(&self, dir: Option<&CrawlDir>) -> Result<Config> {
        let file = match &self.file {
            Some(path) if self.of_daemons => DaemonConfig::read(path)?.crawl(),
            Some(path) => Config::read(path).map_err(|error| Fatal::input(format!("{error:#}")))?,
            None => Config::default(),
        };
        let stored = match dir {
            Some(dir) => dir.stored_config()?,
            None => Config::default(),
        };
        Ok(with_all_seeds(stored, file.under(self.flags.clone())))
    }
}

/// Seeds add up over the runs of a crawl; everything else is as last given.
fn with_all_seeds(stored: Config, given: Config) -> Config {
    let mut seeds = stored.seeds.clone();
    seeds.extend(
        given
            .seeds
            .iter()
            .filter(|seed| !stored.seeds.contains(seed))
            .cloned(),
    );
    Config {
        seeds,
        ..stored.under(given)
    }
}
