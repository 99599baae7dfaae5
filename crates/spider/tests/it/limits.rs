//! Limits on size, time and memory.

use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use orbweaver_model::OutcomeClass as C;
use orbweaver_model::{Limits, Truncation};
use orbweaver_spider::{ByteBudget, SpiderOptions, SpoolDir};
use tokio::time::Instant;

use crate::server::{Act, Site, body, class, fetch, fetch_robots, ok, options, spider, with};

fn small() -> SpiderOptions {
    let mut options = options();
    options.limits = Limits {
        max_body_bytes: 100_000,
        max_decoded_bytes: 200_000,
        robots_max_bytes: 1000,
        ..Limits::default()
    };
    options
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let page = vec![b'x'; 100_000];
    let chunked = [b"1869f\r\n", &page[..99_999], b"\r\n0\r\n\r\n"].concat();
    for (answer, wanted) in [
        (with("200 OK\nContent-Length: 100000", &page), C::Success),
        (with("200 OK\nConnection: close", &page), C::Success),
        // The framing counts: chunks of the same data are too long.
        (
            with("200 OK\nTransfer-Encoding: chunked", &chunked),
            C::Truncated,
        ),
    ] {
        let site = Site::once(answer).await;
        let result = fetch(&spider(small()), &site.url("/")).await;
        assert_eq!(class(&result), wanted);
    }
}

#[tokio::test]
async fn longer_bodies_are_cut_and_kept() {
    let lengths = [
        ("200 OK\nContent-Length: 100001", &b""[..], &b"y"[..]),
        ("200 OK\nContent-Length: 9000000000000000", b"", b"y"),
        ("200 OK\nConnection: close", b"", b"y"),
        ("200 OK\nTransfer-Encoding: chunked", b"", b"1000\r\n"),
    ];
    for (head, first, kind) in lengths {
        let piece = match kind {
            b"y" => vec![b'y'; 4096],
            size => [size, &[b'y'; 4096], b"\r\n"].concat(),
        };
        let script = vec![Act::Read, Act::Send(with(head, first)), Act::Flood(piece)];
        let site = Site::start(vec![script]).await;
        let result = fetch(&spider(small()), &site.url("/")).await;
        assert_eq!(class(&result), C::Truncated, "{head}");
        let wire_bytes = result.wire_bytes;
        let exchange = result.exchange.unwrap();
        assert_eq!(exchange.truncated, Some(Truncation::Length), "{head}");
        assert_eq!(
            exchange.response.len() - exchange.head_len,
            100_000,
            "{head}"
        );
        assert!(exchange.body.iter().all(|byte| *byte == b'y'), "{head}");
        assert!(exchange.body.len() > 99_000, "{head}");
        assert!(wire_bytes <= 100_001 + exchange.head_len as u64, "{head}");
    }
}

#[tokio::test]
async fn a_redirect_is_followed_whatever_its_body_does() {
    let head = with("302 Found\nLocation: /x", b"");
    let site = Site::start(vec![vec![
        Act::Read,
        Act::Send(head),
        Act::Flood(vec![b'r'; 4096]),
    ]])
    .await;
    let result = fetch(&spider(options()), &site.url("/")).await;
    assert_eq!(class(&result), C::RedirectFollowed);
    let exchange = result.exchange.unwrap();
    assert_eq!(exchange.body.len(), 64 << 10);
    assert_eq!(exchange.truncated, Some(Truncation::Length));
}

#[tokio::test]
async fn a_long_robots_txt_is_read_as_far_as_it_counts() {
    let rules = "User-agent: *\nDisallow: /private/\n";
    for head in [
        "200 OK\nContent-Type: text/plain",
        "200 OK\nContent-Length: 1073741824",
    ] {
        let head = with(head, rules.as_bytes());
        let script = vec![
            Act::Read,
            Act::Send(head),
            Act::Flood(b"# padding\n".repeat(400)),
        ];
        let site = Site::start(vec![script]).await;
        let result = fetch_robots(&spider(small()), &site.url("/robots.txt")).await;
        assert_eq!(class(&result), C::Success);
        assert_eq!(body(&result).len(), 1000);
        assert!(body(&result).starts_with(rules.as_bytes()));
        // What comes with the head is read with the head.
        assert!(result.wire_bytes < 32_000);
        let truncated = result.exchange.unwrap().truncated;
        assert_eq!(truncated, Some(Truncation::Length));
    }
}

