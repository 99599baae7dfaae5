//! The doc index as others see it: what it hands out and keeps, who owns its log, what becomes of it when clocks, disks and
//! processes fail, and what it costs when it is large.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that fails should panic and say where; a measurement prints"
)]

mod budget;
mod chances;
mod clock;
mod index;
mod owners;
mod rot;
mod scale;
mod support;
mod visits;
