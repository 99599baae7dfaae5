//! Which links belong to the crawl.
//!
//! A verdict is one outcome with its reason, or nothing: accepting a link allocates nothing, since
//! it happens for every new link. Budgets per host are not here; they need counts, which the doc
//! index has.

use std::collections::HashSet;

use orbweaver_model::{CrawlUrl, Link, LinkKind, Outcome};
use regex::{Regex, RegexSet};

use crate::IntakeError;
use crate::domain::domain_or_host;

/// How far from the seeds the crawl goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeKind {
    /// The exact host names of the seeds, on any port and with either scheme.
    #[default]
    Host,
    /// The registered domains of the seeds with all their hosts; for an address, the address.
    Domain,
    /// What lies in the directory of a seed or below it, with either scheme.
    Prefix,
    /// Everything.
    Any,
}

impl std::str::FromStr for ScopeKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "host" => Ok(Self::Host),
            "domain" => Ok(Self::Domain),
            "prefix" => Ok(Self::Prefix),
            "any" => Ok(Self::Any),
            _ => Err(format!(
                "{word:?} is not a scope; use host, domain, prefix or any"
            )),
        }
    }
}

/// What belongs to the crawl.
#[derive(Clone, Debug)]
pub struct ScopeOptions {
    /// How far from the seeds.
    pub kind: ScopeKind,
    /// Regular expressions on the canonical URL; when there are any, a link must match one. Seeds
    /// and sitemap files need not.
    pub include: Vec<String>,
    /// Regular expressions on the canonical URL; a link that matches one is refused, whatever else.
    pub exclude: Vec<String>,
    /// Links followed from a seed at most; none means no limit, 0 means only the seeds.
    pub max_depth: Option<u16>,
    /// Whether pictures, styles and scripts of pages are fetched too, from whatever host.
    pub requisites: bool,
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self {
            kind: ScopeKind::Host,
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
            requisites: false,
        }
    }
}

/// The rules of one crawl, compiled.
#[derive(Debug)]
pub struct Scope {
    options: ScopeOptions,
    include: RegexSet,
    exclude: RegexSet,
    /// Hosts of the seeds, or their registered domains, depending on the kind.
    names: HashSet<Box<str>>,
    /// Authority and directory of each seed, for the kind `Prefix`.
    prefixes: Vec<Box<str>>,
}

impl Scope {
    /// Compiles the rules for a crawl from these seeds.
    pub fn new(options: ScopeOptions, seeds: &[CrawlUrl]) -> Result<Self, IntakeError> {
        let include = compile("include", &options.include)?;
        let exclude = compile("exclude", &options.exclude)?;
        let mut scope = Self {
            options,
            include,
            exclude,
            names: HashSet::new(),
            prefixes: Vec::new(),
        };
        for seed in seeds {
            scope.admit(seed);
        }
        Ok(scope)
    }

    /// Adds a seed: one that was named later, or the place that a seed has moved to. True when that makes the scope larger.
    pub fn admit(&mut self, seed: &CrawlUrl) -> bool {
        let name = self.name_of(seed.host());
        let is_new = !self.names.contains(name);
        if is_new {
            self.names.insert(name.into());
        }
        let prefix = directory(seed);
        let place = self
            .prefixes
            .binary_search_by(|known| (**known).cmp(prefix));
        if let Err(place) = place {
            self.prefixes.insert(place, prefix.into());
        }
        match self.options.kind {
            ScopeKind::Any => false,
            ScopeKind::Host | ScopeKind::Domain => is_new,
            ScopeKind::Prefix => is_new || place.is_err(),
        }
    }

    /// Whether URLs of a host may be in scope for the sake of this seed.
    pub fn reaches(&self, seed: &CrawlUrl, host: &str) -> bool {
        self.name_of(seed.host()) == self.name_of(host)
    }

    /// What the seeds make of it, in words that are the same for the same scope.
    pub(crate) fn seeds_in_words(&self) -> String {
        let mut names: Vec<&str> = self.names.iter().map(|name| &**name).collect();
        names.sort_unstable();
        let prefixes: Vec<&str> = self.prefixes.iter().map(|prefix| &**prefix).collect();
        match self.options.kind {
            ScopeKind::Any => String::new(),
            ScopeKind::Prefix => prefixes.join(" "),
            ScopeKind::Host | ScopeKind::Domain => names.join(" "),
        }
    }

