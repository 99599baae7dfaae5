//! The clock of the process: steady, anchored once at the wall time.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orbweaver_model::{Clock, Timestamp};

/// Seconds, also negative, by which the wall time is taken to be wrong. For tests of clocks that were set
/// between two runs; named in CONTRIBUTING.md and nowhere else.
const OFFSET: &str = "ORBWEAVER_CLOCK_OFFSET";

/// A clock that reads the wall time once and then only moves forward, so that a jump of the machine's
/// clock neither shortens a wait nor stalls the crawl. What a jump between two runs does to waits is the
/// doc index's business.
pub fn steady() -> Clock {
    let offset = std::env::var(OFFSET).ok();
    let offset = offset.and_then(|text| text.parse().ok()).unwrap_or(0);
    anchored(SystemTime::now(), offset)
}

fn anchored(wall: SystemTime, offset: i64) -> Clock {
    let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let shift = Duration::from_secs(offset.unsigned_abs());
    let wall = if offset < 0 {
        wall.saturating_sub(shift)
    } else {
        wall.saturating_add(shift)
    };
    let start = Instant::now();
    Arc::new(move || {
        let now = wall.saturating_add(start.elapsed());
        Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_wall_time_makes_a_clock_that_moves_forward() {
        let day = Duration::from_secs(86_400);
        let before = UNIX_EPOCH - day;
        for (wall, offset) in [
            (UNIX_EPOCH + day, 0),
            (before, 0),
            (UNIX_EPOCH + day, i64::MIN),
            (UNIX_EPOCH + day, i64::MAX),
        ] {
            let clock = anchored(wall, offset);
            assert!(clock() <= clock(), "{wall:?} {offset}");
        }
        let hour = anchored(UNIX_EPOCH + day, -3600)().as_secs();
        assert!((82_800..83_000).contains(&hour), "{hour}");
        assert!(anchored(before, 0)().as_secs() < 100);
    }
}
