//! The per-host queues: `queue_count` slots, each holding one host at a time, and the active window of
//! each slot, whose places the TransIds name.
//!
//! A slot knows what it holds and in which state it is. When it moves from one state to another is the
//! dispatcher's decision.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use orbweaver_model::{Candidate, CrawlUrl, Timestamp, TransId, UrlKey};

use crate::host::{Door, Host, LIGHT};
use crate::places::{Home, Speed};

/// Where a slot stands. Each move goes through `Bench::enter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// No host; any host may come.
    Free,
    /// The next request waits for the host's addresses.
    Resolving,
    /// The next request waits for its time: the gap, or a Retry-After.
    Waiting {
        /// When.
        until: Timestamp,
    },
    /// The window is full, or the last request is not known to be written yet.
    Busy,
    /// The next request could go out; the slot stands in the line of those.
    Ready,
    /// The next request could go out but for its address; the slot stands in that address's line.
    AtIp {
        /// The address.
        ip: IpAddr,
    },
    /// Every URL left waits for a robots.txt that is being asked for, or will be.
    AwaitingRobots,
    /// URLs wait for a verdict of a robots.txt that is known; the slot stands in the line for those.
    AwaitingVerdict,
    /// Nothing is left but the orders that are out.
    Emptied,
}

impl SlotState {
    /// Number of states.
    const COUNT: usize = 9;

    const fn index(self) -> usize {
        match self {
            Self::Free => 0,
            Self::Resolving => 1,
            Self::Waiting { .. } => 2,
            Self::Busy => 3,
            Self::Ready => 4,
            Self::AtIp { .. } => 5,
            Self::AwaitingRobots => 6,
            Self::Emptied => 7,
            Self::AwaitingVerdict => 8,
        }
    }
}

/// A robots.txt to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct RobotsJob {
    /// The host whose robots.txt it is; the request may go to another one.
    pub(crate) host: Arc<str>,
    /// The origin of that host.
    pub(crate) door: Door,
    /// What to ask for.
    pub(crate) url: CrawlUrl,
    /// Redirects followed so far.
    pub(crate) hops: usize,
    /// Attempts that failed before this one.
    pub(crate) attempts: u8,
}

/// What a slot does next.
#[derive(Debug)]
pub(crate) enum Work {
    /// A URL that its robots.txt allows, and until when that holds: a long gap may outlast it.
    Page(Candidate, Timestamp),
    /// A robots.txt.
    Robots(RobotsJob),
}

/// An order that is out.
#[derive(Debug)]
pub(crate) struct Out {
    /// The URL; none for a robots.txt, which is in no index.
    pub(crate) key: Option<UrlKey>,
    pub(crate) ip: IpAddr,
    /// When the order was made.
    pub(crate) since: Timestamp,
    /// The kind of host that holds the place: slow as soon as it has outstayed.
    pub(crate) speed: Speed,
    /// The neighbourhoods that hold it.
    pub(crate) home: Home,
    /// The spider has been told to give it up.
    pub(crate) is_given_up: bool,
    /// The request is known to be written.
    pub(crate) announced: bool,
    /// It was lost, and waits to be sent again.
    pub(crate) lost: bool,
    /// For a robots.txt, what it is for.
    pub(crate) job: Option<Box<RobotsJob>>,
}

/// A place of an active window.
#[derive(Debug, Default)]
struct Place {
    /// How often it was used; a late answer names an older number.
    generation: u32,
    out: Option<Out>,
}

