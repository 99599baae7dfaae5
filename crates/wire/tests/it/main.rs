//! The protocols against golden files, against arbitrary bytes and cuts, and over real ports.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "everything here is a test, helpers included"
)]

mod arbitrary;
mod golden;
mod pages;
mod ports;
