//! Hosts, pages and links as arithmetic: what exists, what it is called, what links to what.
//!
//! No page is held in memory. A URL is found again by reading the number in it and writing the URL of
//! that number; if they are the same, it exists. How a link is *spelled* is `spell`'s business, what
//! stands around it is `html`'s.

pub(crate) mod robots;
pub(crate) mod site;
pub(crate) mod sitemap;

use std::collections::HashMap;
use std::net::Ipv4Addr;

use self::site::Site;
use crate::address::{self, HostName};
use crate::config::SimConfig;
use crate::place::{Place, What, put};
use crate::rng::{Rng, mix};
use crate::shape::Shape;
use crate::trap::Trap;
use crate::words;

/// Children of a page in the tree that makes every page reachable: a million pages are seven deep.
const PAGE_FAN: u32 = 9;

/// Children of a host in the tree of hosts.
const HOST_FAN: u32 = 9;

/// What a random number is for, so that no two uses share one.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Path = 1,
    Redirect,
    Broken,
    Disallowed,
    Links,
    Body,
    Version,
    Jitter,
}

/// Where a redirect leads and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redirect {
    pub(crate) status: u16,
    /// True when another redirect stands between.
    pub(crate) chained: bool,
    /// True when it leads to the page it belongs to, and the tree's link to that page goes through it.
    pub(crate) moved: bool,
    pub(crate) to: Place,
}

/// How a failing host fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    InternalError,
    Unavailable,
    Reset,
}

pub(crate) struct Layout {
    pub(crate) config: SimConfig,
    pub(crate) port: u16,
    /// Number of the first page of each host among all pages, and at the end the number of pages.
    first: Vec<u32>,
    names: Vec<HostName>,
    by_host: HashMap<String, u32>,
    /// The sites of unusual shapes, which are the hosts after the usual ones.
    sites: Vec<Site>,
}

impl Layout {
    pub(crate) fn new(config: SimConfig, port: u16) -> Self {
        let sites = Site::all(&config.shapes, config.hosts);
        let name_of = |host: u32| {
            let nth = host.checked_sub(config.hosts)? as usize;
            sites.get(nth)?.name()
        };
        let all = config.honest_hosts() + config.trap_hosts();
        let names: Vec<HostName> = (0..all)
            .map(|host| HostName::new(&config, port, host, name_of(host)))
            .collect();
        let by_host = (0..)
            .zip(&names)
            .map(|(number, name)| (name.host.clone(), number))
            .collect();
        Self {
            first: config.first_pages(sites.iter().map(Site::pages)),
            sites,
            config,
            port,
            names,
            by_host,
        }
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.config.hosts
    }

    /// Hosts with those of unusual shapes.
    pub(crate) fn honest_hosts(&self) -> u32 {
        self.config.honest_hosts()
    }

    /// Hosts with the traps, which come last.
    pub(crate) fn all_hosts(&self) -> u32 {
        self.honest_hosts() + self.config.trap_hosts()
    }

    /// The site of an unusual shape that a host is, if it is one.
    pub(crate) fn site(&self, host: u32) -> Option<&Site> {
        self.sites
            .get(host.checked_sub(self.config.hosts)? as usize)
    }

    /// All sites of unusual shapes.
    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The trap that a host is, if it is one.
    pub(crate) fn trap(&self, host: u32) -> Option<Trap> {
        let nth = host.checked_sub(self.honest_hosts())?;
        Trap::ALL.get(nth as usize).copied()
    }

    /// Number of addresses.
    pub(crate) fn ips(&self) -> u32 {
        match self.config.ips {
            0 => self.all_hosts(),
            ips => ips,
        }
    }

    /// All pages of all hosts.
    pub(crate) fn total_pages(&self) -> usize {
        self.first.last().copied().unwrap_or_default() as usize
    }

    /// Pages of one host.
    pub(crate) fn pages(&self, host: u32) -> u32 {
        let at = |n: usize| self.first.get(n).copied().unwrap_or_default();
        at(host as usize + 1).saturating_sub(at(host as usize))
    }

    /// Number of a page among all pages.
    pub(crate) fn index(&self, host: u32, page: u32) -> usize {
        let first = self.first.get(host as usize).copied().unwrap_or_default();
        first as usize + page as usize
    }

    pub(crate) fn name(&self, host: u32) -> Option<&HostName> {
        self.names.get(host as usize)
    }

