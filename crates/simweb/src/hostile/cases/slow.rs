//! Slow: servers that take their time. Only the client's patience ends most of these.

use std::time::Duration;

use crate::hostile::case::{Case, Door, Identity, class::*};
use crate::hostile::script::{Act, Ask, CHUNKED, OPEN, PAGE, link, message, page};

pub(super) fn cases() -> Vec<Case> {
    let mut all: Vec<Case> = vec![
        Case::new(
            "never",
            "takes the request and says nothing",
            &[TIMEOUT],
            |_| vec![Act::Silence],
        ),
        Case::new(
            "head-drip",
            "a head byte by byte, without end",
            &[TIMEOUT],
            |_| {
                vec![
                    Act::Send(b"HTTP/1.1 200 OK\r\nX-Slow: ".into()),
                    Act::Drip(b"x".into()),
                ]
            },
        ),
        Case::new(
            "head-stall",
            "half a head and nothing more",
            &[TIMEOUT],
            |_| {
                vec![
                    Act::Send(b"HTTP/1.1 200 OK\r\nContent-".into()),
                    Act::Silence,
                ]
            },
        ),
        Case::new(
            "lines-drip",
            "header lines one by one, without end",
            &[TIMEOUT],
            |_| {
                vec![
                    Act::Send(b"HTTP/1.1 200 OK\r\n".into()),
                    Act::Drip(b"A: b\r\n".into()),
                ]
            },
        ),
        Case::new(
            "blank-drip",
            "blank lines in place of a head",
            &[TIMEOUT, PROTOCOL],
            |_| vec![Act::Drip(b"\r\n".into())],
        ),
        Case::new(
            "interim-drip",
            "102 Processing again and again",
            &[TIMEOUT, PROTOCOL],
            |_| vec![Act::Drip(b"HTTP/1.1 102 Processing\r\n\r\n".into())],
        ),
        Case::new(
            "body-drip",
            "a body byte by byte, without end",
            &[TRUNCATED],
            |_| vec![Act::Send(OPEN.into()), Act::Drip(b"words ".into())],
        ),
        Case::new(
            "body-stall",
            "half a body and nothing more",
            &[TRUNCATED],
            |_| {
                vec![
                    Act::Send(format!("{PAGE}\r\nContent-Length: 1000\r\n\r\nhello").into()),
                    Act::Silence,
                ]
            },
        ),
        Case::new("body-never", "a head and no body", &[TIMEOUT], |_| {
            vec![
                Act::Send(format!("{PAGE}\r\nContent-Length: 1000\r\n\r\n").into()),
                Act::Silence,
            ]
        }),
        Case::new(
            "chunk-size-drip",
            "the size of a chunk, digit by digit",
            &[TIMEOUT, TRUNCATED, PROTOCOL],
            |_| vec![Act::Send(CHUNKED.into()), Act::Drip(b"0".into())],
        ),
        Case::new(
            "chunk-drip",
            "chunks of one byte, one by one",
            &[TRUNCATED],
            |_| vec![Act::Send(CHUNKED.into()), Act::Drip(b"1\r\nx\r\n".into())],
        ),
        Case::new(
            "trailer-drip",
            "a trailer without end",
            &[TRUNCATED],
            |_| {
                vec![
                    Act::Send(CHUNKED.into()),
                    Act::Send(b"5\r\nhello\r\n0\r\n".into()),
                    Act::Drip(b"T: 1\r\n".into()),
                ]
            },
        ),
        Case::new(
            "error-stall",
            "404 whose body never comes",
            &[HTTP_ERROR, TIMEOUT],
            |_| {
                vec![
                    Act::Send(b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\n".into()),
                    Act::Silence,
                ]
            },
        ),
        Case::new(
            "redirect-stall",
            "a redirect whose body never comes",
            &[FOLLOWED],
            |ask: &Ask| match ask.target.as_str() {
                "/" => vec![
                    Act::Send(
                        b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 9\r\n\r\n"
                            .into(),
                    ),
                    Act::Silence,
                ],
                _ => page("hello"),
            },
        )
        .leads_to("/next"),
        Case::new(
            "gzip-stall",
            "the first bytes of a gzip body",
            &[TIMEOUT, TRUNCATED, DECODE],
            |_| {
                let head =
                    format!("{PAGE}\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n");
                vec![
                    Act::Send(head.into()),
                    Act::Send(vec![0x1f, 0x8b, 8, 0]),
                    Act::Silence,
                ]
            },
        ),
        Case::new(
            "accepts-only",
            "takes the connection and reads nothing",
            &[TIMEOUT],
            |_| vec![],
        )
        .greet(|_| vec![Act::Silence]),
        Case::new(
            "robots-never",
            "no answer for robots.txt",
            &[TIMEOUT],
            |_| page("hello"),
        )
        .robots(|_| vec![Act::Silence]),
        Case::new(
            "robots-drip",
            "robots.txt byte by byte",
            &[TIMEOUT, SUCCESS, DENIED_ROBOTS],
            |_| page("hello"),
        )
        .robots(|_| vec![Act::Send(OPEN.into()), Act::Drip(b"Disallow: /\n".into())]),
        Case::new(
            "handshake-stall",
            "takes the greeting of TLS and says nothing",
            &[TIMEOUT],
            |_| vec![],
        )
        .door(Door::Tls(Identity::None))
        .greet(|_| vec![Act::Silence]),
    ]
    .into_iter()
    .map(Case::slow)
    .collect();
    all.push(
        Case::new(
            "slow-then-fast",
            "a pause, then a page at once",
            &[SUCCESS],
            |_| {
                vec![
                    Act::Pause(Duration::from_millis(700)),
                    Act::Send(message(PAGE, link("/next"))),
                ]
            },
        )
        .leads_to("/next"),
    );
    all
}
