//! Answers that are no plain page: refusals to answer now, errors, cut and encoded bodies, other
//! character sets, and pages that ask not to be followed.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::script::{Reply, Site};
use crate::support::{Place, run};

#[test]
fn a_busy_server_is_left_alone_as_long_as_it_asks() {
    let site = Site::start([2, 0, 1], |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links((0..8).map(|n| format!("/{n}")))),
        "/3" if asked.before == 0 => Some(Reply::status(503).with("Retry-After: 1")),
        "/5" if asked.before == 0 => Some(Reply::status(429).with("Retry-After: 1")),
        _ => Some(Reply::html("ok")),
    });
    let place = Place::new();
    let config = place.file("config.toml", "[retry]\ndelay_s = 0.01\n");
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    for page in ["/3", "/5"] {
        let fate = fates.of(&site.url(page));
        assert_eq!((fate.class.as_str(), fate.attempts), ("success", 2));
        // Nobody asks this host for anything in that second.
        let log = site.log();
        let busy = log.iter().position(|seen| seen.target == page).unwrap();
        let wait = log[busy + 1].at - log[busy].at;
        assert!(wait >= Duration::from_secs(1), "{page}: {wait:?}");
    }
    assert_eq!(site.pages().len(), 11);
}

#[test]
fn a_server_that_stays_busy_is_given_up() {
    let site = Site::start([2, 0, 2], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/busy", "/broken", "/gone"])),
        "/busy" => Some(Reply::status(503)),
        "/broken" => Some(Reply::status(500)),
        _ => None,
    });
    let place = Place::new();
    let text = "[retry]\ndelay_s = 0.01\nbusy_attempts = 3\nattempts = 2\n";
    let config = place.file("config.toml", text);
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    for (page, status, attempts) in [("/busy", 503, 3), ("/broken", 500, 2), ("/gone", 404, 1)] {
        let fate = fates.of(&site.url(page));
        assert_eq!(
            (fate.class.as_str(), fate.status),
            ("http_error", Some(status))
        );
        assert_eq!(usize::from(fate.attempts), attempts, "{page}");
        assert_eq!(site.asked(page), attempts, "{page}");
    }
}

/// A wait longer than the crawl's patience ends the run, not the URL: the next run asks again.
#[test]
fn a_long_retry_after_outlives_the_run() {
    let site = Site::start([2, 0, 3], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/later"])),
        "/later" => Some(Reply::status(503).with("Retry-After: 3600")),
        _ => None,
    });
    let place = Place::new();
    let config = place.file("config.toml", "[retry]\npatience_s = 1\n");
    run(place.crawl(&[&site.url("/"), "-c", &config])).expect(0);
    run(["crawl", "-o", place.arg(), "--progress", "off"]).expect(0);
    assert_eq!(site.asked("/later"), 1, "asked again before its time");
    let fates = place.fates();
    let later = fates.verdict(&site.url("/later"));
    assert_eq!(later, ("deferred", "status 503, will be retried"));
    let status = place.status();
    assert!(status.balanced && status.queued == 1, "{status:?}");
    place.check();
}

