//! From the hrefs of a page to links of the ring: resolved, judged, and each once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use orbweaver_model::{CrawlUrl, KeySeed, Limits, Link, LinkKind, NewLink, Outcome, Role, UrlKey};
use url::Url;

use crate::canonical::{CanonicalError, Canonicalizer, QueryEncoding};
use crate::fast::Base;
use crate::inlinks::Inlinks;
use crate::rule::{LinkRule, Rule};
use crate::scope::Scope;
use crate::traps::Traps;

/// A reference as it stood on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The reference, entities already decoded.
    pub href: &'a str,
    /// Where it stood.
    pub kind: LinkKind,
    /// True when the page asks not to follow it; such a reference is counted and left alone.
    pub nofollow: bool,
    /// How much the site makes of it among its own: 0 to 100, 50 when nothing is said.
    pub weight: u8,
}

/// The page on which references were found.
#[derive(Clone, Copy)]
pub struct PageRef<'a> {
    /// Its URL, against which references are resolved.
    pub url: &'a CrawlUrl,
    /// Its key, which becomes `via` of its links.
    pub key: UrlKey,
    /// How the page itself was found.
    pub kind: LinkKind,
    /// Links followed from the seed to this page.
    pub depth: u16,
    /// The href of its `<base>`, when it has one.
    pub base: Option<&'a str>,
    /// How its queries are encoded; none means UTF-8.
    pub encoding: QueryEncoding<'a>,
    /// How many other pages of its host say the same: see [`Traps::note`].
    pub copies: u32,
}

/// What became of the references of one page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageLinks {
    /// Links that tell something new, with their verdicts, in the order of the page: each URL once, or twice when it is
    /// linked both as a page and as a requisite.
    pub links: Vec<NewLink>,
    /// URLs that were known before, each counted once however often the page refers to it.
    pub known: usize,
    /// Those of them that so many pages link to that they go before others of their kind.
    pub promoted: Vec<(UrlKey, u8)>,
    /// References that the page asks not to follow.
    pub nofollow: usize,
    /// References that are no http or https URL: mailto:, javascript: and the like.
    pub not_http: usize,
    /// Pictures, styles and scripts that this crawl does not want.
    pub unwanted: usize,
    /// References that are no usable URL at all.
    pub unusable: usize,
    /// True when the page had more links to follow than `max_links_per_page`, or a sitemap more
    /// than `max_sitemap_urls`, and the rest was left.
    pub cut: bool,
}

/// The priority of a link: what is found first is fetched first within one number.
///
/// | priority | what |
/// |---|---|
/// | 0 | seeds, and redirects, which continue a fetch that has begun |
/// | 8 | sitemap files, because one request yields many links |
/// | 16 | pages linked from pages |
/// | 24 | pages named only by a sitemap: thousands at once must not displace the breadth-first walk |
/// | 32 | style sheets and what they import |
/// | 40 | pictures, scripts, media |
///
/// A page of a sitemap moves up to six numbers by the priority that the sitemap gives it, and a link that many
/// pages have moves two or four numbers up.
pub const fn priority(kind: LinkKind) -> u8 {
    match kind {
        LinkKind::Seed | LinkKind::Redirect => 0,
        LinkKind::SitemapFile => 8,
        LinkKind::Sitemap => 24,
        LinkKind::Stylesheet | LinkKind::Css => 32,
        LinkKind::Img | LinkKind::Srcset | LinkKind::Script | LinkKind::Media => 40,
        LinkKind::A
        | LinkKind::Area
        | LinkKind::Link
        | LinkKind::Iframe
        | LinkKind::Form
        | LinkKind::Refresh
        | LinkKind::Header => 16,
    }
}

/// The priority of a link that a sitemap gives a weight, 0 to 100: within the numbers that are its kind's own,
/// two less than the neighbours', so that the weight orders a site's pages and nothing else.
fn weighted(kind: LinkKind, weight: u8) -> u8 {
    match kind {
        LinkKind::Sitemap => {
            let below = (u16::from(weight.min(100)) * 12 + 50) / 100;
            priority(kind) + 6 - u8::try_from(below).unwrap_or(0)
        }
        _ => priority(kind),
    }
}

