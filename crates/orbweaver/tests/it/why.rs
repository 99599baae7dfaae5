//! What the program says about a URL, and about its own speed.

use serde_json::Value;

use crate::ctl::{Gate, begin, json, many};
use crate::script::{Reply, Site};
use crate::support::{Place, run, until};

fn why(place: &Place, url: &str) -> Value {
    json(&["why", place.arg(), url, "--json"])
}

fn words(place: &Place, url: &str) -> String {
    run(["why", place.arg(), url]).expect(0).out()
}

/// A small site with something of everything.
fn site(address: [u8; 3]) -> Site {
    Site::start(address, |asked| match asked.target.as_str() {
        "/robots.txt" => Some(Reply::text(
            "User-agent: *\nDisallow: /shut\nAllow: /shut/but\nCrawl-delay: 0.05\n",
        )),
        "/" => Some(Reply::links([
            "/a",
            "/old",
            "/shut/1",
            "/shut/but",
            "http://far.example/",
        ])),
        "/a" => Some(Reply::links(["/b"])),
        "/b" => Some(Reply::links(["/busy"])),
        "/old" => Some(Reply::redirect("/new")),
        "/new" | "/shut/but" => Some(Reply::html("a page")),
        "/busy" if asked.before < 2 => Some(Reply::status(503).with("Retry-After: 1")),
        "/busy" => Some(Reply::html("at last")),
        _ => None,
    })
}