/// One per-host queue.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Hash of the host, for the reject list; none while only a robots.txt of another host is asked
    /// for here.
    pub(crate) hash: Option<u64>,
    /// URLs in the order in which they will be asked for, at most `queue_len` together with the
    /// parked ones. Filled by candidates and from the leftover queue, emptied by the dispatcher.
    pub(crate) queue: VecDeque<Candidate>,
    /// robots.txt files to ask this host for; they go first. At most one per origin that waits.
    pub(crate) jobs: VecDeque<RobotsJob>,
    /// What goes out next, taken from the two above and found to be allowed.
    pub(crate) next: Option<Work>,
    /// A question to the resolver is open.
    pub(crate) asked_resolver: bool,
    /// URLs of this host are in the leftover queue.
    pub(crate) has_leftover: bool,
    /// The slot is on the reject list.
    pub(crate) laden: bool,
    /// The last verdict of its host's rules was costly, so that the next ones are given in turn.
    pub(crate) is_costly: bool,
    /// An order has gone out since the host got this slot.
    pub(crate) served: bool,
    /// Bytes of its host's robots.txt rules when they were last counted.
    rules: usize,
    state: SlotState,
    stamp: u64,
    /// The first place of the window is in the slot itself: most windows have no other, and an order
    /// then needs no further piece of memory.
    first: Place,
    others: Box<[Place]>,
    active: u16,
}

