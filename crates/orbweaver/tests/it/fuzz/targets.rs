//! The parsers, each with what must hold for any input besides that it returns.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LINK};
use orbweaver_extract::{Page, read, read_sitemap};
use orbweaver_intake::{Canonicalizer, parse_seeds, surt};
use orbweaver_model::{
    CrawlUrl, FetchRequest, Limits, LinkKind, Method, Protocol, Purpose, Timestamp,
};
use orbweaver_robots::Robots;
use orbweaver_spider::{AddressPolicy, Open, Spider, SpiderOptions, reread};
use orbweaver_store::{IndexLine, Records};
use orbweaver_wire::line::read_order;
use orbweaver_wire::{
    Answers, Command, Decoded, Dialect, Entries, Lines, Records as WireRecords, ToSpider, Word,
};
use url::Url;

/// A parser of outside bytes.
pub(crate) struct Target {
    /// Its name, and that of its corpus.
    pub(crate) name: &'static str,
    /// How many times longer than microseconds it takes, about; 1 for most.
    pub(crate) cost: u64,
    pub(crate) run: fn(&[u8]),
}

const fn target(name: &'static str, cost: u64, run: fn(&[u8])) -> Target {
    Target { name, cost, run }
}

/// Every parser of outside bytes. Names are looked up by a library of its own, which is not under test here.
pub(crate) const TARGETS: &[Target] = &[
    target("http", 1, http_message),
    target("exchange", 10, exchange),
    target("robots", 1, robots),
    target("page", 2, page),
    target("sitemap", 1, sitemap),
    target("url", 1, url),
    target("seeds", 1, seeds),
    target("warc", 4, warc),
    target("cdxj", 1, cdxj),
    target("line", 1, line),
    target("record", 1, record),
    target("results", 1, results),
];

/// The line protocol in both directions, and what a follower says. What is read can be written and read again.
fn line(input: &[u8]) {
    let mut lines = Lines::new();
    for piece in input.chunks(7) {
        lines.feed(piece);
        while let Ok(Some(line)) = lines.next() {
            if let Ok(order) = read_order(line) {
                assert!(order.url.len() <= line.len());
            }
            if let Ok(word) = Word::read(line) {
                for extended in [false, true] {
                    let mut again = Vec::new();
                    word.write(Dialect::Push, extended, &mut again);
                    assert_eq!(Word::read(again.trim_ascii_end()).as_ref(), Ok(&word));
                }
            }
            if let Some(Ok(said)) = ToSpider::read(line) {
                let mut again = Vec::new();
                said.write(&mut again);
                assert_eq!(ToSpider::read(again.trim_ascii_end()), Some(Ok(said)));
            }
            let _ = Command::read(line);
        }
    }
}

/// Records on their way to the store, and its answers.
fn record(input: &[u8]) {
    let mut records = WireRecords::new(1 << 10);
    for piece in input.chunks(11) {
        records.feed(piece);
        while let Some(decoded) = records.next() {
            if let Decoded::Record(record) = decoded {
                assert!(record.data.len() <= 1 << 10);
                assert!(record.encode().is_some());
            }
        }
    }
    let mut answers = Answers::new();
    answers.feed(input);
    while let Some(Ok(_)) = answers.next() {}
}

/// Results on their way from the store.
fn results(input: &[u8]) {
    let mut entries = Entries::new(1 << 10);
    for piece in input.chunks(13) {
        entries.feed(piece);
        while entries.next().is_some() {}
    }
}

fn limits() -> Limits {
    Limits {
        max_decoded_bytes: 1 << 20,
        max_body_bytes: 1 << 20,
        idle_timeout: Duration::from_millis(500),
        header_timeout: Duration::from_millis(500),
        total_timeout: Duration::from_secs(1),
        ..Limits::default()
    }
}

/// A stored message: head, framing and content encodings.
fn http_message(input: &[u8]) {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let response = Bytes::copy_from_slice(input);
        let limits = limits();
        if let Some(exchange) = reread(Bytes::new(), response, protocol, None, &limits) {
            assert!(exchange.head_len <= input.len());
            assert!(exchange.body.len() <= limits.max_decoded_bytes.max(input.len()));
        }
    }
}

struct Lab {
    runtime: tokio::runtime::Runtime,
    spider: Spider,
    listener: TcpListener,
}

fn lab() -> Lab {
    let options = SpiderOptions {
        limits: limits(),
        policy: AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]),
        max_idle_connections: 0,
        ..SpiderOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let spider = Spider::new(options, Arc::new(|| Timestamp::from_millis(1))).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Lab {
        runtime,
        spider,
        listener,
    }
}

thread_local! {
    static LAB: RefCell<Option<Lab>> = const { RefCell::new(None) };
}

