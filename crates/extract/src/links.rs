//! The references of one document, kept in one string.
//!
//! A page has thirty links or ten thousand; a string each would cost an allocation each. What is no
//! reference to anything else (empty, a bare fragment, `data:`, `mailto:`) is left out here, what is too long
//! to be a URL too, and so is what stands there already but for its fragment. Resolving and judging them is
//! intake's business, and so is how many of them are followed: here only memory is bounded.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use orbweaver_model::{Limits, LinkKind};

use crate::rawtext::is_space;

/// A reference as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLink<'a> {
    /// The reference, decoded and without surrounding white space.
    pub href: &'a str,
    /// Where it stood.
    pub kind: LinkKind,
    /// True when it is marked as not to be followed.
    pub nofollow: bool,
    /// How much the site makes of it, 0 to 100; [`NORMAL`] unless a sitemap says otherwise.
    pub weight: u8,
}

/// The weight of a reference about which nothing is said, as in the sitemap protocol.
pub const NORMAL: u8 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    end: usize,
    kind: LinkKind,
    nofollow: bool,
    weight: u8,
}

/// All references of a document, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    text: String,
    items: Vec<Item>,
    /// What is there, as hashes of kind and reference.
    known: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
    max_links: usize,
    max_bytes: usize,
    cut: bool,
}

/// References that are kept for each link that may be followed. Out of scope, pictures that nobody wants and
/// links that the page asks not to follow must not use up the room of the others.
const KEPT: usize = 20;

/// Room for the references of an ordinary page, so that it need not be made eight times over.
const ROOM: usize = 64;

impl Links {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            text: String::with_capacity(ROOM * 32),
            items: Vec::with_capacity(ROOM),
            known: HashSet::default(),
            max_links: limits.max_links_per_page.saturating_mul(KEPT),
            max_bytes: limits.max_url_bytes,
            cut: false,
        }
    }

    /// Replaces the limit on their number.
    pub(crate) fn set_max(&mut self, max_links: usize) {
        self.max_links = max_links;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = FoundLink<'_>> {
        let mut start = 0;
        self.items.iter().map(move |item| {
            let href = self.text.get(start..item.end).unwrap_or_default();
            start = item.end;
            FoundLink {
                href,
                kind: item.kind,
                nofollow: item.nofollow,
                weight: item.weight,
            }
        })
    }

    /// True when there were more than the limit.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Marks everything that leads away from the page as not to be followed. Its pictures and
    /// styles are parts of it and stay; so do the entries of a sitemap, which is nothing but an
    /// invitation, although some servers send the same header with every file.
    pub(crate) fn forbid_following(&mut self) {
        for item in &mut self.items {
            let invited = matches!(item.kind, LinkKind::Sitemap | LinkKind::SitemapFile);
            item.nofollow |= !invited && !item.kind.is_requisite();
        }
    }

    pub(crate) fn push(&mut self, href: &str, kind: LinkKind, nofollow: bool) {
        self.push_weighted(href, kind, nofollow, NORMAL);
    }

    pub(crate) fn push_weighted(&mut self, href: &str, kind: LinkKind, nofollow: bool, weight: u8) {
        let href = href.trim_matches(|c: char| c.is_ascii() && is_space(c as u8));
        // A fragment is a place in a document, and of no concern to who fetches it.
        let href = href.split('#').next().unwrap_or_default();
        if href.is_empty() || href.len() > self.max_bytes || is_elsewhere(href) {
            return;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((kind, nofollow, href));
        if !self.known.insert(hash) {
            return;
        }
        if self.items.len() >= self.max_links {
            self.cut = true;
            return;
        }
        self.text.push_str(href);
        self.items.push(Item {
            end: self.text.len(),
            kind,
            nofollow,
            weight,
        });
    }
}

/// Whether a reference names a scheme that is not ours, such as `mailto:`, `javascript:` or `data:`.
fn is_elsewhere(href: &str) -> bool {
    let Some((scheme, _)) = href.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !scheme.eq_ignore_ascii_case("http")
        && !scheme.eq_ignore_ascii_case("https")
}
