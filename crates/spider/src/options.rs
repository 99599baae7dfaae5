//! How a spider is set up. `Default` is the only place where the values live.

use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{HostRequest, Limits, PerHost};

use crate::address_policy::AddressPolicy;
use crate::budget::ByteBudget;
use crate::shortage::Shortages;
use crate::spool::SpoolDir;

/// What a spider needs to know at its construction.
#[derive(Clone, Debug)]
pub struct SpiderOptions {
    /// The User-Agent header of every request; should name a contact.
    pub user_agent: String,
    /// How much is taken from a server.
    pub limits: Limits,
    /// What requests to single hosts say and take instead.
    pub hosts: PerHost<HostRequest>,
    /// Where connections may go.
    pub policy: AddressPolicy,
    /// Whom to believe in TLS.
    pub tls: TlsOptions,
    /// Connections kept open between two requests, all hosts together; 0 closes each after its request.
    pub max_idle_connections: usize,
    /// How long an unused connection is kept.
    pub idle_keep: Duration,
    /// Memory for bodies, shared by all fetches and held until their results are dropped.
    pub memory: ByteBudget,
    /// Where bodies go that are too large for memory; none keeps all of them in memory.
    pub spool: Option<SpoolDir>,
    /// Nobody reads the bodies: they are decoded to see whether they can be, and not kept so.
    pub discard_decoded: bool,
    /// Where it is noted that this machine has too few file descriptors or ports.
    pub shortages: Arc<Shortages>,
}

/// Whom to believe in TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Accept any certificate: for archives that prefer a page from a doubtful server to none.
    pub insecure: bool,
    /// Root certificates in PEM form, besides Mozilla's; empty for none.
    pub extra_roots_pem: Vec<u8>,
}

impl Default for SpiderOptions {
    fn default() -> Self {
        Self {
            user_agent: format!("orbweaver/{}", env!("CARGO_PKG_VERSION")),
            limits: Limits::default(),
            hosts: PerHost::default(),
            policy: AddressPolicy::default(),
            tls: TlsOptions::default(),
            // A connection costs a file descriptor and about 20 KiB; the usual limit is 1,024 descriptors.
            max_idle_connections: 256,
            // Longer than the usual second between two requests to a host, shorter than the five
            // seconds after which common servers close an idle connection themselves.
            idle_keep: Duration::from_secs(4),
            memory: ByteBudget::new(128 << 20, 16 << 20),
            spool: None,
            discard_decoded: false,
            shortages: Arc::default(),
        }
    }
}
