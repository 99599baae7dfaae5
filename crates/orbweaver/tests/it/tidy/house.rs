//! The house: which crate imports which, and that ARCHITECTURE.md draws just that.

use std::collections::{BTreeMap, BTreeSet};

use super::{ARCHITECTURE, fail_with, files_ending, homes, prose, quoted, read, root};

/// A stage imports the model, and the crates that were cut out of it.
const STAGES: [(&str, &[&str]); 12] = [
    ("intake", &["model"]),
    ("extract", &["model"]),
    ("spider", &["model"]),
    ("wire", &["model"]),
    ("urlserver", &["model", "robots", "turns"]),
    ("turns", &["model"]),
    ("robots", &["model"]),
    ("docindex", &["model", "coldstore", "seen"]),
    ("seen", &["model"]),
    ("coldstore", &["model"]),
    ("store", &["model", "journal"]),
    ("journal", &["model"]),
];
/// What stands between the stages and the ring.
const BELOW_THE_RING: [(&str, &[&str]); 2] = [
    ("config", &["model", "intake"]),
    ("crawldir", &["model", "config"]),
];
/// Parts of the ring that stand by themselves: they import what is below the ring, and never each other.
const PARTS: [&str; 4] = ["watch", "reading", "control", "remote"];
/// Whoever runs the ring in a form of its own. Edges never import each other, and only the binary knows them.
const EDGES: [&str; 1] = ["daemons"];
/// For tests and measurements: nothing that is run imports them, but the binary the simulated web.
const TOOLS: [(&str, &[&str]); 4] = [
    ("simweb", &[]),
    ("testkit", &["model"]),
    ("bench", &["simweb"]),
    ("xtask", &[]),
];

/// What a crate may import of ours; none when the crate has no place in the house.
fn allowed(name: &str) -> Option<BTreeSet<&'static str>> {
    let tables = STAGES.iter().chain(&BELOW_THE_RING).chain(&TOOLS);
    if let Some((_, may)) = tables.clone().find(|(of, _)| *of == name) {
        return Some(may.iter().copied().collect());
    }
    let stages = STAGES.iter().chain(&BELOW_THE_RING);
    let mut may: BTreeSet<&str> = stages.map(|(name, _)| *name).collect();
    may.insert("model");
    match name {
        "model" => return Some(BTreeSet::new()),
        "ring" => may.extend(PARTS),
        _ if PARTS.contains(&name) => {}
        _ if EDGES.contains(&name) => may.extend(["ring"].into_iter().chain(PARTS)),
        "orbweaver" => may.extend(EDGES.into_iter().chain(PARTS).chain(["ring", "simweb"])),
        _ => return None,
    }
    Some(may)
}

/// The names of the workspace's crates with what each imports of ours, from one table of the manifests.
fn imports(kinds: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let manifests = files_ending("Cargo.toml");
    let read_manifest = |path: &String| {
        let manifest: toml::Table = read(path).parse().unwrap();
        let name = manifest.get("package")?.get("name")?.as_str()?;
        let used = kinds
            .iter()
            .filter_map(|kind| manifest.get(*kind)?.as_table())
            .flat_map(|table| table.keys().filter(|name| is_ours(name)))
            .map(|name| short(name))
            .collect();
        Some((short(name), used))
    };
    manifests.iter().filter_map(read_manifest).collect()
}

/// What a program is made of; tests may import what they like.
const RUN: [&str; 2] = ["dependencies", "build-dependencies"];

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
    assert_eq!(drawn(), imports(&RUN));
}

/// Stage to model, ring to stages, edge to ring; only the binary knows the edges.
#[test]
fn every_crate_imports_what_its_place_in_the_house_allows() {
    let mut wrong = Vec::new();
    for (name, used) in imports(&RUN) {
        let Some(may) = allowed(&name) else {
            wrong.push(format!("{name} has no place in the house"));
            continue;
        };
        let more = used.iter().filter(|import| !may.contains(import.as_str()));
        wrong.extend(more.map(|import| format!("{name} must not import {import}")));
    }
    fail_with(&wrong);
}

/// What tests share may be used by tests only, and a test of a stage uses no other stage.
#[test]
fn tests_import_what_is_below_them_and_what_tests_share() {
    let mut wrong = Vec::new();
    for (name, used) in imports(&["dev-dependencies"]) {
        let may = allowed(&name).unwrap_or_default();
        let is_fine = |import: &&String| {
            may.contains(import.as_str())
                || ["testkit", "simweb", "model"].contains(&import.as_str())
        };
        let more = used.iter().filter(|import| !is_fine(import));
        wrong.extend(more.map(|import| format!("the tests of {name} must not import {import}")));
    }
    fail_with(&wrong);
}

/// Each further binary of tests links all crates once more.
#[test]
fn a_crate_has_one_binary_of_integration_tests() {
    let mut more = Vec::new();
    for home in homes() {
        let tests = format!("{home}/tests/");
        for path in files_ending(".rs") {
            let Some(inside) = path.strip_prefix(&tests) else {
                continue;
            };
            let is_binary = !inside.contains('/')
                || inside.matches('/').count() == 1 && inside.ends_with("/main.rs");
            if is_binary && inside != "it/main.rs" {
                more.push(format!("{path}: make it a module of {tests}it/main.rs"));
            }
        }
    }
    fail_with(&more);
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
    let unnamed: Vec<String> = homes()
        .iter()
        .filter(|home| !page.contains(&format!("`{home}`")))
        .map(|home| format!("{home} is not described"))
        .collect();
    fail_with(&unnamed);
}

#[test]
fn the_architecture_fits_on_two_hundred_lines() {
    assert!(read(ARCHITECTURE).lines().count() <= 200);
}
