//! The one way in for links that no page brought: seeds, operators' additions, and whatever a program finds elsewhere.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Weak};

use orbweaver_intake::Canonicalizer;
use orbweaver_model::{Clock, CrawlUrl, Event, Link, LinkKind, NewLink};

use crate::error::{Error, Result};
use crate::harvest::Harvest;

/// Links of one event; a longer offer becomes several.
const GROUP: usize = 1000;

/// Takes links into a crawl while it runs.
///
/// What is offered is judged by scope, traps and the user's rule like the links of a page, and each URL is fetched once however
/// often it is offered. An offer is answered when it is on the disk itself: a URL that was taken is not lost, whatever
/// happens then. Offers wait while the doc index is behind, so that a source that is faster than the crawl is slowed down.
#[derive(Clone)]
pub struct Inlet {
    /// Gone when the crawl is: whoever keeps an inlet does not keep the doc index open.
    harvest: Weak<Harvest>,
    canonicalizer: Canonicalizer,
    clock: Clock,
    runtime: tokio::runtime::Handle,
}

/// What became of an offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// URLs that are new to the crawl and will be fetched.
    pub taken: usize,
    /// URLs that were known before.
    pub known: usize,
    /// URLs that do not belong to the crawl, and why.
    pub refused: Vec<(CrawlUrl, String)>,
}

impl Inlet {
    pub(crate) fn new(harvest: &Arc<Harvest>, clock: Clock) -> Self {
        Self {
            harvest: Arc::downgrade(harvest),
            canonicalizer: harvest.reader().outlinks().canonicalizer().clone(),
            clock,
            runtime: tokio::runtime::Handle::current(),
        }
    }

    /// A URL as people write it, in its canonical form.
    pub fn parse(&self, text: &str) -> Result<CrawlUrl> {
        orbweaver_intake::seeds::parse_seed(text, &self.canonicalizer)
            .map_err(|error| Error::input(format!("`{text}` is not a URL: {error}")))
    }

    /// Offers URLs as seeds: they widen the scope, and links are counted from them.
    pub async fn offer_seeds(&self, urls: &[CrawlUrl]) -> Result<Offered> {
        let harvest = self.harvest()?;
        let reader = harvest.reader();
        for url in urls {
            if reader.outlinks().admit_seed(url) {
                harvest.indexer().scope_grew(url.clone()).await;
            }
        }
        self.take(&harvest, reader.judge_seeds(urls)).await
    }

    /// Offers links, from any source.
    pub async fn offer(&self, links: Vec<Link>) -> Result<Offered> {
        let harvest = self.harvest()?;
        let outlinks = harvest.reader().outlinks();
        let judged = links.into_iter().map(|link| outlinks.judge(link));
        self.take(&harvest, judged.collect()).await
    }

    /// Offers URLs as links from nowhere: they must be in scope.
    pub async fn offer_urls(&self, urls: &[CrawlUrl]) -> Result<Offered> {
        let link = |url: &CrawlUrl| Link {
            url: url.clone(),
            kind: LinkKind::A,
            depth: 0,
            priority: orbweaver_intake::priority(LinkKind::A),
            via: None,
            chain: Vec::new(),
        };
        self.offer(urls.iter().map(link).collect()).await
    }

    /// The same as [`Inlet::offer`] for programs without a runtime.
    pub fn offer_blocking(&self, links: Vec<Link>) -> Result<Offered> {
        let (tell, done) = sync_channel(1);
        let inlet = self.clone();
        self.runtime.spawn(async move {
            // Whoever offered may have gone.
            let _ = tell.send(inlet.offer(links).await);
        });
        done.recv().map_err(|_| Error::Ending)?
    }

    fn harvest(&self) -> Result<Arc<Harvest>> {
        self.harvest.upgrade().ok_or(Error::Ending)
    }

    async fn take(&self, harvest: &Harvest, links: Vec<NewLink>) -> Result<Offered> {
        let mut offered = Offered::default();
        for new in &links {
            match &new.refused {
                Some(why) => {
                    let refused = (new.link.url.clone(), why.reason.clone());
                    offered.refused.push(refused);
                }
                None if harvest.reader().knows(&new.link.url) => offered.known += 1,
                None => offered.taken += 1,
            }
        }
        let mut links = links;
        while !links.is_empty() {
            let rest = links.split_off(links.len().min(GROUP));
            let at = (self.clock)();
            harvest.indexer().offer(Event::Links { links, at }).await?;
            links = rest;
        }
        Ok(offered)
    }
}
