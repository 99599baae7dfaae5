//! Settings for single hosts and domains: they reach the requests, and only those of their host.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::ctl::{json, many};
use crate::script::{Reply, Request, Site};
use crate::support::{Place, run, start, until};

/// Everything in the WARC files, decompressed.
fn warcs(place: &Place) -> String {
    let mut all = String::new();
    for file in std::fs::read_dir(place.dir().join("warc")).unwrap() {
        let packed = std::fs::File::open(file.unwrap().path()).unwrap();
        let mut bytes = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(packed);
        reader.read_to_end(&mut bytes).unwrap();
        all += &String::from_utf8_lossy(&bytes);
    }
    all
}

/// Everything in the files of a crawl directory that are text.
fn texts(place: &Place) -> String {
    let names = ["crawl.toml", "log/crawl.log"].map(|name| place.dir().join(name));
    names
        .map(|path| std::fs::read_to_string(path).unwrap())
        .concat()
}

/// A page on every target, and on `/away` a redirect.
fn leading(address: [u8; 3], away: String) -> Site {
    Site::start(address, move |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links(["/1", "/away"])),
        "/away" => Some(Reply::redirect(&away)),
        _ => Some(Reply::html("a page")),
    })
}

#[test]
fn headers_and_credentials_go_to_their_host_and_nowhere_else() {
    let other = many([3, 60, 1], 2);
    let site = leading([3, 60, 2], other.url("/"));
    let place = Place::new();
    let table = format!(
        "[host.\"{}\"]\nheaders = {{ X-Team = \"crawl\", Accept = \"text/plain\" }}\n\
         auth = {{ user = \"me\", password = \"open sesame\", over_http = true }}\n",
        site.ip()
    );
    let config = place.file("hosts.toml", &table);
    let seed = site.url("/");
    place.crawl_to_the_end(&[&seed, "-c", &config, "--scope", "any"]);
    let basic = Some("Basic bWU6b3BlbiBzZXNhbWU=");
    let asked = site.log();
    assert_eq!(asked.len(), 4, "robots.txt and three pages");
    for asked in &asked {
        assert_eq!(asked.field("authorization"), basic, "{asked:?}");
        assert_eq!(asked.field("x-team"), Some("crawl"));
        assert_eq!(asked.field("accept"), Some("text/plain"));
    }
    assert!(other.asked("/") == 1, "the redirect was followed");
    for asked in other.log() {
        assert_eq!(
            (asked.field("authorization"), asked.field("x-team")),
            (None, None)
        );
        assert_ne!(asked.field("accept"), Some("text/plain"));
    }
    // What is kept says that somebody asked, and not with which secret.
    let archived = warcs(&place);
    let sent = archived.to_ascii_lowercase();
    let sent = sent.matches("\r\nauthorization: (not archived)\r\n");
    assert_eq!(sent.count(), 4, "{archived}");
    for kept in [archived, texts(&place)] {
        assert!(!kept.contains("bWU6") && !kept.contains("sesame"), "{kept}");
    }
    // A run without the secret is refused; those who only read are not.
    let refused = run(place.crawl(&[])).expect(2);
    assert!(
        refused.stderr.contains("the password is not given"),
        "{}",
        refused.stderr
    );
    run(["why", place.arg(), &seed]).expect(0);
    place.check();
    run(place.crawl(&["-c", &config])).expect(0);
}

#[test]
fn credentials_do_not_go_over_http_unless_it_is_said() {
    let site = many([3, 60, 3], 1);
    let place = Place::new();
    let secret = place.file("token", "t0\n");
    let table = format!(
        "[host.\"{}\"]\nauth = {{ token_file = {secret:?} }}\n",
        site.ip()
    );
    let config = place.file("hosts.toml", &table);
    place.crawl_to_the_end(&[&site.url("/"), "-c", &config]);
    assert!(
        site.log()
            .iter()
            .all(|asked| asked.field("authorization").is_none())
    );
    // A secret in a file of its own is found again without the configuration.
    run(place.crawl(&[])).expect(0);
}

#[test]
fn a_host_has_a_rate_of_its_own() {
    let [slow, fast] = [4, 5].map(|last| many([3, 60, last], 5));
    let place = Place::new();
    let table = format!("[host.\"{}\"]\nrate = 10\n", slow.ip());
    let config = place.file("hosts.toml", &table);
    place.crawl_to_the_end(&[&slow.url("/"), &fast.url("/"), "-c", &config]);
    assert!(slow.shortest_gap() >= Duration::from_millis(100));
    assert_eq!((slow.pages().len(), fast.pages().len()), (6, 6));
}

/// Those who are there at the same time.
#[derive(Clone, Default)]
struct Meeting(Arc<(Mutex<usize>, Condvar)>);

impl Meeting {
    /// Waits until so many have come.
    fn come(&self, count: usize) {
        let (here, changed) = &*self.0;
        let mut here = here.lock().unwrap();
        *here += 1;
        changed.notify_all();
        drop(changed.wait_while(here, |here| *here < count).unwrap());
    }
}

