//! What can go wrong between two daemons, and what the operator can do about it.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// A failure of the wire. A message that is not understood is none: its decoder says so in its own words.
#[derive(Debug, Error)]
pub enum WireError {
    /// A port would be open to others without a key: give both sides the same Key_File, or use loopback.
    #[error(
        "{address} is not a loopback address and no key is set: give both sides the same Key_File, or use 127.0.0.1"
    )]
    NeedsKey {
        /// Where it would have listened or connected.
        address: SocketAddr,
    },
    /// The name of a host leads nowhere: correct it, or mend the name server.
    #[error("`{host}` cannot be resolved: {why}")]
    Name {
        /// The name as configured.
        host: String,
        /// What the system said.
        why: String,
    },
    /// The address cannot be listened on: another process has it, or it is not this machine's.
    #[error("cannot listen on {address}: {source}; is another daemon running there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// No connection: the other daemon does not run, or something stands between. It is tried again.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The other side does not have the same key, or does not speak TLS: compare the key files.
    #[error("no agreement on the key with {address}: {why}; both sides need the same Key_File")]
    Handshake {
        /// The other side.
        address: SocketAddr,
        /// What the TLS library said.
        why: String,
    },
    /// The key file cannot be used.
    #[error("the key file {} cannot be used: {why}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The secret is too short to be one: write at least 32 random bytes into the key file.
    #[error("a key needs at least {} bytes of secret", crate::keyed::MIN_KEY)]
    ShortKey,
    /// The TLS library refused its own configuration. This is a fault of the build: report it.
    #[error("TLS could not be set up: {0}")]
    Tls(#[from] rustls::Error),
}
