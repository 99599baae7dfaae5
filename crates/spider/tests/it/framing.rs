//! Heads and bodies as they should not be.

use orbweaver_model::OutcomeClass as C;
use orbweaver_model::Truncation;

use crate::server::{Act, Site, answered, body, class, fetch, ok, options, spider, with};

#[tokio::test]
async fn odd_heads_that_are_read_all_the_same() {
    let page = b"<html>page</html>";
    let length = format!("Content-Length: {}", page.len());
    let head = |line: &str| with(&format!("200 OK\n{length}\n{line}"), page);
    for (answer, what) in [
        (head("ThisLineHasNoColon"), "no colon"),
        (head(": value"), "no name"),
        (head("X-Fold: a\n\tb\n c"), "folded line"),
        (head("X-A : b"), "blank before the colon"),
        (head("X-A: \u{e9}\u{ff}"), "eight-bit value"),
        (head("Content-Length: 17"), "the same length twice"),
        (head("X-A: b").replace_crlf(), "LF alone"),
        (
            [b"\r\n\r\n".to_vec(), head("X-A: b")].concat(),
            "blank lines before",
        ),
        (
            with("299 Odd\nConnection: close", page),
            "an unknown success",
        ),
        (with("200\nConnection: close", page), "no reason"),
        (
            [b"HTTP/1.0 200 OK\r\n\r\n".to_vec(), page.to_vec()].concat(),
            "HTTP/1.0",
        ),
        (
            [
                with("103 Early Hints\nLink: </a>", b"").repeat(2),
                head("X-A: b"),
            ]
            .concat(),
            "early hints",
        ),
        (
            with(
                "200 OK\nTransfer-Encoding: chunked",
                b"11\r\n<html>page</html>\r\n0\r\nLocation: /x\r\n\r\n",
            ),
            "trailer",
        ),
        (
            with("200 OK\nTransfer-Encoding: xchunked", page),
            "unknown transfer coding",
        ),
    ] {
        let result = answered(answer.clone()).await;
        assert_eq!(
            class(&result),
            C::Success,
            "{what}: {}",
            result.outcome.reason
        );
        assert_eq!(body(&result), page, "{what}");
        let exchange = result.exchange.unwrap();
        assert!(exchange.response.starts_with(b"HTTP/1."), "{what}");
        assert!(answer.ends_with(&exchange.response), "{what}");
        assert!(exchange.headers.get("location").is_none(), "{what}");
        assert_eq!(exchange.truncated, None, "{what}");
    }
}

trait ReplaceCrlf {
    fn replace_crlf(self) -> Self;
}

impl ReplaceCrlf for Vec<u8> {
    fn replace_crlf(mut self) -> Self {
        self.retain(|byte| *byte != b'\r');
        self
    }
}

#[tokio::test]
async fn what_is_no_http_is_a_protocol_failure() {
    for answer in [
        &b"<html><body>nine</body></html>"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 20\r\n\r\nokokokokok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
        b"",
    ] {
        let result = answered(answer).await;
        let shown = answer.escape_ascii();
        assert_eq!(class(&result), C::FailedProtocol, "{shown}");
        assert!(!result.outcome.reason.is_empty(), "{shown}");
    }
}

#[tokio::test]
async fn every_status_has_its_class() {
    for (head, wanted) in [
        ("200 OK\nContent-Length: 0", C::SuccessEmpty),
        ("204 No Content", C::SuccessEmpty),
        ("304 Not Modified", C::SuccessEmpty),
        ("206 Partial Content\nContent-Length: 2", C::Success),
        (
            "301 Moved\nLocation: /x\nContent-Length: 2",
            C::RedirectFollowed,
        ),
        (
            "302 Found\nLocation: /x\nContent-Length: 0",
            C::RedirectFollowed,
        ),
        (
            "303 See Other\nLocation: /x\nContent-Length: 0",
            C::RedirectFollowed,
        ),
        (
            "307 Temporary\nLocation: /x\nContent-Length: 0",
            C::RedirectFollowed,
        ),
        (
            "308 Permanent\nLocation: /x\nContent-Length: 0",
            C::RedirectFollowed,
        ),
        ("302 Found\nContent-Length: 2", C::HttpError),
        ("302 Found\nLocation:\nContent-Length: 2", C::HttpError),
        (
            "300 Multiple\nLocation: /x\nContent-Length: 2",
            C::HttpError,
        ),
        ("306 Unused\nLocation: /x\nContent-Length: 2", C::HttpError),
        ("399 Odd\nContent-Length: 2", C::HttpError),
        ("404 Not Found\nContent-Length: 2", C::HttpError),
        ("503 Busy\nRetry-After: 5\nContent-Length: 2", C::HttpError),
        ("600 Beyond\nContent-Length: 2", C::HttpError),
        ("999 Denied\nContent-Length: 2", C::HttpError),
    ] {
        let result = answered(with(head, b"ok")).await;
        assert_eq!(class(&result), wanted, "{head}");
        assert_eq!(result.status(), head[..3].parse().ok(), "{head}");
    }
}

#[tokio::test]
async fn chunks_are_joined_and_kept_as_they_came() {
    let framed = b"5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\n\r\n";
    let result = answered(with("200 OK\nTransfer-Encoding: chunked", framed)).await;
    assert_eq!(
        (class(&result), body(&result)),
        (C::Success, &b"hello, world"[..])
    );
    let exchange = result.exchange.unwrap();
    assert_eq!(exchange.response[exchange.head_len..], framed[..]);
}

