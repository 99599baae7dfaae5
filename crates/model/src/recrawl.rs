//! When a page is worth asking for again: a learner of how often it changes.
//!
//! A page is taken to change at random moments with some mean interval that nobody knows. Candidates for that
//! interval, from a second to a year, each carry a weight. A visit after time t that finds a change multiplies the
//! weight of interval τ by 1 − e^(−t/τ), one that finds none by e^(−t/τ): Bayes' rule, nothing tuned. The next visit
//! comes when the chance that the page has changed reaches one half, where only intervals within the bounds of
//! the user are considered. So a page that changed comes back sooner, one that did not comes later, and how
//! much depends on all that was seen of it and not on a step size.
//!
//! No weight falls below a floor, because a page that slept for a year may wake up; the floor is what a
//! handful of contrary visits can overcome. The state is twenty-four bytes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Number of candidate intervals. Neighbours differ by a factor of 2.1, which a handful of visits can just tell
/// apart.
const CANDIDATES: usize = 24;
/// The greatest candidate interval in seconds: a year. The least is one second.
const GREATEST: f64 = 365.0 * 86_400.0;
/// The chance of a change at which a visit is worth it. One half is where a visit tells the learner most.
const WORTH_IT: f64 = 0.5;

/// The bounds within which pages are visited again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecrawlBounds {
    /// No page is requested again sooner; at least one second.
    pub min: Duration,
    /// Every page is requested again at the latest after this.
    pub max: Duration,
}

impl Default for RecrawlBounds {
    fn default() -> Self {
        Self {
            min: Duration::from_secs(3600),
            max: Duration::from_secs(30 * 86_400),
        }
    }
}

impl RecrawlBounds {
    fn seconds(self) -> (f64, f64) {
        let min = self.min.as_secs_f64().max(1.0);
        (min, self.max.as_secs_f64().max(min))
    }

    /// The candidates within the bounds, or the one nearest to them; weights stand in the same order.
    fn candidates(self) -> impl Iterator<Item = (usize, f64)> {
        let (min, max) = self.seconds();
        let step = GREATEST.powf(1.0 / (CANDIDATES - 1) as f64);
        let least = min.min(GREATEST) / step.sqrt();
        let greatest = max.min(GREATEST) * step.sqrt();
        candidates()
            .into_iter()
            .enumerate()
            .filter(move |(_, interval)| (least..=greatest).contains(interval))
    }
}

/// The candidate intervals in seconds.
fn candidates() -> [f64; CANDIDATES] {
    std::array::from_fn(|k| GREATEST.powf(k as f64 / (CANDIDATES - 1) as f64))
}

/// What a visit leaves for the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revisit {
    /// Visits made; none when its robots.txt was unavailable before the first.
    pub visits: u32,
    /// What is believed about how often it changes.
    pub rate: ChangeRate,
    /// When it was last asked for with success: the next visit tells about the time since then.
    pub seen: Timestamp,
    /// When the answer was captured that later ones can refer to.
    pub captured: Timestamp,
    /// Hash of the body.
    pub digest: u64,
    /// Content-Length, when the server gave it.
    pub length: Option<u64>,
    /// ETag as the server wrote it.
    pub etag: Option<String>,
    /// Last-Modified as the server wrote it.
    pub last_modified: Option<String>,
    /// When it is to be requested again; none when it is not.
    pub due: Option<Timestamp>,
}

impl Revisit {
    /// What is known before the first visit, of a URL that could not be asked for.
    pub fn unvisited(at: Timestamp) -> Self {
        Self {
            visits: 0,
            rate: ChangeRate::default(),
            seen: at,
            captured: at,
            digest: 0,
            length: None,
            etag: None,
            last_modified: None,
            due: None,
        }
    }
}

/// What is believed about one page: a weight for each candidate interval. The greatest of those within the
/// bounds is 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRate([u8; CANDIDATES]);

impl Default for ChangeRate {
    /// Before anything was seen, every interval is as likely as any other.
    fn default() -> Self {
        Self([255; CANDIDATES])
    }
}

impl ChangeRate {
    /// Takes in a visit `elapsed` after the one before. In logarithms: a page that was left alone for a thousand
    /// intervals and has not changed makes all weights too small for numbers, but not as small as one another.
    pub fn observe(&mut self, elapsed: Duration, changed: bool, bounds: RecrawlBounds) {
        // A visit in the same moment tells nothing.
        let t = elapsed.as_secs_f64().max(1e-3);
        let mut weights = self.0.map(|weight| f64::from(weight).ln());
        for (weight, interval) in weights.iter_mut().zip(candidates()) {
            let same = -t / interval;
            *weight += if changed { (-same.exp_m1()).ln() } else { same };
        }
        let within = bounds.candidates().filter_map(|(k, _)| weights.get(k));
        let greatest = within.copied().fold(f64::NEG_INFINITY, f64::max);
        for (stored, weight) in self.0.iter_mut().zip(weights) {
            let share = (weight - greatest).exp();
            *stored = (share * 255.0).round().clamp(1.0, 255.0) as u8;
        }
    }

