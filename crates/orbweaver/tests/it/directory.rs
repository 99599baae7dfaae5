//! A crawl directory and what stands in it: who may write when, what a run leaves, and what it tells its user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::script::{Reply, Site};
use crate::support::{Place, Running, run, start, until};

/// A site of three hundred pages, one of which redirects to what is no URL.
fn site(address: [u8; 3]) -> Site {
    Site::start(address, |request| match request.target.as_str() {
        "/" => {
            let pages = (0..300).map(|n| format!("/page/{n}"));
            Some(Reply::links(pages.chain([
                "/odd".to_owned(),
                "http://other.invalid/".to_owned(),
            ])))
        }
        "/odd" => {
            let target = format!("Location: ht!tp://\u{9b}31m\u{202e}[::{}", "A".repeat(4000));
            Some(Reply::status(302).with(&target))
        }
        page if page.starts_with("/page/") => Some(Reply::html(format!("<p>{page}"))),
        _ => None,
    })
}

/// A crawl of the site that goes on for minutes.
fn running(site: &Site, place: &Place) -> Running {
    let crawl = start(place.crawl(&[&site.url("/"), "--rate", "5"]));
    until("the first pages", || site.pages().len() > 3);
    until("the socket", || place.dir().join("control.sock").exists());
    crawl
}

#[test]
fn a_start_that_is_refused_changes_nothing() {
    let site = site([9, 1, 1]);
    let place = Place::new();
    let crawl = running(&site, &place);
    let kept = || fs::read_to_string(place.dir().join("crawl.toml")).unwrap();
    let before = kept();
    let other = site.url("/other");
    let refused = run(place.crawl(&[&other, "--scope", "any", "--insecure", "--rate", "77"]));
    let refused = refused.expect(4);
    assert!(
        refused.complaint().contains("in use by another process"),
        "{}",
        refused.complaint()
    );
    let demo = run(["demo", "-o", place.arg(), "--progress", "off"]).expect(4);
    assert!(demo.complaint().contains("in use"), "{}", demo.complaint());
    assert_eq!(kept(), before);
    crawl.signal(Signal::INT);
    crawl.wait().expect(3);
    // Nor does a demo replace it when it does not run.
    let demo = run(["demo", "-o", place.arg(), "--progress", "off"]).expect(4);
    assert!(
        demo.complaint().contains("`demo` did not create"),
        "{}",
        demo.complaint()
    );
    assert_eq!(kept(), before);
    assert!(place.status().queued > 0);
    place.check();
}

#[test]
fn a_mistake_leaves_no_directory_behind() {
    let place = Place::new();
    for wrong in [["--ca", "/nowhere/ca.pem"], ["--include", "("]] {
        run(place.crawl(&["http://127.0.0.1:1/", wrong[0], wrong[1]])).expect(2);
        assert!(!place.dir().exists(), "{wrong:?}");
    }
}

#[test]
fn a_directory_that_is_removed_ends_the_crawl() {
    let site = site([9, 1, 2]);
    let place = Place::new();
    let crawl = running(&site, &place);
    fs::rename(place.dir(), place.beside("elsewhere")).unwrap();
    let ended = crawl.wait_for(Duration::from_secs(60)).expect(4);
    assert!(
        ended.complaint().contains("was removed or moved"),
        "{}",
        ended.complaint()
    );
    assert!(!place.dir().exists(), "nothing is made anew in its place");
}

#[test]
fn the_summary_says_which_limit_ended_a_run_and_how_to_lift_it() {
    let site = site([9, 1, 3]);
    let place = Place::new();
    let ended = run(place.crawl(&[&site.url("/"), "--pages", "5", "--progress", "plain"]));
    let said = ended.expect(0).out();
    assert!(said.contains("limit --pages 5 reached"), "{said}");
    let lift = format!("orbweaver crawl -o {} --pages 0", place.arg());
    assert!(said.contains(&lift), "{said}");
    // Again without it the limit is still there, and the run says so.
    let again = run(["crawl", "-o", place.arg(), "--progress", "plain"]).expect(0);
    assert!(
        again.stderr.contains("kept from an earlier run: --pages 5"),
        "{}",
        again.stderr
    );
    assert_eq!(place.status().pages, 5);
    run([
        "crawl",
        "-o",
        place.arg(),
        "--pages",
        "0",
        "--progress",
        "off",
    ])
    .expect(0);
    let status = place.status();
    assert_eq!((status.pages, status.queued), (301, 0));
    // Out of scope is told from what is denied, and only hosts that were asked are counted.
    assert_eq!((status.out_of_scope, status.hosts), (1, 1));
    assert_eq!(status.requests as usize, site.log().len());
}

#[test]
fn insecure_and_recrawl_do_not_stick_silently() {
    let site = site([9, 1, 4]);
    let place = Place::new();
    let seed = site.url("/");
    run(place.crawl(&[&seed, "--depth", "0", "--insecure"])).expect(0);
    assert_eq!(site.pages().len(), 1, "--depth 0 fetches the seeds only");
    let plain = ["crawl", "-o", place.arg(), "--progress", "plain"];
    let again = run(plain).expect(0);
    assert!(
        again.stderr.contains("--insecure") && again.stderr.contains("--no-insecure"),
        "{}",
        again.stderr
    );
    let ended = run([&plain[..], &["--no-insecure"]].concat()).expect(0);
    assert!(!ended.stderr.contains("insecure"), "{}", ended.stderr);
    let after = run(plain).expect(0);
    assert!(!after.stderr.contains("insecure"), "{}", after.stderr);
}

