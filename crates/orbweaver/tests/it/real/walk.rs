//! The set of URLs that a reader of a tree reaches from its root, with the way to each.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use sha1::{Digest as _, Sha1};
use url::Url;

use super::reader::{self, Document, Found, Way};
use super::site::Tree;

/// More URLs than any tree that is honestly finite.
const MAX_URLS: usize = 3_000_000;

/// Seeds of one crawl.
const MAX_SEEDS: usize = 12;

/// By whose rules references are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// The crawler's: pages, and nothing else.
    Pages,
    /// The crawler's with `--requisites`: what pages are shown with, too.
    Requisites,
    /// wget's: everything is fetched, and whatever is HTML or CSS is read. It takes text in scripts and comments
    /// for tags now and then; what is reached only so is [`Way::Unreal`].
    Wget,
}

/// How a URL was reached.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    pub(crate) way: Way,
    /// The target of the page that named it first; empty for a seed.
    pub(crate) from: String,
    /// The element that did.
    pub(crate) place: String,
    pub(crate) status: u16,
    /// SHA-1 of the body in base32, as archives have it.
    pub(crate) digest: String,
}

impl Reached {
    /// Where the reference stood, in words.
    pub(crate) fn told(&self) -> String {
        match self.from.is_empty() {
            true => "a seed".to_owned(),
            false => format!("{} of {}", self.place, self.from),
        }
    }
}

/// Walks over a tree by one set of rules after the other, and reads each document once.
pub(crate) struct Walker<'t> {
    tree: &'t Tree,
    origin: Url,
    library: HashMap<String, Rc<Entry>>,
}

/// What a target is answered with, read.
struct Entry {
    status: u16,
    media: &'static str,
    location: Option<String>,
    digest: String,
    document: Document,
}

impl<'t> Walker<'t> {
    /// For a tree that is served at `origin`, such as `http://127.1.2.3:4567/`.
    pub(crate) fn new(tree: &'t Tree, origin: &str) -> Self {
        Self {
            tree,
            origin: Url::parse(origin).unwrap(),
            library: HashMap::new(),
        }
    }

    /// Where a crawl has to begin to see the whole tree: at `/`, and then at one page after the other that no link
    /// has led to so far, up to a limit.
    pub(crate) fn seeds(&mut self) -> Vec<String> {
        let mut walk = Walk::new(&self.origin, Rules::Pages);
        let mut seeds = vec!["/".to_owned()];
        walk.reach("/", Way::Page, "", "");
        self.exhaust(&mut walk);
        for page in self.tree.pages(&self.origin) {
            let target = target_of(&page);
            if seeds.len() < MAX_SEEDS && !walk.reached.contains_key(&target) {
                walk.reach(&target, Way::Page, "", "");
                self.exhaust(&mut walk);
                seeds.push(target);
            }
        }
        seeds
    }

    /// Every target that is reached from these.
    pub(crate) fn walk(&mut self, seeds: &[String], rules: Rules) -> BTreeMap<String, Reached> {
        let mut walk = Walk::new(&self.origin, rules);
        for seed in seeds {
            walk.reach(seed, Way::Page, "", "");
        }
        self.exhaust(&mut walk);
        walk.reached
    }

    /// Goes on until nothing new is found.
    fn exhaust(&mut self, walk: &mut Walk) {
        while let Some(target) = walk.next.pop() {
            let entry = self.look_up(&target);
            let known = walk.reached.get_mut(&target).unwrap();
            known.status = entry.status;
            known.digest.clone_from(&entry.digest);
            let way = known.way;
            if let Some(location) = &entry.location {
                // A picture that moved is still a picture.
                walk.follow(&target, None, location, way, "redirect");
            } else if entry.status == 200 {
                walk.read(&target, way, &entry);
            }
        }
    }

    fn look_up(&mut self, target: &str) -> Rc<Entry> {
        if let Some(known) = self.library.get(target) {
            return known.clone();
        }
        let answer = self.tree.answer(target);
        let entry = Rc::new(Entry {
            status: answer.status,
            media: answer.media,
            location: answer.location,
            digest: data_encoding::BASE32.encode(&Sha1::digest(&answer.body)),
            document: reader::read(answer.media, &answer.body),
        });
        self.library.insert(target.to_owned(), entry.clone());
        entry
    }
}