    /// How long after a visit the next one is worth it.
    pub fn next_visit(&self, bounds: RecrawlBounds) -> Duration {
        let (mut low, mut high) = bounds.seconds();
        let weigh = |(k, interval)| Some((f64::from(*self.0.get(k)?), interval));
        let believed: Vec<(f64, f64)> = bounds.candidates().filter_map(weigh).collect();
        let all: f64 = believed.iter().map(|(weight, _)| weight).sum();
        let changed_by = |seconds: f64| -> f64 {
            let changed = believed.iter();
            changed
                .map(|(weight, interval)| weight * (1.0 - (-seconds / interval).exp()))
                .sum()
        };
        // The chance only grows with time: halving finds the place to within a hundredth.
        while high / low > 1.01 {
            let middle = (low * high).sqrt();
            if changed_by(middle) < WORTH_IT * all {
                low = middle;
            } else {
                high = middle;
            }
        }
        Duration::from_secs_f64(high).clamp(bounds.min, bounds.max.max(bounds.min))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: f64 = 3600.0;

    /// Visits a page that changes every `interval` hours, as the learner says, for a number of visits.
    fn settle(interval: f64, visits: usize) -> f64 {
        let bounds = RecrawlBounds::default();
        let mut rate = ChangeRate::default();
        let (mut now, mut last) = (0.0, 0.0);
        for _ in 0..visits {
            let wait = rate.next_visit(bounds);
            now += wait.as_secs_f64();
            let changed = (now / (interval * HOUR)).floor() > (last / (interval * HOUR)).floor();
            rate.observe(wait, changed, bounds);
            last = now;
        }
        rate.next_visit(bounds).as_secs_f64() / HOUR
    }

    #[test]
    fn the_interval_follows_the_page() {
        assert!(
            settle(0.1, 40) < 1.3,
            "changes all the time: {}",
            settle(0.1, 40)
        );
        assert!(
            settle(1e9, 40) > 400.0,
            "never changes: {}",
            settle(1e9, 40)
        );
        let (daily, weekly) = (settle(24.0, 60), settle(168.0, 60));
        assert!((6.0..48.0).contains(&daily), "daily: {daily}");
        assert!((48.0..340.0).contains(&weekly), "weekly: {weekly}");
    }

    #[test]
    fn a_page_that_wakes_up_is_noticed() {
        let bounds = RecrawlBounds::default();
        let mut rate = ChangeRate::default();
        for _ in 0..30 {
            rate.observe(rate.next_visit(bounds), false, bounds);
        }
        let asleep = rate.next_visit(bounds);
        for _ in 0..10 {
            rate.observe(rate.next_visit(bounds), true, bounds);
        }
        assert!(
            rate.next_visit(bounds) < asleep / 20,
            "{:?}",
            rate.next_visit(bounds)
        );
    }

    proptest! {
        /// Changed means not later, unchanged means not sooner, and the bounds hold, whatever was seen.
        #[test]
        fn a_change_brings_it_closer(
            seen in prop::collection::vec((1u64..10_000_000, any::<bool>()), 0..40),
            min in 1u64..100_000, factor in 1u64..1000, elapsed in 1u64..10_000_000,
        ) {
            let bounds = RecrawlBounds { min: Duration::from_secs(min), max: Duration::from_secs(min * factor) };
            let mut rate = ChangeRate::default();
            for (elapsed, changed) in seen {
                rate.observe(Duration::from_secs(elapsed), changed, bounds);
            }
            let before = rate.next_visit(bounds);
            prop_assert!((bounds.min..=bounds.max).contains(&before));
            let elapsed = Duration::from_secs(elapsed);
            let (mut sooner, mut later) = (rate, rate);
            sooner.observe(elapsed, true, bounds);
            later.observe(elapsed, false, bounds);
            // Weights are kept in eight bits, which can move the place by a little.
            prop_assert!(sooner.next_visit(bounds) <= before.mul_f64(1.05) + Duration::from_millis(2));
            prop_assert!(later.next_visit(bounds) >= before.mul_f64(0.95) - Duration::from_millis(2));
        }
    }
}
