//! The progress of a run at one moment, and the rate at which pages come.

use std::time::Duration;

use serde::Serialize;

/// Where a run stands at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Seconds since this run began.
    pub seconds: f64,
    /// Pages that this run fetched.
    pub pages: u64,
    /// Pages per second, over the last five seconds.
    pub rate: f64,
    /// Bytes that this run received.
    pub bytes: u64,
    /// URLs still to be fetched.
    pub queued: u64,
    /// Hosts being worked on.
    pub hosts_active: usize,
    /// Requests that are out.
    pub in_flight: usize,
    /// URLs that failed in this run.
    pub failed: u64,
    /// What limits the speed now.
    pub limited_by: String,
    /// What the run has to tell beyond the counts, so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Seconds over which the rate is taken.
const WINDOW: f64 = 5.0;

/// A rate that follows but does not jump.
#[derive(Debug, Default)]
pub struct Rate {
    /// Pages at earlier moments. Filled by each look, emptied of what is older than the window.
    history: Vec<(f64, u64)>,
    last: f64,
}

impl Rate {
    /// The rate at this moment.
    pub fn at(&mut self, seconds: f64, pages: u64) -> f64 {
        self.history.retain(|(at, _)| seconds - at <= WINDOW);
        self.last = match self.history.first() {
            Some((at, before)) if seconds > *at => {
                pages.saturating_sub(*before) as f64 / (seconds - at)
            }
            _ => 0.0,
        };
        self.history.push((seconds, pages));
        self.last
    }

    /// The rate at the last look.
    pub fn last(&self) -> f64 {
        self.last
    }
}

/// CPU time of this process so far, user and system.
pub fn cpu_time() -> Duration {
    // Fields 14 and 15 of stat, counted after the name, which may itself hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    // The kernel reports in hundredths of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_last_seconds() {
        let mut rate = Rate::default();
        assert_eq!(rate.at(0.0, 0), 0.0);
        assert_eq!(rate.at(1.0, 100), 100.0);
        for second in 2..20 {
            rate.at(f64::from(second), 100);
        }
        assert_eq!(rate.at(20.0, 100), 0.0);
    }
}
