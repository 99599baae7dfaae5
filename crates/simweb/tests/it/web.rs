//! The web as a function: the same for the same settings, of the size asked for, in many spellings.

use std::collections::HashSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use orbweaver_simweb::{SimConfig, Sizes, Web};

use crate::links;

fn named(seed: u64, port: u16) -> Web {
    Web::new(SimConfig {
        seed,
        hosts: 24,
        pages: 50,
        ips: 4,
        port,
        ..SimConfig::default()
    })
    .unwrap()
}

#[test]
fn the_same_settings_make_the_same_bytes() {
    let (one, two, other) = (named(3, 8080), named(3, 8080), named(4, 8080));
    for host in 0..24 {
        for page in 0..50 {
            let body = one.page(host, page);
            assert_eq!(body, two.page(host, page));
            assert_ne!(body, other.page(host, page));
            assert_eq!(one.body_of(&one.url(host, page)), Some(body));
        }
    }
    assert!(one.expected_pages().eq(two.expected_pages()));
}

#[test]
fn pages_have_the_size_asked_for_and_differ() {
    let web = named(1, 8080);
    let sizes: Vec<usize> = (0..50).map(|page| web.page(0, page).len()).collect();
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    assert!(mean.abs_diff(16 << 10) < 1500, "{mean}");
    assert!(sizes.iter().all(|size| (11_000..23_000).contains(size)));
    let bodies: HashSet<Vec<u8>> = (0..50).map(|page| web.page(0, page)).collect();
    assert_eq!(bodies.len(), 50);
}

#[test]
fn pages_compress_like_pages() {
    let web = named(1, 8080);
    let (mut plain, mut zipped) = (0, 0);
    for page in 0..50 {
        let body = web.page(0, page);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(&body).unwrap();
        plain += body.len();
        zipped += encoder.finish().unwrap().len();
    }
    assert!(
        (33..50).contains(&(plain * 10 / zipped)),
        "{plain} {zipped}"
    );
}

#[test]
fn zipf_sizes_fall_and_keep_their_mean() {
    let web = Web::new(SimConfig {
        hosts: 100,
        pages: 50,
        sizes: Sizes::Zipf,
        port: 80,
        ..SimConfig::default()
    })
    .unwrap();
    let sizes: Vec<u32> = (0..100).map(|host| web.pages(host)).collect();
    assert!(
        sizes
            .windows(2)
            .all(|pair| pair[0] >= pair[1] && pair[1] > 0)
    );
    assert!(sizes.iter().sum::<u32>().abs_diff(5000) < 100);
    assert!(sizes[0] > 900);
}

/// Every link of every page resolves to a URL that exists exactly so.
fn every_spelling_is_canonical(web: &Web) -> Vec<String> {
    let expected: HashSet<String> = web.expected_pages().collect();
    let mut written = Vec::new();
    for host in 0..web.hosts() {
        for page in 0..web.pages(host) {
            let (url, body) = (web.url(host, page), web.page(host, page));
            let html = String::from_utf8(body).unwrap();
            for link in links::canonical(&html, &url) {
                let extra = ["/go/", "/gone/"].iter().any(|part| link.contains(part));
                let known = expected.contains(&link) || extra || web.body_of(&link).is_some();
                assert!(known, "{link} on {url}");
            }
            written.extend(links::hrefs(&html));
        }
    }
    written
}

#[test]
fn every_spelling_names_the_canonical_url() {
    let written = every_spelling_is_canonical(&named(1, 8080));
    let count = |what: &str| written.iter().filter(|href| href.contains(what)).count();
    for spelling in [
        "../",
        "./",
        "%7e",
        "%c3%a9",
        "%2e",
        "HTTP://",
        "HTTP://XN--",
        "ü",
        "п",
        "#section",
        "\\",
        "&id=",
        "\n",
        "mailto:",
        ".SIM.TEST:8080",
        "?lang=",
    ] {
        assert!(count(spelling) > 0, "{spelling} is never written");
    }
    assert!(written.iter().any(|href| href.starts_with("//")));
}

#[test]
fn the_default_port_is_written_now_and_then() {
    let written = every_spelling_is_canonical(&named(1, 80));
    assert!(written.iter().any(|href| href.contains(".test:80/")));
    assert!(written.iter().any(|href| href.contains(".test:80")));
    assert!(named(1, 80).seeds() == ["http://h0.sim.test/"]);
}

#[test]
fn no_port_no_web() {
    assert!(Web::new(SimConfig::default()).is_err());
}
