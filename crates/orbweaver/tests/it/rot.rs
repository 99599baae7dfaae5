//! A crawl directory that has suffered: whatever happens to one file of it, every verb that reads says what it can and
//! what is damaged, and the next crawl goes on. Also: a directory that cannot be written to.
//!
//! A few cases in the usual tests; `ORBWEAVER_ROT=100000` tries all of them, `ORBWEAVER_ROT_SEED` others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use orbweaver_simweb::{SimConfig, SimWeb};
use orbweaver_testkit::{Harm, Random, copy, files, number};
use serde_json::Value;

use crate::support::{Ended, Place, run, sim};

fn web() -> SimWeb {
    sim(SimConfig {
        hosts: 4,
        pages: 12,
        page_bytes: 3000,
        latency_ms: 0,
        ..SimConfig::default()
    })
}

/// A finished crawl, with a change in its log.
fn crawled(web: &SimWeb) -> Place {
    let place = Place::new();
    run(place.crawl(&[&web.seeds()[0], "--scope", "any"])).expect(0);
    run(["ctl", place.arg(), "block", "nobody.example"]);
    run(place.crawl(&[])).expect(0);
    place.check();
    place
}

/// No verb may end in another way, whatever it finds.
fn civil(ended: &Ended, what: &str) -> i32 {
    let code = ended.code.unwrap_or(-1);
    assert!([0, 2, 4, 6, 7].contains(&code), "{what}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    assert!(code == 0 || !ended.stderr.is_empty() || !ended.stdout.is_empty());
    code
}

/// Whether a file belongs to the index. The store may leave lists and tables behind that it has replaced.
fn is_in_use(place: &Place, file: &Path) -> bool {
    let name = file.file_name().unwrap().to_str().unwrap();
    let dir = file.parent().unwrap();
    if dir.ends_with("tables") {
        let away = place.beside("away");
        fs::rename(file, &away).unwrap();
        let noticed = run(["check", place.arg()]).code != Some(0);
        fs::rename(&away, file).unwrap();
        return noticed;
    }
    match fs::read(dir.join("current")) {
        Ok(current) if name.starts_with('v') => {
            let number = u64::from_le_bytes(current[..8].try_into().unwrap());
            name == format!("v{number}")
        }
        _ => true,
    }
}

struct Before {
    urls: Vec<String>,
    page: String,
}

/// What is known, but for sitemaps: a robots.txt that names one is not read again from the archive.
fn urls(place: &Place) -> Vec<String> {
    let mut urls: Vec<String> = place.outcomes().into_iter().map(|o| o.url).collect();
    urls.retain(|url| !url.contains("/sitemap"));
    urls.sort();
    urls
}

#[test]
fn whatever_happens_to_a_file_the_rest_is_served_and_the_crawl_goes_on() {
    let web = web();
    let whole = crawled(&web);
    let outcomes = whole.outcomes();
    let page = outcomes.iter().find(|o| o.class == "success").unwrap();
    let before = Before {
        urls: urls(&whole),
        page: page.url.clone(),
    };
    let mut all = files(whole.dir());
    all.retain(|file| is_in_use(&whole, file));
    let seed = number("ORBWEAVER_ROT_SEED").unwrap_or(1);
    let mut random = Random::new(seed);
    let mut cases: Vec<(u64, &PathBuf, Harm)> = Vec::new();
    for file in &all {
        // Some thirty files of the index are much alike; those that hold what was crawled are tried more often.
        let often = ["jnl", "gz", "cdxj"]
            .iter()
            .any(|end| file.extension().is_some_and(|ext| ext == *end));
        let alike = file
            .components()
            .any(|part| part.as_os_str() == "keyspaces");
        for what in Harm::ALL {
            let times = if often { 3 } else { 1 };
            let rank = |random: &mut Random| random.any() >> if alike { 0 } else { 3 };
            cases.extend((0..times).map(|_| (rank(&mut random), file, what)));
        }
    }
    cases.sort_by_key(|case| case.0);
    cases.truncate(usize::try_from(number("ORBWEAVER_ROT").unwrap_or(16)).unwrap());
    for (seed_of_case, file, what) in cases {
        let name = file.strip_prefix(whole.dir()).unwrap();
        let place = Place::new();
        copy(whole.dir(), place.dir());
        let case = format!("seed {seed}: {what:?} of {}", name.display());
        let mut random = Random::new(seed_of_case);
        if what.inflict(&place.dir().join(name), &mut random) {
            println!("{case}");
            try_case(&place, name.to_str().unwrap(), what, &before, &case);
        }
    }
}

fn try_case(place: &Place, name: &str, what: Harm, before: &Before, case: &str) {
    let dir = place.arg();
    for verb in ["status", "outcomes"] {
        civil(&run([verb, dir]), &format!("{case}: {verb}"));
    }
    for verb in ["why", "get"] {
        let ended = run([verb, dir, &before.page]);
        civil(&ended, &format!("{case}: {verb}"));
    }
    let checked = run(["check", dir, "--json"]);
    let code = civil(&checked, &format!("{case}: check"));
    if must_be_named(name, what) {
        let said = checked.out() + &checked.stderr;
        let part = match name {
            _ if name.contains("keyspaces") => "keyspaces",
            _ if is_archive(name) => stem(name),
            _ => name,
        };
        let journal = name.ends_with(".jnl") && said.contains("*.jnl");
        assert!(
            code != 0 && (said.contains(part) || journal),
            "{case}: {said}"
        );
    }
    let crawled = run(place.crawl(&[]));
    match civil(&crawled, &format!("{case}: crawl")) {
        0 => {}
        // One sentence says what to do.
        2 => return assert!(name == "crawl.toml" && crawled.complaint().contains("crawl.toml")),
        4 => return assert!(name == "orbweaver-crawl" && crawled.complaint().contains(name)),
        other => panic!("{case}: the crawl ended with {other}: {crawled:?}"),
    }
    let checked = run(["check", dir, "--json"]);
    civil(&checked, case);
    let wrong = checked.out();
    let about = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    for line in wrong.lines().map(about) {
        // What the archive lost is lost, and that is all that is wrong.
        let told = line.to_string();
        let fine = line["severity"] != "error"
            || is_archive(name)
                && (told.contains(stem(name)) || told.contains("not in the archive"))
            || name == "changes.jsonl" && told.contains(name);
        assert!(fine, "{case}: {line}");
    }
    assert_eq!(urls(place), before.urls, "{case}");
}

fn is_archive(name: &str) -> bool {
    name.starts_with("warc/") || name.starts_with("cdxj/")
}

/// The part of a name that a WARC file and its index share.
fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.split('.').next().unwrap_or(file)
}