/// Room made for the first new link of a page, because few pages that have one have only one.
const FIRST_ROOM: usize = 24;

/// What may still be taken from a page. Only what is followed counts: not what stands there twice, nor what the
/// crawl does not want. Links that are out of scope are recorded, so they have a bound of their own; and so have
/// pictures and styles, lest a page full of them hide where it leads.
struct Room {
    pages: usize,
    requisites: usize,
    sitemap: usize,
    refused: usize,
    /// True when the page has so many references that it matters which of them count.
    is_short: bool,
}

impl Room {
    fn new(max_links: usize, max_sitemap_urls: usize, references: usize) -> Self {
        Self {
            pages: max_links,
            requisites: max_links,
            sitemap: max_sitemap_urls,
            refused: max_links.max(max_sitemap_urls),
            is_short: references > max_links,
        }
    }

    fn of(&mut self, kind: LinkKind) -> &mut usize {
        match kind {
            LinkKind::Sitemap | LinkKind::SitemapFile => &mut self.sitemap,
            kind if kind.is_requisite() => &mut self.requisites,
            _ => &mut self.pages,
        }
    }

    fn has(&mut self, kind: LinkKind) -> bool {
        *self.of(kind) > 0
    }

    fn take(&mut self, kind: LinkKind) {
        let left = self.of(kind);
        *left = left.saturating_sub(1);
    }

    /// False when no more refused links are recorded.
    fn refuse(&mut self) -> bool {
        let has = self.refused > 0;
        self.refused = self.refused.saturating_sub(1);
        has
    }
}

/// Turns references into links.
#[derive(Debug)]
pub struct Outlinks {
    canonicalizer: Canonicalizer,
    /// Read for every link; written only when a seed turns out to have moved.
    scope: RwLock<Scope>,
    /// The user's own.
    rule: Rule,
    traps: Traps,
    inlinks: Inlinks,
    seed: KeySeed,
    max_links: usize,
    max_sitemap_urls: usize,
}

impl Outlinks {
    /// With the canonical form, the scope, the memory of traps and the key seed of one crawl.
    pub fn new(
        canonicalizer: Canonicalizer,
        scope: Scope,
        traps: Traps,
        seed: KeySeed,
        limits: &Limits,
    ) -> Self {
        Self {
            canonicalizer,
            scope: RwLock::new(scope),
            rule: Rule::default(),
            traps,
            inlinks: Inlinks::default(),
            seed,
            max_links: limits.max_links_per_page,
            max_sitemap_urls: limits.max_sitemap_urls,
        }
    }

    /// With a rule of the user's own.
    pub fn with_rule(mut self, rule: Arc<dyn LinkRule>) -> Self {
        self.rule = Rule::new(rule);
        self
    }

    /// The canonical form in use.
    pub fn canonicalizer(&self) -> &Canonicalizer {
        &self.canonicalizer
    }

    /// What is known of traps.
    pub fn traps(&self) -> &Traps {
        &self.traps
    }

    /// From now on this URL counts as a seed. True when that makes the scope larger.
    pub fn admit_seed(&self, url: &CrawlUrl) -> bool {
        let mut scope = self.scope.write().unwrap_or_else(PoisonError::into_inner);
        scope.admit(url)
    }

    /// Whether URLs of a host may be in scope for the sake of these seeds.
    pub fn is_near(&self, seeds: &[CrawlUrl], host: &str) -> bool {
        let scope = self.scope();
        seeds.iter().any(|seed| scope.reaches(seed, host))
    }

    /// What the seeds and the user's rule make of the scope, in words that are the same for the same scope.
    pub fn seeds_in_words(&self) -> String {
        let seeds = self.scope().seeds_in_words();
        match self.rule.name() {
            "" => seeds,
            name => format!("{seeds} rule {name}"),
        }
    }

