//! The simulated web seen from outside: what it serves and what it counts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "everything here is a test, helpers included"
)]

mod client;
mod cost;
mod crawl;
mod links;
mod names;
mod visits;
mod web;