struct Walk {
    origin: Url,
    rules: Rules,
    reached: BTreeMap<String, Reached>,
    /// Targets to be read, or read again because they turned out to be more than they seemed.
    next: Vec<String>,
}

impl Walk {
    fn new(origin: &Url, rules: Rules) -> Self {
        Self {
            origin: origin.clone(),
            rules,
            reached: BTreeMap::new(),
            next: Vec::new(),
        }
    }

    /// A URL that was a picture so far and is linked to as well is a page.
    fn reach(&mut self, target: &str, way: Way, from: &str, place: &str) {
        if let Some(known) = self.reached.get_mut(target) {
            if known.way < way {
                known.way = way;
                self.next.push(target.to_owned());
            }
            return;
        }
        assert!(
            self.reached.len() < MAX_URLS,
            "more than {MAX_URLS} URLs, the last one {target}: this tree has no end"
        );
        let reached = Reached {
            way,
            from: from.to_owned(),
            place: place.to_owned(),
            status: 0,
            digest: String::new(),
        };
        self.reached.insert(target.to_owned(), reached);
        self.next.push(target.to_owned());
    }

    fn read(&mut self, target: &str, way: Way, entry: &Entry) {
        let read = matches!(
            entry.media,
            "text/html" | "application/xhtml+xml" | "text/css"
        );
        if self.rules == Rules::Wget && !read {
            return;
        }
        let document = Some(&entry.document);
        for found in &entry.document.found {
            let wanted = match self.rules {
                Rules::Pages => found.way == Way::Page && !found.nofollow,
                Rules::Requisites => {
                    !found.nofollow && (way == Way::Page || found.place == reader::STYLE)
                }
                Rules::Wget => wget_sees(found, &entry.document),
            };
            if wanted {
                let way = match way {
                    Way::Unreal => Way::Unreal,
                    _ => found.way,
                };
                self.follow(target, document, &found.href, way, &found.place);
            }
        }
        if self.rules == Rules::Wget {
            for href in &entry.document.unreal {
                self.follow(target, document, href, Way::Unreal, "script");
            }
        }
    }

    /// Resolves a reference, and reaches what it names if that is on this server.
    fn follow(
        &mut self,
        from: &str,
        document: Option<&Document>,
        href: &str,
        way: Way,
        place: &str,
    ) {
        let Ok(page) = self.origin.join(from) else {
            return;
        };
        let named = document.and_then(|document| page.join(document.base.as_deref()?).ok());
        let base = named.filter(|base| base.scheme() == "http").unwrap_or(page);
        let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|text| {
            let encoding = document.map_or(encoding_rs::UTF_8, |document| document.encoding);
            Cow::Owned(encoding.encode(text).0.into_owned())
        };
        let resolved = Url::options()
            .base_url(Some(&base))
            .encoding_override(Some(encode))
            .parse(href);
        let Ok(url) = resolved else { return };
        let here = url.scheme() == self.origin.scheme()
            && url.host() == self.origin.host()
            && url.port() == self.origin.port();
        if here {
            let target = target_of(&url);
            if target != from {
                self.reach(&target, way, from, place);
            }
        }
    }
}

/// Whether wget takes a reference for one. It sends no forms, knows neither every element nor every spelling, and reads
/// no UTF-16. With robots.txt switched off it heeds no nofollow.
fn wget_sees(found: &Found, document: &Document) -> bool {
    let unknown = ["<form>", "<track>", "<source srcset>", "<iframe srcdoc>"];
    let odd = found.href.starts_with("http:") && !found.href.starts_with("http://");
    !unknown.contains(&&*found.place) && !odd && document.encoding.is_ascii_compatible()
}

/// What is sent for a URL: its path and query, with escapes in capitals and nothing in it that HTTP forbids.
fn target_of(url: &Url) -> String {
    let mut whole = url.path().to_owned();
    if let Some(query) = url.query() {
        whole.push('?');
        whole.push_str(query);
    }
    let bytes = whole.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = whole.get(at..at + 3).filter(|text| {
            text.starts_with('%') && text[1..].bytes().all(|b| b.is_ascii_hexdigit())
        });
        if let Some(escape) = escape {
            out.push_str(&escape.to_ascii_uppercase());
            at += 3;
            continue;
        }
        match bytes[at] {
            b if b"\"<>\\^`{|}".contains(&b) => out.push_str(&format!("%{b:02X}")),
            b => out.push(char::from(b)),
        }
        at += 1;
    }
    out
}