impl Slot {
    fn new(window: u16) -> Self {
        Self {
            hash: None,
            queue: VecDeque::new(),
            jobs: VecDeque::new(),
            next: None,
            asked_resolver: false,
            has_leftover: false,
            laden: false,
            is_costly: false,
            served: false,
            rules: 0,
            state: SlotState::Free,
            stamp: 0,
            first: Place::default(),
            others: (1..window).map(|_| Place::default()).collect(),
            active: 0,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> SlotState {
        self.state
    }

    /// The number that any move changes.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Orders that are out.
    pub(crate) fn active(&self) -> usize {
        usize::from(self.active)
    }

    /// URLs that the slot holds, those parked with its host's origins included.
    pub(crate) fn holds(&self, host: &Host) -> usize {
        let next = matches!(self.next, Some(Work::Page(..)));
        self.queue.len() + usize::from(next) + host.parked()
    }

    /// Every order that is out.
    #[cfg(debug_assertions)]
    pub(crate) fn outs(&self) -> impl Iterator<Item = &Out> {
        self.places().filter_map(|place| place.out.as_ref())
    }

    /// The order of a URL: its place, how often that was used, and the order.
    pub(crate) fn order_of(&self, key: UrlKey) -> Option<(u16, u32, &Out)> {
        (0..).zip(self.places()).find_map(|(active, place)| {
            let out = place.out.as_ref()?;
            (out.key == Some(key)).then_some((active, place.generation, out))
        })
    }

    /// Takes a place of the window for an order.
    pub(crate) fn occupy(&mut self, slot: u32, out: Out) -> Option<TransId> {
        let (active, place) = std::iter::once(&mut self.first)
            .chain(&mut self.others)
            .enumerate()
            .find(|(_, place)| place.out.is_none())?;
        self.active += 1;
        place.generation = place.generation.wrapping_add(1);
        place.out = Some(out);
        Some(TransId {
            generation: place.generation,
            slot,
            // A window is counted in 16 bits.
            active: active as u16,
        })
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn place(&mut self, active: u16) -> Option<&mut Place> {
        match active.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(usize::from(other)),
        }
    }

    /// The order of that name, unless it is over.
    pub(crate) fn out(&mut self, trans: TransId) -> Option<&mut Out> {
        let place = self.place(trans.active)?;
        if place.generation == trans.generation {
            place.out.as_mut()
        } else {
            None
        }
    }

    /// Another name for an order that is sent again, so that an answer to the old one is known as late.
    pub(crate) fn rename(&mut self, trans: TransId) -> Option<TransId> {
        self.out(trans)?;
        let place = self.place(trans.active)?;
        place.generation = place.generation.wrapping_add(1);
        Some(TransId {
            generation: place.generation,
            ..trans
        })
    }

    /// Frees the place of an order.
    pub(crate) fn vacate(&mut self, trans: TransId) -> Option<Out> {
        self.out(trans)?;
        let out = self.place(trans.active)?.out.take()?;
        self.active -= 1;
        Some(out)
    }
}

/// All slots. Their number grows to `queue_count`, and beyond it only for hosts that another host's
/// robots.txt has moved to: those must not wait for a slot held by the very host that waits for them.
#[derive(Debug)]
pub(crate) struct Bench {
    slots: Vec<Slot>,
    /// The host of each slot; none only when it is free.
    hosts: Vec<Option<Host>>,
    free: Vec<u32>,
    counts: [usize; SlotState::COUNT],
    window: u16,
    /// Bytes of robots.txt rules of all hosts in slots.
    rules: usize,
    /// Slots whose rules could be given up, by their bytes.
    heavy: BTreeSet<(usize, u32)>,
}

impl Bench {
    pub(crate) fn new(window: u16) -> Self {
        Self {
            slots: Vec::new(),
            hosts: Vec::new(),
            free: Vec::new(),
            counts: [0; SlotState::COUNT],
            window,
            rules: 0,
            heavy: BTreeSet::new(),
        }
    }

    /// Slots that hold a host.
    pub(crate) fn occupied(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Slots in a state like this one.
    pub(crate) fn count(&self, state: SlotState) -> usize {
        self.counts.get(state.index()).copied().unwrap_or_default()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Slot> {
        self.slots.get(slot as usize)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(slot as usize)
    }

    /// A slot and the host in it.
    pub(crate) fn pair(&mut self, slot: u32) -> Option<(&mut Slot, &mut Host)> {
        let host = self.hosts.get_mut(slot as usize)?.as_mut()?;
        Some((self.slots.get_mut(slot as usize)?, host))
    }

    /// Reads something of every part of a slot and its host, so that it is near when it is needed.
    pub(crate) fn read(&self, slot: u32) -> Option<u64> {
        let (slot, host) = (self.get(slot)?, self.host(slot)?);
        let next = u64::from(slot.next.is_some());
        let hash = slot.hash.unwrap_or_default();
        let place = u64::from(slot.first.generation);
        Some(slot.stamp ^ slot.queue.len() as u64 ^ next ^ hash ^ place ^ host.read())
    }

    /// The host in a slot.
    pub(crate) fn host(&self, slot: u32) -> Option<&Host> {
        self.hosts.get(slot as usize)?.as_ref()
    }

    /// The numbers of all slots.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// All slots and their hosts.
    #[cfg(debug_assertions)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Slot, Option<&Host>)> {
        let hosts = self.hosts.iter().map(Option::as_ref);
        self.slots.iter().zip(hosts)
    }

    /// Puts a host into a free slot.
    pub(crate) fn seat(&mut self, host: impl FnOnce(u32) -> Host) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new(self.window));
            self.hosts.push(None);
            self.counts[0] += 1;
            (self.slots.len() - 1) as u32
        });
        if let Some(seat) = self.hosts.get_mut(slot as usize) {
            *seat = Some(host(slot));
        }
        self.weigh(slot);
        self.enter(slot, SlotState::Emptied);
        slot
    }

    /// Frees a slot; its host goes.
    pub(crate) fn release(&mut self, slot: u32) -> Option<Host> {
        let host = self.hosts.get_mut(slot as usize)?.take()?;
        self.weigh(slot);
        self.enter(slot, SlotState::Free);
        self.free.push(slot);
        Some(host)
    }

    /// Counts the rules of the host in a slot anew.
    pub(crate) fn weigh(&mut self, slot: u32) {
        let now = self.host(slot).map_or(0, Host::rules_bytes);
        if let Some(found) = self.slots.get_mut(slot as usize) {
            let before = std::mem::replace(&mut found.rules, now);
            self.rules = (self.rules + now).saturating_sub(before);
            if before != now {
                self.heavy.remove(&(before, slot));
            }
            if now > LIGHT {
                self.heavy.insert((now, slot));
            }
        }
    }

    /// The slot whose rules take the most memory, of those that can be given up.
    pub(crate) fn heaviest(&self) -> Option<u32> {
        self.heavy.last().map(|(_, slot)| *slot)
    }

    /// Bytes of robots.txt rules of all hosts in slots, as far as they were counted.
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// Moves a slot to another state.
    pub(crate) fn enter(&mut self, slot: u32, state: SlotState) {
        let Some(found) = self.slots.get_mut(slot as usize) else {
            return;
        };
        for (index, change) in [(found.state.index(), -1), (state.index(), 1)] {
            if let Some(count) = self.counts.get_mut(index) {
                *count = count.saturating_add_signed(change);
            }
        }
        found.state = state;
        found.stamp += 1;
    }
}
