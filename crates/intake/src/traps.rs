//! Endless families of URLs, cut short.
//!
//! A page is no trap because it says little. What is asked for is evidence of endlessness: copies that lead to
//! ever more copies (`traps/copies.rs`), sooner if they lead to dates that nobody has reached or to paths that
//! repeat themselves; URLs that are known except for a session id; parameters in combinations that repeat each other.
//! Some rules need no evidence: paths that are too deep, hosts without end under one domain.
//!
//! All that is remembered lies in RAM, in tables of bounded size, and is learnt again after a restart:
//! what was refused stays refused, and a trap costs once more what it cost to be recognised.

mod copies;
mod hosts;
mod paths;
mod queries;
mod sessions;

use std::sync::{Mutex, MutexGuard, PoisonError};

use orbweaver_model::{
    CrawlUrl, Fingerprint, KeySeed, Limits, Link, LinkKind, Outcome, OutcomeClass, PerHost,
    Timestamp,
};

use crate::pattern::{Pattern, calendar_year};
use copies::{Copies, MANY, SOME, WHOLE};
use hosts::Hosts;
use queries::Queries;
use sessions::Sessions;

/// When a family of URLs counts as a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapOptions {
    /// False switches every rule off.
    pub enabled: bool,
    /// New URLs that pages of a host may lead to when they say the same as twenty others and were found on such pages;
    /// 0 means no limit, and takes no session id for one.
    pub copies: u32,
    /// URLs of one path with three or more parameters, when a tenth of them repeat others; 0 means no limit.
    pub combinations: u32,
    /// Hosts under one registered domain, or with addresses in one /16 network; 0 means no limit.
    pub domain_hosts: u32,
    /// First year of a calendar; a page for an earlier one, found on a copy, counts twice. 0 means none does.
    pub first_year: u16,
    /// Years ahead of now; a page of a calendar for a later one, found on a copy, counts twenty times. 0 means none does.
    pub years_ahead: u16,
    /// Path segments of a URL.
    pub path_depth: usize,
    /// Bytes for all that is remembered.
    pub memory: usize,
}

impl Default for TrapOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            // Ten years of days without an entry, linked from day to day, are 3,650.
            copies: 4000,
            // Four filters of three values each, in any order, make 2,592.
            combinations: 5000,
            // Large honest domains have tens of thousands of hosts; a wildcard has no end.
            domain_hosts: 50_000,
            first_year: 1990,
            years_ahead: 2,
            path_depth: Limits::default().max_path_depth,
            memory: 8 << 20,
        }
    }
}

/// What is known of traps.
#[derive(Debug)]
pub struct Traps {
    options: TrapOptions,
    /// Those of single hosts.
    hosts: PerHost<TrapOptions>,
    seed: KeySeed,
    this_year: u16,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    copies: Copies,
    sessions: Sessions,
    queries: Queries,
    hosts: Hosts,
}

impl Traps {
    /// Knows nothing yet; `now` says which years lie ahead.
    pub fn new(options: TrapOptions, seed: KeySeed, now: Timestamp) -> Self {
        let share = options.memory / 5;
        let state = State {
            copies: Copies::new(2 * share),
            sessions: Sessions::new(share),
            queries: Queries::new(share),
            hosts: Hosts::new(options.domain_hosts, share),
        };
        Self {
            this_year: year(now),
            options,
            hosts: PerHost::default(),
            seed,
            state: Mutex::new(state),
        }
    }

    /// With other options for URLs of single hosts. The memory, and how many hosts a domain may have, is one for all.
    pub fn with_hosts(self, hosts: PerHost<TrapOptions>) -> Self {
        Self { hosts, ..self }
    }

    fn of(&self, url: &CrawlUrl) -> &TrapOptions {
        self.hosts.get(url.host()).unwrap_or(&self.options)
    }

    /// Takes note of a HTML page that is read for the first time. Its fingerprint is asked for only when it can
    /// tell something.
    ///
    /// Says how many other pages of its host said the same, which [`Traps::verdict`] wants to know of its links.
    pub fn note(&self, url: &CrawlUrl, fingerprint: impl FnOnce() -> Fingerprint) -> u32 {
        if !self.of(url).enabled {
            return 0;
        }
        let pattern = Pattern::of(url);
        let family = self.seed.hash(&pattern.text);
        let key = url.key(self.seed);
        let twin = pattern.twin.as_deref().map(|twin| self.seed.hash(twin));
        let wanted = {
            let mut state = self.state();
            state.copies.wants(key) | (twin.is_some() && state.sessions.wants(family))
        };
        if !wanted {
            return 0;
        }
        // Outside the lock: it takes longer than all the rest.
        let print = fingerprint();
        let mut state = self.state();
        if let Some(twin) = twin {
            state.sessions.learns(family, twin, print.words);
        }
        state.copies.learns(key, &print)
    }

