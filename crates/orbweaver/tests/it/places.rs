//! Hosts that hold their places for ever leave some to those that do not.

use rustix::process::Signal;

use crate::script::{Reply, Site};
use crate::support::{Place, start, until};

/// Forty hosts that never answer, and come first, beside six that do; sixteen places, and an hour for each answer. The six
/// get through because places are given back, or not at all.
#[test]
fn hosts_that_never_answer_do_not_keep_the_others_from_being_asked() {
    let silent: Vec<Site> = (1..=40)
        .map(|n| {
            Site::start([63, 0, n], |asked| match asked.target.as_str() {
                "/robots.txt" => None,
                _ => Some(Reply::silence()),
            })
        })
        .collect();
    let honest: Vec<Site> = (1..=6)
        .map(|n| {
            Site::start([63, 1, n], |asked| match asked.target.as_str() {
                "/robots.txt" => None,
                "/" => Some(Reply::links((0..20).map(|n| format!("/{n}")))),
                other => Some(Reply::html(format!("page {other}"))),
            })
        })
        .collect();
    let place = Place::new();
    let urls = |site: &Site| ["/a", "/b", "/"].map(|target| site.url(target));
    let mut seeds: Vec<String> = silent.iter().flat_map(urls).collect();
    seeds.extend(honest.iter().map(|site| site.url("/")));
    let seeds = place.file("seeds.txt", seeds.join("\n"));
    let crawl = place.crawl(&["--seeds", &seeds, "--concurrency", "16", "--timeout", "1h"]);
    let running = start(crawl);
    until("the pages of the six", || {
        honest.iter().all(|site| site.pages().len() == 21)
    });
    running.signal(Signal::INT);
    running.wait().expect(3);
    // Whoever was given up is asked again, but not over and over.
    let most = silent.iter().map(|site| site.asked("/a")).max();
    assert!(most <= Some(4), "{most:?}");
    let status = place.status();
    assert!(status.balanced && status.failed == 0, "{status:?}");
    place.check();
}
