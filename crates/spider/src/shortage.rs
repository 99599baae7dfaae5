//! When this machine has no more of something that a connection needs: file descriptors, ports, memory of the kernel.
//!
//! That is no fault of any server. The fetch waits until there is some again, outside of the server's time, and
//! whoever watches is told. Fetches that wait hold their places, so that the crawl asks no more than the machine
//! can.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// How long one that found none waits before it looks again: long enough to cost nothing, short against a fetch.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// How often a port is looked for: without IPv6 on this machine there never is one.
pub(crate) const PORT_TRIES: u32 = 120;

// errno(3), Linux. The standard library has no kinds for them.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EADDRNOTAVAIL: i32 = 99;
const ENOBUFS: i32 = 105;

/// What there is none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It comes back when somebody else is done.
    Files,
    /// A local port; perhaps there never will be one.
    Port,
}

/// What an error says is missing here, if it is.
pub(crate) fn lack(error: &io::Error) -> Option<Lack> {
    match error.raw_os_error()? {
        ENFILE | EMFILE | ENOBUFS | ENOMEM => Some(Lack::Files),
        EADDRNOTAVAIL => Some(Lack::Port),
        _ => None,
    }
}

/// Where shortages are noted; one for the process.
#[derive(Debug, Default)]
pub struct Shortages(Mutex<Option<String>>);

impl Shortages {
    /// A shortage that nobody has been told of yet, in words.
    pub fn take(&self) -> Option<String> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.take()
    }

    pub(crate) fn note(&self, error: &io::Error) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get_or_insert_with(|| error.to_string());
    }
}
