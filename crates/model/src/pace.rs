//! How a host has answered lately: what decides how much more slowly than allowed it is asked.
//!
//! The URL server learns it from every answer, and the doc index keeps it, so that a host that was asked less
//! before a crash is asked less after it. How long a gap follows from it is the business of the URL server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How one host has answered lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// The response time in milliseconds: each new one counts a quarter, so that ten answers forget the
    /// past. None was measured while it is 0.
    pub response: u32,
    /// One more with every failure, half as many with every answer.
    pub strikes: u8,
}

impl Pace {
    /// Failures in a row after which the gap does not grow any more: 32 times the usual one.
    const MAX_STRIKES: u8 = 5;

    /// An answer came after this time.
    pub fn answered(&mut self, after: Duration) {
        let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX).max(1);
        self.response = match self.response {
            0 => millis,
            before => before - before / 4 + millis / 4,
        };
        self.strikes /= 2;
    }

    /// No connection, no answer in time, or an answer that says that the server has failed.
    pub fn failed(&mut self) {
        self.strikes = (self.strikes + 1).min(Self::MAX_STRIKES);
    }
}
