//! Tests of the canonical form: a table, and the short way held to the long one.

use proptest::prelude::*;
use url::Url;

use super::*;

fn canonical(text: &str) -> Result<String, CanonicalError> {
    Canonicalizer::default()
        .parse(text)
        .map(|url| url.as_str().to_owned())
}

#[test]
fn absolute_urls() {
    for (text, expected) in [
        ("http://example.org", "http://example.org/"),
        ("HTTP://EXAMPLE.org:80/A", "http://example.org/A"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org/#frag", "http://example.org/"),
        ("http://example.org/a#b#c", "http://example.org/a"),
        ("http://user:pass@example.org/x", "http://example.org/x"),
        ("http://u@example.org:81/x", "http://example.org:81/x"),
        ("http://example.org./x", "http://example.org/x"),
        ("http://example.org.:8080/x", "http://example.org:8080/x"),
        (
            "http://127.66.0.1.:18080/dot",
            "http://127.66.0.1:18080/dot",
        ),
        ("http://0x7f.66.0.1:18080/", "http://127.66.0.1:18080/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"),
        (
            "http://b\u{fc}cher.example/",
            "http://xn--bcher-kva.example/",
        ),
        ("http://example.org/a/../b/./c", "http://example.org/b/c"),
        (
            "http://example.org/a/%2e%2E/b/%2e/c",
            "http://example.org/b/c",
        ),
        (
            "http://example.org/../../etc/passwd",
            "http://example.org/etc/passwd",
        ),
        (
            "http://example.org/..%2f..%2fx",
            "http://example.org/..%2F..%2Fx",
        ),
        ("http://example.org/%7euser", "http://example.org/%7Euser"),
        ("http://example.org/~user", "http://example.org/~user"),
        ("http://example.org/%zz%f", "http://example.org/%zz%f"),
        (
            "http://example.org/%c3%bc?q=%e4",
            "http://example.org/%C3%BC?q=%E4",
        ),
        (
            "http://example.org/\u{fc}?\u{fc}",
            "http://example.org/%C3%BC?%C3%BC",
        ),
        (
            "http://example.org/a|b^c`d{e}",
            "http://example.org/a%7Cb%5Ec%60d%7Be%7D",
        ),
        (
            "http://example.org/?a|b^c`d{e}\\",
            "http://example.org/?a%7Cb%5Ec%60d%7Be%7D%5C",
        ),
        (
            "http://example.org/\"q\"<x>",
            "http://example.org/%22q%22%3Cx%3E",
        ),
        (
            "http://example.org/a[]?b[]=c",
            "http://example.org/a[]?b[]=c",
        ),
        ("http://example.org/a'b?a'b", "http://example.org/a'b?a%27b"),
        ("http://example.org/a?", "http://example.org/a?"),
        ("http://example.org/a??b?c", "http://example.org/a??b?c"),
        ("http:\\\\example.org\\a\\b", "http://example.org/a/b"),
        ("http:///example.org/x", "http://example.org/x"),
        ("  http://example.org/a\tb\nc  ", "http://example.org/abc"),
        ("http://example.org/a b", "http://example.org/a%20b"),
        ("http://example.org/\0x", "http://example.org/%00x"),
        ("http://example.org//a//b", "http://example.org//a//b"),
        (
            "http://example.org/;jsessionid=1?sid=2",
            "http://example.org/;jsessionid=1?sid=2",
        ),
        ("http://example.org/@user", "http://example.org/@user"),
        ("http://a_b.example.org/", "http://a_b.example.org/"),
    ] {
        assert_eq!(canonical(text).as_deref(), Ok(expected), "{text:?}");
        assert_eq!(
            canonical(expected).as_deref(),
            Ok(expected),
            "again: {expected:?}"
        );
    }
}

#[test]
fn what_cannot_be_crawled() {
    let long_label = format!("http://{}.example/", "h".repeat(64));
    let long_name = format!("http://a{}.example/", ".a".repeat(200));
    let long_path = format!("http://example.org/{}", "L".repeat(65_536));
    let over = format!("http://example.org/{}", "L".repeat(8192));
    for (text, error) in [
        ("mailto:a@b.c", CanonicalError::Scheme),
        ("javascript:void(0)", CanonicalError::Scheme),
        ("ftp://example.org/", CanonicalError::Scheme),
        ("data:,x", CanonicalError::Scheme),
        ("http://example.org:0/", CanonicalError::Port),
        ("http://example.org:99999/", CanonicalError::Port),
        ("http://example.org:x/", CanonicalError::Port),
        ("http://", CanonicalError::Host),
        ("http://[::1", CanonicalError::Host),
        ("http://[fe80::1%25lo]/", CanonicalError::Host),
        ("http://1.2.3.4.5/", CanonicalError::Host),
        ("http://a..example/", CanonicalError::Host),
        ("http://./", CanonicalError::Host),
        ("http://exa{mple.org/", CanonicalError::Host),
        ("http://a b.example/", CanonicalError::Host),
        ("http://xn--a.example/", CanonicalError::Host),
        (&long_label, CanonicalError::Host),
        (&long_name, CanonicalError::Host),
        ("/relative", CanonicalError::Relative),
        ("", CanonicalError::Relative),
        (&long_path, CanonicalError::TooLong),
        (&over, CanonicalError::TooLong),
    ] {
        assert_eq!(canonical(text), Err(error), "{text:.60}");
    }
}

#[test]
fn hrefs_against_a_base() {
    let base = Url::parse("https://example.org:8443/dir/page.html?q=1").unwrap();
    for (href, expected) in [
        ("/x", "https://example.org:8443/x"),
        ("x.html", "https://example.org:8443/dir/x.html"),
        ("x/y?z#f", "https://example.org:8443/dir/x/y?z"),
        ("../x", "https://example.org:8443/x"),
        ("?a", "https://example.org:8443/dir/page.html?a"),
        ("", "https://example.org:8443/dir/page.html?q=1"),
        ("#f", "https://example.org:8443/dir/page.html?q=1"),
        ("//other.example/x", "https://other.example/x"),
        ("///other.example/x", "https://other.example/x"),
        (" \\/\\/other.example//x", "https://other.example//x"),
        ("http://other.example/x#y", "http://other.example/x"),
        ("http://other.example", "http://other.example/"),
        ("https:x", "https://example.org:8443/dir/x"),
        ("/a/%2e%2e/b", "https://example.org:8443/b"),
        ("/.x/y", "https://example.org:8443/.x/y"),
    ] {
        let url = Canonicalizer::default().resolve(&base, href, None);
        assert_eq!(url.unwrap().as_str(), expected, "{href:?}");
    }
}

#[test]
fn queries_are_in_the_encoding_of_the_document() {
    fn latin(text: &str) -> Cow<'_, [u8]> {
        let byte = |c: char| u8::try_from(c).unwrap_or(b'?');
        Cow::Owned(text.chars().map(byte).collect())
    }
    let base = Url::parse("http://example.org/").unwrap();
    let url = Canonicalizer::default()
        .resolve(&base, "/\u{fc}?q=\u{fc}", Some(&latin))
        .unwrap();
    assert_eq!(url.as_str(), "http://example.org/%C3%BC?q=%FC");
}

