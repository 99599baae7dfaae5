//! How many orders a spider gets at once when it does not ask for them.
//!
//! The protocol has no word for how many places a spider has, so it is learnt from what comes back. A spider that has
//! said DONE much later than its fetch took had the order waiting, and gets fewer; one that says nothing of some of its
//! orders while it speaks of others has no places for those; one that does neither gets more. Without results nobody
//! knows how long a fetch took, and only silence tells.

use std::time::Duration;

use orbweaver_model::Timestamp;

/// What a spider gets that nothing is known of.
const START: usize = 16;

/// An order that waited for longer than this had no place: no store needs as long to keep a page, unless it is the one
/// that everything waits for.
const LONG: Duration = Duration::from_secs(1);

/// Orders that one spider may have.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    size: usize,
    most: usize,
    /// Orders that came back in time since the size was last changed.
    prompt: usize,
    /// The size doubles with each round, until something has waited for the first time.
    is_new: bool,
    /// Orders that were sent before this say nothing of the size as it is now.
    changed: Timestamp,
}

/// An order that has come back.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// When the order was sent.
    pub sent: Timestamp,
    /// When the spider said DONE.
    pub done: Timestamp,
    /// How long its fetch took, when that is known.
    pub took: Option<Duration>,
}

impl Window {
    /// For a spider of which nothing is known; `most` is all that there can be.
    pub fn new(most: usize) -> Self {
        Self {
            size: START.min(most).max(1),
            most: most.max(1),
            prompt: 0,
            is_new: true,
            changed: Timestamp::default(),
        }
    }

    /// Orders that it may have.
    pub fn size(&self) -> usize {
        self.size
    }

    /// It has connected anew, perhaps as another process.
    pub fn restart(&mut self) {
        self.size = self.size.min(START);
        self.is_new = true;
        self.prompt = 0;
    }

    /// An order has come back from a spider that had so many with it.
    pub fn came_back(&mut self, turn: Turn, had: usize, now: Timestamp) {
        let took = turn.took.unwrap_or_else(|| turn.done.since(turn.sent));
        let waited = turn.done.since(turn.sent).saturating_sub(took);
        if waited > LONG {
            if turn.sent >= self.changed {
                self.set(self.size * 3 / 4, now);
            }
            return;
        }
        // Only where it had most of what it may have does it show that it could have more.
        self.prompt += usize::from(had > self.size / 2);
        let round = match self.is_new {
            true => 1,
            false => self.size,
        };
        if self.prompt >= round {
            self.prompt = 0;
            self.size = (self.size + 1).min(self.most);
        }
    }

    /// It has said nothing of some of its orders; of so many others it has.
    pub fn fell_silent(&mut self, at_work: usize, now: Timestamp) {
        let size = match at_work {
            0 => self.size / 4,
            some => some,
        };
        self.set(size.min(self.size), now);
        // Who says nothing at all has not shown that these were too many.
        self.is_new = at_work == 0;
    }

    fn set(&mut self, size: usize, now: Timestamp) {
        self.size = size.clamp(1, self.most);
        self.is_new = false;
        self.prompt = 0;
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A spider with so many places that holds what it gets beyond them, each fetch half a second: the size after so
    /// many seconds, and the orders done.
    fn settle(places: usize, most: usize, seconds: u64, has_results: bool) -> (usize, usize) {
        const FETCH: u64 = 500;
        let mut window = Window::new(most);
        // Sent, and when its fetch begins.
        let mut out: VecDeque<(u64, u64)> = VecDeque::new();
        let mut done = 0;
        for now in (0..seconds * 1000).step_by(10) {
            while out.front().is_some_and(|(_, begun)| begun + FETCH <= now) {
                let had = out.len();
                let (sent, _) = out.pop_front().unwrap();
                done += 1;
                let turn = Turn {
                    sent: Timestamp::from_millis(sent),
                    done: Timestamp::from_millis(now),
                    took: has_results.then_some(Duration::from_millis(FETCH)),
                };
                window.came_back(turn, had, Timestamp::from_millis(now));
            }
            while out.len() < window.size() {
                // It begins when the one that is so many before it is over.
                let before = out.len().checked_sub(places).map(|at| out[at].1 + FETCH);
                out.push_back((now, before.unwrap_or(now).max(now)));
            }
        }
        (window.size(), done)
    }

    #[test]
    fn the_size_comes_near_the_places_whatever_they_are() {
        for places in [1, 2, 10, 100, 400] {
            let (size, done) = settle(places, 512, 300, true);
            assert!(size >= places && size <= places * 4 + 4, "{places}: {size}");
            // Two fetches a second and place, hardly fewer.
            assert!(done > places * 300 * 2 * 8 / 10, "{places}: {done}");
        }
        let (size, _) = settle(1000, 512, 60, true);
        assert_eq!(size, 512);
        let (size, _) = settle(3, 512, 60, false);
        assert!(size > START, "nothing tells: {size}");
    }

    #[test]
    fn silence_tells_the_places_at_once() {
        let mut window = Window::new(512);
        let now = Timestamp::from_millis(5000);
        window.fell_silent(10, now);
        assert_eq!(window.size(), 10);
        window.fell_silent(0, now);
        assert_eq!(window.size(), 2);
        for _ in 0..9 {
            window.fell_silent(0, now);
        }
        assert_eq!(window.size(), 1);
        // Once it speaks, it gets more.
        let turn = Turn {
            sent: now,
            done: now,
            took: None,
        };
        (0..10).for_each(|_| window.came_back(turn, 9, now));
        assert!(window.size() > 3);
        window.restart();
        assert!(window.size() <= START);
    }
}