/// Ten seconds for each step inside of thirty for the whole.
fn stepwise() -> SpiderOptions {
    let mut options = options();
    options.limits.header_timeout = Duration::from_secs(10);
    options.limits.idle_timeout = Duration::from_secs(10);
    options
}

async fn timed(script: Vec<Act>) -> (orbweaver_model::FetchResult, Duration) {
    let site = Site::start(vec![script]).await;
    let start = Instant::now();
    let result = fetch(&spider(stepwise()), &site.url("/")).await;
    (result, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_end_of_the_head_is_a_timeout() {
    for said in ["", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"] {
        let script = vec![Act::Read, Act::Send(said.into()), Act::Hang];
        let (result, took) = timed(script).await;
        assert_eq!(class(&result), C::FailedTimeout, "{said}");
        assert!(result.exchange.is_none() && result.sent.is_some());
        assert_eq!(took, Duration::from_secs(10), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_in_the_body_is_a_cut() {
    let said = with("200 OK\nContent-Length: 5000", b"<html>half");
    let (result, took) = timed(vec![Act::Read, Act::Send(said), Act::Hang]).await;
    assert_eq!(
        (class(&result), body(&result)),
        (C::Truncated, &b"<html>half"[..])
    );
    assert_eq!(result.exchange.unwrap().truncated, Some(Truncation::Time));
    assert_eq!(took, Duration::from_secs(10));
    let said = with("200 OK\nContent-Length: 5000", b"");
    let (result, _) = timed(vec![Act::Read, Act::Send(said), Act::Hang]).await;
    assert_eq!(class(&result), C::FailedTimeout);
}

/// A server that sends `first` and then a byte each second.
async fn drip(first: &'static str) -> (orbweaver_model::FetchResult, Duration) {
    use tokio::io::AsyncWriteExt;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let start = Instant::now();
    let result = fetch(&spider(stepwise()), &url).await;
    (result, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_byte_a_second_does_not_move_the_end() {
    let (result, took) = drip("HTTP/1.1 200 OK\r\nX-Slow: ").await;
    assert_eq!(class(&result), C::FailedTimeout);
    assert_eq!(took.as_secs(), 10);
    let (result, took) = drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n<").await;
    assert_eq!(class(&result), C::Truncated);
    assert_eq!(took.as_secs(), 30);
    assert!((20..40).contains(&body(&result).len()));
}

#[tokio::test]
async fn bodies_wait_for_memory_and_all_arrive() {
    // Room for one body of 1 MiB, and ten of them at once.
    let mut options = options();
    options.memory = ByteBudget::new(1 << 20, 256 << 10);
    let memory = options.memory.clone();
    let full = memory.available();
    let spider = std::sync::Arc::new(spider(options));
    let page = "m".repeat(1 << 20);
    let site = Site::start(vec![vec![Act::Read, Act::Send(ok(&page))]; 10]).await;
    let mut fetches = tokio::task::JoinSet::new();
    for n in 0..10 {
        let (spider, url) = (std::sync::Arc::clone(&spider), site.url(&format!("/{n}")));
        fetches.spawn(async move { fetch(&spider, &url).await });
    }
    while let Some(result) = fetches.join_next().await {
        let result = result.unwrap();
        assert_eq!(
            (class(&result), body(&result).len()),
            (C::Success, page.len())
        );
    }
    assert_eq!(memory.available(), full);
    // A result holds its memory for as long as somebody looks at it.
    let site = Site::once(ok(&page)).await;
    let result = fetch(&spider, &site.url("/")).await;
    assert!(memory.available() < full);
    drop(result);
    assert_eq!(memory.available(), full);
}

#[tokio::test]
async fn a_large_body_goes_to_disk_as_it_came() {
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut chunked = Vec::new();
    for chunk in body.chunks(70_001) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let plain = format!("Content-Type: text/html\r\nContent-Length: {}", body.len());
    let film = format!("Content-Type: video/mp4\r\nContent-Length: {}", body.len());
    for (fields, sent, read) in [
        (plain.as_str(), &body, 3_000_000),
        (&film, &body, 0),
        (
            "Content-Type: text/html\r\nTransfer-Encoding: chunked",
            &chunked,
            3_000_000,
        ),
        (
            "Content-Type: text/html\r\nConnection: close",
            &body,
            3_000_000,
        ),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        let site = Site::once([head.as_bytes(), sent].concat()).await;
        let dir = tempfile::tempdir().unwrap();
        let mut options = options();
        options.spool = Some(SpoolDir::new(dir.path().to_owned(), 4));
        options.limits.max_decoded_bytes = 3_000_000;
        // Less than the body: on disk there is room enough.
        options.memory = ByteBudget::new(4 << 20, 1 << 20);
        let (memory, full) = (options.memory.clone(), options.memory.available());
        let spider = spider(options);
        let result = fetch(&spider, &site.url("/")).await;
        assert_eq!(class(&result), C::Success, "{fields}");
        let exchange = result.exchange.unwrap();
        assert_eq!(exchange.response, head, "{fields}");
        let spooled = exchange.spooled.as_ref().unwrap();
        assert_eq!(spooled.size(), sent.len() as u64, "{fields}");
        let mut stored = vec![0; sent.len()];
        spooled.file().read_exact_at(&mut stored, 0).unwrap();
        assert!(&stored == sent, "{fields}");
        assert!(exchange.body == body[..read], "{fields}");
        drop(exchange);
        assert_eq!(memory.available(), full, "{fields}");
        // The file has no name that could be left behind.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_body_on_disk_is_cut_at_the_limit_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.spool = Some(SpoolDir::new(dir.path().to_owned(), 4));
    options.limits.max_body_bytes = 2_500_000;
    let spider = spider(options);
    let page = "l".repeat(4_000_000);
    for answer in [
        ok(&page),
        format!("HTTP/1.1 200 OK\r\n\r\n{page}").into_bytes(),
    ] {
        let site = Site::once(answer).await;
        let result = fetch(&spider, &site.url("/")).await;
        assert_eq!(class(&result), C::Truncated);
        let exchange = result.exchange.unwrap();
        assert_eq!(exchange.truncated, Some(Truncation::Length));
        assert_eq!(exchange.spooled.unwrap().size(), 2_500_000);
    }
}

#[tokio::test]
async fn no_room_on_disk_is_not_the_servers_fault() {
    let mut options = options();
    options.spool = Some(SpoolDir::new("/nonexistent/spool".into(), 4));
    let spider = spider(options);
    let site = Site::once(ok(&"d".repeat(3_000_000))).await;
    let result = fetch(&spider, &site.url("/")).await;
    assert!(result.is_put_back() && result.exchange.is_none());
    assert!(
        result
            .outcome
            .reason
            .contains("could not be written to disk")
    );
}

#[tokio::test]
async fn who_waits_for_us_is_not_charged_for_it() {
    let memory = ByteBudget::new(1 << 20, 0);
    let with_memory = |total_timeout| {
        let mut options = options();
        options.memory = memory.clone();
        options.limits.total_timeout = total_timeout;
        spider(options)
    };
    let patient = with_memory(Duration::from_secs(300));
    let mut hogs = Vec::new();
    while memory.available() > 256 << 10 {
        let site = Site::once(ok(&"h".repeat(100_000))).await;
        hogs.push(fetch(&patient, &site.url("/")).await);
    }
    // Nothing is left for a body that takes its server no time, for longer than any fetch may take.
    let hasty = with_memory(Duration::from_secs(2));
    let site = Site::once(ok(&"w".repeat(900_000))).await;
    let url = site.url("/");
    let waiting = tokio::spawn(async move { fetch(&hasty, &url).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(hogs);
    let result = waiting.await.unwrap();
    assert_eq!((class(&result), body(&result).len()), (C::Success, 900_000));
}
