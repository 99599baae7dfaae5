//! Many hosts on one address: they must not take the queues of hosts that could be asked meanwhile.
//!
//! Whole towns of names live on one machine, and however many of them have a queue, the machine is asked no more
//! often. So when every queue is taken and some hosts wait in the line of an address, one that comes new to that line
//! is sent away: its URLs go back to the doc index, and it is on the reject list until the line is short again. The
//! maps of a batch (`batch`) do the same for one request; this holds as long as the crowd does.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::hash::{HashMap, HashSet};

/// Hosts that wait in the line of an address before others are sent away. With one request out at a time, two would
/// keep it busy.
const LINE: usize = 8;
/// Hosts that are remembered as sent away. More of them come again, after everybody else has had a turn.
const MAX_AWAY: usize = 1 << 16;

/// Who was sent away. Filled by the dispatcher, emptied with each request to the doc index for lines that have become
/// short; at most `MAX_AWAY`.
#[derive(Debug, Default)]
pub(crate) struct Crowds {
    /// Hashes of hosts by the address they wait for, first come first served.
    by_ip: HashMap<IpAddr, VecDeque<u64>>,
    away: HashSet<u64>,
}

impl Crowds {
    /// Whether one more host is too many for a line of this length.
    pub(crate) fn is_crowded(&self, line: usize) -> bool {
        line >= LINE && self.away.len() < MAX_AWAY
    }

    /// A host is sent away because of an address.
    pub(crate) fn send_away(&mut self, host: u64, ip: IpAddr) {
        if self.away.insert(host) {
            self.by_ip.entry(ip).or_default().push_back(host);
        }
    }

    /// The first of those who were sent away may come back when the line of their address is short. Each request
    /// calls some more, so that nobody waits for one that does not come.
    pub(crate) fn call_back(&mut self, line: impl Fn(IpAddr) -> usize) {
        let away = &mut self.away;
        self.by_ip.retain(|ip, hosts| {
            if line(*ip) < LINE / 2 {
                for hash in hosts.drain(..LINE.min(hosts.len())) {
                    away.remove(&hash);
                }
            }
            !hosts.is_empty()
        });
    }

    /// The hosts, for the reject list.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = u64> {
        self.away.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn who_was_sent_away_comes_back_when_the_line_is_short() {
        let mut crowds = Crowds::default();
        assert!(!crowds.is_crowded(LINE - 1) && crowds.is_crowded(LINE));
        for host in 0..LINE as u64 + 1 {
            crowds.send_away(host, IP);
            crowds.send_away(host, IP);
        }
        crowds.call_back(|_| LINE / 2);
        assert_eq!(crowds.hosts().count(), LINE + 1, "the line is long");
        crowds.call_back(|_| 0);
        assert_eq!(crowds.hosts().collect::<Vec<_>>(), [LINE as u64]);
        crowds.call_back(|_| 0);
        assert_eq!(crowds.hosts().count(), 0);
        assert!(crowds.by_ip.is_empty());
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let mut crowds = Crowds::default();
        for host in 0..MAX_AWAY as u64 {
            crowds.send_away(host, IP);
        }
        assert!(!crowds.is_crowded(usize::MAX));
    }
}