    /// The host with this canonical name, without port.
    pub(crate) fn host(&self, name: &str) -> Option<u32> {
        self.by_host.get(name).copied()
    }

    /// The host of an authority as it stands in a Host header or in a canonical URL.
    pub(crate) fn host_of_authority(&self, authority: &str) -> Option<u32> {
        let (name, port) = match authority.split_once(':') {
            Some((name, port)) => (name, port.parse().ok()?),
            None => (authority, 80),
        };
        if port != self.port {
            return None;
        }
        self.host(name)
            .or_else(|| self.host(&name.to_ascii_lowercase()))
    }

    /// The number of the address that a host lives on.
    pub(crate) fn ip_of(&self, host: u32) -> u32 {
        host % self.ips().max(1)
    }

    /// The number of an address, if it is one of this web's.
    pub(crate) fn ip_number(&self, ip: Ipv4Addr) -> Option<u32> {
        address::number(ip).filter(|number| *number < self.ips())
    }

    /// Whether a host answers slowly. Failing hosts are the last ones, slow ones stand before them.
    pub(crate) fn is_slow(&self, host: u32) -> bool {
        let healthy = self.healthy();
        host < healthy && host >= healthy.saturating_sub(self.config.slow_hosts)
    }

    /// How a host fails, if it does.
    pub(crate) fn failure(&self, host: u32) -> Option<Failure> {
        let nth = host.checked_sub(self.healthy())?;
        if host >= self.hosts() {
            return None;
        }
        Some(match nth % 3 {
            0 => Failure::InternalError,
            1 => Failure::Unavailable,
            _ => Failure::Reset,
        })
    }

    /// Whether the pages of a host can be had at all.
    pub(crate) fn is_expected(&self, host: u32) -> bool {
        self.config.recover_after > 0 || host < self.healthy() || host >= self.hosts()
    }

