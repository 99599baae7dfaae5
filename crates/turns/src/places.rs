//! The places for orders, and who gets the next one that is free.
//!
//! There are `in_flight` places, and a host that answers slowly holds its place for as long as a thousand fetches of
//! a fast one. So places have shares. Hosts are of three kinds: fast ones have answered in the usual time, new ones
//! have yet to answer, slow ones have held a place for much longer than is usual. Slow hosts leave a place free for
//! every host that is not slow, up to three quarters of all, and new hosts leave some to those that are known to be
//! fast; but while there is nobody to leave them to, any host may have them all.
//!
//! Within a kind the next place goes to the neighbourhood that holds the fewest, and there to the host that has
//! waited longest. The neighbourhood of a host is its network (/24, /48) or its registered domain, whichever is the
//! more crowded. What is not decided here is when a host may be asked (`politeness`).

use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use foldhash::fast::{FixedState, RandomState};

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// How a host uses its places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// A page of it has come in the usual time.
    Fast,
    /// No page of it has come yet.
    #[default]
    New,
    /// It has held a place for much longer than is usual.
    Slow,
}

/// All kinds.
const SPEEDS: [Speed; 3] = [Speed::Fast, Speed::New, Speed::Slow];

/// Something of each kind.
#[derive(Debug, Default)]
struct Each<T> {
    fast: T,
    new: T,
    slow: T,
}

impl<T> Index<Speed> for Each<T> {
    type Output = T;

    fn index(&self, speed: Speed) -> &T {
        match speed {
            Speed::Fast => &self.fast,
            Speed::New => &self.new,
            Speed::Slow => &self.slow,
        }
    }
}

impl<T> IndexMut<Speed> for Each<T> {
    fn index_mut(&mut self, speed: Speed) -> &mut T {
        match speed {
            Speed::Fast => &mut self.fast,
            Speed::New => &mut self.new,
            Speed::Slow => &mut self.slow,
        }
    }
}

/// Those who share what a neighbourhood may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Neighbourhood {
    /// The /24 of an IPv4 address, the /48 of an IPv6 one.
    Network(u64),
    /// The hash of a registered domain; of a host without one, of its name.
    Domain(u64),
}

impl Neighbourhood {
    /// The network of a machine.
    pub fn network(ip: IpAddr) -> Self {
        Self::Network(match ip {
            IpAddr::V4(ip) => u64::from(u32::from(ip) >> 8),
            // The highest bit keeps the two kinds apart.
            IpAddr::V6(ip) => (u128::from(ip) >> 80) as u64 | 1 << 63,
        })
    }

    /// The domain of a host.
    pub fn domain(host: &str) -> Self {
        let is_address = host.starts_with('[')
            || (host.rsplit('.').next())
                .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
        let domain = if is_address {
            None
        } else {
            psl::domain_str(host)
        };
        Self::Domain(FixedState::default().hash_one(domain.unwrap_or(host)))
    }
}

/// The network and the domain of a host.
pub type Home = [Neighbourhood; 2];

/// One who waits: the number of the arrival, where from, and who.
type Waiting<T> = (u64, Home, T);

/// One neighbourhood, while it holds places or waits for some.
#[derive(Debug)]
struct Share<T> {
    held: usize,
    /// How many of it wait, here or in the line of the other neighbourhood that they have.
    waiting: usize,
    /// Who waits here, by kind.
    lines: Each<VecDeque<Waiting<T>>>,
}

impl<T> Share<T> {
    fn new() -> Self {
        Self {
            held: 0,
            waiting: 0,
            lines: Each {
                fast: VecDeque::new(),
                new: VecDeque::new(),
                slow: VecDeque::new(),
            },
        }
    }
}

/// The places. `T` is what waits for one. Lines are filled by the dispatcher and emptied as places become free; they
/// are bounded by the number of slots and addresses, but for entries that have become stale and are passed over.
#[derive(Debug)]
pub struct Places<T> {
    all: usize,
    /// Places that one host can hold.
    window: usize,
    /// Places that are held, by kind.
    held: Each<usize>,
    /// Hosts with a queue, by kind.
    hosts: Each<usize>,
    waiting: Each<usize>,
    shares: HashMap<Neighbourhood, Share<T>>,
    /// Neighbourhoods where somebody waits, by kind: places held, arrival of the first who waits, and which.
    order: Each<BTreeSet<(usize, u64, Neighbourhood)>>,
    arrivals: u64,
    turns: u64,
}

