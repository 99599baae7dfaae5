//! A client that does exactly what a test tells it, good or bad.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use url::Url;

/// A connection to one address.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Client {
    pub(crate) fn to(ip: Ipv4Addr, port: u16) -> Self {
        let stream = TcpStream::connect(SocketAddr::from((ip, port))).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Connects to the host of a URL that is an address.
    pub(crate) fn for_url(url: &str) -> Self {
        let url = Url::parse(url).unwrap();
        let ip = url.host_str().unwrap().parse().unwrap();
        Self::to(ip, url.port().unwrap())
    }

    /// Sends a GET and does not wait for the answer.
    pub(crate) fn ask(&mut self, url: &str, fields: &str) {
        let url = Url::parse(url).unwrap();
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let head = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n");
        self.send(head.as_bytes());
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next answer; none when the connection ends or is reset instead.
    pub(crate) fn answer(&mut self) -> Option<Reply> {
        let mut reply = self.head()?;
        let len = reply
            .field("content-length")
            .map_or(0, |n| n.parse().unwrap());
        reply.body.resize(len, 0);
        self.stream.read_exact(&mut reply.body).ok()?;
        Some(reply)
    }

    /// The next answer, which has no body whatever it says.
    pub(crate) fn answer_to_head(&mut self) -> Reply {
        self.head().unwrap()
    }

    fn head(&mut self) -> Option<Reply> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        Some(Reply {
            status: head[9..12].parse().unwrap(),
            head,
            body: Vec::new(),
        })
    }

    /// Waits until something has come, and leaves it unread.
    pub(crate) fn wait_unread(&mut self) {
        self.stream.get_ref().peek(&mut [0]).unwrap();
    }

    pub(crate) fn get(&mut self, url: &str) -> Reply {
        self.ask(url, "");
        self.answer().unwrap()
    }
}

/// One GET on a connection of its own, to a host that is an address.
pub(crate) fn get(url: &str) -> Reply {
    Client::for_url(url).get(url)
}