    /// Every allowed page that can be had and reached.
    pub(crate) fn expected(&self) -> impl Iterator<Item = Place> + '_ {
        (0..self.honest_hosts())
            .filter(|host| self.is_expected(*host))
            .flat_map(|host| {
                (0..self.pages(host)).map(move |page| Place {
                    host,
                    what: What::Page(page),
                })
            })
    }

    /// The links of a page, each with the place it leads to; those the tree needs come first.
    pub(crate) fn links(&self, host: u32, page: u32, links: &mut Vec<Place>) {
        let on_host = |what| Place { host, what };
        let children = page.saturating_mul(PAGE_FAN).saturating_add(1)..self.pages(host);
        links.extend(children.take(PAGE_FAN as usize).map(
            |child| match self.redirect(host, child) {
                Some(redirect) if redirect.moved => on_host(What::Go(child)),
                _ => on_host(What::Page(child)),
            },
        ));
        if page == 0 {
            self.child_hosts(host, links);
        }
        if page == 0 && host == 0 {
            let what = What::Lure;
            links.extend((self.honest_hosts()..self.all_hosts()).map(|host| Place { host, what }));
            // Seeds are not to be found otherwise.
            let found = self.sites.iter().filter(|site| site.shape != Shape::Seeds);
            links.extend(found.map(Site::root));
        }
        for extra in [What::Go(page), What::Broken(page), What::Private(page)] {
            if self.exists(host, extra) {
                links.push(on_host(extra));
            }
        }
        let mut rng = self.rng(host, page, Use::Links);
        while links.len() < self.config.links_per_page {
            let away = rng.below(1000) < self.config.cross_host;
            links.push(self.any_page(if away { None } else { Some(host) }, &mut rng));
        }
    }

    /// The redirect that belongs to a page, if it has one.
    pub(crate) fn redirect(&self, host: u32, page: u32) -> Option<Redirect> {
        let number = self.chance(host, page, Use::Redirect, self.config.redirects)?;
        let mut rng = Rng::new(number);
        let status = rng.pick(&[301, 302, 307, 308]).copied().unwrap_or(302);
        let chained = rng.below(3) == 0;
        let moved = page != 0 && rng.below(4) != 0;
        let to = if moved {
            Place {
                host,
                what: What::Page(page),
            }
        } else {
            self.any_page(None, &mut rng)
        };
        Some(Redirect {
            status,
            chained,
            moved,
            to,
        })
    }

    /// What a canonical path and query on a host stand for; none when nobody links to them.
    pub(crate) fn find(&self, host: u32, target: &str) -> Option<What> {
        if let Some(trap) = self.trap(host).filter(|_| target != "/robots.txt") {
            return trap.find(target);
        }
        match target {
            "/" if self.site(host).is_none() => return Some(What::Page(0)),
            "/robots.txt" => return Some(What::Robots),
            "/style.css" => return Some(What::Style),
            "/img/logo.gif" => return Some(What::Logo),
            _ => {}
        }
        if let Some(file) = sitemap::find(self, host, target) {
            return Some(What::Sitemap(file));
        }
        if let Some(site) = self.site(host) {
            return site.find(target);
        }
        let number = last_number(target)?;
        let mut written = Vec::with_capacity(target.len() + 16);
        [
            What::Page(number),
            What::Go(number),
            What::Hop(number),
            What::Broken(number),
            What::Private(number),
        ]
        .into_iter()
        .find(|what| {
            written.clear();
            self.write_target(&mut written, host, *what);
            written == target.as_bytes()
        })
        .filter(|what| self.exists(host, *what))
    }

    fn exists(&self, host: u32, what: What) -> bool {
        let config = &self.config;
        let has = |page, for_what, share| {
            page < self.pages(host) && self.chance(host, page, for_what, share).is_some()
        };
        match what {
            What::Page(page) => page < self.pages(host),
            What::Go(page) => has(page, Use::Redirect, config.redirects),
            What::Hop(page) => {
                page < self.pages(host) && self.redirect(host, page).is_some_and(|r| r.chained)
            }
            What::Broken(page) => has(page, Use::Broken, config.broken),
            What::Private(page) => has(page, Use::Disallowed, config.disallowed),
            What::Robots | What::Sitemap(_) | What::Style | What::Logo => true,
            What::Away(_) => self.site(host).is_some(),
            What::Good(_) | What::Lure => self.trap(host).is_some(),
        }
    }

    /// Writes path and query in canonical form. The number of the page is always the last one in it.
    pub(crate) fn write_target(&self, out: &mut Vec<u8>, host: u32, what: What) {
        match what {
            What::Page(0) | What::Lure => out.push(b'/'),
            What::Good(page) => put(out, &["/good/"], page, ""),
            What::Page(page) | What::Away(page) => match self.site(host) {
                Some(site) => out.extend_from_slice(site.target(page).as_bytes()),
                None => self.write_page(out, host, page),
            },
            What::Go(page) => put(out, &["/go/"], page, ""),
            What::Hop(page) => put(out, &["/go/on/"], page, ""),
            What::Broken(page) => put(out, &["/gone/"], page, ".html"),
            What::Private(page) => {
                let number = self.number(host, page, Use::Disallowed);
                robots::write_disallowed(out, number, page);
            }
            What::Robots => out.extend_from_slice(b"/robots.txt"),
            What::Sitemap(file) => file.write_target(out),
            What::Style => out.extend_from_slice(b"/style.css"),
            What::Logo => out.extend_from_slice(b"/img/logo.gif"),
        }
    }

    fn write_page(&self, out: &mut Vec<u8>, host: u32, page: u32) {
        let number = self.number(host, page, Use::Path);
        let word = |nth: u32| words::for_path(number >> (8 + nth * 8));
        match number % 16 {
            0..5 => put(out, &["/", word(0), "-"], page, ".html"),
            5..9 => put(out, &["/", word(0), "/", word(1), "/"], page, ".html"),
            9..11 => put(
                out,
                &["/", word(0), "/", word(1), "/", word(2), "/"],
                page,
                "/",
            ),
            11..14 => put(out, &["/", word(0), "/", word(1), "?lang=en&id="], page, ""),
            14 => put(out, &["/%7E", word(0), "/caf%C3%A9/"], page, ""),
            _ => put(out, &[robots::OPEN_PREFIX], page, ".html"),
        }
    }

    /// Writes a whole canonical URL.
    pub(crate) fn write_url(&self, out: &mut Vec<u8>, place: Place) {
        out.extend_from_slice(b"http://");
        if let Some(name) = self.name(place.host) {
            out.extend_from_slice(name.authority.as_bytes());
        }
        self.write_target(out, place.host, place.what);
    }

    pub(crate) fn url(&self, place: Place) -> String {
        let mut out = Vec::with_capacity(64);
        self.write_url(&mut out, place);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A number that belongs to a page and a use.
    pub(crate) fn number(&self, host: u32, page: u32, for_what: Use) -> u64 {
        mix([self.config.seed, host.into(), page.into(), for_what as u64])
    }

    pub(crate) fn rng(&self, host: u32, page: u32, for_what: Use) -> Rng {
        Rng::new(self.number(host, page, for_what))
    }

    fn chance(&self, host: u32, page: u32, for_what: Use, per_mille: u32) -> Option<u64> {
        let number = self.number(host, page, for_what);
        (number % 1000 < u64::from(per_mille)).then_some(number)
    }

    fn any_page(&self, host: Option<u32>, rng: &mut Rng) -> Place {
        let host = host.unwrap_or_else(|| rng.below(self.hosts()));
        Place {
            host,
            what: What::Page(rng.below(self.pages(host))),
        }
    }

    fn healthy(&self) -> u32 {
        self.config.hosts.saturating_sub(self.config.failing_hosts)
    }

    /// Failing hosts are leaves of the tree, so that nothing is reached through them alone.
    fn child_hosts(&self, host: u32, links: &mut Vec<Place>) {
        let healthy = self.healthy();
        if host >= healthy {
            return;
        }
        let first = host.saturating_mul(HOST_FAN).saturating_add(1);
        let children = (first..healthy).take(HOST_FAN as usize);
        let failing = (healthy.saturating_add(host)..self.hosts()).step_by(healthy.max(1) as usize);
        links.extend(children.chain(failing).map(|host| Place {
            host,
            what: What::Page(0),
        }));
    }
}

