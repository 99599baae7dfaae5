//! robots.txt before the first request, in all the ways in which it can be had or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::script::{Reply, Request, Site};
use crate::support::{Place, run, start_at};

/// A site with this robots.txt and a page under every other name.
fn site(
    address: [u8; 3],
    robots: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> Site {
    Site::start(address, move |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/open", "/shut"])),
        "/open" | "/shut" => Some(Reply::html("a page")),
        _ => robots(asked),
    })
}

const RULES: &str = "User-agent: *\nDisallow: /\n\nUser-agent: OrbWeaver\nDisallow: /shut\n";

fn is_robots(asked: &Request) -> bool {
    asked.target == "/robots.txt"
}

#[test]
fn rules_are_asked_for_first_and_obeyed() {
    let site = site([3, 0, 1], |asked| {
        is_robots(asked).then(|| Reply::text(RULES))
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    assert_eq!(site.log()[0].target, "/robots.txt");
    assert_eq!(site.pages(), ["/", "/open"]);
    assert_eq!(
        fates.verdict(&site.url("/shut")),
        ("denied_robots", "robots.txt: Disallow: /shut")
    );
    // Who asks is what the rules call by name.
    let agent = |field: &&String| {
        field
            .to_ascii_lowercase()
            .starts_with("user-agent: orbweaver/")
    };
    for asked in site.log() {
        assert!(asked.fields.iter().any(|field| agent(&field)), "{asked:?}");
    }
    run(["get", place.arg(), &site.url("/robots.txt")]).expect(0);
}

#[test]
fn rules_that_are_not_there_allow_everything() {
    for (last, status) in [(2, 404), (3, 403), (4, 401)] {
        let site = site([3, 0, last], move |asked| {
            is_robots(asked).then(|| Reply::status(status))
        });
        Place::new().crawl_to_the_end(&[&site.url("/")]);
        assert_eq!(site.pages().len(), 3, "{status}");
    }
}

#[test]
fn rules_that_moved_are_followed() {
    let elsewhere = Site::start([3, 1, 1], |asked| match asked.target.as_str() {
        "/rules" => Some(Reply::text(RULES)),
        _ => None,
    });
    let there = elsewhere.url("/rules");
    let here = site([3, 0, 5], |asked| match asked.target.as_str() {
        "/robots.txt" => Some(Reply::redirect("/moved.txt")),
        "/moved.txt" => Some(Reply::text(RULES)),
        _ => None,
    });
    let far = site([3, 0, 6], move |asked| {
        is_robots(asked).then(|| Reply::redirect(&there))
    });
    let endless = site([3, 0, 7], |asked| {
        let hop = asked.target.len();
        let next = format!("/{}", "r".repeat(hop));
        (asked.target != "/shut").then(|| Reply::redirect(&next))
    });
    let seeds = [here.url("/"), far.url("/"), endless.url("/")];
    Place::new().crawl_to_the_end(&seeds.each_ref().map(String::as_str));
    assert_eq!((here.asked("/shut"), here.asked("/open")), (0, 1));
    assert_eq!((far.asked("/shut"), far.asked("/open")), (0, 1));
    // RFC 9309, 2.3.1.2: after five hops the rules may be taken as not there.
    assert_eq!((endless.asked("/shut"), endless.asked("/open")), (1, 1));
}

/// Five hops over three hosts, the last of which has rules that count for the first; one hop more and there
/// are none.
#[test]
fn five_hops_across_hosts_are_followed() {
    let last = Site::start([3, 1, 2], |asked| match asked.target.as_str() {
        "/4" => Some(Reply::redirect("/5")),
        "/5" => Some(Reply::text(RULES)),
        "/6" => Some(Reply::redirect("/4")),
        _ => None,
    });
    let (fourth, more) = (last.url("/4"), last.url("/6"));
    let middle = Site::start([3, 1, 3], move |asked| match asked.target.as_str() {
        "/2" => Some(Reply::redirect("/3")),
        "/3" => Some(Reply::redirect(&fourth)),
        "/3-and-more" => Some(Reply::redirect(&more)),
        "/2-and-more" => Some(Reply::redirect("/3-and-more")),
        _ => None,
    });
    let moved = |address, to: String| {
        site(address, move |asked| match asked.target.as_str() {
            "/robots.txt" => Some(Reply::redirect("/1")),
            "/1" => Some(Reply::redirect(&to)),
            _ => None,
        })
    };
    let five = moved([3, 0, 12], middle.url("/2"));
    let six = moved([3, 0, 13], middle.url("/2-and-more"));
    Place::new().crawl_to_the_end(&[&five.url("/"), &six.url("/")]);
    assert_eq!((five.asked("/shut"), five.asked("/open")), (0, 1));
    assert_eq!((six.asked("/shut"), six.asked("/open")), (1, 1));
}

/// Files as they are found: each denies `/shut` and nothing else, or has nothing to say.
#[test]
fn files_in_every_shape() {
    let long = {
        let filler = "# there is nothing to be seen here\n".repeat(15_000);
        // What lies behind 500 KiB is not read; what is cut in two there is no rule.
        format!("User-agent: *\nDisallow: /shut\n{filler}Disallow: /open\n")
    };
    let page = "<!doctype html><title>Oh no</title><p>User-agent: *<br>Disallow: /shut\n";
    let files: [(&str, bool); 7] = [
        ("\u{feff}User-agent: *\nDisallow: /shut\n", true),
        ("User-agent: *\rDisallow: /shut\rAllow: /\r", true),
        ("User-agent: *\0Disallow: /shut\0\0", true),
        ("User-agent: *\r\n\r\nDisallow: /shut", true),
        (
            "User-agent: orbweaver\nDisallow: /x\n\nUser-agent: orbweaver\nDisallow: /shut\n",
            true,
        ),
        (&long, true),
        (page, false),
    ];
    for (number, (file, rules)) in (14..).zip(files) {
        let body = file.to_owned();
        let site = site([3, 0, number], move |asked| {
            is_robots(asked).then(|| Reply::html(body.as_str()))
        });
        Place::new().crawl_to_the_end(&[&site.url("/")]);
        let shut = usize::from(!rules);
        assert_eq!(
            (site.asked("/shut"), site.asked("/open")),
            (shut, 1),
            "file {number}"
        );
        assert_eq!(site.asked("/robots.txt"), 1);
    }
}

/// RFC 9309, 2.3.1.4: a server that cannot give its rules is not asked for anything else.
#[test]
fn rules_that_cannot_be_had_deny_everything() {
    let broken = site([3, 0, 8], |asked| {
        is_robots(asked).then(|| Reply::status(500))
    });
    let silent = site([3, 0, 9], |asked| is_robots(asked).then(Reply::silence));
    let recovers = site([3, 0, 10], |asked| {
        let reply = match asked.before {
            0 => Reply::status(503),
            _ => Reply::text(RULES),
        };
        is_robots(asked).then_some(reply)
    });
    let place = Place::new();
    let limits = "[limits]\nheader_timeout_s = 0.5\n";
    let config = place.file("config.toml", format!("{HASTY}{limits}"));
    let seeds = [broken.url("/"), silent.url("/"), recovers.url("/")];
    let [a, b, c] = seeds.each_ref().map(String::as_str);
    let fates = place.crawl_to_the_end(&[a, b, c, "-c", &config]);
    for (site, class) in [(&broken, "denied_robots"), (&silent, "failed_timeout")] {
        let denied = fates.of(&site.url("/"));
        assert_eq!(denied.class, class, "{denied:?}");
        assert!(denied.why().starts_with("robots.txt: "), "{denied:?}");
        assert_eq!(site.pages(), Vec::<String>::new());
        assert_eq!(site.asked("/robots.txt"), 5);
        let why = run(["why", place.arg(), &site.url("/")]).expect(0).out();
        assert!(why.contains("retried not before"), "{why}");
    }
    assert_eq!(recovers.pages(), ["/", "/open"]);
}

/// All pauses are multiples of this one.
const HASTY: &str = "[retry]\ndelay_s = 0.05\n";

/// A server that is being restarted costs nothing: its URLs wait.
#[test]
fn rules_that_come_with_the_fifth_attempt_are_not_too_late() {
    let site = site([3, 0, 21], |asked| {
        let reply = match asked.before {
            0 => Reply::status(503),
            1 => Reply::status(429).with("Retry-After: 1"),
            2 => Reply::status(502),
            3 => Reply::status(500).with("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"),
            _ => Reply::text(RULES),
        };
        is_robots(asked).then_some(reply)
    });
    let place = Place::new();
    let config = place.file("config.toml", HASTY);
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    assert_eq!(site.asked("/robots.txt"), 5);
    assert_eq!(site.pages(), ["/", "/open"]);
    assert_eq!(fates.of(&site.url("/shut")).class, "denied_robots");
    let log = site.log();
    let patience = log[2].at - log[1].at;
    assert!(patience >= Duration::from_secs(1), "{patience:?}");
}

/// A site that links to a page, and the site of that page, whose rules cannot be had `outage` times. Until the page
/// was asked for, the first one goes on with a page every half second when it is `busy`.
fn two_sites(address: u8, outage: usize, busy: bool) -> (Site, Site) {
    let found = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&found);
    let broken = Site::start([3, 2, address], move |asked| {
        seen.fetch_or(!is_robots(asked), Ordering::Relaxed);
        Some(match asked.target.as_str() {
            "/robots.txt" if asked.before < outage => Reply::status(503),
            "/robots.txt" => Reply::text(RULES),
            "/page" => Reply::links(["/open", "/shut"]),
            _ => Reply::html("a page"),
        })
    });
    let page = broken.url("/page");
    let sound = Site::start([3, 3, address], move |asked| {
        let next = match asked.target.trim_start_matches("/").parse::<u32>() {
            Ok(n) if n < 100 && busy && !found.load(Ordering::Relaxed) => n + 1,
            _ => 1,
        };
        match asked.target.as_str() {
            "/robots.txt" if busy => Some(Reply::text("User-agent: *\nCrawl-delay: 0.5\n")),
            "/robots.txt" => None,
            _ => Some(Reply::links([page.clone(), format!("/{next}")])),
        }
    });
    (sound, broken)
}

/// A URL that was refused because its rules could not be had is asked for by a later run, seed or not.
#[test]
fn rules_that_could_not_be_had_get_another_chance_in_the_next_run() {
    let (sound, broken) = two_sites(1, 10, false);
    let place = Place::new();
    let config = place.file("config.toml", HASTY);
    let seed = sound.url("/");
    let args = [seed.as_str(), "--scope", "any", "-c", &config];
    let fates = place.crawl_to_the_end(&args);
    let page = broken.url("/page");
    assert_eq!(
        fates.verdict(&page),
        ("denied_robots", "robots.txt: status 503")
    );
    assert_eq!(broken.asked("/robots.txt"), 5);
    // Before its time has come, nobody is asked.
    place.crawl_to_the_end(&args);
    assert_eq!(broken.asked("/robots.txt"), 5);
    // Another time in vain, an hour later.
    start_at(place.crawl(&args), 3600).wait().expect(0);
    assert_eq!(broken.asked("/robots.txt"), 10);
    place.check();
    assert_eq!(place.fates().of(&page).class, "denied_robots");
    start_at(place.crawl(&args), 7200).wait().expect(0);
    place.check();
    let fates = place.fates();
    assert_eq!(broken.pages(), ["/page", "/open"]);
    for found in ["/page", "/open"] {
        assert_eq!(fates.of(&broken.url(found)).class, "success");
    }
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
}

/// So does one in a crawl that is still busy with others when the time has come.
#[test]
fn rules_that_could_not_be_had_get_another_chance_in_the_same_run() {
    let (sound, broken) = two_sites(2, 5, true);
    let place = Place::new();
    let settings = "[traps]\nenabled = false\n[retry]\ndelay_s = 0.01\n";
    let config = place.file("config.toml", settings);
    let args = [&sound.url("/1"), "--scope", "any", "-c", &config];
    let fates = place.crawl_to_the_end(&args);
    assert_eq!(broken.asked("/robots.txt"), 6);
    assert_eq!(broken.pages(), ["/page", "/open"]);
    assert_eq!(fates.of(&broken.url("/page")).class, "success");
}

#[test]
fn crawl_delay_is_obeyed() {
    let site = site([3, 0, 11], |asked| {
        is_robots(asked).then(|| Reply::text("User-agent: *\nCrawl-delay: 0.7\n"))
    });
    // One request at a time, for then the gap is exact however late this server looks at its watch.
    Place::new().crawl_to_the_end(&[&site.url("/")]);
    assert_eq!(site.log().len(), 4);
    let gap = site.shortest_gap();
    assert!(gap >= Duration::from_millis(700), "{gap:?}");
}
