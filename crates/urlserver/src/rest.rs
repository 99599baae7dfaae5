//! Where every host is: in a slot, or at rest. A host at rest is remembered for its clock and its
//! robots.txt, within a budget of bytes; the one that has rested longest is forgotten first.

use std::collections::VecDeque;
use std::sync::Arc;

use orbweaver_model::Timestamp;

use crate::hash::HashMap;
use crate::host::Host;

/// Where a host is.
#[derive(Debug)]
enum Location {
    /// It has this slot, and its memory is there.
    Slot(u32),
    /// It has none. The number tells this rest from earlier ones.
    Rest(Box<Host>, u64),
}

/// All hosts that are known. Filled by arriving candidates; a slot's release puts a host to rest, and
/// `bytes` over `budget` makes the oldest ones go.
#[derive(Debug)]
pub(crate) struct Hosts {
    places: HashMap<Arc<str>, Location>,
    /// Hosts at rest, oldest first; entries of hosts that were called since are stale.
    order: VecDeque<(Arc<str>, u64)>,
    rests: u64,
    bytes: usize,
    budget: usize,
    has_forgotten: bool,
}

impl Hosts {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            places: HashMap::default(),
            order: VecDeque::new(),
            rests: 0,
            bytes: 0,
            budget,
            has_forgotten: false,
        }
    }

    /// The slot of a host.
    pub(crate) fn slot(&self, name: &str) -> Option<u32> {
        match self.places.get(name) {
            Some(Location::Slot(slot)) => Some(*slot),
            _ => None,
        }
    }

    /// The name as it is shared by everything that speaks of the host.
    pub(crate) fn shared_name(&self, name: &str) -> Arc<str> {
        match self.places.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => name.into(),
        }
    }

    /// The memory of a host at rest, to be looked at.
    pub(crate) fn at_rest(&self, name: &str) -> Option<&Host> {
        match self.places.get(name) {
            Some(Location::Rest(host, _)) => Some(host),
            _ => None,
        }
    }

    /// Whether anything is remembered of a host.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Every host at rest, for a change that takes no memory.
    pub(crate) fn each_at_rest(&mut self, mut change: impl FnMut(&mut Host)) {
        for place in self.places.values_mut() {
            if let Location::Rest(host, _) = place {
                change(host);
            }
        }
    }

    /// The memory of a host at rest.
    fn resting(&mut self, name: &str) -> Option<&mut Host> {
        match self.places.get_mut(name) {
            Some(Location::Rest(host, _)) => Some(host),
            _ => None,
        }
    }

    /// Calls a host to a slot; what was remembered of it comes along.
    pub(crate) fn call(&mut self, name: &Arc<str>, slot: u32) -> Option<Host> {
        match self.places.insert(name.clone(), Location::Slot(slot)) {
            Some(Location::Rest(host, _)) => {
                self.bytes = self.bytes.saturating_sub(host.weight());
                Some(*host)
            }
            _ => None,
        }
    }

    /// Puts a host to rest, and forgets others when that takes too much memory.
    pub(crate) fn rest(&mut self, mut host: Host, now: Timestamp) {
        if self.bytes > self.budget / 2 {
            host.origins.forget_rules();
        }
        self.rests += 1;
        let name = host.name().clone();
        self.bytes += host.weight();
        self.order.push_back((name.clone(), self.rests));
        self.places
            .insert(name, Location::Rest(Box::new(host), self.rests));
        self.forget(now);
    }

    /// Changes a host at rest without losing count of its bytes.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Host)) {
        let Some(host) = self.resting(name) else {
            return;
        };
        let before = host.weight();
        change(host);
        let after = host.weight();
        self.bytes = (self.bytes + after).saturating_sub(before);
    }

    /// Looks at no more than a few of the oldest: each call adds one, so the memory stays bounded, but
    /// for hosts whose clocks still run, and those are as many as were asked within one delay.
    fn forget(&mut self, now: Timestamp) {
        for _ in 0..4 {
            let crowded = self.order.len() > 2 * self.places.len() + 16;
            if self.bytes <= self.budget && !crowded {
                return;
            }
            let Some((name, rest)) = self.order.pop_front() else {
                return;
            };
            let Some(Location::Rest(host, current)) = self.places.get(&name) else {
                continue;
            };
            if *current != rest {
                continue;
            }
            if self.bytes > self.budget && host.clock.is_spent(now) {
                self.bytes = self.bytes.saturating_sub(host.weight());
                self.has_forgotten |= host.origins.has_robots();
                self.places.remove(&name);
            } else {
                self.order.push_back((name, rest));
            }
        }
    }

    /// Whether a host that is not known may have been, and its robots.txt been had.
    pub(crate) fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// Hosts that are known.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}