#[test]
fn session_ids_go_only_when_asked() {
    let canonicalizer = Canonicalizer::new(CanonicalOptions {
        strip_session_ids: true,
        ..CanonicalOptions::default()
    });
    for (text, expected) in [
        ("http://e.org/x;jsessionid=1A2B", "http://e.org/x"),
        (
            "http://e.org/x;a=b;JSESSIONID=1?c=d",
            "http://e.org/x;a=b?c=d",
        ),
        ("http://e.org/x;jsessionid=1/y", "http://e.org/x/y"),
        ("http://e.org/?PHPSESSID=abc", "http://e.org/"),
        ("http://e.org/?a=1&sid=2&b=3", "http://e.org/?a=1&b=3"),
        ("http://e.org/?ASPSESSIONIDQQ=1&a", "http://e.org/?a"),
        (
            "http://e.org/?side=1&utm_source=x",
            "http://e.org/?side=1&utm_source=x",
        ),
        (
            "http://e.org/(S(abcdefghijklmnopqrstuvwx))/a.aspx",
            "http://e.org/a.aspx",
        ),
        (
            "http://e.org/(S(abcdefghijklmnopqrstuvwx))",
            "http://e.org/",
        ),
        ("http://e.org/(x)/a;b", "http://e.org/(x)/a;b"),
        ("http://e.org/a?", "http://e.org/a?"),
    ] {
        assert_eq!(
            canonicalizer.parse(text).unwrap().as_str(),
            expected,
            "{text}"
        );
    }
}

