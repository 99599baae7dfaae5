//! The house as its pages describe it: ARCHITECTURE.md, the reference pages and the rules of the code,
//! held against what is really there. Nothing is crawled here.

mod house;
mod pages;
mod rooms;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

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

/// The folders of all crates.
fn homes() -> Vec<String> {
    let manifests = files_ending("/Cargo.toml").into_iter();
    let homes = manifests.filter_map(|path| Some(path.strip_suffix("/Cargo.toml")?.to_owned()));
    homes.collect()
}