    /// Whether the page requisites are wanted.
    pub fn requisites(&self) -> bool {
        self.scope().requisites()
    }

    /// From now on links are judged by this scope.
    pub fn set_scope(&self, scope: Scope) {
        *self.scope.write().unwrap_or_else(PoisonError::into_inner) = scope;
    }

    /// What scope and rule say of a link, without any trace of the question.
    pub fn scope_verdict(&self, link: &Link) -> Result<(), Outcome> {
        self.scope().verdict(link)?;
        self.rule.verdict(link)
    }

    fn scope(&self) -> RwLockReadGuard<'_, Scope> {
        self.scope.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges links that come from no page: seeds, redirects, sitemaps named by robots.txt.
    pub fn judge(&self, link: Link) -> NewLink {
        self.judge_on(link, None)
    }

    /// Scope first, because what is out of it must not count for a trap.
    fn judge_on(&self, mut link: Link, page: Option<&PageRef<'_>>) -> NewLink {
        let verdict = self.scope_verdict(&link);
        self.rule.rank(&mut link);
        let from = page.map(|page| (page.url, page.copies));
        let refused = verdict.and_then(|()| self.traps.verdict(&link, from)).err();
        NewLink { link, refused }
    }

    /// The links of a page. `known` is asked whether a URL is known already so that nothing can follow from another link
    /// like this one, before anything is built for it.
    pub fn links<'f>(
        &self,
        page: &PageRef<'_>,
        found: impl IntoIterator<Item = Found<'f>>,
        known: impl Fn(UrlKey, Role) -> bool,
    ) -> PageLinks {
        let mut out = PageLinks::default();
        let named = page.base.and_then(|href| named_base(page.url, href));
        let base = match &named {
            Some(url) => Base::new(url),
            None => Base::of(page.url),
        };
        // The text of one link after the other; only what is new becomes a URL of its own.
        let mut text = String::with_capacity(256);
        // What the page has said of each URL so far. A page that refers to another in a hundred places is one page that
        // links to it; but a URL that is shown as a picture and linked as a page is both.
        let mut said: HashMap<UrlKey, Said, BuildHasherDefault<KeyHasher>> = HashMap::default();
        said.reserve(FIRST_ROOM);
        let found = found.into_iter();
        let mut room = Room::new(self.max_links, self.max_sitemap_urls, found.size_hint().0);
        for found in found {
            let Some(key) = self.resolve(page, &base, found, &mut text, &mut out) else {
                continue;
            };
            let said = said.entry(key).or_default();
            if said.has(found.kind) {
                continue;
            }
            if !room.has(found.kind) {
                out.cut = true;
                continue;
            }
            let is_first = *said == Said::default();
            said.note(found.kind);
            let depth = depth_of(page, found.kind);
            if known(key, found.kind.role(depth)) {
                out.known += usize::from(is_first);
                if is_first && (!room.is_short || self.is_in_scope(page, &text, found.kind)) {
                    room.take(found.kind);
                }
                if let Some(level) = is_first.then(|| self.inlinks.note(key)).flatten() {
                    let better = priority(found.kind).saturating_sub(2 * level);
                    out.promoted.push((key, better));
                }
                continue;
            }
            let Ok(url) = CrawlUrl::from_canonical(&text) else {
                out.unusable += 1;
                continue;
            };
            if out.links.is_empty() {
                out.links.reserve(FIRST_ROOM);
            }
            let link = Link {
                url,
                kind: found.kind,
                depth,
                priority: weighted(found.kind, found.weight),
                via: Some(page.key),
                chain: Vec::new(),
            };
            let new = self.judge_on(link, Some(page));
            if new.refused.is_none() {
                room.take(found.kind);
            } else if !room.refuse() {
                out.cut = true;
                continue;
            }
            said.accepted |= new.refused.is_none();
            out.links.push(new);
        }
        out
    }

    /// Whether a URL that is known would be followed from this page, were it new.
    fn is_in_scope(&self, page: &PageRef<'_>, url: &str, kind: LinkKind) -> bool {
        CrawlUrl::from_canonical(url).is_ok_and(|url| {
            let link = Link {
                url,
                kind,
                depth: depth_of(page, kind),
                priority: priority(kind),
                via: None,
                chain: Vec::new(),
            };
            self.scope_verdict(&link).is_ok()
        })
    }

    /// The key of a reference that this crawl could want, and its text in `text`; what it cannot is counted.
    fn resolve(
        &self,
        page: &PageRef<'_>,
        base: &Base<'_>,
        found: Found<'_>,
        text: &mut String,
        out: &mut PageLinks,
    ) -> Option<UrlKey> {
        if found.nofollow {
            out.nofollow += 1;
            return None;
        }
        if !self.wants(page.kind, found.kind) {
            out.unwanted += 1;
            return None;
        }
        let canonicalizer = &self.canonicalizer;
        match canonicalizer.resolve_into(base, found.href, page.encoding, text) {
            Ok(()) => Some(self.seed.key_of(text)).filter(|key| *key != page.key),
            Err(CanonicalError::Scheme) => {
                out.not_http += 1;
                None
            }
            Err(_) => {
                out.unusable += 1;
                None
            }
        }
    }

    /// Requisites are no links of the crawl unless they are asked for, and nothing is followed
    /// from them but what style sheets need. Whether something is a style sheet is for its content to say: it may have been
    /// found by a link of any kind first.
    fn wants(&self, page: LinkKind, link: LinkKind) -> bool {
        if page.is_requisite() {
            return link == LinkKind::Css && self.scope().requisites();
        }
        !link.is_requisite() || self.scope().requisites()
    }
}

