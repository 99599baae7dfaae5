//! Traps and honest sites, as streams of pages and links.

use super::*;

const SEED: KeySeed = KeySeed(3);

/// In the year 2026.
const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn traps(options: TrapOptions) -> Traps {
    Traps::new(options, SEED, NOW)
}

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::from_canonical(text).unwrap()
}

fn link(text: &str, kind: LinkKind) -> Link {
    Link {
        url: url(text),
        kind,
        depth: 1,
        priority: 0,
        via: None,
        chain: Vec::new(),
    }
}

fn why(traps: &Traps, text: &str) -> String {
    match traps.verdict(&link(text, LinkKind::A), None) {
        Ok(()) => String::new(),
        Err(outcome) => {
            assert_eq!(outcome.class, OutcomeClass::TrapBounded);
            outcome.reason
        }
    }
}

/// A fingerprint that has nothing to do with that of another number.
fn print(n: u64) -> Option<u64> {
    Some(SEED.hash(&n.to_string()))
}

#[test]
fn copies_stop_their_pattern_and_only_it() {
    let traps = traps(TrapOptions::default());
    for n in 0..29 {
        traps.note(&url(&format!("http://h/cal/{n}")), || Some(1 << (n % 3)));
        assert_eq!(why(&traps, "http://h/cal/1000"), "", "after {n}");
    }
    traps.note(&url("http://h/cal/29"), || Some(1));
    assert_eq!(
        why(&traps, "http://h/cal/1000"),
        "19 of the last 20 of 30 pages like h/cal/{n} were near-copies of each other"
    );
    assert_eq!(why(&traps, "http://h/call/1000"), "");
    assert_eq!(why(&traps, "http://other/cal/1000"), "");
    for kind in [LinkKind::Seed, LinkKind::Sitemap, LinkKind::Img] {
        let vouched = link("http://h/cal/1000", kind);
        assert_eq!(traps.verdict(&vouched, None), Ok(()));
    }
}

#[test]
fn one_new_page_in_five_is_enough_to_go_on() {
    let traps = traps(TrapOptions::default());
    for n in 0..1000 {
        let text = if n % 5 == 0 { print(n) } else { Some(7) };
        traps.note(&url(&format!("http://h/{n}")), || text);
        assert_eq!(why(&traps, "http://h/1000"), "");
    }
}

#[test]
fn a_stopped_pattern_with_news_goes_on() {
    let traps = traps(TrapOptions::default());
    for n in 0..40 {
        traps.note(&url(&format!("http://h/{n}")), || Some(7));
    }
    assert_ne!(why(&traps, "http://h/1000"), "");
    for n in 40..45 {
        traps.note(&url(&format!("http://h/{n}")), || print(n));
    }
    assert_eq!(why(&traps, "http://h/1000"), "");
}

#[test]
fn ten_thousand_different_articles_are_no_trap_and_few_are_looked_at() {
    let traps = traps(TrapOptions::default());
    let mut taken = 0;
    for n in 0..10_000 {
        let page = url(&format!("http://h/article/{n}"));
        let copy = traps.note(&page, || {
            taken += 1;
            print(n)
        });
        assert_eq!(copy, None);
        assert_eq!(why(&traps, &format!("http://h/article/{}", n + 1)), "");
    }
    assert!(taken < 10_000 / 5, "{taken} fingerprints");
}

#[test]
fn pages_without_text_decide_nothing() {
    let traps = traps(TrapOptions::default());
    for n in 0..100 {
        traps.note(&url(&format!("http://h/{n}")), || None);
    }
    assert_eq!(why(&traps, "http://h/1000"), "");
}

