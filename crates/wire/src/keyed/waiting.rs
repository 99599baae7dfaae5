//! Connections of which nobody knows yet whether they belong here: they have not shown the key, or said nothing that is
//! of the protocol. They have places of their own, so that they cannot take those of daemons; when these are used up,
//! one of the address that has most of them goes.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The waiting connections of one port. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    state: Arc<Mutex<State>>,
    places: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first; at most as many as there are places.
    list: VecDeque<Waiter>,
    serial: u64,
}

#[derive(Debug)]
struct Waiter {
    serial: u64,
    from: IpAddr,
    /// Something was heard of it.
    has_spoken: bool,
    /// Tells it to go, and how many came from its address.
    go: oneshot::Sender<usize>,
}

/// The place of one waiting connection; free when dropped.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    waiting: Waiting,
    serial: u64,
    /// Told when the place is needed for another: with how many waited from the same address.
    pub(super) go: oneshot::Receiver<usize>,
}

impl Waiting {
    pub(super) fn new(places: usize) -> Self {
        Self {
            state: Arc::default(),
            places: places.max(1),
        }
    }

    /// A place for a connection; another one has to go when all are taken.
    pub(super) fn enter(&self, from: IpAddr) -> WaitingPlace {
        let from = source(from);
        let (go, told) = oneshot::channel();
        let mut state = self.lock();
        while state.list.len() >= self.places {
            state.make_room();
        }
        state.serial += 1;
        let serial = state.serial;
        state.list.push_back(Waiter {
            serial,
            from,
            has_spoken: false,
            go,
        });
        WaitingPlace {
            waiting: self.clone(),
            serial,
            go: told,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The address with the most goes first, of its connections those that have said nothing, of these the oldest: who
    /// has the key speaks at once and is through within a round trip or two.
    fn make_room(&mut self) {
        let mut counts = HashMap::<IpAddr, usize>::new();
        for waiter in &self.list {
            *counts.entry(waiter.from).or_default() += 1;
        }
        let most = counts.into_iter().map(|(from, count)| (count, from)).max();
        let Some((count, from)) = most else {
            return;
        };
        let of = |it: &&Waiter| it.from == from;
        let victim = (self.list.iter().find(|it| of(it) && !it.has_spoken))
            .or_else(|| self.list.iter().find(of));
        let Some(serial) = victim.map(|it| it.serial) else {
            return;
        };
        if let Some(victim) = self.remove(serial) {
            // It may just have ended by itself.
            let _ = victim.go.send(count);
        }
    }

    fn remove(&mut self, serial: u64) -> Option<Waiter> {
        let at = self.list.iter().position(|it| it.serial == serial)?;
        self.list.remove(at)
    }
}

impl WaitingPlace {
    /// Something was heard of the connection.
    pub(super) fn has_spoken(&self) {
        let mut state = self.waiting.lock();
        let found = state.list.iter_mut().find(|it| it.serial == self.serial);
        if let Some(waiter) = found {
            waiter.has_spoken = true;
        }
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.waiting.lock().remove(self.serial);
    }
}

/// What counts as one source: an address, of IPv6 the network of 64 bits that one machine has at its disposal.
fn source(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => std::net::Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(held: &mut WaitingPlace) -> Option<usize> {
        held.go.try_recv().ok()
    }

    #[test]
    fn the_most_numerous_source_gives_way_its_silent_ones_first() {
        let waiting = Waiting::new(4);
        let at = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut alone = waiting.enter(at(1));
        let mut crowd = [
            waiting.enter(at(2)),
            waiting.enter(at(2)),
            waiting.enter(at(2)),
        ];
        crowd[0].has_spoken();
        let mut other = waiting.enter(at(3));
        assert_eq!(told(&mut crowd[1]), Some(3));
        let mut third = waiting.enter(at(4));
        assert_eq!(told(&mut crowd[2]), Some(2));
        for held in [&mut alone, &mut other, &mut third, &mut crowd[0]] {
            assert_eq!(told(held), None);
        }
        // Whoever is through makes room for others.
        drop(alone);
        let mut again = waiting.enter(at(5));
        assert!(told(&mut crowd[0]).is_none() && told(&mut again).is_none());
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let waiting = Waiting::new(3);
        let mut honest = waiting.enter("2001:db8:1::1".parse().unwrap());
        let mut crowd: Vec<WaitingPlace> = (0..50_u8)
            .map(|n| waiting.enter(format!("2001:db8:2::{n:x}").parse().unwrap()))
            .collect();
        assert_eq!(told(&mut honest), None);
        let gone = crowd.iter_mut().filter_map(told).count();
        assert_eq!(gone, 48);
    }
}
