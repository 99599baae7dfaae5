//! Accepts the connections of a port. Refusals are logged once a minute per cause, because strangers must not be able to fill
//! a disk with log lines.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::warn;

use orbweaver_model::Clock;
use orbweaver_wire::{Complaints, Connection, Listener, WireError};

/// Pause after the system refused to accept a connection, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A port that is listened on, and its log.
pub(super) struct Acceptor {
    listener: Listener,
    log: RefusalLog,
}

/// The log of refused connections. Clones share it.
#[derive(Clone)]
pub(super) struct RefusalLog {
    clock: Clock,
    /// By cause, of which there are as many as `WireError` has; filled with the first of each.
    complaints: Arc<Mutex<HashMap<&'static str, Complaints>>>,
}

impl Acceptor {
    pub(super) fn new(listener: Listener, clock: Clock) -> Self {
        let complaints = Arc::default();
        Self {
            listener,
            log: RefusalLog { clock, complaints },
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// For tasks that find out during the conversation that the peer is a stranger.
    pub(super) fn log(&self) -> RefusalLog {
        self.log.clone()
    }

    /// The next connection.
    pub(super) async fn next(&mut self) -> Connection {
        loop {
            match self.listener.accept().await {
                Ok(connection) => return connection,
                Err(error) => {
                    let is_ours = matches!(error, WireError::Listen { .. });
                    self.log.note(&error);
                    if is_ours {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }
}

impl RefusalLog {
    /// Says why a connection was not listened to, if that is what this error of it means.
    pub(super) fn knows(&self, error: &anyhow::Error) -> bool {
        let found = error.downcast_ref::<std::io::Error>();
        let found = found.and_then(WireError::within);
        if let Some(error) = found {
            self.note(error);
        }
        found.is_some()
    }

    fn note(&self, error: &WireError) {
        let mut all = self
            .complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let complaints = all.entry(error.cause()).or_default();
        if let Some(count) = complaints.count((self.clock)()) {
            warn!(%error, count, "a connection was refused");
        }
    }
}
