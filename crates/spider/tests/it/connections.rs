//! How connections are made, kept, left and mistrusted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use orbweaver_model::OutcomeClass as C;
use orbweaver_model::{FetchRequest, Timestamp};
use orbweaver_spider::{Gate, Open, Refused};
use tokio::net::{TcpSocket, TcpStream};

use crate::server::{Act, LOCAL, Site, body, class, fetch, ok, options, request, spider, with};

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let script = (0..3).flat_map(|n| [Act::Read, Act::Send(ok(&format!("page {n}")))]);
    let site = Site::start(vec![script.collect()]).await;
    let spider = spider(options());
    for n in 0..3 {
        let result = fetch(&spider, &site.url("/a?b=c")).await;
        assert_eq!(class(&result), C::Success);
        assert_eq!(body(&result), format!("page {n}").as_bytes());
        assert_eq!(result.connected, Some(LOCAL));
        assert_eq!(result.wire_bytes, ok("page 0").len() as u64);
    }
    assert_eq!(site.connections(), 1);
    let host = site.address;
    assert_eq!(
        site.requests()[2],
        format!(
            "GET /a?b=c HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test/1 (+mailto:test@example.org)\r\n\
             Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
             Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n"
        )
    );
}

#[tokio::test]
async fn request_and_response_are_kept_as_they_went() {
    let answer = with("200 Fine\nX-Odd :  1\nx-odd: 2\nContent-Length: 4", b"body");
    let site = Site::once(answer.clone()).await;
    let result = fetch(&spider(options()), &site.url("/x")).await;
    let exchange = result.exchange.unwrap();
    assert_eq!(exchange.request, site.requests()[0]);
    assert_eq!(exchange.response, answer);
    assert_eq!(exchange.head_len, answer.len() - 4);
    assert_eq!(exchange.headers.get_all("x-odd").iter().count(), 2);
    // The body is a view of the response, not a copy.
    let tail = &exchange.response[exchange.head_len..];
    assert_eq!(exchange.body.as_ptr(), tail.as_ptr());
    let times = [
        Some(result.started),
        result.sent,
        result.first_byte,
        Some(result.ended),
    ];
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[tokio::test]
async fn sending_is_announced_once_and_only_on_request() {
    let site = Site::start(vec![vec![
        Act::Read,
        Act::Send(ok("one")),
        Act::Read,
        Act::Send(ok("two")),
        Act::Read,
        Act::Send(ok("three")),
    ]])
    .await;
    let spider = spider(options());
    let gate = Watched::default();
    for (body_wanted, asked) in [("one", true), ("two", true), ("three", false)] {
        let request = FetchRequest {
            announce: asked,
            ..request(&site.url("/"), LOCAL)
        };
        let result = spider.fetch(&request, &gate).await.unwrap();
        assert_eq!(body(&result), body_wanted.as_bytes());
        let told = std::mem::take(&mut *gate.told.lock().unwrap());
        assert_eq!(told.len(), usize::from(asked), "{body_wanted}");
        assert!(told.iter().all(|at| Some(*at) == result.sent));
    }
}

/// A gate that closes when it is told to, and remembers what it was told.
#[derive(Default)]
struct Watched {
    is_closed: AtomicBool,
    asked: AtomicUsize,
    told: Mutex<Vec<Timestamp>>,
}

impl Gate for Watched {
    fn may_send(&self, _request: &FetchRequest) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        !self.is_closed.load(Ordering::Relaxed)
    }

    fn sent(&self, at: Timestamp) {
        self.told.lock().unwrap().push(at);
    }
}

