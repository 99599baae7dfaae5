//! Whether a request may still be sent, checked just before it is written.
//!
//! Between an order and its request there can be seconds: a connection is made, a handshake held, memory waited for.
//! What the operator or the crawl has decided meanwhile counts, and not what counted when the order was made.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use orbweaver_model::CrawlUrl;
use tokio::sync::watch;

/// The gate of one crawl.
pub(crate) struct SendGate {
    /// True when there is anything to look up: most crawls block nobody, and a page costs one load.
    is_guarded: AtomicBool,
    state: Mutex<State>,
    /// Counts the changes, for those who have orders out with somebody else.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Hosts that an operator has blocked since the crawl began; a blocked host gets no orders anyway.
    blocked: HashSet<Box<str>>,
}

impl Default for SendGate {
    fn default() -> Self {
        Self {
            is_guarded: AtomicBool::new(false),
            state: Mutex::default(),
            changes: watch::channel(0).0,
        }
    }
}

impl SendGate {
    /// Whether a request for this URL may be written now.
    pub(crate) fn may_send(&self, url: &CrawlUrl) -> bool {
        if !self.is_guarded.load(Ordering::Acquire) {
            return true;
        }
        let state = self.lock();
        !state.is_closed && !state.blocked.contains(url.host())
    }

    /// A host is blocked, or no longer.
    pub(crate) fn block(&self, host: &str, blocked: bool) {
        self.change(|state| match blocked {
            true => state.blocked.insert(host.into()),
            false => state.blocked.remove(host),
        });
    }

    /// The crawl stops: no more requests are sent.
    pub(crate) fn close(&self) {
        self.change(|state| !std::mem::replace(&mut state.is_closed, true));
    }

    /// Says when something has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let mut state = self.lock();
        if change(&mut state) {
            let guarded = state.is_closed || !state.blocked.is_empty();
            self.is_guarded.store(guarded, Ordering::Release);
            drop(state);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_host_is_asked_nothing_until_it_is_free_again() {
        let gate = SendGate::default();
        let changes = gate.changes();
        let url = |text| CrawlUrl::from_canonical(text).unwrap();
        let (one, other) = (url("http://a.example/x"), url("http://b.example/x"));
        assert!(gate.may_send(&one));
        gate.block("a.example", true);
        gate.block("a.example", true);
        assert!(!gate.may_send(&one) && gate.may_send(&other));
        assert_eq!(*changes.borrow(), 1);
        gate.block("a.example", false);
        assert!(gate.may_send(&one));
        gate.close();
        assert!(!gate.may_send(&one) && !gate.may_send(&other));
        assert_eq!(*changes.borrow(), 3);
    }
}
