//! A server that follows a script, and the spider that asks it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use orbweaver_model::{
    Clock, CrawlUrl, FetchRequest, FetchResult, Method, OutcomeClass, Purpose, Timestamp,
};
use orbweaver_spider::{AddressPolicy, Open, Spider, SpiderOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// One thing a scripted server does on a connection.
#[derive(Clone)]
pub(crate) enum Act {
    /// Reads the head of a request.
    Read,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, for as long as they are taken.
    Flood(Vec<u8>),
    /// Keeps the connection open and does nothing.
    Hang,
    /// Resets the connection.
    Reset,
}

/// A server and what it saw.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Plays one script per connection, in order; connections after the last script are closed at once.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let seen = site.clone();
        tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                seen.connections.fetch_add(1, Ordering::SeqCst);
                if let Some(script) = scripts.next() {
                    tokio::spawn(seen.clone().play(stream, script));
                }
            }
        });
        site
    }

    /// One connection that answers one request with `answer` and closes.
    pub(crate) async fn once(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![vec![Act::Read, Act::Send(answer.into())]]).await
    }

    async fn play(self, mut stream: TcpStream, script: Vec<Act>) {
        for act in script {
            match act {
                Act::Read => match read_request(&mut stream).await {
                    Some(request) => self.requests.lock().unwrap().push(request),
                    None => return,
                },
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Flood(bytes) => while stream.write_all(&bytes).await.is_ok() {},
                Act::Hang => std::future::pending().await,
                Act::Reset => {
                    // Data that nobody read makes the kernel reset the connection at its close.
                    stream.set_zero_linger().unwrap();
                    return;
                }
            }
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(request).unwrap())
}

/// A response with this body and a length.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// A response with this head and body.
pub(crate) fn with(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {}\r\n\r\n", head.replace('\n', "\r\n"));
    [head.as_bytes(), body].concat()
}

/// Options under which loopback may be asked.
pub(crate) fn options() -> SpiderOptions {
    SpiderOptions {
        user_agent: "test/1 (+mailto:test@example.org)".into(),
        policy: AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]),
        ..SpiderOptions::default()
    }
}

/// A clock that goes on by a millisecond each time somebody looks.
pub(crate) fn clock() -> Clock {
    let millis = AtomicU64::new(1_000);
    Arc::new(move || Timestamp::from_millis(millis.fetch_add(1, Ordering::SeqCst)))
}

pub(crate) fn spider(options: SpiderOptions) -> Spider {
    Spider::new(options, clock()).unwrap()
}

pub(crate) fn request(url: &str, ip: IpAddr) -> FetchRequest {
    FetchRequest {
        url: CrawlUrl::from_canonical(url).unwrap(),
        ip,
        purpose: Purpose::Page,
        method: Method::Get,
        known: None,
        announce: false,
    }
}

pub(crate) async fn fetch(spider: &Spider, url: &str) -> FetchResult {
    spider.fetch(&request(url, LOCAL), &Open).await.unwrap()
}

pub(crate) async fn fetch_robots(spider: &Spider, url: &str) -> FetchResult {
    let mut request = request(url, LOCAL);
    request.purpose = Purpose::Robots;
    spider.fetch(&request, &Open).await.unwrap()
}

/// Asks a server that gives this answer once and closes.
pub(crate) async fn answered(answer: impl Into<Vec<u8>>) -> FetchResult {
    let site = Site::once(answer).await;
    fetch(&spider(options()), &site.url("/")).await
}

/// The decoded body.
pub(crate) fn body(result: &FetchResult) -> &[u8] {
    result.exchange.as_ref().map_or(b"", |it| &it.body)
}

pub(crate) fn class(result: &FetchResult) -> OutcomeClass {
    result.outcome.class
}