/// Pieces of which most hrefs are made, and those that make them awkward.
fn href() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-zA-Z0-9_~-]{1,6}",
        4 => Just("/".to_owned()),
        2 => Just(".".to_owned()),
        1 => Just("..".to_owned()),
        1 => Just("?".to_owned()),
        1 => Just("#".to_owned()),
        1 => Just("%2E".to_owned()),
        1 => Just("%2e".to_owned()),
        1 => "%[0-9A-Fa-f]{0,2}",
        1 => "[ !\"$&'()*+,;=:@\\[\\]|^`{}\\\\\t]",
        1 => "\\PC",
    ];
    let front = prop_oneof![
        Just(String::new()),
        Just("/".to_owned()),
        Just("http://".to_owned()),
        Just("https://www.example.org/".to_owned()),
        Just("https://a-b.c_d.example/".to_owned()),
        Just("http://xn--bcher-kva.example/".to_owned()),
        Just("http://1.2.3.4/".to_owned()),
        Just("http://a.0x1/".to_owned()),
        Just("http://example.org:80/".to_owned()),
        Just("https://example.org:8443/".to_owned()),
        Just("http://127.0.0.1:8080/".to_owned()),
        Just("http://[::1]/".to_owned()),
        Just("http://example.org./".to_owned()),
        Just("//".to_owned()),
        Just("\\".to_owned()),
        Just("/\\".to_owned()),
        Just("?".to_owned()),
        Just("../".to_owned()),
        Just("./../".to_owned()),
        Just("//Example.ORG:443/".to_owned()),
        Just("HTTP://Example.ORG:".to_owned()),
        Just("hTTps://example.org:0443/".to_owned()),
        Just("https://example.org:443".to_owned()),
        Just("http://example.org:65536/".to_owned()),
        Just("http://example.org?".to_owned()),
        Just("http://256.1.1.1/".to_owned()),
        Just("//10.0.0.1".to_owned()),
        Just("http://010.0.0.1/".to_owned()),
        Just("http:/".to_owned()),
        Just("https:".to_owned()),
        Just("mailto:".to_owned()),
        Just("tel:/".to_owned()),
        Just("file:".to_owned()),
    ];
    (front, prop::collection::vec(piece, 0..8)).prop_map(|(front, pieces)| front + &pieces.concat())
}