/// Whether `check` must say it. A journal without its end is what a crash leaves; the lock holds nothing; and
/// settings or a log of changes may be gone or say something else without being damaged.
fn must_be_named(name: &str, what: Harm) -> bool {
    match name {
        "index/lock" => what == Harm::Missing,
        // Nothing is read back from it.
        "log/crawl.log" => false,
        // Made again from the archive by the next start.
        _ if name.starts_with("results/") => false,
        "crawl.toml" | "changes.jsonl" => what == Harm::Foreign,
        // Without its end it is one that a kill has left.
        "orbweaver-crawl" => !matches!(what, Harm::Cut | Harm::Empty),
        _ if name.ends_with(".jnl") => !matches!(what, Harm::Cut | Harm::Flip),
        _ => true,
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_can_be_read() {
    let web = web();
    let place = crawled(&web);
    let outcomes = place.outcomes();
    let page = outcomes.iter().find(|o| o.class == "success").unwrap();
    let before = files(place.dir());
    set_mode(place.dir(), 0o555, 0o444);
    let time = |file: &PathBuf| fs::metadata(file).unwrap().modified().unwrap();
    let times: Vec<_> = before.iter().map(time).collect();
    // Root may write where nobody may, so that what was written is looked at too.
    assert_eq!(place.outcomes().len(), outcomes.len());
    assert!(place.status().balanced);
    place.check();
    assert!(!place.get(&page.url).is_empty());
    let why = run(["why", place.arg(), &page.url]).expect(0).out();
    assert!(why.contains("done"), "{why}");
    let after = files(place.dir());
    assert_eq!(before, after);
    assert_eq!(times, after.iter().map(time).collect::<Vec<_>>());
    set_mode(place.dir(), 0o755, 0o644);
}

fn set_mode(path: &Path, dirs: u32, files: u32) {
    let mode = if path.is_dir() { dirs } else { files };
    if path.is_dir() {
        // While it can still be listed, and again.
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            set_mode(&entry.unwrap().path(), dirs, files);
        }
    }
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}
