//! The daemons: the ring cut at its two seams. They have no logic of their own; the same fetch and the
//! same archive work here as in a crawl, only the channel between them is a socket.

mod door;
pub(crate) mod journal;
pub(crate) mod place;
pub(crate) mod spider;
pub(crate) mod store;
pub(crate) mod urlserver;

use std::io::IsTerminal;

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
