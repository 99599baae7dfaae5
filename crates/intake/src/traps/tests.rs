//! Traps and honest sites, as streams of pages and links.

use std::collections::{HashSet, VecDeque};

use super::*;

const SEED: KeySeed = KeySeed(3);

/// In the year 2026.
const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn traps(options: TrapOptions) -> Traps {
    Traps::new(options, SEED, NOW)
}

fn usual() -> Traps {
    traps(TrapOptions::default())
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
    reason(traps.verdict(&link(text, LinkKind::A), None))
}

fn reason(verdict: Result<(), Outcome>) -> String {
    match verdict {
        Ok(()) => String::new(),
        Err(outcome) => {
            assert_eq!(outcome.class, OutcomeClass::TrapBounded);
            outcome.reason
        }
    }
}

/// A page that says the same as all with this number.
fn says(n: u64) -> Fingerprint {
    Fingerprint {
        words: SEED.hash(&n.to_string()),
        ..Fingerprint::default()
    }
}

/// Crawls a site of one host breadth first, up to `most` pages. `page` gives what the page at a target says and
/// where it links to.
fn crawl(
    traps: &Traps,
    most: usize,
    page: impl Fn(&str) -> (Fingerprint, Vec<String>),
) -> (usize, Vec<String>) {
    let mut known = HashSet::from(["/".to_owned()]);
    let mut queue = VecDeque::from(["/".to_owned()]);
    let mut refused = Vec::new();
    let mut fetched = 0;
    while let Some(target) = queue.pop_front().filter(|_| fetched < most) {
        fetched += 1;
        let here = url(&format!("http://h{target}"));
        let (print, links) = page(&target);
        let copies = traps.note(&here, || print);
        for to in links {
            if !known.insert(to.clone()) {
                continue;
            }
            let to_link = link(&format!("http://h{to}"), LinkKind::A);
            match reason(traps.verdict(&to_link, Some((&here, copies)))) {
                fine if fine.is_empty() => queue.push_back(to),
                why => refused.push(why),
            }
        }
    }
    (fetched, refused)
}

fn number(target: &str) -> u64 {
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[test]
fn copies_that_lead_to_copies_come_to_an_end() {
    type Site = fn(&str) -> Vec<String>;
    let chain: Site = |target| vec![format!("/list?page={}", number(target) + 1)];
    let ten: Site = |target| {
        let next = |n| format!("/n/{}", number(target) * 10 + n);
        (1..=10).map(next).collect()
    };
    let folders: Site = |target| {
        let base = target.trim_end_matches('/');
        vec![format!("{base}/left"), format!("{base}/right")]
    };
    let words: Site = |target| {
        let word = |n: u64| {
            let hash = SEED.hash(&format!("{target} {n}"));
            let letter = |i: u64| (b'a' + (hash >> (i * 5)) as u8 % 26) as char;
            (0..8).map(letter).collect::<String>()
        };
        (0..3).map(|n| format!("/{}/", word(n))).collect()
    };
    for (name, site) in [
        ("chain", chain),
        ("ten", ten),
        ("folders", folders),
        ("words", words),
    ] {
        let (fetched, refused) = crawl(&usual(), 100_000, |target| (says(7), site(target)));
        assert!((2000..6000).contains(&fetched), "{name}: {fetched}");
        let said = "on a page with the same content as ";
        assert!(
            refused.iter().all(|why| why.contains(said)),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn a_page_of_its_own_in_ten_is_enough_to_go_on() {
    let (fetched, refused) = crawl(&usual(), 20_000, |target| {
        let n = number(target);
        let print = if n.is_multiple_of(10) {
            says(n + 100)
        } else {
            says(7)
        };
        (print, vec![format!("/p/{}", n + 1)])
    });
    assert_eq!((fetched, refused.len()), (20_000, 0));
}

/// Lists that say nothing but numbers, and lead to goods that do.
#[test]
fn lists_without_words_lead_on() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let n = number(target);
        if target.starts_with("/item/") {
            return (says(n + 1000), Vec::new());
        }
        let next = (n < 4000).then(|| format!("/list/{}", n + 1));
        (
            says(7),
            next.into_iter().chain([format!("/item/{n}")]).collect(),
        )
    });
    assert_eq!((fetched, refused.len()), (4001 + 4001, 0));
}

/// A wiki: each page has a form to edit it, which says that one must log in, and that has a link of its own to the
/// form for that. Ten thousand forms that are the same, and none of them leads on.
#[test]
fn forms_that_are_the_same_for_every_page_are_honest() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let n = number(target);
        if target.starts_with("/edit") {
            return (says(7), vec![format!("/login?to={n}")]);
        } else if target.starts_with("/login") {
            return (says(8), Vec::new());
        }
        let next = (n < 9_999).then(|| format!("/wiki/{}", n + 1));
        (
            says(n + 100),
            next.into_iter()
                .chain([format!("/edit?page={n}")])
                .collect(),
        )
    });
    assert_eq!((fetched, refused.len()), (30_000, 0));
}

