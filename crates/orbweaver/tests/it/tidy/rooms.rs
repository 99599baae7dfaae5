//! The rooms: files stay small, modules of a crate import in one direction, a name of a type means one thing, and no
//! queue is without a bound.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Module, Source, code, is_of_tests};
use super::{fail_with, files_ending, homes, read};

#[test]
fn every_file_says_what_lives_in_it() {
    let silent: Vec<String> = files_ending(".rs")
        .into_iter()
        .filter(|path| !read(path).starts_with("//! "))
        .collect();
    fail_with(&silent);
}

/// Lines of a file without the tests beside its code.
fn lines(path: &str) -> usize {
    let text = read(path);
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().count()
}

#[test]
fn no_room_is_larger_than_five_hundred_lines() {
    let all = files_ending(".rs").into_iter();
    let large: Vec<String> = all
        .filter(|path| !is_of_tests(path))
        .map(|path| (lines(&path), path))
        .filter(|(lines, _)| *lines > 500)
        .map(|(lines, path)| format!("{path} has {lines} lines: make it two files"))
        .collect();
    fail_with(&large);
}

/// The simulated web is many small sites, and nobody builds on it.
const LARGE: [&str; 1] = ["crates/simweb"];

/// A crate that nobody can hold in the head is two.
#[test]
fn no_crate_is_larger_than_six_thousand_lines() {
    let mut large = Vec::new();
    for home in homes()
        .iter()
        .filter(|home| !LARGE.contains(&home.as_str()))
    {
        let src = format!("{home}/src/");
        let of_crate = |path: &String| path.starts_with(&src) && !is_of_tests(path);
        let all = files_ending(".rs").into_iter().filter(of_crate);
        let lines: usize = all.map(|path| lines(&path)).sum();
        if lines > 6000 {
            large.push(format!("{home} has {lines} lines without its tests"));
        }
    }
    fail_with(&large);
}

/// Modules that have the same parent import each other in one direction. A module and its own submodules are one room.
#[test]
fn no_circles_between_the_files_of_a_crate() {
    let mut circles = Vec::new();
    for home in homes() {
        let mut rooms: BTreeMap<Module, BTreeSet<(String, String)>> = BTreeMap::new();
        for (from, to) in Source::of(&home).arrows() {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                let siblings = rooms.entry(from[..shared].to_vec()).or_default();
                siblings.insert((a.clone(), b.clone()));
            }
        }
        for (parent, arrows) in rooms {
            if let Some(circle) = circle(&arrows) {
                let place = [home.as_str(), &parent.join("/")].join(" ");
                circles.push(format!("{}: {}", place.trim(), circle.join(" -> ")));
            }
        }
    }
    fail_with(&circles);
}

/// A way from a node back to itself.
fn circle(arrows: &BTreeSet<(String, String)>) -> Option<Vec<&str>> {
    let next = |from: &str| {
        let ways = arrows.iter().filter(move |(a, _)| a == from);
        ways.map(|(_, b)| b.as_str()).collect::<Vec<_>>()
    };
    for (start, _) in arrows {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open = vec![start.as_str()];
        while let Some(at) = open.pop() {
            for to in next(at) {
                if to == start {
                    let mut way = vec![to, at];
                    while let Some(before) = came_from.get(way[way.len() - 1]) {
                        way.push(before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !came_from.contains_key(to) {
                    came_from.insert(to, at);
                    open.push(to);
                }
            }
        }
    }
    None
}

#[test]
fn a_circle_is_found_however_long_it_is() {
    let arrows = |pairs: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    };
    let straight = arrows(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "a")]);
    assert_eq!(circle(&straight), None);
    let round = arrows(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]);
    assert_eq!(circle(&round), Some(vec!["a", "b", "c", "a"]));
}

/// Each verb of the command line has its own arguments, and they are never spoken of without the verb.
const EVERYWHERE: [&str; 1] = ["Args"];

#[test]
fn a_name_of_a_type_is_defined_once_in_a_crate() {
    let mut twice = Vec::new();
    for home in homes() {
        for (name, places) in Source::of(&home).types() {
            if places.len() > 1 && !EVERYWHERE.contains(&name.as_str()) {
                let places: Vec<String> = places.iter().map(|place| place.join("/")).collect();
                twice.push(format!("{home}: {name} in {}", places.join(" and ")));
            }
        }
    }
    fail_with(&twice);
}

/// Every queue has a bound, with its reason beside it.
#[test]
fn no_queue_is_without_a_bound() {
    let mut unbounded = Vec::new();
    for path in files_ending(".rs") {
        if is_of_tests(&path) || !path.contains("/src/") {
            continue;
        }
        let text = code(&read(&path));
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        for name in ["unbounded_channel", "UnboundedSender", "UnboundedReceiver"] {
            if text.contains(name) {
                unbounded.push(format!("{path}: {name}"));
            }
        }
        // The channel of the standard library takes no bound; that of tokio cannot do without.
        let of_std = text.contains("mpsc::channel()") || text.contains("mpsc::channel::<");
        if of_std && !text.contains("tokio::sync::mpsc") {
            unbounded.push(format!("{path}: std::sync::mpsc::channel"));
        }
    }
    fail_with(&unbounded);
}
