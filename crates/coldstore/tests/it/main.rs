//! Tests of reading a store's files: against the store itself, with what damage leaves, and of the versions it is made for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "everything here is a test, helpers included"
)]

mod pins;
mod reading;
mod stream;