#[test]
fn ten_years_of_empty_days_are_honest() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let n = number(target);
        let next = (n < 3650).then(|| format!("/day/{}", n + 1));
        (says(n % 7), next.into_iter().collect())
    });
    assert_eq!((fetched, refused.len()), (3651, 0));
}

#[test]
fn files_and_redirects_that_copies_lead_to_pay_back_too() {
    let traps = usual();
    let page = url("http://h/list/1");
    for _ in 0..100 {
        traps.note(&page, || says(7));
    }
    for n in 0..5000 {
        let on_copy =
            |text: &str| reason(traps.verdict(&link(text, LinkKind::A), Some((&page, 99))));
        let file = format!("http://h/file/{n}");
        assert_eq!(on_copy(&file), "", "{n}");
        traps.note_file(&url(&file));
        let go = format!("http://h/go/{n}");
        assert_eq!(on_copy(&go), "", "{n}");
        let mut target = link(&format!("http://h/moved/{n}"), LinkKind::Redirect);
        target.chain = vec![url(&go).key(SEED)];
        assert_eq!(traps.verdict(&target, None), Ok(()));
        traps.note(&target.url, || says(n + 1000));
    }
}

#[test]
fn tables_of_numbers_are_pages_of_their_own() {
    let (fetched, refused) = crawl(&usual(), 5000, |target| {
        let n = number(target);
        let numbers = [1, 2, 3, 4].map(|part| SEED.hash(&format!("{n} {part}")));
        let print = Fingerprint { numbers, ..says(7) };
        (print, vec![format!("/station/{}", n + 1)])
    });
    assert_eq!((fetched, refused.len()), (5000, 0));
}

#[test]
fn ten_thousand_different_articles_are_no_trap_and_few_are_looked_at() {
    let traps = usual();
    let mut taken = 0;
    for n in 0..10_000 {
        let page = url(&format!("http://h/article/{n}"));
        let copies = traps.note(&page, || {
            taken += 1;
            says(n)
        });
        assert_eq!(copies, 0);
        assert_eq!(why(&traps, &format!("http://h/article/{}", n + 1)), "");
    }
    assert!(taken < 10_000 / 5, "{taken} fingerprints");
}

/// A site of honest pages that writes a new session id into every link.
#[test]
fn session_ids_are_seen_through_and_no_page_is_lost() {
    let traps = usual();
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
            traps.note(&url(&visit(page, n)), || says(page));
        } else {
            refused += 1;
            let said = "known except for a session id: 20 of 20 such pages like h/shop/item?no&sid were copies";
            assert_eq!(why, said);
        }
    }
    assert_eq!((fetched, refused), (120, 1880));
    assert_eq!(why(&traps, &visit(5000, 1)), "", "a page not seen before");
}

#[test]
fn documents_with_ids_for_names_are_no_sessions() {
    let traps = usual();
    for n in 0..2000_u64 {
        let id = SEED.hash(&n.to_string()) | 1 << 63;
        // A form that is the same for each of them says nothing about the documents.
        let form = format!("http://h/login?token={id:x}");
        traps.note(&url(&form), || says(7));
        let page = format!("http://h/doc?id={id:x}");
        assert_eq!(why(&traps, &page), "");
        traps.note(&url(&page), || says(n + 100));
    }
}

