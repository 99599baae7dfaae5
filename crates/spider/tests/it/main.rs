//! The spider against servers of our own on loopback: well-behaved, broken and hostile ones.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod bodies;
mod connections;
mod framing;
mod http2;
mod limits;
mod names;
mod server;
mod tls;
