//! Certificates and handshakes that are wrong, and what is no HTTP/2 behind a good one.

use crate::hostile::case::{Case, Door, Identity, class::*};
use crate::hostile::script::{Act, Ask, OPEN, PAGE, link, message, page, raw_close};

fn shown(name: &'static str, does: &'static str, identity: Identity) -> Case {
    let expect: &[&str] = match identity {
        Identity::Good => &[SUCCESS],
        _ => &[TLS],
    };
    Case::new(name, does, expect, |ask: &Ask| match ask.target.as_str() {
        "/" => page(link("/next")),
        _ => page("hello"),
    })
    .door(Door::Tls(identity))
}

fn bare(name: &'static str, does: &'static str, greet: fn(u64) -> Vec<Act>) -> Case {
    Case::new(name, does, &[TLS, PROTOCOL, CONNECT], |_| vec![Act::Close])
        .door(Door::Tls(Identity::None))
        .greet(greet)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = handshakes();
    cases.extend(second_version());
    cases
}

/// A frame of HTTP/2: its length in three bytes, kind, flags, stream, payload.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default();
    let mut frame = length.to_be_bytes().get(1..).unwrap_or_default().to_vec();
    frame.extend_from_slice(&[kind, flags, 0, 0, 0, stream]);
    frame.extend_from_slice(payload);
    frame
}

/// Empty settings, which every server says first.
fn settings() -> Act {
    Act::Send(frame(4, 0, 0, b""))
}

/// The client believes in HTTP/2 and gets this. A robots.txt that fails is asked for some times.
fn second_version() -> Vec<Case> {
    let two = |name, does, greet: fn(u64) -> Vec<Act>| {
        Case::new(name, does, &[PROTOCOL, TIMEOUT], |_| vec![Act::Close])
            .door(Door::Tls(Identity::Two))
            .greet(greet)
            .requests(0)
    };
    vec![
        two("two-noise", "noise in place of HTTP/2", |_| {
            raw_close(vec![0xa5; 4096])
        }),
        two("two-is-one", "HTTP/1 where HTTP/2 was agreed on", |_| {
            raw_close(message(PAGE, "hello"))
        }),
        two("two-closed", "the end in place of HTTP/2", |_| {
            vec![Act::Close]
        }),
        two("two-goodbye", "a goodbye before the first request", |_| {
            vec![settings(), Act::Send(frame(7, 0, 0, &[0; 8])), Act::Silence]
        }),
        two("two-fields", "half a megabyte of a head of HTTP/2", |_| {
            // :status 200, then one field of eight letters again and again, and never the last piece.
            let field = b"\x00\x04x-no\x08nonsense".repeat(500);
            vec![
                settings(),
                Act::Send(frame(1, 0, 1, b"\x88")),
                Act::Send(frame(9, 0, 1, &field).repeat(60)),
                Act::Silence,
            ]
        }),
        two("two-huge", "a frame of 16 MiB", |_| {
            vec![
                settings(),
                Act::Send(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01".to_vec()),
                Act::Send(vec![b'x'; 400_000]),
                Act::Silence,
            ]
        }),
        two("two-silent", "HTTP/2 agreed on, and then nothing", |_| {
            vec![Act::Silence]
        })
        .slow(),
        two("two-pings", "pings without end, and nobody reads", |_| {
            vec![
                settings(),
                Act::Forever(frame(6, 0, 0, b"whatever").repeat(200)),
            ]
        })
        .any_bytes()
        .slow(),
        two("two-settings", "settings without end", |_| {
            vec![Act::Forever(frame(4, 0, 0, b"").repeat(200))]
        })
        .any_bytes()
        .slow(),
    ]
}

fn handshakes() -> Vec<Case> {
    vec![
        shown("good", "nothing wrong", Identity::Good).leads_to("/next"),
        shown(
            "expired",
            "a certificate that has expired",
            Identity::Expired,
        )
        .never("/"),
        shown(
            "early",
            "a certificate that is not yet valid",
            Identity::Early,
        )
        .never("/"),
        shown(
            "other-name",
            "a certificate for somebody else",
            Identity::OtherName,
        )
        .never("/"),
        shown(
            "self-signed",
            "a certificate that its owner signed",
            Identity::SelfSigned,
        )
        .never("/"),
        shown(
            "unknown-issuer",
            "a certificate of an unknown issuer",
            Identity::UnknownIssuer,
        )
        .never("/"),
        Case::new(
            "no-goodbye",
            "the end without TLS saying so, after a whole page",
            &[SUCCESS],
            |_| vec![Act::Send(message(PAGE, "hello")), Act::Reset],
        )
        .door(Door::Tls(Identity::Good)),
        Case::new(
            "cut-short",
            "the end without TLS saying so, of a page of unknown length",
            &[TRUNCATED, PROTOCOL],
            |_| {
                vec![
                    Act::Send(OPEN.into()),
                    Act::Send(b"hello".into()),
                    Act::Reset,
                ]
            },
        )
        .door(Door::Tls(Identity::Good)),
        Case::new(
            "downgrade",
            "a redirect to the same host without TLS",
            &[FOLLOWED],
            |ask: &Ask| match ask.target.as_str() {
                "/" => {
                    let host = ask.authority.split(':').next().unwrap_or_default();
                    crate::hostile::script::moved(&format!("http://{host}:{}/next", ask.port))
                }
                _ => page("hello"),
            },
        )
        .leads_to("/next")
        .door(Door::Tls(Identity::Good)),
        bare("plain", "HTTP where TLS should be", |_| {
            raw_close(message(PAGE, "hello"))
        }),
        bare("closed", "the end in place of a handshake", |_| {
            vec![Act::Close]
        }),
        bare("reset", "a reset in place of a handshake", |_| {
            vec![Act::Reset]
        }),
        bare("noise", "noise in place of a handshake", |_| {
            raw_close(vec![0xa5; 4096])
        }),
        bare("alert", "a fatal alert: handshake_failure", |_| {
            raw_close(&b"\x15\x03\x03\x00\x02\x02\x28"[..])
        }),
        bare("old-alert", "a fatal alert: protocol_version", |_| {
            raw_close(&b"\x15\x03\x01\x00\x02\x02\x46"[..])
        }),
        bare("old-version", "a ServerHello of TLS 1.0", |_| {
            // Record, handshake, ServerHello, version 3.1, 32 random bytes, no session, AES128-SHA, no compression.
            let mut hello = b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01".to_vec();
            hello.extend_from_slice(&[7; 32]);
            hello.extend_from_slice(b"\x00\x00\x2f\x00");
            raw_close(hello)
        }),
        bare("huge-record", "a record of 64 KiB", |_| {
            let mut record = b"\x16\x03\x03\xff\xff".to_vec();
            record.extend(vec![2; 65_535]);
            raw_close(record)
        }),
        bare("warnings", "warning alerts without end", |_| {
            vec![Act::Forever(b"\x15\x03\x03\x00\x02\x01\x00".repeat(500))]
        }),
    ]
}
