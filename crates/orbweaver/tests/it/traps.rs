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
        assert!((20..=300).contains(&visits.lures), "{visits:?}");
        let refused: Vec<_> = fates
            .iter()
            .filter(|fate| fate.class == "trap_bounded" && fate.url.starts_with(&root))
            .collect();
        assert!(!refused.is_empty(), "{visits:?}");
        let said = match visits.trap.as_str() {
            "calendar" => "a page of a calendar for 2",
            "session" => "/item/{n}?sid",
            "growing" => "found on a near-copy of ",
            "facets" => "/list with parameters in ever new combinations",
            "soft404" => "found on a near-copy of ",
            _ => "/list?page were near-copies of each other",
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

#[test]
fn nought_lets_the_crawl_into_the_trap() {
    let web = with_traps();
    let place = Place::new();
    let text = "[traps]\nnear_copies = 0\ncombinations = 0\n[budget]\npages = 4000\n";
    let config = place.file("traps.toml", text);
    let seed = web.seeds().remove(0);
    run(place.crawl(&[&seed, "--scope", "any", "--per-host", "4", "-c", &config])).expect(0);
    let lures: u64 = web.stats().traps.iter().map(|visits| visits.lures).sum();
    assert!(lures > 2000, "{lures}");
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