/// A live answer: the input is all that a server says before it closes.
fn exchange(input: &[u8]) {
    LAB.with_borrow_mut(|lab| {
        let lab = lab.get_or_insert_with(self::lab);
        let address = lab.listener.local_addr().unwrap();
        let listener = lab.listener.try_clone().unwrap();
        let answer = input.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let mut request = Vec::new();
            let mut byte = [0; 512];
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(read @ 1..) => request.extend_from_slice(&byte[..read]),
                    _ => return,
                }
            }
            // The client may have heard enough.
            let _ = stream.write_all(&answer);
        });
        let request = request(&format!("http://127.0.0.1:{}/", address.port()));
        let result = lab.runtime.block_on(lab.spider.fetch(&request, &Open));
        let result = result.unwrap();
        server.join().unwrap();
        if let Some(exchange) = result.exchange {
            assert!(exchange.body.len() <= 1 << 20);
            assert!(exchange.response.len() <= input.len());
            assert!(exchange.head_len <= exchange.response.len());
        }
    });
}

fn request(url: &str) -> FetchRequest {
    FetchRequest {
        url: CrawlUrl::from_canonical(url).unwrap(),
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        purpose: Purpose::Page,
        method: Method::Get,
        known: None,
        announce: false,
    }
}

fn robots(input: &[u8]) {
    let robots = Robots::parse(input, "orbweaver", Limits::default().robots_max_bytes);
    for target in [
        "/",
        "/robots.txt",
        "/a/b?c=d&e",
        "/%2F%ff/*$",
        &"/a".repeat(2000),
    ] {
        let verdict = robots.verdict(target);
        assert!(verdict.allowed || verdict.rule.is_some());
    }
    assert!(robots.heap_bytes() <= 8 * input.len() + 4096);
}

/// A document of any kind: the first line is its type and its Link field, the rest its body.
fn page(input: &[u8]) {
    let cut = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (head, body) = input.split_at(cut);
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(head) {
        headers.insert(CONTENT_TYPE, value.clone());
        headers.insert(LINK, value);
    }
    let url = CrawlUrl::from_canonical("http://example.org/a/b").unwrap();
    for kind in [LinkKind::A, LinkKind::Stylesheet, LinkKind::SitemapFile] {
        let limits = Limits {
            max_links_per_page: 1000,
            ..limits()
        };
        let page = Page {
            url: &url,
            headers: &headers,
            body,
            limits: &limits,
            agent: "orbweaver",
            kind,
        };
        let reading = read(&page);
        assert!(
            reading
                .title
                .is_none_or(|title| title.chars().count() <= 512)
        );
        let _ = orbweaver_extract::fingerprint(&page, &reading.links);
    }
}

fn sitemap(input: &[u8]) {
    let limits = limits();
    let sitemap = read_sitemap(input, &limits);
    assert!(sitemap.urls.len() <= limits.max_sitemap_urls);
}

/// A URL and a reference to be resolved against it, in two lines.
fn url(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let canonicalizer = Canonicalizer::default();
    let base = Url::parse("http://example.org/a/b?c#d").unwrap();
    let found = [
        canonicalizer.parse(first),
        canonicalizer.resolve(&base, second, None),
        Url::parse(first)
            .map_err(Into::into)
            .and_then(|base| canonicalizer.resolve(&base, second, None)),
    ];
    for url in found.into_iter().flatten() {
        let again = canonicalizer.parse(url.as_str());
        assert_eq!(
            again.as_ref(),
            Ok(&url),
            "a canonical URL is its own canonical form"
        );
        assert_eq!(CrawlUrl::from_canonical(url.as_str()).as_ref(), Ok(&url));
        assert!(url.target().starts_with('/') && url.as_str().is_ascii());
        assert!(!surt(&url).is_empty());
    }
}

fn seeds(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(seeds) = parse_seeds(&text, &Canonicalizer::default()) {
        assert!(seeds.len() <= text.lines().count());
    }
}

/// A WARC file as an interrupted disk may have left it.
fn warc(input: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(input).unwrap();
    let mut records = Records::open(file.path()).unwrap();
    // A record takes bytes of the file, so there are no more of them than that.
    for _ in 0..=input.len() {
        match records.next_head() {
            Ok(Some(_)) => {
                let read = records.read_block(1 << 20).and_then(|_| records.finish());
                if read.is_err() {
                    return;
                }
            }
            Ok(None) | Err(_) => return,
        }
    }
    panic!("more records than bytes");
}

fn cdxj(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for line in text.lines() {
        if let Some(parsed) = IndexLine::parse(line) {
            let rendered = parsed.render();
            assert_eq!(
                IndexLine::parse(&rendered).as_ref(),
                Some(&parsed),
                "{rendered}"
            );
        }
    }
}
