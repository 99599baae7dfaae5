//! A crawl that is killed over and over, with nobody to clean up after it, loses nothing and repeats
//! nothing that had reached its archive.
//!
//! `ORBWEAVER_KILLS` sets how often, `ORBWEAVER_SEED` when, `ORBWEAVER_KILL_NAMES` how many names share a tenth
//! as many addresses; all are printed. The large sizes are those of `cargo xtask kill`.

use std::collections::HashMap;
use std::time::Duration;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};
use orbweaver_testkit::{Random, number, seed};
use rustix::process::Signal;

use crate::support::{Place, Running, run, sim, start, start_at, until};

const KILLS: u64 = 30;
const HOSTS: u32 = 40;
/// Requests at once in all, so the most that a kill can find on the way.
const CONCURRENCY: u64 = 16;
/// Requests between two kills, on average, where a kill waits for requests.
const SPACING: u64 = 90;

#[test]
fn killed_at_random_and_resumed_nothing_is_lost_or_repeated() {
    let kills = number("ORBWEAVER_KILLS").unwrap_or(KILLS);
    let seed = seed("ORBWEAVER_SEED");
    println!("ORBWEAVER_KILLS={kills}");
    let mut random = Random::new(seed);
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
    let spent = kill_over_and_over(&web, &place, kills, SPACING, &mut random, |_| {
        start(&command)
    });
    run(&command).expect(0);
    println!("{spent} kills, then to the end");
    judge(&web, &place, spent, CONCURRENCY, &VisitLimits::default());
    asked_once_a_day(&web, spent, CONCURRENCY);
}

/// robots.txt is asked for again only where a kill came between the request and the doc index: a file that was
/// delivered whole is lost with the process that had not noted it yet.
fn asked_once_a_day(web: &SimWeb, kills: u64, out: u64) {
    let stats = web.stats();
    let more = stats.robots_requests - u64::from(web.hosts());
    assert!(
        more <= kills * out,
        "robots.txt was asked for {more} times more than needed in {kills} kills with at most {out} requests out"
    );
}

/// Starts a crawl and kills it, again and again, at moments that are random but `spacing` requests apart on
/// average; how often it lived to be killed.
fn kill_over_and_over(
    web: &SimWeb,
    place: &Place,
    kills: u64,
    spacing: u64,
    random: &mut Random,
    mut start: impl FnMut(&mut Random) -> Running,
) -> u64 {
    for spent in 1..=kills {
        let mut crawl = start(random);
        if random.below(3) == 0 {
            // Any moment of starting, taking over and the first requests.
            std::thread::sleep(Duration::from_millis(random.below(150)));
        } else {
            let target = web.stats().requests + random.below(2 * spacing);
            until("some requests, or the end", || {
                web.stats().requests >= target || !crawl.is_running()
            });
        }
        crawl.signal(Signal::KILL);
        let ended = crawl.wait();
        if ended.code.is_some() {
            // It was done before it could be killed, and stays so however often it is run again.
            ended.expect(0);
            return spent;
        }
        if spent % (kills / 6).max(1) == 0 && web.stats().fetched > 0 {
            is_sound_as_it_lies(place);
        }
    }
    kills
}

/// Names, a tenth as many addresses, and some hosts that fail at first.
fn crowded(seed: u64, names: u32, pages: u32) -> SimConfig {
    SimConfig {
        seed,
        hosts: names,
        ips: (names / 10).max(1),
        pages,
        page_bytes: 2000,
        latency_ms: 2,
        jitter_ms: 20,
        failing_hosts: names / 40,
        ..SimConfig::default()
    }
}

/// Ten requests a second to a name and to an address, one at a time.
fn politely(web: &SimWeb, place: &Place) -> Vec<String> {
    let patient = "[retry]\nattempts = 6\nbusy_attempts = 6\ndelay_s = 0.1\n";
    place.crawl(&[
        &web.seeds()[0],
        "--scope",
        "any",
        "--rate",
        "10",
        "--per-host",
        "1",
        "--per-ip",
        "1",
        "--resolver",
        &web.dns_addr().unwrap().to_string(),
        "-c",
        &place.file("patient.toml", patient),
    ])
}

/// What the servers of `crowded` must have seen, whatever was killed: the gaps as they are set.
const POLITE: VisitLimits = VisitLimits {
    per_host: Some(1),
    per_ip: Some(1),
    host_gap: Some(Duration::from_millis(100)),
    ip_gap: Some(Duration::from_millis(100)),
};

/// No process knows whom the one before it has just asked, and still no server sees two requests too close
/// together, by its name or by the address that it shares with others.
#[test]
fn limits_hold_for_names_and_shared_addresses_across_kills() {
    let kills = number("ORBWEAVER_KILLS").map_or(12, |kills| kills.min(100));
    let (web, spent, out) = politeness_across(kills, |_| 0);
    asked_once_a_day(&web, spent, out);
}

