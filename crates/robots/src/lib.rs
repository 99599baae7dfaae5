//! robots.txt as [RFC 9309] has it, with `Crawl-delay` and `Sitemap`: what a file says to one crawler, and which line
//! says so.
//!
//! A file is read once, for one product token, and only what concerns that token is kept. Reading never fails: what is
//! no rule is no rule, and the misspellings that Google's parser accepts are accepted. A verdict costs little however
//! many rules there are: no pattern is slow to match, and twenty thousand of them cost less than twice as much as one
//! thousand.
//!
//! Fetching, caching and retrying are the caller's business: this crate knows no network, no clock and no other crate
//! of the workspace.
//!
//! ```
//! use orbweaver_robots::{RECOMMENDED_BYTES, Robots};
//!
//! let file = b"User-agent: *\n\
//!              Disallow: /private/\n\
//!              Allow: /private/open\n\
//!              Crawl-delay: 2\n\
//!              Sitemap: https://example.org/sitemap.xml\n";
//! let robots = Robots::parse(file, "examplebot", RECOMMENDED_BYTES);
//!
//! // The longest pattern that matches decides, and can be named.
//! let verdict = robots.verdict("/private/diary.html");
//! assert!(!verdict.allowed);
//! assert_eq!(verdict.rule.unwrap().to_string(), "Disallow: /private/");
//! assert!(robots.verdict("/private/open/house.html").allowed);
//!
//! // Where no line matches, everything is allowed, and no line is named.
//! assert_eq!(robots.verdict("/").rule, None);
//!
//! assert_eq!(robots.crawl_delay().unwrap().as_secs(), 2);
//! assert_eq!(robots.sitemaps().len(), 1);
//! ```
//!
//! [RFC 9309]: https://www.rfc-editor.org/rfc/rfc9309

mod pattern;
mod reader;
mod rules;

use std::time::Duration;

pub use self::rules::Rule;

use self::rules::Rules;

/// What RFC 9309 section 2.5 asks crawlers to read of a file at least: 500 KiB.
pub const RECOMMENDED_BYTES: usize = 500 << 10;

/// No file is read beyond this: places in its text are kept in 31 bits, and percent-encoding can triple it.
const MOST_BYTES: usize = 256 << 20;

/// The rules of one origin for one product token. An allow-all owns no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Rules,
    /// The longest Crawl-delay.
    crawl_delay: Option<Duration>,
    /// Sitemap lines as written; they belong to no group.
    sitemaps: Box<[Box<str>]>,
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
    /// Reads at most `max_bytes` of a robots.txt, up to the last whole line, for the product token `agent`.
    ///
    /// Never fails: a page of HTML, an empty file and random bytes allow everything.
    ///
    /// ```
    /// use orbweaver_robots::{RECOMMENDED_BYTES, Robots};
    ///
    /// let page = b"<html><body>User-agent is not welcome</body></html>";
    /// assert!(Robots::parse(page, "examplebot", RECOMMENDED_BYTES).allows_all());
    /// ```
    pub fn parse(body: &[u8], agent: &str, max_bytes: usize) -> Self {
        let read = reader::read(body, agent, max_bytes.min(MOST_BYTES));
        let rules = read
            .rules
            .iter()
            .map(|(value, allow)| (pattern::normalise_pattern(value), *allow))
            .collect();
        Self {
            rules: Rules::new(rules),
            crawl_delay: read.crawl_delay,
            sitemaps: read.sitemaps.into(),
        }
    }

    /// Whether `target` (path and query, as in a request line) may be asked for, and which line says so.
    ///
    /// Percent-encoding is normalised on both sides (RFC 9309 section 2.2.3); `/robots.txt` itself is always allowed.
    pub fn verdict(&self, target: &str) -> Verdict<'_> {
        self.weighed_verdict(target).0
    }

    /// The same, and what it has cost, in steps of some ten nanoseconds: for callers who limit how much time the rules of
    /// strangers may take.
    pub fn weighed_verdict(&self, target: &str) -> (Verdict<'_>, usize) {
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

    /// The time between two requests that the file asks for, as written: the longest of the group. A caller caps it, for
    /// a file can ask for centuries.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
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
