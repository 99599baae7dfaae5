//! Where a host is: the addresses that the resolver found, and which of them is in use.

use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::{Timestamp, machine};

use crate::message::Resolved;

/// Addresses are used for at least this long, whatever their TTL says: browsers pin them for a minute
/// too, and a TTL of zero would mean one question to the resolver for every page.
const MIN_LIFE: Duration = Duration::from_secs(60);
/// And for at most this long.
const MAX_LIFE: Duration = Duration::from_secs(86_400);
/// Addresses that are kept of one host; the others would hardly ever be tried.
const MAX_ADDRESSES: usize = 8;

/// The addresses of one host.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    all: Vec<IpAddr>,
    /// Which of them is in use.
    index: usize,
    /// That address itself.
    current: Option<IpAddr>,
    /// Until when they hold.
    expire: Timestamp,
}

impl Addresses {
    /// Takes in what the resolver found.
    pub(crate) fn found(&mut self, resolved: Resolved, now: Timestamp) {
        self.all = resolved.addresses;
        self.all.truncate(MAX_ADDRESSES);
        for address in &mut self.all {
            *address = address.to_canonical();
        }
        self.all.shrink_to_fit();
        self.index = 0;
        self.current = self.all.first().copied();
        self.expire = now.after(resolved.ttl.clamp(MIN_LIFE, MAX_LIFE));
    }

    /// The address to connect to, unless none is known or the known ones are too old.
    pub(crate) fn current(&self, now: Timestamp) -> Option<IpAddr> {
        if self.expire <= now {
            return None;
        }
        self.current
    }

    /// A machine did not answer: if it is the one in use, the next one's turn.
    pub(crate) fn try_next(&mut self, failed: IpAddr) {
        if self.current.map(machine) == Some(failed) {
            self.index = (self.index + 1) % self.all.len().max(1);
            self.current = self.all.get(self.index).copied();
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.all.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn resolved(count: u8, ttl: u64) -> Resolved {
        Resolved {
            addresses: (1..=count).map(ip).collect(),
            ttl: Duration::from_secs(ttl),
        }
    }

    #[test]
    fn addresses_hold_for_a_minute_at_least_and_a_day_at_most() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.current(at(0)), None);
        addresses.found(resolved(1, 0), at(0));
        assert_eq!(addresses.current(at(59)), Some(ip(1)));
        assert_eq!(addresses.current(at(60)), None);
        addresses.found(resolved(1, 1 << 40), at(0));
        assert_eq!(addresses.current(at(86_399)), Some(ip(1)));
        assert_eq!(addresses.current(at(86_400)), None);
    }

    #[test]
    fn the_next_one_is_tried_when_the_one_in_use_fails() {
        let mut addresses = Addresses::default();
        addresses.try_next(ip(1));
        addresses.found(resolved(2, 600), at(0));
        addresses.try_next(ip(2));
        assert_eq!(addresses.current(at(0)), Some(ip(1)), "not in use");
        addresses.try_next(ip(1));
        assert_eq!(addresses.current(at(0)), Some(ip(2)));
        addresses.try_next(ip(2));
        assert_eq!(addresses.current(at(0)), Some(ip(1)), "and around");
        addresses.found(resolved(200, 600), at(0));
        assert_eq!(addresses.heap_bytes(), MAX_ADDRESSES * size_of::<IpAddr>());
    }
}
