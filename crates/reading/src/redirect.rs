//! Where a redirect leads, and whether the crawl goes there.
//!
//! Nothing is followed here: the target is a link like any other and comes back through the ring, so that
//! robots.txt, politeness, scope and the address policy hold for it.

use url::Url;

use orbweaver_intake::{Canonicalizer, Outlinks};
use orbweaver_model::{
    Candidate, CrawlUrl, FetchResult, Link, LinkKind, NewLink, Outcome, OutcomeClass, UrlKey,
    Visit, text,
};
use orbweaver_spider::AddressPolicy;

/// What follows from a redirect.
#[derive(Debug)]
pub(crate) struct Redirect {
    /// What is recorded for the URL that redirected.
    pub(crate) outcome: Outcome,
    /// The target, canonical when it is a URL; as written, bounded and with hidden characters escaped, when it is not.
    pub(crate) target: Option<String>,
    /// The target as a link, to be fetched or recorded as refused.
    pub(crate) link: Option<NewLink>,
}

/// Reads the Location of a response against the URL that gave it.
pub fn location(
    asked: &CrawlUrl,
    result: &FetchResult,
    outlinks: &Outlinks,
) -> (Option<CrawlUrl>, Option<String>) {
    resolve(asked, result, outlinks.canonicalizer())
}

/// The same for who has no crawl: the target as a URL, and as written.
pub fn resolve(
    asked: &CrawlUrl,
    result: &FetchResult,
    canonicalizer: &Canonicalizer,
) -> (Option<CrawlUrl>, Option<String>) {
    let Some(value) = result
        .exchange
        .as_ref()
        .and_then(|exchange| exchange.headers.get(http::header::LOCATION))
    else {
        return (None, None);
    };
    // Header bytes beyond ASCII are UTF-8 where they are anything.
    let href = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let resolved = Url::parse(asked.as_str())
        .ok()
        .filter(|_| !is_broken_absolute(&href))
        .and_then(|base| canonicalizer.resolve(&base, &href, None).ok());
    (resolved, Some(text::bounded(href, text::MAX_TARGET)))
}

/// `ht!tp://x` has no scheme, and as a relative reference its first segment must not hold a colon
/// (RFC 3986, 4.2). The URL parser forgives that; but what was meant was certainly another place.
fn is_broken_absolute(href: &str) -> bool {
    let href = href.trim();
    let first = href.split(['/', '?', '#']).next().unwrap_or_default();
    first.contains(':') && Url::parse(href) == Err(url::ParseError::RelativeUrlWithoutBase)
}

/// Judges the redirect of a page.
pub(crate) fn judge(
    visit: &Visit,
    outlinks: &Outlinks,
    policy: &AddressPolicy,
    key_of: impl Fn(&CrawlUrl) -> UrlKey,
    max_redirects: usize,
) -> Redirect {
    let candidate = &visit.candidate;
    let (url, written) = location(&candidate.url, &visit.result, outlinks);
    let Some(url) = url else {
        let reason = "the Location header is not a URL that can be followed";
        return Redirect {
            outcome: refused(reason),
            target: written,
            link: None,
        };
    };
    let target = Some(url.to_string());
    if let Err(why) = permitted(&url, policy) {
        return Redirect {
            outcome: refused(&why),
            target,
            link: None,
        };
    }
    let key = key_of(&url);
    if key == candidate.key || candidate.chain.contains(&key) {
        let outcome = Outcome::because(OutcomeClass::RedirectLimit, "redirect loop");
        return Redirect {
            outcome,
            target,
            link: None,
        };
    }
    if candidate.chain.len() >= max_redirects {
        let reason = format!("more than {max_redirects} redirects in a row");
        return Redirect {
            outcome: Outcome::because(OutcomeClass::RedirectLimit, reason),
            target,
            link: None,
        };
    }
    let new = follow(candidate, url, outlinks);
    let outcome = match &new.refused {
        Some(why) => refused(&format!("its target is refused: {}", why.reason)),
        None => Outcome::plain(OutcomeClass::RedirectFollowed),
    };
    Redirect {
        outcome,
        target,
        link: Some(new),
    }
}

/// A redirect stays within the scope, with one exception: a seed that has moved. Whoever asks for
/// example.org and is sent to www.example.org means the site there; the caller admits it to the scope.
fn follow(candidate: &Candidate, url: CrawlUrl, outlinks: &Outlinks) -> NewLink {
    let link = continuation(candidate, url);
    if candidate.kind != LinkKind::Seed {
        return outlinks.judge(link);
    }
    outlinks.judge(Link {
        kind: LinkKind::Seed,
        ..link
    })
}

/// An address in the URL itself can be judged at once; names are judged when they are connected to.
fn permitted(url: &CrawlUrl, policy: &AddressPolicy) -> Result<(), String> {
    policy
        .check_port(url.port())
        .map_err(|why| format!("port {}: {}", url.port(), why.0))?;
    match url.host_ip() {
        Some(ip) => policy.check(ip).map_err(|why| format!("{ip}: {}", why.0)),
        None => Ok(()),
    }
}

fn continuation(candidate: &Candidate, url: CrawlUrl) -> Link {
    let mut chain = candidate.chain.clone();
    chain.push(candidate.key);
    Link {
        url,
        // What a page needs is needed from wherever it has moved to.
        kind: match candidate.kind.is_requisite() {
            true => candidate.kind,
            false => LinkKind::Redirect,
        },
        depth: candidate.depth,
        priority: orbweaver_intake::priority(LinkKind::Redirect),
        via: Some(candidate.key),
        chain,
    }
}

fn refused(reason: &str) -> Outcome {
    Outcome::because(OutcomeClass::RedirectRefused, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_that_is_no_reference_at_all() {
        for href in ["ht!tp://[::bad]:99999/%%%", " a:b c/d", "1http://x/"] {
            let broken = is_broken_absolute(href);
            assert_eq!(broken, !href.contains("a:b"), "{href}");
        }
        for href in [
            "/a:b",
            "?x=a:b",
            "b/c:d",
            "http://x/",
            "//x/y:z",
            "javascript:x",
            "",
        ] {
            assert!(!is_broken_absolute(href), "{href}");
        }
    }
}
