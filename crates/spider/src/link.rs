//! An open connection, and what must be known about it.

use std::net::IpAddr;

use crate::http1::Http1;
use crate::http2::Http2;
use crate::stream::ByteCount;

/// An open connection in one of the two versions.
pub(crate) enum Wire {
    /// HTTP/1, used by one fetch at a time.
    Http1(Http1),
    /// HTTP/2, shared.
    Http2(Http2),
}

/// A connection and what must be known about it.
pub(crate) struct Link {
    pub(crate) wire: Wire,
    /// The address the socket is connected to, as the system says.
    pub(crate) peer: IpAddr,
    /// What came through the socket, TLS included.
    pub(crate) count: ByteCount,
}