/// What a page has said of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    page: bool,
    requisite: bool,
    accepted: bool,
}

impl Said {
    /// True when another link of this kind adds nothing.
    fn has(self, kind: LinkKind) -> bool {
        match kind.is_requisite() {
            true => self.requisite || (self.page && self.accepted),
            false => self.page,
        }
    }

    fn note(&mut self, kind: LinkKind) {
        match kind.is_requisite() {
            true => self.requisite = true,
            false => self.page = true,
        }
    }
}

/// Pictures and other requisites have the depth of their page, so that the deepest pages are shown
/// whole; so have the files of a sitemap index. All else is one link further.
fn depth_of(page: &PageRef<'_>, kind: LinkKind) -> u16 {
    let same_depth = kind.is_requisite() || kind == LinkKind::SitemapFile;
    page.depth.saturating_add(u16::from(!same_depth))
}

/// What a `<base>` makes the base URL, when that is a http or https URL. Else it is the page's own.
fn named_base(page: &CrawlUrl, href: &str) -> Option<Url> {
    let base = Url::parse(page.as_str()).ok()?.join(href).ok()?;
    matches!(base.scheme(), "http" | "https").then_some(base)
}

/// A key is a keyed hash already; hashing it again would only cost time.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(b);
        }
    }

    fn write_u64(&mut self, n: u64) {
        // The host comes first and the URL second; the URL is what differs.
        self.0 = self.0.rotate_left(32) ^ n;
    }
}

#[cfg(test)]
mod tests {
    use orbweaver_model::Timestamp;

    use super::*;
    use crate::scope::ScopeOptions;
    use crate::traps::TrapOptions;

    const SEED: KeySeed = KeySeed(7);

    fn outlinks(requisites: bool, limits: &Limits) -> Outlinks {
        let seeds = [CrawlUrl::from_canonical("http://example.org/").unwrap()];
        let options = ScopeOptions {
            requisites,
            ..ScopeOptions::default()
        };
        let scope = Scope::new(options, &seeds).unwrap();
        let traps = Traps::new(TrapOptions::default(), SEED, Timestamp::default());
        Outlinks::new(Canonicalizer::default(), scope, traps, SEED, limits)
    }

