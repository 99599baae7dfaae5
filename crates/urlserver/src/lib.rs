//! The URL server: who may be asked when, by host and by IP.
//!
//! `heart` decides, in memory and without a clock; `server` waits, resolves and passes messages on.
//! What is durable is the doc index's, and what goes over the network is the spider's: here live only
//! queues, windows, gaps and what robots.txt allows (`orbweaver-robots` reads it).

mod hash;
pub mod heart;
mod host;
mod leftover;
pub mod message;
pub mod options;
mod pace;
mod places;
mod politeness;
mod rest;
pub mod server;
mod slot;

pub use heart::{Heart, Resend};
pub use message::{
    Action, Bottleneck, Census, Done, Notice, Resolved, RobotsAnswer, RobotsStanding, Spot, Wait,
    Whereabouts,
};
pub use options::{Rates, UrlServerError, UrlServerOptions};
pub use server::{Handle, Links, Resolve, UrlServer};
