//! Whole documents: what is read of them, held against other readers, and how fast.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers outside the test functions may panic too"
)]

mod differential;
mod fingerprint;
mod reading;
mod sitemaps;
mod throughput;
