//! The comparison: what was asked of the server against what a reader reaches, and what the crawler says of it.

use std::collections::{BTreeMap, HashMap};

use super::crawl::{Capture, Crawl, Manner, Outcome};
use super::reader::Way;
use super::site::{Site, Tree};
use super::walk::Reached;

/// Lines of one list that are shown; the rest is counted.
const SHOWN: usize = 40;

/// A list of differences of one kind, with a sentence for what they mean.
fn list(title: &str, meaning: &str, mut lines: Vec<String>) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    lines.sort();
    let count = lines.len();
    let mut text = format!("{title} ({count}): {meaning}");
    for line in lines.iter().take(SHOWN) {
        text.push_str("\n    ");
        text.push_str(line);
    }
    if count > SHOWN {
        text.push_str(&format!("\n    … and {} more", count - SHOWN));
    }
    Some(text)
}

/// The crawler asks for it by itself, once for a host.
const ROBOTS: &str = "/robots.txt";

/// All that is wrong with a crawl; nothing when all is well.
pub(crate) fn judge(
    site: &Site,
    manner: Manner,
    crawl: &Crawl,
    expected: &BTreeMap<String, Reached>,
) -> Vec<String> {
    let asked = site.asked();
    let outcomes = crawl.outcomes(site);
    let mut wrong = Vec::new();
    wrong.extend(crawl.complaint.clone());
    wrong.extend(list(
        "only in crawler",
        "asked of the server, and no reader reaches it",
        asked
            .keys()
            .filter(|target| *target != ROBOTS && !expected.contains_key(*target))
            .map(|target| format!("{target}{}", told(outcomes.get(target))))
            .collect(),
    ));
    wrong.extend(list(
        "only in reader",
        "reached by links, and never asked of the server",
        expected
            .iter()
            .filter(|(target, _)| !asked.contains_key(*target))
            .map(|(target, reached)| {
                let outcome = told(outcomes.get(target));
                format!("{target} ({}){outcome}", reached.told())
            })
            .collect(),
    ));
    wrong.extend(repeats(manner, crawl, &asked));
    wrong.extend(list(
        "archived otherwise",
        "the archive does not have exactly the one answer that the server gives",
        differing(expected, &crawl.captures(site), &outcomes),
    ));
    wrong.extend(books(crawl));
    wrong
}

/// How often a URL was asked for again, for whoever watches.
pub(crate) fn repeated(site: &Site) -> usize {
    site.asked().values().map(|times| times - 1).sum()
}

fn told(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(outcome) => format!(" · {} {}", outcome.class, outcome.reason),
        None => " · not known to the crawler".to_owned(),
    }
}

/// What was asked for more often than once. Killed, a crawl may repeat what had not reached its archive yet: what
/// was on its way, and what it had read and not yet written (ARCHITECTURE.md, permits). That nothing else is
/// repeated shows in the archive, where each page is once.
fn repeats(manner: Manner, crawl: &Crawl, asked: &HashMap<String, usize>) -> Option<String> {
    let again: usize = asked.values().map(|times| times - 1).sum();
    let most_times = asked.values().copied().max().unwrap_or_default();
    let explained = crawl.kills * (3 * manner.at_once + 256);
    if again <= explained && most_times <= 1 + crawl.kills {
        return None;
    }
    let meaning = match crawl.kills {
        0 => "asked of the server more than once".to_owned(),
        kills => format!(
            "asked of the server more than once, {again} requests in all; {kills} kills explain {explained}, and \
             none more than one of a page"
        ),
    };
    let lines = asked
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(target, times)| format!("{target} {times} times"))
        .collect();
    list("duplicates", &meaning, lines)
}

fn differing(
    expected: &BTreeMap<String, Reached>,
    archive: &HashMap<String, Vec<Capture>>,
    outcomes: &HashMap<String, Outcome>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (target, reached) in expected {
        let captures = archive.get(target).map(Vec::as_slice).unwrap_or_default();
        let told = told(outcomes.get(target));
        match captures {
            [one] => {
                let status = reached.status.to_string();
                // A page with the body of another is archived as a reference to it, without a status.
                let other = !one.status.is_empty() && one.status != status;
                if other || one.digest != reached.digest {
                    lines.push(format!(
                        "{target}: {status} with digest {}, archived as {} with {}{told}",
                        reached.digest, one.status, one.digest
                    ));
                }
            }
            several => lines.push(format!("{target}: {} captures{told}", several.len())),
        }
    }
    lines
}

/// What the crawl's own books say.
fn books(crawl: &Crawl) -> Vec<String> {
    let mut wrong = Vec::new();
    let status = crawl.status();
    if status["balanced"] != true {
        wrong.push(format!("the ledger does not balance: {status}"));
    }
    if status["queued"] != 0 {
        wrong.push(format!("URLs are left in the queue: {status}"));
    }
    wrong.extend(crawl.check());
    wrong
}

/// The differences between what wget asked for and what a reader with wget's rules reaches.
pub(crate) fn judge_wget(
    tree: &Tree,
    asked: &HashMap<String, usize>,
    expected: &BTreeMap<String, Reached>,
) -> Vec<String> {
    // wget spells escapes its own way, so targets are compared by what they mean.
    let ours: BTreeMap<String, &str> = expected
        .iter()
        .map(|(target, reached)| (plain(target), &*reached.place))
        .collect();
    let theirs: BTreeMap<String, &String> =
        asked.keys().map(|target| (plain(target), target)).collect();
    let mut wrong = Vec::new();
    wrong.extend(list(
        "only in wget",
        "wget asked for it, and no reader reaches it",
        theirs
            .iter()
            .filter(|(target, raw)| {
                // What it takes from scripts in halves names nothing that exists.
                let exists = tree.answer(raw).status != 404;
                **raw != ROBOTS && exists && !ours.contains_key(*target)
            })
            .map(|(_, raw)| (*raw).clone())
            .collect(),
    ));
    wrong.extend(list(
        "not in wget",
        "a reader with wget's rules reaches it, and wget did not ask for it",
        expected
            .iter()
            .filter(|(target, reached)| {
                reached.way != Way::Unreal && !theirs.contains_key(&plain(target))
            })
            .map(|(target, reached)| format!("{target} ({})", reached.told()))
            .collect(),
    ));
    wrong
}

/// A target with its escapes undone.
fn plain(target: &str) -> String {
    String::from_utf8_lossy(&super::site::unescape(target)).into_owned()
}
