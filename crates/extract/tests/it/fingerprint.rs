//! Pages that say the same have one fingerprint, pages with a word or a picture of their own another.

use std::collections::HashSet;
use std::fmt::Write as _;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use orbweaver_extract::{Page, fingerprint, read};
use orbweaver_model::{CrawlUrl, Fingerprint, Limits, LinkKind};
use orbweaver_testkit::Random;
use proptest::prelude::*;

fn of(url: &str, html: &[u8]) -> Fingerprint {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    let page = Page {
        url: &CrawlUrl::from_canonical(url).unwrap(),
        headers: &headers,
        body: html,
        limits: &Limits::default(),
        agent: "orbweaver",
        kind: LinkKind::A,
    };
    fingerprint(&page, &read(&page).links)
}

fn words_of(html: &str) -> u64 {
    of("http://h/", html.as_bytes()).words
}

/// Random words, so that two texts with other seeds share none but by chance.
fn words(seed: u64, count: usize) -> String {
    const SYLLABLES: [&str; 8] = ["ka", "ro", "mi", "te", "sul", "ben", "dor", "af"];
    let mut random = Random::new(seed);
    let mut text = String::new();
    for _ in 0..count {
        for _ in 0..3 {
            text.push_str(SYLLABLES[random.index(SYLLABLES.len())]);
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
fn copies_are_the_same() {
    let text = words(2, 300);
    let original = page(&text);
    for (name, copy) in [
        ("the same", original.clone()),
        ("a time", page(&format!("{text} 12:03:44"))),
        ("a view counter", page(&format!("{text} <b>1234567</b> 89"))),
        (
            "the id of a request",
            page(&format!("{text} 7f3a9c01be52d4e8")),
        ),
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
    ] {
        assert_eq!(words_of(&original), words_of(&copy), "{name}");
    }
}

/// A frame of a thousand words, and one of its own: the page is another page, however many there are.
#[test]
fn one_word_of_its_own_makes_a_page() {
    let frame = words(1, 1000);
    for own in [1, 2, 5, 12] {
        let pages: HashSet<u64> = (0..2000_u64)
            .map(|n| {
                let text = match own {
                    // The generator has few words; a word of its own is one that no other page has.
                    1 => {
                        format!("w{}", (b'a' + (n % 26) as u8) as char).repeat(1 + n as usize / 26)
                    }
                    _ => words(n * 31 + 7, own),
                };
                words_of(&format!("{frame}<p>{text}</p>{frame}"))
            })
            .collect();
        let least = if own == 2 { 1900 } else { 1990 };
        assert!(pages.len() >= least, "{own}: {}", pages.len());
    }
}

#[test]
fn a_frame_of_a_megabyte_hides_nothing() {
    let frame = words(1, 150_000);
    assert!(frame.len() > 1 << 20);
    assert_ne!(
        words_of(&format!("{frame}<p>a red chair")),
        words_of(&format!("{frame}<p>a blue chair"))
    );
}

#[test]
fn pictures_files_and_data_are_content_and_links_to_pages_are_not() {
    let with = |own: &str| words_of(&page(&format!("prev next {own}")));
    let plain = with("");
    for own in [
        "<img src=/p/17.jpg>",
        "<img src='/show.php?id=17'>",
        "<img srcset='/p/17.jpg 1x'>",
        "<video src=17.webm></video>",
        "<a href=/p/17.JPG></a>",
        "<a href='/files/17.pdf?download'></a>",
        "<div style='background:url(17.png)'></div>",
        "<script type='application/json'>{\"name\": \"a red chair\"}</script>",
    ] {
        assert_ne!(plain, with(own), "{own}");
        assert_ne!(
            with(own),
            with(&own.replace("17", "18").replace("red", "blue")),
            "{own}"
        );
    }
    assert_eq!(
        plain,
        with("<a href=/photo/18.html></a><a href=/x/2031.06></a>")
    );
    // What keeps caches from answering is no picture of its own.
    assert_eq!(
        with("<img src='/pixel.gif?t=1699999999'>"),
        with("<img src='/pixel.gif?t=1700000001'>")
    );
    assert_ne!(
        with("<img src='/show?hash=7f3a9c01be52d4e8'>"),
        with("<img src='/show?hash=8e3a9c01be52d4e9'>")
    );
}

#[test]
fn what_a_page_repeats_of_its_url_says_nothing() {
    let text = words(3, 60);
    let at = |n: u64| {
        let html = format!("<h1>Page {n}</h1>{text}<p>Page {n} of results, sid-{n}");
        of(&format!("http://h/list?page={n}"), html.as_bytes())
    };
    assert_eq!(at(17), at(1_234_567));
    let in_folder = |path: &str| {
        let html =
            format!("<h1>Index of {path}</h1><a href=left>left/</a> <a href=right>right/</a>");
        of(&format!("http://h{path}"), html.as_bytes())
    };
    assert_eq!(
        in_folder("/in/left/right/left/"),
        in_folder("/in/right/right/left/left/left/right/left/left/left/right/")
    );
    // But a listing of other folders says something else.
    let listing = |name: &str| {
        let html = format!("<h1>Index of /pub</h1><a href={name}/>{name}/</a>");
        of("http://h/pub/", html.as_bytes())
    };
    assert_ne!(listing("linux-five"), listing("linux-six"));
}

#[test]
fn numbers_are_kept_apart() {
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
        of("http://h/", html.as_bytes())
    };
    for n in 0..50 {
        let (one, other) = (table(n + 1), table(n + 2));
        assert_eq!(one.words, other.words);
        assert!(one.numbers_beyond(&other.numbers) >= 30);
        assert_eq!(one.numbers_beyond(&one.numbers), 0);
    }
    let month = |days: u32| {
        let days: String = (1..=days).map(|day| format!("<td>{day}")).collect();
        of("http://h/", format!("Mo Tu We {days}").as_bytes())
    };
    assert!(month(31).numbers_beyond(&month(28).numbers) <= 3);
}

#[test]
fn writing_without_spaces() {
    let text: String = (0..600_u32)
        .map(|n| char::from_u32(0x4e00 + n * 7919 % 5000).unwrap())
        .collect();
    let changed = text.chars().nth(300).unwrap();
    let other = text.replacen(changed, "。", 1);
    assert_eq!(words_of(&text), words_of(&text));
    assert_ne!(words_of(&text), words_of(&other));
}

#[test]
fn short_texts_and_none() {
    for html in [
        "",
        "   ",
        "<p></p>",
        "<script>x y z w</script>",
        "<!-- a b c d -->",
        "<",
        "<p",
    ] {
        assert_eq!(
            of("http://h/", html.as_bytes()),
            Fingerprint::default(),
            "{html}"
        );
    }
    let texts = ["one", "two", "one two", "two one", "one two three"];
    let different: HashSet<u64> = texts.iter().map(|text| words_of(text)).collect();
    assert_eq!(different.len(), texts.len());
    // The same list with more of the same entries is the same list.
    assert_eq!(
        words_of(&"read more ".repeat(10)),
        words_of(&"read more ".repeat(11))
    );
    // A document that ends in a tag has shown its text all the same.
    assert_eq!(words_of("one two three<a hr"), words_of("one two three"));
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        of("http://h/a1/2b?c=3", &bytes);
    }
}
