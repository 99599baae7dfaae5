//! The pages: what they say of the command line, of exit codes and outcomes is what the program says, and their links
//! lead somewhere.

use std::fs;
use std::process::{Command, Stdio};

use orbweaver_model::OutcomeClass;

use super::{fail_with, files, files_ending, prose, read, root};

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
         Written by the program itself: `ORBWEAVER_REWRITE_DOCS=1 cargo test -p orbweaver --test it tidy` \
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
