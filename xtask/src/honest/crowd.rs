//! Hostile hosts by the thousand, for `cargo xtask honest`: one listener that answers at every address of
//! 127.60.0.0/15, badly and at little cost, so that what is measured is the crawler.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A byte every three seconds, of robots.txt and pages alike.
    Slow,
    /// A robots.txt with 27,000 patterns, and pages full of links that it denies.
    Robots,
    /// Bodies that go on for ever, at some 600 kB a second each.
    Endless,
    /// Connections that are closed at once, or a status of 503.
    Failing,
}

impl Kind {
    /// In a word or two.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Robots => "long robots.txt",
            Self::Endless => "endless",
            Self::Failing => "failing",
        }
    }
}

pub(super) const KINDS: [Kind; 4] = [Kind::Slow, Kind::Robots, Kind::Endless, Kind::Failing];

const STACK: usize = 64 << 10;

/// Serves hosts of a kind until the process ends; the port.
pub(super) fn serve(kind: Kind) -> Result<u16> {
    let listener = TcpListener::bind("0.0.0.0:0").context("no port is free")?;
    let port = listener.local_addr()?.port();
    let texts = Arc::new(Texts::new());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let texts = Arc::clone(&texts);
            let carry_on = move || {
                // Whoever hangs up has had enough.
                let _ = answer(stream, kind, &texts);
            };
            let _ = thread::Builder::new().stack_size(STACK).spawn(carry_on);
        }
    });
    Ok(port)
}

/// The seeds of so many hosts.
pub(super) fn seeds(hosts: usize, port: u16) -> String {
    (0..hosts)
        .map(|n| format!("http://127.60.{}.{}:{port}/\n", n / 200, n % 200 + 1))
        .collect()
}

struct Texts {
    robots: Vec<u8>,
    links: Vec<u8>,
    noise: Vec<u8>,
}

impl Texts {
    fn new() -> Self {
        let mut robots = String::from("User-agent: *\nAllow: /$\n");
        for n in 0..27_000 {
            let star = if n % 3 == 0 { "*" } else { "" };
            robots.push_str(&format!("Disallow: /{star}{n:05}\n"));
        }
        let mut links = String::from("<title>links</title>\n");
        for n in 0..5_000 {
            links.push_str(&format!("<a href=\"/{:05}/{n}\">{n}</a>\n", n * 3));
        }
        Self {
            robots: robots.into_bytes(),
            links: links.into_bytes(),
            noise: b"words that never end ".repeat(3000),
        }
    }
}

fn answer(mut stream: TcpStream, kind: Kind, texts: &Texts) -> std::io::Result<()> {
    let IpAddr::V4(ip) = stream.local_addr()?.ip() else {
        return Ok(());
    };
    let fails_at_once = ip.octets()[3] % 2 == 0;
    loop {
        let Some(target) = request(&mut stream)? else {
            return Ok(());
        };
        let is_robots = target == "/robots.txt";
        match kind {
            Kind::Slow => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9999\r\n\r\n",
                )?;
                loop {
                    stream.write_all(b"#")?;
                    thread::sleep(Duration::from_secs(3));
                }
            }
            Kind::Robots if is_robots => whole(&mut stream, "200 OK", "text/plain", &texts.robots)?,
            Kind::Robots => whole(&mut stream, "200 OK", "text/html", &texts.links)?,
            Kind::Endless if is_robots => whole(&mut stream, "404 Not Found", "text/plain", b"")?,
            Kind::Endless => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n",
                )?;
                loop {
                    stream.write_all(&texts.noise)?;
                    thread::sleep(Duration::from_millis(100));
                }
            }
            Kind::Failing if fails_at_once => return Ok(()),
            Kind::Failing => whole(&mut stream, "503 Service Unavailable", "text/plain", b"")?,
        }
    }
}

/// Reads one request; what it asks for, none at the end of the connection.
fn request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut lines = BufReader::new(stream.take(64 << 10));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = first.clone();
    while !line.trim().is_empty() {
        line.clear();
        lines.read_line(&mut line)?;
    }
    Ok(first.split(' ').nth(1).map(str::to_owned))
}

fn whole(stream: &mut TcpStream, status: &str, kind: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}
