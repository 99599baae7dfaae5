//! The command line: mistakes get one clear sentence and the right exit code, and leave nothing behind;
//! listings work on running and on finished crawls.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use orbweaver_simweb::{SimConfig, SimWeb};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, run, sim, start, start_with, until};

fn web() -> SimWeb {
    sim(SimConfig {
        hosts: 6,
        pages: 200,
        page_bytes: 2000,
        ..SimConfig::default()
    })
}

/// A crawl that takes minutes unless it is stopped, and has found most of its URLs.
fn running(web: &SimWeb, place: &Place) -> Running {
    let seed = web.seeds().remove(0);
    let crawl = start(place.crawl(&[&seed, "--scope", "any", "--rate", "2"]));
    until("the socket", || place.dir().join("control.sock").exists());
    until("some pages and most URLs", || {
        let status = place.status();
        status.pages > 2 && status.queued > 100
    });
    crawl
}

#[test]
fn a_configuration_key_that_does_not_exist_is_named() {
    let place = Place::new();
    let config = place.file("my.toml", "[politeness]\nratte = 5\n");
    let ended = run([
        "crawl",
        "http://a.example/",
        "-o",
        place.arg(),
        "-c",
        &config,
    ])
    .expect(2);
    for word in ["ratte", "my.toml", "line 2", "rate"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    assert!(!place.dir().exists(), "a mistake left a directory behind");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let place = Place::new();
    let ended = run([
        "crawl",
        "gopher://a.example/",
        "http://",
        "-o",
        place.arg(),
        "--include",
        "(",
        "--allow-net",
        "10.0.0.0/99",
        "--resolver",
        "dns",
        "--memory",
        "much",
        "--time",
        "soon",
        "--per-host",
        "0",
    ])
    .expect(2);
    for word in [
        "gopher://a.example/",
        "http://",
        "\"(\"",
        "10.0.0.0/99",
        "`dns`",
        "`much`",
        "`soon`",
        "per_host",
        " mistakes:",
    ] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    assert!(!place.dir().exists());
}

#[test]
fn a_url_that_is_none_is_one_clear_sentence() {
    let place = Place::new();
    let ended = run(["crawl", "mailto:me@example.org", "-o", place.arg()]).expect(2);
    assert_eq!(
        ended.complaint(),
        "orbweaver: `mailto:me@example.org` is not a URL to crawl: only http and https URLs can be crawled"
    );
    let ended = run(["crawl", "-o", place.arg()]).expect(2);
    assert!(
        ended.stderr.contains("nothing to crawl"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stderr.lines().count(), 1);
    assert!(!place.dir().exists());
}

#[test]
fn what_the_parser_of_flags_refuses_is_bad_input_too() {
    for args in [
        vec!["crawl", "--no-such-flag"],
        vec!["crawl", "http://a.example/", "--scope", "galaxy"],
        vec!["crawl", "http://a.example/", "--depth", "-1"],
        vec!["fly"],
        vec!["get", "somewhere"],
        vec![],
    ] {
        let ended = run(&args).expect(2);
        assert!(
            ended.stdout.is_empty() && !ended.stderr.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn seed_files_say_which_line_is_wrong() {
    let place = Place::new();
    let text = "# sites\nhttp://a.example/\n\nmailto:x@y\nhttp://b.example:99999/\n";
    let seeds = place.file("seeds.txt", text);
    let ended = run(["crawl", "--seeds", &seeds, "-o", place.arg()]).expect(2);
    for word in ["seeds.txt", "line 4", "mailto:x@y", "line 5", ":99999"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    let ended = run(["crawl", "--seeds", "/no/such/file", "-o", place.arg()]).expect(2);
    assert!(ended.stderr.contains("/no/such/file"), "{}", ended.stderr);
    assert!(!place.dir().exists());
}

#[test]
fn seeds_can_come_from_standard_input() {
    let web = web();
    let place = Place::new();
    let list = format!("# roots\n{}\n", web.all_roots().join("\r\n"));
    start_with(place.crawl(&["--seeds", "-"]), list.into_bytes())
        .wait()
        .expect(0);
    assert_eq!(web.stats().missed.count, 0);
}

#[test]
fn a_directory_that_is_no_crawl_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.dir()).unwrap();
    std::fs::write(place.dir().join("thesis.txt"), "years of work").unwrap();
    for args in [
        vec!["crawl", "http://127.0.0.1/", "-o", place.arg()],
        vec!["demo", "-o", place.arg()],
        vec!["status", place.arg()],
        vec!["outcomes", place.arg()],
        vec!["check", place.arg()],
        vec!["get", place.arg(), "http://127.0.0.1/"],
    ] {
        let ended = run(&args).expect(4);
        assert!(
            ended.stderr.contains("is not a crawl directory"),
            "{}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let names: Vec<_> = std::fs::read_dir(place.dir()).unwrap().collect();
    assert_eq!(names.len(), 1);
    let ended = run(["status", "/no/such/place"]).expect(4);
    assert!(
        ended.stderr.contains("there is no directory"),
        "{}",
        ended.stderr
    );
    assert!(!std::path::Path::new("/no/such/place").exists());
}

#[test]
fn a_directory_of_another_version_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.dir()).unwrap();
    let mark = "orbweaver crawl directory, format 99\n";
    std::fs::write(place.dir().join("orbweaver-crawl"), mark).unwrap();
    for args in [
        vec!["crawl", "http://127.0.0.1/", "-o", place.arg()],
        vec!["status", place.arg()],
    ] {
        let ended = run(&args).expect(4);
        assert!(ended.stderr.contains("another version"), "{}", ended.stderr);
        assert!(ended.stderr.contains("format 99"), "{}", ended.stderr);
    }
    assert_eq!(std::fs::read_dir(place.dir()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_nobody_can_write_to() {
    // Not even root can make a directory there.
    let ended = run(["crawl", "http://127.0.0.1/", "-o", "/proc/orbweaver"]).expect(4);
    assert!(
        ended.stderr.contains("cannot use /proc/orbweaver"),
        "{}",
        ended.stderr
    );
    let file = Place::new();
    let path = file.file("file", "text");
    let ended = run(["crawl", "http://127.0.0.1/", "-o", &path]).expect(4);
    assert!(
        ended.stderr.contains("choose another directory"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_directory_in_use_is_refused_and_the_crawl_there_goes_on() {
    let web = web();
    let place = Place::new();
    let mut first = running(&web, &place);
    let ended = run(["crawl", "-o", place.arg(), "--progress", "off"]).expect(4);
    assert!(
        ended.stderr.contains("in use by another process"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(first.is_running());
    assert!(place.status().running);
    first.signal(Signal::INT);
    first.wait().expect(3);
}

#[test]
fn a_running_crawl_answers_questions() {
    let web = web();
    let place = Place::new();
    let crawl = running(&web, &place);
    let status = place.status();
    assert!(status.running && status.balanced, "{status:?}");
    assert!(status.queued > 100 && status.pages > 0, "{status:?}");
    let plain = run(["status", place.arg()]).expect(0).out();
    assert!(
        plain.contains("running") && plain.contains("balances"),
        "{plain}"
    );
    let fates = place.fates();
    let queued = fates.iter().filter(|fate| fate.class == "queued").count();
    assert!(queued > 100, "{queued}");
    let done = fates.iter().find(|fate| fate.class == "success").unwrap();
    assert!(done.bytes > 0 && done.attempts == 1 && done.ip.is_some());
    place.check();
    let seed = web.seeds().remove(0);
    assert_eq!(place.get(&seed), web.body_of(&seed).unwrap());
    crawl.signal(Signal::INT);
    crawl.wait().expect(3);
    assert!(!place.dir().join("control.sock").exists());
    let status = place.status();
    assert!(!status.running && status.queued > 0, "{status:?}");
    let plain = run(["status", place.arg()]).expect(0).out();
    assert!(
        plain.contains(&format!("stopped; `orbweaver crawl -o {}`", place.arg())),
        "{plain}"
    );
}

/// Records and ledger change all the time; `check` must look at one moment of them.
#[test]
fn check_blames_no_crawl_that_is_under_way() {
    let web = sim(SimConfig {
        hosts: 12,
        pages: 600,
        page_bytes: 1000,
        latency_ms: 5,
        ..SimConfig::default()
    });
    let place = Place::new();
    let mut crawl = start(place.crawl(&[&web.seeds()[0], "--scope", "any"]));
    until("the first pages", || web.stats().fetched > 100);
    let mut checks = 0;
    while crawl.is_running() {
        place.check();
        checks += 1;
    }
    crawl.wait().expect(0);
    assert!(checks > 1, "the crawl was too quick to be checked");
}

#[test]
fn listings_of_a_finished_crawl_can_be_read_at_the_same_time() {
    let web = web();
    let place = Place::new();
    place.crawl_to_the_end(&[&web.seeds()[0], "--scope", "any"]);
    let asked: Vec<Running> = (0..4)
        .flat_map(|_| ["outcomes", "status", "check"])
        .map(|verb| start([verb, place.arg()]))
        .collect();
    for running in asked {
        running.wait().expect(0);
    }
}

/// `orbweaver outcomes DIR | head -1`.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let web = web();
    let place = Place::new();
    place.crawl_to_the_end(&[&web.seeds()[0], "--scope", "any"]);
    // Far more than a pipe holds, so that the writer meets its end.
    assert!(place.status().accepted > 1000);
    let mut listing = Command::new(env!("CARGO_BIN_EXE_orbweaver"))
        .args(["outcomes", place.arg()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut head = BufReader::with_capacity(256, listing.stdout.take().unwrap());
    head.read_line(&mut line).unwrap();
    drop(head);
    let ended = listing.wait_with_output().unwrap();
    assert!(line.starts_with('{'));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn wrong_numbers_are_named_for_what_they_are() {
    let place = Place::new();
    let junk = place.file("ca.pem", "no certificate");
    for (flag, value, named) in [
        ("--rate", "-1", "rate must be"),
        ("--pages", "-5", "--pages"),
        ("--ca", junk.as_str(), "root certificates"),
    ] {
        let ended = run(place.crawl(&["http://127.0.0.1:1/", flag, value])).expect(2);
        assert!(ended.stderr.contains(named), "{flag}: {}", ended.stderr);
    }
}

#[test]
fn progress_in_json_is_an_object_a_line() {
    let web = web();
    let place = Place::new();
    let seed = web.seeds().remove(0);
    let crawl = start(place.crawl(&[
        &seed,
        "--scope",
        "any",
        "--rate",
        "100",
        "--progress",
        "json",
    ]));
    let ended = crawl.wait().expect(0);
    let lines: Vec<Value> = (ended.stderr.lines())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    assert!(lines.len() >= 2, "{lines:?}");
    for line in &lines {
        for field in [
            "seconds",
            "pages",
            "rate",
            "bytes",
            "queued",
            "hosts_active",
            "in_flight",
            "failed",
        ] {
            assert!(line[field].is_number(), "{field} in {line}");
        }
        assert!(line["limited_by"].is_string(), "{line}");
    }
    assert!(ended.stdout.is_empty(), "nothing but progress");
    let last = lines.last().unwrap();
    assert_eq!(last["pages"].as_u64().unwrap(), place.status().pages);
    let limits: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["limited_by"].as_str())
        .collect();
    assert!(
        limits.iter().any(|limit| limit.contains("politeness")),
        "{limits:?}"
    );
}

#[test]
fn plain_progress_says_what_people_want_to_know() {
    let web = web();
    let place = Place::new();
    let seed = web.seeds().remove(0);
    let crawl = start(place.crawl(&[
        &seed,
        "--scope",
        "any",
        "--rate",
        "2",
        "--progress",
        "plain",
    ]));
    let line = loop {
        let line = crawl.line().expect("a line of progress");
        if line.contains("pages") {
            break line;
        }
    };
    for word in [
        "pages",
        "/s",
        "queued",
        "hosts",
        "failed",
        "limit: politeness",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
    crawl.signal(Signal::INT);
    let ended = crawl.wait().expect(3);
    // The summary says what came of it and what to type next.
    let out = ended.out();
    for word in [
        "stopped after",
        "URLs known",
        "to resume:",
        "orbweaver check",
    ] {
        assert!(out.contains(word), "{word}: {out}");
    }
}

#[test]
fn check_says_what_is_wrong_and_where() {
    let web = web();
    let place = Place::new();
    place.crawl_to_the_end(&[&web.seeds()[0], "--scope", "any"]);
    let warc = std::fs::read_dir(place.dir().join("warc"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let mut bytes = std::fs::read(warc.path()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(warc.path(), bytes).unwrap();
    let ended = run(["check", place.arg()]).expect(6);
    let name = warc.file_name().into_string().unwrap();
    let out = ended.out();
    assert!(out.contains("error: ") && out.contains(&name), "{out}");
    let ended = run(["check", place.arg(), "--json"]).expect(6);
    for line in ended.out().lines() {
        let _: Value = serde_json::from_str(line).unwrap();
    }
}

#[test]
fn help_lists_the_exit_codes_and_every_verb() {
    let help = run(["--help"]).expect(0).out();
    for code in 0..=7 {
        assert!(help.contains(&format!("\n  {code}  ")), "{code}: {help}");
    }
    for verb in [
        "crawl", "demo", "status", "outcomes", "get", "check", "sim", "inspect",
    ] {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb}: {help}");
        run([verb, "--help"]).expect(0);
    }
}

#[test]
fn the_demo_runs_offline_and_ends_by_itself() {
    let place = Place::new();
    let ended = run(["demo", "-o", place.arg(), "--progress", "plain"]).expect(0);
    let out = ended.out();
    let verdict = "2400 distinct pages, 0 duplicates, 0 before robots.txt, 0 robots.txt violations";
    assert!(out.contains(verdict), "{out}");
    assert!(out.contains("orbweaver outcomes"), "{out}");
    place.check();
}

/// The simulation as a process of its own, as a user tries things on.
#[test]
fn sim_serves_says_where_and_counts() {
    let mut sim = Command::new(env!("CARGO_BIN_EXE_orbweaver"))
        .args(["sim", "--hosts", "3", "--pages", "10", "--ips", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(sim.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let (seed, dns) = (
        ready["seed_url"].as_str().unwrap(),
        ready["dns"].as_str().unwrap(),
    );
    let place = Place::new();
    let crawled = run(place.crawl(&[seed, "--scope", "domain", "--resolver", dns]));
    let control = ready["control"].as_str().unwrap().to_owned() + "/stats";
    let stats = Place::new();
    let asked = run(stats.crawl(&[&control]));
    let counted = stats.get(&control);
    rustix::process::kill_process(rustix::process::Pid::from_child(&sim), Signal::TERM).unwrap();
    assert_eq!(sim.wait().unwrap().code(), Some(0));
    crawled.expect(0);
    asked.expect(0);
    let counted: Value = serde_json::from_slice(&counted).unwrap();
    assert_eq!(
        (&counted["fetched"], &counted["expected"]),
        (&30.into(), &30.into())
    );
}
