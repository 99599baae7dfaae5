//! The URL server: who may be asked when, by host and by IP.
//!
//! `heart` decides, in memory and without a clock; `server` waits, resolves and passes messages on.
//! What is durable is the doc index's, and what goes over the network is the spider's: here live only
//! queues, windows, gaps and what robots.txt allows (`orbweaver-robots` reads it).

mod addresses;
mod batch;
mod clock;
mod crowds;
mod hash;
pub mod heart;
mod host;
mod ips;
mod lasting;
mod leftover;
pub mod message;
pub mod options;
mod origins;
mod pace;
mod policies;
mod recalls;
mod requests;
mod rest;
pub mod server;
mod slot;
mod slots;
mod verdicts;
mod window;

pub use heart::{Heart, Resend};
pub use message::{
    Action, Bottleneck, Census, Done, Notice, Resolved, RobotsAnswer, RobotsStanding, Spot, Wait,
    Whereabouts,
};
pub use options::{Rates, UrlServerError, UrlServerOptions};
pub use server::{Handle, Links, Resolve, UrlServer};
