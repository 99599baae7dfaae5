//! Connections that are used again: what one answer leaves behind must not become the next.

use std::time::Duration;

use crate::hostile::case::{Case, Door, class::*};
use crate::hostile::script::{Act, Ask, PAGE, link, message, page, raw};

/// An answer that must never be taken for one.
fn poison() -> Vec<u8> {
    message(PAGE, link("/poison"))
}

fn start() -> Vec<u8> {
    message(PAGE, link("/next"))
}

/// What is done for `/`; the rest is honest.
fn root(ask: &Ask, acts: Vec<Act>) -> Vec<Act> {
    match ask.target.as_str() {
        "/" => acts,
        _ => page("hello"),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let case = |name, does, script| {
        Case::new(name, does, &[SUCCESS], script)
            .leads_to("/next")
            .never("/poison")
    };
    vec![
        case(
            "second-answer",
            "two answers to one request",
            |ask: &Ask| root(ask, vec![Act::Send([start(), poison()].concat())]),
        ),
        case("flood-behind", "second answers without end", |ask: &Ask| {
            root(ask, vec![Act::Send(start()), Act::Forever(poison())])
        }),
        case(
            "longer-than-said",
            "more body than the length says",
            |ask: &Ask| {
                let text = link("/next");
                let said = format!("{PAGE}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
                root(ask, vec![Act::Send([said.into_bytes(), poison()].concat())])
            },
        ),
        case("two-lengths", "chunks and a shorter length", |ask: &Ask| {
            let text = link("/next");
            let head = format!("{PAGE}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
            root(
                ask,
                raw(format!("{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len())),
            )
        }),
        case("promise", "the end after a promise to stay", |ask: &Ask| {
            root(ask, vec![Act::Send(start()), Act::Close])
        }),
        case(
            "reset-after",
            "a reset after a whole answer",
            |ask: &Ask| {
                root(
                    ask,
                    vec![
                        Act::Send(message(PAGE, link("/next"))),
                        Act::Pause(Duration::from_millis(20)),
                        Act::Reset,
                    ],
                )
            },
        ),
        case(
            "interim-behind",
            "100 Continue after the answer",
            |ask: &Ask| {
                root(
                    ask,
                    vec![Act::Send(
                        [start(), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()].concat(),
                    )],
                )
            },
        ),
        case(
            "line-break-behind",
            "a line break after the answer",
            |ask: &Ask| root(ask, vec![Act::Send([start(), b"\r\n".to_vec()].concat())]),
        ),
        case(
            "second-request",
            "the end on each connection's second request",
            |ask: &Ask| match ask.turn {
                0 | 1 if ask.target == "/" => raw(start()),
                0 => page("hello"),
                _ => vec![Act::Close],
            },
        ),
        Case::new(
            "before-request",
            "an answer before there is a request",
            &[SUCCESS, HTTP_ERROR, PROTOCOL, CONNECT],
            |ask: &Ask| root(ask, raw(start())),
        )
        // Nobody can tell it from an answer that came quickly, so what it says may be believed; and the answer to
        // robots.txt, 404, that comes behind it may be taken for that to the next request.
        .greet(|_| vec![Act::Send(poison())]),
        Case::new("refused", "nobody listens", &[CONNECT], |_| {
            vec![Act::Close]
        })
        .door(Door::Refused)
        .requests(0),
        Case::new(
            "hang-up",
            "the end of each connection at once",
            &[PROTOCOL, CONNECT],
            |_| vec![],
        )
        .greet(|_| vec![Act::Close])
        .requests(0),
        Case::new(
            "hang-up-reset",
            "a reset of each connection at once",
            &[PROTOCOL, CONNECT],
            |_| vec![],
        )
        .greet(|_| vec![Act::Reset])
        .requests(0),
    ]
}
