//! Reading what was fetched: where a page leads, and which of that is new.
//!
//! Pure but for what the crawl knows: the seen-set, the scope with its seeds, and what was counted of traps.

use std::sync::{Arc, Mutex, PoisonError};

use orbweaver_config::Settings;
use orbweaver_docindex::{Entry, Seen};
use orbweaver_extract::{Media, Page};
use orbweaver_intake::{Found, Outlinks, PageRef};
use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, Limits, Link, LinkKind, NewLink, Outcome, OutcomeClass, UrlKey,
    Visit,
};
use orbweaver_spider::AddressPolicy;

use crate::redirect;

/// URLs that move up in their queues with one event. What is left when the crawl ends has no queue to move in.
const PROMOTED: usize = 256;

/// A result, read.
pub struct Reading {
    /// What became of it.
    pub outcome: Outcome,
    /// Where it redirects to.
    pub redirect: Option<String>,
    /// What it links to, judged.
    pub links: Vec<NewLink>,
    /// What else follows from it.
    pub aside: Aside,
}

/// What follows from a page beside its own report.
#[derive(Debug, Default)]
pub struct Aside {
    /// URLs that many pages link to, with their better priorities.
    pub promoted: Vec<(UrlKey, u8)>,
    /// A seed that has moved and made the scope larger.
    pub grew: Option<CrawlUrl>,
}

impl Reading {
    fn plain(outcome: Outcome) -> Self {
        Self {
            outcome,
            redirect: None,
            links: Vec::new(),
            aside: Aside::default(),
        }
    }
}

/// Reads results and judges where they lead.
pub struct PageReader {
    outlinks: Outlinks,
    seed: KeySeed,
    seen: Arc<Seen>,
    limits: Limits,
    agent: String,
    obey_nofollow: bool,
    /// Sitemaps that robots.txt files name are fetched.
    sitemaps: bool,
    policy: AddressPolicy,
    /// URLs that many pages link to, until there are enough for an event. Filled by `read`, up to `PROMOTED` and the
    /// links of one page.
    promoted: Mutex<Vec<(UrlKey, u8)>>,
}

impl PageReader {
    /// A reader that judges links with `outlinks` and knows what `seen` knows.
    pub fn new(
        outlinks: Outlinks,
        seed: KeySeed,
        seen: Arc<Seen>,
        policy: AddressPolicy,
        settings: &Settings,
    ) -> Self {
        Self {
            outlinks,
            seed,
            seen,
            limits: settings.limits.clone(),
            agent: settings.agent.clone(),
            obey_nofollow: settings.obey_nofollow,
            sitemaps: settings.sitemaps,
            policy,
            promoted: Mutex::default(),
        }
    }

    /// Scope, traps and the canonical form.
    pub fn outlinks(&self) -> &Outlinks {
        &self.outlinks
    }

    /// The secret that keys the crawl's hashes.
    pub fn seed(&self) -> KeySeed {
        self.seed
    }

    /// How much is taken from any server.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The crawler's name in robots.txt.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Whether a URL is known.
    pub fn knows(&self, url: &CrawlUrl) -> bool {
        self.seen.contains(url.key(self.seed))
    }

    /// Reads a result. A reader that fails on some page must not take the crawl with it: the page is recorded so.
    pub fn read(&self, visit: &Visit) -> Reading {
        let read = std::panic::AssertUnwindSafe(|| self.read_unguarded(visit));
        std::panic::catch_unwind(read).unwrap_or_else(|_| {
            Reading::plain(Outcome::because(
                OutcomeClass::FailedParse,
                "the page reader failed; please report this page",
            ))
        })
    }

    fn read_unguarded(&self, visit: &Visit) -> Reading {
        let outcome = visit.result.outcome.clone();
        match outcome.class {
            OutcomeClass::RedirectFollowed => self.redirect(visit),
            class if class.is_document() => self.document(visit, outcome),
            _ => Reading::plain(outcome),
        }
    }

    fn redirect(&self, visit: &Visit) -> Reading {
        let key_of = |url: &CrawlUrl| url.key(self.seed);
        let max = self.limits.max_redirects;
        let way = redirect::judge(visit, &self.outlinks, &self.policy, key_of, max);
        let grew = way.link.as_ref().and_then(|new| self.admit(new));
        Reading {
            outcome: way.outcome,
            redirect: way.target,
            links: way.link.into_iter().collect(),
            aside: Aside {
                grew,
                ..Aside::default()
            },
        }
    }

    /// A seed that has moved takes the scope with it; the seed, when that makes the scope larger.
    fn admit(&self, new: &NewLink) -> Option<CrawlUrl> {
        let is_seed = new.link.kind == LinkKind::Seed && new.refused.is_none();
        let grew = is_seed && self.outlinks.admit_seed(&new.link.url);
        grew.then(|| new.link.url.clone())
    }