impl<T: Copy> Places<T> {
    /// So many places, of which one host can hold `window`.
    pub fn new(all: usize, window: u16) -> Self {
        Self {
            all,
            window: window.into(),
            held: Each::default(),
            hosts: Each::default(),
            waiting: Each::default(),
            shares: HashMap::default(),
            order: Each::default(),
            arrivals: 0,
            turns: 0,
        }
    }

    /// A host of this kind got a queue.
    pub fn came(&mut self, speed: Speed) {
        self.hosts[speed] += 1;
    }

    /// A host of this kind has no queue any more.
    pub fn left(&mut self, speed: Speed) {
        let count = &mut self.hosts[speed];
        *count = count.saturating_sub(1);
    }

    /// Places that are held.
    pub fn held(&self) -> usize {
        self.held.fast + self.held.new + self.held.slow
    }

    /// Hosts or addresses that wait for a place, those that have gone since included.
    pub fn waiting(&self, speed: Speed) -> usize {
        self.waiting[speed]
    }

    /// Gets in line for a place.
    pub fn wait(&mut self, speed: Speed, home: Home, who: T) {
        let crowd = |n: &Neighbourhood| self.shares.get(n).map_or(0, |s| s.held + s.waiting);
        let [network, domain] = home;
        let place = if crowd(&domain) > crowd(&network) {
            domain
        } else {
            network
        };
        self.arrivals += 1;
        let arrival = self.arrivals;
        for neighbourhood in home {
            let share = self.shares.entry(neighbourhood).or_insert_with(Share::new);
            share.waiting += 1;
        }
        let share = self.shares.entry(place).or_insert_with(Share::new);
        let line = &mut share.lines[speed];
        if line.is_empty() {
            self.order[speed].insert((share.held, arrival, place));
        }
        line.push_back((arrival, home, who));
        self.waiting[speed] += 1;
    }

    /// The next who may have a place; none when nobody may.
    pub fn next_turn(&mut self) -> Option<T> {
        let speed = self.next_kind()?;
        self.turns += 1;
        self.next_of(speed)
    }

    /// The next of one kind, whether there is a place or not.
    pub fn next_of(&mut self, speed: Speed) -> Option<T> {
        let (held, _, place) = self.order[speed].pop_first()?;
        let share = self.shares.get_mut(&place)?;
        let (_, home, who) = share.lines[speed].pop_front()?;
        self.waiting[speed] -= 1;
        if let Some((arrival, ..)) = share.lines[speed].front() {
            self.order[speed].insert((held, *arrival, place));
        }
        for neighbourhood in home {
            if let Some(share) = self.shares.get_mut(&neighbourhood) {
                share.waiting -= 1;
            }
            self.forget_if_idle(neighbourhood);
        }
        Some(who)
    }

    /// Whose turn it is. While no host is slow, fast and new ones go as they came. Otherwise slow and new hosts have a
    /// small part of the places or turns for certain, so that nobody waits forever; beyond that fast hosts go first,
    /// then new ones, then slow ones.
    fn next_kind(&self) -> Option<Speed> {
        if self.held() >= self.all {
            return None;
        }
        let Each { new, slow, .. } = self.held;
        let waits = |speed: Speed| self.waiting(speed) > 0;
        let may_slow = waits(Speed::Slow) && slow < self.room_for_slow();
        let may_new = waits(Speed::New) && new + slow < self.room_for_new();
        let any_slow = self.hosts.slow > 0;
        let is_next = |speed, part: usize| {
            any_slow && (self.held[speed] < part || self.turns % 16 == speed as u64)
        };
        if may_slow && is_next(Speed::Slow, self.all / 8) {
            Some(Speed::Slow)
        } else if may_new && (is_next(Speed::New, self.all / 16) || self.new_came_first()) {
            Some(Speed::New)
        } else if waits(Speed::Fast) {
            Some(Speed::Fast)
        } else if may_new {
            Some(Speed::New)
        } else {
            may_slow.then_some(Speed::Slow)
        }
    }

