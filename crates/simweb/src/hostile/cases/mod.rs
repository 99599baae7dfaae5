//! The cases, one file a kind or two.

mod charsets;
mod dns;
mod encodings;
mod endless;
mod framing;
mod html;
mod pack;
mod patience;
mod redirects;
mod reuse;
mod robots;
mod slow;
mod tls;
mod traps;

use super::case::{Case, Kind};

/// Every case, with its kind and its number in it.
pub(crate) fn all() -> Vec<Case> {
    let tables = [
        (Kind::Framing, framing::cases()),
        (Kind::Slow, slow::cases()),
        (Kind::Endless, endless::cases()),
        (Kind::Redirects, redirects::cases()),
        (Kind::Encodings, encodings::cases()),
        (Kind::Charsets, charsets::cases()),
        (Kind::Html, html::cases()),
        (Kind::Traps, traps::cases()),
        (Kind::Robots, robots::cases()),
        (Kind::Patience, patience::cases()),
        (Kind::Cookies, patience::cookies()),
        (Kind::Tls, tls::cases()),
        (Kind::Dns, dns::cases()),
        (Kind::Reuse, reuse::cases()),
    ];
    let numbered = |(kind, cases): (Kind, Vec<Case>)| {
        let numbers = 1..=u8::MAX;
        numbers.zip(cases).map(move |(number, case)| Case {
            kind,
            number,
            ..case
        })
    };
    tables.into_iter().flat_map(numbered).collect()
}

/// A body without end in an encoding: its header line, how it begins, and what is repeated.
pub(crate) fn endless_body(encoding: &str) -> (String, Vec<u8>, Vec<u8>) {
    let coding = |name: &str| format!("Content-Encoding: {name}\r\n");
    match encoding {
        "gzip" => {
            let words = b"<p>Some words that go on and on.\n".repeat(2000);
            (coding("gzip"), Vec::new(), pack::gzip(&words))
        }
        // One letter 131,072 times in four bytes, in a window of 8 MiB.
        "zstd" => (
            coding("zstd"),
            pack::zstd_begin(),
            pack::zstd_run(b'x').repeat(16),
        ),
        // A window of 16 MiB (WBITS 24 is 1111 0 0 0 in the stream's order), then uncompressed blocks.
        "br" => (coding("br"), pack::brotli_begin(), pack::brotli_block(b'x')),
        _ => (
            String::new(),
            Vec::new(),
            b"<p>Some words that go on and on.\n".repeat(500),
        ),
    }
}
