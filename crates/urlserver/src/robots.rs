//! What a robots.txt says to us: RFC 9309, plus Crawl-delay and Sitemap.
//!
//! A file is read once, for one product token, and only what concerns that token is kept: the patterns
//! in one block of text, sorted so that the first match decides. Fetching, caching and retrying are the
//! heart's business; who waits for the answer is not known here.

mod pattern;
mod reader;

use std::fmt;
use std::time::Duration;

use orbweaver_model::Limits;

/// The rules of one origin for one product token. An allow-all owns no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    /// Every pattern, one behind the other, the one that decides first coming first.
    patterns: Box<str>,
    /// For each pattern where it ends in `patterns`, shifted left by one; the lowest bit says Allow.
    ends: Box<[u32]>,
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
        let mut rules: Vec<(String, bool)> = read
            .rules
            .iter()
            .map(|(value, allow)| (pattern::normalise_pattern(value), *allow))
            .collect();
        // RFC 9309 section 2.2.2: the most octets win, and Allow wins between equals.
        rules.sort_by(|(a, a_allow), (b, b_allow)| {
            (b.len(), b_allow)
                .cmp(&(a.len(), a_allow))
                .then_with(|| a.cmp(b))
        });
        rules.dedup();
        Self {
            crawl_delay: read
                .crawl_delay
                .map(|delay| delay.min(limits.crawl_delay_cap)),
            uncapped: read
                .crawl_delay
                .filter(|delay| *delay > limits.crawl_delay_cap),
            sitemaps: read.sitemaps.into(),
            ..Self::pack(&rules)
        }
    }

    fn pack(rules: &[(String, bool)]) -> Self {
        // Without a Disallow there is nothing to look up, however many Allow lines there are.
        if rules.iter().all(|(_, allow)| *allow) {
            return Self::default();
        }
        let mut patterns = String::with_capacity(rules.iter().map(|(text, _)| text.len()).sum());
        let mut ends = Vec::with_capacity(rules.len());
        for (text, allow) in rules {
            patterns.push_str(text);
            // A file is cut at `robots_max_bytes` and encoding at most triples it: far below 2^31.
            ends.push((patterns.len() as u32) << 1 | u32::from(*allow));
        }
        Self {
            patterns: patterns.into(),
            ends: ends.into(),
            ..Self::default()
        }
    }

    /// Whether `target` (path and query) may be asked for, and which line says so.
    pub fn verdict(&self, target: &str) -> Verdict<'_> {
        const FREE: Verdict<'_> = Verdict {
            allowed: true,
            rule: None,
        };
        // RFC 9309 section 2.2.2: /robots.txt itself is always allowed.
        if self.ends.is_empty() || target == "/robots.txt" {
            return FREE;
        }
        let target = pattern::normalise_target(target);
        self.rules()
            .find(|rule| pattern::matches(rule.pattern.as_bytes(), target.as_bytes()))
            .map_or(FREE, |rule| Verdict {
                allowed: rule.allow,
                rule: Some(rule),
            })
    }

    /// Whether there is no rule at all.
    pub fn allows_all(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rules that concern us, the one that decides first coming first.
    pub fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |packed| {
            let end = (packed >> 1) as usize;
            let pattern = self.patterns.get(start..end).unwrap_or_default();
            start = end;
            Rule {
                allow: packed & 1 == 1,
                pattern,
            }
        })
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
        self.patterns.len() + size_of_val(self.ends.as_ref()) + sitemaps
    }
}

#[cfg(test)]
mod tests;
