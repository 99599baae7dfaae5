//! Whole documents through `read`: what is a link, what is not, and how much is taken.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName};
use orbweaver_extract::{Media, Note, Page, Reading, query_encoder, read};
use orbweaver_model::{CrawlUrl, Limits, LinkKind};
use proptest::prelude::*;

fn read_as(headers: &[(&str, &str)], body: &[u8], kind: LinkKind, limits: &Limits) -> Reading {
    let url = CrawlUrl::from_canonical("http://example.org/dir/page").unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    read(&Page {
        url: &url,
        headers: &map,
        body,
        limits,
        agent: "orbweaver",
        kind,
    })
}

fn html(body: &str) -> Reading {
    let headers = [(CONTENT_TYPE.as_str(), "text/html; charset=utf-8")];
    read_as(&headers, body.as_bytes(), LinkKind::A, &Limits::default())
}

fn links(reading: &Reading) -> Vec<(String, &'static str)> {
    reading
        .links
        .iter()
        .map(|link| (link.href.to_owned(), link.kind.as_str()))
        .collect()
}

fn hrefs(reading: &Reading) -> Vec<String> {
    reading
        .links
        .iter()
        .map(|link| link.href.to_owned())
        .collect()
}

#[test]
fn elements_that_refer() {
    for (body, expected) in [
        ("<a href=' x '>", &[("x", "a")][..]),
        ("<a name=x><a href=''><a href=#top>", &[]),
        (
            "<a href='data:text/html,x'><img src='DATA:image/png;base64,AA'>",
            &[],
        ),
        ("<area href=x>", &[("x", "area")]),
        (
            "<link rel='Alternate StyleSheet' href=x>",
            &[("x", "stylesheet")],
        ),
        ("<link rel='shortcut icon' href=x>", &[("x", "img")]),
        (
            "<link rel=next href=x><link rel=canonical href=y>",
            &[("x", "link"), ("y", "link")],
        ),
        (
            "<link rel=dns-prefetch href=//x><link rel=preconnect href=//y>",
            &[],
        ),
        (
            "<link rel=preload as=script href=x><link rel=preload as=font href=y>",
            &[("x", "script"), ("y", "media")],
        ),
        (
            "<link rel=preload as=image href=x imagesrcset='y 1x, z 2x'>",
            &[("x", "img"), ("y", "srcset"), ("z", "srcset")],
        ),
        (
            "<img src=x srcset='y 1x, z 2x'>",
            &[("x", "img"), ("y", "srcset"), ("z", "srcset")],
        ),
        (
            "<picture><source srcset=x><source src=y></picture>",
            &[("x", "srcset"), ("y", "media")],
        ),
        ("<script src=x></script>", &[("x", "script")]),
        (
            "<iframe src=x></iframe><frame src=y>",
            &[("x", "iframe"), ("y", "iframe")],
        ),
        (
            "<embed src=x><object data=y><track src=z>",
            &[("x", "media"), ("y", "media"), ("z", "media")],
        ),
        (
            "<video src=x poster=y><audio src=z>",
            &[("x", "media"), ("y", "img"), ("z", "media")],
        ),
        ("<form action=x>", &[("x", "form")]),
        ("<form action=x method=GET>", &[("x", "form")]),
        (
            "<form action=x method=Post><form method=get><form action=y method=dialog>",
            &[],
        ),
        ("<input type=Image src=x><input src=y>", &[("x", "img")]),
        (
            "<meta http-equiv=Refresh content=\"5; url='x'\">",
            &[("x", "refresh")],
        ),
        ("<meta http-equiv=refresh content=5>", &[]),
        (
            "<body background=x><td background=y><p background=z>",
            &[("x", "img"), ("y", "img")],
        ),
        (
            "<style>@import 'x';a{b:url(y)}</style>",
            &[("x", "css"), ("y", "css")],
        ),
        ("<p style='background:url(&quot;x&quot;)'>", &[("x", "css")]),
        (
            "<a href=x style='background:url(y)'>",
            &[("x", "a"), ("y", "css")],
        ),
        ("<blockquote cite=x><q cite=y>", &[]),
        ("<noscript><a href=x></noscript>", &[("x", "a")]),
        (
            "<svg><a xlink:href=x><image href=y /><use href='#z'/></svg>",
            &[("x", "a"), ("y", "img")],
        ),
        (
            "<a href='x?a=1&amp;b=2&copy=3&#38;c'>",
            &[("x?a=1&b=2&copy=3&c", "a")],
        ),
        ("<A HREF=x></A>", &[("x", "a")]),
        (
            "<a href=mailto:x><a href='JavaScript:y()'><a href=tel:1><a href=HTTP:z><a href='b:c/d'>",
            &[("HTTP:z", "a")],
        ),
        (
            "<a href=x#a><a href=y><a href=x#b><a href=x>",
            &[("x", "a"), ("y", "a")],
        ),
        (
            "<link rel=preload as=image imagesrcset='x 1x, y 2x'>",
            &[("x", "srcset"), ("y", "srcset")],
        ),
        (
            "<p style='background:image-set(&quot;x&quot; 1x, url(y) 2x)'>",
            &[("x", "css"), ("y", "css")],
        ),
        (
            "<iframe src=x srcdoc='<base href=/no/><title>no</title><meta name=robots content=nofollow>\
             <a href=&quot;y?a&amp;amp;b&quot;><img src=z>'></iframe><a href=end>",
            &[("x", "iframe"), ("y?a&b", "a"), ("z", "img"), ("end", "a")],
        ),
        (
            "<iframe srcdoc='<iframe srcdoc=&quot;<a href=x>&quot;></iframe><a href=y>'></iframe>",
            &[("x", "a"), ("y", "a")],
        ),
    ] {
        let reading = html(body);
        let found = links(&reading);
        let found: Vec<_> = found
            .iter()
            .map(|(href, kind)| (href.as_str(), *kind))
            .collect();
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn nofollow_of_links() {
    let reading = html(
        "<a rel=nofollow href=a><a rel='noopener UGC' href=b><a rel=sponsored href=c><a rel=next href=d><form rel=nofollow action=e>",
    );
    let marked: Vec<_> = reading.links.iter().map(|link| link.nofollow).collect();
    assert_eq!(marked, [true, true, true, false, true]);
    assert!(!reading.nofollow);
}

#[test]
fn directives_of_pages() {
    for (body, noindex, nofollow) in [
        (
            "<meta name=robots content='noindex,nofollow'><meta name=robots content=all>",
            true,
            true,
        ),
        ("<meta name=ROBOTS content='NoFollow'>", false, true),
        ("<meta name=robots content=none>", true, true),
        ("<meta name=orbweaver content=noindex>", true, false),
        ("<meta name=googlebot content=none>", false, false),
        ("<meta name=robots content='index, follow'>", false, false),
        (
            "<script><meta name=robots content=none></script>",
            false,
            false,
        ),
    ] {
        let reading = html(&format!("{body}<a href=x><img src=y>"));
        assert_eq!(
            (reading.noindex, reading.nofollow),
            (noindex, nofollow),
            "{body}"
        );
        let marked: Vec<_> = reading.links.iter().map(|link| link.nofollow).collect();
        assert_eq!(marked, [nofollow, false], "{body}");
    }
    let headers = [("content-type", "text/html"), ("x-robots-tag", "nofollow")];
    let reading = read_as(&headers, b"<a href=x>", LinkKind::A, &Limits::default());
    assert!(reading.nofollow && reading.links.iter().all(|link| link.nofollow));
    let body = b"<urlset><url><loc>http://example.org/a</loc></url></urlset>";
    let reading = read_as(&headers, body, LinkKind::SitemapFile, &Limits::default());
    assert!(reading.links.len() == 1 && reading.links.iter().all(|link| !link.nofollow));
}

#[test]
fn bases() {
    for (body, base) in [
        ("<base href=/a/><base href=/b/>", Some("/a/")),
        ("<base target=_top><base href=/b/>", Some("/b/")),
        (
            "<base href='javascript:1'><base href='http://o.example/h/'><base href='data:text/html,'>",
            Some("http://o.example/h/"),
        ),
        ("<base href='a:b/c'>", None),
        ("<svg><base href=/s/></svg><base href=/h/>", Some("/h/")),
        (
            "<template><template></template><base href=/t/></template></template><base href=/h/>",
            Some("/h/"),
        ),
        ("<base href='./a:b'>", Some("./a:b")),
        ("<p>", None),
    ] {
        assert_eq!(html(body).base.as_deref(), base, "{body}");
    }
}

#[test]
fn titles() {
    assert_eq!(
        html("<title>\n A &amp; B\t\n C </title>").title.as_deref(),
        Some("A & B C")
    );
    assert_eq!(
        html("<title></title><title>x</title>").title.as_deref(),
        Some("x")
    );
    assert_eq!(
        html("<svg><title>no</title></svg><title>yes</title>")
            .title
            .as_deref(),
        Some("yes")
    );
    assert_eq!(html("<p>").title, None);
    let long = html(&format!("<title>{}</title>", "\u{fc}".repeat(5000)))
        .title
        .unwrap();
    assert_eq!(long.chars().count(), 512);
}

#[test]
fn what_a_body_is() {
    let page = b"<!DOCTYPE html><a href=x>".as_slice();
    for (label, body, media) in [
        (Some("text/html"), page, Media::Html),
        (Some("TEXT/HTML ; charset=x"), page, Media::Html),
        (Some("application/xhtml+xml"), page, Media::Html),
        (
            Some("image/svg+xml"),
            b"<svg><a href=x /></svg>",
            Media::Html,
        ),
        (Some("image/png"), page, Media::Other),
        (Some("text/plain"), page, Media::Text),
        (Some("text/css"), b"a{b:url(c)}", Media::Css),
        (None, page, Media::Html),
        (None, b"\xef\xbb\xbf  <html>", Media::Html),
        (None, b"<!-- x --><p>", Media::Html),
        (None, b"just words", Media::Other),
        (None, b"", Media::Other),
        (Some(";;;==\""), page, Media::Html),
        (Some("application/octet-stream"), page, Media::Html),
        (Some("application/octet-stream"), b"\x00\x01", Media::Other),
        (Some("text/html"), b"%PDF-1.7 <a href=x>", Media::Other),
        (Some("text/html"), b"\x89PNG\r\n <a href=x>", Media::Other),
        (
            Some("application/xml"),
            b"<?xml version='1.0'?><urlset>",
            Media::Sitemap,
        ),
        (
            Some("text/xml"),
            b"<?xml?><!-- > --><!DOCTYPE x><x:sitemapindex>",
            Media::Sitemap,
        ),
        (
            Some("application/rss+xml"),
            b"<rss version='2.0'>",
            Media::Sitemap,
        ),
        (Some("application/xml"), b"<html xmlns='x'>", Media::Html),
        (Some("application/xml"), b"<other>", Media::Other),
        (Some("application/json"), b"{}", Media::Other),
    ] {
        let headers: Vec<_> = label.iter().map(|label| ("content-type", *label)).collect();
        let reading = read_as(&headers, body, LinkKind::A, &Limits::default());
        assert_eq!(reading.media, media, "{label:?} {body:?}");
    }
}

#[test]
fn encodings_as_browsers_find_them() {
    let utf16: Vec<u8> = "\u{feff}<a href=\u{fc}>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let late = format!("<p>{}</p><meta charset=koi8-r><a href=x>", "x".repeat(1100));
    for (label, body, encoding, href) in [
        ("text/html; charset=iso-8859-1", b"<a href='\xfc'>".as_slice(), "windows-1252", "\u{fc}"),
        ("text/html; charset=\"utf-8\"", b"<a href='\xc3\xbc'>", "UTF-8", "\u{fc}"),
        ("text/html; charset=utf-16", b"\xef\xbb\xbf<a href='\xc3\xbc'>", "UTF-8", "\u{fc}"),
        ("text/html; charset=utf-7", b"<a href='+ADw-'>", "windows-1252", "+ADw-"),
        ("text/html; charset=utf-32", b"<a href='x'>", "windows-1252", "x"),
        ("text/html", b"<meta charset=Shift_JIS><a href='\x83\x5c'>", "Shift_JIS", "\u{30bd}"),
        ("text/html", b"<meta http-equiv='Content-Type' content='text/html; charset = \"gbk\"'><a href='\xb0\xa1'>", "GBK", "\u{554a}"),
        ("text/html", b"<meta content='charset=gbk'><meta charset=utf-16><a href='\xc3\xbc'>", "UTF-8", "\u{fc}"),
        ("text/html", b"<script>'</script><meta charset=koi8-r>'</script><a href=x>", "KOI8-R", "x"),
        ("text/html", b"<!-- <meta charset=koi8-r> --><meta charset=big5><a href=x>", "Big5", "x"),
        ("text/html; charset=shift_jis", b"<meta charset=utf-8><a href='\x83\x5c'>", "Shift_JIS", "\u{30bd}"),
        ("text/html; charset=nonsense", b"<meta charset=utf-8><a href='\xc3\xbc'>", "UTF-8", "\u{fc}"),
        ("text/html", b"<a href='\xc3\xbc'>", "UTF-8", "\u{fc}"),
        ("text/html", b"<a href='\xfc'> f\xfcr sch\xf6ne Gr\xfc\xdfe", "windows-1252", "\u{fc}"),
        ("text/html", b"<a href=x>", "windows-1252", "x"),
        ("text/html", late.as_bytes(), "windows-1252", "x"),
        ("text/html", &utf16, "UTF-16LE", "\u{fc}"),
        ("application/xhtml+xml", b"<?xml version='1.0' encoding='iso-8859-2'?><a href='\xf6'>", "ISO-8859-2", "\u{f6}"),
        ("text/html; charset=iso-2022-jp", b"<a href='\x1b$B%=\x1b(B'>", "ISO-2022-JP", "\u{30bd}"),
        ("text/html; charset=utf-8", b"<a href='a\xff\xc0\xafb'>", "UTF-8", "a\u{fffd}\u{fffd}\u{fffd}b"),
        ("text/css", b"@charset \"iso-8859-1\"; a{b:url(\xfc)}", "windows-1252", "\u{fc}"),
        ("text/css", b"a{b:url(\xc3\xbc)}", "UTF-8", "\u{fc}"),
    ] {
        let headers = [("content-type", label)];
        let reading = read_as(&headers, body, LinkKind::A, &Limits::default());
        assert_eq!(reading.encoding.name(), encoding, "{label} {body:?}");
        assert_eq!(hrefs(&reading), [href], "{label} {body:?}");
    }
    let label = format!("text/html; charset={}", "x".repeat(10_000));
    let reading = read_as(
        &[("content-type", &label)],
        b"<a href=x>",
        LinkKind::A,
        &Limits::default(),
    );
    assert_eq!(hrefs(&reading), ["x"]);
}

#[test]
fn queries_in_the_encoding_of_the_page() {
    assert!(query_encoder(encoding_rs::UTF_8).is_none());
    assert!(query_encoder(encoding_rs::UTF_16LE).is_none());
    let encode = query_encoder(encoding_rs::WINDOWS_1252).unwrap();
    assert_eq!(&*encode("q=a"), b"q=a");
    assert_eq!(&*encode("q=\u{fc}"), b"q=\xfc");
    assert_eq!(
        &*encode("q=\u{65e5}x\u{672c}"),
        b"q=%26%2326085%3Bx%26%2326412%3B"
    );
    let encode = query_encoder(encoding_rs::ISO_2022_JP).unwrap();
    assert_eq!(&*encode("\u{30bd}a"), b"\x1b$B%=\x1b(Ba");
}

#[test]
fn headers_come_first() {
    let headers = [
        ("content-type", "text/html"),
        ("link", "</next>; rel=next, </s.css>; rel=stylesheet"),
        ("refresh", "0;url=/r"),
    ];
    let reading = read_as(&headers, b"<a href=x>", LinkKind::A, &Limits::default());
    let found = links(&reading);
    let found: Vec<_> = found
        .iter()
        .map(|(href, kind)| (href.as_str(), *kind))
        .collect();
    assert_eq!(
        found,
        [
            ("/next", "header"),
            ("/s.css", "stylesheet"),
            ("/r", "refresh"),
            ("x", "a")
        ]
    );
}

#[test]
fn a_sitemap_is_one_whatever_its_label() {
    let body = b"<urlset><url><loc>http://example.org/a</loc></url></urlset>";
    let reading = read_as(
        &[("content-type", "text/plain")],
        body,
        LinkKind::SitemapFile,
        &Limits::default(),
    );
    assert_eq!(
        links(&reading),
        [("http://example.org/a".to_owned(), "sitemap")]
    );
    let index =
        b"<sitemapindex><sitemap><loc>http://example.org/s.xml</loc></sitemap></sitemapindex>";
    let reading = read_as(
        &[("content-type", "text/xml")],
        index,
        LinkKind::Seed,
        &Limits::default(),
    );
    assert_eq!(
        links(&reading),
        [("http://example.org/s.xml".to_owned(), "sitemap_file")]
    );
    let reading = read_as(
        &[("content-type", "text/html")],
        b"<html><a href=x>",
        LinkKind::SitemapFile,
        &Limits::default(),
    );
    assert_eq!(
        (reading.links.len(), &reading.notes[..]),
        (0, &[Note::NotASitemap][..])
    );
}

/// Only the label makes a document XML, and then any element may be empty.
#[test]
fn empty_elements_of_xhtml() {
    let body = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/>\
        <script src='s.js'/><style/></head><body><a href='a'/><iframe src='f'/><textarea/>\
        <script>//<![CDATA[\nif (a < b) { x = '<a href=no>' }\n//]]></script>\
        <![CDATA[ <a href='no'> ]]><a href='b'>b</a></body></html>";
    for label in ["application/xhtml+xml", "application/xml", "text/xml"] {
        let reading = read_as(
            &[("content-type", label)],
            body.as_bytes(),
            LinkKind::A,
            &Limits::default(),
        );
        assert_eq!(hrefs(&reading), ["s.js", "a", "f", "b"], "{label}");
    }
    // With this label a browser takes everything behind the first of them for its text.
    assert_eq!(hrefs(&html(body)), Vec::<String>::new());
    let script = "<html><script src='s.js'/><a href='no'></a></script><a href='b'>";
    assert_eq!(hrefs(&html(script)), ["s.js", "b"]);
}

#[test]
fn what_feeds_enclose_is_a_part_of_them() {
    let rss = "<rss><channel><item><link>http://e.org/1</link><enclosure url='http://e.org/1.mp3?a&amp;b' type='audio/mpeg'/></item>\
        <item><enclosure url='http://e.org/2.mp3'></enclosure><link>http://e.org/2</link></item></channel></rss>";
    let reading = read_as(
        &[
            ("content-type", "application/rss+xml"),
            ("x-robots-tag", "nofollow"),
        ],
        rss.as_bytes(),
        LinkKind::A,
        &Limits::default(),
    );
    let expected = [
        ("http://e.org/1", "sitemap"),
        ("http://e.org/2", "sitemap"),
        ("http://e.org/1.mp3?a&b", "media"),
        ("http://e.org/2.mp3", "media"),
    ];
    assert_eq!(
        links(&reading),
        expected.map(|(href, kind)| (href.to_owned(), kind))
    );
    assert!(reading.links.iter().all(|link| !link.nofollow));
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link rel='enclosure' href='/x.ogg'/><link href='/x'/></entry></feed>";
    let reading = read_as(
        &[("content-type", "application/atom+xml")],
        atom.as_bytes(),
        LinkKind::A,
        &Limits::default(),
    );
    assert_eq!(hrefs(&reading), ["/x", "/x.ogg"]);
}

#[test]
fn counts_are_bounded() {
    // Twenty references for each link that may be followed: which of them are is not known here.
    let many: String = (0..300_000).map(|n| format!("<a href=/{n}>")).collect();
    let reading = html(&many);
    assert_eq!(reading.links.len(), 200_000);
    assert_eq!(reading.notes, [Note::MoreLinks(10_000)]);

    // Places in one page are one page, and what is no page takes no room.
    let places: String = (0..300_000)
        .map(|n| format!("<a href=x#{n}><a href=#{n}><a href=mailto:{n}@e.org>"))
        .collect();
    assert_eq!(hrefs(&html(&(places + "<a href=end>"))), ["x", "end"]);

    let bomb = format!(
        "<img srcset='{}'><a href=end>",
        "/i.png 1x, ".repeat(100_000)
    );
    assert_eq!(hrefs(&html(&bomb)), ["/i.png", "end"]);

    let attributes: String = (0..300_000).map(|n| format!("a{n}=1 ")).collect();
    let reading = html(&format!("<a {attributes} href=late><a href=end>"));
    assert_eq!(hrefs(&reading), ["end"]);

    let limits = Limits {
        max_url_bytes: 10,
        ..Limits::default()
    };
    let headers = [("content-type", "text/html")];
    let reading = read_as(
        &headers,
        b"<a href=12345678901><a href=1234567890>",
        LinkKind::A,
        &limits,
    );
    assert_eq!(hrefs(&reading), ["1234567890"]);
}

#[test]
fn what_never_ends() {
    for (body, expected) in [
        (
            format!("<a href=a><a href=\"/never {}", "q".repeat(3_000_000)),
            &["a"][..],
        ),
        (format!("<a href=a><!-- {}", "-".repeat(3_000_000)), &["a"]),
        (
            format!("<a href=a><!-- {}", "-->x<!-- ".repeat(300_000)),
            &["a"],
        ),
        (
            format!("<a href=a><script>{}", "<a href=no>".repeat(100_000)),
            &["a"],
        ),
        (
            format!(
                "<a href=a><script><!--{}",
                "<script></script>".repeat(100_000)
            ),
            &["a"],
        ),
        (
            format!("<a href=a><title>{}", "</titl".repeat(300_000)),
            &["a"],
        ),
        (format!("{}<a href=a>", "<div>".repeat(200_000)), &["a"]),
        (format!("{}<a href=a>", "<ul><li>".repeat(64_000)), &["a"]),
        (format!("{}<a href=a>", "<".repeat(1_000_000)), &["a"]),
        (format!("{}<a href=a>", "<a ".repeat(1_000_000)), &[]),
        (format!("{}<a href=a>", "</".repeat(1_000_000)), &[]),
        (format!("{}<a href=a>", "&amp;".repeat(500_000)), &["a"]),
        (
            format!("<p title='{}'><a href=a>", "&amp".repeat(500_000)),
            &["a"],
        ),
        (
            format!("<style>{}</style><a href=a>", "@import ".repeat(200_000)),
            &["a"],
        ),
        (
            format!("<style>{}</style><a href=a>", "url(".repeat(200_000)),
            &["a"],
        ),
        ("<html><plaintext><a href=no>".to_owned(), &[]),
    ] {
        let reading = html(&body);
        let found = hrefs(&reading);
        assert_eq!(found, expected, "{:.40}", body);
    }
}

/// Pieces on which some reader or other has a rule.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        prop::sample::select(vec![
            &b"<urlset><url><loc>"[..],
            b"</loc></url>",
            b"<?xml version='1.0' encoding='",
            b"<meta charset=",
            b"<meta http-equiv=refresh content='0;url=",
            b"<img srcset='",
            b"<style>@import url(",
            b"<a href='&#x",
            b"\xff\xfe",
            b"\xef\xbb\xbf",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
            b"\x1b$B",
            b"<title>",
            b"<!--",
            b"'",
            b">",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever a server sends is read without a panic, and what is found is a reference.
    #[test]
    fn any_bytes_can_be_read(
        body in anything(),
        label in prop::sample::select(vec![
            "text/html", "text/css", "text/xml", "", "text/html;charset=shift_jis",
            "text/html;charset=iso-2022-jp", "text/html;charset=utf-16", "text/html;charset=gb18030",
        ]),
        kind in prop::sample::select(vec![LinkKind::A, LinkKind::SitemapFile]),
    ) {
        let reading = read_as(&[("content-type", label)], &body, kind, &Limits::default());
        for link in reading.links.iter() {
            prop_assert!(!link.href.is_empty() && !link.href.starts_with('#'));
        }
    }

    /// Headers of any bytes are read too.
    #[test]
    fn any_headers_can_be_read(value in "[ -~\u{80}-\u{ff}]{0,60}") {
        let headers = ["link", "refresh", "x-robots-tag", "content-type"].map(|name| (name, value.as_str()));
        let reading = read_as(&headers, b"<a href=x>", LinkKind::A, &Limits::default());
        prop_assert!(reading.links.len() < 40);
    }
}
