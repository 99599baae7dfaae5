//! Describing a crawl before it begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orbweaver_config::{Config, Settings, Sources};
use orbweaver_crawldir::CrawlDir;
use orbweaver_intake::LinkRule;
use orbweaver_watch::log::ShowLine;

use super::Crawl;
use crate::error::{Error, Result};
use crate::fetchers::line::Elsewhere;
use crate::ring::{Fetching, Start, can_begin};

/// A crawl that has not begun.
///
/// Settings that are not given are those that the directory keeps from an earlier run, and otherwise the defaults of
/// [`Settings`].
pub struct CrawlBuilder {
    dir: PathBuf,
    sources: Sources,
    fetching: Fetching,
    is_demo: bool,
    show_log: Option<ShowLine>,
    rule: Option<Arc<dyn LinkRule>>,
}

impl CrawlBuilder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            sources: Sources::default(),
            fetching: Fetching::Here,
            is_demo: false,
            show_log: None,
            rule: None,
        }
    }

    /// Adds a URL to start from; `example.org/page` means https.
    pub fn seed(mut self, url: impl Into<String>) -> Self {
        self.sources.flags.seeds.push(url.into());
        self
    }

    /// Adds URLs to start from.
    pub fn seeds(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into);
        self.sources.flags.seeds.extend(urls);
        self
    }

    /// A page or mail address where site owners can reach you; it goes into the User-Agent header.
    pub fn contact(self, contact: impl Into<String>) -> Self {
        let contact = contact.into();
        self.configure(|config| config.contact = Some(contact))
    }

    /// Requests per second to one host, and to one IP address; 0 means no limit. 1 unless given.
    pub fn rate(self, per_second: f64) -> Self {
        self.configure(|config| config.politeness.rate = Some(per_second))
    }

    /// Links followed from a seed at most; 0 fetches the seeds only.
    pub fn depth(self, links: u16) -> Self {
        self.configure(|config| config.scope.depth = Some(links))
    }

    /// Ends when this many pages have been fetched, in all runs together; 0 means no limit.
    pub fn pages(self, pages: u64) -> Self {
        self.configure(|config| config.budget.pages = Some(pages))
    }

    /// Allows a private network, such as `127.0.0.0/8`, to be crawled.
    pub fn allow_net(self, network: impl Into<String>) -> Self {
        let network = network.into();
        self.configure(|config| {
            let allowed = config.fetch.allow_net.get_or_insert_default();
            allowed.push(network);
        })
    }

    /// Changes any setting, by the names that the configuration file has (`docs/formats/config.md`).
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.sources.flags);
        self
    }

    /// Takes settings from files and flags, in place of all that was given before. They are read again on a reload.
    pub fn sources(mut self, sources: Sources) -> Self {
        self.sources = sources;
        self
    }

    /// Decides about links beyond the scope: which are followed, and in which order.
    pub fn rule(mut self, rule: impl LinkRule + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Calls back with each line of the request log.
    pub fn on_request(mut self, show: impl Fn(&str) + Send + 'static) -> Self {
        self.show_log = Some(Box::new(show));
        self
    }

    /// Spiders and store are other processes; then it runs until it is told to stop.
    pub fn fetch_elsewhere(mut self, elsewhere: Elsewhere) -> Self {
        self.fetching = Fetching::Elsewhere(elsewhere);
        self
    }

    /// This run may be replaced by another one that says the same; an earlier one that did is replaced now.
    pub fn replaceable(mut self) -> Self {
        self.is_demo = true;
        self
    }

    /// The settings as the crawl would begin with them.
    pub fn settings(&self) -> Result<Settings> {
        let kept = CrawlDir::open(&self.dir).ok();
        Ok(self.plan(kept.as_ref())?.1)
    }

    /// Starts the crawl. When this fails nothing was fetched, and nothing was written to a directory that was not a crawl.
    pub fn start(self) -> Result<Crawl> {
        // Look before anything is created or locked: a mistake must not leave a directory behind.
        let earlier = CrawlDir::open(&self.dir).ok().filter(|_| !self.is_demo);
        self.plan(earlier.as_ref())?;
        let held = CrawlDir::hold(&self.dir)?;
        if self.is_demo {
            held.clear_demo()?;
        }
        // Read again now that nobody else can change it.
        let (config, settings, notices) = self.plan(Some(held.dir()))?;
        Crawl::start(Start {
            held,
            config,
            settings,
            sources: self.sources,
            fetching: self.fetching,
            notices,
            is_demo: self.is_demo,
            show_log: self.show_log,
            rule: self.rule,
        })
    }

    /// What is to be done, and what of it nobody has given now. Writes nothing.
    fn plan(&self, earlier: Option<&CrawlDir>) -> Result<(Config, Settings, Vec<String>)> {
        let stored = earlier.map_or(Ok(Config::default()), CrawlDir::stored_config)?;
        let kept = self.sources.kept(&stored)?;
        let config = self.sources.read(stored)?;
        let settings = Settings::new(&config)?;
        if settings.seeds.is_empty() {
            if is_filled(&self.dir) {
                CrawlDir::open(&self.dir)?;
            }
            return Err(Error::NoSeeds {
                kept: is_filled(&self.dir).then(|| self.dir.join("crawl.toml")),
            });
        }
        if matches!(self.fetching, Fetching::Here) {
            settings.demand_secrets()?;
        }
        can_begin(&settings)?;
        Ok((config, settings, kept))
    }
}

/// True when a directory is there and has something in it.
fn is_filled(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