    fn document(&self, visit: &Visit, mut outcome: Outcome) -> Reading {
        let Some(exchange) = &visit.result.exchange else {
            return Reading::plain(outcome);
        };
        let candidate = &visit.candidate;
        let page = Page {
            url: &candidate.url,
            headers: &exchange.headers,
            body: &exchange.body,
            limits: &self.limits,
            agent: &self.agent,
            kind: candidate.kind,
        };
        let reading = orbweaver_extract::read(&page);
        if let Some(note) = reading.notes.first().filter(|_| outcome.reason.is_empty()) {
            outcome = Outcome::because(outcome.class, note.to_string());
        }
        let copies = self.note(&page, &reading, candidate.revisit.is_some());
        let encode = orbweaver_extract::query_encoder(reading.encoding);
        let page = PageRef {
            url: &candidate.url,
            key: candidate.key,
            kind: candidate.kind,
            depth: candidate.depth,
            base: reading.base.as_deref(),
            encoding: encode.as_ref().map(|encode| encode as _),
            copies,
        };
        let found = reading.links.iter().map(|link| Found {
            href: link.href,
            kind: link.kind,
            nofollow: link.nofollow && self.obey_nofollow,
            weight: link.weight,
        });
        let out = self
            .outlinks
            .links(&page, found, |key, role| self.seen.is_old_news(key, role));
        if out.cut && outcome.reason.is_empty() {
            let max = self.limits.max_links_per_page;
            outcome.reason = orbweaver_extract::Note::MoreLinks(max).to_string();
        }
        Reading {
            outcome,
            redirect: None,
            links: out.links,
            aside: Aside {
                promoted: self.promote(out.promoted),
                grew: None,
            },
        }
    }

    /// Tells the rules against traps of a document; how many others of its host say the same. On a later visit it
    /// would be a copy of itself.
    fn note(&self, page: &Page<'_>, reading: &orbweaver_extract::Reading, again: bool) -> u32 {
        let traps = self.outlinks.traps();
        match reading.media {
            _ if again => 0,
            Media::Html => traps.note(page.url, || {
                orbweaver_extract::fingerprint(page, &reading.links)
            }),
            _ => {
                traps.note_file(page.url);
                0
            }
        }
    }

    /// Collects what moves up in the queues, for the fold reads for each of them and does that best in one go. All that
    /// was collected, when it is enough.
    fn promote(&self, promoted: Vec<(UrlKey, u8)>) -> Vec<(UrlKey, u8)> {
        if promoted.is_empty() {
            return promoted;
        }
        let mut waiting = self.promoted.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(promoted);
        match waiting.len() >= PROMOTED {
            true => std::mem::take(&mut *waiting),
            false => Vec::new(),
        }
    }

    /// Seeds as links, judged.
    pub fn judge_seeds(&self, urls: &[CrawlUrl]) -> Vec<NewLink> {
        let link = |url: &CrawlUrl| Link {
            url: url.clone(),
            kind: LinkKind::Seed,
            depth: 0,
            priority: orbweaver_intake::priority(LinkKind::Seed),
            via: None,
            chain: Vec::new(),
        };
        urls.iter()
            .map(|url| self.outlinks.judge(link(url)))
            .collect()
    }

    /// Sitemaps named by a robots.txt, as links.
    pub fn sitemaps(&self, origin: &str, urls: &[Box<str>]) -> Vec<NewLink> {
        let base = CrawlUrl::from_canonical(&format!("{origin}/robots.txt"));
        let (true, Ok(base)) = (self.sitemaps, base) else {
            return Vec::new();
        };
        let page = PageRef {
            key: base.key(self.seed),
            url: &base,
            kind: LinkKind::Seed,
            depth: 0,
            base: None,
            encoding: None,
            copies: 0,
        };
        let found = urls.iter().map(|href| Found {
            href,
            kind: LinkKind::SitemapFile,
            nofollow: false,
            weight: orbweaver_extract::NORMAL,
        });
        let links = self
            .outlinks
            .links(&page, found, |key, role| self.seen.is_old_news(key, role))
            .links;
        // A sitemap is no page: what it lists counts from where the crawl began.
        let links = links.into_iter().map(|new| {
            self.outlinks.judge(Link {
                depth: 0,
                via: None,
                ..new.link
            })
        });
        links.collect()
    }

    /// The candidate that an entry of the doc index stands for.
    pub fn candidate(&self, entry: Entry) -> Candidate {
        let link = entry.link;
        Candidate {
            key: link.url.key(self.seed),
            doc_id: link.doc_id,
            url: link.url,
            kind: link.kind,
            depth: link.depth,
            attempts: entry.fate.as_ref().map_or(0, |fate| fate.attempts),
            chain: link.chain,
            revisit: entry.fate.and_then(|fate| fate.revisit),
        }
    }
}
