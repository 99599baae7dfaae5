//! The daemons: the ring cut at its two seams. They have no logic of their own; the same fetch and the
//! same archive work here as in a crawl, only the channel between them is a socket.

mod door;
pub(crate) mod journal;
pub(crate) mod place;
pub(crate) mod spider;
pub(crate) mod store;
pub(crate) mod urlserver;

use std::io::IsTerminal;
use std::net::IpAddr;

use orbweaver_model::{Candidate, CrawlUrl, KeySeed, LinkKind, Order, Purpose, TransId};

/// Log lines on standard error, with the time, for a daemon has no progress line.
pub(crate) fn start_log() {
    // A second call in one process, as tests make it, keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .try_init();
}

/// An order as far as the protocols between the daemons carry it; document 0 is a robots.txt. What does not travel is
/// needed neither for a fetch nor for keeping its result.
fn order(trans: TransId, doc_id: u32, ip: IpAddr, url: CrawlUrl) -> Order {
    Order {
        trans,
        ip,
        candidate: Candidate {
            key: url.key(KeySeed(0)),
            doc_id,
            url,
            kind: LinkKind::Seed,
            depth: 0,
            attempts: 0,
            chain: Vec::new(),
            revisit: None,
        },
        purpose: match doc_id {
            0 => Purpose::Robots,
            _ => Purpose::Page,
        },
        announce: false,
    }
}
