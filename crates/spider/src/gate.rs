//! Who is asked before a request is written, and told when it has been.

use orbweaver_model::{FetchRequest, Timestamp};

/// The last word before a request goes out. A fetch can wait long between its order and its request: for memory, for
/// a connection, for a handshake. What has changed meanwhile is asked for here.
pub trait Gate: Sync {
    /// Asked when the connection stands and the next thing to happen is the first byte of the request. False refuses:
    /// nothing is written, and the connection can serve somebody else. It must not wait.
    fn may_send(&self, request: &FetchRequest) -> bool;

    /// The request has been written. Called once for a request that announces it, whatever comes of it.
    fn sent(&self, at: Timestamp);
}

/// A gate that is always open and hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn may_send(&self, _request: &FetchRequest) -> bool {
        true
    }

    fn sent(&self, _at: Timestamp) {}
}

/// The gate refused a request: no byte of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;