/// The machine's clock is set to and fro by an hour and by ten years while the crawl is down.
#[test]
fn limits_hold_and_nothing_waits_for_years_when_the_clock_is_set_between_kills() {
    const HOUR: i64 = 3600;
    const TEN_YEARS: i64 = 87_660 * HOUR;
    const JUMPS: [i64; 5] = [0, HOUR, -HOUR, TEN_YEARS, -TEN_YEARS];
    let kills = number("ORBWEAVER_KILLS").map_or(10, |kills| kills.min(100));
    politeness_across(kills, |random| JUMPS[random.below(5) as usize]);
}

/// The web, how often a crawl of it was killed, and how many requests can have been out at a kill.
fn politeness_across(kills: u64, clock: impl Fn(&mut Random) -> i64) -> (SimWeb, u64, u64) {
    let names = number("ORBWEAVER_KILL_NAMES").unwrap_or(200);
    let seed = seed("ORBWEAVER_SEED");
    println!("ORBWEAVER_KILLS={kills} ORBWEAVER_KILL_NAMES={names}");
    let mut random = Random::new(seed);
    let web = sim(crowded(seed, u32::try_from(names).unwrap(), 5));
    let place = Place::new();
    let command = politely(&web, &place);
    let spacing = names * 5 / kills.max(1);
    let spent = kill_over_and_over(&web, &place, kills, spacing, &mut random, |random| {
        start_at(&command, clock(random))
    });
    // With the right clock to the end, and at once: what was to wait by another clock has waited.
    run(&command).expect(0);
    println!("{spent} kills, then to the end");
    let out = names / 10;
    judge(&web, &place, spent, out, &POLITE);
    (web, spent, out)
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
    let mut random = Random::new(seed("ORBWEAVER_SEED"));
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
        std::thread::sleep(Duration::from_micros(random.below(40_000)));
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

/// Everything is there once, and no server has seen what it should not; at most `out` requests were out at a kill.
fn judge(web: &SimWeb, place: &Place, kills: u64, out: u64, limits: &VisitLimits) {
    let mut stats = web.stats();
    println!(
        "{} pages, {} delivered again, {} answers broken off, {} requests for robots.txt",
        stats.expected, stats.duplicates.count, stats.aborted, stats.robots_requests
    );
    let again = std::mem::take(&mut stats.duplicates).count;
    // Complete and polite but for the repetitions, which are judged by themselves.
    assert_eq!(stats.faults(limits), Vec::<String>::new());
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
        again <= kills * out,
        "{again} pages delivered again after {kills} kills with at most {out} requests out"
    );
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    let found = place.check();
    assert_eq!(found["urls"], status.accepted);
}

/// How often the page of each URL is in the archive.
fn captures(place: &Place) -> HashMap<String, usize> {
    let mut captures = HashMap::new();
    for file in std::fs::read_dir(place.dir().join("cdxj")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let json = line.splitn(3, ' ').nth(2).unwrap();
            let fields: serde_json::Value = serde_json::from_str(json).unwrap();
            // A host that fails at first has answered, too, and that is kept.
            if fields["status"] != "200" {
                continue;
            }
            let url = fields["url"].as_str().unwrap();
            *captures.entry(url.to_owned()).or_default() += 1;
        }
    }
    captures
}

/// The doc index may be older than the archive by more than one file: files can be small, and a power cut takes
/// the last second of the index. Nothing that is archived is asked for again.
#[test]
fn pages_in_many_finished_files_are_known_again() {
    let site = crate::script::Site::start([90, 14, 1], |request| {
        let number: Option<u32> = request
            .target
            .strip_prefix("/p")
            .and_then(|n| n.parse().ok());
        match (request.target.as_str(), number) {
            ("/", _) => Some(crate::script::Reply::links(
                (0..40).map(|n| format!("/p{n}")),
            )),
            (_, Some(number)) => {
                // Does not compress, so that every few pages fill a file.
                let mut state = u64::from(number) + 1;
                let body: Vec<u8> = std::iter::repeat_with(|| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .take(300 << 10)
                .collect();
                Some(crate::script::Reply::new(200, "image/png", body))
            }
            _ => None,
        }
    });
    let place = Place::new();
    let config = place.file("small.toml", "[store]\nrotate = \"1M\"\n");
    run(place.crawl(&[&site.url("/"), "--config", &config, "--pages", "3"])).expect(0);
    // The index as it was when only a few pages had been reported.
    let (index, older) = (place.dir().join("index"), place.beside("older"));
    copy_all(&index, &older);
    run(place.crawl(&["--config", &config, "--pages", "100"])).expect(0);
    let asked = site.log().len();
    let files = std::fs::read_dir(place.dir().join("warc")).unwrap().count();
    assert!(files > 6, "{files} files");
    std::fs::remove_dir_all(&index).unwrap();
    copy_all(&older, &index);
    run(place.crawl(&["--config", &config, "--pages", "100"])).expect(0);
    let again: Vec<String> = (site.log().into_iter().skip(asked))
        .map(|request| request.target)
        .filter(|target| target != "/robots.txt")
        .collect();
    assert_eq!(again, Vec::<String>::new());
    let status = place.status();
    assert!(
        status.balanced && status.queued == 0 && status.pages == 41,
        "{status:?}"
    );
    place.check();
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
