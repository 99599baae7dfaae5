//! URLs that differ from known ones only in a session id.
//!
//! A site that writes a new id into every link has a URL for each visit of each page. Its pages are
//! honest and different; only the second visit of one is a copy. So what is compared is the page of a URL
//! with the page of its *twin*, the same URL with another id, and when such pages are copies for URLs of this
//! pattern, twins of known URLs are refused. What merely looks like an id and names a document is left alone,
//! because its pages differ.

use crate::generations::Generations;

/// Twins that have to be compared before they are refused.
const ENOUGH: u32 = 20;

/// What is remembered of session ids.
#[derive(Debug)]
pub(super) struct Sessions {
    /// By pattern: what comparing has shown.
    patterns: Generations<Compared>,
    /// By URL without session ids: the words of its page.
    pages: Generations<u64>,
}

/// Pairs of twins of one pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compared {
    pub(super) copies: u32,
    pub(super) all: u32,
}

impl Compared {
    fn are_copies(self) -> bool {
        self.all >= ENOUGH && self.copies * 20 >= self.all * 19
    }

    fn differ(self) -> bool {
        self.all >= ENOUGH && self.copies * 2 < self.all
    }
}

impl Sessions {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            patterns: Generations::new(memory / 4, |_| 0),
            pages: Generations::new(memory - memory / 4, |_| 0),
        }
    }

    /// Whether the fingerprint of a page with a session id in its URL is wanted.
    pub(super) fn wants(&mut self, pattern: u64) -> bool {
        !self
            .patterns
            .get(pattern)
            .is_some_and(|compared| compared.differ())
    }

    /// Takes in such a page. `twin` is the hash of its URL without the id.
    pub(super) fn learns(&mut self, pattern: u64, twin: u64, words: u64) {
        let Some(known) = self.pages.get(twin) else {
            *self.pages.get_or_default(twin) = words;
            return;
        };
        let copy = *known == words;
        let compared = self.patterns.get_or_default(pattern);
        compared.all = compared.all.saturating_add(1);
        compared.copies = compared.copies.saturating_add(copy.into());
        // The distant past counts half.
        if compared.all >= 1000 {
            compared.all /= 2;
            compared.copies /= 2;
        }
    }

    /// What comparing has shown, when it speaks against a URL with this twin.
    pub(super) fn against(&mut self, pattern: u64, twin: u64) -> Option<Compared> {
        let compared = *self.patterns.get(pattern)?;
        (compared.are_copies() && self.pages.get(twin).is_some()).then_some(compared)
    }
}