#[test]
fn a_finished_crawl_explains_each_url() {
    let site = site([4, 1, 1]);
    let place = Place::new();
    place.crawl_to_the_end(&[&site.url("/")]);

    let seed = why(&place, &site.url("/"));
    assert_eq!(
        (&seed["state"], &seed["running"]),
        (&"done".into(), &false.into())
    );
    assert_eq!(seed["found"]["kind"], "seed");
    assert_eq!(seed["scope"]["rule"], "it is a seed");
    assert_eq!(seed["outcome"]["status"], 200);
    assert_eq!(seed["outcome"]["ip"], site.ip().to_string());
    assert_eq!(seed["robots"]["crawl_delay_s"], 0.05);
    assert_eq!(seed["robots"]["status"], 200);
    assert!(seed["robots"]["fetched"].as_str() < seed["robots"]["expires"].as_str());

    // Where the archive says that it lies, it lies.
    let archive = &seed["archive"];
    let file = std::fs::read(place.dir().join(archive["file"].as_str().unwrap())).unwrap();
    let from = usize::try_from(archive["offset"].as_u64().unwrap()).unwrap();
    let record = flate2::read::GzDecoder::new(&file[from..]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut { record }, &mut text).unwrap();
    assert!(
        text.contains(&format!("WARC-Target-URI: {}\r\n", site.url("/"))),
        "{text}"
    );

    let deep = why(&place, &site.url("/busy"));
    let path: Vec<&str> = deep["found"]["path"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(path, [site.url("/b"), site.url("/a"), site.url("/")]);
    assert_eq!(deep["found"]["via"], site.url("/b"));
    assert_eq!(deep["found"]["depth"], 3);
    let attempts = deep["attempts"].as_array().unwrap();
    let classes: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            (
                attempt["class"].as_str().unwrap(),
                attempt["status"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        classes,
        [("deferred", 503), ("deferred", 503), ("success", 200)]
    );
    assert_eq!(deep["attempts_made"], 3);
    assert_eq!(deep["host"]["failed"], 2);

    let denied = why(&place, &site.url("/shut/1"));
    assert_eq!(denied["state"], "refused");
    assert_eq!(denied["robots"]["rule"], "Disallow: /shut");
    assert_eq!(denied["robots"]["allowed"], false);
    assert_eq!(denied["archive"], Value::Null);
    assert_eq!(denied["attempts"], Value::Array(vec![]));
    assert_eq!(
        why(&place, &site.url("/shut/but"))["robots"]["rule"],
        "Allow: /shut/but"
    );

    let moved = why(&place, &site.url("/old"));
    assert_eq!(moved["outcome"]["redirect"], site.url("/new"));
    let target = why(&place, &site.url("/new"));
    assert_eq!(target["found"]["redirected_from"][0], site.url("/old"));

    let far = why(&place, "http://far.example/");
    assert_eq!(
        (&far["state"], &far["scope"]["accepted"]),
        (&"refused".into(), &false.into())
    );
    assert!(
        far["scope"]["rule"]
            .as_str()
            .unwrap()
            .contains("out of scope"),
        "{far}"
    );

    let unknown = why(&place, &site.url("/never-seen"));
    assert_eq!(
        (&unknown["state"], &unknown["scope"]["accepted"]),
        (&"unknown".into(), &true.into())
    );
    assert_eq!(unknown["found"], Value::Null);
}

#[test]
fn the_words_tell_the_same() {
    let site = site([4, 1, 2]);
    let place = Place::new();
    place.crawl_to_the_end(&[&site.url("/")]);
    let said = words(&place, &site.url("/b"));
    for part in [
        "state      done",
        &format!("linked by  {}", site.url("/a")),
        &format!("linked by {}", site.url("/")),
        "scope host: its host is the host of a seed",
        "allowed: no rule matches; Crawl-delay 0.05 s (status 200, fetched 20",
        "outcome    success, status 200",
        "archive    warc/",
    ] {
        assert!(said.contains(part), "`{part}` is missing in:\n{said}");
    }
    let said = words(&place, &site.url("/shut/1"));
    assert!(said.contains("denied by `Disallow: /shut`"), "{said}");
    let said = words(&place, "example.org");
    assert!(said.contains("not known"), "{said}");
    assert!(
        said.contains("refused (as a link on a seed): denied_policy: out of scope"),
        "{said}"
    );
    let complaint = run(["why", place.arg(), "ftp://x/"]).expect(2);
    assert!(complaint.complaint().contains("ftp://x/"), "{complaint:?}");
    let complaint = run(["why", place.arg(), "--slow"]).expect(4);
    assert!(
        complaint.complaint().contains("no crawl is running"),
        "{complaint:?}"
    );
    run(["why", place.arg()]).expect(2);
}

#[test]
fn a_running_crawl_says_where_a_url_is_and_what_it_waits_for() {
    let gate = Gate::default();
    let held = gate.clone();
    let site = Site::start([4, 1, 3], move |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/held", "/next", "/queue"])),
        "/held" => {
            held.pass();
            Some(Reply::html("a page"))
        }
        "/next" | "/queue" => Some(Reply::html("a page")),
        _ => None,
    });
    let place = Place::new();
    let crawl = begin(&place, &[&site.url("/")]);
    until("the held page is asked for", || site.asked("/held") == 1);
    until("its links are handed out", || {
        why(&place, &site.url("/queue"))["place"] == "the queue of its host in memory"
    });
    let out = why(&place, &site.url("/held"));
    assert_eq!(
        (&out["state"], &out["running"]),
        (&"in_flight".into(), &true.into())
    );
    assert_eq!(out["place"], "with the spider");
    let waits_for = out["waits_for"].as_str().unwrap();
    assert!(
        waits_for.starts_with(&format!("the response of {}", site.ip())),
        "{waits_for}"
    );
    assert!(out["since"].is_string());
    let next = why(&place, &site.url("/next"));
    assert_eq!(
        (&next["state"], &next["ahead"]),
        (&"claimed".into(), &0.into())
    );
    assert!(next["slot"].is_number(), "{next}");
    assert!(
        next["waits_for"].as_str().unwrap().contains("--per-host"),
        "{next}"
    );
    let queued = why(&place, &site.url("/queue"));
    assert_eq!(queued["ahead"], 1);
    assert_eq!(queued["host"]["queued"], 3);
    gate.open();
    crawl.wait().expect(0);
}

#[test]
fn a_crawl_that_is_polite_says_that_this_is_its_limit() {
    let site = many([4, 1, 4], 30);
    let place = Place::new();
    let crawl = begin(&place, &[&site.url("/"), "--rate", "2"]);
    let slow = || json(&["why", place.arg(), "--slow", "--json"]);
    until("the host waits for its time", || {
        slow()["sentence"]
            .as_str()
            .unwrap()
            .starts_with("1 of 1 hosts wait for their next request")
    });
    until("a page of it waits for the gap", || {
        let waiting = why(&place, &site.url("/29"));
        let waits_for = waiting["waits_for"].as_str().unwrap_or_default();
        waits_for == "the rate limit of its host: 0.5 s between two requests"
            && waiting["earliest"].is_string()
    });
    let answer = slow();
    assert_eq!(
        (&answer["limit"], &answer["at_most"]),
        (&"politeness".into(), &2.0.into())
    );
    let said = run(["why", place.arg(), "--slow"]).expect(0).out();
    assert!(said.contains("setting    `--rate`"), "{said}");
    run(["ctl", place.arg(), "stop"]).expect(0);
    crawl.wait().expect(3);
}

#[test]
fn the_status_names_hosts_that_stand_out() {
    let failing = Site::start([4, 1, 5], |asked| match asked.target.as_str() {
        "/" => Some(Reply::links(["/1", "/2", "/3"])),
        _ => None,
    });
    let waiting = Site::start([4, 1, 6], |asked| match asked.target.as_str() {
        "/" => Some(Reply::status(503).with("Retry-After: 3000")),
        _ => None,
    });
    let place = Place::new();
    run(place.crawl(&[&failing.url("/"), &waiting.url("/")])).expect(0);
    let status = json(&["status", place.arg(), "--json"]);
    let seen = &status["hosts_seen"];
    assert_eq!(
        seen["by_state"],
        serde_json::json!({"ready": 0, "waiting": 1, "blocked": 0, "done": 1})
    );
    assert_eq!(seen["waiting"][0]["host"], waiting.ip().to_string());
    assert_eq!(seen["failing"][0]["host"], failing.ip().to_string());
    assert_eq!(seen["failing"][0]["failed"], 3);
    assert_eq!(seen["slowest"].as_array().unwrap().len(), 2);
    assert_eq!(status["serving"], Value::Null);
    let said = run(["status", place.arg()]).expect(0).out();
    for part in [
        "hosts      2 contacted; 0 ready, 1 waiting, 0 blocked, 1 done",
        &format!("waiting    {}: until 20", waiting.ip()),
        &format!("failing    {}: 3 failed attempts", failing.ip()),
    ] {
        assert!(said.contains(part), "`{part}` is missing in:\n{said}");
    }
    // A long wait that a server asks for is the reason why a URL waits.
    let put_off = json(&["why", place.arg(), &waiting.url("/"), "--json"]);
    assert_eq!(put_off["state"], "retry");
    assert!(put_off["earliest"].is_string(), "{put_off}");
}
