//! What can go wrong between two daemons, and what the operator can do about it.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Bytes that a secret has at least: as many as the key pair that is derived from it.
pub(crate) const MIN_KEY: usize = 32;

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
    #[error("key exchange with {address} failed: {why}; both sides need the same Key_File")]
    Handshake {
        /// The other side.
        address: SocketAddr,
        /// What the TLS library said.
        why: String,
    },
    /// The other side ended the connection before the handshake was over: it may have no place left, or be stopping.
    /// It is tried again.
    #[error(
        "{address} closed the connection during the handshake; its log says whether it has too many connections"
    )]
    Closed {
        /// The other side.
        address: SocketAddr,
    },
    /// Somebody connected and did not show the key: a port scanner, or a peer that was stopped.
    #[error("{address} connected and did not finish the handshake within {seconds} s")]
    Slow {
        /// The other side.
        address: SocketAddr,
        /// How long it had.
        seconds: u64,
    },
    /// So many connections waited to be recognised that one of them had to go. Daemons come through all the same; find
    /// out who connects from that address.
    #[error(
        "too many unauthenticated connections, {count} of them from {}; one of those was closed", address.ip()
    )]
    Crowded {
        /// The one that was closed.
        address: SocketAddr,
        /// How many waited from there.
        count: usize,
    },
    /// Every place is taken by a daemon: stop some.
    #[error("{address} was refused: all {places} connections are in use")]
    Full {
        /// Who was turned away.
        address: SocketAddr,
        /// How many places there are.
        places: usize,
    },
    /// Somebody who is no daemon spoke to a port without a key. Nothing of it was obeyed.
    #[error("{address} was disconnected: {why}")]
    Stranger {
        /// Who it was.
        address: SocketAddr,
        /// How it was recognised.
        why: &'static str,
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
    #[error("a key needs at least {} bytes of secret", MIN_KEY)]
    ShortKey,
    /// The TLS library refused its own configuration. This is a fault of the build: report it.
    #[error("TLS could not be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl WireError {
    /// A word for errors of the same cause, so that those of another one are not passed over with them.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::NeedsKey { .. } | Self::KeyFile { .. } | Self::ShortKey => "key",
            Self::Name { .. } => "name",
            Self::Listen { .. } => "listen",
            Self::Connect { .. } => "connect",
            Self::Handshake { .. } => "handshake",
            Self::Closed { .. } => "closed",
            Self::Slow { .. } => "slow",
            Self::Crowded { .. } => "crowded",
            Self::Full { .. } => "full",
            Self::Stranger { .. } => "stranger",
            Self::Tls(_) => "tls",
        }
    }

    /// The error that a connection of ours failed with, when it is one of these.
    pub fn within(error: &std::io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}
