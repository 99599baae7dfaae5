//! Which records the store has, so that one that is sent again is not archived again.
//!
//! A record is known by its document, its URL and its data. One that is known is only entered in the results again, so that the
//! doc index hears of every attempt and the archive holds nothing twice.

use std::collections::{HashMap, VecDeque};

use orbweaver_model::CrawlUrl;
use orbweaver_store::Placed;
use xxhash_rust::xxh3::Xxh3;

/// Records that are remembered: more than all spiders together can have unanswered, at some 100 bytes each.
const REMEMBERED: usize = 1 << 18;

/// What recognises a record: the same document, URL and message have the same key.
pub(super) fn key(doc_id: u32, url: &CrawlUrl, message: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&doc_id.to_be_bytes());
    hash.update(&(url.as_str().len() as u64).to_be_bytes());
    hash.update(url.as_str().as_bytes());
    hash.update(message);
    hash.digest128()
}

/// What is known of a record; `W` is one who brought the same and has to wait.
enum State<W> {
    /// It is being prepared for the archive, and these wait for it. As many as all connections may have unanswered.
    Preparing(Vec<W>),
    /// It was given to the archive, which has it or will have it before anything that is given to it later.
    Submitted(Placed),
}

/// What to do with a record.
pub(super) enum Found<W> {
    /// It is new, and whoever brought it prepares it now.
    New(W),
    /// It is in the archive, or on its way.
    At(W, Placed),
    /// Another is just preparing it, and sees to this one too.
    Waits,
}

/// The records of late. Filled as they come and at the start, bounded by forgetting the oldest.
pub(super) struct Known<W> {
    states: HashMap<u128, State<W>>,
    order: VecDeque<u128>,
    most: usize,
}

impl<W> Default for Known<W> {
    fn default() -> Self {
        Self {
            states: HashMap::new(),
            order: VecDeque::new(),
            most: REMEMBERED,
        }
    }
}

impl<W> Known<W> {
    /// Looks a record up; one that is new counts as being prepared from now on.
    pub(super) fn take(&mut self, key: u128, waiting: W) -> Found<W> {
        match self.states.get_mut(&key) {
            Some(State::Submitted(placed)) => Found::At(waiting, placed.clone()),
            Some(State::Preparing(others)) => {
                others.push(waiting);
                Found::Waits
            }
            None => {
                self.put(key, State::Preparing(Vec::new()));
                Found::New(waiting)
            }
        }
    }

    /// The record was given to the archive, now or in an earlier run. Returns those who waited for that.
    pub(super) fn submitted(&mut self, key: u128, placed: Placed) -> Vec<W> {
        match self.put(key, State::Submitted(placed)) {
            Some(State::Preparing(waiting)) => waiting,
            _ => Vec::new(),
        }
    }

    /// Forgets a record that was not stored; those who waited for it get no answer.
    pub(super) fn remove(&mut self, key: u128) {
        self.states.remove(&key);
        self.order.retain(|it| *it != key);
    }

    fn put(&mut self, key: u128, state: State<W>) -> Option<State<W>> {
        let before = self.states.insert(key, state);
        if before.is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            // One that is being prepared is not forgotten: somebody may wait for it.
            if matches!(self.states.get(&oldest), Some(State::Preparing(_))) {
                self.order.push_back(oldest);
                break;
            }
            self.states.remove(&oldest);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orbweaver_model::CapturePlace;

    fn placed(offset: u64) -> Placed {
        Placed::at(CapturePlace { file: 1, offset })
    }

    #[test]
    fn the_same_waits_while_the_first_is_prepared_and_is_found_after() {
        let mut known = Known::default();
        assert!(matches!(known.take(7, "a"), Found::New("a")));
        assert!(matches!(known.take(7, "b"), Found::Waits));
        assert!(matches!(known.take(8, "c"), Found::New("c")));
        assert_eq!(known.submitted(7, placed(3)), ["b"]);
        let Found::At("d", at) = known.take(7, "d") else {
            panic!("it is known");
        };
        assert_eq!(at.get().map(|place| place.offset), Some(3));
        known.remove(7);
        assert!(matches!(known.take(7, "e"), Found::New("e")));
    }

    #[test]
    fn the_oldest_are_forgotten_but_none_that_is_waited_for() {
        let mut known = Known {
            most: 3,
            ..Known::default()
        };
        assert!(matches!(known.take(1, "first"), Found::New(_)));
        assert!(matches!(known.take(1, "waits"), Found::Waits));
        for key in 2..20 {
            known.submitted(key, placed(1));
        }
        assert!(known.order.len() <= 4 && known.states.len() == known.order.len());
        assert_eq!(known.submitted(1, placed(1)), ["waits"]);
        assert!(matches!(known.take(2, "forgotten"), Found::New(_)));
    }
}
