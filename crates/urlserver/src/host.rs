//! What is known of a host, whether it has a queue now or not: clock, addresses, robots.txt.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Candidate, CrawlUrl, Outcome, Pace, Scheme, Timestamp, machine};

use crate::hash::HashSet;
use crate::message::Resolved;
use crate::pace::Adapt;
use crate::places::{Home, Neighbourhood, Speed};
use crate::politeness::Clock;
use orbweaver_robots::Robots;

/// Addresses are used for at least this long, whatever their TTL says: browsers pin them for a minute
/// too, and a TTL of zero would mean one question to the resolver for every page.
const MIN_ADDRESS_LIFE: Duration = Duration::from_secs(60);
/// And for at most this long.
const MAX_ADDRESS_LIFE: Duration = Duration::from_secs(86_400);
/// Addresses that are kept of one host; the others would hardly ever be tried.
const MAX_ADDRESSES: usize = 8;
/// Origins of one host that are remembered without being waited for.
const MAX_ORIGINS: usize = 64;

/// How often a host has to be quick after one order that was slow.
const SLOW: u8 = 4;

/// Bytes of rules that are never given up: getting them back would cost more.
pub(crate) const LIGHT: usize = 1024;

/// A host's memory. It outlives the slot, so that a host that comes back keeps its gap.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Windows and gaps.
    pub(crate) clock: Clock,
    /// Where it is.
    addresses: Vec<IpAddr>,
    /// Which of the addresses is in use.
    index: usize,
    /// That address itself.
    current: Option<IpAddr>,
    /// Until when they hold.
    addresses_expire: Timestamp,
    /// Time between two requests: `least`, raised by how it answers.
    pub(crate) delay: Duration,
    /// The option's time, raised by the longest Crawl-delay of its origins.
    least: Duration,
    pace: Pace,
    /// Its registered domain.
    domain: Neighbourhood,
    /// Whether a page of it has come in the usual time.
    has_been_quick: bool,
    /// How often it has to be quick before it no longer counts as slow.
    slowness: u8,
    /// Its origins: hardly ever more than http and https.
    origins: Vec<Origin>,
    /// URLs that wait for a robots.txt, with all origins together.
    parked: usize,
    /// An origin where everything is allowed, and until when; so it is with most, and then no rules have
    /// to be looked at.
    free: Option<(Door, Timestamp)>,
}

/// Scheme and port: what makes an origin, given the host.
pub(crate) type Door = (Scheme, u16);

/// The door that a URL goes through.
pub(crate) fn door(url: &CrawlUrl) -> Door {
    (url.scheme(), url.port())
}

/// One origin of a host, and the URLs that wait for its robots.txt.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) door: Door,
    pub(crate) robots: RobotsState,
    /// URLs beside the queue, so that the other origins of the host go on. They count as queued.
    pub(crate) parked: VecDeque<Candidate>,
    /// How often all attempts at its robots.txt have failed since it was last had.
    pub(crate) outages: u8,
    /// The Crawl-delay of the robots.txt that was last had.
    crawl_delay: Option<Duration>,
}

/// Where an origin stands with its robots.txt.
#[derive(Debug)]
pub(crate) enum RobotsState {
    /// It was never asked for, or what it said is too old.
    Unknown,
    /// A robots.txt order waits for its turn or is out, here or on the host that it moved to.
    Asked,
    /// An attempt failed, and the next one comes later.
    Resting {
        /// When.
        until: Timestamp,
        /// Attempts made.
        attempts: u8,
    },
    /// The rules are known.
    Known {
        /// The rules.
        robots: Robots,
        /// How long they hold.
        expires: Timestamp,
    },
    /// The rules were known, but take too much memory: the doc index has them.
    Kept {
        /// How long they hold.
        expires: Timestamp,
        /// URLs that they were found to allow, by hash, and that have not been asked for yet.
        allowed: HashSet<u64>,
    },
    /// The doc index is asked for the rules.
    Recalled {
        /// As before; what is allowed stays so until then.
        expires: Timestamp,
        /// As before.
        allowed: HashSet<u64>,
    },
    /// Every attempt failed: RFC 9309 section 2.3.1.4 has everything denied.
    Unreachable {
        /// What its URLs get.
        outcome: Outcome,
        /// When it may be asked for again.
        until: Timestamp,
    },
}

