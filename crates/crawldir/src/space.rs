//! Free disk space: a crawl pauses before the disk is full, not after.
//!
//! What is already out when the crawl pauses still has to be kept, and so does what the doc index sorts
//! anew in the background. A store that meets the end of the disk recovers, but never needs to.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use orbweaver_config::units::human_bytes;

/// Bytes that stay free on a disk of any size: the answers that may be out, and a table or two of the index.
const RESERVE: u64 = 64 << 20;
/// On a small disk the reserve is one part in so many.
const SMALL_PART: u64 = 20;

/// Watches the disk of a crawl.
pub struct Space {
    dir: PathBuf,
    /// Why the crawl waits, while it does.
    low: Mutex<Option<String>>,
}

impl Space {
    /// The disk under a directory.
    pub fn of(dir: &std::path::Path) -> Self {
        Self {
            dir: dir.into(),
            low: Mutex::default(),
        }
    }

    /// Looks at the disk. Why the crawl has to wait; none when it need not. A disk that does not tell its
    /// size is taken for large.
    pub fn look(&self) -> Option<String> {
        let mut low = self.low.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = rustix::fs::statvfs(&self.dir).ok()?;
        let (free, size) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
        *low = verdict(free, size, low.is_some());
        low.clone()
    }

    /// What the last look found.
    pub fn low(&self) -> Option<String> {
        let low = self.low.lock().unwrap_or_else(PoisonError::into_inner);
        low.clone()
    }
}

fn verdict(free: u64, size: u64, was_low: bool) -> Option<String> {
    let reserve = RESERVE.min(size / SMALL_PART);
    // Once low, half as much again must be free, or the crawl would stutter at the edge.
    let wanted = if was_low {
        reserve + reserve / 2
    } else {
        reserve
    };
    (free < wanted).then(|| {
        format!(
            "the disk is full: {} free, {} needed; free some space, then the crawl resumes",
            human_bytes(free),
            human_bytes(wanted)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_the_reserve_and_goes_on_well_above_it() {
        const MIB: u64 = 1 << 20;
        let large = 100_000 * MIB;
        assert_eq!(verdict(64 * MIB, large, false), None);
        assert!(verdict(63 * MIB, large, false).is_some());
        assert!(verdict(95 * MIB, large, true).is_some());
        assert_eq!(verdict(96 * MIB, large, true), None);
        // A disk of a hundred MiB would never do for a reserve of 64.
        assert_eq!(verdict(5 * MIB, 100 * MIB, false), None);
        assert!(verdict(4 * MIB, 100 * MIB, false).is_some());
        assert_eq!(verdict(0, 0, false), None, "no size, no verdict");
    }
}