    fn run(
        outlinks: &Outlinks,
        page_kind: LinkKind,
        base: Option<&str>,
        found: &[(&str, LinkKind)],
        seen: impl Fn(UrlKey) -> bool,
    ) -> PageLinks {
        let url = CrawlUrl::from_canonical("http://example.org/dir/page").unwrap();
        let page = PageRef {
            url: &url,
            key: url.key(SEED),
            kind: page_kind,
            depth: 4,
            base,
            encoding: None,
            copies: 0,
        };
        let found = found.iter().map(|(href, kind)| Found {
            href,
            kind: *kind,
            nofollow: href.contains("nofollow"),
            weight: 50,
        });
        outlinks.links(&page, found, |key, _| seen(key))
    }

    fn urls(out: &PageLinks) -> Vec<(&str, bool)> {
        out.links
            .iter()
            .map(|new| (new.link.url.as_str(), new.refused.is_none()))
            .collect()
    }

    #[test]
    fn each_link_once_and_the_rest_counted() {
        let known = CrawlUrl::from_canonical("http://example.org/known").unwrap();
        let out = run(
            &outlinks(false, &Limits::default()),
            LinkKind::A,
            None,
            &[
                ("a", LinkKind::A),
                ("/dir/a#x", LinkKind::Area),
                ("b?c", LinkKind::A),
                ("/known", LinkKind::A),
                ("http://other.example/", LinkKind::A),
                ("mailto:x@y.z", LinkKind::A),
                ("javascript:void(0)", LinkKind::A),
                ("http://[bad", LinkKind::A),
                ("nofollow", LinkKind::A),
                ("pic.png", LinkKind::Img),
                ("page", LinkKind::A),
            ],
            |key| key == known.key(SEED),
        );
        assert_eq!(
            urls(&out),
            [
                ("http://example.org/dir/a", true),
                ("http://example.org/dir/b?c", true),
                ("http://other.example/", false),
            ]
        );
        assert_eq!((out.known, out.not_http, out.unusable), (1, 2, 1));
        assert_eq!((out.nofollow, out.unwanted, out.cut), (1, 1, false));
        let first = &out.links[0].link;
        assert_eq!(
            (first.depth, first.priority, first.kind),
            (5, 16, LinkKind::A)
        );
        assert_eq!(
            first.via,
            Some(
                CrawlUrl::from_canonical("http://example.org/dir/page")
                    .unwrap()
                    .key(SEED)
            )
        );
    }

    #[test]
    fn a_page_counts_once_for_what_it_links_to() {
        let outlinks = outlinks(false, &Limits::default());
        let hrefs: Vec<String> = (0..250).map(|n| format!("/known#{n}")).collect();
        let found: Vec<_> = hrefs
            .iter()
            .map(|href| (href.as_str(), LinkKind::A))
            .collect();
        for page in 1..=64 {
            let out = run(&outlinks, LinkKind::A, None, &found, |_| true);
            assert_eq!(
                (out.known, out.promoted.len()),
                (1, usize::from(page == 64))
            );
        }
    }

    #[test]
    fn bases() {
        let outlinks = outlinks(false, &Limits::default());
        for (base, expected) in [
            (Some("/other/"), "http://example.org/other/x"),
            (Some("http://example.org:81/y"), "http://example.org:81/x"),
            (Some("javascript:1"), "http://example.org/dir/x"),
            (Some("data:text/html,"), "http://example.org/dir/x"),
            (Some("http://[bad"), "http://example.org/dir/x"),
            (None, "http://example.org/dir/x"),
        ] {
            let out = run(&outlinks, LinkKind::A, base, &[("x", LinkKind::A)], |_| {
                false
            });
            assert_eq!(urls(&out), [(expected, true)], "{base:?}");
        }
    }

