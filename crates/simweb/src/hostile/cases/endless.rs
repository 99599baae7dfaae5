//! Endless: answers that go on for as long as somebody takes them.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, CHUNKED, OPEN, PAGE, page};

use super::pack;

/// What one write sends; the socket takes it in parts.
const BLOCK: usize = 16 << 10;

fn block(unit: &[u8]) -> Act {
    Act::Forever(unit.repeat(BLOCK / unit.len().max(1)))
}

fn after(head: &str, unit: &[u8]) -> Vec<Act> {
    vec![Act::Send(head.into()), block(unit)]
}

fn encoded(coding: &str, begin: Vec<u8>, unit: &[u8]) -> Vec<Act> {
    let head = format!("{PAGE}\r\nContent-Encoding: {coding}\r\nConnection: close\r\n\r\n");
    vec![Act::Send(head.into()), Act::Send(begin), block(unit)]
}

pub(super) fn cases() -> Vec<Case> {
    let mut all = heads();
    all.extend(bodies());
    all.extend(encodings());
    all
}

fn heads() -> Vec<Case> {
    vec![
        Case::new(
            "first-line",
            "a first line without end",
            &[PROTOCOL],
            |_| after("HTTP/1.1 200 ", b"OK "),
        ),
        Case::new("fields", "header lines without end", &[PROTOCOL], |_| {
            after("HTTP/1.1 200 OK\r\n", b"A: b\r\n")
        }),
        Case::new("value", "a header value without end", &[PROTOCOL], |_| {
            after("HTTP/1.1 200 OK\r\nA: ", b"b")
        }),
        Case::new("folded", "a folded header without end", &[PROTOCOL], |_| {
            after("HTTP/1.1 200 OK\r\nA: b", b"\r\n b")
        }),
        Case::new(
            "interim",
            "interim answers without end",
            &[PROTOCOL],
            |_| after("", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"),
        ),
        Case::new("blank", "blank lines without end", &[PROTOCOL], |_| {
            after("", b"\r\n")
        }),
        Case::new(
            "location",
            "a redirect target without end",
            &[REDIRECT_REFUSED, PROTOCOL],
            |_| after("HTTP/1.1 302 Found\r\nLocation: /", b"long"),
        ),
        Case::new("cookies", "Set-Cookie without end", &[PROTOCOL], |_| {
            after("HTTP/1.1 200 OK\r\n", b"Set-Cookie: a=b\r\n")
        }),
    ]
}

fn bodies() -> Vec<Case> {
    vec![
        Case::new("body", "a body without end", &[TRUNCATED], |_| {
            after(OPEN, b"<p>Some words. ")
        }),
        Case::new("chunks", "chunks without end", &[TRUNCATED], |_| {
            after(CHUNKED, b"10\r\n0123456789abcdef\r\n")
        }),
        Case::new(
            "tiny-chunks",
            "chunks of one byte without end",
            &[TRUNCATED],
            |_| after(CHUNKED, b"1\r\nx\r\n"),
        ),
        Case::new(
            "chunk-extension",
            "a chunk extension without end",
            &[TRUNCATED, PROTOCOL],
            |_| after(&format!("{CHUNKED}5;x="), b"y"),
        ),
        Case::new(
            "chunk-zeros",
            "a chunk size of zeros without end",
            &[TRUNCATED, PROTOCOL],
            |_| after(CHUNKED, b"0"),
        ),
        Case::new("trailer", "a trailer without end", &[TRUNCATED], |_| {
            after(&format!("{CHUNKED}5\r\nhello\r\n0\r\n"), b"T: 1\r\n")
        }),
        Case::new(
            "terabyte",
            "a body of the terabyte it announces",
            &[TRUNCATED],
            |_| {
                after(
                    &format!("{PAGE}\r\nContent-Length: 1099511627776\r\n\r\n"),
                    b"words ",
                )
            },
        ),
        Case::new(
            "error-body",
            "404 with a body without end",
            &[HTTP_ERROR],
            |_| after("HTTP/1.1 404 No\r\nConnection: close\r\n\r\n", b"words "),
        ),
        Case::new(
            "redirect-body",
            "a redirect with a body without end",
            &[FOLLOWED],
            |ask: &Ask| match ask.target.as_str() {
                "/" => after(
                    "HTTP/1.1 301 Moved\r\nLocation: /next\r\nConnection: close\r\n\r\n",
                    b"words ",
                ),
                _ => page("hello"),
            },
        )
        .leads_to("/next"),
        Case::new(
            "robots",
            "a robots.txt without end that allows all",
            &[SUCCESS],
            |_| page("hello"),
        )
        .robots(|_| after(OPEN, b"User-agent: *\nDisallow: /never\nAllow: /\n")),
        Case::new(
            "robots-line",
            "a robots.txt of one line without end",
            &[SUCCESS],
            |_| page("hello"),
        )
        .robots(|_| after(&format!("{OPEN}# "), b"words ")),
    ]
}

fn encodings() -> Vec<Case> {
    vec![
        Case::new(
            "gzip-name",
            "a file name without end in a gzip header",
            &[DECODE],
            |_| encoded("gzip", vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3], b"name"),
        ),
        Case::new(
            "gzip-comment",
            "a comment without end in a gzip header",
            &[DECODE],
            |_| encoded("gzip", vec![0x1f, 0x8b, 8, 16, 0, 0, 0, 0, 0, 3], b"name"),
        ),
        Case::new(
            "gzip-empty-members",
            "gzip members of nothing without end",
            &[DECODE, TRUNCATED],
            |_| encoded("gzip", vec![], &pack::gzip(b"")),
        ),
        Case::new(
            "gzip-zeros",
            "a gzip body of blanks without end",
            &[TRUNCATED],
            |_| encoded("gzip", vec![], &pack::gzip(&[b' '; 4096])),
        ),
        Case::new(
            "deflate-empty-blocks",
            "empty deflate blocks without end",
            &[DECODE],
            |_| encoded("deflate", vec![0x78, 0x9c], &[0, 0, 0, 0xff, 0xff]),
        ),
        Case::new(
            "zstd-empty-blocks",
            "empty zstd blocks without end",
            &[DECODE],
            |_| encoded("zstd", pack::zstd_begin(), &[0, 0, 0]),
        ),
        Case::new(
            "zstd-skippable",
            "zstd frames to be passed over without end",
            &[DECODE],
            |_| {
                encoded(
                    "zstd",
                    vec![],
                    &[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4],
                )
            },
        ),
        Case::new(
            "zstd-runs",
            "zstd blocks that hold one byte 131,072 times",
            &[TRUNCATED],
            |_| encoded("zstd", pack::zstd_begin(), &pack::zstd_run(b'x')),
        ),
        Case::new(
            "brotli-empty-blocks",
            "empty brotli blocks without end",
            &[DECODE],
            |_| encoded("br", vec![0x0c], &[0x06]),
        ),
    ]
}