/// A site of honest pages that writes a new session id into every link.
#[test]
fn session_ids_are_seen_through_and_no_page_is_lost() {
    let traps = traps(TrapOptions::default());
    let visit = |page: u64, n: u64| {
        let id = SEED.hash(&n.to_string()) | 1 << 63;
        format!("http://h/shop/item?no={page}&sid={id:x}")
    };
    let mut fetched = 0;
    let mut refused = 0;
    for n in 0..2000 {
        let page = n % 100;
        let why = why(&traps, &visit(page, n));
        if n < 100 {
            assert_eq!(why, "", "the first visit of a page");
        }
        if why.is_empty() {
            fetched += 1;
            traps.note(&url(&visit(page, n)), || print(page));
        } else {
            refused += 1;
            let said = "known but for a session id: 10 of 10 such pages of the host were near-copies, like h/shop/item?no&sid";
            assert_eq!(why, said);
        }
    }
    assert_eq!((fetched, refused), (110, 1890));
    assert_eq!(why(&traps, &visit(5000, 1)), "", "a page not seen before");
}

#[test]
fn documents_with_ids_for_names_are_no_sessions() {
    let traps = traps(TrapOptions::default());
    for n in 0..2000_u64 {
        let id = SEED.hash(&n.to_string()) | 1 << 63;
        let page = format!("http://h/doc?id={id:x}");
        assert_eq!(why(&traps, &page), "");
        traps.note(&url(&page), || print(n));
    }
}

/// Every URL is made of other words, so no pattern is ever seen twice.
#[test]
fn links_of_copies_are_not_followed_whatever_their_pattern() {
    let traps = traps(TrapOptions::default());
    let word = |n: u64| -> String {
        let hash = SEED.hash(&n.to_string());
        (0..8)
            .map(|i| (b'a' + (hash >> (i * 5)) as u8 % 26) as char)
            .collect()
    };
    for n in 0..40 {
        traps.note(&url(&format!("http://h/article/{n}")), || print(n));
    }
    let first = (0..200).find_map(|n| {
        let page = url(&format!("http://h/{}/{}/", word(n), word(n + 1000)));
        let why = traps.note(&page, || Some(7))?;
        Some((n, page, why))
    });
    let (n, page, outcome) = first.expect("a verdict on the copies");
    assert!(n < 70, "only after {n} copies");
    assert_eq!(
        outcome.reason,
        format!(
            "found on a near-copy of 30 other pages of the host, such as h{}",
            page.path()
        )
    );
    let from = Some((&page, &outcome));
    let of = |text: &str| traps.verdict(&link(text, LinkKind::A), from).is_ok();
    assert!(!of("http://h/other/words/"));
    assert!(of("http://elsewhere/other/words/"));
    assert!(of("http://h/article/99"), "a pattern that was always new");
    // And pages that are no copies lead on.
    let honest = traps.note(&url("http://h/honest/"), || print(1));
    assert_eq!(honest, None);
}

#[test]
fn filters_in_any_order_explode() {
    let traps = traps(TrapOptions::default());
    let names = ["size", "colour", "brand", "price", "sort"];
    let mut refused = 0;
    let mut n = 0_u64;
    for _ in 0..1000 {
        let mut query: Vec<String> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            n += 1;
            if !SEED.hash(&n.to_string()).is_multiple_of(4) {
                query.insert(n as usize % (query.len() + 1), format!("{name}={at}{n}"));
            }
        }
        let why = why(&traps, &format!("http://h/list?{}", query.join("&")));
        if query.len() < 3 {
            assert_eq!(why, "", "{query:?}");
        } else if !why.is_empty() {
            refused += 1;
            assert_eq!(
                why,
                "more than 200 URLs of h/list with parameters in ever new combinations"
            );
        }
    }
    assert!((500..800).contains(&refused), "{refused}");
}

#[test]
fn one_program_behind_one_path_does_not_explode() {
    let traps = traps(TrapOptions::default());
    for n in 0..5000 {
        let module = n % 20;
        let query = format!("do=show&module={module}&of{module}={n}&page={n}");
        assert_eq!(why(&traps, &format!("http://h/index.php?{query}")), "");
        let search = format!("q=word{n}&lang=en&page={n}");
        assert_eq!(why(&traps, &format!("http://h/find?{search}")), "");
    }
}