    /// Takes note of a document that is no HTML page: whatever it is, it has something of its own.
    pub fn note_file(&self, url: &CrawlUrl) {
        if self.of(url).enabled {
            self.state().copies.brings(url.key(self.seed));
        }
    }

    /// Whether a link leads into a trap. `from` is its page and what `note` said of it.
    pub fn verdict(&self, link: &Link, from: Option<(&CrawlUrl, u32)>) -> Result<(), Outcome> {
        let url = &link.url;
        let options = self.of(url);
        if !options.enabled {
            return Ok(());
        }
        let key = url.key(self.seed);
        if link.kind == LinkKind::Seed {
            // Whoever names a URL vouches for it, and knows how many hosts are wanted.
            self.state().hosts.admit(self.seed, url, key.host);
            return Ok(());
        }
        let vouched = matches!(link.kind, LinkKind::Sitemap | LinkKind::SitemapFile);
        if vouched {
            return self.has_room(&mut self.state().hosts, url, key.host);
        }
        is_shallow(url, options.path_depth)?;
        // Pictures are no pages.
        if link.kind.is_requisite() {
            return self.has_room(&mut self.state().hosts, url, key.host);
        }
        let copies = from
            .filter(|(page, _)| page.host() == url.host())
            .map_or(0, |(_, copies)| copies);
        let query = url.query().unwrap_or_default();
        if queries::repeats(query) {
            return Err(trap("repeating query".to_owned()));
        }
        let pattern = Pattern::of(url);
        let mut state = self.state();
        self.has_room(&mut state.hosts, url, key.host)?;
        if let Some(source) = link.chain.last() {
            state.copies.moves(*source, key);
        }
        if options.copies > 0 {
            self.is_no_twin(&mut state.sessions, &pattern)?;
        }
        let most = options.combinations;
        if (state.queries).explode(self.seed, pattern.path(), query, most) {
            return Err(trap(format!(
                "more than {most} URLs of {} with parameters in combinations that repeat each other",
                shown(pattern.path())
            )));
        }
        let Some(Sign { cost, what }) = self.sign(url, copies, options) else {
            return Ok(());
        };
        let again = from.is_some_and(|(page, _)| state.copies.is_paid(page.key(self.seed)));
        let cost = cost.max(if again { WHOLE } else { 1 });
        if state.copies.pays(key, cost, options.copies) {
            return Ok(());
        }
        Err(trap(format!(
            "{what} on a page with the same content as {copies} others; such pages of {} led to {} URLs, \
             nearly all of them copies again",
            url.host(),
            options.copies,
        )))
    }

    /// What a link on a page with so many copies costs, if anything.
    fn sign(&self, url: &CrawlUrl, copies: u32, options: &TrapOptions) -> Option<Sign> {
        if copies < SOME {
            return None;
        }
        if let Some((year, cost)) = calendar_year(url).and_then(|year| self.beyond(year, options)) {
            let what = format!("a calendar page for {year}, found");
            return Some(Sign { cost, what });
        }
        if paths::repeats(url.path()) {
            let what = "a repeating path, found".to_owned();
            return Some(Sign {
                cost: 2 * WHOLE,
                what,
            });
        }
        let what = "found".to_owned();
        (copies >= MANY).then_some(Sign { cost: 1, what })
    }

    fn is_no_twin(&self, sessions: &mut Sessions, pattern: &Pattern<'_>) -> Result<(), Outcome> {
        let Some(twin) = pattern.twin.as_deref() else {
            return Ok(());
        };
        match sessions.against(self.seed.hash(&pattern.text), self.seed.hash(twin)) {
            None => Ok(()),
            Some(compared) => Err(trap(format!(
                "known except for a session id: {} of {} such pages like {} were copies",
                compared.copies,
                compared.all,
                shown(&pattern.text)
            ))),
        }
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

    /// What a page of a calendar for a year costs that lies beyond our time. Nobody has entered anything for years to
    /// come, but archives go back a long way.
    fn beyond(&self, year: u16, options: &TrapOptions) -> Option<(u16, u8)> {
        let last = self.this_year.saturating_add(options.years_ahead);
        if options.years_ahead > 0 && year > last {
            return Some((year, 20 * WHOLE));
        }
        (year < options.first_year).then_some((year, 2 * WHOLE))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half changed that would do worse than to forget a page.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_shallow(url: &CrawlUrl, max: usize) -> Result<(), Outcome> {
    let segments = paths::segments(url);
    if segments > max {
        return Err(trap(format!(
            "path of {segments} segments, more than {max}"
        )));
    }
    Ok(())
}

/// What speaks against a link on a copy.
struct Sign {
    /// Its least price, in tenths of a link of the allowance of its host.
    cost: u8,
    what: String,
}

/// The pattern of a URL: what is left when numbers, dates, ids and values of parameters are folded away. It names a
/// family of URLs to a reader.
pub fn pattern_of(url: &CrawlUrl) -> String {
    let mut text = Pattern::of(url).text;
    text.truncate(shown(&text).len());
    text
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
