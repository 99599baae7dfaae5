//! What a hostile server does, as a list of acts, and the few messages that most of them send.
//!
//! A script is a function from a request to acts, so that a case is a line of a table. It never sees the
//! connection: `serve` carries the acts out.

use std::time::Duration;

/// One thing that a server does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends this.
    Send(Vec<u8>),
    /// Sends this again and again, as fast as it is taken, until the client goes.
    Forever(Vec<u8>),
    /// Sends this byte by byte, with a pause before each; when it is over, it begins again.
    Drip(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Says nothing more until the client goes.
    Silence,
    /// Ends the connection.
    Close,
    /// Breaks the connection off.
    Reset,
}

/// What a script knows about the request it answers.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Path and query.
    pub(crate) target: String,
    /// Name or address with the port, as a URL spells it.
    pub(crate) authority: String,
    /// The port of all plain hosts.
    pub(crate) port: u16,
    /// How often this target was asked for before.
    pub(crate) before: u64,
    /// How many requests this connection has brought before.
    pub(crate) turn: u64,
}

impl Ask {
    /// The number at the end of the target; 0 when there is none.
    pub(crate) fn number(&self) -> u64 {
        let digits = self.target.rsplit(|letter: char| !letter.is_ascii_digit());
        digits
            .into_iter()
            .next()
            .unwrap_or_default()
            .parse()
            .unwrap_or(0)
    }
}

/// A script.
pub(crate) type Script = fn(&Ask) -> Vec<Act>;

/// Sends bytes as they are and goes on with the next request.
pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Send(bytes.into())]
}

/// Sends bytes as they are and closes.
pub(crate) fn raw_close(bytes: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Send(bytes.into()), Act::Close]
}

/// A whole message: first line and fields as given, the length added, and the body.
pub(crate) fn message(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut all = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    all.extend_from_slice(body);
    all
}

/// The first line and the type of a page.
pub(crate) const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html";

/// A page.
pub(crate) fn page(body: impl AsRef<[u8]>) -> Vec<Act> {
    raw(message(PAGE, body))
}

/// A page in UTF-8 with one link.
pub(crate) fn link(to: &str) -> String {
    format!("<!DOCTYPE html><title>t</title><p>Some words. <a href=\"{to}\">on</a>\n")
}

/// An answer without a body.
pub(crate) fn status(code: u16, fields: &str) -> Vec<Act> {
    raw(format!(
        "HTTP/1.1 {code} Status\r\n{fields}Content-Length: 0\r\n\r\n"
    ))
}

/// A redirect.
pub(crate) fn moved(to: &str) -> Vec<Act> {
    status(302, &format!("Location: {to}\r\n"))
}

/// Acts by the target: the first for `/`, the second for everything else.
pub(crate) fn first(ask: &Ask, root: Vec<Act>, rest: Vec<Act>) -> Vec<Act> {
    if ask.target == "/" { root } else { rest }
}

/// A head for a body that ends with the connection.
pub(crate) const OPEN: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";

/// A head for a body in chunks.
pub(crate) const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
