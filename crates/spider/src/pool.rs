//! Connections between two fetches.
//!
//! Filled by fetches whose connection can be used again, emptied by fetches to the same place, by
//! time, and by its bound: the longest unused goes first. Nobody reads from what lies here.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use orbweaver_model::{CrawlUrl, Scheme};
use tokio::time::Instant;

use crate::link::{Link, Wire};

/// Where a connection leads: it serves only URLs with the same address, scheme and host. The hash
/// spares each look-up a copy of the name.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    hash: u64,
    address: SocketAddr,
    scheme: Scheme,
    host: &'a str,
}

/// The connections that nobody uses, or that can be shared.
pub(crate) struct Pool {
    shared: Arc<SharedPool>,
    hasher: RandomState,
}

struct SharedPool {
    max: usize,
    keep: Duration,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// By the hash of their place; few share one.
    places: HashMap<u64, Vec<Parked>>,
    /// When each was parked, oldest first. An entry whose connection is gone is passed over.
    order: VecDeque<(u64, u64)>,
    count: usize,
    next_serial: u64,
    sweeping: bool,
}

struct Parked {
    link: Link,
    address: SocketAddr,
    scheme: Scheme,
    host: Box<str>,
    serial: u64,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(max: usize, keep: Duration) -> Self {
        Self {
            shared: Arc::new(SharedPool {
                max,
                keep,
                idle: Mutex::default(),
            }),
            hasher: RandomState::new(),
        }
    }

    /// The place of a URL at an address.
    pub(crate) fn place<'a>(&self, address: SocketAddr, url: &'a CrawlUrl) -> Place<'a> {
        let (scheme, host) = (url.scheme(), url.host());
        Place {
            hash: self.hasher.hash_one((address, scheme, host)),
            address,
            scheme,
            host,
        }
    }

    /// A connection to `place`, the most recently used first. HTTP/2 connections are shared.
    pub(crate) fn take(&self, place: Place<'_>) -> Option<Link> {
        self.shared.lock().take(place, self.shared.keep)
    }

    /// Lets go of the shared connections to `place` that can take no further request.
    pub(crate) fn discard(&self, place: Place<'_>) {
        self.shared.lock().discard(place);
    }

    /// Lets go of everything that is kept: what is being used stays open.
    pub(crate) fn clear(&self) {
        let mut idle = self.shared.lock();
        let places = std::mem::take(&mut idle.places);
        idle.order.clear();
        idle.count = 0;
        drop(idle);
        drop(places);
    }

    /// Keeps a connection for later.
    pub(crate) fn park(&self, place: Place<'_>, link: Link) {
        if self.shared.max == 0 || self.shared.keep.is_zero() {
            return;
        }
        let mut idle = self.shared.lock();
        idle.park(place, link, self.shared.max);
        if !idle.sweeping {
            idle.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(&self.shared), self.shared.keep));
        }
    }
}

impl SharedPool {
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parked {
    fn leads_to(&self, place: Place<'_>) -> bool {
        self.address == place.address && self.scheme == place.scheme && *self.host == *place.host
    }
}

impl Idle {
    fn take(&mut self, place: Place<'_>, keep: Duration) -> Option<Link> {
        let parked = self.places.get_mut(&place.hash)?;
        let at = parked.iter().rposition(|parked| parked.leads_to(place))?;
        let found = parked.get_mut(at)?;
        if let Wire::Http2(http2) = &found.link.wire
            && http2.is_ready()
            && found.since.elapsed() < keep
        {
            found.since = Instant::now();
            return Some(Link {
                wire: Wire::Http2(http2.clone()),
                peer: found.link.peer,
                count: found.link.count.clone(),
            });
        }
        let found = parked.swap_remove(at);
        if parked.is_empty() {
            self.places.remove(&place.hash);
        }
        self.count -= 1;
        let usable = found.since.elapsed() < keep && matches!(found.link.wire, Wire::Http1(_));
        usable.then_some(found.link)
    }

    fn discard(&mut self, place: Place<'_>) {
        let Some(parked) = self.places.get_mut(&place.hash) else {
            return;
        };
        let before = parked.len();
        parked.retain(|parked| match &parked.link.wire {
            Wire::Http2(http2) => http2.is_ready() || !parked.leads_to(place),
            Wire::Http1(_) => true,
        });
        self.count -= before - parked.len();
        if parked.is_empty() {
            self.places.remove(&place.hash);
        }
    }

    fn park(&mut self, place: Place<'_>, link: Link, max: usize) {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.places.entry(place.hash).or_default().push(Parked {
            link,
            address: place.address,
            scheme: place.scheme,
            host: place.host.into(),
            serial,
            since: Instant::now(),
        });
        self.order.push_back((place.hash, serial));
        self.count += 1;
        while self.count > max
            && let Some((hash, serial)) = self.order.pop_front()
        {
            self.drop_if(hash, serial, |_| true);
        }
        // Connections that come and go leave stale entries behind the oldest that stays.
        if self.order.len() > 2 * self.count + 64 {
            self.forget_stale();
        }
    }

    fn forget_stale(&mut self) {
        let places = &self.places;
        self.order.retain(|(hash, serial)| {
            let parked = places.get(hash).map(Vec::as_slice).unwrap_or_default();
            parked.iter().any(|parked| parked.serial == *serial)
        });
    }

    /// Drops a connection when `stale` says so; true when it is gone.
    fn drop_if(&mut self, hash: u64, serial: u64, stale: impl Fn(&Parked) -> bool) -> bool {
        let Some(parked) = self.places.get_mut(&hash) else {
            return true;
        };
        let Some(at) = parked.iter().position(|parked| parked.serial == serial) else {
            return true;
        };
        if !parked.get(at).is_some_and(stale) {
            return false;
        }
        parked.swap_remove(at);
        if parked.is_empty() {
            self.places.remove(&hash);
        }
        self.count -= 1;
        true
    }

    /// Drops what has been unused for too long.
    fn expire(&mut self, keep: Duration) {
        let order = std::mem::take(&mut self.order);
        for (hash, serial) in order {
            if !self.drop_if(hash, serial, |parked| parked.since.elapsed() >= keep) {
                self.order.push_back((hash, serial));
            }
        }
    }
}

/// Closes connections whose time is up. One task for the whole pool; it ends when the pool is empty.
async fn sweep(pool: Weak<SharedPool>, keep: Duration) {
    loop {
        tokio::time::sleep(keep).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut idle = pool.lock();
        idle.expire(keep);
        if idle.count == 0 {
            idle.sweeping = false;
            return;
        }
    }
}
