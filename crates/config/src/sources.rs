//! Where the settings of a run come from, so that they can be read again while it runs.

use std::path::PathBuf;

use crate::config::Config;
use crate::error::Error;
use crate::units;

/// The layers above what the crawl directory keeps.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file that was named on the command line.
    pub file: Option<PathBuf>,
    /// The flags; they win over the file.
    pub flags: Config,
}

impl Sources {
    /// Lays the file and the flags over what the crawl directory keeps.
    pub fn read(&self, stored: Config) -> Result<Config, Error> {
        Ok(with_all_seeds(stored, self.given()?))
    }

    /// What of the kept settings the user should be told, for nobody has given them now.
    pub fn kept(&self, stored: &Config) -> Result<Vec<String>, Error> {
        Ok(kept(stored, &self.given()?))
    }

    /// The file, and the flags over it.
    fn given(&self) -> Result<Config, Error> {
        let file = match &self.file {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        Ok(file.under(self.flags.clone()))
    }
}

/// What an earlier run has left in force that nobody has typed now, where it limits, weakens or prolongs the crawl.
fn kept(stored: &Config, given: &Config) -> Vec<String> {
    let mut kept = Vec::new();
    let mut note = |is_kept: bool, what: String| kept.extend(is_kept.then_some(what));
    let on = |stored: Option<bool>, given: Option<bool>| stored == Some(true) && given.is_none();
    note(
        on(stored.fetch.insecure, given.fetch.insecure),
        "--insecure, any TLS certificate is accepted (--no-insecure turns it off)".into(),
    );
    note(
        on(stored.recrawl.on, given.recrawl.on),
        "--recrawl, the crawl runs until it is stopped (--no-recrawl turns it off)".into(),
    );
    let stored = &stored.budget;
    let pages = stored
        .pages
        .filter(|pages| *pages > 0 && given.budget.pages.is_none());
    if let Some(pages) = pages {
        note(
            true,
            format!("--pages {pages} (--pages 0 removes the limit)"),
        );
    }
    let time = stored.time.as_ref().filter(|_| given.budget.time.is_none());
    if let Some(time) = time.filter(|time| units::duration(time).is_ok_and(|time| !time.is_zero()))
    {
        note(true, format!("--time {time} (--time 0 removes the limit)"));
    }
    let said = |setting: String| format!("kept from an earlier run: {setting}");
    kept.into_iter().map(said).collect()
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
