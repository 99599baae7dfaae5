//! How much more slowly than allowed a host is asked, because it is slow or fails.
//!
//! The gap follows the response time, so that a host is never kept busy for longer than it is left alone,
//! and doubles with every failure. It is never shorter than the rate and Crawl-delay say, and a host
//! without any gap has none of this: whoever sets the rate to 0 asks for no limit.

use std::time::Duration;

use orbweaver_model::Pace;

/// How gaps adapt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adapt {
    /// The gap is at least this many times the response time.
    pub(crate) slow_factor: f64,
    /// No gap grows beyond this.
    pub(crate) max: Duration,
}

impl Adapt {
    /// The gap to keep, when it is to be `least` anyway.
    pub(crate) fn delay(self, pace: Pace, least: Duration) -> Duration {
        if least.is_zero() {
            return least;
        }
        let millis = f64::from(pace.response) * self.slow_factor;
        let slow = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(self.max);
        let doubled = 1u32.checked_shl(u32::from(pace.strikes));
        let failing = least.saturating_mul(doubled.unwrap_or(u32::MAX));
        least.max(slow.max(failing).min(self.max))
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
        assert_eq!(ADAPT.delay(pace, SECOND), SECOND);
        for _ in 0..20 {
            pace.answered(SECOND * 4);
        }
        let delay = ADAPT.delay(pace, SECOND);
        assert!(delay > SECOND * 7 && delay <= SECOND * 8, "{delay:?}");
        for _ in 0..20 {
            pace.answered(SECOND / 10);
        }
        assert_eq!(ADAPT.delay(pace, SECOND), SECOND);
        pace.answered(Duration::MAX);
        assert_eq!(ADAPT.delay(pace, SECOND), SECOND * 60);
    }

    #[test]
    fn a_failing_host_is_asked_less_until_it_answers() {
        let mut pace = Pace::default();
        for factor in [2, 4, 8, 16, 32, 32] {
            pace.failed();
            assert_eq!(ADAPT.delay(pace, SECOND), SECOND * factor);
        }
        for factor in [4, 2, 1] {
            pace.answered(SECOND / 10);
            assert_eq!(ADAPT.delay(pace, SECOND), SECOND * factor);
        }
    }

    #[test]
    fn never_faster_than_asked_for_and_never_where_nothing_is_asked_for() {
        let mut pace = Pace::default();
        for _ in 0..9 {
            pace.failed();
            let asked = Duration::from_secs(300);
            assert_eq!(ADAPT.delay(pace, asked), asked, "longer than the cap");
            assert_eq!(ADAPT.delay(pace, Duration::ZERO), Duration::ZERO);
        }
    }
}
