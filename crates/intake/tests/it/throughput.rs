//! How fast links are resolved and judged. Run by hand, in release: nothing is asserted about time.

use std::time::Instant;

use orbweaver_intake::{
    Canonicalizer, Found, Outlinks, PageRef, Scope, ScopeOptions, TrapOptions, Traps, surt,
};
use orbweaver_model::{CrawlUrl, KeySeed, Limits, Link, LinkKind, Timestamp};

#[test]
#[ignore = "a measurement"]
fn nanoseconds_a_link() {
    let url = CrawlUrl::from_canonical("https://example.org/dir/page.html").unwrap();
    let scope = Scope::new(ScopeOptions::default(), std::slice::from_ref(&url)).unwrap();
    let seed = KeySeed(1);
    let traps = Traps::new(TrapOptions::default(), seed, Timestamp::default());
    let limits = Limits::default();
    let outlinks = Outlinks::new(Canonicalizer::default(), scope, traps, seed, &limits);
    let page = PageRef {
        url: &url,
        key: url.key(seed),
        kind: LinkKind::A,
        depth: 1,
        base: None,
        encoding: None,
        copies: 0,
    };
    let plain: Vec<String> = (0..30)
        .map(|n| match n % 3 {
            0 => format!("/articles/{n}/page.html?from=list"),
            1 => format!("other-{n}.html#top"),
            _ => format!("https://example.org/dir/sub/{n}"),
        })
        .collect();
    let awkward: Vec<String> = (0..30)
        .map(|n| format!("../{n}/\u{fc}ber us.html"))
        .collect();
    for (name, hrefs, known) in [
        ("plain, new", &plain, false),
        ("plain, known", &plain, true),
        ("awkward, new", &awkward, false),
    ] {
        let rounds = 20_000;
        let started = Instant::now();
        let mut links = 0;
        for _ in 0..rounds {
            let found = hrefs.iter().map(|href| Found {
                href,
                kind: LinkKind::A,
                nofollow: false,
                weight: 50,
            });
            links += outlinks.links(&page, found, |_, _| known).links.len();
        }
        let nanos = started.elapsed().as_nanos() / (rounds * 30);
        println!(
            "{name}: {nanos} ns a link, {} new links a page",
            links / rounds as usize
        );
    }
    let links: Vec<Link> = (0..30)
        .map(|n| Link {
            url: CrawlUrl::from_canonical(&format!("https://example.org/dir/sub-{n}/{n}?id={n}"))
                .unwrap(),
            kind: LinkKind::A,
            depth: 1,
            priority: 16,
            via: None,
            chain: Vec::new(),
        })
        .collect();
    let traps = Traps::new(TrapOptions::default(), seed, Timestamp::default());
    let started = Instant::now();
    for _ in 0..10_000 {
        assert!(links.iter().all(|link| traps.verdict(link, None).is_ok()));
    }
    println!(
        "traps: {} ns a link",
        started.elapsed().as_nanos() / 300_000
    );
    let started = Instant::now();
    let bytes: usize = (0..100_000).map(|_| surt(&url).len()).sum();
    println!(
        "surt: {} ns, {bytes} bytes",
        started.elapsed().as_nanos() / 100_000
    );
}
