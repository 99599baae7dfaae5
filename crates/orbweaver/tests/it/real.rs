//! Sites that we did not make: documentation as Debian's packages bring it, crawled and compared with what an
//! independent reader reaches, and with what wget does.
//!
//! `ORBWEAVER_REAL` names the folders, separated by colons; `cargo xtask real` sets it, and `cargo xtask test`
//! does with three. `ORBWEAVER_REAL_ALL` crawls them in all manners instead of four, `ORBWEAVER_SEED` repeats the
//! latencies and kills of a run. `docs/real.md` says what this proves and what it leaves out.

mod crawl;
mod css;
mod html;
mod judge;
mod own;
mod reader;
mod site;
mod walk;
mod wget;
mod xml;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use self::crawl::Manner;
use self::site::{Site, Tree};
use self::walk::{Rules, Walker};
use orbweaver_testkit::Random;

/// For every change: each number of requests at once, each kind of crawl, and kills.
const USUAL: [Manner; 4] = [
    manner(1, 0, false, 0),
    manner(3, 3, true, 0),
    manner(16, 8, false, 0),
    manner(16, 8, true, 3),
];

const fn manner(at_once: usize, latency_ms: u64, requisites: bool, kills: usize) -> Manner {
    Manner {
        at_once,
        latency_ms,
        requisites,
        kills,
    }
}

/// By hand: everything with everything, to the end and killed. One request at a time is answered at once, so that
/// the crawler is the slow one.
fn all() -> Vec<Manner> {
    let mut all = Vec::new();
    for at_once in [1, 3, 16] {
        let latency_ms = if at_once == 1 { 0 } else { 8 };
        for requisites in [false, true] {
            for kills in [0, 5] {
                all.push(manner(at_once, latency_ms, requisites, kills));
            }
        }
    }
    all
}

#[test]
fn documentation_trees_are_crawled_whole_and_once() {
    let Some(folders) = std::env::var_os("ORBWEAVER_REAL") else {
        println!("NOT RUN: ORBWEAVER_REAL names no folder; `cargo xtask real` brings some");
        return;
    };
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let manners = match std::env::var_os("ORBWEAVER_REAL_ALL") {
        Some(_) => all(),
        None => USUAL.into(),
    };
    let seed = orbweaver_testkit::seed("ORBWEAVER_SEED");
    let mut random = Random::new(seed);
    let mut wrong = 0;
    for folder in &folders {
        wrong += compare(folder, &manners, &mut random);
    }
    assert_eq!(wrong, 0, "of the comparisons above failed");
}

/// Crawls a folder in every manner; how many comparisons failed.
fn compare(folder: &Path, manners: &[Manner], random: &mut Random) -> usize {
    let tree = Arc::new(Tree::new(folder));
    let site = Site::start(&tree, random);
    let origin = site.url("/");
    println!("\n== {}", site.tree().root().display());
    let began = Instant::now();
    let mut walker = Walker::new(&tree, &origin);
    let seeds = walker.seeds();
    let pages = walker.walk(&seeds, Rules::Pages);
    let requisites = walker.walk(&seeds, Rules::Requisites);
    println!(
        "   seeds: {}, URLs that a reader reaches: {}, with requisites: {} ({:.1} s)",
        seeds.len(),
        pages.len(),
        requisites.len(),
        began.elapsed().as_secs_f32()
    );
    let mut failed = 0;
    let mut tell = |what: &str, wrong: Vec<String>, began: Instant| {
        let took = began.elapsed().as_secs_f32();
        match wrong.is_empty() {
            true => println!("   {what}: the same ({took:.1} s)"),
            false => {
                failed += 1;
                println!("   {what}: DIFFERS ({took:.1} s)");
                for part in wrong {
                    println!("  {part}");
                }
            }
        }
    };
    for manner in manners {
        let expected = match manner.requisites {
            true => &requisites,
            false => &pages,
        };
        let began = Instant::now();
        site.begin(manner.latency_ms);
        let crawl = crawl::crawl(&site, &seeds, expected.len(), *manner, random);
        let wrong = judge::judge(&site, *manner, &crawl, expected);
        let mut what = manner.to_string();
        if crawl.kills > 0 {
            what.push_str(&format!(
                " (kills: {}, requests repeated: {})",
                crawl.kills,
                judge::repeated(&site)
            ));
        }
        tell(&what, wrong, began);
    }
    if wget::is_installed() {
        let began = Instant::now();
        site.begin(0);
        // From the root alone: it walks through everything once more for each further seed.
        wget::fetch(&site);
        let expected = walker.walk(&seeds[..1], Rules::Wget);
        let what = format!("wget, {} URLs", site.asked().len());
        let wrong = judge::judge_wget(&tree, &site.asked(), &expected);
        tell(&what, wrong, began);
    } else {
        println!("   NOT COMPARED with wget, which is not installed");
    }
    failed
}