#[test]
fn a_host_has_a_window_of_its_own() {
    let meeting = Meeting::default();
    let site = Site::start([3, 60, 6], move |asked| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links(["/1", "/2", "/3"])),
        _ => {
            // With one request at a time the first would wait for ever.
            meeting.come(3);
            Some(Reply::html("a page"))
        }
    });
    let place = Place::new();
    let table = format!("[host.\"{}\"]\nper_host = 3\n", site.ip());
    let config = place.file("hosts.toml", &table);
    let seed = site.url("/");
    place.crawl_to_the_end(&[&seed, "-c", &config, "--per-host", "1", "--per-ip", "3"]);
    assert_eq!(site.pages().len(), 4);
}

#[test]
fn a_host_has_limits_and_trap_rules_of_its_own() {
    let deep = "/x".repeat(80);
    let script = move |asked: &Request| match asked.target.as_str() {
        "/robots.txt" => None,
        "/" => Some(Reply::links(["/large", &deep])),
        "/large" => Some(Reply::html("a".repeat(9000))),
        _ => Some(Reply::html("a page")),
    };
    let [own, usual] = [7, 8].map(|last| Site::start([3, 60, last], script.clone()));
    let place = Place::new();
    let table = format!(
        "[host.\"{}\"]\nlimits = {{ max_body_bytes = 1000 }}\ntraps = false\n",
        own.ip()
    );
    let config = place.file("hosts.toml", &table);
    let fates = place.crawl_to_the_end(&[&own.url("/"), &usual.url("/"), "-c", &config]);
    let deep = "/x".repeat(80);
    assert_eq!(fates.of(&own.url("/large")).class, "truncated");
    assert_eq!(place.get(&own.url("/large")).len(), 1000);
    assert_eq!(fates.of(&own.url(&deep)).class, "success");
    assert_eq!(fates.of(&usual.url("/large")).class, "success");
    assert_eq!(fates.of(&usual.url(&deep)).class, "trap_bounded");
}

#[test]
fn an_exception_from_robots_is_for_its_host_and_is_said_everywhere() {
    let script = |asked: &Request| match asked.target.as_str() {
        "/robots.txt" => Some(Reply::text(
            "User-agent: *\nCrawl-delay: 100\nDisallow: /\n",
        )),
        "/" => Some(Reply::links(["/1"])),
        _ => Some(Reply::html("a page")),
    };
    let [own, usual] = [9, 10].map(|last| Site::start([3, 60, last], script));
    let place = Place::new();
    let table = format!("[host.\"{}\"]\nrobots = \"ignore\"\n", own.ip());
    let config = place.file("hosts.toml", &table);
    let (own_seed, seed) = (own.url("/"), usual.url("/"));
    let args = [&own_seed, &seed, "-c", &config, "--progress", "plain"];
    let ended = run(place.crawl(&args)).expect(0);
    assert_eq!(own.pages(), ["/", "/1"]);
    assert_eq!(
        (own.asked("/robots.txt"), usual.asked("/robots.txt")),
        (0, 1)
    );
    assert_eq!(usual.pages(), [""; 0]);
    let said = format!("for {}", own.ip());
    let note = |text: &str| text.contains("robots.txt is ignored") && text.contains(&said);
    assert!(note(&ended.out()), "{}", ended.out());
    let archived = warcs(&place);
    assert!(archived.contains(&format!("robots: obey, but ignore {said}\r\n")));
    let why = run(["why", place.arg(), &own.url("/1")]).expect(0).out();
    assert!(
        why.contains("ignored, as the settings say for its host"),
        "{why}"
    );
    let why = json(&["why", place.arg(), &usual.url("/"), "--json"]);
    assert_eq!(why["robots_ignored"], false);
}

#[test]
fn a_reload_takes_up_the_rates_of_hosts() {
    let site = many([3, 60, 11], 3);
    let place = Place::new();
    let table = |rate: &str| format!("[host.\"{}\"]\nrate = {rate}\n", site.ip());
    let config = place.file("hosts.toml", table("0.001"));
    let running = start(place.crawl(&[&site.url("/"), "-c", &config]));
    until("the first request", || !site.log().is_empty());
    place.file("hosts.toml", table("0"));
    let said = json(&["ctl", place.arg(), "reload", "--json"]);
    assert_eq!(said["said"], "reloaded: rate, per_host and robots of hosts");
    running.wait().expect(0);
    assert_eq!(site.pages().len(), 4);
}

#[test]
fn every_mistake_about_hosts_is_named_with_its_line() {
    let place = Place::new();
    let table = "[host.\"A.example\"]\nrate = 5\n[domain.\"b.example\"]\nratte = 1\nheaders = { Host = \"x\" }\n\
                 auth = { user = \"me\", password = 5 }\n";
    let config = place.file("hosts.toml", table);
    let ended = run(place.crawl(&["http://a.example/", "-c", &config])).expect(2);
    for part in [
        "line 4, `ratte`: unknown key; did you mean rate?",
        "line 6, `password`: expected a text in quotes",
        "host.\"A.example\" (line 1 of",
        "Host (line 5 of",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!place.dir().exists());
}
