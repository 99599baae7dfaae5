//! How much more slowly than allowed a host is asked, because it is slow or fails.
//!
//! The gap follows the response time, so that a host is never kept busy for longer than it is left alone,
//! and doubles with every failure. It is never shorter than the rate and Crawl-delay say, and a host
//! without any gap has none of this: whoever sets the rate to 0 asks for no limit.

use std::time::Duration;

/// Failures in a row after which the gap does not grow any more: 32 times the usual one.
const MAX_STRIKES: u8 = 5;

/// How gaps adapt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adapt {
    /// The gap is at least this many times the response time.
    pub(crate) slow_factor: f64,
    /// No gap grows beyond this.
    pub(crate) max: Duration,
}

/// How one host has answered lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The response time in milliseconds: each new one counts a quarter, so that ten answers forget the
    /// past. None was measured while it is 0.
    response: u32,
    /// One more with every failure, half as many with every answer.
    strikes: u8,
}

impl Pace {
    /// What an earlier process had learnt: how long answers took in milliseconds, and the failures.
    pub(crate) fn kept(response: u32, strikes: u8) -> Self {
        Self {
            response,
            strikes: strikes.min(MAX_STRIKES),
        }
    }

    /// An answer came after this time.
    pub(crate) fn answered(&mut self, after: Duration) {
        let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX).max(1);
        self.response = match self.response {
            0 => millis,
            before => before - before / 4 + millis / 4,
        };
        self.strikes /= 2;
    }

    /// No connection, no answer in time, or an answer that says that the server has failed.
    pub(crate) fn failed(&mut self) {
        self.strikes = (self.strikes + 1).min(MAX_STRIKES);
    }

    /// The gap to keep, when it is to be `least` anyway.
    pub(crate) fn delay(self, least: Duration, adapt: Adapt) -> Duration {
        if least.is_zero() {
            return least;
        }
        let millis = f64::from(self.response) * adapt.slow_factor;
        let slow = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(adapt.max);
        let failing = least.saturating_mul(1 << self.strikes);
        least.max(slow.max(failing).min(adapt.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ADAPT: Adapt = Adapt {
        slow_factor: 2.0,
        max: Duration::from_secs(60),
    };

    #[test]
    fn a_slow_host_is_asked_less() {
        let mut pace = Pace::default();
        pace.answered(SECOND / 10);
        assert_eq!(pace.delay(SECOND, ADAPT), SECOND);
        for _ in 0..20 {
            pace.answered(SECOND * 4);
        }
        let delay = pace.delay(SECOND, ADAPT);
        assert!(delay > SECOND * 7 && delay <= SECOND * 8, "{delay:?}");
        for _ in 0..20 {
            pace.answered(SECOND / 10);
        }
        assert_eq!(pace.delay(SECOND, ADAPT), SECOND);
        pace.answered(Duration::MAX);
        assert_eq!(pace.delay(SECOND, ADAPT), SECOND * 60);
    }

    #[test]
    fn a_failing_host_is_asked_less_until_it_answers() {
        let mut pace = Pace::default();
        for factor in [2, 4, 8, 16, 32, 32] {
            pace.failed();
            assert_eq!(pace.delay(SECOND, ADAPT), SECOND * factor);
        }
        for factor in [4, 2, 1] {
            pace.answered(SECOND / 10);
            assert_eq!(pace.delay(SECOND, ADAPT), SECOND * factor);
        }
    }

    #[test]
    fn never_faster_than_asked_for_and_never_where_nothing_is_asked_for() {
        let mut pace = Pace::default();
        for _ in 0..9 {
            pace.failed();
            let asked = Duration::from_secs(300);
            assert_eq!(pace.delay(asked, ADAPT), asked, "longer than the cap");
            assert_eq!(pace.delay(Duration::ZERO, ADAPT), Duration::ZERO);
        }
    }
}
