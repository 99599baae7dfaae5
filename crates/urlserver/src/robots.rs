//! What a robots.txt says to us: RFC 9309, plus Crawl-delay and Sitemap.
//!
//! A file is read once, for one product token, and only what concerns that token is kept (`rules`).
//! Fetching, caching and retrying are the heart's business; who waits for the answer is not known here.

mod pattern;
mod reader;
mod rules;

use std::fmt;
use std::time::Duration;

use orbweaver_model::Limits;

use self::rules::Rules;

/// The rules of one origin for one product token. An allow-all owns no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Rules,
    /// Crawl-delay, capped.
    crawl_delay: Option<Duration>,
    /// The Crawl-delay as written, when it was capped.
    uncapped: Option<Duration>,
    /// Sitemap lines as written; they belong to no group.
    sitemaps: Box<[Box<str>]>,
}

/// One Allow or Disallow line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// True for Allow.
    pub allow: bool,
    /// The pattern, with its percent-encoding normalised.
    pub pattern: &'a str,
}

impl Rule<'_> {
    /// RFC 9309 section 2.2.2: of two rules that match, the one with the most octets decides, and Allow between equals.
    /// That two are equal in this as well concerns only which of them is named.
    fn decides_before(self, other: Self) -> bool {
        let rank = |rule: Self| (rule.pattern.len(), rule.allow);
        rank(self)
            .cmp(&rank(other))
            .then_with(|| other.pattern.cmp(self.pattern))
            .is_gt()
    }
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.allow { "Allow" } else { "Disallow" };
        write!(f, "{key}: {}", self.pattern)
    }
}

/// What the rules say about one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Whether it may be asked for.
    pub allowed: bool,
    /// The line that decided; none when no line matches.
    pub rule: Option<Rule<'a>>,
}

impl Robots {
    /// Reads a robots.txt for the product token `agent`. Never fails: what is no rule is no rule.
    pub fn parse(body: &[u8], agent: &str, limits: &Limits) -> Self {
        let read = reader::read(body, agent, limits.robots_max_bytes);
        let rules = read
            .rules
            .iter()
            .map(|(value, allow)| (pattern::normalise_pattern(value), *allow))
            .collect();
        Self {
            rules: Rules::new(rules),
            crawl_delay: read
                .crawl_delay
                .map(|delay| delay.min(limits.crawl_delay_cap)),
            uncapped: read
                .crawl_delay
                .filter(|delay| *delay > limits.crawl_delay_cap),
            sitemaps: read.sitemaps.into(),
        }
    }

    /// Whether `target` (path and query) may be asked for, and which line says so.
    pub fn verdict(&self, target: &str) -> Verdict<'_> {
        self.weighed_verdict(target).0
    }

    /// The same, and what it has cost, in steps of some ten nanoseconds.
    pub(crate) fn weighed_verdict(&self, target: &str) -> (Verdict<'_>, usize) {
        const FREE: Verdict<'_> = Verdict {
            allowed: true,
            rule: None,
        };
        // RFC 9309 section 2.2.2: /robots.txt itself is always allowed.
        if self.rules.is_empty() || target == "/robots.txt" {
            return (FREE, 0);
        }
        let (rule, steps) = self.rules.decisive(&pattern::normalise_target(target));
        let verdict = rule.map_or(FREE, |rule| Verdict {
            allowed: rule.allow,
            rule: Some(rule),
        });
        (verdict, steps)
    }

    /// Whether there is no rule at all.
    pub fn allows_all(&self) -> bool {
        self.rules.is_empty()
    }

    /// The time between two requests that the file asks for, at most the cap of the limits.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The time between two requests as the file asks for it, when that is more than the cap.
    pub fn uncapped_delay(&self) -> Option<Duration> {
        self.uncapped
    }

    /// The Sitemap lines, as written.
    pub fn sitemaps(&self) -> &[Box<str>] {
        &self.sitemaps
    }

    /// The Sitemap lines, which need not be kept once they have been reported.
    pub fn take_sitemaps(&mut self) -> Vec<Box<str>> {
        std::mem::take(&mut self.sitemaps).into_vec()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let sitemaps: usize = self.sitemaps.iter().map(|text| text.len() + 16).sum();
        self.rules.heap_bytes() + sitemaps
    }
}

#[cfg(test)]
mod tests;
