//! A seeded simulated web that counts what its visitors do.
//!
//! The web is a pure function of its settings ([`Web`]); [`SimWeb`] serves it on the loopback network
//! and keeps the [`Stats`]. Nothing here knows the crawler: what it did is judged by what arrived.
//!
//! To read on: `layout` says what exists and what links to what, `spell` how links are written, `html`
//! what stands around them; `shape` has honest sites of unusual shapes, `trap` endless ones; `answer` turns a request into bytes, `serve` moves them, `count` keeps the
//! score. `hostile` is another web, which misbehaves.

mod address;
mod answer;
mod config;
mod control;
mod count;
mod dns;
mod gzip;
pub mod hostile;
mod html;
mod layout;
mod place;
mod request;
mod rng;
mod serve;
mod shape;
mod spell;
mod stats;
mod trap;
mod web;
mod words;
mod worker;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

pub use config::{SimConfig, Sizes};
pub use shape::Shape;
pub use stats::{Busiest, Offence, ShortestGap, Stats, TrapVisits, VisitLimits};
pub use web::Web;

use count::Counters;
use worker::Workers;

/// Why a simulated web cannot be served.
#[derive(Debug, Error)]
pub enum SimError {
    /// Settings that make no web; correct those that are named.
    #[error("invalid settings of the simulated web: {0}")]
    Config(String),
    /// A port cannot be listened on; choose another, or zero for any that is free.
    #[error("cannot listen on port {port}")]
    Listen {
        /// The port asked for.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// No thread could be started; the machine is out of them.
    #[error("cannot start a thread of the simulated web")]
    Thread(#[source] std::io::Error),
    /// The certificates of the hostile web could not be made; the machine has no randomness.
    #[error("cannot make certificates: {0}")]
    Certificates(String),
}

/// What every connection sees.
struct Served {
    web: Web,
    counters: Counters,
}

/// A simulated web that is being served, until this is dropped. It has its own threads, so it can be
/// used from async code and from any other.
pub struct SimWeb {
    shared: Arc<Served>,
    workers: Workers,
}

impl SimWeb {
    /// Starts to serve.
    pub fn start(config: SimConfig) -> Result<Self, SimError> {
        config.check()?;
        let bound = worker::bind(&config)?;
        let port = bound.http_port;
        let web = Web::new(SimConfig { port, ..config })?;
        let counters = Counters::new(&web.layout);
        let shared = Arc::new(Served { web, counters });
        let workers = bound.serve(&shared);
        Ok(Self { shared, workers })
    }

    /// What was counted since the start or the last reset.
    pub fn stats(&self) -> Stats {
        self.shared.counters.stats(&self.shared.web.layout)
    }

    /// Forgets what was counted, also that robots.txt was ever asked for; failing hosts fail again.
    pub fn reset(&self) {
        self.shared.counters.reset();
    }

    /// The settings, with the port that was found free.
    pub fn config(&self) -> &SimConfig {
        &self.shared.web.layout.config
    }

    /// The port of every host.
    pub fn http_port(&self) -> u16 {
        self.shared.web.layout.port
    }

    /// Where the control endpoint listens.
    pub fn control_addr(&self) -> SocketAddr {
        self.workers.control
    }

    /// Where the DNS server listens; none when hosts are addresses.
    pub fn dns_addr(&self) -> Option<SocketAddr> {
        self.workers.dns
    }
}

impl Deref for SimWeb {
    type Target = Web;

    fn deref(&self) -> &Web {
        &self.shared.web
    }
}