    fn new_came_first(&self) -> bool {
        let fast = self.order.fast.first();
        self.hosts.slow == 0 && fast.is_none_or(|fast| self.order.new.first() < Some(fast))
    }

    /// Places that slow hosts may hold.
    fn room_for_slow(&self) -> usize {
        let others = (self.hosts.fast + self.hosts.new).saturating_mul(self.window);
        self.all - others.min(self.all * 3 / 4)
    }

    /// Places that new and slow hosts may hold together. Fast ones hold theirs so briefly that few do for many; and new
    /// ones too, as long as none has turned out to be slow.
    fn room_for_new(&self) -> usize {
        if self.hosts.slow == 0 {
            return self.all;
        }
        self.all
            - self
                .hosts
                .fast
                .saturating_mul(self.window)
                .min(self.all / 8)
    }

    /// Places that slow hosts hold and that others wait for: more than slow hosts may have.
    pub fn wanted_back(&self) -> usize {
        let Each { new, slow, .. } = self.held;
        let fast = self.waiting(Speed::Fast);
        let blocked = self.held() >= self.all || (fast == 0 && new + slow >= self.room_for_new());
        if !blocked {
            return 0;
        }
        let over = slow.saturating_sub(self.room_for_slow());
        over.min(fast + self.waiting(Speed::New))
    }

    /// A host takes a place.
    pub fn take(&mut self, speed: Speed, home: Home) {
        self.held[speed] += 1;
        home.into_iter().for_each(|n| self.change(n, 1));
    }

    /// A place is free.
    pub fn free(&mut self, speed: Speed, home: Home) {
        let held = &mut self.held[speed];
        *held = held.saturating_sub(1);
        home.into_iter().for_each(|n| self.change(n, -1));
    }

    /// A place that was taken by a host of this kind is held for longer than is usual.
    pub fn outstayed(&mut self, was: Speed) {
        self.held[was] -= 1;
        self.held[Speed::Slow] += 1;
    }

    fn change(&mut self, place: Neighbourhood, by: isize) {
        let share = self.shares.entry(place).or_insert_with(Share::new);
        let before = share.held;
        share.held = before.saturating_add_signed(by);
        for speed in SPEEDS {
            if let Some((arrival, ..)) = share.lines[speed].front() {
                self.order[speed].remove(&(before, *arrival, place));
                self.order[speed].insert((share.held, *arrival, place));
            }
        }
        self.forget_if_idle(place);
    }

    fn forget_if_idle(&mut self, place: Neighbourhood) {
        let idle = |share: &Share<T>| share.held == 0 && share.waiting == 0;
        if self.shares.get(&place).is_some_and(idle) {
            self.shares.remove(&place);
        }
    }
}

/// How long an order usually takes, and from when on it takes much longer.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// One order in ten takes less, in milliseconds.
    quick: f64,
    least: Duration,
}

/// Nobody counts as slow before this, where places are many.
const LEAST: Duration = Duration::from_millis(750);
/// Where they are few, a single one weighs more, and so does one that was given up in vain.
const LEAST_OF_FEW: Duration = Duration::from_secs(5);
/// From so many on places are many.
const MANY: usize = 64;
/// Everybody counts as slow after this.
const MOST: Duration = Duration::from_secs(10);

impl Usual {
    /// What is usual before anything has been seen, with so many places.
    pub fn new(places: usize) -> Self {
        Self {
            quick: 150.0,
            least: if places < MANY { LEAST_OF_FEW } else { LEAST },
        }
    }

    /// An order took so long. The quick tenth is followed rather than the middle, because thousands of slow hosts would
    /// move that. One that was given up says nothing: where everything takes long, those say so that may end.
    pub fn saw(&mut self, took: Duration) {
        let quicker = took.as_secs_f64() * 1000.0 < self.quick;
        self.quick *= if quicker { 0.955 } else { 1.005 };
        self.quick = self.quick.clamp(1.0, 2000.0);
    }

    /// The time after which an order holds its place for too long: eight times what the quick ones take.
    pub fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.quick * 8.0 / 1000.0).clamp(self.least, MOST)
    }
}

#[cfg(test)]
mod tests;
