//! Copies are near each other, other pages are not, and nothing takes long.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers outside the test functions may panic too"
)]

use std::fmt::Write as _;

use http::HeaderMap;
use orbweaver_extract::{Page, fingerprint};
use orbweaver_model::{CrawlUrl, Limits, LinkKind};
use proptest::prelude::*;

/// Up to this distance pages count as copies.
const NEAR: u32 = 3;

fn of(url: &str, html: &[u8]) -> Option<u64> {
    fingerprint(&Page {
        url: &CrawlUrl::from_canonical(url).unwrap(),
        headers: &HeaderMap::new(),
        body: html,
        limits: &Limits::default(),
        agent: "orbweaver",
        kind: LinkKind::A,
    })
}

fn distance(one: &str, other: &str) -> u32 {
    let print = |html: &str| of("http://h/", html.as_bytes()).unwrap();
    (print(one) ^ print(other)).count_ones()
}

/// Words drawn by a small generator, so that two texts with other seeds share none but by chance.
fn words(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let syllables = ["ka", "ro", "mi", "te", "sul", "ben", "dor", "af"];
        for nth in 0..3 {
            text.push_str(syllables[(state >> (20 + nth * 3) & 7) as usize]);
        }
        text.push(' ');
    }
    text
}

fn page(body: &str) -> String {
    let menu = words(1, 40);
    format!(
        "<html><head><title>A site</title></head><body><nav>{menu}</nav><p>{body}</p></body></html>"
    )
}

#[test]
fn copies_are_near() {
    let text = words(2, 300);
    let original = page(&text);
    for (name, copy) in [
        ("the same", original.clone()),
        ("a date", page(&format!("{text} 17 June"))),
        ("a view counter", page(&format!("{text} <b>1234567</b> 89"))),
        (
            "a script",
            page(&format!(
                "{text}<script>var a = '{}'</script>",
                words(9, 100)
            )),
        ),
        (
            "a style",
            page(&format!("<style>{}</style>{text}", words(9, 100))),
        ),
        (
            "a comment",
            page(&format!("{text}<!-- {} -->", words(9, 100))),
        ),
        (
            "links",
            page(&text.replacen(' ', " <a href='/x?sid=1234'>", 50)),
        ),
        ("a path", page(&format!("/a/b/c?d=e {text}"))),
    ] {
        assert!(
            distance(&original, &copy) <= NEAR,
            "{name}: {}",
            distance(&original, &copy)
        );
    }
}

#[test]
fn other_pages_are_far() {
    for n in 0..200 {
        let (one, other) = (page(&words(2 * n + 10, 300)), page(&words(2 * n + 11, 300)));
        assert!(distance(&one, &other) >= 12, "{}", distance(&one, &other));
    }
}

/// A short text on a page with a long menu, still: one word in ten of its own.
#[test]
fn a_little_text_of_its_own_makes_a_page() {
    let menu = words(1, 400);
    let far = (0..100).filter(|n| {
        let with = |seed| format!("{menu} {}", words(seed, 40));
        distance(&with(2 * n + 10), &with(2 * n + 11)) > NEAR
    });
    assert!(far.count() >= 95);
}

/// What stands on every list must not drown what is listed.
#[test]
fn lists_of_other_things_are_far_though_each_says_add_to_basket() {
    let list = |seed: u64| {
        let mut html = String::new();
        for n in 0..50 {
            let name = words(seed * 100 + n, 2);
            write!(
                html,
                "<li>{name} <button>Add to basket</button> <i>in stock now</i>"
            )
            .unwrap();
        }
        html
    };
    for n in 0..50 {
        let distance = distance(&list(2 * n + 10), &list(2 * n + 11));
        assert!(distance >= 12, "{distance}");
    }
}

#[test]
fn what_a_page_repeats_of_its_url_says_nothing() {
    let text = words(3, 60);
    let at = |n: u64| {
        let html = format!("<h1>Page {n}</h1>{text}<p>Page {n} of results, sid-{n}");
        of(&format!("http://h/list?page={n}"), html.as_bytes())
    };
    assert_eq!(at(17), at(1_234_567));
    let elsewhere = of(
        "http://h/list",
        format!("<h1>Page 17</h1>{text}").as_bytes(),
    );
    assert_ne!(elsewhere, at(17));
}

#[test]
fn tables_of_other_numbers_are_other_pages() {
    let table = |seed: u64| {
        let mut html = "<h1>Station readings by hour and day</h1>".to_owned();
        for n in 0..100 {
            write!(
                html,
                "<tr><td>hour<td>{}",
                (seed * 7919 + n * 104_729) % 99_991
            )
            .unwrap();
        }
        html
    };
    for n in 0..50 {
        assert!(distance(&table(n + 1), &table(n + 2)) >= 12);
    }
}

#[test]
fn writing_without_spaces() {
    let text: String = (0..600_u32)
        .map(|n| char::from_u32(0x4e00 + n * 7919 % 5000).unwrap())
        .collect();
    let other: String = text.chars().rev().collect();
    let changed = text.replacen('丁', "万", 1) + "。";
    assert!(distance(&text, &changed) <= NEAR);
    assert!(distance(&text, &other) >= 12);
}

#[test]
fn no_text_no_fingerprint() {
    for html in [
        "",
        "   ",
        "<p></p>",
        "<script>x y z w</script>",
        "<!-- a b c d -->",
        "<",
        "<p",
    ] {
        assert_eq!(of("http://h/", html.as_bytes()), None, "{html}");
    }
    assert_ne!(of("http://h/", b"one"), None);
    assert_ne!(of("http://h/", b"one"), of("http://h/", b"two"));
    // A document that ends in a tag has shown its text all the same.
    assert_eq!(
        of("http://h/", b"one two three<a hr"),
        of("http://h/", b"one two three")
    );
}

#[test]
fn only_so_much_is_read() {
    let long = words(4, 6000);
    assert!(long.len() > 32 << 10);
    assert_eq!(distance(&long, &format!("{long} and more of it")), 0);
    let late = format!("<script>{}</script>{}", " ".repeat(200 << 10), words(5, 50));
    assert_eq!(distance(&late, &words(5, 50)), 0);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        of("http://h/a1/2b?c=3", &bytes);
    }
}
