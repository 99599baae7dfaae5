//! The stream of finished pages: each at least once, also across a stop, and a slow reader slows the crawl.

use std::collections::{BTreeMap, BTreeSet};

use crate::{crawl_of, small};

fn expected(sim: &orbweaver_simweb::SimWeb) -> BTreeSet<String> {
    sim.expected_pages().map(|url| url.to_string()).collect()
}

#[test]
fn every_page_comes_with_all_that_it_is() {
    let (sim, dir) = small(3, 20);
    let crawl = crawl_of(&sim, &dir).start().unwrap();
    let mut found = BTreeSet::new();
    for page in crawl.pages("test").unwrap() {
        let page = page.unwrap();
        if !page.is_document() {
            continue;
        }
        assert_eq!(page.status(), 200);
        assert!(page.headers().contains_key("content-type"));
        if page.headers()["content-type"]
            .to_str()
            .unwrap()
            .contains("html")
        {
            assert!(page.title().is_some(), "{}", page.url());
            assert!(!page.text().is_empty() && !page.links().is_empty());
        }
        assert!(
            found.insert(page.url().to_string()),
            "twice: {}",
            page.url()
        );
    }
    crawl.wait().unwrap();
    assert_eq!(found, expected(&sim));
}

#[test]
fn a_reader_that_stops_goes_on_where_it_was() {
    let (sim, dir) = small(2, 30);
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let mut rounds = 0;
    loop {
        let crawl = crawl_of(&sim, &dir).start().unwrap();
        let mut pages = crawl.pages("test").unwrap();
        let mut ended = true;
        for page in pages.by_ref() {
            let page = page.unwrap();
            if page.is_document() {
                *times.entry(page.url().to_string()).or_default() += 1;
            }
            if times.values().sum::<u32>() % 7 == 0 {
                ended = false;
                break;
            }
        }
        drop(pages);
        drop(crawl);
        rounds += 1;
        if ended {
            break;
        }
    }
    assert!(rounds > 3, "{rounds}");
    assert_eq!(
        times.keys().cloned().collect::<BTreeSet<_>>(),
        expected(&sim)
    );
    // Only the page that a round ended with comes again.
    let again: u32 = times.values().map(|times| times - 1).sum();
    assert!(again <= rounds, "{again} in {rounds} rounds");
    assert_eq!(sim.stats().duplicates.count, 0);
}

#[test]
fn two_readers_read_on_their_own() {
    let (sim, dir) = small(1, 30);
    let crawl = crawl_of(&sim, &dir).start().unwrap();
    let read = |name: &str| {
        let pages = crawl.pages(name).unwrap();
        pages
            .filter(|page| page.as_ref().unwrap().is_document())
            .count()
    };
    let (one, other) = (read("one"), read("other"));
    assert_eq!((one, other), (expected(&sim).len(), expected(&sim).len()));
}

#[test]
fn the_crawl_waits_for_a_reader_that_is_far_behind() {
    let (sim, dir) = small(8, 400);
    let crawl = crawl_of(&sim, &dir).start().unwrap();
    let mut pages = crawl.pages("slow").unwrap();
    let all = expected(&sim).len() as u64;
    assert!(all > 2500, "{all}");
    // It reads nothing, and so the crawl comes to a halt long before its end.
    let mut before = 0;
    let mut same = 0;
    while same < 10 {
        assert!(
            !crawl.wait_timeout(std::time::Duration::from_millis(200)),
            "it did not wait"
        );
        let now = crawl.progress().pages;
        same = if now == before && now > 0 {
            same + 1
        } else {
            0
        };
        before = now;
    }
    assert!(before < all, "{before} of {all}");
    let read = pages
        .by_ref()
        .filter(|page| page.as_ref().unwrap().is_document());
    assert_eq!(read.count() as u64, all);
    drop(pages);
    assert_eq!(crawl.wait().unwrap().pages, all);
}