    #[test]
    fn requisites_have_the_depth_of_their_page() {
        let outlinks = outlinks(true, &Limits::default());
        let found = [
            ("http://cdn.example/p.png", LinkKind::A),
            ("http://cdn.example/p.png", LinkKind::Img),
            ("s.css", LinkKind::Stylesheet),
        ];
        let out = run(&outlinks, LinkKind::A, None, &found, |_| false);
        assert_eq!(
            urls(&out),
            [
                ("http://cdn.example/p.png", false),
                ("http://cdn.example/p.png", true),
                ("http://example.org/dir/s.css", true),
            ]
        );
        assert_eq!(
            (out.links[1].link.kind, out.links[1].link.depth),
            (LinkKind::Img, 4)
        );
    }

    #[test]
    fn from_requisites_only_css_leads_on() {
        let outlinks = outlinks(true, &Limits::default());
        let found = [
            ("a", LinkKind::A),
            ("b.png", LinkKind::Css),
            ("c", LinkKind::Header),
        ];
        for page in [LinkKind::Stylesheet, LinkKind::Img] {
            let out = run(&outlinks, page, None, &found, |_| false);
            assert_eq!(urls(&out), [("http://example.org/dir/b.png", true)]);
            assert_eq!(out.unwanted, 2);
        }
    }

    #[test]
    fn counts_are_bounded() {
        let limits = Limits {
            max_links_per_page: 3,
            max_sitemap_urls: 5,
            ..Limits::default()
        };
        let outlinks = outlinks(false, &limits);
        let hrefs: Vec<String> = (0..9).map(|n| format!("/{n}")).collect();
        for (kind, max) in [(LinkKind::A, 3), (LinkKind::Sitemap, 5)] {
            let found: Vec<_> = hrefs.iter().map(|href| (href.as_str(), kind)).collect();
            let out = run(&outlinks, LinkKind::A, None, &found, |_| false);
            assert_eq!((out.links.len(), out.cut), (max, true));
        }
    }

    /// What is not followed leaves the room to what is: a page of an index may have thousands of such links in front
    /// of the one that leads on.
    #[test]
    fn only_what_is_followed_counts() {
        let limits = Limits {
            max_links_per_page: 3,
            max_sitemap_urls: 3,
            ..Limits::default()
        };
        for known in [false, true] {
            let outlinks = outlinks(false, &limits);
            let mut found: Vec<(String, LinkKind)> = Vec::new();
            for n in 0..50 {
                found.push((format!("a#part-{n}"), LinkKind::A));
                found.push((format!("mailto:{n}@example.org"), LinkKind::A));
                found.push((format!("nofollow-{n}"), LinkKind::A));
                found.push((format!("{n}.png"), LinkKind::Img));
                found.push((format!("http://other.example/{}", n % 3), LinkKind::A));
                found.push((format!("page#{n}"), LinkKind::A));
                found.push((format!("http://[bad-{n}"), LinkKind::A));
            }
            for last in ["b", "c", "d"] {
                found.push((last.to_owned(), LinkKind::A));
            }
            let found: Vec<(&str, LinkKind)> =
                found.iter().map(|(href, kind)| (&**href, *kind)).collect();
            // Whether a URL is known already makes no difference to what is taken.
            let far = |n| CrawlUrl::from_canonical(&format!("http://other.example/{n}")).unwrap();
            let keys = [0, 1, 2].map(|n| far(n).key(SEED));
            let out = run(&outlinks, LinkKind::A, None, &found, |key| {
                known && keys.contains(&key)
            });
            let taken: Vec<_> = urls(&out).into_iter().filter(|(_, ok)| *ok).collect();
            assert_eq!(
                taken,
                [
                    ("http://example.org/dir/a", true),
                    ("http://example.org/dir/b", true),
                    ("http://example.org/dir/c", true),
                ]
            );
            assert!(out.cut);
        }
    }

    #[test]
    fn order_of_the_kinds() {
        let order = [
            LinkKind::Redirect,
            LinkKind::SitemapFile,
            LinkKind::A,
            LinkKind::Sitemap,
            LinkKind::Stylesheet,
            LinkKind::Img,
        ];
        assert!(
            order
                .windows(2)
                .all(|pair| priority(pair[0]) < priority(pair[1]))
        );
    }
}