fn base() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("http://example.org/".to_owned()),
        Just("https://example.org:8443/a/b/c?d=/e".to_owned()),
        Just("http://user:pw@example.org/a/b".to_owned()),
        Just("http://example.org./a/b".to_owned()),
        Just("http://127.0.0.1:8080/%7e/{x}/y".to_owned()),
        Just("http://[::1]/a/#f".to_owned()),
        Just("http://example.org:0/a".to_owned()),
        Just("https://example.org/a//b/?c".to_owned()),
        Just("http://example.org/a/b%2fc/d'e;f".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    /// Whatever the short way answers, the parser answers too.
    #[test]
    fn the_short_way_is_the_long_way(base in base(), href in href()) {
        let base = Url::parse(&base).unwrap();
        let mut text = String::from("x");
        if fast::join(&Base::new(&base), &href, &mut text).is_some() {
            let parsed = Url::options().base_url(Some(&base)).parse(&href).map_err(CanonicalError::from);
            let long = parsed.and_then(|url| Canonicalizer::default().finish(&url));
            prop_assert_eq!(long.map(|url| url.as_str().to_owned()), Ok(text));
        }
        if fast::is_foreign(&href) {
            let parsed = Url::options().base_url(Some(&base)).parse(&href).unwrap();
            prop_assert_eq!(Canonicalizer::default().finish(&parsed), Err(CanonicalError::Scheme));
        }
    }

    /// A page of the crawl is a base like any other.
    #[test]
    fn a_base_is_a_base(base in base(), href in href()) {
        let canonicalizer = Canonicalizer::default();
        let Ok(page) = canonicalizer.parse(&base) else {
            return Ok(());
        };
        let parsed = Url::parse(page.as_str()).unwrap();
        let mut text = String::new();
        let resolved = canonicalizer.resolve_into(&Base::of(&page), &href, None, &mut text);
        let resolved = resolved.and_then(|()| Ok(CrawlUrl::from_canonical(&text)?));
        prop_assert_eq!(resolved, canonicalizer.resolve(&parsed, &href, None));
    }

    /// What is canonical stays as it is, and fits a request line.
    #[test]
    fn canonical_is_a_fixed_point(base in base(), href in href(), strip in any::<bool>()) {
        let canonicalizer = Canonicalizer::new(CanonicalOptions {
            strip_session_ids: strip,
            ..CanonicalOptions::default()
        });
        let base = Url::parse(&base).unwrap();
        if let Ok(url) = canonicalizer.resolve(&base, &href, None) {
            prop_assert!(!url.target().bytes().any(is_unwise), "{}", url);
            prop_assert_eq!(canonicalizer.parse(url.as_str()), Ok(url));
        }
    }

    /// No text makes the parser panic.
    #[test]
    fn any_text_has_an_answer(text in "\\PC{0,80}") {
        let _ = Canonicalizer::default().parse(&text);
        let _ = Canonicalizer::default().parse(&format!("http://{text}"));
    }
}

#[test]
fn the_short_way_is_taken_for_plain_links() {
    let base = Url::parse("https://example.org:8443/dir/page.html?x").unwrap();
    let join = |href: &str| {
        let mut text = String::new();
        fast::join(&Base::new(&base), href, &mut text).map(|()| text)
    };
    let own = |target: &str| format!("https://example.org:8443{target}");
    for (href, expected) in [
        ("/a/b?c=d#e", own("/a/b?c=d")),
        ("b.html", own("/dir/b.html")),
        ("a/b/c.html?x=1&y=2", own("/dir/a/b/c.html?x=1&y=2")),
        ("https://example.org/x", "https://example.org/x".to_owned()),
        ("/%C3%bc", own("/%C3%BC")),
        ("../x", own("/x")),
        ("../../x/.", own("/x/")),
        ("./", own("/dir/")),
        ("..", own("/")),
        ("/a/./b/%2e%2E/c", own("/a/c")),
        ("\\a\\b", own("/a/b")),
        ("?a", own("/dir/page.html?a")),
        ("//x/y", "https://x/y".to_owned()),
        ("HTTP://X.example:80", "http://x.example/".to_owned()),
        ("http://1.2.3.4:81/#x", "http://1.2.3.4:81/".to_owned()),
    ] {
        assert_eq!(join(href), Some(expected), "{href}");
    }
    for href in [
        "",
        "#a",
        "a:b",
        "/a b",
        "/%zz",
        "/a?b'c",
        "http://1.2.3/",
        "http://01.2.3.4/",
        "http://u@example.org/",
        "http://example.org:0/",
        "http://xn--a.example/x",
        "/x\u{fc}",
    ] {
        assert_eq!(join(href), None, "{href}");
    }
}
