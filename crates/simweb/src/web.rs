//! The web as a pure function: which pages there are and what stands on them, without any server.

use std::borrow::Cow;

use crate::SimError;
use crate::config::SimConfig;
use crate::html::Pool;
use crate::layout::site::Site;
use crate::layout::{Layout, robots, sitemap};
use crate::place::{Place, What};
use crate::shape::Shape;

pub(crate) const STYLE: &[u8] = b"body { margin: 2em; font-family: serif }\n";

/// The smallest GIF there is: one pixel.
pub(crate) const LOGO: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;";

/// A simulated web that nobody serves: the same bytes as the one that is served with these settings.
pub struct Web {
    pub(crate) layout: Layout,
    pub(crate) pool: Pool,
}

impl Web {
    /// The web of these settings, as if served on `config.port`, which must not be zero: links name it.
    pub fn new(config: SimConfig) -> Result<Self, SimError> {
        config.check()?;
        let port = config.port;
        if port == 0 {
            return Err(SimError::Config("port must not be 0 here".to_owned()));
        }
        Ok(Self {
            pool: Pool::new(config.seed),
            layout: Layout::new(config, port),
        })
    }

    /// Where a crawl of this web begins: the root of host 0, from which every page can be reached, but for those of
    /// the shape `seeds`, whose roots follow.
    pub fn seeds(&self) -> Vec<String> {
        let sites = self.layout.sites().iter();
        let more = sites.filter(|site| site.shape == Shape::Seeds);
        std::iter::once(root(0))
            .chain(more.map(Site::root))
            .map(|place| self.layout.url(place))
            .collect()
    }

    /// The first page of a shape; of the shape `apex`, the one that redirects. None when this web has none.
    pub fn shape_root(&self, shape: Shape) -> Option<String> {
        let mut sites = self.layout.sites().iter().rev();
        let site = sites.find(|site| site.shape == shape)?;
        Some(self.layout.url(site.root()))
    }

    /// Where a canonical URL redirects to, when it is the other name of a page.
    pub fn location_of(&self, url: &str) -> Option<String> {
        let rest = url.strip_prefix("http://")?;
        let (authority, _) = rest.split_once('/')?;
        let host = self.layout.host_of_authority(authority)?;
        let What::Away(page) = self.layout.find(host, rest.get(authority.len()..)?)? else {
            return None;
        };
        Some(self.url(host.checked_sub(1)?, page))
    }

    /// The root of every host.
    pub fn all_roots(&self) -> Vec<String> {
        (0..self.layout.hosts())
            .map(|host| self.layout.url(root(host)))
            .collect()
    }

    /// Every page that a complete crawl fetches, in canonical form.
    pub fn expected_pages(&self) -> impl Iterator<Item = String> + '_ {
        self.layout.expected().map(|place| self.layout.url(place))
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.layout.hosts()
    }

    /// Number of pages of a host; zero when there is no such host.
    pub fn pages(&self, host: u32) -> u32 {
        self.layout.pages(host)
    }

    /// The root of every trap, in the order of `Stats::traps`.
    pub fn trap_roots(&self) -> Vec<String> {
        let what = What::Lure;
        (self.layout.honest_hosts()..self.layout.all_hosts())
            .map(|host| self.layout.url(Place { host, what }))
            .collect()
    }

    /// The canonical URL of a page of a host, whether they exist or not.
    pub fn url(&self, host: u32, page: u32) -> String {
        let what = What::Page(page);
        self.layout.url(Place { host, what })
    }

    /// The body of a page without content encoding; empty when there is no such page.
    pub fn page(&self, host: u32, page: u32) -> Vec<u8> {
        if page < self.layout.pages(host) {
            self.pool.page(&self.layout, host, page).body
        } else {
            Vec::new()
        }
    }

    /// The body, without content encoding, that a canonical URL is answered with when the answer is 200.
    pub fn body_of(&self, url: &str) -> Option<Vec<u8>> {
        let rest = url.strip_prefix("http://")?;
        let (authority, _) = rest.split_once('/')?;
        let host = self.layout.host_of_authority(authority)?;
        let target = rest.get(authority.len()..)?;
        let what = self.layout.find(host, target)?;
        match what {
            What::Good(_) | What::Lure => {
                let trap = self.layout.trap(host)?;
                Some(trap.page(self.layout.config.seed, target, what))
            }
            What::Page(page) => Some(self.page(host, page)),
            other => self.plain_body(host, other).map(Cow::into_owned),
        }
    }

    /// The body of what is answered with 200 and is no page.
    pub(crate) fn plain_body(&self, host: u32, what: What) -> Option<Cow<'static, [u8]>> {
        match what {
            What::Robots => Some(robots::body(&self.layout, host).into()),
            What::Sitemap(file) => Some(sitemap::body(&self.layout, host, file).into()),
            What::Style => Some(STYLE.into()),
            What::Logo => Some(LOGO.into()),
            // Disallowed pages exist like any other, for whoever is rude enough to ask.
            What::Private(_) => Some(b"<!DOCTYPE html><title>Private</title>\n".into()),
            What::Page(_) | What::Go(_) | What::Hop(_) | What::Broken(_) | What::Away(_) => None,
            What::Good(_) | What::Lure => None,
        }
    }
}

fn root(host: u32) -> Place {
    Place {
        host,
        what: What::Page(0),
    }
}
