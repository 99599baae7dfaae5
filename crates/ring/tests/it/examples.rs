//! The programs in `examples/`, run as processes; one of them is killed and resumed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::small;

/// An example, which cargo builds with the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().unwrap().parent().unwrap();
    target.join("examples").join(name)
}

fn run(name: &str, arguments: &[&str]) -> Child {
    Command::new(example(name))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}; cargo test builds the examples"))
}

fn output(child: Child) -> String {
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn titles_are_collected_into_a_csv_file() {
    let (sim, dir) = small(1, 30);
    let file = dir.path().join("titles.csv");
    let seed = sim.seeds().remove(0);
    let said = output(run(
        "titles",
        &[&seed, file.to_str().unwrap(), "127.0.0.0/8"],
    ));
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with("url,title\n\"http://"), "{text}");
    assert!(text.lines().count() > 10, "{text}");
    assert!(said.contains(" pages"), "{said}");
}

#[test]
fn a_rule_and_code_of_your_own() {
    let (sim, dir) = small(1, 30);
    let place = dir.path().join("crawl");
    let seed = sim.seeds().remove(0);
    let said = output(run(
        "own_rule",
        &[&seed, place.to_str().unwrap(), "127.0.0.0/8"],
    ));
    assert!(
        said.contains(" pages, ") && said.lines().count() > 5,
        "{said}"
    );
}

#[test]
fn killed_at_any_moment_and_resumed_it_has_every_text() {
    let (sim, dir) = small(1, 400);
    let place = dir.path().join("texts");
    let seed = sim.seeds().remove(0);
    let arguments = [&*seed, place.to_str().unwrap(), "127.0.0.0/8"];
    let texts = || {
        let files = std::fs::read_dir(&place).into_iter().flatten().flatten();
        files
            .filter(|file| file.path().extension().is_some_and(|end| end == "txt"))
            .count()
    };
    for part in 1..4 {
        let mut child = run("resume", &arguments);
        // Until some more texts are there, whenever that is.
        while texts() < part * 60 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    output(run("resume", &arguments));
    let host = seed.trim_end_matches('/');
    let own = sim
        .expected_pages()
        .filter(|url| url.to_string().starts_with(host));
    // The examples read sitemaps, too.
    let sitemaps = |name: &str| name.contains("sitemap");
    let files = std::fs::read_dir(&place).unwrap().flatten();
    let sitemaps = files.filter(|file| sitemaps(file.file_name().to_str().unwrap()));
    assert_eq!(texts() - sitemaps.count(), own.count());
}
