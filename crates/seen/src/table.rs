//! The table behind the seen-set: fingerprints with open addressing, and beside each the best link to its URL.

use orbweaver_model::Role;

/// The best links to a URL: the least depth as a page, and whether it is linked as a requisite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u16);

impl Mark {
    const REQUISITE: u16 = 1 << 15;
    const NO_PAGE: u16 = Self::REQUISITE - 1;
    pub(super) const NONE: Self = Self(Self::NO_PAGE);

    pub(super) fn with(self, role: Role) -> Self {
        let (requisite, depth) = (self.0 & Self::REQUISITE, self.0 & Self::NO_PAGE);
        Self(match role {
            Role::Page(other) => requisite | depth.min(other.min(Self::NO_PAGE - 1)),
            Role::Requisite => depth | Self::REQUISITE,
        })
    }

    /// The links that make this mark.
    pub(super) fn roles(self) -> [Option<Role>; 2] {
        let depth = self.0 & Self::NO_PAGE;
        [
            (depth != Self::NO_PAGE).then_some(Role::Page(depth)),
            (self.0 & Self::REQUISITE != 0).then_some(Role::Requisite),
        ]
    }
}

/// An open-addressing table with linear probing; 0 marks an empty place.
#[derive(Default)]
pub(super) struct Table {
    places: Vec<u64>,
    /// The best link to the URL of each place; empty when that is not kept.
    marks: Vec<Mark>,
    keeps_marks: bool,
    pub(super) len: usize,
}

impl Table {
    /// An empty table, with or without marks.
    pub(super) fn new(keeps_marks: bool) -> Self {
        Self {
            keeps_marks,
            ..Self::default()
        }
    }

    /// An empty table for about so many URLs, with places for a few more: shards are not filled all alike.
    pub(super) fn with_room(urls: usize, keeps_marks: bool) -> Self {
        let mut table = Self::new(keeps_marks);
        table.make(urls / 5 * 6 + urls / 32);
        table
    }

    pub(super) fn keeps_marks(&self) -> bool {
        self.keeps_marks
    }

    fn make(&mut self, size: usize) {
        self.places = vec![0; size];
        self.marks = vec![Mark::NONE; if self.keeps_marks { size } else { 0 }];
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u64>() + self.marks.capacity() * size_of::<Mark>()
    }

    pub(super) fn contains(&self, fingerprint: u64) -> bool {
        !self.places.is_empty() && self.find(stored(fingerprint)).is_ok()
    }

    /// The best link to a URL that is in the table.
    pub(super) fn mark(&self, fingerprint: u64) -> Option<Mark> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.find(stored(fingerprint)).ok()?;
        Some(self.marks.get(place).copied().unwrap_or(Mark::NONE))
    }

    /// Notes another link to a URL; nothing happens when the URL is not in the table.
    pub(super) fn note(&mut self, fingerprint: u64, role: Role) {
        if self.marks.is_empty() {
            return;
        }
        if let Ok(place) = self.find(stored(fingerprint))
            && let Some(mark) = self.marks.get_mut(place)
        {
            *mark = mark.with(role);
        }
    }

    pub(super) fn insert(&mut self, fingerprint: u64, mark: Mark) -> bool {
        // Five sixths full at most: linear probing is still short there, and growing by an eighth instead
        // of doubling keeps it at 9.6 to 10.8 bytes a URL. A URL is moved eight times for that, some 0.1 µs.
        if (self.len + 1) * 6 > self.places.len() * 5 {
            self.grow();
        }
        let is_new = self.place(stored(fingerprint), mark);
        self.len += usize::from(is_new);
        is_new
    }

    fn place(&mut self, value: u64, mark: Mark) -> bool {
        let Err(free) = self.find(value) else {
            return false;
        };
        if let Some(place) = self.places.get_mut(free) {
            *place = value;
        }
        if let Some(place) = self.marks.get_mut(free) {
            *place = mark;
        }
        true
    }

    /// The place of a value, or else the free place where it belongs.
    fn find(&self, value: u64) -> Result<usize, usize> {
        let mut at = self.home(value);
        loop {
            match self.places.get(at) {
                Some(0) => return Err(at),
                Some(there) if *there == value => return Ok(at),
                Some(_) => at += 1,
                None => at = 0,
            }
        }
    }

    /// Maps the high bits onto any table size, so that sizes need not be powers of two.
    fn home(&self, value: u64) -> usize {
        ((u128::from(value) * self.places.len() as u128) >> 64) as usize
    }

    /// What is in it, with marks.
    fn values(&self) -> impl Iterator<Item = (u64, Mark)> {
        let places = self.places.iter().enumerate();
        let full = places.filter(|(_, value)| **value != 0);
        full.map(|(at, value)| (*value, self.marks.get(at).copied().unwrap_or(Mark::NONE)))
    }

    /// Every second URL.
    pub(super) fn half(&self) -> Self {
        let mut half = Self::new(self.keeps_marks);
        for (value, mark) in self.values().step_by(2) {
            half.insert(value, mark);
        }
        half
    }

    fn grow(&mut self) {
        let mut grown = Self::new(self.keeps_marks);
        grown.make((self.places.len() + self.places.len() / 8).max(64));
        for (value, mark) in self.values() {
            grown.place(value, mark);
        }
        grown.len = self.len;
        *self = grown;
    }
}

/// 0 means "empty", so the fingerprint 0 is kept as 1.
fn stored(fingerprint: u64) -> u64 {
    fingerprint.max(1)
}
