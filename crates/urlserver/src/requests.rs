//! The conversation with the doc index: when it is asked for candidates, for how many, and which hosts it is told to
//! leave out.
//!
//! A request carries the whole reject list. When that is long and few queues are empty, it waits a moment for others to
//! become so, lest the list be written anew for every host that is finished; and when the resolver has not answered for
//! all names of the last batch, it waits as long for that.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::Timestamp;

use crate::batch::{Answer, Batch};
use crate::hash::HashSet;

/// The most candidates that are asked for at once, so that one answer of the doc index stays small.
const MAX_WANT: usize = 1024;
/// After an answer shorter than what was wanted the doc index is left alone for this long.
const PAUSE: Duration = Duration::from_millis(100);
/// With more hosts than this on the reject list for each empty queue, a request waits for more of those.
const REJECTS_PER_QUEUE: usize = 64;

/// Where the conversation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asking {
    /// The next empty queue makes a request.
    #[default]
    Idle,
    /// A request is open.
    Asked {
        /// What was wanted.
        want: usize,
        /// Domains were rejected because their address is crowded; the next request takes them.
        crowded: bool,
    },
    /// The last answer was short, or the next request would say little; it waits.
    Paused {
        /// Until then.
        until: Timestamp,
        /// For more to say; otherwise for more to be there.
        gathering: bool,
    },
}

/// What comes of wanting to ask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A request is open, or waits.
    NotNow,
    /// It waits for more to say; an alarm is to be set for then.
    Later(Timestamp),
    /// The request.
    Now {
        /// URLs.
        want: usize,
        /// Hashes of hosts that are not wanted.
        reject: Vec<u64>,
    },
}

/// Requests to the doc index. At most one is open.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    asking: Asking,
    /// The doc index has just been left alone for a whole pause.
    has_waited: bool,
    /// Hashes of the hosts whose queues have enough: the reject list. At most one per slot.
    laden: HashSet<u64>,
    /// The two maps of the last batch of candidates.
    batch: Batch,
}

impl Requests {
    /// The doc index has answered with so many URLs; the time for which an alarm is to be set, if one is needed.
    pub(crate) fn answered(&mut self, urls: usize, now: Timestamp) -> Option<Timestamp> {
        match self.asking {
            // What a crowded address kept back can be had at once, for the next request has new maps.
            Asking::Asked { want, crowded } if urls < want && !crowded => {
                Some(self.pause(false, now))
            }
            Asking::Paused { .. } => None,
            _ => {
                self.asking = Asking::Idle;
                None
            }
        }
    }

    /// Enters URLs of one host in the maps of the batch; true when its addresses are to be asked for.
    pub(crate) fn map(&mut self, name: &Arc<str>, hash: u64, urls: usize, answer: Answer) -> bool {
        self.batch.count(name, hash, urls, answer) && answer == Answer::Open
    }

    /// Enters an answer of the resolver.
    pub(crate) fn map_address(&mut self, host: &str, ip: Option<IpAddr>) {
        self.batch.answered(host, ip);
        let gathering = matches!(
            self.asking,
            Asking::Paused {
                gathering: true,
                ..
            }
        );
        if gathering && !self.batch.is_open() {
            self.asking = Asking::Idle;
        }
    }

    /// Whether a name belongs to the last batch.
    pub(crate) fn is_mapped(&self, name: &str) -> bool {
        self.batch.has(name)
    }

    /// The queue of a host has enough, or has room again; room ends the pause, because now the doc index may have an
    /// answer.
    pub(crate) fn mark(&mut self, hash: u64, laden: bool) {
        if laden {
            self.laden.insert(hash);
            return;
        }
        self.laden.remove(&hash);
        let waits_for_room = matches!(
            self.asking,
            Asking::Paused {
                gathering: false,
                ..
            }
        );
        if waits_for_room {
            self.asking = Asking::Idle;
        }
    }

    /// A host has no queue any more.
    pub(crate) fn forget(&mut self, hash: u64) {
        self.laden.remove(&hash);
    }

    /// An alarm has gone off.
    pub(crate) fn woken(&mut self, now: Timestamp) {
        if matches!(self.asking, Asking::Paused { until, .. } if until <= now) {
            self.asking = Asking::Idle;
            self.has_waited = true;
        }
    }

