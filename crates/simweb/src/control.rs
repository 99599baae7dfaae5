//! The control endpoint: how another process asks what was counted.
//!
//! `GET /stats` (JSON), `GET /seeds`, `GET /roots` and `GET /pages` (a URL a line), `POST /reset`. It
//! listens on 127.0.0.1 only and its requests are not counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::Served;
use crate::request::{self, MAX_HEAD};

pub(crate) async fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

/// Accepts connections forever.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Served>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One request a connection.
async fn serve(mut stream: TcpStream, shared: Arc<Served>) {
    let mut input = Vec::with_capacity(1024);
    let head = loop {
        if let Some(len) = request::head_len(&input) {
            break len;
        }
        match stream.read_buf(&mut input).await {
            Ok(1..) if input.len() <= MAX_HEAD => {}
            _ => return,
        }
    };
    let request = request::parse(input.get(..head).unwrap_or_default());
    let (status, content_type, body) = match request.map(|r| (r.method, r.target)) {
        Some(("GET", "/stats")) => {
            let stats = shared.counters.stats(&shared.web.layout);
            let json = serde_json::to_vec(&stats).unwrap_or_default();
            ("200 OK", "application/json", json)
        }
        Some(("GET", "/seeds")) => ("200 OK", "text/plain", lines(shared.web.seeds())),
        Some(("GET", "/roots")) => ("200 OK", "text/plain", lines(shared.web.all_roots())),
        Some(("GET", "/pages")) => {
            let pages = lines(shared.web.expected_pages());
            ("200 OK", "text/plain", pages)
        }
        Some(("POST", "/reset")) => {
            shared.counters.reset();
            ("200 OK", "text/plain", b"reset\n".to_vec())
        }
        Some(_) => ("404 Not Found", "text/plain", Vec::new()),
        None => ("400 Bad Request", "text/plain", Vec::new()),
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    let _ = stream.write_all(&answer).await;
}

fn lines(urls: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut out = Vec::new();
    for url in urls {
        out.extend_from_slice(url.as_bytes());
        out.push(b'\n');
    }
    out
}