#[test]
fn what_came_of_a_body_that_broke_off_is_kept_and_marked() {
    let page = "<a href=\"/first\">1</a>".to_owned() + &" ".repeat(500) + "<a href=\"/lost\">2</a>";
    let sent = page.clone();
    let site = Site::start([2, 0, 4], move |asked| match asked.target.as_str() {
        "/" => Some(Reply::html(sent.clone()).cut(300)),
        "/first" => Some(Reply::html("first")),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    let cut = fates.of(&site.url("/"));
    assert_eq!(cut.class, "truncated");
    assert!(!cut.why().is_empty(), "{cut:?}");
    assert_eq!(place.get(&site.url("/")), &page.as_bytes()[..300]);
    assert_eq!(fates.of(&site.url("/first")).class, "success");
    assert!(!fates.knows(&site.url("/lost")));
}

#[test]
fn links_are_found_under_a_content_encoding() {
    let html = format!("<p>{}</p><a href='/inner'>x</a>", "text ".repeat(2000));
    let zipped = gzip(html.as_bytes());
    let sent = zipped.clone();
    let site = Site::start([2, 0, 5], move |asked| match asked.target.as_str() {
        "/" => Some(Reply::html(sent.clone()).with("Content-Encoding: gzip")),
        "/inner" => Some(Reply::html("inner")),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    assert_eq!(fates.of(&site.url("/inner")).class, "success");
    assert_eq!(place.get(&site.url("/")), html.as_bytes());
    let raw = run(["get", "--raw", place.arg(), &site.url("/")]).expect(0);
    assert!(raw.stdout.starts_with(b"HTTP/1.1 200 Scripted\r\n"));
    assert!(raw.stdout.ends_with(&zipped));
    // Bytes are counted as they came, before the decoder.
    let bytes = fates.of(&site.url("/")).bytes;
    assert_eq!(bytes, raw.stdout.len() as u64);
    let asked = &site.log()[1];
    let accepts = asked.fields.iter().any(|field| {
        field.to_ascii_lowercase().starts_with("accept-encoding:") && field.contains("gzip")
    });
    assert!(accepts, "{asked:?}");
}

/// A path is UTF-8 whatever the page is written in; a query is in the page's own encoding.
#[test]
fn links_in_other_character_sets() {
    let site = Site::start([2, 0, 6], |asked| match asked.target.as_str() {
        "/" => Some(Reply::new(
            200,
            "text/html; charset=iso-8859-1",
            b"<a href='/caf\xe9?q=\xe9'>x</a><a href='/koi'>y</a>".to_vec(),
        )),
        "/koi" => Some(Reply::new(
            200,
            "text/html",
            b"<meta charset=koi8-r><a href='/\xcd\xc9\xd2?q=\xcd'>z</a>".to_vec(),
        )),
        "/caf%C3%A9?q=%E9" | "/%D0%BC%D0%B8%D1%80?q=%CD" => Some(Reply::html("found")),
        _ => None,
    });
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    for page in ["/caf%C3%A9?q=%E9", "/%D0%BC%D0%B8%D1%80?q=%CD"] {
        assert_eq!(fates.of(&site.url(page)).class, "success");
    }
    assert_eq!(fates.iter().count(), 4, "{fates:#?}");
}

fn shy_site(last: u8) -> Site {
    Site::start([2, 1, last], |asked| match asked.target.as_str() {
        "/" => Some(Reply::html(
            "<a href=/rel rel='nofollow ugc'>x</a><a href=/meta>x</a><a href=/header>x</a>\
             <a href=/other>x</a>",
        )),
        "/rel" => Some(Reply::html("rel")),
        "/meta" => Some(Reply::html(
            "<meta name=ROBOTS content='noindex, NoFollow'><a href=/behind-meta>x</a>",
        )),
        "/header" => {
            Some(Reply::links(["/behind-header"]).with("X-Robots-Tag: orbweaver: nofollow"))
        }
        "/other" => Some(Reply::links(["/behind-other"]).with("X-Robots-Tag: otherbot: nofollow")),
        _ => Some(Reply::html("behind")),
    })
}

#[test]
fn pages_that_ask_not_to_be_followed_are_not() {
    let site = shy_site(1);
    let place = Place::new();
    let fates = place.crawl_to_the_end(&[&site.url("/")]);
    for page in ["/meta", "/header", "/other", "/behind-other"] {
        assert_eq!(fates.of(&site.url(page)).class, "success", "{page}");
    }
    for page in ["/rel", "/behind-meta", "/behind-header"] {
        assert_eq!(site.asked(page), 0, "{page}");
    }
    let site = shy_site(2);
    let place = Place::new();
    let config = place.file("config.toml", "[scope]\nnofollow = false\n");
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    for page in ["/rel", "/behind-meta", "/behind-header", "/behind-other"] {
        assert_eq!(fates.of(&site.url(page)).class, "success", "{page}");
    }
}

#[test]
fn pages_that_only_a_sitemap_names_are_found() {
    let site = Site::start([2, 0, 7], |asked| {
        match asked.target.as_str() {
        "/robots.txt" => Some(Reply::text(
            "User-agent: *\nDisallow: /private\n\nsitemap: /maps/index.xml\n",
        )),
        "/maps/index.xml" => Some(Reply::new(
            200,
            "application/xml",
            "<sitemapindex><sitemap><loc>/maps/a.xml.gz</loc></sitemap>\
             <sitemap><loc>/maps/b.txt</loc></sitemap></sitemapindex>",
        )),
        "/maps/a.xml.gz" => Some(Reply::new(
            200,
            "application/gzip",
            gzip(b"<urlset><url><loc>/from-xml?a=1&amp;b=2</loc></url><url><loc>/private</loc></url></urlset>"),
        )),
        "/maps/b.txt" => Some(Reply::text("HTTP://127.2.0.7/from-text\n")),
        _ => Some(Reply::html("a page")),
    }
    });
    let place = Place::new();
    // Nobody listens where the text leads.
    let config = place.file("config.toml", "[retry]\nattempts = 1\n");
    let fates = place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    let listed = fates.of(&site.url("/from-xml?a=1&b=2"));
    assert_eq!(
        (listed.class.as_str(), listed.kind.as_str()),
        ("success", "sitemap")
    );
    let private = fates.verdict(&site.url("/private"));
    assert_eq!(private, ("denied_robots", "robots.txt: Disallow: /private"));
    assert_eq!(site.asked("/private"), 0);
    assert!(fates.knows("http://127.2.0.7/from-text"), "{fates:#?}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A page that asks not to be followed is still shown with its pictures, and a sitemap that has the same header as all
/// files of its server is still a list of pages.
#[test]
fn nofollow_spares_requisites_and_entries_of_sitemaps() {
    let site = Site::start([8, 66, 1], |asked| match asked.target.as_str() {
        "/robots.txt" => Some(Reply::text(&format!(
            "Sitemap: http://{}/sitemap.xml\n",
            asked.field("host").unwrap_or_default()
        ))),
        "/sitemap.xml" => Some(
            Reply::new(
                200,
                "application/xml",
                format!(
                    "<urlset><url><loc>http://{}/listed</loc></url></urlset>",
                    asked.field("host").unwrap_or_default()
                ),
            )
            .with("X-Robots-Tag: noindex, nofollow"),
        ),
        "/" => Some(
            Reply::html("<a href=/behind>x</a><img src=/a.png><link rel=stylesheet href=/b.css>")
                .with("X-Robots-Tag: nofollow"),
        ),
        "/a.png" => Some(Reply::new(200, "image/png", "png")),
        "/b.css" => Some(Reply::new(200, "text/css", "a{b:image-set('/c.png' 1x)}")),
        "/c.png" => Some(Reply::new(200, "image/png", "png")),
        "/listed" => Some(Reply::html("listed")),
        "/behind" => Some(Reply::html("behind")),
        _ => None,
    });
    let place = Place::new();
    place.crawl_to_the_end(&[&site.url("/"), "--requisites"]);
    let mut pages = site.pages();
    pages.sort();
    assert_eq!(
        pages,
        ["/", "/a.png", "/b.css", "/c.png", "/listed", "/sitemap.xml"]
    );
}

/// Links that nobody follows stand in front of the one that leads on.
#[test]
fn what_is_not_followed_does_not_use_up_the_links_of_a_page() {
    let site = Site::start([8, 66, 2], |asked| match asked.target.as_str() {
        "/" => {
            let mut html = String::new();
            for n in 0..300 {
                html.push_str(&format!(
                    "<a href=/a#{n}>x</a><a href=mailto:{n}@e.org>x</a><img src=/{n}.png>\
                     <a rel=nofollow href=/no/{n}>x</a><a href=http://other.example/{}>x</a>",
                    n % 40
                ));
            }
            Some(Reply::html(html + "<a href=/last>x</a>"))
        }
        "/a" | "/last" => Some(Reply::html("a page")),
        _ => None,
    });
    let place = Place::new();
    let config = place.file("limits.toml", "[limits]\nmax_links_per_page = 50\n");
    place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    let mut pages = site.pages();
    pages.sort();
    assert_eq!(pages, ["/", "/a", "/last"]);
}
