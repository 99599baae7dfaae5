//! The URL server as others see it: its shell with real waiting, and its heart in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a test that fails should panic and say where"
)]

mod cost;
mod crowd;
mod document_a;
mod fair;
mod reordering;
mod shell;
mod simulation;
mod week;
