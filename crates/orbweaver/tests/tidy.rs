//! The house as its pages describe it: ARCHITECTURE.md, the reference pages and the rules of the code,
//! held against what is really there. Nothing is crawled here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "everything here is a test, helpers included"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use orbweaver_model::OutcomeClass;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// Set to anything, `docs/cli.md` is written instead of compared.
const REWRITE: &str = "ORBWEAVER_REWRITE_DOCS";
const VERBS: [&str; 13] = [
    "crawl",
    "demo",
    "status",
    "why",
    "ctl",
    "outcomes",
    "get",
    "check",
    "urlserver",
    "spider",
    "store",
    "sim",
    "inspect",
];

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file of the repository below `dir`, as a path from the root. What is built or crawled is left out.
fn files(dir: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(dir)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = if dir.is_empty() {
            name
        } else {
            format!("{dir}/{name}")
        };
        if ["target", "crawl", ".git"].contains(&path.as_str()) {
            continue;
        }
        if root().join(&path).is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn files_ending(suffix: &str) -> Vec<String> {
    let mut all = Vec::new();
    files("", &mut all);
    all.retain(|path| path.ends_with(suffix));
    assert!(!all.is_empty());
    all
}

fn fail_with(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The lines of a page outside its fences.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// What stands between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The names of the workspace's crates with what each imports of ours, from the manifests. Tests may
/// import what they like.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let manifests = files_ending("Cargo.toml");
    let read_manifest = |path: &String| {
        let manifest: toml::Table = read(path).parse().unwrap();
        let name = manifest.get("package")?.get("name")?.as_str()?;
        let used = ["dependencies", "build-dependencies"]
            .iter()
            .filter_map(|kind| manifest.get(*kind)?.as_table())
            .flat_map(|table| table.keys().filter(|name| is_ours(name)))
            .map(|name| short(name))
            .collect();
        Some((short(name), used))
    };
    manifests.iter().filter_map(read_manifest).collect()
}

fn is_ours(name: &str) -> bool {
    name == "orbweaver" || name.starts_with("orbweaver-")
}

fn short(name: &str) -> String {
    name.strip_prefix("orbweaver-").unwrap_or(name).to_owned()
}

/// The arrows that ARCHITECTURE.md draws: lines `crate -> crate crate` in the fence called `arrows`.
fn drawn() -> BTreeMap<String, BTreeSet<String>> {
    let page = read(ARCHITECTURE);
    let fence = page.split("```arrows\n").nth(1).expect("a fence of arrows");
    let arrows = fence.split("```").next().unwrap().lines();
    arrows
        .map(|line| {
            let (from, to) = line.split_once("->").expect("an arrow");
            let to = to.split_whitespace().map(str::to_owned).collect();
            (from.trim().to_owned(), to)
        })
        .collect()
}

#[test]
fn the_arrows_drawn_are_the_arrows_there_are() {
    assert_eq!(drawn(), imports());
}

#[test]
fn a_stage_imports_the_model_and_nothing_else_of_ours() {
    for (name, used) in imports() {
        let knows_the_ring = ["orbweaver", "bench", "config", "urlserver"].contains(&name.as_str());
        let model_only = used.iter().all(|import| import == "model");
        assert!(knows_the_ring || model_only, "{name} imports {used:?}");
    }
}

#[test]
fn every_path_in_the_architecture_exists() {
    let page = read(ARCHITECTURE);
    let gone = prose(&page)
        .flat_map(quoted)
        .filter(|word| word.contains('/') && !word.contains(' '))
        .filter(|word| !root().join(word).exists());
    let gone: Vec<String> = gone.map(|path| format!("{path} is gone")).collect();
    fail_with(&gone);
}

#[test]
fn every_crate_has_its_place_in_the_architecture() {
    let page = read(ARCHITECTURE);
    let homes = files_ending("Cargo.toml");
    let homes = homes
        .iter()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let unnamed: Vec<String> = homes
        .filter(|home| !page.contains(&format!("`{home}`")))
        .map(|home| format!("{home} is not described"))
        .collect();
    fail_with(&unnamed);
}

#[test]
fn the_architecture_fits_on_two_hundred_lines() {
    assert!(read(ARCHITECTURE).lines().count() <= 200);
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = Vec::new();
    for path in files_ending(".md") {
        let page = read(&path);
        let links = prose(&page).flat_map(|line| line.split("](").skip(1));
        for link in links.filter_map(|rest| rest.split([')', '#']).next()) {
            let target = root().join(&path).parent().unwrap().join(link);
            if !link.is_empty() && !link.contains("://") && !target.exists() {
                broken.push(format!("{path} links to {link}, which is not there"));
            }
        }
    }
    fail_with(&broken);
}

#[test]
fn every_file_says_what_lives_in_it() {
    let silent: Vec<String> = files_ending(".rs")
        .into_iter()
        .filter(|path| !read(path).starts_with("//! "))
        .collect();
    fail_with(&silent);
}

#[test]
fn no_room_is_larger_than_five_hundred_lines() {
    let mut large = Vec::new();
    for path in files_ending(".rs") {
        // Tests beside the code, in files of their own, or in a directory of their own.
        if path.contains("/tests/") || path.ends_with("tests.rs") {
            continue;
        }
        let text = read(&path);
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().count();
        if lines > 500 {
            large.push(format!("{path} has {lines} lines: make it two files"));
        }
    }
    fail_with(&large);
}

/// Somebody's home directory means nothing to the next reader.
#[test]
fn nothing_names_a_place_on_one_machine() {
    let mut all = Vec::new();
    files("", &mut all);
    let places = ["home", "root", "Users", "work", "mnt"].map(|name| format!("/{name}/"));
    let mut named = Vec::new();
    for path in all {
        // What is not text is a fixture.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            let at_its_start = |place: &String| {
                line.match_indices(place.as_str()).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    before.is_none_or(|c| !c.is_alphanumeric() && !"/.-_*)]}%~".contains(c))
                })
            };
            if places.iter().any(at_its_start) {
                named.push(format!("{path}:{}: {line}", number + 1));
            }
        }
    }
    fail_with(&named);
}

