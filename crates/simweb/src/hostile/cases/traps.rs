//! Traps: sites without end. The simulated web has kinder ones; here a budget must end it.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Ask, link, message, moved, page, raw};

/// More than the pages that a crawl of this web may ask of one host, with their repetitions.
const BOUNDED: u64 = 150;

pub(super) fn cases() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script).requests(BOUNDED);
    vec![
        case("deeper", "each page links to a folder in itself", |_| {
            page(link("deeper/"))
        }),
        case(
            "longer-query",
            "each page links to a longer query",
            |ask: &Ask| {
                page(link(&format!(
                    "{}{}x=1",
                    ask.target,
                    if ask.target.contains('?') { "&" } else { "?" }
                )))
            },
        ),
        case("numbers", "each page links to the next ten", |ask: &Ask| {
            let next = |n| link(&format!("/n/{}", ask.number() * 10 + n));
            page((1..=10).map(next).collect::<String>())
        }),
        case("sessions", "each page gives a new session", |ask: &Ask| {
            page(link(&format!(
                "/?sid={:032x}",
                u128::from(ask.number() + ask.before + 1)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
            )))
        }),
        case(
            "relative",
            "a relative link that doubles the path",
            |ask: &Ask| {
                let path = ask.target.trim_matches('/');
                page(link(&format!("/a/{path}/{path}/")))
            },
        ),
        case(
            "case",
            "each page links to itself in other letters",
            |ask: &Ask| {
                let number = ask.number() + 1;
                page(link(&format!("/P/p/{number}")) + &link(&format!("/p/P/{number}")))
            },
        ),
        case("fragments", "ten thousand fragments of one page", |_| {
            page(
                (0..5000)
                    .map(|n| link(&format!("#{n}")))
                    .collect::<String>(),
            )
        })
        .requests(1),
        case(
            "redirecting",
            "each page redirects to the next and links",
            |ask: &Ask| {
                let number = ask.number();
                if number % 2 == 1 {
                    moved(&format!("/t/{}", number + 1))
                } else {
                    page(link(&format!("/t/{}", number + 1)))
                }
            },
        ),
        case("wide", "pages of a thousand links", |_| {
            page(
                (0..1000)
                    .map(|n| link(&format!("/w/{n}")))
                    .collect::<String>(),
            )
        }),
        Case::new(
            "soft-errors",
            "404 pages that link to more of them",
            &[HTTP_ERROR],
            |ask: &Ask| {
                raw(message(
                    "HTTP/1.1 404 No\r\nContent-Type: text/html",
                    link(&format!("/e/{}", ask.number() + 1)),
                ))
            },
        )
        .requests(BOUNDED),
    ]
}
