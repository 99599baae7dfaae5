//! Redirects: each hop recorded for its own URL, none followed to where the crawl does not go.

use crate::script::{Reply, Site};
use crate::support::{Place, run};

#[test]
fn each_hop_of_a_chain_is_recorded_for_its_own_url() {
    let site = Site::start([1, 0, 1], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/a", "/b", "/c"])),
        "/a" => Some(Reply::status(301).with("Location: b")),
        "/b" => Some(Reply::status(308).with("Location: ./x/../c#here")),
        "/c" => Some(Reply::status(307).with("Location: /d?e")),
        "/d?e" => Some(Reply::html("the end")),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    for (from, status, to) in [("/a", 301, "/b"), ("/b", 308, "/c"), ("/c", 307, "/d?e")] {
        let hop = fates.of(&site.url(from));
        assert_eq!(hop.class, "redirect_followed", "{hop:?}");
        assert_eq!(hop.status, Some(status));
        assert_eq!(hop.redirect, Some(site.url(to)));
        assert_eq!(hop.ip, Some(site.ip().into()));
        assert_eq!(site.asked(from), 1, "{from}");
    }
    let end = fates.of(&site.url("/d?e"));
    assert_eq!(
        (end.class.as_str(), end.kind.as_str()),
        ("success", "redirect")
    );
    assert_eq!(end.depth, 1, "a redirect is no further link");
    assert_eq!(place.get(&site.url("/d?e")), b"the end");
}

#[test]
fn loops_and_endless_chains_end() {
    let site = Site::start([1, 0, 2], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/self", "/one", "/n/0"])),
        "/self" => Some(Reply::redirect("/self")),
        "/one" => Some(Reply::redirect("/two")),
        "/two" => Some(Reply::redirect("/three")),
        "/three" => Some(Reply::redirect("/one")),
        other => {
            let hop: u32 = other.strip_prefix("/n/")?.parse().ok()?;
            Some(Reply::redirect(&format!("/n/{}", hop + 1)))
        }
    });
    let place = Place::new();
    let config = place.file("config.toml", "[limits]\nmax_redirects = 4\n");
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    for (hop, reason) in [
        ("/self", "redirect loop"),
        ("/one", "redirect loop"),
        ("/two", "redirect loop"),
        ("/three", "redirect loop"),
        ("/n/0", "more than 4 redirects in a row"),
        ("/n/4", "more than 4 redirects in a row"),
    ] {
        let verdict = fates.verdict(&site.url(hop));
        assert_eq!(verdict, ("redirect_limit", reason), "{hop}");
        assert_eq!(site.asked(hop), 1, "{hop}");
    }
    assert!(!fates.knows(&site.url("/n/5")));
    assert_eq!(site.asked("/n/5"), 0);
}

#[test]
fn a_redirect_out_of_scope_is_refused_and_not_asked_for() {
    let outside = Site::start([1, 0, 4], |_| Some(Reply::html("outside")));
    let away = outside.url("/away");
    let target = away.clone();
    let site = Site::start([1, 0, 3], move |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/go"])),
        "/go" => Some(Reply::redirect(&target)),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    let reason = "out of scope: host 127.1.0.4 is not the host of a seed";
    let refused = fates.of(&site.url("/go"));
    assert_eq!(refused.class, "redirect_refused");
    assert_eq!(refused.why(), format!("its target is refused: {reason}"));
    assert_eq!(refused.redirect.as_ref(), Some(&away));
    assert_eq!(fates.verdict(&away), ("denied_policy", reason));
    assert_eq!(outside.log().len(), 0, "not even robots.txt");
}

#[test]
fn a_seed_that_has_moved_takes_the_scope_with_it() {
    let new = Site::start([1, 0, 6], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/more"])),
        "/more" => Some(Reply::html("more")),
        _ => None,
    });
    let home = new.url("/");
    let old = Site::start([1, 0, 5], move |asked| {
        (asked.target == "/").then(|| Reply::redirect(&home))
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&old.url("/")]);
    assert_eq!(fates.of(&old.url("/")).class, "redirect_followed");
    assert_eq!(fates.of(&new.url("/more")).class, "success");
}

#[test]
fn what_the_address_policy_denies_is_never_connected_to() {
    let secret = Site::start([9, 0, 1], |_| Some(Reply::html("internal")));
    let (linked, pointed, listed) = (secret.url("/a"), secret.url("/b"), secret.url("/c"));
    let urls = [linked.clone(), pointed.clone(), listed.clone()];
    let site = Site::start([1, 0, 7], move |asked| match asked.target.as_str() {
        "/robots.txt" => Some(Reply::text("Sitemap: /sitemap.xml\n")),
        "/sitemap.xml" => Some(Reply::text(&format!("{}\n", urls[2]))),
        "/" => Some(Reply::links(["/go", urls[0].as_str()])),
        "/go" => Some(Reply::redirect(&urls[1])),
        _ => None,
    });
    let place = Place::new();
    let all = run([
        "crawl",
        &site.url("/"),
        "-o",
        place.arg(),
        "--scope",
        "any",
        "--rate",
        "0",
        "--allow-net",
        "127.1.0.0/16",
        "--progress",
        "off",
    ]);
    all.expect(0);
    let fates = place.fates();
    let go = fates.verdict(&site.url("/go"));
    assert_eq!(go, ("redirect_refused", "127.9.0.1: loopback address"));
    for url in [&linked, &listed] {
        let denied = fates.verdict(url);
        assert_eq!(denied, ("denied_policy", "127.9.0.1: loopback address"));
    }
    assert!(!fates.knows(&pointed));
    assert_eq!(secret.log().len(), 0);
    place.check();
}

#[test]
fn redirects_to_nowhere_are_recorded() {
    let site = Site::start([1, 0, 8], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/mail", "/empty", "/port", "/bare"])),
        "/mail" => Some(Reply::redirect("mailto:me@example.org")),
        "/empty" => Some(Reply::redirect("")),
        "/port" => Some(Reply::redirect("http://127.1.0.8:25/")),
        "/bare" => Some(Reply::status(302)),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    let mail = fates.of(&site.url("/mail"));
    assert_eq!(mail.class, "redirect_refused", "{mail:?}");
    assert_eq!(mail.redirect.as_deref(), Some("mailto:me@example.org"));
    let port = fates.verdict(&site.url("/port"));
    assert_eq!(
        port,
        ("redirect_refused", "port 25: port of another protocol")
    );
    for nowhere in ["/bare", "/empty"] {
        let verdict = fates.verdict(&site.url(nowhere));
        assert_eq!(verdict, ("http_error", "redirect without a target"));
    }
}
