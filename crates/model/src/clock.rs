//! Time as a value: milliseconds since the Unix epoch, passed in by whoever does the waiting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where a stage gets the time from. Whoever builds the ring makes it; nothing else looks at a clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
///
/// The shells derive it from a steady clock anchored at the wall time of their start, so that inside
/// one run it never goes back, whatever happens to the machine's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// This moment plus `span`, rounded up to a millisecond and held at the end of time instead of
    /// wrapping: a wait must never come out shorter than it was asked for.
    pub fn after(self, span: Duration) -> Self {
        let millis = u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// How long ago `earlier` was; zero when it lies in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
