//! The seen-set: which URLs are known, as 64-bit fingerprints in RAM, in front of the store.
//!
//! Four of five links on a page lead to known URLs. Asking the store about each costs some 11 µs; asking
//! this table costs 0.1 µs. "Not here" is certain and "here" is wrong with a chance of n/2^64: at ten
//! million URLs the chance that any link at all was ever mistaken is 3 in a million. The hash is keyed by
//! a secret of the crawl, so that nobody can bring it about on purpose.
//!
//! The table has a share of the memory budget. While it holds every known URL it answers alone; when it does
//! not, because it is still being filled or because they no longer fit, a miss is a question to the store.
//! That is slower and never wrong: what has left the table was committed before.
//!
//! In crawls where it matters by which of its links a URL is judged (with a limit on depth, or with page requisites) the
//! table also keeps the best link so far, in two bytes a URL: a worker passes on those links to known URLs that are better.

mod table;

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use orbweaver_model::{Role, UrlKey};

use self::table::{Mark, Table};

/// What a link makes of a URL, and a second one by which it may be more yet: as much as the set keeps of all links to it.
pub type Roles = [Option<Role>; 2];

/// The store behind the set, which knows every URL.
pub trait Known {
    /// Why it cannot be asked.
    type Error;

    /// True when the URL is in it.
    fn knows(&self, key: UrlKey) -> Result<bool, Self::Error>;

    /// What the links to a URL make of it; none when it is not in it.
    fn roles(&self, key: UrlKey) -> Result<Option<Roles>, Self::Error>;
}

/// Parts with a lock each. The doc index alone adds URLs; every worker reads, and remembers what the store
/// has told it.
const SHARDS: usize = 64;

/// Everything known is in RAM.
const COMPLETE: u8 = 0;
/// What the store knows is being read.
const FILLING: u8 = 1;
/// Some of what is known is in the store only.
const PARTIAL: u8 = 2;

/// Which links to a known URL can still matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracking {
    /// Whether it is linked as a page or as a requisite.
    pub roles: bool,
    /// How far from a seed; only together with `roles`.
    pub depths: bool,
}

/// A set of URL fingerprints that is read by many threads and grows in small steps.
pub struct Seen<S> {
    shards: Vec<RwLock<Shard>>,
    /// One of the three states above. Read before the table is: what becomes complete later was there
    /// when the store was asked.
    state: AtomicU8,
    /// URLs known, in RAM or not.
    known: AtomicU64,
    /// Bytes that the shards may take together.
    limit: AtomicUsize,
    /// The shard that is looked at after the next commit.
    next: AtomicUsize,
    store: S,
    tracking: Tracking,
}

