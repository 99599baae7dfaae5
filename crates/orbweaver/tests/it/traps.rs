//! Sites without end are bounded, and nothing honest is lost for it.

use orbweaver_simweb::{SimConfig, SimWeb};

use crate::support::{Fates, Place, run, sim};

fn crawl(web: &SimWeb, place: &Place, more: &[&str]) -> Fates {
    let mut all = vec!["--scope", "any", "--per-host", "4", "--per-ip", "4"];
    let seed = web.seeds().remove(0);
    all.push(&seed);
    let resolver = web.dns_addr().map(|addr| addr.to_string());
    if let Some(resolver) = &resolver {
        all.extend(["--resolver", resolver]);
    }
    all.extend(more);
    place.crawl_to_the_end(&all)
}

fn with_traps() -> SimWeb {
    sim(SimConfig {
        hosts: 3,
        pages: 300,
        page_bytes: 2048,
        // Without them, so that nobody vouches for a page.
        sitemaps: false,
        traps: true,
        ..SimConfig::default()
    })
}

#[test]
fn every_trap_is_bounded_and_every_honest_page_is_fetched() {
    let web = with_traps();
    let place = Place::new();
    let fates = crawl(&web, &place, &[]);
    let stats = web.stats();
    assert_eq!(stats.missed.count, 0, "{:?}", stats.missed);
    assert_eq!(stats.unlinked.count, 0, "{:?}", stats.unlinked);
    assert_eq!(stats.traps.len(), 6);
    for (visits, root) in stats.traps.iter().zip(web.trap_roots()) {
        println!("{visits:?}");
        assert_eq!(visits.good, visits.good_expected, "{visits:?}");
        // Generous to honest sites: a trap may cost some thousands of pages, but it ends.
        assert!((20..=8000).contains(&visits.lures), "{visits:?}");
        let refused: Vec<_> = fates
            .iter()
            .filter(|fate| fate.class == "trap_bounded" && fate.url.starts_with(&root))
            .collect();
        assert!(!refused.is_empty(), "{visits:?}");
        let said = match visits.trap.as_str() {
            "calendar" => "a calendar page for 2",
            "session" => "such pages like ",
            "facets" => "/list with parameters in combinations that repeat each other",
            _ => "on a page with the same content as ",
        };
        let named = refused.iter().filter(|fate| fate.why().contains(said));
        assert!(named.count() > 0, "{said:?} is not in {refused:#?}");
    }
    let refused = fates.iter().filter(|fate| fate.class == "trap_bounded");
    let roots = web.trap_roots();
    for fate in refused {
        let of_trap = roots.iter().any(|root| fate.url.starts_with(root));
        assert!(of_trap && fate.attempts == 0, "{fate:?}");
    }
}

/// What was learnt is learnt again, what was refused stays refused, and the bound is a bound per run.
#[test]
fn a_trap_stays_bounded_over_a_restart() {
    let web = with_traps();
    let place = Place::new();
    crawl(&web, &place, &[]);
    let before = web.stats();
    let fates = crawl(&web, &place, &[]);
    let after = web.stats();
    assert_eq!(before.traps, after.traps, "nothing is asked for again");
    assert!(fates.iter().any(|fate| fate.class == "trap_bounded"));
}

#[test]
fn hosts_of_a_domain_are_bounded_by_the_setting() {
    let web = sim(SimConfig {
        hosts: 30,
        pages: 3,
        ips: 5,
        page_bytes: 2048,
        ..SimConfig::default()
    });
    let place = Place::new();
    let config = place.file("traps.toml", "[traps]\ndomain_hosts = 12\n");
    let fates = crawl(&web, &place, &["-c", &config]);
    let hosts = |class: &str| {
        let of_class = fates.iter().filter(|fate| fate.class == class);
        let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
        let hosts: std::collections::HashSet<String> =
            of_class.map(|fate| host(&fate.url)).collect();
        hosts
    };
    assert_eq!(hosts("success").len(), 12);
    let refused = hosts("trap_bounded");
    assert!(!refused.is_empty() && refused.is_disjoint(&hosts("success")));
    for fate in fates.iter().filter(|fate| fate.class == "trap_bounded") {
        assert_eq!(fate.why(), "more than 12 hosts under sim.test");
    }
    // The same web with the usual setting is crawled whole.
    web.reset();
    crawl(&web, &Place::new(), &[]);
    assert_eq!(web.stats().missed.count, 0);
}

/// What is left out is said with its pattern, its number and the flag that fetches it.
#[test]
fn what_is_left_out_is_said_and_can_be_fetched_all_the_same() {
    let web = with_traps();
    let place = Place::new();
    let pagination = web.trap_roots().pop().unwrap();
    let config = place.file(
        "traps.toml",
        "[traps]\ncopies = 50\n[politeness]\nper_host = 4\n",
    );
    let ended = run(place.crawl(&[&pagination, "-c", &config, "--progress", "plain"])).expect(0);
    let host = pagination
        .split('/')
        .nth(2)
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    let said = format!("left out as a trap: 1 URL like {host}/list?page: found on a page");
    assert!(ended.out().contains(&said), "{}", ended.out());
    assert!(ended.out().contains("--no-traps"), "{}", ended.out());
    let before = web.stats().traps[5].lures;
    let fates = place.fates();
    let left_out = fates
        .iter()
        .find(|fate| fate.class == "trap_bounded")
        .unwrap();
    let why = run(["why", place.arg(), &left_out.url]).expect(0).out();
    assert!(why.contains("--no-traps"), "{why}");
    // The rule is lifted, and the crawl resumes where it was cut.
    run(place.crawl(&["--no-traps", "--pages", "500"])).expect(0);
    let lures = web.stats().traps[5].lures;
    assert!(lures > before + 300, "{before}, then {lures}");
}

#[test]
fn nought_and_the_flag_let_the_crawl_into_the_trap() {
    for flag in [None, Some("--no-traps")] {
        let web = with_traps();
        let place = Place::new();
        let traps = match flag {
            None => "[traps]\ncopies = 0\ncombinations = 0\n",
            Some(_) => "",
        };
        let text = format!("{traps}[budget]\npages = 25000\n");
        let config = place.file("traps.toml", &text);
        let seed = web.seeds().remove(0);
        let mut args = vec![
            seed.as_str(),
            "--scope",
            "any",
            "--per-host",
            "4",
            "-c",
            &config,
        ];
        args.extend(flag);
        run(place.crawl(&args)).expect(0);
        let lures: u64 = web.stats().traps.iter().map(|visits| visits.lures).sum();
        assert!(lures > 20_000, "{lures}");
    }
}

/// Thousands of pages of few patterns that nobody vouches for, some of little text.
#[test]
fn honest_pages_are_no_trap_however_many_they_are() {
    for (pages, page_bytes) in [(6000, 1024), (2000, 16 << 10)] {
        let web = sim(SimConfig {
            hosts: 1,
            pages,
            page_bytes,
            sitemaps: false,
            ..SimConfig::default()
        });
        let fates = crawl(&web, &Place::new(), &[]);
        assert_eq!(web.stats().missed.count, 0);
        let trapped: Vec<_> = fates.iter().filter(|f| f.class == "trap_bounded").collect();
        assert!(trapped.is_empty(), "{trapped:#?}");
    }
}
