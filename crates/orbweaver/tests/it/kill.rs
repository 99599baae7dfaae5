//! A crawl that is killed over and over, with nobody to clean up after it, loses nothing and repeats
//! nothing that had reached its archive.
//!
//! `ORBWEAVER_KILLS` sets how often, `ORBWEAVER_SEED` when; both are printed.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};
use rustix::process::Signal;

use crate::support::{Place, number, run, sim, start, until};

const KILLS: u64 = 30;
const HOSTS: u32 = 40;
/// Requests at once in all, so the most that a kill can find on the way.
const CONCURRENCY: u64 = 16;
/// Requests between two kills, on average, where a kill waits for requests.
const SPACING: u64 = 90;

#[test]
fn killed_at_random_and_resumed_nothing_is_lost_or_repeated() {
    let kills = number("ORBWEAVER_KILLS").unwrap_or(KILLS);
    let seed = number("ORBWEAVER_SEED").unwrap_or_else(from_the_clock);
    println!("ORBWEAVER_KILLS={kills} ORBWEAVER_SEED={seed}");
    let mut dice = Dice(seed);
    let pages = (kills * SPACING / u64::from(HOSTS)).max(40);
    let web = sim(SimConfig {
        seed,
        hosts: HOSTS,
        pages: u32::try_from(pages).unwrap(),
        page_bytes: 3000,
        latency_ms: 2,
        jitter_ms: 20,
        ..SimConfig::default()
    });
    let place = Place::new();
    let command = command(&web, &place);
    let mut spent = 0;
    while spent < kills {
        let mut crawl = start(&command);
        if dice.below(3) == 0 {
            // Any moment of starting, taking over and the first requests.
            std::thread::sleep(Duration::from_millis(dice.below(150)));
        } else {
            let target = web.stats().requests + dice.below(2 * SPACING);
            until("some requests, or the end", || {
                web.stats().requests >= target || !crawl.is_running()
            });
        }
        crawl.signal(Signal::KILL);
        spent += 1;
        let ended = crawl.wait();
        if ended.code.is_some() {
            // It was done before it could be killed, and stays so however often it is run again.
            ended.expect(0);
            break;
        }
        if spent % (kills / 6).max(1) == 0 && web.stats().fetched > 0 {
            is_sound_as_it_lies(&place);
        }
    }
    run(&command).expect(0);
    println!("{spent} kills, then to the end");
    judge(&web, &place, spent);
}

fn command(web: &SimWeb, place: &Place) -> Vec<String> {
    let concurrency = CONCURRENCY.to_string();
    place.crawl(&[
        &web.seeds()[0],
        "--scope",
        "any",
        "--per-host",
        "2",
        "--concurrency",
        &concurrency,
    ])
}

/// Whatever the kill left behind, it can be read, and the ledger balances.
fn is_sound_as_it_lies(place: &Place) {
    let status = place.status();
    assert!(status.balanced && !status.running, "{status:?}");
    place.check();
}

/// The first moments of a crawl's life: a directory that is half made is taken over or made again.
#[test]
fn killed_while_it_begins() {
    let seed = number("ORBWEAVER_SEED").unwrap_or_else(from_the_clock);
    println!("ORBWEAVER_SEED={seed}");
    let mut dice = Dice(seed);
    let web = sim(SimConfig {
        hosts: 2,
        pages: 10,
        ..SimConfig::default()
    });
    for _ in 0..20 {
        web.reset();
        let place = Place::new();
        let command = command(&web, &place);
        let crawl = start(&command);
        std::thread::sleep(Duration::from_micros(dice.below(40_000)));
        crawl.signal(Signal::KILL);
        crawl.wait();
        let asked = run(["status", place.arg()]);
        assert!(
            matches!(asked.code, Some(0 | 4)),
            "{asked:?} is no answer about a crawl that has hardly begun"
        );
        run(&command).expect(0);
        assert_eq!(web.stats().missed.count, 0);
        place.check();
    }
}

fn judge(web: &SimWeb, place: &Place, kills: u64) {
    let mut stats = web.stats();
    println!(
        "{} pages, {} delivered again, {} answers broken off, {} requests for robots.txt",
        stats.expected, stats.duplicates.count, stats.aborted, stats.robots_requests
    );
    let again = std::mem::take(&mut stats.duplicates).count;
    // Complete and polite but for the repetitions, which are judged by themselves.
    assert_eq!(stats.faults(&VisitLimits::default()), Vec::<String>::new());
    // A page that reached the archive is not asked for again: each has exactly one capture. What was
    // delivered more often than that was on its way to the archive at a kill.
    let captures = captures(place);
    let wrong: Vec<(String, usize)> = (web.expected_pages())
        .map(|page| (captures.get(&page).copied().unwrap_or(0), page))
        .filter(|(times, _)| *times != 1)
        .map(|(times, page)| (page, times))
        .take(10)
        .collect();
    assert_eq!(wrong, [], "not captured exactly once");
    assert!(
        again <= kills * CONCURRENCY,
        "{again} pages delivered again after {kills} kills with at most {CONCURRENCY} requests out"
    );
    let robots = stats.robots_requests - u64::from(HOSTS);
    assert!(
        robots <= kills * CONCURRENCY && robots <= again + stats.aborted + kills,
        "robots.txt was asked for {robots} times more than needed"
    );
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    let found = place.check();
    assert_eq!(found["urls"], status.accepted);
}

/// How often each URL is in the archive.
fn captures(place: &Place) -> HashMap<String, usize> {
    let mut captures = HashMap::new();
    for file in std::fs::read_dir(place.dir().join("cdxj")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let json = line.splitn(3, ' ').nth(2).unwrap();
            let fields: serde_json::Value = serde_json::from_str(json).unwrap();
            let url = fields["url"].as_str().unwrap();
            *captures.entry(url.to_owned()).or_default() += 1;
        }
    }
    captures
}

fn from_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos())
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