#[tokio::test]
async fn a_closed_gate_lets_no_byte_out_and_keeps_the_connection() {
    let site = Site::start(vec![vec![
        Act::Read,
        Act::Send(ok("one")),
        Act::Read,
        Act::Send(ok("two")),
    ]])
    .await;
    let spider = spider(options());
    let gate = Watched::default();
    let request = FetchRequest {
        announce: true,
        ..request(&site.url("/"), LOCAL)
    };
    // On a fresh connection, then on the one that is kept: the site has one script, and sees one connection.
    let close = |closed| gate.is_closed.store(closed, Ordering::Relaxed);
    for wanted in [None, Some("one"), None, None, Some("two")] {
        close(wanted.is_none());
        let result = spider.fetch(&request, &gate).await;
        match wanted {
            Some(wanted) => assert_eq!(body(&result.unwrap()), wanted.as_bytes()),
            None => assert_eq!(result.unwrap_err(), Refused),
        }
    }
    assert_eq!(gate.asked.load(Ordering::Relaxed), 5);
    assert_eq!(gate.told.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_request_is_not_repeated_where_gaps_are_counted() {
    // The first connection dies when it is used again: the server has seen that request.
    let site = Site::start(vec![
        vec![Act::Read, Act::Send(ok("one")), Act::Read],
        vec![Act::Read, Act::Send(ok("two"))],
    ])
    .await;
    let spider = spider(options());
    let mut classes = Vec::new();
    for _ in 0..3 {
        let request = FetchRequest {
            announce: true,
            ..request(&site.url("/"), LOCAL)
        };
        let result = spider.fetch(&request, &Open).await.unwrap();
        classes.push(result.outcome.class);
    }
    assert_eq!(classes, [C::Success, C::FailedProtocol, C::Success]);
}

#[tokio::test]
async fn a_connection_closed_meanwhile_is_replaced_unseen() {
    // Closed at once; closed after the next request; reset after the next request.
    let site = Site::start(vec![
        vec![Act::Read, Act::Send(ok("one"))],
        vec![Act::Read, Act::Send(ok("two")), Act::Read],
        vec![Act::Read, Act::Send(ok("three")), Act::Read, Act::Reset],
        vec![Act::Read, Act::Send(ok("four"))],
    ])
    .await;
    let spider = spider(options());
    for wanted in ["one", "two", "three", "four"] {
        let result = fetch(&spider, &site.url("/")).await;
        assert_eq!(
            (class(&result), body(&result)),
            (C::Success, wanted.as_bytes())
        );
    }
    assert_eq!(site.connections(), 4);
}

#[tokio::test]
async fn a_fresh_connection_gets_no_second_try() {
    let site = Site::start(vec![
        vec![Act::Read],
        vec![Act::Read, Act::Send(ok("late"))],
    ])
    .await;
    let result = fetch(&spider(options()), &site.url("/")).await;
    assert_eq!(class(&result), C::FailedProtocol);
    assert_eq!(result.outcome.reason, "closed without a response");
    assert_eq!(site.connections(), 1);
}

#[tokio::test]
async fn an_answer_that_broke_off_gets_no_second_try() {
    let site = Site::start(vec![
        vec![
            Act::Read,
            Act::Send(ok("one")),
            Act::Read,
            Act::Send(b"HTTP/1.1 2".to_vec()),
        ],
        vec![Act::Read, Act::Send(ok("two"))],
    ])
    .await;
    let spider = spider(options());
    fetch(&spider, &site.url("/")).await;
    let result = fetch(&spider, &site.url("/")).await;
    assert_eq!(class(&result), C::FailedProtocol);
    assert_eq!(site.connections(), 1);
}

#[tokio::test]
async fn bytes_after_an_answer_poison_the_connection() {
    let forged = ok("POISON");
    for answer in [
        [ok("<html>"), forged.clone()].concat(),
        [
            with("200 OK\nContent-Length: 10", b"0123456789EXTRA"),
            forged.clone(),
        ]
        .concat(),
        [
            with("204 No Content\nContent-Length: 7", b"smuggle"),
            forged.clone(),
        ]
        .concat(),
        [
            with("304 Not Modified\nContent-Length: 7", b"smuggle"),
            forged.clone(),
        ]
        .concat(),
        with(
            "200 OK\nTransfer-Encoding: chunked",
            b"2\r\nok\r\n0\r\n\r\nEXTRA",
        ),
        // Two lengths: chunked wins, but who knows what the server thinks.
        with(
            "200 OK\nContent-Length: 100\nTransfer-Encoding: chunked",
            b"2\r\nok\r\n0\r\n\r\n",
        ),
    ] {
        let site = Site::start(vec![
            vec![Act::Read, Act::Send(answer.clone()), Act::Hang],
            vec![Act::Read, Act::Send(ok("GENUINE"))],
        ])
        .await;
        let spider = spider(options());
        let first = fetch(&spider, &site.url("/")).await;
        let shown = answer.escape_ascii().to_string();
        assert!(class(&first).is_document(), "{shown}");
        let exchange = first.exchange.unwrap();
        assert!(answer.starts_with(&exchange.response), "{shown}");
        assert!(!exchange.response.ends_with(b"POISON"), "{shown}");
        assert!(!exchange.response.ends_with(b"EXTRA"), "{shown}");
        assert_eq!(
            body(&fetch(&spider, &site.url("/")).await),
            b"GENUINE",
            "{shown}"
        );
        assert_eq!(site.connections(), 2, "{shown}");
    }
}

#[tokio::test]
async fn bytes_on_an_idle_connection_poison_it() {
    let (speak, spoken) = tokio::sync::oneshot::channel::<()>();
    let listener = tokio::net::TcpListener::bind((LOCAL, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut first, _) = listener.accept().await.unwrap();
        first.write_all(&ok("one")).await.unwrap();
        spoken.await.unwrap();
        first.write_all(&ok("POISON")).await.unwrap();
        let (mut second, _) = listener.accept().await.unwrap();
        second.write_all(&ok("GENUINE")).await.unwrap();
        first
    });
    let spider = spider(options());
    assert_eq!(body(&fetch(&spider, &url).await), b"one");
    speak.send(()).unwrap();
    // Nobody reads meanwhile; the poison is in the socket before the next request is.
    tokio::task::yield_now().await;
    assert_eq!(body(&fetch(&spider, &url).await), b"GENUINE");
    drop(server.await.unwrap());
}

#[tokio::test]
async fn connections_are_not_shared_between_hosts() {
    let script = vec![Act::Read, Act::Send(ok("x")), Act::Read, Act::Send(ok("x"))];
    let site = Site::start(vec![script.clone(), script]).await;
    let spider = spider(options());
    let port = site.address.port();
    for host in ["a.example", "b.example", "a.example", "b.example"] {
        let result = fetch(&spider, &format!("http://{host}:{port}/")).await;
        assert_eq!(class(&result), C::Success);
    }
    assert_eq!(site.connections(), 2);
}

#[tokio::test]
async fn idle_connections_are_bounded_and_can_be_turned_off() {
    let script = vec![Act::Read, Act::Send(ok("x")), Act::Read, Act::Send(ok("x"))];
    for (max_idle, wanted) in [(0, 4), (1, 4), (2, 2)] {
        let site = Site::start(vec![script.clone(); 4]).await;
        let mut options = options();
        options.max_idle_connections = max_idle;
        let spider = spider(options);
        for host in ["a.example", "b.example", "a.example", "b.example"] {
            fetch(&spider, &format!("http://{host}:{}/", site.address.port())).await;
        }
        assert_eq!(site.connections(), wanted, "{max_idle}");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_after_their_time() {
    let listener = tokio::net::TcpListener::bind((LOCAL, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let spider = spider(options());
    let served = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&ok("x")).await.unwrap();
        // Ends when the spider closes.
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    });
    assert_eq!(class(&fetch(&spider, &url).await), C::Success);
    served.await.unwrap();
}

#[tokio::test]
async fn no_connection_no_answer() {
    let refused = {
        let listener = tokio::net::TcpListener::bind((LOCAL, 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let result = fetch(&spider(options()), &format!("http://{refused}/")).await;
    assert_eq!(class(&result), C::FailedConnect);
    assert_eq!(result.outcome.reason, "connection refused");
    assert_eq!((result.connected, result.sent), (None, None));

    let site = Site::start(vec![vec![], vec![Act::Reset], vec![Act::Read, Act::Reset]]).await;
    for _ in 0..3 {
        let result = fetch(&spider(options()), &site.url("/")).await;
        assert_eq!(class(&result), C::FailedProtocol);
        assert_eq!(result.connected, Some(LOCAL));
        assert!(result.exchange.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_black_hole_ends_with_the_connect_timeout() {
    // The queue for connections that nobody accepts holds one; further SYNs are dropped.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((LOCAL, 0).into()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queued = TcpStream::connect(address).await.unwrap();
    let start = tokio::time::Instant::now();
    let result = fetch(&spider(options()), &format!("http://{address}/")).await;
    assert_eq!(class(&result), C::FailedConnect);
    assert_eq!(result.outcome.reason, "connect timed out");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn refused_addresses_and_ports_are_not_touched() {
    let site = Site::once(ok("canary")).await;
    let mut narrow = options();
    narrow.policy = orbweaver_spider::AddressPolicy::new(vec!["127.66.0.0/16".parse().unwrap()]);
    let spider = spider(narrow);
    for ip in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "::1",
        "10.0.0.1",
        "0.0.0.0",
    ] {
        let request = request(&site.url("/"), ip.parse().unwrap());
        let result = spider.fetch(&request, &Open).await.unwrap();
        assert_eq!(class(&result), C::DeniedPolicy, "{ip}");
        assert_eq!((result.connected, result.wire_bytes), (None, 0));
    }
    let request = request("http://example.org:25/", "127.66.0.1".parse().unwrap());
    let result = spider.fetch(&request, &Open).await.unwrap();
    assert_eq!(class(&result), C::DeniedPolicy);
    assert_eq!(result.outcome.reason, "port of another protocol");
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn dropping_a_fetch_closes_its_connection() {
    use tokio::io::AsyncReadExt;
    let listener = tokio::net::TcpListener::bind((LOCAL, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let spider = std::sync::Arc::new(spider(options()));
    let fetching = tokio::spawn(async move { fetch(&spider, &url).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 16];
    stream.read_exact(&mut request).await.unwrap();
    fetching.abort();
    let mut rest = Vec::new();
    // The end of the stream, or a reset: either way it is over.
    let _closed = stream.read_to_end(&mut rest).await;
    assert!(fetching.await.unwrap_err().is_cancelled());
}
