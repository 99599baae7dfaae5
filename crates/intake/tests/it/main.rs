//! The ways in against tables that others have made, and their speed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers outside the test functions may panic too"
)]

mod surt;
mod throughput;
