//! Reading a request head, as far as this server cares.
//!
//! It reads what a well-behaved client sends and refuses the rest; it is no model of how the servers
//! of the web read.

/// No request head is longer.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// What a request asks for.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    /// The authority asked for.
    pub(crate) authority: &'a str,
    /// Whether a gzip body is welcome.
    pub(crate) gzip: bool,
    pub(crate) if_none_match: Option<&'a str>,
    pub(crate) if_modified_since: Option<&'a str>,
    /// Whether the client wants the connection to end.
    pub(crate) close: bool,
}

/// Where the first head in the buffer ends, its empty line included.
pub(crate) fn head_len(buffer: &[u8]) -> Option<usize> {
    buffer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

/// Reads a whole head. None for what is not HTTP/1.0 or HTTP/1.1, has no host, or brings a body.
pub(crate) fn parse(head: &[u8]) -> Option<Request<'_>> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return None;
    }
    let mut request = Request {
        method,
        target,
        close: version == "HTTP/1.0",
        ..Request::default()
    };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        request.field(name, value.trim())?;
    }
    // The absolute form overrides the Host field (RFC 9112, 3.2.2).
    if let Some(rest) = target.strip_prefix("http://") {
        let (authority, _) = rest.split_once('/')?;
        request.authority = authority;
        request.target = rest.get(authority.len()..)?;
    }
    (request.target.starts_with('/') && !request.authority.is_empty()).then_some(request)
}

impl<'a> Request<'a> {
    fn field(&mut self, name: &str, value: &'a str) -> Option<()> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // The length tells most names apart before they are compared.
        match name.len() {
            4 if is("host") => self.authority = value,
            15 if is("accept-encoding") => self.gzip = accepts_gzip(value),
            13 if is("if-none-match") => self.if_none_match = Some(value),
            17 if is("if-modified-since") => self.if_modified_since = Some(value),
            10 if is("connection") => self.close |= value.eq_ignore_ascii_case("close"),
            14 if is("content-length") && value != "0" => return None,
            17 if is("transfer-encoding") => return None,
            _ => {}
        }
        Some(())
    }
}

fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && weight.parse().is_ok_and(|q: f32| q > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head =
            b"GET /a?b HTTP/1.1\r\nHOST:  x:1 \r\nAccept-Encoding: br, gzip;q=0.5\r\n\r\nrest";
        let len = head_len(head).unwrap();
        let request = parse(&head[..len]).unwrap();
        assert_eq!((request.target, request.authority), ("/a?b", "x:1"));
        assert!(request.gzip && !request.close);
        let absolute = parse(b"GET http://y/z HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((absolute.target, absolute.authority), ("/z", "y"));
        assert!(absolute.close);
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        for head in [
            "GET / HTTP/2\r\nHost: x\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET a HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(parse(head.as_bytes()).is_none(), "{head}");
        }
        assert!(!accepts_gzip("gzip;q=0, br"));
    }
}