impl<S: Known> Seen<S> {
    /// An empty set before an empty store.
    pub fn new(store: S, tracking: Tracking) -> Self {
        let shard = |_| RwLock::new(Shard::new(tracking.roles));
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            tracking,
            state: AtomicU8::new(COMPLETE),
            known: AtomicU64::new(0),
            limit: AtomicUsize::new(usize::MAX),
            next: AtomicUsize::new(0),
            store,
        }
    }

    /// True when the URL is known. While the store is closed what is not in RAM counts as unknown: the fold
    /// asks again, and waits for the answer.
    pub fn contains(&self, key: UrlKey) -> bool {
        self.find(key).unwrap_or(false)
    }

    /// True when the URL is known and nothing can follow from another link of this kind to it. Like `contains`, it says no
    /// when the store cannot be read.
    pub fn is_old_news(&self, key: UrlKey, role: Role) -> bool {
        if !self.tracking.roles {
            return self.contains(key);
        }
        let mark = self.mark(key).unwrap_or(None);
        mark.is_some_and(|mark| mark.with(self.as_tracked(role)) == mark)
    }

    /// Notes a link to a URL that is known.
    pub fn note(&self, key: UrlKey, role: Role) {
        if self.tracking.roles {
            let role = self.as_tracked(role);
            self.change(key.url, |shard| shard.note(key.url, role));
        }
    }

    /// Where depth is not limited, all pages are equally near.
    fn as_tracked(&self, role: Role) -> Role {
        match role {
            Role::Page(_) if !self.tracking.depths => Role::Page(0),
            role => role,
        }
    }

    /// Adds a URL; true when it was not known before.
    pub fn insert(&self, key: UrlKey) -> Result<bool, S::Error> {
        if self.find(key)? {
            return Ok(false);
        }
        let new = self.change(key.url, |shard| shard.insert(key.url, Mark::NONE));
        self.known.fetch_add(u64::from(new), Ordering::Relaxed);
        Ok(new)
    }

    fn find(&self, key: UrlKey) -> Result<bool, S::Error> {
        if self.tracking.roles {
            return Ok(self.mark(key)?.is_some());
        }
        let complete = self.is_complete();
        if look(self.shard(key.url), |shard| shard.contains(key.url)) {
            return Ok(true);
        }
        let known = !complete && self.store.knows(key)?;
        if known {
            self.remember(key, Mark::NONE);
        }
        Ok(known)
    }

    /// The best link to a URL; none when the URL is unknown.
    fn mark(&self, key: UrlKey) -> Result<Option<Mark>, S::Error> {
        let complete = self.is_complete();
        let mark = look(self.shard(key.url), |shard| shard.mark(key.url));
        if mark.is_some() || complete {
            return Ok(mark);
        }
        let mark = self.store.roles(key)?.map(|roles| self.mark_of(roles));
        if let Some(mark) = mark {
            self.remember(key, mark);
        }
        Ok(mark)
    }

    fn mark_of(&self, roles: Roles) -> Mark {
        let roles = roles.into_iter().flatten();
        roles.fold(Mark::NONE, |mark, role| mark.with(self.as_tracked(role)))
    }

    /// Takes in what the store has told, when there is room.
    fn remember(&self, key: UrlKey, mark: Mark) {
        let share = self.share();
        self.change(key.url, |shard| {
            shard.bytes() < share && shard.insert(key.url, mark)
        });
    }

    /// Forgets everything, to be filled anew from a store that knows so many URLs. True when they fit.
    pub fn restart(&self, known: u64, limit: usize) -> bool {
        let each = match self.tracking.roles {
            true => MOST_EACH + MOST_FOR_MARK,
            false => MOST_EACH,
        };
        let fits = known.saturating_mul(each) <= limit as u64;
        // Whoever finds nothing asks the store, before anything is gone.
        self.state
            .store(if fits { FILLING } else { PARTIAL }, Ordering::SeqCst);
        self.known.store(known, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
        let room = usize::try_from(known).unwrap_or(0) / SHARDS;
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            // The old table goes before the new one comes.
            *shard = Shard::new(self.tracking.roles);
            if fits {
                shard.young = Table::with_room(room, self.tracking.roles);
            }
        }
        fits
    }

    /// True when the roles of URLs are needed to fill it, and not only their keys.
    pub fn reads_roles(&self) -> bool {
        self.tracking.roles
    }

    /// Takes in a URL that the store knows, with its roles when they are needed; false when more are of no use.
    pub fn fill(&self, key: UrlKey, roles: Option<Roles>) -> bool {
        let mark = roles.map_or(Mark::NONE, |roles| self.mark_of(roles));
        // A link may have been noted since the record was read.
        self.change(key.url, |shard| shard.merge(key.url, mark));
        self.state.load(Ordering::Relaxed) == FILLING
    }

    /// The store has been read to its end.
    pub fn filled(&self) {
        // Not when something was dropped meanwhile.
        let _ = self
            .state
            .compare_exchange(FILLING, COMPLETE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Called after a commit: all that is in RAM is in the store as well, and may be dropped when it takes
    /// more than it may. One shard is looked at each time, for they grow alike.
    pub fn settle(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        let next = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let Some(shard) = self.shards.get(next) else {
            return;
        };
        if look(shard, Shard::bytes) > self.share() {
            self.state.store(PARTIAL, Ordering::SeqCst);
            shard.write().unwrap_or_else(PoisonError::into_inner).shed();
        }
    }

    /// How many URLs are known.
    pub fn len(&self) -> usize {
        usize::try_from(self.known.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// True when nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when no question goes to the store.
    pub fn is_complete(&self) -> bool {
        self.state.load(Ordering::SeqCst) == COMPLETE
    }

    /// Bytes of RAM in use.
    pub fn bytes(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| look(shard, Shard::bytes))
            .sum()
    }

    fn share(&self) -> usize {
        self.limit.load(Ordering::Relaxed) / SHARDS
    }

    fn change<T>(&self, fingerprint: u64, change: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = self.shard(fingerprint);
        change(&mut shard.write().unwrap_or_else(PoisonError::into_inner))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the remainder is smaller than the number of shards"
    )]
    fn shard(&self, fingerprint: u64) -> &RwLock<Shard> {
        // The low bits choose the shard, the high ones the place in it.
        &self.shards[fingerprint as usize % SHARDS]
    }
}

fn look<T>(shard: &RwLock<Shard>, of: impl FnOnce(&Shard) -> T) -> T {
    of(&shard.read().unwrap_or_else(PoisonError::into_inner))
}

/// Two generations: when both together take too much, the older one is dropped.
struct Shard {
    young: Table,
    old: Table,
}

impl Shard {
    fn new(keeps_marks: bool) -> Self {
        Self {
            young: Table::new(keeps_marks),
            old: Table::new(keeps_marks),
        }
    }

    fn mark(&self, fingerprint: u64) -> Option<Mark> {
        self.young
            .mark(fingerprint)
            .or_else(|| self.old.mark(fingerprint))
    }

    fn note(&mut self, fingerprint: u64, role: Role) {
        self.young.note(fingerprint, role);
        self.old.note(fingerprint, role);
    }

    /// Adds a URL, or the best link to one that is there.
    fn merge(&mut self, fingerprint: u64, mark: Mark) {
        if !self.insert(fingerprint, mark) {
            for role in mark.roles().into_iter().flatten() {
                self.note(fingerprint, role);
            }
        }
    }

    fn contains(&self, fingerprint: u64) -> bool {
        self.young.contains(fingerprint) || self.old.contains(fingerprint)
    }

    fn insert(&mut self, fingerprint: u64, mark: Mark) -> bool {
        !self.old.contains(fingerprint) && self.young.insert(fingerprint, mark)
    }

    fn bytes(&self) -> usize {
        self.young.bytes() + self.old.bytes()
    }

    fn shed(&mut self) {
        let fresh = Table::new(self.young.keeps_marks());
        let young = std::mem::replace(&mut self.young, fresh);
        self.old = match self.old.len {
            // The first time everything is in one table, and it alone takes too much.
            0 => young.half(),
            _ => young,
        };
    }
}

/// Bytes that a URL takes at most: 8 for its place, of which three in four are taken after a table has grown.
const MOST_EACH: u64 = 11;
/// Bytes that the best link to it takes at most.
const MOST_FOR_MARK: u64 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A store with nothing in it.
    struct Empty;

    impl Known for Empty {
        type Error = std::convert::Infallible;

        fn knows(&self, _: UrlKey) -> Result<bool, Self::Error> {
            Ok(false)
        }

        fn roles(&self, _: UrlKey) -> Result<Option<Roles>, Self::Error> {
            Ok(None)
        }
    }

    fn seen() -> Seen<Empty> {
        Seen::new(Empty, Tracking::default())
    }

    fn key(url: u64) -> UrlKey {
        UrlKey { host: 0, url }
    }

    proptest! {
        #[test]
        fn is_a_set(values in prop::collection::vec(prop_oneof![2..300u64, any::<u64>()], 0..3000)) {
            let seen = seen();
            let mut model = std::collections::HashSet::new();
            for value in values {
                prop_assert_eq!(seen.insert(key(value)).unwrap(), model.insert(value.max(1)));
                prop_assert!(seen.contains(key(value)));
            }
            prop_assert_eq!(seen.len(), model.len());
            for probe in 2..400 {
                prop_assert_eq!(seen.contains(key(probe)), model.contains(&probe));
            }
        }
    }

    /// However links come, those that are better than all before are news and no others.
    #[test]
    fn the_best_link_is_kept() {
        let tracking = Tracking {
            roles: true,
            depths: true,
        };
        let seen = Seen::new(Empty, tracking);
        for url in 2..3000 {
            assert!(!seen.is_old_news(key(url), Role::Requisite));
            assert!(seen.insert(key(url)).unwrap());
            seen.note(key(url), Role::Page(7));
        }
        for url in 2..3000 {
            assert!(seen.is_old_news(key(url), Role::Page(7)));
            assert!(seen.is_old_news(key(url), Role::Page(8)));
            assert!(!seen.is_old_news(key(url), Role::Page(6)));
            assert!(!seen.is_old_news(key(url), Role::Requisite));
            seen.note(key(url), Role::Requisite);
            seen.note(key(url), Role::Page(2));
            assert!(seen.is_old_news(key(url), Role::Requisite));
            assert!(seen.is_old_news(key(url), Role::Page(2)));
        }
        let equally_near = Seen::new(
            Empty,
            Tracking {
                roles: true,
                depths: false,
            },
        );
        equally_near.insert(key(5)).unwrap();
        equally_near.note(key(5), Role::Page(7));
        assert!(equally_near.is_old_news(key(5), Role::Page(1)));
    }

    #[test]
    fn stays_small() {
        let seen = seen();
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seen.insert(key(x ^ (x >> 29))).unwrap();
        }
        assert!(
            seen.bytes() as u64 <= seen.len() as u64 * MOST_EACH,
            "{} bytes for {} URLs",
            seen.bytes(),
            seen.len()
        );
    }
}