impl Origin {
    fn is_forgettable(&self) -> bool {
        self.parked.is_empty()
            && !matches!(
                self.robots,
                RobotsState::Asked | RobotsState::Recalled { .. } | RobotsState::Resting { .. }
            )
    }
}

impl Host {
    pub(crate) fn new(name: Arc<str>, delay: Duration, asked: Option<Timestamp>) -> Self {
        Self {
            domain: Neighbourhood::domain(&name),
            has_been_quick: false,
            slowness: 0,
            name,
            clock: Clock::starting(asked),
            addresses: Vec::new(),
            index: 0,
            current: None,
            addresses_expire: Timestamp::default(),
            delay,
            least: delay,
            pace: Pace::default(),
            origins: Vec::new(),
            parked: 0,
            free: None,
        }
    }

    /// The machine to ask, by which requests are counted, unless none is known or the known ones are too old.
    pub(crate) fn ip(&self, now: Timestamp) -> Option<IpAddr> {
        self.address(now).map(machine)
    }

    /// The address of that machine to connect to.
    pub(crate) fn address(&self, now: Timestamp) -> Option<IpAddr> {
        if self.addresses_expire <= now {
            return None;
        }
        self.current
    }

    /// How it uses its places.
    pub(crate) fn speed(&self) -> Speed {
        match (self.slowness, self.has_been_quick) {
            (0, true) => Speed::Fast,
            (0, false) => Speed::New,
            _ => Speed::Slow,
        }
    }

    /// An order of it holds its place for longer than is usual.
    pub(crate) fn was_slow(&mut self) {
        self.slowness = (self.slowness + SLOW).min(2 * SLOW);
    }

    /// A page of it has come in the usual time.
    pub(crate) fn was_quick(&mut self) {
        self.has_been_quick = true;
        self.slowness = self.slowness.saturating_sub(1);
    }

    /// Its neighbourhoods, when it is on this machine.
    pub(crate) fn home(&self, ip: IpAddr) -> Home {
        [Neighbourhood::network(ip), self.domain]
    }

    /// Takes in what the resolver found.
    pub(crate) fn settle_at(&mut self, resolved: Resolved, now: Timestamp) {
        self.addresses = resolved.addresses;
        self.addresses.truncate(MAX_ADDRESSES);
        for address in &mut self.addresses {
            *address = address.to_canonical();
        }
        self.addresses.shrink_to_fit();
        self.index = 0;
        self.current = self.addresses.first().copied();
        let life = resolved.ttl.clamp(MIN_ADDRESS_LIFE, MAX_ADDRESS_LIFE);
        self.addresses_expire = now.after(life);
    }

    /// The address did not answer: the next one's turn.
    pub(crate) fn try_next_address(&mut self, failed: IpAddr) {
        if self.current.map(machine) == Some(failed) {
            self.index = (self.index + 1) % self.addresses.len().max(1);
            self.current = self.addresses.get(self.index).copied();
        }
    }

    /// The origin behind a door, if it is known.
    pub(crate) fn find_origin(&self, door: Door) -> Option<&Origin> {
        self.origins.iter().find(|origin| origin.door == door)
    }