/// What a verb prints for `--help`, at the width it has without a terminal.
fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_orbweaver"))
        .args(arguments)
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

#[test]
fn the_page_about_the_command_line_is_what_help_says() {
    let mut page = String::from(
        "# The command line\n\n\
         Written by the program itself: `ORBWEAVER_REWRITE_DOCS=1 cargo test -p orbweaver --test tidy` \
         brings it up to date.\n",
    );
    page += &format!("\n```text\n{}\n```\n", help(&["--help"]));
    for verb in VERBS {
        let text = help(&[verb, "--help"]);
        page += &format!("\n## orbweaver {verb}\n\n```text\n{text}\n```\n");
    }
    let listed = help(&["--help"]);
    let commands = listed.split("Commands:").nth(1).unwrap();
    let commands = commands.split("\n\n").next().unwrap().lines();
    let commands: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert_eq!(commands, VERBS, "a verb is missing in this test");
    if std::env::var_os(REWRITE).is_some() {
        fs::write(root().join("docs/cli.md"), page).unwrap();
        return;
    }
    assert!(
        read("docs/cli.md") == page,
        "docs/cli.md is not what help says; run this test with {REWRITE}=1"
    );
}

#[test]
fn the_exit_codes_on_their_page_are_those_of_help() {
    let help = help(&["--help"]);
    let codes = help.split("Exit codes:\n").nth(1).unwrap();
    let page = read("docs/exit-codes.md");
    let codes: Vec<&str> = codes
        .lines()
        .filter_map(|line| line.trim().split_once("  ").map(|(code, _)| code))
        .collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    for code in codes {
        assert!(page.contains(&format!("\n| {code} |")), "{code}");
    }
    assert!(!page.contains(&format!("\n| {} |", 9)), "an old code");
}

#[test]
fn every_outcome_class_is_explained_and_no_other() {
    let page = read("docs/outcomes.md");
    let section = page.split("\n## ").nth(1).expect("the table of classes");
    let explained: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut classes: Vec<&str> = OutcomeClass::ALL
        .iter()
        .map(|class| class.as_str())
        .collect();
    classes.push("queued");
    assert_eq!(explained, classes);
}
