//! The clock of the process: steady, anchored once at the wall time.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use orbweaver_model::{Clock, Timestamp};

/// A clock that reads the wall time once and then only moves forward, so that a jump of the machine's
/// clock neither shortens a wait nor stalls the crawl.
pub(crate) fn steady() -> Clock {
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let start = Instant::now();
    Arc::new(move || {
        let now = wall + start.elapsed();
        Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    })
}
