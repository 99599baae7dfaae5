//! How fast pages are read. Run by hand, in release: nothing is asserted about time.

use std::fmt::Write as _;
use std::time::Instant;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use orbweaver_extract::html::Scanner;
use orbweaver_extract::{Page, fingerprint, read};
use orbweaver_model::{CrawlUrl, Limits, LinkKind};

/// A page of 16 KB with thirty links, like an article with its navigation.
fn page() -> String {
    let mut html = "<!DOCTYPE html><html><head><meta charset=utf-8><title>An article</title><link rel=stylesheet href=/site.css></head><body>".to_owned();
    for n in 0..29 {
        let words = "words about spiders and the webs they spin at night ".repeat(9);
        writeln!(html, "<p class=\"text\">{words}<a class=\"more\" href=\"/articles/{n}/page.html?from=list&amp;n={n}\">more</a></p>").unwrap();
    }
    html
}

#[test]
#[ignore = "a measurement"]
fn megabytes_a_second() {
    let html = page();
    let url = CrawlUrl::from_canonical("http://example.org/").unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    let limits = Limits::default();
    let page = Page {
        url: &url,
        headers: &headers,
        body: html.as_bytes(),
        limits: &limits,
        agent: "orbweaver",
        kind: LinkKind::A,
    };
    let rounds = 20_000;
    let started = Instant::now();
    let mut links = 0;
    for _ in 0..rounds {
        links += read(&page).links.len();
    }
    let whole = started.elapsed();
    let started = Instant::now();
    let mut tags = 0;
    let mut attributes = Vec::new();
    for _ in 0..rounds {
        let mut scanner = Scanner::new(html.as_bytes());
        while scanner.next_tag(&mut attributes).is_some() {
            tags += 1;
        }
    }
    let scan = started.elapsed();
    let started = Instant::now();
    let mut ones = 0;
    let links_of_page = read(&page).links;
    for _ in 0..rounds {
        ones += fingerprint(&page, &links_of_page).words.count_ones();
    }
    let prints = started.elapsed();
    println!(
        "fingerprint {:.0} MB/s ({:.2} us a page), {} ones",
        (html.len() * rounds) as f64 / 1e6 / prints.as_secs_f64(),
        prints.as_secs_f64() * 1e6 / rounds as f64,
        ones as usize / rounds,
    );
    let megabytes = (html.len() * rounds) as f64 / 1e6;
    println!(
        "{} bytes, {} links, {} tags: read {:.0} MB/s ({:.2} us a page), scanner alone {:.0} MB/s",
        html.len(),
        links / rounds,
        tags / rounds,
        megabytes / whole.as_secs_f64(),
        whole.as_secs_f64() * 1e6 / rounds as f64,
        megabytes / scan.as_secs_f64(),
    );
}
