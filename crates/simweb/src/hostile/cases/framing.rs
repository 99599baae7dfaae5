//! Framing: heads, lengths and chunks that are wrong.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, CHUNKED, OPEN, PAGE, message, page, raw, raw_close};

pub(super) fn cases() -> Vec<Case> {
    let mut all = lengths();
    all.extend(chunks());
    all.extend(heads());
    all.extend(first_lines());
    all.extend(endings());
    all
}

fn with_length(value: &str) -> Vec<Act> {
    raw_close(format!("{PAGE}\r\nContent-Length: {value}\r\n\r\nhello"))
}

fn lengths() -> Vec<Case> {
    vec![
        Case::new("length-negative", "Content-Length: -5", &[PROTOCOL], |_| {
            with_length("-5")
        }),
        Case::new("length-word", "Content-Length: five", &[PROTOCOL], |_| {
            with_length("five")
        }),
        Case::new("length-plus", "Content-Length: +5", &[PROTOCOL], |_| {
            with_length("+5")
        }),
        Case::new(
            "length-overflow",
            "a length of 30 digits",
            &[PROTOCOL],
            |_| with_length("999999999999999999999999999999"),
        ),
        Case::new(
            "length-two-different",
            "two lengths, 5 and 7",
            &[PROTOCOL],
            |_| with_length("5\r\nContent-Length: 7"),
        ),
        Case::new(
            "length-twice",
            "the same length twice",
            &[SUCCESS, PROTOCOL],
            |_| with_length("5\r\nContent-Length: 5"),
        ),
        Case::new(
            "length-list",
            "Content-Length: 5, 5",
            &[SUCCESS, PROTOCOL],
            |_| with_length("5, 5"),
        ),
        Case::new(
            "length-too-large",
            "a length of 1,000 and 5 bytes",
            &[TRUNCATED],
            |_| with_length("1000"),
        ),
        Case::new(
            "length-of-nothing",
            "a length of 1,000 and the end",
            &[PROTOCOL],
            |_| raw_close(format!("{PAGE}\r\nContent-Length: 1000\r\n\r\n")),
        ),
        Case::new(
            "length-huge",
            "a length of a petabyte and 5 bytes",
            &[TRUNCATED],
            |_| with_length("1125899906842624"),
        ),
        Case::new(
            "no-content-with-content",
            "204 with a length and a body",
            &[EMPTY],
            |_| raw_close("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        ),
    ]
}

fn chunked(body: impl AsRef<[u8]>) -> Vec<Act> {
    let mut all = CHUNKED.as_bytes().to_vec();
    all.extend_from_slice(body.as_ref());
    raw_close(all)
}

fn chunks() -> Vec<Case> {
    vec![
        Case::new("chunk-negative", "a chunk of -5 bytes", &[PROTOCOL], |_| {
            chunked("-5\r\nhello\r\n0\r\n\r\n")
        }),
        Case::new(
            "chunk-overflow",
            "a chunk of 2^72 bytes",
            &[PROTOCOL],
            |_| chunked("ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::new(
            "chunk-of-all",
            "a chunk of 2^64-1 bytes",
            &[TRUNCATED, PROTOCOL],
            |_| chunked("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::new(
            "chunk-word",
            "a chunk whose size is a word",
            &[PROTOCOL],
            |_| chunked("size\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::new(
            "chunk-without-size",
            "a chunk without a size",
            &[PROTOCOL],
            |_| chunked("\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::new(
            "chunk-too-long",
            "a chunk longer than it says",
            &[TRUNCATED],
            |_| chunked("5\r\nhello, world\r\n0\r\n\r\n"),
        ),
        Case::new("chunk-missing-end", "no last chunk", &[TRUNCATED], |_| {
            chunked("5\r\nhello\r\n")
        }),
        Case::new("chunk-cut", "the end inside a chunk", &[TRUNCATED], |_| {
            chunked("50\r\nhello")
        }),
        Case::new(
            "chunk-bare-lf",
            "chunk lines that end in LF",
            &[SUCCESS, TRUNCATED, PROTOCOL],
            |_| chunked("5\nhello\n0\n\n"),
        ),
        Case::new(
            "chunk-many-zeros",
            "a size of a thousand zeros",
            &[SUCCESS, PROTOCOL],
            |_| chunked(format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(1000))),
        ),
        Case::new(
            "chunk-trailer",
            "a trailer that redirects",
            &[SUCCESS],
            |_| chunked("5\r\nhello\r\n0\r\nLocation: /trailer\r\n\r\n"),
        )
        .never("/trailer"),
        Case::new(
            "chunk-trailer-many",
            "a trailer of five thousand fields",
            &[SUCCESS, TRUNCATED],
            |_| {
                chunked(format!(
                    "5\r\nhello\r\n0\r\n{}\r\n",
                    "T: v\r\n".repeat(5000)
                ))
            },
        ),
        Case::new(
            "chunk-extensions",
            "a kilobyte of extensions to each byte",
            &[SUCCESS, TRUNCATED, PROTOCOL],
            |_| {
                let chunk = format!("1;{}\r\nx\r\n", "e".repeat(1000));
                chunked(format!("{}0\r\n\r\n", chunk.repeat(4000)))
            },
        ),
        Case::new(
            "chunk-end-without-line",
            "a last chunk without its last line",
            &[SUCCESS, TRUNCATED],
            |_| raw_close(format!("{CHUNKED}5\r\nhello\r\n0")),
        ),
        Case::new(
            "length-and-chunks",
            "a length beside chunks",
            &[SUCCESS, PROTOCOL],
            |_| {
                raw(format!(
                    "{PAGE}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                ))
            },
        ),
        Case::new(
            "coding-unknown",
            "Transfer-Encoding: gurgle",
            &[SUCCESS, PROTOCOL],
            |_| raw_close(format!("{PAGE}\r\nTransfer-Encoding: gurgle\r\n\r\nhello")),
        ),
        Case::new(
            "chunked-not-last",
            "Transfer-Encoding: chunked, gzip",
            &[SUCCESS, TRUNCATED, PROTOCOL],
            |_| {
                raw_close(format!(
                    "{PAGE}\r\nTransfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                ))
            },
        ),
    ]
}

fn with_field(field: &str) -> Vec<Act> {
    raw_close(message(&format!("{PAGE}\r\n{field}"), "hello"))
}

fn heads() -> Vec<Case> {
    vec![
        Case::new("folded-line", "a header line that goes on in the next", &[SUCCESS], |_| {
            with_field("X-Long: one\r\n two\r\n\tthree")
        }),
        Case::new("bare-lf", "a head whose lines end in LF", &[SUCCESS], |_| {
            raw_close("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 5\n\nhello")
        }),
        Case::new("nul-in-value", "NUL in a header value", &[SUCCESS, PROTOCOL], |_| {
            with_field("X-Nul: a\0b")
        }),
        Case::new("nul-in-name", "NUL in a header name", &[SUCCESS, PROTOCOL], |_| {
            with_field("X\0Nul: a")
        }),
        Case::new("blank-before-colon", "a blank before the colon", &[SUCCESS], |_| {
            with_field("X-Blank : a")
        }),
        Case::new("no-colon", "a header line that is none", &[SUCCESS], |_| {
            with_field("this is no header")
        }),
        Case::new("colon-first", "a header without a name", &[SUCCESS, PROTOCOL], |_| {
            with_field(": value")
        }),
        Case::new("bytes-in-head", "bytes beyond ASCII in a value", &[SUCCESS], |_| {
            let mut head = format!("{PAGE}\r\nX-Bytes: ").into_bytes();
            head.extend_from_slice(b"\xff\xfe\xe4\r\nContent-Length: 5\r\n\r\nhello");
            raw_close(head)
        }),
        Case::new("many-fields", "100,000 header lines", &[PROTOCOL], |_| {
            with_field(&format!("{}X-End: 1", "X-Field: 1\r\n".repeat(100_000)))
        }),
        Case::new("long-field", "a header line of a megabyte", &[PROTOCOL], |_| {
            with_field(&format!("X-Long: {}", "y".repeat(1 << 20)))
        }),
        Case::new("many-types", "Content-Type two hundred times", &[SUCCESS], |_| {
            with_field(&format!("{}X-End: 1", "Content-Type: image/png\r\n".repeat(200)))
        }),
        Case::new("interim-few", "103 and 100 before the answer", &[SUCCESS], |_| {
            let mut all = b"HTTP/1.1 103 Early Hints\r\nLink: </hint>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n".to_vec();
            all.extend(message(PAGE, "hello"));
            raw_close(all)
        }),
        Case::new("interim-flood", "100 Continue a hundred thousand times", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000))
        }),
        Case::new("switching", "101 that nobody asked for", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n<a href=/p>")
        })
        .never("/p"),
    ]
}

fn first_lines() -> Vec<Case> {
    vec![
        Case::new("status-word", "HTTP/1.1 abc", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 abc OK\r\n\r\n")
        }),
        Case::new("status-two-digits", "HTTP/1.1 20", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 20 OK\r\n\r\n")
        }),
        Case::new("status-four-digits", "HTTP/1.1 2000", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 2000 OK\r\n\r\n")
        }),
        Case::new("status-negative", "HTTP/1.1 -200", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 -200 OK\r\n\r\n")
        }),
        Case::new("status-999", "HTTP/1.1 999", &[HTTP_ERROR], |_| {
            raw_close(message("HTTP/1.1 999 Odd", "no"))
        })
        .requests(1),
        Case::new("status-000", "HTTP/1.1 000", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 000 OK\r\n\r\n")
        }),
        Case::new("status-418", "HTTP/1.1 418", &[HTTP_ERROR], |_| {
            raw_close(message("HTTP/1.1 418 Teapot", "no"))
        })
        .requests(1),
        Case::new(
            "no-reason",
            "a first line without a reason",
            &[SUCCESS],
            |_| raw_close(message("HTTP/1.1 200", "hello")),
        ),
        Case::new(
            "version-0.9",
            "a document and nothing before it",
            &[PROTOCOL],
            |_| raw_close("<html>hello</html>"),
        ),
        Case::new("version-3", "HTTP/3.0 200 OK", &[PROTOCOL], |_| {
            raw_close("HTTP/3.0 200 OK\r\n\r\nhello")
        }),
        Case::new("version-icy", "ICY 200 OK", &[PROTOCOL], |_| {
            raw_close("ICY 200 OK\r\n\r\nhello")
        }),
        Case::new(
            "other-protocol",
            "the greeting of a shell server",
            &[PROTOCOL],
            |_| raw_close("SSH-2.0-Server_1\r\n"),
        ),
        Case::new(
            "frames",
            "frames of HTTP/2 that nobody asked for",
            &[PROTOCOL],
            |_| raw_close(&b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64"[..]),
        ),
        Case::new("noise", "64 KiB of all bytes", &[PROTOCOL], |_| {
            raw_close(
                (0..=u8::MAX)
                    .rev()
                    .cycle()
                    .take(64 << 10)
                    .collect::<Vec<u8>>(),
            )
        }),
        Case::new(
            "reason-in-bytes",
            "a reason beyond ASCII",
            &[SUCCESS, PROTOCOL],
            |_| raw_close(&b"HTTP/1.1 200 \xff\xfe\r\nContent-Length: 5\r\n\r\nhello"[..]),
        ),
        Case::new(
            "no-fields",
            "a first line, a blank line, a body",
            &[SUCCESS],
            |_| raw_close("HTTP/1.1 200 OK\r\n\r\nhello"),
        ),
        Case::new(
            "blank-lines-first",
            "blank lines before the head",
            &[SUCCESS],
            |_| {
                let mut all = b"\r\n\r\n\r\n".to_vec();
                all.extend(message(PAGE, "hello"));
                raw_close(all)
            },
        ),
    ]
}

fn endings() -> Vec<Case> {
    vec![
        Case::new(
            "empty-reply",
            "the end in place of an answer",
            &[PROTOCOL],
            |_| vec![Act::Close],
        ),
        Case::new(
            "reset",
            "a reset in place of an answer",
            &[PROTOCOL, CONNECT],
            |_| vec![Act::Reset],
        ),
        Case::new("half-head", "the end inside the head", &[PROTOCOL], |_| {
            raw_close("HTTP/1.1 200 OK\r\nContent-")
        }),
        Case::new(
            "half-word",
            "the end inside the first word",
            &[PROTOCOL],
            |_| raw_close("HTT"),
        ),
        Case::new(
            "reset-in-body",
            "a reset inside the body",
            &[TRUNCATED, PROTOCOL],
            |_| {
                vec![
                    Act::Send(OPEN.into()),
                    Act::Send(vec![b'x'; 4096]),
                    Act::Reset,
                ]
            },
        ),
        Case::new(
            "second-try",
            "the end once, then a page",
            &[SUCCESS],
            |ask: &Ask| match ask.before {
                0 => vec![Act::Close],
                _ => page("hello"),
            },
        ),
    ]
}
