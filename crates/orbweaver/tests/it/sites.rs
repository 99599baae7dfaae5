//! Honest sites of unusual shapes are crawled whole: each page once, nothing taken for a trap, whatever the order of
//! answers.

use std::collections::HashSet;

use orbweaver_simweb::{Shape, SimConfig, SimWeb};

use crate::support::{Place, run, sim};

fn with(shapes: &[Shape]) -> SimConfig {
    SimConfig {
        hosts: 1,
        pages: 1,
        // Without them, so that nobody vouches for a page.
        sitemaps: false,
        shapes: shapes.to_vec(),
        ..SimConfig::default()
    }
}

/// Crawls from the seeds and returns the pages that were fetched.
fn crawl(web: &SimWeb, seeds: &[String], flags: &[&str]) -> HashSet<String> {
    let place = Place::new();
    let resolver = web.dns_addr().map(|addr| addr.to_string());
    let mut all: Vec<&str> = seeds.iter().map(String::as_str).collect();
    all.extend(["--per-ip", "16"]);
    if let Some(resolver) = &resolver {
        all.extend(["--resolver", resolver]);
    }
    all.extend(flags);
    let fates = place.crawl_to_the_end(&all);
    let stats = web.stats();
    assert_eq!(stats.missed.count, 0, "{:?}", stats.missed);
    assert_eq!(stats.duplicates.count, 0, "{:?}", stats.duplicates);
    assert_eq!(stats.unlinked.count, 0, "{:?}", stats.unlinked);
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    let trapped: Vec<_> = fates.iter().filter(|f| f.class == "trap_bounded").collect();
    assert!(trapped.is_empty(), "{trapped:#?}");
    place.check();
    let done = fates.iter().filter(|fate| fate.class == "success");
    done.map(|fate| fate.url.clone()).collect()
}

/// The same pages with one, three and sixteen requests at once.
fn crawl_in_any_order(shape: Shape) {
    let web = sim(with(&[shape]));
    let expected: HashSet<String> = web.expected_pages().collect();
    for at_once in ["1", "3", "16"] {
        web.reset();
        let flags = ["--scope", "any", "--per-host", at_once];
        let fetched = crawl(&web, &web.seeds(), &flags);
        let missed: Vec<_> = expected.difference(&fetched).take(5).collect();
        assert!(missed.is_empty(), "{at_once} at once: {missed:?}");
        assert_eq!(fetched.len(), expected.len());
    }
}

#[test]
fn pages_with_thousands_of_links_to_places_in_them() {
    crawl_in_any_order(Shape::Fragments);
}

#[test]
fn a_catalogue_with_five_words_a_page_in_a_frame_of_many() {
    crawl_in_any_order(Shape::Catalogue);
}

#[test]
fn a_gallery_without_words() {
    crawl_in_any_order(Shape::Gallery);
}

#[test]
fn a_catalogue_with_filters() {
    crawl_in_any_order(Shape::Facets);
}

#[test]
fn a_long_chain() {
    crawl_in_any_order(Shape::Chain);
}

#[test]
fn a_deep_tree_of_bare_folders() {
    crawl_in_any_order(Shape::Folders);
}

#[test]
fn seeds_that_link_to_each_other() {
    crawl_in_any_order(Shape::Seeds);
    // Each site is in the scope, and no host beside them.
    let web = sim(with(&[Shape::Seeds]));
    let seeds = web.seeds();
    let fetched = crawl(&web, &seeds, &["--per-host", "4"]);
    assert_eq!(fetched.len(), 1 + 4 * 41);
}

/// Whoever asks for example.org and is sent to www.example.org means the site there, under both its names.
#[test]
fn a_site_with_two_names() {
    crawl_in_any_order(Shape::Apex);
    let web = sim(SimConfig {
        ips: 1,
        ..with(&[Shape::Apex])
    });
    let seed = web.shape_root(Shape::Apex).unwrap();
    assert!(seed.starts_with("http://apex1.test:"), "{seed}");
    let place = Place::new();
    let resolver = web.dns_addr().unwrap().to_string();
    let fates = place.crawl_to_the_end(&[&seed, "--resolver", &resolver, "--per-ip", "4"]);
    let done: HashSet<&str> = fates
        .iter()
        .filter(|fate| fate.class == "success")
        .map(|fate| fate.url.as_str())
        .collect();
    let expected: Vec<String> = web.expected_pages().collect();
    // All but the page of the first host, which is another site.
    let missed: Vec<_> = expected
        .iter()
        .filter(|url| !done.contains(url.as_str()))
        .collect();
    assert_eq!(missed.len(), 1, "{missed:?}");
    assert_eq!(done.len(), 61);
    assert_eq!(web.stats().duplicates.count, 0);
}

#[test]
fn all_shapes_on_one_address_with_requisites() {
    let web = sim(SimConfig {
        ips: 1,
        ..with(&Shape::ALL)
    });
    let flags = ["--scope", "any", "--per-host", "8", "--requisites"];
    crawl(&web, &web.seeds(), &flags);
}

/// The simulation serves them for whoever wants to try.
#[test]
fn a_shape_that_is_none_is_refused_by_name() {
    let refused = run(["sim", "--shapes", "chain,rings"]).expect(2);
    assert!(
        refused.complaint().contains("`rings` is no shape"),
        "{refused:?}"
    );
}
