//! The hosts of a crawl for those who watch it: how many are in which state, and which stand out.

use serde::{Deserialize, Serialize};

use orbweaver_docindex::{HostRecord, Reader};
use orbweaver_model::Timestamp;

use orbweaver_config::units::moment;

/// Hosts shown in each list.
const SHOWN: usize = 5;

/// Hosts by what stands between them and their next request, as the doc index has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStates {
    /// URLs are queued and nothing is in the way but the gap between requests.
    pub ready: u64,
    /// URLs are queued and the host waits for the time in Retry-After.
    pub waiting: u64,
    /// URLs are queued and an operator has blocked the host.
    pub blocked: u64,
    /// It was asked, and nothing more is queued.
    pub done: u64,
}

/// A host in one of the lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLine {
    /// Its name.
    pub host: String,
    /// URLs of it that are queued.
    pub queued: u32,
    /// Requests to it.
    pub requests: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// How long its answers take, lately.
    pub ms: u32,
    /// Until when it waits, or since when it is blocked.
    pub time: Option<String>,
}

/// All hosts, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosts {
    /// How many are in which state.
    pub by_state: HostStates,
    /// Those that wait, the first to go first.
    pub waiting: Vec<HostLine>,
    /// Those that are blocked, the one with most URLs first.
    pub blocked: Vec<HostLine>,
    /// Those whose answers take longest.
    pub slowest: Vec<HostLine>,
    /// Those with most failed attempts.
    pub failing: Vec<HostLine>,
}

impl Hosts {
    /// Reads every host, and counts those that got a request for a page. A host that is only known from links does not count.
    pub fn read(reader: &Reader, now: Timestamp) -> orbweaver_docindex::Result<(u64, Self)> {
        let mut all = Self::default();
        let mut count = 0;
        let (mut waiting, mut blocked) = (Top::default(), Top::default());
        let (mut slowest, mut failing) = (Top::default(), Top::default());
        for record in reader.hosts() {
            let record = record?;
            count += u64::from(record.requests > 0);
            let states = &mut all.by_state;
            match state(&record, now) {
                State::Done => states.done += u64::from(record.requests > 0),
                State::Ready => states.ready += 1,
                State::Blocked => {
                    states.blocked += 1;
                    blocked.offer(u64::from(record.queued), &record, record.blocked);
                }
                State::Waiting => {
                    states.waiting += 1;
                    let soon = u64::MAX - record.not_before.as_millis();
                    waiting.offer(soon, &record, Some(record.not_before));
                }
            }
            if record.requests > 0 {
                slowest.offer(u64::from(record.millis), &record, None);
            }
            if record.failed > 0 {
                failing.offer(u64::from(record.failed), &record, None);
            }
        }
        all.waiting = waiting.lines();
        all.blocked = blocked.lines();
        all.slowest = slowest.lines();
        all.failing = failing.lines();
        Ok((count, all))
    }
}

enum State {
    Ready,
    Waiting,
    Blocked,
    Done,
}

fn state(record: &HostRecord, now: Timestamp) -> State {
    if record.queued == 0 {
        State::Done
    } else if record.blocked.is_some() {
        State::Blocked
    } else if record.not_before > now {
        State::Waiting
    } else {
        State::Ready
    }
}

/// The few with the highest numbers, the highest first; among equals by name, so that a list stays as it is.
#[derive(Default)]
struct Top(Vec<(u64, HostLine)>);

impl Top {
    fn offer(&mut self, weight: u64, record: &HostRecord, time: Option<Timestamp>) {
        let full = self.0.len() >= SHOWN;
        if full && self.0.last().is_some_and(|(least, _)| weight < *least) {
            return;
        }
        let line = HostLine {
            host: record.name.clone(),
            queued: record.queued,
            requests: record.requests,
            failed: record.failed,
            ms: record.millis,
            time: time.map(moment),
        };
        self.0.push((weight, line));
        self.0
            .sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.host.cmp(&other.host)));
        self.0.truncate(SHOWN);
    }

    fn lines(self) -> Vec<HostLine> {
        self.0.into_iter().map(|(_, line)| line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_that_stand_out_are_kept_in_order() {
        let mut top = Top::default();
        for (name, weight) in [
            ("c", 3),
            ("a", 9),
            ("b", 3),
            ("d", 1),
            ("e", 4),
            ("f", 8),
            ("g", 0),
        ] {
            let record = HostRecord {
                name: name.into(),
                ..HostRecord::default()
            };
            top.offer(weight, &record, None);
        }
        let names: Vec<String> = top.lines().into_iter().map(|line| line.host).collect();
        assert_eq!(names, ["a", "f", "e", "b", "c"]);
    }
}
