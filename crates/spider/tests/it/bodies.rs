//! Content encodings over the wire. The encodings themselves are tested where they are undone.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use orbweaver_model::OutcomeClass as C;
use orbweaver_model::Truncation;

use crate::server::{Site, answered, body, class, fetch, fetch_robots, options, spider, with};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

fn encoded(encoding: &str, data: &[u8]) -> Vec<u8> {
    let length = data.len();
    with(
        &format!("200 OK\nContent-Encoding: {encoding}\nContent-Length: {length}"),
        data,
    )
}

const PAGE: &[u8] = b"<html><body>a page, a page, a page, a page, a page</body></html>";

#[tokio::test]
async fn the_body_is_decoded_and_the_response_is_not() {
    for (encoding, data) in [
        ("gzip", gzip(PAGE)),
        ("zstd", zstd(PAGE)),
        ("gzip, zstd", zstd(&gzip(PAGE))),
        ("identity", PAGE.to_vec()),
        ("gzip", [gzip(PAGE), b"GARBAGE".to_vec()].concat()),
    ] {
        let answer = encoded(encoding, &data);
        let result = answered(answer.clone()).await;
        assert_eq!(
            (class(&result), body(&result)),
            (C::Success, PAGE),
            "{encoding}"
        );
        assert_eq!(result.exchange.unwrap().response, answer, "{encoding}");
    }
    // Through chunks that cut the stream anywhere.
    let data = gzip(PAGE);
    let mut chunks = Vec::new();
    for piece in data.chunks(3) {
        write!(chunks, "{:x}\r\n", piece.len()).unwrap();
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let head = "200 OK\nContent-Encoding: gzip\nTransfer-Encoding: chunked";
    let result = answered(with(head, &chunks)).await;
    assert_eq!((class(&result), body(&result)), (C::Success, PAGE));
}

#[tokio::test]
async fn what_cannot_be_decoded_is_said_and_kept() {
    let stack = ["gzip"; 100].join(", ");
    for (encoding, data, reason) in [
        ("foo", PAGE, "unknown content encoding"),
        (&stack, PAGE, "too many content encodings"),
        ("gzip", PAGE, "damaged compressed data"),
        ("br", PAGE, "damaged compressed data"),
        ("zstd", PAGE, "damaged compressed data"),
    ] {
        let result = answered(encoded(encoding, data)).await;
        assert_eq!(class(&result), C::FailedDecode, "{encoding}");
        assert_eq!(result.outcome.reason, reason, "{encoding}");
        let exchange = result.exchange.unwrap();
        assert!(exchange.response.ends_with(data), "{encoding}");
        assert_eq!(exchange.body, data, "{encoding}");
    }
    // An error page stays what it is.
    let head = "404 Not Found\nContent-Encoding: gzip\nContent-Length: 4";
    assert_eq!(class(&answered(with(head, b"oops")).await), C::HttpError);
}

#[tokio::test]
async fn a_damaged_end_leaves_the_beginning() {
    let data = gzip(&PAGE.repeat(1000));
    let mut bad_sum = data.clone();
    let at = bad_sum.len() - 6;
    bad_sum[at] ^= 1;
    for (data, reason) in [
        (&bad_sum[..], "damaged compressed data"),
        (&data[..data.len() / 2], "compressed data ends early"),
    ] {
        let result = answered(encoded("gzip", data)).await;
        assert_eq!(class(&result), C::Truncated, "{reason}");
        assert_eq!(result.outcome.reason, reason);
        assert!(!body(&result).is_empty());
        assert!(PAGE.repeat(1000).starts_with(body(&result)));
        // On the wire the message was whole.
        assert_eq!(result.exchange.unwrap().truncated, None);
    }
}

#[tokio::test]
async fn nothing_is_empty_in_every_encoding() {
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let result = answered(encoded(encoding, b"")).await;
        assert_eq!(class(&result), C::SuccessEmpty, "{encoding}");
    }
    assert_eq!(
        class(&answered(encoded("gzip", &gzip(b""))).await),
        C::SuccessEmpty
    );
}

#[tokio::test]
async fn a_bomb_is_cut_at_the_decoded_limit() {
    let bomb = gzip(&vec![b'0'; 64 << 20]);
    let mut options = options();
    options.limits.max_decoded_bytes = 300_000;
    options.limits.robots_max_bytes = 5_000;
    let spider = spider(options);
    for (encoding, data) in [("gzip", bomb.clone()), ("gzip, gzip", gzip(&bomb))] {
        let site = Site::once(encoded(encoding, &data)).await;
        let result = fetch(&spider, &site.url("/")).await;
        assert_eq!(class(&result), C::Truncated, "{encoding}");
        assert_eq!(body(&result).len(), 300_000, "{encoding}");
        let truncated = result.exchange.unwrap().truncated;
        assert_eq!(truncated, Some(Truncation::Length), "{encoding}");
        // For a robots.txt the beginning is enough.
        let site = Site::once(encoded(encoding, &data)).await;
        let result = fetch_robots(&spider, &site.url("/robots.txt")).await;
        assert_eq!((class(&result), body(&result).len()), (C::Success, 5_000));
    }
}

#[tokio::test]
async fn a_decoded_body_of_exactly_the_limit_is_whole() {
    let mut options = options();
    options.limits.max_decoded_bytes = PAGE.len();
    let spider = spider(options);
    for (encoding, data) in [("gzip", gzip(PAGE)), ("zstd", zstd(PAGE))] {
        let site = Site::once(encoded(encoding, &data)).await;
        let result = fetch(&spider, &site.url("/")).await;
        assert_eq!(
            (class(&result), body(&result)),
            (C::Success, PAGE),
            "{encoding}"
        );
    }
}
