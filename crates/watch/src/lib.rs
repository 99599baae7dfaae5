//! The state of a crawl as values, for whoever watches it: counts, hosts, why a URL stands where it stands, what limits the
//! speed, what became of each URL, and what is wrong with the index. Also what a run has to tell a person: notices, seeds that
//! do not answer, one log line per request, and the summary at the end.
//!
//! Everything is read from the doc index, the archive and what the URL server counted; nothing here changes a crawl.

pub mod check;
pub mod counters;
mod error;
pub mod hosts;
pub mod log;
pub mod notices;
pub mod outcomes;
pub mod progress;
pub mod seeds;
pub mod slow;
pub mod status;
pub mod summary;
pub mod trapped;
pub mod why;

pub use error::{Error, Result};
