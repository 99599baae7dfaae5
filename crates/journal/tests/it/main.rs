//! The journal from outside: what survives, what followers see, what damage does.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "everything here is a test, helpers included"
)]

mod damage;
mod following;
mod support;
mod writing;
