//! Addresses: when each may be asked again, and which hosts wait for it.
//!
//! Whatever hosts share an address, it is asked by one window and one gap (`clock`). A host that could go but for its
//! address stands in a line of that address, and only the first of the line gets in the common line for a place; so an
//! order costs a few steps, however many hosts wait.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::Timestamp;

use crate::clock::Clock;
use crate::hash::HashMap;
use crate::slot::Stamped;

/// What is known of one address.
#[derive(Debug)]
struct Ip {
    clock: Clock,
    /// Hosts that could go but for this address, first come first served. Filled and emptied by the
    /// dispatcher; at most one live entry per slot.
    line: VecDeque<Stamped>,
    /// It stands in the common line for a place.
    is_ready: bool,
    /// When it will be looked at again.
    wake: Option<Timestamp>,
}

/// What an address with hosts in its line has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Get in the common line for a place.
    Ready,
    /// Be looked at again then.
    At(Timestamp),
    /// Nothing: nobody waits, it has been told already, or an answer must come first.
    Nothing,
}

/// Every address that is being asked or was asked less than one delay ago.
#[derive(Debug)]
pub(crate) struct IpTable {
    ips: HashMap<IpAddr, Ip>,
    /// Addresses without orders or waiting hosts, in the order in which they came to rest; emptied as
    /// their delay passes, so that the table is as large as what one delay can touch.
    resting: VecDeque<(Timestamp, IpAddr)>,
    /// Orders that may be with one address at once.
    window: u16,
    delay: Duration,
    /// When a process before us may have asked any of them.
    asked: Option<Timestamp>,
}

impl IpTable {
    pub(crate) fn new(window: u16, delay: Duration, asked: Option<Timestamp>) -> Self {
        Self {
            ips: HashMap::default(),
            resting: VecDeque::new(),
            window,
            delay,
            asked,
        }
    }

    /// Another window and delay from now on; every address is to be looked at again.
    pub(crate) fn set_limits(&mut self, window: u16, delay: Duration) -> Vec<IpAddr> {
        self.window = window;
        self.delay = delay;
        for state in self.ips.values_mut() {
            state.clock.set_limits(window, delay);
        }
        let all: Vec<IpAddr> = self.ips.keys().copied().collect();
        // Those at rest are noted anew, for they are forgotten in the order of their times.
        self.resting.clear();
        for ip in &all {
            self.rest(*ip);
        }
        self.resting.make_contiguous().sort_unstable();
        all
    }

    /// Whether addresses have a gap at all.
    pub(crate) fn has_gap(&self) -> bool {
        !self.delay.is_zero()
    }

    /// Addresses in the table.
    pub(crate) fn len(&self) -> usize {
        self.ips.len()
    }

    /// Hosts in the line of an address, those that have gone since included.
    pub(crate) fn line(&self, ip: IpAddr) -> usize {
        self.ips.get(&ip).map_or(0, |ip| ip.line.len())
    }

    /// The slot that is first in the line of an address.
    pub(crate) fn first_in_line(&self, ip: IpAddr) -> Option<u32> {
        Some(self.ips.get(&ip)?.line.front()?.0)
    }

    /// When an address may be asked; none when that depends on an answer.
    pub(crate) fn opens_at(&self, ip: IpAddr) -> Option<Timestamp> {
        let clock = &self.ips.get(&ip)?.clock;
        (!clock.is_blocked()).then(|| clock.next_at())
    }

    /// Whether an address may be asked now.
    pub(crate) fn is_open(&self, ip: IpAddr, now: Timestamp) -> bool {
        match self.ips.get(&ip) {
            Some(state) => state.clock.is_open(now),
            None => Clock::new(self.window, self.delay, self.asked).is_open(now),
        }
    }

    /// A host gets in the line of an address.
    pub(crate) fn join_line(&mut self, ip: IpAddr, who: Stamped) {
        self.entry(ip).line.push_back(who);
    }

    /// The address has its turn in the common line; false when it is not known any more.
    pub(crate) fn has_turn(&mut self, ip: IpAddr) -> bool {
        let state = self.ips.get_mut(&ip);
        state.map(|state| state.is_ready = false).is_some()
    }

    /// Takes the first of the line, when the address may be asked.
    pub(crate) fn take_first(&mut self, ip: IpAddr, now: Timestamp) -> Option<Stamped> {
        let state = self.ips.get_mut(&ip)?;
        if !state.clock.is_open(now) {
            return None;
        }
        state.line.pop_front()
    }

    /// The time has come at which an address was to be looked at.
    pub(crate) fn woken(&mut self, ip: IpAddr) {
        if let Some(state) = self.ips.get_mut(&ip) {
            state.wake = None;
        }
    }

