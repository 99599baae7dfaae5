//! What belongs to a crawl: every refusal is recorded with its reason, and nothing refused is asked for.

use orbweaver_simweb::SimConfig;

use crate::script::{Reply, Site};
use crate::support::{Place, run, sim};

/// Two sites that link to each other, with pages in two directories and a picture.
fn sites(net: u8) -> (Site, Site) {
    let other = Site::start([net, 0, 2], |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/logo.png" => Some(Reply::new(200, "image/png", "png")),
        _ => Some(Reply::html("other")),
    });
    let (page, picture) = (other.url("/page"), other.url("/logo.png"));
    let site = Site::start([net, 0, 1], move |asked| match asked.target.as_str() {
        "/" | "/dir/" => Some(Reply::html(format!(
            "<link rel=stylesheet href=/style.css><script src=/s.js></script>\
             <a href=/dir/a>a</a><a href=/elsewhere/b>b</a><a href={page}>c</a><img src={picture}>"
        ))),
        "/dir/a" => Some(Reply::links(["/dir/deeper"])),
        "/dir/deeper" => Some(Reply::links(["/dir/deepest"])),
        "/style.css" => Some(Reply::new(
            200,
            "text/css",
            "b { background: url(/bg.png) }",
        )),
        "/s.js" => Some(Reply::new(200, "text/javascript", "let x;")),
        "/bg.png" => Some(Reply::new(200, "image/png", "png")),
        "/dir/deepest" | "/elsewhere/b" => Some(Reply::html("a page")),
        _ => None,
    });
    (site, other)
}

const ALL: [&str; 5] = ["/", "/dir/a", "/dir/deeper", "/dir/deepest", "/elsewhere/b"];

fn sorted(mut pages: Vec<String>) -> Vec<String> {
    pages.sort();
    pages
}

#[test]
fn host_is_the_usual_scope() {
    let (site, other) = sites(4);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    assert_eq!(sorted(site.pages()), ALL);
    assert_eq!(other.log().len(), 0, "not even robots.txt");
    assert_eq!(
        fates.verdict(&other.url("/page")),
        (
            "denied_policy",
            "out of scope: host 127.4.0.2 is not the host of a seed"
        )
    );
}

#[test]
fn any_goes_everywhere() {
    let (site, other) = sites(5);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/"), "--scope", "any"]);
    assert_eq!(fates.of(&other.url("/page")).class, "success");
    assert_eq!(other.pages(), ["/page"]);
}

#[test]
fn prefix_stays_below_the_directory_of_the_seed() {
    let (site, other) = sites(6);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/dir/"), "--scope", "prefix"]);
    let below = ["/dir/", "/dir/a", "/dir/deeper", "/dir/deepest"];
    assert_eq!(sorted(site.pages()), below);
    let (class, why) = fates.verdict(&site.url("/elsewhere/b"));
    assert_eq!(class, "denied_policy");
    assert!(
        why.starts_with("out of scope: ") && why.ends_with(" is not below the directory of a seed")
    );
    assert_eq!(other.log().len(), 0);
}

#[test]
fn domain_takes_every_host_of_the_registered_domain() {
    // All names of the simulated web are hosts of the domain sim.test.
    let web = sim(SimConfig {
        hosts: 8,
        pages: 5,
        ips: 3,
        page_bytes: 2000,
        ..SimConfig::default()
    });
    let resolver = web.dns_addr().unwrap().to_string();
    let seed = web.seeds().remove(0);
    let place = Place::new();
    place.crawl_to_the_end(&[&seed, "--scope", "domain", "--resolver", &resolver]);
    assert_eq!(web.stats().missed.count, 0);
    // And with the host's own scope only its pages.
    web.reset();
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&seed, "--resolver", &resolver]);
    assert_eq!(web.stats().fetched, u64::from(web.pages(0)));
    let outside = |why: &str| why.starts_with("out of scope: host ");
    assert!(fates.iter().any(|fate| outside(fate.why())));
}

#[test]
fn include_and_exclude_patterns() {
    let (site, _) = sites(7);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[
        &site.url("/"),
        "--include",
        "/dir/",
        "--include",
        "nothing",
        "--exclude",
        "deepest$",
    ]);
    assert_eq!(sorted(site.pages()), ["/", "/dir/a", "/dir/deeper"]);
    assert_eq!(
        fates.verdict(&site.url("/elsewhere/b")),
        ("denied_policy", "matches no include pattern")
    );
    assert_eq!(
        fates.verdict(&site.url("/dir/deepest")),
        ("denied_policy", "excluded by pattern \"deepest$\"")
    );
}

