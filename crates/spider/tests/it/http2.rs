//! HTTP/2, which exists over TLS only.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use orbweaver_model::OutcomeClass as C;
use orbweaver_model::{Protocol, Truncation};
use rcgen::CertificateParams;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::server::{LOCAL, body, class, fetch, spider};
use crate::tls::{Ca, ca, server_config, trusting};

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let host = request.uri().host().unwrap_or_default().to_owned();
    let response = match path.as_str() {
        "/big" => Response::new(Full::from(vec![b'b'; 1 << 20])),
        "/moved" => Response::builder()
            .status(301)
            .header("location", "/x")
            .body(Full::default())
            .unwrap(),
        "/wide" => Response::builder()
            .header("x-wide", "w".repeat(100_000))
            .body(Full::default())
            .unwrap(),
        _ => Response::builder()
            .header("x-a", "b")
            .body(Full::from(format!("{path} on {host}")))
            .unwrap(),
    };
    Ok(response)
}

/// A server and the number of connections it got.
async fn serve(ca: &Ca) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let params = CertificateParams::new(vec!["two.example".to_owned()]).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server_config(ca, &params, &["h2"])));
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let Ok(stream) = acceptor.accept(tcp).await else {
                continue;
            };
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service_fn(answer)),
            );
        }
    });
    (address, connections)
}

#[tokio::test]
async fn an_exchange_is_rendered_as_http1() {
    let ca = ca();
    let (address, connections) = serve(&ca).await;
    let spider = spider(trusting(&ca));
    let port = address.port();
    let base = format!("https://two.example:{port}");
    let result = fetch(&spider, &format!("{base}/a?b=c")).await;
    assert_eq!(class(&result), C::Success, "{}", result.outcome.reason);
    assert_eq!(body(&result), b"/a on two.example");
    let exchange = result.exchange.unwrap();
    assert_eq!(exchange.protocol, Protocol::Http2);
    let request = String::from_utf8(exchange.request.to_vec()).unwrap();
    assert!(request.starts_with(&format!(
        "GET /a?b=c HTTP/1.1\r\nHost: two.example:{port}\r\nuser-agent: test/1"
    )));
    assert!(request.ends_with("\r\n\r\n"));
    let response = String::from_utf8(exchange.response.to_vec()).unwrap();
    let (head, rest) = response.split_at(exchange.head_len);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nx-a: b\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"));
    assert_eq!(rest, "/a on two.example");
    assert!(result.sent.is_some() && result.first_byte.is_some());
    let result = fetch(&spider, &format!("{base}/moved")).await;
    assert_eq!(
        (class(&result), result.status()),
        (C::RedirectFollowed, Some(301))
    );
    let result = fetch(&spider, &format!("{base}/wide")).await;
    assert_eq!(class(&result), C::FailedProtocol);
    assert!(connections.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn fetches_share_a_connection() {
    let ca = ca();
    let (address, connections) = serve(&ca).await;
    let spider = Arc::new(spider(trusting(&ca)));
    let base = format!("https://two.example:{}", address.port());
    fetch(&spider, &format!("{base}/first")).await;
    let mut fetches = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (spider, url) = (Arc::clone(&spider), format!("{base}/{n}"));
        fetches.spawn(async move { fetch(&spider, &url).await });
    }
    while let Some(result) = fetches.join_next().await {
        assert_eq!(class(&result.unwrap()), C::Success);
    }
    for n in 0..20 {
        fetch(&spider, &format!("{base}/{n}")).await;
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_large_body_is_cut_at_the_limit() {
    let ca = ca();
    let (address, _) = serve(&ca).await;
    let mut options = trusting(&ca);
    options.limits.max_body_bytes = 500_000;
    let url = format!("https://two.example:{}/big", address.port());
    let result = fetch(&spider(options), &url).await;
    assert_eq!(
        (class(&result), body(&result).len()),
        (C::Truncated, 500_000)
    );
    assert_eq!(result.exchange.unwrap().truncated, Some(Truncation::Length));
    let result = fetch(&spider(trusting(&ca)), &url).await;
    assert_eq!((class(&result), body(&result).len()), (C::Success, 1 << 20));
}

#[tokio::test]
async fn a_connection_whose_answer_was_given_up_is_not_used_again() {
    let ca = ca();
    let (address, connections) = serve(&ca).await;
    let mut options = trusting(&ca);
    options.limits.max_body_bytes = 500_000;
    let spider = spider(options);
    let base = format!("https://two.example:{}", address.port());
    for (path, wanted, opened) in [
        ("/first", C::Success, 1),
        ("/big", C::Truncated, 1),
        ("/second", C::Success, 2),
        ("/third", C::Success, 2),
    ] {
        let result = fetch(&spider, &format!("{base}{path}")).await;
        assert_eq!(class(&result), wanted, "{path}");
        assert_eq!(connections.load(Ordering::SeqCst), opened, "{path}");
    }
}

/// The head of a frame of HTTP/2 on the connection itself.
fn frame(length: u8, kind: u8) -> [u8; 9] {
    [0, 0, length, kind, 0, 0, 0, 0, 0]
}

#[tokio::test]
async fn a_server_that_never_reads_cannot_keep_the_connection() {
    let ca = ca();
    let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let url = format!(
        "https://two.example:{}/",
        listener.local_addr().unwrap().port()
    );
    let params = CertificateParams::new(vec!["two.example".to_owned()]).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&ca, &params, &["h2"])));
    let server = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(tcp).await.unwrap();
        stream.write_all(&frame(0, 4)).await.unwrap();
        // Every ping wants an answer, and nobody takes the answers.
        let pings = [&frame(8, 6)[..], b"whatever"].concat().repeat(1000);
        while stream.write_all(&pings).await.is_ok() {}
    });
    let mut options = trusting(&ca);
    options.limits.header_timeout = Duration::from_secs(60);
    let spider = spider(options);
    let result = fetch(&spider, &url).await;
    // What is no answer has its limit in bytes, long before the time is up.
    assert_eq!(class(&result), C::FailedProtocol);
    assert_eq!(result.outcome.reason, "too many frames for one response");
    assert!(result.wire_bytes < 1 << 20, "{}", result.wire_bytes);
    // It ends when the connection does; the spider is still there.
    server.await.unwrap();
    drop(spider);
}