fn last_number(text: &str) -> Option<u32> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let head = text.get(..end)?;
    let start = head
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    head.get(start..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let config = SimConfig {
            hosts: 12,
            pages: 400,
            ips: 5,
            redirects: 100,
            ..SimConfig::default()
        };
        Layout::new(config, 8080)
    }

    #[test]
    fn what_is_linked_is_found_again_by_its_path() {
        let layout = layout();
        let mut links = Vec::new();
        for host in 0..12 {
            for page in 0..400 {
                layout.links(host, page, &mut links);
            }
        }
        let mut kinds = [0; 4];
        for Place { host, what } in links {
            let mut target = Vec::new();
            layout.write_target(&mut target, host, what);
            let target = String::from_utf8(target).unwrap();
            assert_eq!(layout.find(host, &target), Some(what), "{target}");
            let disallowed = matches!(what, What::Private(_));
            assert_eq!(robots::forbids(&target), disallowed, "{target}");
            match what {
                What::Page(_) => kinds[0] += 1,
                What::Go(_) => kinds[1] += 1,
                What::Broken(_) => kinds[2] += 1,
                _ => kinds[3] += 1,
            }
        }
        assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
    }

    #[test]
    fn extras_of_pages_that_have_none_are_not_found() {
        let layout = layout();
        let without = (0..400).filter(|page| layout.redirect(0, *page).is_none());
        for page in without {
            assert_eq!(layout.find(0, &format!("/go/{page}")), None);
            assert_eq!(layout.find(0, &format!("/go/on/{page}")), None);
        }
        assert_eq!(layout.find(0, "/go/400"), None);
        assert_eq!(layout.find(0, "/go/99999999999999"), None);
        assert_eq!(layout.find(0, "/sitemap-0.xml.gz"), None);
    }

    #[test]
    fn addresses_are_numbered_both_ways() {
        let config = SimConfig {
            hosts: 200_000,
            pages: 1,
            ..SimConfig::default()
        };
        let layout = Layout::new(config, 80);
        for number in [0, 1, 249, 250, 62_499, 62_500, 199_999] {
            assert_eq!(layout.ip_number(address::ip(number)), Some(number));
            assert_eq!(layout.host(&address::ip(number).to_string()), Some(number));
        }
        for other in [
            "127.0.0.1",
            "127.10.0.0",
            "127.10.0.251",
            "127.200.0.1",
            "10.10.0.1",
        ] {
            assert_eq!(layout.ip_number(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn every_host_has_one_parent_and_failing_ones_have_no_children() {
        let config = SimConfig {
            hosts: 50,
            pages: 1,
            failing_hosts: 30,
            links_per_page: 0,
            ..SimConfig::default()
        };
        let layout = Layout::new(config, 80);
        let mut parents = vec![0; 50];
        for host in 0..50 {
            let mut links = Vec::new();
            layout.child_hosts(host, &mut links);
            assert!(host < 20 || links.is_empty());
            links.iter().for_each(|to| parents[to.host as usize] += 1);
        }
        assert_eq!(parents[0], 0);
        assert!(parents[1..].iter().all(|count| *count == 1), "{parents:?}");
    }
}