#[tokio::test]
async fn two_hundred_thousand_chunks_of_one_byte() {
    let framed = [b"1\r\nx\r\n".repeat(200_000), b"0\r\n\r\n".to_vec()].concat();
    let result = answered(with("200 OK\nTransfer-Encoding: chunked", &framed)).await;
    assert_eq!(class(&result), C::Success);
    assert_eq!(body(&result), b"x".repeat(200_000));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_kept_and_marked() {
    let chunked = "200 OK\nTransfer-Encoding: chunked";
    for (answer, kept) in [
        (
            with("200 OK\nContent-Length: 5000", b"<html>only this"),
            "<html>only this",
        ),
        (with(chunked, b"1000\r\nhello"), "hello"),
        (with(chunked, b"5\r\nhello\r\n"), "hello"),
        (
            with(chunked, b"5\r\nhello\r\nZZ\r\nworld\r\n0\r\n\r\n"),
            "hello",
        ),
        (with(chunked, b"5\r\nhello5\r\nworld0\r\n\r\n"), "hello"),
    ] {
        let result = answered(answer.clone()).await;
        let shown = answer.escape_ascii();
        assert_eq!(class(&result), C::Truncated, "{shown}");
        assert_eq!(body(&result), kept.as_bytes(), "{shown}");
        let truncated = result.exchange.unwrap().truncated;
        assert_eq!(truncated, Some(Truncation::Disconnect), "{shown}");
    }
    for body in [
        &b""[..],
        b"ZZ\r\nhello\r\n",
        b"-5\r\nhello\r\n",
        b"FFFFFFFFFFFFFFFFF\r\nhello",
    ] {
        let result = answered(with(chunked, body)).await;
        assert_eq!(class(&result), C::FailedProtocol, "{}", body.escape_ascii());
    }
}

#[tokio::test]
async fn a_reset_in_the_body_is_a_cut() {
    let half = with("200 OK\nContent-Length: 100000", &[b'x'; 20_000]);
    let (read, reset) = tokio::sync::oneshot::channel::<()>();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&half).await.unwrap();
        reset.await.unwrap();
        stream.set_zero_linger().unwrap();
    });
    let spider = spider(options());
    let mut fetching = std::pin::pin!(fetch(&spider, &url));
    // A reset discards what was not read yet, so it must not come too early.
    for _ in 0..1000 {
        tokio::select! {
            biased;
            _ = &mut fetching => panic!("over too early"),
            () = tokio::task::yield_now() => {}
        }
    }
    read.send(()).unwrap();
    let result = fetching.await;
    assert_eq!(class(&result), C::Truncated);
    assert!(b"x".repeat(20_000).starts_with(body(&result)));
}

#[tokio::test]
async fn heads_without_end_stop_at_their_limit() {
    let flood = |first: &str, more: &str| {
        vec![
            Act::Read,
            Act::Send(first.as_bytes().to_vec()),
            Act::Flood(more.as_bytes().to_vec()),
        ]
    };
    for script in [
        flood(
            "HTTP/1.1 200 OK\r\n",
            "X-More: hhhhhhhhhhhhhhhhhhhhhhhhhhhhhh\r\n",
        ),
        flood("HTTP/1.1 200 OK\r\nX-Big: ", &"b".repeat(1000)),
        flood("HTTP/1.1 200 ", &"R".repeat(1000)),
        flood("", "HTTP/1.1 100 Continue\r\n\r\n"),
        flood("", "\r\n"),
    ] {
        let site = Site::start(vec![script]).await;
        let result = fetch(&spider(options()), &site.url("/")).await;
        assert_eq!(class(&result), C::FailedProtocol);
        assert!(result.wire_bytes <= 64 << 10, "{}", result.wire_bytes);
    }
}

#[tokio::test]
async fn the_number_of_headers_has_a_limit() {
    let head = |n: usize| format!("200 OK\nContent-Length: 2{}", "\nX-A: y".repeat(n - 1));
    assert_eq!(class(&answered(with(&head(256), b"ok")).await), C::Success);
    let result = answered(with(&head(257), b"ok")).await;
    assert_eq!(class(&result), C::FailedProtocol);
    assert_eq!(result.outcome.reason, "response head too large");
}

#[tokio::test]
async fn a_chunk_extension_without_end_stops() {
    let head = with("200 OK\nTransfer-Encoding: chunked", b"5;x=");
    let site = Site::start(vec![vec![
        Act::Read,
        Act::Send(head),
        Act::Flood(vec![b'e'; 4096]),
    ]])
    .await;
    let result = fetch(&spider(options()), &site.url("/")).await;
    assert_eq!(class(&result), C::FailedProtocol);
    assert!(result.wire_bytes < 1 << 20);
}

#[tokio::test]
async fn a_body_that_begins_with_much_framing_is_not_taken_for_a_head() {
    let zeros = vec![b'0'; 1 << 20];
    let framed = [&zeros, &b"5\r\nhello\r\n0\r\n\r\n"[..]].concat();
    let result = answered(with("200 OK\nTransfer-Encoding: chunked", &framed)).await;
    assert_eq!((class(&result), body(&result)), (C::Success, &b"hello"[..]));
}

#[tokio::test]
async fn a_redirect_target_without_end_is_refused() {
    let long = format!(
        "302 Found\nLocation: /{}\nContent-Length: 0",
        "L".repeat(70_000)
    );
    let result = answered(with(&long, b"")).await;
    assert_eq!(class(&result), C::RedirectRefused);
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_read() {
    let acts = ok("<html>slow but honest")
        .into_iter()
        .map(|byte| Act::Send(vec![byte]));
    let script = [Act::Read].into_iter().chain(acts).collect();
    let site = Site::start(vec![script]).await;
    let result = fetch(&spider(options()), &site.url("/")).await;
    assert_eq!(body(&result), b"<html>slow but honest");
}
