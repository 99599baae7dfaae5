//! The store from outside: what is written can be read, checked, cut anywhere and taken over again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at what it does not expect, helpers included"
)]

mod archive;
mod bulk;
mod check;
mod fixture;
mod forgery;
mod recover;
mod results;
mod round_trip;
mod sample;
