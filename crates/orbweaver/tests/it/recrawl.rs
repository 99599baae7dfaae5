//! Pages that are visited again: sooner when they change, later when they do not, and asked for with what
//! the last visit left.

use rustix::process::Signal;

use crate::script::{Reply, Request, Site};
use crate::support::{Place, Running, run, start, until};

/// Pages that change with every look, that never do, and that do but only say so in their head.
fn site(address: [u8; 3]) -> Site {
    Site::start(address, |asked| {
        let page = |tag: String, body: String| {
            let known = asked.field("If-None-Match") == Some(tag.as_str());
            let reply = match known {
                true => Reply::status(304),
                false => Reply::html(body),
            };
            Some(reply.with(&format!("ETag: {tag}")))
        };
        let text = "the same words again and again ".repeat(60);
        match asked.target.as_str() {
            "/" => Some(Reply::links([
                "/steady", "/moving", "/dated", "/gone", "/moved",
            ])),
            "/steady" => page("\"one\"".into(), text),
            "/moving" => page(
                format!("\"{}\"", asked.before),
                format!("look number {} {text}", asked.before),
            ),
            "/dated" => dated(asked, text),
            "/gone" => Some(Reply::status(410)),
            "/moved" => Some(Reply::status(301).with("Location: /steady")),
            _ => None,
        }
    })
}

fn dated(asked: &Request, text: String) -> Option<Reply> {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let reply = match asked.field("If-Modified-Since") == Some(date) {
        true => Reply::status(304),
        false => Reply::html(text),
    };
    Some(reply.with(&format!("Last-Modified: {date}")))
}

const BOUNDS: [&str; 5] = ["--recrawl", "--recrawl-min", "1s", "--recrawl-max", "60s"];

fn begin(place: &Place, site: &Site, more: &[&str]) -> Running {
    let seed = site.url("/");
    start(place.crawl(&[&[seed.as_str()], &BOUNDS[..], more].concat()))
}

fn stop(running: Running) {
    running.signal(Signal::INT);
    running.wait().expect(3);
}

/// The records of the archive with a server-not-modified profile, by their target.
fn not_modified(place: &Place) -> Vec<String> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(place.dir().join("warc")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let mut text = String::new();
        use std::io::Read as _;
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]);
        let mut raw = Vec::new();
        reader.read_to_end(&mut raw).unwrap();
        text.push_str(&String::from_utf8_lossy(&raw));
        for record in text.split("WARC/1.1\r\n") {
            if record.contains(
                "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified",
            ) {
                let line = record
                    .lines()
                    .find(|line| line.starts_with("WARC-Target-URI"));
                targets.push(line.unwrap().rsplit('/').next().unwrap().to_owned());
            }
        }
    }
    targets
}

#[test]
fn a_page_that_changes_comes_back_sooner_than_one_that_does_not() {
    let site = site([2, 7, 1]);
    let place = Place::new();
    let running = begin(&place, &site, &[]);
    until("ten looks at the page that changes", || {
        site.asked("/moving") >= 10
    });
    stop(running);
    let (moving, steady, dated) = (
        site.asked("/moving"),
        site.asked("/steady"),
        site.asked("/dated"),
    );
    assert!(steady >= 2 && steady < moving, "{steady} of {moving}");
    assert!(dated >= 2 && dated < moving, "{dated} of {moving}");
    // Gone for good, and moved for good.
    assert_eq!((site.asked("/gone"), site.asked("/moved")), (1, 1));
    let again = site.log().into_iter().filter(|asked| asked.before > 0);
    for asked in again {
        match asked.target.as_str() {
            "/steady" => assert_eq!(asked.field("If-None-Match"), Some("\"one\"")),
            "/dated" => assert!(asked.field("If-Modified-Since").is_some()),
            _ => {}
        }
    }
    // What is archived: a 304 as what it is, a changed page whole.
    let unchanged = not_modified(&place);
    assert_eq!(
        unchanged.iter().filter(|page| *page == "steady").count(),
        steady - 1
    );
    assert!(!unchanged.contains(&"moving".to_owned()));
    place.check();
    let status = place.status();
    assert!(status.balanced, "{status:?}");
    let text = String::from_utf8(place.get(&site.url("/steady"))).unwrap();
    assert!(text.starts_with("the same words"), "{text}");
    let last = format!("look number {}", moving - 1);
    let text = String::from_utf8(place.get(&site.url("/moving"))).unwrap();
    assert!(text.starts_with(&last), "{text}");
    let why = run(["why", place.arg(), &site.url("/steady")]).expect(0);
    assert!(why.out().contains("visit"), "{}", why.out());
}

#[test]
fn visits_survive_a_kill_and_can_begin_on_a_finished_crawl() {
    let site = site([2, 7, 2]);
    let place = Place::new();
    // A crawl that ends, and is told afterwards to go on for ever.
    run(place.crawl(&[&site.url("/")])).expect(0);
    assert_eq!((site.asked("/moving"), site.asked("/steady")), (1, 1));
    for kill in 1..=4 {
        let running = start(place.crawl(&BOUNDS));
        until("another look", || site.asked("/moving") > kill);
        running.signal(Signal::KILL);
        running.wait();
    }
    let looks = site.asked("/moving");
    let running = start(place.crawl(&BOUNDS));
    until("three looks more", || site.asked("/moving") >= looks + 3);
    stop(running);
    let steady = site
        .log()
        .into_iter()
        .filter(|asked| asked.target == "/steady");
    for asked in steady.filter(|asked| asked.before > 0) {
        assert_eq!(asked.field("If-None-Match"), Some("\"one\""));
    }
    place.check();
    let status = place.status();
    assert!(status.balanced, "{status:?}");
    // Without the word the crawl is what it was: finished.
    let config = std::fs::read_to_string(place.dir().join("crawl.toml")).unwrap();
    std::fs::write(
        place.dir().join("crawl.toml"),
        config.replace("on = true", "on = false"),
    )
    .unwrap();
    run(place.crawl(&[])).expect(0);
}

#[test]
fn head_is_asked_first_where_that_is_wanted() {
    let site = site([2, 7, 3]);
    let place = Place::new();
    let running = begin(&place, &site, &["--head-first"]);
    until("looks at both kinds of page", || {
        site.asked("/moving") >= 7 && site.asked("/steady") >= 3
    });
    stop(running);
    let of = |page: &str| -> Vec<String> {
        let log = site.log().into_iter().filter(|asked| asked.target == page);
        log.map(|asked| asked.method).collect()
    };
    let steady = of("/steady");
    assert_eq!(steady[0], "GET");
    assert!(
        steady[1..].iter().all(|method| method == "HEAD"),
        "{steady:?}"
    );
    // Each HEAD that shows a change is followed by the page itself.
    let moving = of("/moving");
    assert_eq!(moving[..5], ["GET", "HEAD", "GET", "HEAD", "GET"]);
    place.check();
    assert!(place.status().balanced);
}

/// A budget of pages counts pages, not visits.
#[test]
fn pages_within_a_budget_are_visited_again() {
    let site = site([2, 7, 4]);
    let place = Place::new();
    let running = begin(&place, &site, &["--pages", "3"]);
    until("three looks at the start", || site.asked("/") >= 3);
    stop(running);
    let status = place.status();
    assert!(status.balanced && status.pages <= 3, "{status:?}");
    let pages = ["/", "/steady", "/moving", "/dated"];
    let asked = pages.iter().filter(|page| site.asked(page) > 0).count();
    assert_eq!(asked, 3, "visits make no room for other pages");
}