#[test]
fn depth_counts_links_from_the_seed() {
    for (net, depth, pages) in [(8, "0", 1), (9, "1", 3), (10, "2", 4)] {
        let (site, _) = sites(net);
        let place = Place::new();
        let fates = place.crawl_to_the_end(&[&site.url("/"), "--depth", depth]);
        assert_eq!(site.pages().len(), pages, "depth {depth}");
        let too_deep = format!("deeper than {depth}");
        assert!(
            fates.iter().any(|fate| fate.why() == too_deep),
            "{fates:#?}"
        );
    }
}

#[test]
fn requisites_come_on_request_and_from_any_host() {
    let (site, other) = sites(11);
    Place::new().crawl_to_the_end(&[&site.url("/")]);
    assert_eq!(site.asked("/style.css") + site.asked("/s.js"), 0);
    let (site, other_too) = sites(12);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/"), "--requisites"]);
    for (url, kind) in [
        (site.url("/style.css"), "stylesheet"),
        (site.url("/s.js"), "script"),
        (site.url("/bg.png"), "css"),
        (other_too.url("/logo.png"), "img"),
    ] {
        let fate = fates.of(&url);
        assert_eq!((fate.class.as_str(), fate.kind.as_str()), ("success", kind));
    }
    assert_eq!(other_too.pages(), ["/logo.png"], "its pages stay outside");
    assert_eq!(other.log().len(), 0);
}

/// The budget of a host is a number of requests, as its server counts them.
#[test]
fn a_host_is_asked_for_exactly_its_budget() {
    let sites: Vec<Site> = (1..=3)
        .map(|last| {
            Site::start([13, 0, last], |asked| match asked.target.as_str() {
                "/robots.txt" => None,
                _ => Some(Reply::links((0..40).map(|n| format!("/{n}")))),
            })
        })
        .collect();
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let mut args: Vec<&str> = seeds.iter().map(String::as_str).collect();
    args.extend(["--host-pages", "7", "--per-host", "4"]);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&args);
    for site in &sites {
        assert_eq!(site.pages().len(), 7);
    }
    for site in &sites {
        let reason = format!("the budget of 7 pages for {} is used up", site.ip());
        let spent = fates.iter().filter(|fate| fate.why() == reason);
        assert_eq!(spent.count(), 34, "{fates:#?}");
    }
    // It holds over runs.
    run(["crawl", "-o", place.arg(), "--progress", "off"]).expect(0);
    for site in &sites {
        assert_eq!(site.pages().len(), 7);
    }
}

/// Bytes of a host, pages of a domain whatever host of it they are on, and time since the first request.
#[test]
fn budgets_count_bytes_and_time_and_the_hosts_of_a_domain_together() {
    let site = Site::start([13, 0, 9], |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        _ => {
            let links: String = (0..40).map(|n| format!("<a href=\"/{n}\">x</a>")).collect();
            Some(Reply::html(links + &"x".repeat(10_000)))
        }
    });
    let place = Place::new();
    let config = place.file("bytes.toml", "[budget]\nhost_bytes = \"50K\"\n");
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    // Four answers of a little over 10,000 bytes stay below, the fifth passes it.
    assert_eq!(site.pages().len(), 5);
    let spent = fates
        .iter()
        .filter(|fate| fate.why().contains("51200 bytes"));
    assert_eq!(spent.count(), 36);

    let web = sim(SimConfig {
        hosts: 6,
        pages: 20,
        ips: 3,
        sitemaps: false,
        ..SimConfig::default()
    });
    let resolver = web.dns_addr().unwrap().to_string();
    let place = Place::new();
    let config = place.file("domain.toml", "[budget]\ndomain_pages = 30\n");
    let seed = web.seeds()[0].clone();
    let args = [
        &seed,
        "--scope",
        "any",
        "-c",
        &config,
        "--resolver",
        &resolver,
    ];
    let fates = place.crawl_to_the_end(&args);
    let asked = fates.iter().filter(|fate| fate.attempts > 0).count();
    // A chain of redirects that was begun may go on, so that it is not cut in the middle.
    let hops = fates.iter().filter(|fate| fate.kind == "redirect").count();
    assert!(
        (30..=30 + hops).contains(&asked),
        "{asked} asked, {hops} hops"
    );
    let spent = fates
        .iter()
        .any(|fate| fate.why().contains("30 pages for sim.test"));
    assert!(spent, "{fates:#?}");

    // Time is counted from the first request, and a budget of a millisecond is spent by the first answer.
    let place = Place::new();
    let config = place.file("time.toml", "[budget]\nhost_time = \"0.001\"\n");
    let before = site.pages().len();
    place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    assert_eq!(site.pages().len() - before, 1);
}
