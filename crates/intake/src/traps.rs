//! Endless families of URLs, cut short.
//!
//! A trap is known by what it gives: pages of one pattern that are near-copies of each other
//! (`traps/novelty.rs`), or of known pages with another session id. Some are known earlier by their links: parameters in ever new combinations, pages
//! of a calendar for years that nobody has entered anything for, hosts without end under one domain.
//! Paths that repeat themselves or are too deep are refused by `scope`, which needs no memory for it.
//!
//! All that is remembered lies in RAM, in tables of bounded size, and is learnt again after a restart:
//! what was refused stays refused, and a trap costs once more what it cost to be recognised.

mod hosts;
mod novelty;
mod queries;
mod sessions;

use std::sync::{Mutex, MutexGuard, PoisonError};

use orbweaver_model::{CrawlUrl, KeySeed, Link, LinkKind, Outcome, OutcomeClass, Timestamp};

use crate::pattern::{Pattern, calendar_year};
use hosts::Hosts;
use novelty::{Novelty, Standing};
use queries::Queries;
use sessions::Sessions;

/// When a family of URLs counts as a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapOptions {
    /// Pages of one pattern after which it is stopped, if nearly all of the last two thirds were
    /// near-copies of each other. 0 never stops one, and takes no session id for one.
    pub near_copies: u32,
    /// URLs of one path with three or more parameters in varying combinations; 0 means no limit.
    pub combinations: u32,
    /// Hosts under one registered domain, or with addresses in one /16 network; 0 means no limit.
    pub domain_hosts: u32,
    /// First year whose pages of a calendar are fetched; 0 means all that were.
    pub first_year: u16,
    /// Years ahead of now whose pages of a calendar are fetched; 0 means all to come.
    pub years_ahead: u16,
    /// Bytes for all that is remembered.
    pub memory: usize,
}

impl Default for TrapOptions {
    fn default() -> Self {
        Self {
            near_copies: 30,
            combinations: 200,
            // Large honest domains have tens of thousands of hosts; a wildcard has no end.
            domain_hosts: 50_000,
            first_year: 1990,
            years_ahead: 2,
            memory: 8 << 20,
        }
    }
}

/// What is known of traps.
#[derive(Debug)]
pub struct Traps {
    options: TrapOptions,
    seed: KeySeed,
    last_year: u16,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    novelty: Novelty,
    sessions: Sessions,
    queries: Queries,
    hosts: Hosts,
}

impl Traps {
    /// Knows nothing yet; `now` says which years lie ahead.
    pub fn new(options: TrapOptions, seed: KeySeed, now: Timestamp) -> Self {
        let share = options.memory / 5;
        let state = State {
            // Two of the five, for patterns and for hosts.
            novelty: Novelty::new(options.near_copies, share),
            sessions: Sessions::new(share),
            queries: Queries::new(options.combinations, share),
            hosts: Hosts::new(options.domain_hosts, share),
        };
        Self {
            last_year: year(now).saturating_add(options.years_ahead),
            options,
            seed,
            state: Mutex::new(state),
        }
    }

    /// Takes note of a HTML page. Its fingerprint is asked for only when it can tell something.
    ///
    /// Says why new links of this page to its own host are not to be followed, if they are not: the page
    /// is one of many of its host that are near-copies of each other, whatever their URLs look like.
    pub fn note(
        &self,
        url: &CrawlUrl,
        fingerprint: impl FnOnce() -> Option<u64>,
    ) -> Option<Outcome> {
        if self.options.near_copies == 0 {
            return None;
        }
        let pattern = Pattern::of(url);
        let key = self.seed.hash(&pattern.text);
        let host = self.seed.host(url.host());
        let twin = pattern.twin.as_deref().map(|twin| self.seed.hash(twin));
        let wanted = {
            let mut state = self.state();
            state.novelty.arrives(key, host) | (twin.is_some() && state.sessions.wants(host))
        };
        // Outside the lock: it takes longer than all the rest.
        let fingerprint = wanted.then(fingerprint).flatten()?;
        let mut state = self.state();
        if let Some(twin) = twin {
            state.sessions.learns(host, twin, fingerprint);
        }
        let copies = state.novelty.learns(key, host, fingerprint)?;
        Some(trap(format!(
            "found on a near-copy of {copies} other pages of the host, such as {}",
            shown(&pattern.text)
        )))
    }

