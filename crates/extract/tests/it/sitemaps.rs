//! Sitemaps in all their forms, whole and broken.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use orbweaver_extract::{Note, Sitemap, read_sitemap};
use orbweaver_model::Limits;

fn sitemap(text: &str) -> Sitemap {
    read_sitemap(text.as_bytes(), &Limits::default())
}

fn locs(sitemap: &Sitemap) -> Vec<&str> {
    sitemap.urls.iter().map(|url| url.loc.as_str()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const URLSET: &str = "<?xml version='1.0' encoding='UTF-8'?>
<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>
 <url>
  <loc> http://example.org/a?x=1&amp;y=&#50;&#x33; </loc>
  <lastmod>2026-01-02</lastmod><priority>0.8</priority>
  <image:image><image:loc>http://example.org/no.png</image:loc></image:image>
 </url>
 <url><loc><![CDATA[http://example.org/b?c&d]]></loc></url>
 <url><lastmod>2026</lastmod></url>
 <url><loc>http://example.org/c?a=1&b=2&x;</loc></url>
</urlset>";

#[test]
fn url_sets() {
    let read = sitemap(URLSET);
    assert_eq!(
        locs(&read),
        [
            "http://example.org/a?x=1&y=23",
            "http://example.org/b?c&d",
            "http://example.org/c?a=1&b=2&x;",
        ]
    );
    assert_eq!(read.urls[0].lastmod.as_deref(), Some("2026-01-02"));
    assert_eq!(read.urls[0].priority.as_deref(), Some("0.8"));
    assert_eq!(read.urls[1].lastmod, None);
    assert!(read.sitemaps.is_empty() && read.notes.is_empty());
}

#[test]
fn other_spellings() {
    for text in [
        "\u{feff}<urlset><url><loc>http://e.org/</loc></url></urlset>",
        "\n<sm:urlset xmlns:sm='x'><sm:url><sm:loc>http://e.org/</sm:loc></sm:url></sm:urlset>",
        "<urlset><url><loc>http://e.org/</loc></url>",
        "<urlset><url><loc>http://e.org/</loc>",
        "<urlset><url><loc>http://e.org/</loc></urls></urlset>",
        "http://e.org/\r\nnot a URL\r\n\r\n",
        "\u{feff}http://e.org/",
        "<rss><channel><link>http://no.example/</link><item><title>x</title><link>http://e.org/</link></item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://no.example/'/><entry><link rel='edit' href='/no'/><link href='http://e.org/'/></entry></feed>",
        "<rdf:RDF xmlns:rdf='x' xmlns='y'><item rdf:about='z'><link>http://e.org/</link></item></rdf:RDF>",
    ] {
        assert_eq!(locs(&sitemap(text)), ["http://e.org/"], "{text}");
    }
    let utf16: Vec<u8> = "\u{feff}<urlset><url><loc>http://e.org/</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(
        locs(&read_sitemap(&utf16, &Limits::default())),
        ["http://e.org/"]
    );
}

#[test]
fn indexes() {
    let read = sitemap(
        "<sitemapindex><sitemap><loc>http://e.org/1.xml.gz</loc><lastmod>x</lastmod></sitemap><sitemap><loc>http://e.org/2.xml</loc></sitemap></sitemapindex>",
    );
    assert_eq!(
        read.sitemaps,
        ["http://e.org/1.xml.gz", "http://e.org/2.xml"]
    );
    assert!(read.urls.is_empty());
}

#[test]
fn gzipped_whole_and_cut() {
    let zipped = gzip(URLSET.as_bytes());
    assert_eq!(read_sitemap(&zipped, &Limits::default()).urls.len(), 3);
    let cut = read_sitemap(&zipped[..zipped.len() - 9], &Limits::default());
    assert!(
        matches!(cut.notes[..], [Note::BrokenGzip(_), ..]),
        "{:?}",
        cut.notes
    );
    let limits = Limits {
        max_decoded_bytes: 10_000,
        ..Limits::default()
    };
    let mut long = "<urlset><url><loc>http://e.org/</loc></url>".to_owned();
    long.push_str(&" ".repeat(5_000_000));
    let bomb = read_sitemap(&gzip(long.as_bytes()), &limits);
    assert_eq!(locs(&bomb), ["http://e.org/"]);
    assert_eq!(bomb.notes, [Note::DecodedTooLong(10_000)]);
}

#[test]
fn broken_xml_yields_what_stood_before() {
    let read = sitemap(
        "<urlset><url><loc>http://e.org/1</loc></url><url><loc>http://e.org/2</loc><!-- never closed",
    );
    assert_eq!(locs(&read), ["http://e.org/1", "http://e.org/2"]);
    assert!(
        matches!(read.notes[..], [Note::BrokenXml(..)]),
        "{:?}",
        read.notes
    );
}

#[test]
fn entities_of_a_dtd_grow_nothing() {
    let mut xml = "<?xml version='1.0'?><!DOCTYPE urlset [<!ENTITY a0 'http://lol'>".to_owned();
    for n in 1..30 {
        let inside = format!("&a{};", n - 1).repeat(10);
        xml.push_str(&format!("<!ENTITY a{n} '{inside}'>"));
    }
    xml.push_str("<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>&a29;</loc></url><url><loc>&x;</loc></url><url><loc>http://e.org/</loc></url></urlset>");
    assert_eq!(locs(&sitemap(&xml)), ["&a29;", "&x;", "http://e.org/"]);
}

#[test]
fn counts_and_lengths_are_bounded() {
    let limits = Limits {
        max_sitemap_urls: 3,
        max_url_bytes: 40,
        ..Limits::default()
    };
    let many: String = (0..9)
        .map(|n| format!("<url><loc>http://e.org/{n}</loc></url>"))
        .collect();
    let read = read_sitemap(format!("<urlset>{many}</urlset>").as_bytes(), &limits);
    assert_eq!(
        (read.urls.len(), &read.notes[..]),
        (3, &[Note::MoreSitemapUrls(3)][..])
    );
    let list: String = (0..9).map(|n| format!("http://e.org/{n}\n")).collect();
    let read = read_sitemap(list.as_bytes(), &limits);
    assert_eq!(
        (read.urls.len(), &read.notes[..]),
        (3, &[Note::MoreSitemapUrls(3)][..])
    );
    let long = format!(
        "<urlset><url><loc>http://e.org/{}</loc></url></urlset>",
        "x".repeat(1_000_000)
    );
    assert_eq!(read_sitemap(long.as_bytes(), &limits).urls.len(), 0);
    let deep = "<url>".repeat(500_000);
    assert_eq!(sitemap(&deep).urls.len(), 0);
}