    /// What of a host's name the scope goes by.
    fn name_of<'h>(&self, host: &'h str) -> &'h str {
        match self.options.kind {
            ScopeKind::Domain => domain_or_host(host),
            _ => host,
        }
    }

    /// Whether pictures, styles and scripts of pages are wanted.
    pub fn requisites(&self) -> bool {
        self.options.requisites
    }

    /// Says nothing when the link is to be fetched, else why not.
    pub fn verdict(&self, link: &Link) -> Result<(), Outcome> {
        let url = link.url.as_str();
        if let Some(pattern) = matching(&self.exclude, &self.options.exclude, url) {
            return Err(denied(format!("excluded by pattern {pattern:?}")));
        }
        if link.kind == LinkKind::Seed {
            return Ok(());
        }
        if let Some(max) = self.options.max_depth.filter(|max| link.depth > *max) {
            return Err(denied(format!("deeper than {max}")));
        }
        if link.kind.is_requisite() {
            // A page's pictures live elsewhere: neither hosts nor include patterns bind them.
            return if self.options.requisites {
                Ok(())
            } else {
                Err(denied(
                    "page requisites are not fetched (--requisites)".to_owned(),
                ))
            };
        }
        self.is_near(link)?;
        if link.kind != LinkKind::SitemapFile
            && !self.include.is_empty()
            && !self.include.is_match(url)
        {
            return Err(denied("matches no include pattern".to_owned()));
        }
        Ok(())
    }

    fn is_near(&self, link: &Link) -> Result<(), Outcome> {
        let host = link.url.host();
        match self.options.kind {
            ScopeKind::Any => Ok(()),
            ScopeKind::Domain => {
                let domain = domain_or_host(host);
                if self.names.contains(domain) {
                    return Ok(());
                }
                Err(denied(format!(
                    "out of scope: domain {domain} is not the domain of a seed"
                )))
            }
            // A sitemap lies at the root even when the seed is a directory.
            ScopeKind::Prefix if link.kind != LinkKind::SitemapFile => {
                let place = without_scheme(&link.url);
                if self
                    .prefixes
                    .iter()
                    .any(|prefix| place.starts_with(&**prefix))
                {
                    return Ok(());
                }
                Err(denied(format!(
                    "out of scope: {place} is not below the directory of a seed"
                )))
            }
            ScopeKind::Host | ScopeKind::Prefix => {
                if self.names.contains(host) {
                    return Ok(());
                }
                Err(denied(format!(
                    "out of scope: host {host} is not the host of a seed"
                )))
            }
        }
    }
}

fn without_scheme(url: &CrawlUrl) -> &str {
    url.as_str()
        .get(url.scheme().as_str().len() + 3..)
        .unwrap_or_default()
}

/// Authority and path up to the last slash.
fn directory(seed: &CrawlUrl) -> &str {
    let place = without_scheme(seed);
    let end = place.find('?').unwrap_or(place.len());
    let path = place.get(..end).unwrap_or_default();
    path.rfind('/')
        .and_then(|slash| path.get(..=slash))
        .unwrap_or(path)
}

/// The first pattern that matches. Only a match costs the search for its text.
fn matching<'a>(set: &RegexSet, patterns: &'a [String], url: &str) -> Option<&'a str> {
    if set.is_empty() || !set.is_match(url) {
        return None;
    }
    let first = set.matches(url).iter().next()?;
    patterns.get(first).map(String::as_str)
}

fn compile(rule: &'static str, patterns: &[String]) -> Result<RegexSet, IntakeError> {
    let bad = |pattern: &str, error: regex::Error| IntakeError::Pattern {
        rule,
        pattern: pattern.to_owned(),
        reason: reason(&error),
    };
    // One by one first, so that the error can name the pattern.
    for pattern in patterns {
        Regex::new(pattern).map_err(|error| bad(pattern, error))?;
    }
    RegexSet::new(patterns).map_err(|error| bad(&patterns.join(" "), error))
}