/// Every filter can be added to any list, also when it is there already.
#[test]
fn filters_without_end_explode() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let filters = ["colour", "size", "brand", "price", "sort"];
        let add = |filter: &str| {
            let value = SEED.hash(&format!("{target}{filter}")) % 5;
            match target.split_once('?') {
                Some((_, query)) => format!("/list?{query}&{filter}={value}"),
                None => format!("/list?{filter}={value}"),
            }
        };
        (says(SEED.hash(target)), filters.map(add).into())
    });
    assert!((4000..6000).contains(&fetched), "{fetched}");
    assert!(refused.iter().any(|why| why
        == "more than 5000 URLs of h/list with parameters in combinations that repeat each other"));
}

/// Six filters with four values each, of which any may be set: fifteen thousand lists, each of them once.
#[test]
fn a_catalogue_with_many_filters_is_honest() {
    let (fetched, refused) = crawl(&usual(), 1_000_000, |target| {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let set: Vec<&str> = query.split('&').filter(|set| !set.is_empty()).collect();
        let mut links = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f"] {
            for value in 0..4 {
                let mut more: Vec<String> = set
                    .iter()
                    .filter(|old| !old.starts_with(name))
                    .map(ToString::to_string)
                    .collect();
                more.push(format!("{name}={value}"));
                more.sort();
                links.push(format!("/list?{}", more.join("&")));
            }
        }
        (says(SEED.hash(target)), links)
    });
    assert_eq!((fetched, refused.len()), (5_usize.pow(6), 0));
}

/// Three filters in the order in which they were clicked.
#[test]
fn a_small_catalogue_in_any_order_is_honest() {
    let (fetched, refused) = crawl(&usual(), 1_000_000, |target| {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let mut links = Vec::new();
        for name in ["a", "b", "c"] {
            for value in (0..4).filter(|_| !query.contains(name)) {
                let joint = if query.is_empty() { "" } else { "&" };
                links.push(format!("/list?{query}{joint}{name}={value}"));
            }
        }
        (says(SEED.hash(target)), links)
    });
    assert_eq!((fetched, refused.len()), (1 + 12 + 96 + 384, 0));
}

#[test]
fn a_query_that_repeats_itself() {
    let traps = usual();
    assert_eq!(why(&traps, "http://h/?x=1&x=1&x=1"), "");
    assert_eq!(why(&traps, "http://h/?tag=a&tag=b&tag=c&tag=d&tag=e"), "");
    assert_eq!(
        why(&traps, "http://h/?x=1&y&x=1&x=1&x=1"),
        "repeating query"
    );
}

#[test]
fn one_program_behind_one_path_does_not_explode() {
    let traps = usual();
    for n in 0..20_000 {
        let module = n % 20;
        let query = format!("do=show&module={module}&of{module}={n}&page={n}");
        assert_eq!(why(&traps, &format!("http://h/index.php?{query}")), "");
        let search = format!("q=word{n}&lang=en&page={n}");
        assert_eq!(why(&traps, &format!("http://h/find?{search}")), "");
    }
}

fn month(target: &str) -> u64 {
    let mut parts = target
        .trim_end_matches('/')
        .rsplit('/')
        .map(|part| part.parse().unwrap_or(0));
    let (month, year): (u64, u64) = (parts.next().unwrap(), parts.next().unwrap_or(0));
    if year == 0 {
        2024 * 12
    } else {
        year * 12 + month - 1
    }
}

#[test]
fn a_calendar_without_entries_ends_soon_after_our_time() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let now = month(target);
        let at = |month: u64| format!("/calendar/{}/{}", month / 12, month % 12 + 1);
        (says(now % 12), vec![at(now - 1), at(now + 1)])
    });
    // Two hundred months beyond 2028, and meanwhile as many back.
    assert!((300..900).contains(&fetched), "{fetched}");
    let said = "a calendar page for 2";
    assert!(
        refused.iter().any(|why| why.starts_with(said)),
        "{refused:?}"
    );
}

/// Months that say nothing but which days there are, fifty years back.
#[test]
fn a_bare_archive_of_fifty_years_is_honest() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let now = month(target);
        let at = |month: u64| format!("/archive/{}/{:02}/", month / 12, month % 12 + 1);
        let mut links = vec![at(now - 1)];
        links.retain(|_| now > 1974 * 12);
        (says(7), links)
    });
    assert_eq!((fetched, refused.len()), (50 * 12 + 1, 0));
}

