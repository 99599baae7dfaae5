//! Retry-After in all its forms, and cookies that are forced on the client.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, PAGE, link, message, page, raw, status};

fn busy(code: u16, after: &str) -> Vec<Act> {
    status(code, &format!("Retry-After: {after}\r\n"))
}

pub(super) fn cases() -> Vec<Case> {
    let case = |name, does, expect, script| Case::new(name, does, expect, script);
    vec![
        case("absurd", "in 10^20 seconds", &[DEFERRED], |_| {
            busy(503, "100000000000000000000")
        })
        .requests(1),
        case("absurd-429", "429, in 10^9 seconds", &[DEFERRED], |_| {
            busy(429, "1000000000")
        })
        .requests(1),
        case("future", "a date in the year 9999", &[DEFERRED], |_| {
            busy(503, "Fri, 31 Dec 9999 23:59:59 GMT")
        })
        .requests(1),
        case("past", "a date in 1970", &[HTTP_ERROR], |_| {
            busy(503, "Thu, 01 Jan 1970 00:00:00 GMT")
        })
        .requests(6),
        case("negative", "in -5 seconds", &[HTTP_ERROR], |_| {
            busy(429, "-5")
        })
        .requests(6),
        case("zero", "in 0 seconds", &[HTTP_ERROR], |_| busy(429, "0")).requests(6),
        case("word", "soon", &[HTTP_ERROR], |_| busy(503, "soon")).requests(6),
        case("fraction", "in 0.5 seconds", &[HTTP_ERROR], |_| {
            busy(503, "0.5")
        })
        .requests(6),
        case("bytes", "letters beyond ASCII", &[HTTP_ERROR], |_| {
            busy(503, "\u{fc}")
        })
        .requests(6),
        case("absent", "503 and nothing else", &[HTTP_ERROR], |_| {
            status(503, "")
        })
        .requests(6),
        case("twice", "two of them", &[HTTP_ERROR, DEFERRED], |_| {
            busy(503, "0\r\nRetry-After: 99999")
        })
        .requests(6),
        case(
            "passes",
            "429 once, then a page",
            &[SUCCESS],
            |ask: &Ask| match ask.before {
                0 => busy(429, "0"),
                _ => page("hello"),
            },
        )
        .requests(2),
        case("good", "a page with a Retry-After", &[SUCCESS], |_| {
            raw(message(&format!("{PAGE}\r\nRetry-After: 99999"), "hello"))
        })
        .requests(1),
        case("not-found", "404 with a Retry-After", &[HTTP_ERROR], |_| {
            busy(404, "0")
        })
        .requests(1),
        case(
            "redirect",
            "302 with a Retry-After",
            &[FOLLOWED],
            |ask: &Ask| match ask.target.as_str() {
                "/" => status(302, "Location: /next\r\nRetry-After: 99999\r\n"),
                _ => page("hello"),
            },
        )
        .leads_to("/next"),
        case("gone", "410", &[HTTP_ERROR], |_| status(410, "")).requests(1),
        case(
            "unauthorized",
            "401 with a challenge",
            &[HTTP_ERROR],
            |_| status(401, "WWW-Authenticate: Basic realm=x\r\n"),
        )
        .requests(1),
        case("proxy", "407 with a challenge", &[HTTP_ERROR], |_| {
            status(407, "Proxy-Authenticate: Basic realm=x\r\n")
        })
        .requests(1),
        case("legal", "451", &[HTTP_ERROR], |_| status(451, "")).requests(1),
    ]
}

pub(super) fn cookies() -> Vec<Case> {
    vec![
        Case::new(
            "wall",
            "a redirect to itself until a cookie comes",
            &[REDIRECT_LIMIT],
            |_| status(302, "Location: /\r\nSet-Cookie: seen=1\r\n"),
        )
        .requests(1),
        Case::new(
            "wall-chain",
            "a redirect to a check and back",
            &[REDIRECT_LIMIT],
            |ask: &Ask| match ask.target.as_str() {
                "/" => status(302, "Location: /check\r\nSet-Cookie: seen=1\r\n"),
                _ => status(302, "Location: /\r\nSet-Cookie: seen=2\r\n"),
            },
        )
        .requests(2),
        Case::new("many", "two hundred cookies", &[SUCCESS], |_| {
            raw(message(
                &format!(
                    "{PAGE}\r\n{}X-End: 1",
                    "Set-Cookie: a=b; Path=/\r\n".repeat(200)
                ),
                "hello",
            ))
        }),
        Case::new("large", "a cookie of 40 KB", &[SUCCESS], |_| {
            raw(message(
                &format!("{PAGE}\r\nSet-Cookie: a={}", "b".repeat(40_000)),
                link("/next"),
            ))
        })
        .leads_to("/next"),
        Case::new("bytes", "a cookie of odd bytes", &[SUCCESS], |_| {
            raw(message(
                &format!("{PAGE}\r\nSet-Cookie: \u{fc}=;;;=; Domain=.test; Max-Age=-1"),
                link("/next"),
            ))
        })
        .leads_to("/next"),
        Case::new("super", "a cookie for everybody", &[SUCCESS], |_| {
            raw(message(
                &format!("{PAGE}\r\nSet-Cookie: all=1; Domain=127.0.0.0"),
                link("/next"),
            ))
        })
        .leads_to("/next"),
    ]
}