    /// The origin behind a door, which becomes known.
    pub(crate) fn origin(&mut self, door: Door) -> &mut Origin {
        let at = match self.origins.iter().position(|origin| origin.door == door) {
            Some(at) => at,
            None => {
                self.make_room();
                self.origins.push(Origin {
                    door,
                    robots: RobotsState::Unknown,
                    parked: VecDeque::new(),
                    outages: 0,
                    crawl_delay: None,
                });
                self.origins.len() - 1
            }
        };
        #[allow(
            clippy::indexing_slicing,
            reason = "the position was found or made above"
        )]
        &mut self.origins[at]
    }

    fn make_room(&mut self) {
        if self.origins.len() >= MAX_ORIGINS
            && let Some(oldest) = self.origins.iter().position(Origin::is_forgettable)
        {
            self.origins.remove(oldest);
        }
    }

    /// All origins.
    pub(crate) fn origins(&mut self) -> impl Iterator<Item = &mut Origin> {
        self.origins.iter_mut()
    }

    /// URLs that wait for a robots.txt.
    pub(crate) fn parked(&self) -> usize {
        self.parked
    }

    /// A URL waits for the robots.txt of its origin.
    pub(crate) fn park(&mut self, candidate: Candidate) {
        self.parked += 1;
        self.origin(door(&candidate.url))
            .parked
            .push_back(candidate);
    }

    /// The URLs that wait at an origin.
    pub(crate) fn take_parked(&mut self, door: Door) -> VecDeque<Candidate> {
        let parked = std::mem::take(&mut self.origin(door).parked);
        self.parked -= parked.len();
        parked
    }

    /// All URLs that wait.
    pub(crate) fn take_all_parked(&mut self, into: &mut Vec<Candidate>) {
        for origin in self.origins.iter_mut().filter(|_| self.parked > 0) {
            into.extend(origin.parked.drain(..));
        }
        self.parked = 0;
    }

    /// The rules of an origin are known. Its Crawl-delay counts up to `cap`.
    pub(crate) fn know(&mut self, door: Door, robots: Robots, cap: Duration, expires: Timestamp) {
        if robots.allows_all() {
            self.free = Some((door, expires));
        } else if self.free.is_some_and(|(free, _)| free == door) {
            self.free = None;
        }
        let origin = self.origin(door);
        origin.crawl_delay = robots.crawl_delay().map(|delay| delay.min(cap));
        origin.robots = RobotsState::Known { robots, expires };
        origin.outages = 0;
    }

    /// Bytes that the rules of its origins take.
    pub(crate) fn rules_bytes(&self) -> usize {
        let rules = self.origins.iter().map(|origin| match &origin.robots {
            RobotsState::Known { robots, .. } => robots.heap_bytes(),
            RobotsState::Kept { allowed, .. } | RobotsState::Recalled { allowed, .. } => {
                allowed.len() * 2 * size_of::<u64>()
            }
            _ => 0,
        });
        rules.sum()
    }

    /// Gives up the rules of its origins where that is worth it, and what they were found to allow: the doc index
    /// has them.
    pub(crate) fn forget_rules(&mut self) {
        for origin in &mut self.origins {
            let expires = match &origin.robots {
                RobotsState::Known { robots, expires } if robots.heap_bytes() > LIGHT => *expires,
                RobotsState::Kept { expires, .. } => *expires,
                _ => continue,
            };
            let allowed = HashSet::default();
            origin.robots = RobotsState::Kept { expires, allowed };
        }
    }

    /// Whether a robots.txt of it has been had, so that the doc index has it too.
    pub(crate) fn has_robots(&self) -> bool {
        let mut origins = self.origins.iter();
        origins.any(|origin| {
            matches!(
                origin.robots,
                RobotsState::Known { .. } | RobotsState::Kept { .. }
            )
        })
    }

    /// Until when everything is allowed behind a door, if that is known without looking at its rules.
    pub(crate) fn is_free(&self, door: Door, now: Timestamp) -> Option<Timestamp> {
        let (free, until) = self.free?;
        (free == door && until > now).then_some(until)
    }

    /// Reads something of every part.
    pub(crate) fn read(&self) -> u64 {
        let free = self.free.map_or(0, |(_, until)| until.as_millis());
        u64::from(self.clock.active) ^ self.addresses_expire.as_millis() ^ free ^ self.parked as u64
    }

    /// Fits the delay to the Crawl-delays that are known. They raise it, they never lower it.
    pub(crate) fn fit_delay(&mut self, least: Duration, adapt: Adapt) {
        let asked = self.origins.iter().filter_map(|origin| origin.crawl_delay);
        self.least = asked.fold(least, Duration::max);
        self.delay = adapt.delay(self.pace, self.least);
    }

    /// Fits the delay to how an order ended: after how long it was answered, or that it failed. An order
    /// that never went out says nothing.
    pub(crate) fn fit_pace(&mut self, response: Option<Duration>, failed: bool, adapt: Adapt) {
        match response {
            _ if failed => self.pace.failed(),
            Some(response) => self.pace.answered(response),
            None => return,
        }
        self.delay = adapt.delay(self.pace, self.least);
    }

    /// Fits the delay to what an earlier process had learnt, unless this one has learnt something itself.
    pub(crate) fn remember_pace(&mut self, pace: Pace, adapt: Adapt) {
        if self.pace == Pace::default() {
            self.pace = pace;
            self.delay = adapt.delay(self.pace, self.least);
        }
    }

    /// Roughly the bytes that this memory takes.
    pub(crate) fn weight(&self) -> usize {
        let origins = size_of_val(self.origins.as_slice()) + self.rules_bytes();
        size_of::<Self>() + 3 * self.name.len() + size_of_val(self.addresses.as_slice()) + origins
    }
}
