//! What the tests of several crates need: random numbers from a seed that is printed, candidates, harm to files.
//!
//! A dev-dependency and nothing else: no crate that anybody runs depends on this one. What only one crate's tests need
//! stays with them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "everything here is part of a test: what fails should panic and say where"
)]

mod candidate;
mod files;
mod harm;
mod random;

pub use candidate::{SEED, at, candidate};
pub use files::{copy, files};
pub use harm::Harm;
pub use random::{Random, number, seed};
