//! The daemons: the ring cut at two places. They have no logic of their own; the same fetch and the
//! same archive work here as in a crawl, only the channel between them is a socket.

mod acceptor;
mod signals;
pub mod spider;
pub mod store;

use std::io::IsTerminal;

pub use signals::Signals;

/// Log lines on standard error, with the time, for a daemon has no progress line.
pub fn start_log() {
    // A second call in one process, as tests make it, keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .try_init();
}

/// A key that cannot be used is a mistake in the file.
fn key_error(error: orbweaver_wire::WireError) -> orbweaver_ring::Error {
    orbweaver_ring::Error::Input(format!("Key_File: {error}"))
}
