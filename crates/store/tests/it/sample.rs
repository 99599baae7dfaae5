//! Exchanges to store: every form of body and answer that the store treats in its own way.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use http::HeaderMap;
use orbweaver_model::{
    Candidate, CrawlUrl, Exchange, FetchResult, LinkKind, Method, Outcome, OutcomeClass, Protocol,
    Timestamp, Truncation, UrlKey,
};
use orbweaver_store::{
    Archivist, Capture, Captured, Location, Prepared, Scratch, StoreOptions, Writer,
};

/// A directory for one test, in memory where that can be had: some tests sync ten thousand times.
pub(crate) fn new_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()),
        false => tempfile::tempdir(),
    };
    made.unwrap()
}

/// 2026-03-01T12:00:00Z.
pub(crate) const NOON: u64 = 1_772_366_400_000;

/// One exchange with its key.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) surt: String,
    pub(crate) candidate: Candidate,
    pub(crate) is_robots: bool,
    pub(crate) result: FetchResult,
}

impl Sample {
    /// An answer from `example.org` to a request for `path`, given second after noon.
    pub(crate) fn new(path: &str, second: u64, head: &str, body: &[u8]) -> Self {
        let url = CrawlUrl::from_canonical(&format!("http://example.org{path}")).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let head = format!("{}\r\n\r\n", head.replace('\n', "\r\n"));
        let mut response = head.clone().into_bytes();
        response.extend_from_slice(body);
        let started = Timestamp::from_millis(NOON + second * 1000 + 7);
        let exchange = Exchange {
            method: Method::Get,
            request: request.into(),
            head_len: head.len(),
            status: head.split(' ').nth(1).unwrap().trim().parse().unwrap(),
            headers: HeaderMap::new(),
            body: body.to_vec().into(),
            protocol: Protocol::Http1,
            truncated: None,
            response: response.into(),
            spooled: None,
        };
        Self {
            surt: format!("org,example){path}"),
            candidate: candidate(url),
            is_robots: false,
            result: FetchResult {
                outcome: Outcome::plain(OutcomeClass::Success),
                started,
                sent: None,
                first_byte: None,
                ended: Timestamp::from_millis(started.as_millis() + 42),
                wire_bytes: exchange.response.len() as u64,
                connected: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
                exchange: Some(exchange),
            },
        }
    }

    /// An HTML page.
    pub(crate) fn page(path: &str, second: u64, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\nContent-Type: text/html; charset=utf-8\nContent-Length: {}",
            body.len()
        );
        Self::new(path, second, &head, body.as_bytes())
    }

    pub(crate) fn url(&self) -> &str {
        self.candidate.url.as_str()
    }

    pub(crate) fn exchange(&self) -> &Exchange {
        self.result.exchange.as_ref().unwrap()
    }

    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture {
            url: &self.candidate.url,
            of: match self.is_robots {
                true => Captured::Robots,
                false => Captured::Page(&self.candidate),
            },
            unchanged_since: self
                .candidate
                .revisit
                .as_ref()
                .map(|before| before.captured),
            result: &self.result,
            surt: &self.surt,
            outcome: &self.result.outcome,
            via: Some("http://example.org/"),
        }
    }

    pub(crate) fn prepare(&self, archivist: &Archivist, scratch: &mut Scratch) -> Prepared {
        let prepared = archivist.prepare(&self.capture(), scratch);
        prepared.unwrap().unwrap()
    }
}

fn candidate(url: CrawlUrl) -> Candidate {
    Candidate {
        key: UrlKey { host: 1, url: 2 },
        doc_id: 7,
        url,
        kind: LinkKind::A,
        depth: 3,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

/// A body long enough to be referred to by revisits.
pub(crate) fn prose(seed: u64, len: usize) -> String {
    let words = [
        "web", "thread", "orb", "silk", "dew", "hub", "spoke", "spiral",
    ];
    // Not of the test kit: the bodies of the stored directory (`fixtures/v1`) are these, whatever the kit does.
    let mut state = seed;
    let mut text = String::from("<!doctype html><title>prose</title>");
    while text.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(words[(state >> 61) as usize]);
        text.push(' ');
    }
    text
}

/// One of each kind. The second one repeats the body of the first.
pub(crate) fn one_of_each() -> Vec<Sample> {
    let text = prose(1, 3000);
    let chunked = b"5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
    let mut gzip = Vec::new();
    std::io::Write::write_all(
        &mut flate2::write::GzEncoder::new(&mut gzip, flate2::Compression::fast()),
        prose(2, 2000).as_bytes(),
    )
    .unwrap();
    let mut gzip_chunked = format!("{:x}\r\n", gzip.len()).into_bytes();
    gzip_chunked.extend_from_slice(&gzip);
    gzip_chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let image: Vec<u8> = (0..2000_u32).map(|n| (n * n % 251) as u8).collect();
    let mut truncated = Sample::new(
        "/cut",
        6,
        "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 9999",
        prose(3, 1500).as_bytes(),
    );
    truncated.result.exchange.as_mut().unwrap().truncated = Some(Truncation::Disconnect);
    truncated.result.outcome = Outcome::because(OutcomeClass::Truncated, "cut\r\nshort");
    let mut second = Sample::page("/h2", 9, &prose(4, 1200));
    second.result.exchange.as_mut().unwrap().protocol = Protocol::Http2;
    let mut robots = Sample::new("/robots.txt", 0, "HTTP/1.0 404 Not Found", b"");
    robots.is_robots = true;
    vec![
        Sample::page("/a", 1, &text),
        Sample::page("/b?x=1&y=2", 2, &text),
        Sample::new(
            "/chunked",
            3,
            "HTTP/1.1 200 OK\nContent-Type: text/plain\nTransfer-Encoding: chunked",
            chunked,
        ),
        Sample::new(
            "/gzip",
            4,
            &format!(
                "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Encoding: gzip\nContent-Length: {}",
                gzip.len()
            ),
            &gzip,
        ),
        Sample::new(
            "/gzip-chunked",
            5,
            "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Encoding: gzip\nTransfer-Encoding: chunked",
            &gzip_chunked,
        ),
        truncated,
        Sample::new(
            "/moved",
            7,
            "HTTP/1.1 301 Moved Permanently\nLocation: http://example.org/a\nContent-Length: 0",
            b"",
        ),
        Sample::new(
            "/gone",
            8,
            "HTTP/1.1 404 Not Found\nContent-Length: 4",
            b"gone",
        ),
        second,
        Sample::new(
            "/image",
            10,
            "HTTP/1.1 200 OK\nContent-Type: image/png",
            &image,
        ),
        robots,
    ]
}

pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        software: "orbweaver/test".to_owned(),
        operator: "the tests <tests@example.org>".to_owned(),
        robots: "obeyed".to_owned(),
        ..StoreOptions::default()
    }
}

/// Stores samples, each synced before the next is prepared, and leaves the file unfinished.
pub(crate) fn store_all(writer: &mut Writer, samples: &[Sample]) -> Vec<Location> {
    let archivist = writer.archivist();
    let mut scratch = archivist.scratch();
    let mut store = |sample: &Sample| {
        let location = writer
            .append(&sample.prepare(&archivist, &mut scratch))
            .unwrap();
        writer.sync().unwrap();
        location
    };
    samples.iter().map(&mut store).collect()
}

/// What the check finds, as lines.
pub(crate) fn findings(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    orbweaver_store::check(dir, &mut |finding| found.push(finding.to_string()));
    found
}