#[test]
fn a_seed_that_cannot_be_reached_is_named_at_once_with_its_cause() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.9.1.5:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let crawl = start(place.crawl(&[&format!("http://{address}/"), "--progress", "plain"]));
    // Before any line of progress, which comes after five seconds.
    let line = crawl.line().unwrap();
    for word in [
        &address.to_string(),
        "is not reachable",
        "connection refused",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
    crawl.signal(Signal::INT);
    crawl.wait().expect(3);
}

#[test]
fn a_crawl_without_a_page_has_a_code_of_its_own() {
    let place = Place::new();
    let quick = place.file("quick.toml", "[retry]\ndelay_s = 0.01");
    let seed = "http://127.9.1.6:1024/";
    let ended = run(place.crawl(&[seed, "-c", &quick, "--progress", "plain"])).expect(8);
    let said = ended.out();
    for word in ["no page was fetched", seed, "failed_connect"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn each_request_is_in_the_log_and_outcomes_say_where_it_lies() {
    let site = site([9, 1, 7]);
    let place = Place::new();
    let ended = run(place.crawl(&[&site.url("/"), "-v"])).expect(0);
    let log = fs::read_to_string(place.dir().join("log/crawl.log")).unwrap();
    assert_eq!(log.lines().count(), site.log().len());
    for line in log.lines() {
        assert_eq!(line.split(' ').count(), 9, "{line}");
        assert!(ended.stderr.contains(line), "-v shows {line}");
    }
    let fates = place.fates();
    let page = fates.of(&site.url("/page/7"));
    assert_eq!(page.via.as_deref(), Some(&*site.url("/")));
    assert_eq!(page.media.as_deref(), Some("text/html"));
    let digest = page.digest.as_deref().unwrap();
    let time = page.time.as_deref().unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("/page/7 "))
        .expect("a line for the page");
    assert!(line.ends_with(digest) && line.starts_with(time), "{line}");
    let archive = page.archive.as_ref().unwrap();
    let file = fs::read(place.dir().join(archive["file"].as_str().unwrap())).unwrap();
    let offset = archive["offset"].as_u64().unwrap() as usize;
    assert_eq!(file.get(offset..offset + 2), Some(&[0x1f, 0x8b][..]));
    assert!(fates.of("http://other.invalid/").out_of_scope);
}

#[test]
fn what_a_server_writes_is_bounded_and_shown_without_hidden_characters() {
    let site = site([9, 1, 8]);
    let place = Place::new();
    let ended = run(place.crawl(&[&site.url("/"), "-v"])).expect(0);
    let odd = site.url("/odd");
    let fates = place.fates();
    let target = fates.of(&odd).redirect.as_deref().unwrap();
    assert!(
        target.starts_with("ht!tp://\\u{9b}31m\\u{202e}"),
        "{target}"
    );
    assert!(target.len() < 600, "{} bytes", target.len());
    for said in [
        run(["outcomes", place.arg()]).expect(0).out(),
        run(["why", place.arg(), &odd]).expect(0).out(),
        run(["why", place.arg(), &odd, "--json"]).expect(0).out(),
        fs::read_to_string(place.dir().join("log/crawl.log")).unwrap(),
        ended.stderr,
    ] {
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(hidden), "{said}");
    }
}

#[test]
fn files_have_one_mode_and_who_may_not_read_is_told_so() {
    let site = site([9, 1, 9]);
    let place = Place::new();
    run(place.crawl(&[&site.url("/"), "--pages", "20"])).expect(0);
    let mut modes = std::collections::BTreeSet::new();
    let mut left = vec![place.dir().to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => {
                    modes.insert(fs::metadata(&path).unwrap().permissions().mode() & 0o777);
                }
            }
        }
    }
    assert_eq!(modes.len(), 1, "{modes:?}");
    // Root may read everything, so another user has to try where this one is root.
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return;
    }
    let open =
        |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(place.dir().parent().unwrap(), 0o755);
    open(&place.dir().join("index/version"), 0o600);
    for verb in ["status", "outcomes", "check"] {
        let ended = std::process::Command::new("/usr/bin/setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args([env!("CARGO_BIN_EXE_orbweaver"), verb, place.arg()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        // The program itself may lie where that user cannot go.
        if said.contains("setpriv") {
            return;
        }
        assert_eq!(ended.status.code(), Some(4), "{verb}: {said}");
        assert!(
            said.contains("may not read") && !said.contains("damaged"),
            "{verb}: {said}"
        );
    }
}

#[test]
fn every_mistake_of_a_configuration_is_named_at_once() {
    let place = Place::new();
    let config = place.file(
        "wrong.toml",
        "memory = \"12Q\"\n[politeness]\nratte = 1\nper_host = -3\n[scope]\ninclude = [\"(\", \"[\"]\ndepth = \"deep\"",
    );
    let ended = run(place.crawl(&["http://127.0.0.1:1/", "-c", &config])).expect(2);
    let said = ended.complaint();
    for word in ["12Q", "ratte", "line 4", "line 7", "\"(\"", "\"[\""] {
        assert!(said.contains(word), "{word}: {said}");
    }
    for name in ["u16", "f64", "usize", "Option"] {
        assert!(!said.contains(name), "{name}: {said}");
    }
}