    /// Asks for URLs for so many `empty` queues of `len` each. `ip_batch_max` is how many URLs of the last batch may
    /// share an address before its domains are rejected.
    pub(crate) fn ask(
        &mut self,
        empty: usize,
        len: usize,
        ip_batch_max: usize,
        now: Timestamp,
    ) -> Ask {
        if empty == 0 || self.asking != Asking::Idle {
            return Ask::NotNow;
        }
        let says_little = self.batch.is_open() || self.laden.len() > REJECTS_PER_QUEUE * empty;
        if says_little && !self.has_waited {
            return Ask::Later(self.pause(true, now));
        }
        self.has_waited = false;
        let want = empty.saturating_mul(len).min(MAX_WANT);
        let crowded = self.batch.take_crowded(ip_batch_max);
        self.asking = Asking::Asked {
            want,
            crowded: !crowded.is_empty(),
        };
        let mut reject: Vec<u64> = self.laden.iter().copied().collect();
        reject.extend(crowded.iter().filter(|hash| !self.laden.contains(hash)));
        Ask::Now { want, reject }
    }

    /// The doc index is left alone for a moment.
    fn pause(&mut self, gathering: bool, now: Timestamp) -> Timestamp {
        let until = now.after(PAUSE);
        self.asking = Asking::Paused { until, gathering };
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn now(want: usize, reject: &[u64]) -> Ask {
        Ask::Now {
            want,
            reject: reject.to_vec(),
        }
    }

    #[test]
    fn one_request_is_open_and_a_short_answer_makes_a_pause() {
        let mut requests = Requests::default();
        assert_eq!(requests.ask(0, 4, 9, at(0)), Ask::NotNow, "nothing empty");
        assert_eq!(requests.ask(2, 4, 9, at(0)), now(8, &[]));
        assert_eq!(requests.ask(2, 4, 9, at(0)), Ask::NotNow, "it is open");
        assert_eq!(requests.answered(8, at(0)), None);
        assert_eq!(requests.ask(5000, 4, 9, at(0)), now(MAX_WANT, &[]));
        assert_eq!(requests.answered(7, at(10)), Some(at(110)));
        requests.woken(at(109));
        assert_eq!(requests.ask(1, 4, 9, at(109)), Ask::NotNow);
        requests.woken(at(110));
        assert_eq!(requests.ask(1, 4, 9, at(110)), now(4, &[]));
    }

    #[test]
    fn room_in_a_queue_ends_the_pause() {
        let mut requests = Requests::default();
        requests.mark(7, true);
        assert_eq!(requests.ask(1, 4, 9, at(0)), now(4, &[7]));
        assert_eq!(requests.answered(0, at(0)), Some(at(100)));
        requests.forget(7);
        assert_eq!(requests.ask(1, 4, 9, at(1)), Ask::NotNow);
        requests.mark(7, false);
        assert_eq!(requests.ask(1, 4, 9, at(1)), now(4, &[]));
    }

    #[test]
    fn a_request_waits_for_the_resolver_but_not_for_ever() {
        let mut requests = Requests::default();
        assert!(requests.map(&"a".into(), 1, 1, Answer::Open));
        assert_eq!(requests.ask(1, 4, 9, at(0)), Ask::Later(at(100)));
        requests.map_address("a", None);
        assert_eq!(requests.ask(1, 4, 9, at(1)), now(4, &[]));
        requests.answered(4, at(1));
        requests.map(&"b".into(), 2, 1, Answer::Open);
        assert_eq!(requests.ask(1, 4, 9, at(2)), Ask::Later(at(102)));
        requests.woken(at(102));
        assert_eq!(requests.ask(1, 4, 9, at(102)), now(4, &[]));
    }

    #[test]
    fn a_long_reject_list_waits_for_more_empty_queues() {
        let mut requests = Requests::default();
        (0..=REJECTS_PER_QUEUE as u64).for_each(|hash| requests.mark(hash, true));
        assert_eq!(requests.ask(1, 4, 9, at(0)), Ask::Later(at(100)));
    }

    #[test]
    fn a_crowded_batch_is_rejected_once_and_makes_no_pause() {
        let ip = IpAddr::from([10, 0, 0, 1]);
        let mut requests = Requests::default();
        assert!(!requests.map(&"a".into(), 1, 10, Answer::At(ip)));
        assert_eq!(requests.ask(1, 4, 9, at(0)), now(4, &[1]));
        assert_eq!(requests.answered(0, at(0)), None);
        assert_eq!(requests.ask(1, 4, 9, at(0)), now(4, &[]));
    }
}