/// Two hundred years of a newspaper.
#[test]
fn an_archive_with_entries_is_honest_however_old() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let now = month(target);
        let at = |month: u64| format!("/archive/{}/{:02}", month / 12, month % 12 + 1);
        let mut links = vec![at(now - 1)];
        links.retain(|_| now > 1800 * 12);
        (says(now), links)
    });
    assert_eq!((fetched, refused.len()), (224 * 12 + 1, 0));
}

/// Folders that say nothing, with names that come again on every level.
#[test]
fn a_finite_tree_of_bare_folders_is_honest() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        let below = |name: &str| format!("{target}{name}/");
        let deep = target.matches('/').count() > 7;
        (
            says(7),
            if deep {
                Vec::new()
            } else {
                vec![below("0"), below("1")]
            },
        )
    });
    assert_eq!((fetched, refused.len()), (255, 0));
}

#[test]
fn a_link_that_feeds_on_itself_ends_at_the_depth() {
    let (fetched, refused) = crawl(&usual(), 100_000, |target| {
        (says(7), vec![format!("{target}deeper/")])
    });
    assert_eq!((fetched, refused.len()), (65, 1));
    assert_eq!(refused[0], "path of 65 segments, more than 64");
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
fn every_rule_can_be_switched_off() {
    let off = TrapOptions {
        enabled: false,
        ..TrapOptions::default()
    };
    let nought = TrapOptions {
        copies: 0,
        combinations: 0,
        domain_hosts: 0,
        first_year: 0,
        years_ahead: 0,
        path_depth: 10_000,
        ..TrapOptions::default()
    };
    for options in [off, nought] {
        let traps = traps(options);
        let from = url("http://h/");
        for n in 0..12_000 {
            let copies = traps.note(&url(&format!("http://h/{n}?sid={n:032x}")), || says(7));
            let year = 3000 + n;
            for text in [
                format!("http://h/calendar/{year}/01"),
                format!("http://h/{}", "a/".repeat(100 + n as usize % 50)),
                format!("http://h{n}.example.org/"),
                format!("http://h/l?a={n}&a={n}&b{n}=3&d{}=4", n % 7),
                format!("http://h/{}?sid={:032x}", n / 2, n + 1),
            ] {
                let verdict = traps.verdict(&link(&text, LinkKind::A), Some((&from, copies)));
                assert_eq!(verdict, Ok(()), "{text}");
            }
        }
    }
    let off = traps(TrapOptions {
        enabled: false,
        ..TrapOptions::default()
    });
    assert_eq!(off.note(&url("http://h/"), || panic!("not wanted")), 0);
}

#[test]
fn a_host_can_have_rules_of_its_own() {
    let chain = |target: &str| {
        let next = format!("/list?page={}", number(target) + 1);
        (says(7), vec![next])
    };
    let own = |options: TrapOptions| {
        let mut hosts = PerHost::default();
        hosts.set_host("h", options);
        crawl(&usual().with_hosts(hosts), 9000, chain).0
    };
    let (fetched, _) = crawl(&usual(), 9000, chain);
    assert!(fetched < 6000, "{fetched}");
    let off = TrapOptions {
        enabled: false,
        ..TrapOptions::default()
    };
    assert_eq!(own(off), 9000);
    let strict = TrapOptions {
        copies: 40,
        ..TrapOptions::default()
    };
    let fetched = own(strict);
    assert!(fetched < 100, "{fetched}");
    let shallow = TrapOptions {
        path_depth: 1,
        ..TrapOptions::default()
    };
    let mut hosts = PerHost::default();
    hosts.set_domain("example.org", shallow);
    let traps = usual().with_hosts(hosts);
    let deep = "http://www.example.org/a/b/c";
    assert!(why(&traps, deep).contains("more than 1"));
    assert_eq!(why(&traps, "http://example.net/a/b/c"), "");
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
        traps.note(&url(&format!("{host}/a")), || says(n));
        why(&traps, &format!("{host}/a?x=1&y=2&z=3"));
    }
    let (fetched, refused) = crawl(&traps, 100_000, |target| {
        (says(7), vec![format!("/n/{}", number(target) + 1)])
    });
    assert!(fetched < 6000 && !refused.is_empty(), "{fetched}");
}