#[test]
fn calendars_end_where_nobody_has_entered_anything() {
    let traps = traps(TrapOptions::default());
    assert_eq!(why(&traps, "http://h/calendar/2028/05"), "");
    assert_eq!(
        why(&traps, "http://h/calendar/2029/05"),
        "a page of a calendar for 2029, after 2028"
    );
    assert_eq!(
        why(&traps, "http://h/calendar/1989/05"),
        "a page of a calendar for 1989, before 1990"
    );
    let seed = link("http://h/calendar/1989/05", LinkKind::Seed);
    assert_eq!(traps.verdict(&seed, None), Ok(()));
}

#[test]
fn hosts_of_a_domain_are_bounded_but_for_seeds() {
    let traps = traps(TrapOptions {
        domain_hosts: 50,
        ..TrapOptions::default()
    });
    for n in 0..50 {
        assert_eq!(why(&traps, &format!("http://h{n}.wild.example.org/")), "");
    }
    for kind in [LinkKind::A, LinkKind::Sitemap, LinkKind::SitemapFile] {
        let beyond = link("http://h50.wild.example.org/", kind);
        let refused = traps.verdict(&beyond, None).unwrap_err();
        assert_eq!(refused.reason, "more than 50 hosts under example.org");
    }
    // A seed is wanted whatever there is, and with it the pages of its host.
    let seed = link("http://h50.wild.example.org/", LinkKind::Seed);
    assert_eq!(traps.verdict(&seed, None), Ok(()));
    assert_eq!(why(&traps, "http://h50.wild.example.org/more"), "");
    // Those that were there before may go on, and customers of a hosting service are no family.
    assert_eq!(why(&traps, "http://h3.wild.example.org/more"), "");
    for n in 0..200 {
        assert_eq!(why(&traps, &format!("http://h{n}.github.io/")), "");
    }
}

#[test]
fn addresses_are_counted_by_network() {
    let traps = traps(TrapOptions {
        domain_hosts: 100,
        ..TrapOptions::default()
    });
    let refused = (0..300)
        .map(|n| why(&traps, &format!("http://192.0.{}.{}/", n / 250, n % 250)))
        .filter(|why| !why.is_empty());
    let refused: Vec<String> = refused.collect();
    assert_eq!(refused.len(), 200);
    assert_eq!(refused[0], "more than 100 hosts under 192.0.0.0/16");
    assert_eq!(why(&traps, "http://192.1.0.1/"), "");
    assert_eq!(why(&traps, "http://[2001:db8::1]/"), "");
}

#[test]
fn nought_switches_each_rule_off() {
    let traps = traps(TrapOptions {
        near_copies: 0,
        combinations: 0,
        domain_hosts: 0,
        first_year: 0,
        years_ahead: 0,
        ..TrapOptions::default()
    });
    for n in 0..2000 {
        let page = url(&format!("http://h/cal/{n}"));
        assert_eq!(traps.note(&page, || panic!("not wanted")), None);
        assert_eq!(why(&traps, &format!("http://h{n}.example.org/cal/{n}")), "");
        assert_eq!(
            why(&traps, &format!("http://h/l?a=1&b=2&c{n}=3&d{}=4", n % 7)),
            ""
        );
    }
    assert_eq!(why(&traps, "http://h/calendar/1066/10"), "");
    assert_eq!(why(&traps, "http://h/calendar/9999/10"), "");
}

/// A hostile web can fill the tables, but not beyond their bound; and what it makes us forget is learnt
/// again.
#[test]
fn memory_is_bounded() {
    let traps = traps(TrapOptions {
        memory: 64 << 10,
        ..TrapOptions::default()
    });
    for n in 0..20_000 {
        let host = format!("http://h{n}.d{n}.example");
        traps.note(&url(&format!("{host}/a")), || print(n));
        why(&traps, &format!("{host}/a?x=1&y=2&z=3"));
    }
    for n in 0..30 {
        traps.note(&url(&format!("http://h/{n}")), || Some(7));
    }
    assert_ne!(why(&traps, "http://h/99"), "");
}