    /// Whether a link leads into a trap. `from` is its page and what `note` said of it.
    pub fn verdict(&self, link: &Link, from: Option<(&CrawlUrl, &Outcome)>) -> Result<(), Outcome> {
        let url = &link.url;
        let host = self.seed.host(url.host());
        // Whoever names a URL vouches for it; and pictures are no pages.
        let vouched = matches!(link.kind, LinkKind::Sitemap | LinkKind::SitemapFile);
        if link.kind == LinkKind::Seed {
            // And whoever crawls knows how many hosts are wanted.
            self.state().hosts.admit(self.seed, url, host);
            return Ok(());
        }
        if vouched || link.kind.is_requisite() {
            return self.has_room(&mut self.state().hosts, url, host);
        }
        self.is_of_our_time(url)?;
        let pattern = Pattern::of(url);
        let key = self.seed.hash(&pattern.text);
        let mut state = self.state();
        self.has_room(&mut state.hosts, url, host)?;
        let from = from.filter(|(page, _)| page.host() == url.host());
        match (state.novelty.standing(key), from) {
            (Standing::Stopped { pages, copies, of }, _) => {
                return Err(trap(format!(
                    "{copies} of the last {of} of {pages} pages like {} were near-copies of each other",
                    shown(&pattern.text)
                )));
            }
            (Standing::Unproven, Some((_, why))) => return Err(why.clone()),
            _ => {}
        }
        if self.options.near_copies > 0
            && let Some(twin) = &pattern.twin
            && let Some(compared) = state.sessions.against(host, self.seed.hash(twin))
        {
            return Err(trap(format!(
                "known but for a session id: {} of {} such pages of the host were near-copies, like {}",
                compared.copies,
                compared.all,
                shown(&pattern.text)
            )));
        }
        if state.queries.explode(self.seed, &pattern) {
            return Err(trap(format!(
                "more than {} URLs of {} with parameters in ever new combinations",
                self.options.combinations,
                shown(pattern.path())
            )));
        }
        Ok(())
    }

    fn has_room(&self, hosts: &mut Hosts, url: &CrawlUrl, host: u64) -> Result<(), Outcome> {
        match hosts.beyond(self.seed, url, host) {
            None => Ok(()),
            Some(domain) => Err(trap(format!(
                "more than {} hosts under {domain}",
                self.options.domain_hosts
            ))),
        }
    }

    fn is_of_our_time(&self, url: &CrawlUrl) -> Result<(), Outcome> {
        let Some(year) = calendar_year(url) else {
            return Ok(());
        };
        let (first, last) = (self.options.first_year, self.last_year);
        let bound = match year {
            _ if year < first => format!("before {first}"),
            _ if self.options.years_ahead > 0 && year > last => format!("after {last}"),
            _ => return Ok(()),
        };
        Err(trap(format!("a page of a calendar for {year}, {bound}")))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half changed that would do worse than to forget a page.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trap(reason: String) -> Outcome {
    Outcome::because(OutcomeClass::TrapBounded, reason)
}

/// A pattern short enough for a reason that is kept with every refused URL.
fn shown(pattern: &str) -> &str {
    pattern.get(..120).unwrap_or(pattern)
}

/// The year of a moment, by the mean length of a year: right but for some hours around the turn.
fn year(now: Timestamp) -> u16 {
    u16::try_from(1970 + now.as_secs() / 31_556_952).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