    /// What an address has to do next. It is told once; when it waits for an answer, that answer asks again.
    pub(crate) fn next(&mut self, ip: IpAddr, now: Timestamp) -> Next {
        let Some(state) = self.ips.get_mut(&ip) else {
            return Next::Nothing;
        };
        if state.line.is_empty() || state.is_ready || state.clock.is_blocked() {
            return Next::Nothing;
        }
        let at = state.clock.next_at();
        if at <= now {
            state.is_ready = true;
            Next::Ready
        } else if state.wake.is_none_or(|wake| wake > at) {
            state.wake = Some(at);
            Next::At(at)
        } else {
            Next::Nothing
        }
    }

    /// When an address may be asked; one that is not known becomes so.
    pub(crate) fn clock(&mut self, ip: IpAddr) -> &mut Clock {
        &mut self.entry(ip).clock
    }

    fn entry(&mut self, ip: IpAddr) -> &mut Ip {
        self.ips.entry(ip).or_insert_with(|| Ip {
            clock: Clock::new(self.window, self.delay, self.asked),
            line: VecDeque::new(),
            is_ready: false,
            wake: None,
        })
    }

    /// Every address and the orders that are with it.
    #[cfg(debug_assertions)]
    pub(crate) fn active(&self) -> impl Iterator<Item = (IpAddr, u32)> {
        self.ips
            .iter()
            .map(|(ip, state)| (*ip, state.clock.active()))
    }

    /// Notes that nobody asks or awaits this address now.
    pub(crate) fn rest(&mut self, ip: IpAddr) {
        if let Some(state) = self.ips.get(&ip)
            && state.clock.active() == 0
            && state.line.is_empty()
        {
            self.resting.push_back((state.clock.next_at(), ip));
        }
    }

    /// Forgets the addresses whose clocks mean nothing any more.
    pub(crate) fn prune(&mut self, now: Timestamp) {
        while let Some((at, ip)) = self.resting.front().copied()
            && at <= now
        {
            self.resting.pop_front();
            if self
                .ips
                .get(&ip)
                .is_some_and(|state| state.line.is_empty() && state.clock.is_spent(now))
            {
                self.ips.remove(&ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Done;

    const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn over(sent: Timestamp) -> Done {
        Done {
            sent: Some(sent),
            first_byte: Some(sent),
            ended: sent,
            connect_failed: false,
            failed: false,
            robots: None,
        }
    }

    /// One order at a time and a gap behind it, told to the line once.
    #[test]
    fn the_line_of_an_address_waits_for_answer_and_gap() {
        let mut ips = IpTable::new(1, SECOND, None);
        assert!(ips.is_open(IP, at(0)));
        ips.clock(IP).give();
        ips.join_line(IP, (7, 1));
        assert_eq!(ips.take_first(IP, at(0)), None, "it stays in line");
        assert!(!ips.is_open(IP, at(0)));
        assert_eq!(ips.next(IP, at(0)), Next::Nothing, "an answer comes first");
        assert_eq!(ips.opens_at(IP), None);
        ips.clock(IP).done(&over(at(100)), false, false);
        assert_eq!(ips.opens_at(IP), Some(at(1101)));
        assert_eq!(ips.next(IP, at(100)), Next::At(at(1101)));
        assert_eq!(ips.next(IP, at(200)), Next::Nothing, "it has been told");
        ips.woken(IP);
        assert_eq!(ips.next(IP, at(1101)), Next::Ready);
        assert_eq!(ips.next(IP, at(1101)), Next::Nothing, "it stands in line");
        assert!(ips.has_turn(IP));
        assert_eq!(ips.take_first(IP, at(1101)), Some((7, 1)));
        assert_eq!(ips.take_first(IP, at(1101)), None);
    }

    #[test]
    fn an_address_is_forgotten_when_its_gap_has_passed() {
        let mut ips = IpTable::new(1, SECOND, None);
        ips.clock(IP).give();
        ips.rest(IP);
        ips.prune(at(10_000));
        assert_eq!(ips.len(), 1, "an order is out");
        ips.clock(IP).done(&over(at(100)), false, false);
        ips.rest(IP);
        ips.prune(at(1100));
        assert_eq!(ips.len(), 1);
        ips.prune(at(1101));
        assert_eq!(ips.len(), 0);
    }

    #[test]
    fn another_delay_moves_what_is_at_rest() {
        let mut ips = IpTable::new(1, 10 * SECOND, None);
        ips.clock(IP).give();
        ips.clock(IP).done(&over(at(0)), false, false);
        ips.rest(IP);
        assert_eq!(ips.set_limits(1, SECOND), [IP]);
        ips.prune(at(1001));
        assert_eq!(ips.len(), 0);
    }
}