/// The last line of the compiler's message says what is wrong; the lines before draw a picture.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn denied(reason: String) -> Outcome {
    Outcome::out_of_scope(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CrawlUrl {
        CrawlUrl::from_canonical(text).unwrap()
    }

    fn link(text: &str, kind: LinkKind, depth: u16) -> Link {
        Link {
            url: url(text),
            kind,
            depth,
            priority: 0,
            via: None,
            chain: Vec::new(),
        }
    }

    fn scope(options: ScopeOptions) -> Scope {
        let seeds = [
            url("https://www.example.org/blog/index.html?x=/y/"),
            url("http://127.0.0.1:8080/"),
        ];
        Scope::new(options, &seeds).unwrap()
    }

    fn why(scope: &Scope, text: &str) -> String {
        match scope.verdict(&link(text, LinkKind::A, 1)) {
            Ok(()) => String::new(),
            Err(outcome) => format!("{}: {}", outcome.class, outcome.reason),
        }
    }

    #[test]
    fn kinds_of_scope() {
        let of = |kind| {
            scope(ScopeOptions {
                kind,
                ..ScopeOptions::default()
            })
        };
        let host = of(ScopeKind::Host);
        assert_eq!(why(&host, "http://www.example.org:81/x"), "");
        assert_eq!(why(&host, "http://127.0.0.1/x"), "");
        assert_eq!(
            why(&host, "http://example.org/"),
            "denied_policy: out of scope: host example.org is not the host of a seed"
        );
        let domain = of(ScopeKind::Domain);
        assert_eq!(why(&domain, "http://a.b.example.org/"), "");
        assert_eq!(why(&domain, "http://127.0.0.1:9/"), "");
        assert_eq!(
            why(&domain, "http://x.example.net/"),
            "denied_policy: out of scope: domain example.net is not the domain of a seed"
        );
        assert_ne!(why(&domain, "http://127.0.0.2/"), "");
        let prefix = of(ScopeKind::Prefix);
        assert_eq!(why(&prefix, "http://www.example.org/blog/a/b"), "");
        assert_eq!(why(&prefix, "http://127.0.0.1:8080/any"), "");
        assert_eq!(
            why(&prefix, "https://www.example.org/blo"),
            "denied_policy: out of scope: www.example.org/blo is not below the directory of a seed"
        );
        assert_ne!(why(&prefix, "http://127.0.0.1/any"), "");
        let sitemap = link(
            "https://www.example.org/sitemap.xml",
            LinkKind::SitemapFile,
            0,
        );
        assert_eq!(prefix.verdict(&sitemap), Ok(()));
        assert_eq!(why(&of(ScopeKind::Any), "http://elsewhere.example/"), "");
    }

    #[test]
    fn patterns() {
        let scope = scope(ScopeOptions {
            include: vec!["/blog/".to_owned(), "\\.pdf$".to_owned()],
            exclude: vec!["/private/".to_owned(), "(?i)logout".to_owned()],
            ..ScopeOptions::default()
        });
        assert_eq!(why(&scope, "https://www.example.org/blog/1"), "");
        assert_eq!(why(&scope, "https://www.example.org/x.pdf"), "");
        assert_eq!(
            why(&scope, "https://www.example.org/x"),
            "denied_policy: matches no include pattern"
        );
        assert_eq!(
            why(&scope, "https://www.example.org/blog/LogOut"),
            "denied_policy: excluded by pattern \"(?i)logout\""
        );
        let seed = link("https://www.example.org/x", LinkKind::Seed, 0);
        assert_eq!(scope.verdict(&seed), Ok(()));
        let sitemap = link(
            "https://www.example.org/sitemap.xml",
            LinkKind::SitemapFile,
            0,
        );
        assert_eq!(scope.verdict(&sitemap), Ok(()));
        let excluded = link("https://www.example.org/private/", LinkKind::Seed, 0);
        assert!(scope.verdict(&excluded).is_err());
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let options = ScopeOptions {
            exclude: vec!["fine".to_owned(), "a(b".to_owned()],
            ..ScopeOptions::default()
        };
        let error = Scope::new(options, &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the exclude pattern \"a(b\" is not a regular expression: unclosed group"
        );
    }

    #[test]
    fn depth() {
        let scope = scope(ScopeOptions {
            max_depth: Some(3),
            ..ScopeOptions::default()
        });
        let at = |depth| scope.verdict(&link("http://127.0.0.1:8080/x", LinkKind::A, depth));
        assert_eq!(at(3), Ok(()));
        assert_eq!(at(4).unwrap_err().reason, "deeper than 3");
    }

    #[test]
    fn requisites_only_when_asked_for_and_then_from_anywhere() {
        let picture = link("http://cdn.example/x.png", LinkKind::Img, 2);
        let refused = scope(ScopeOptions::default()).verdict(&picture);
        assert_eq!(
            refused.unwrap_err().reason,
            "page requisites are not fetched (--requisites)"
        );
        let options = ScopeOptions {
            requisites: true,
            include: vec!["nothing".to_owned()],
            ..ScopeOptions::default()
        };
        assert_eq!(scope(options).verdict(&picture), Ok(()));
    }
}
