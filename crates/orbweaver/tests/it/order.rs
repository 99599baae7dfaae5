//! The set of pages that a crawl fetches follows from the web and the settings, not from the order of answers.
//!
//! A random web of five hosts: pages linked from near and far, as pages and as pictures and frames of others, redirects,
//! a seed that has moved to a host that others link to. An oracle that knows the whole graph says what is to be fetched;
//! the crawl must fetch that, each URL once, however many requests are out at once, however long answers take, whatever
//! fails the first time, and however often it is killed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use orbweaver_testkit::{Random, number};
use rustix::process::Signal;

use crate::script::{Reply, Request, Site};
use crate::support::{Place, run, start, until};

/// Hosts 0 and 1 have the seeds; the seed of 1 has moved to 2; 3 is linked from everywhere and is never in scope; 4 is
/// named as a seed by nobody and is in scope in the later of two runs.
const HOSTS: usize = 5;
const PAGES: usize = 30;

/// A page: host and number.
type Page = (usize, usize);

/// What a page holds.
#[derive(Clone, Debug, Default)]
struct Content {
    /// It redirects there.
    moved: Option<Page>,
    links: Vec<Page>,
    /// As pictures, which may be pages as well.
    shown: Vec<Page>,
}

type Web = BTreeMap<Page, Content>;

fn any_page(random: &mut Random) -> Page {
    (random.index(HOSTS), random.index(PAGES))
}

fn web(seed: u64) -> Web {
    let mut random = Random::new(seed);
    let mut web = Web::new();
    for host in 0..HOSTS {
        for n in 0..PAGES {
            let content = match random.index(8) {
                0 if n > 0 => Content {
                    moved: Some(any_page(&mut random)),
                    ..Content::default()
                },
                _ => Content {
                    moved: None,
                    // A chain through each host, so that the same page is near by one way and far by another.
                    links: (0..random.index(4))
                        .map(|_| any_page(&mut random))
                        .chain([(host, (n + 1) % PAGES)])
                        .collect(),
                    shown: (0..random.index(3))
                        .map(|_| any_page(&mut random))
                        .collect(),
                },
            };
            web.insert((host, n), content);
        }
    }
    web.get_mut(&(1, 0)).unwrap().links.clear();
    web.get_mut(&(1, 0)).unwrap().shown.clear();
    web.get_mut(&(1, 0)).unwrap().moved = Some((2, 0));
    web
}

/// What a crawl fetches.
fn expected(web: &Web, scope: &[usize], depth: usize, requisites: bool) -> BTreeSet<Page> {
    let mut nearest: BTreeMap<Page, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([((0, 0), 0), ((1, 0), 0)]);
    while let Some((page, far)) = queue.pop_front() {
        if !scope.contains(&page.0) || far > depth || nearest.get(&page).is_some_and(|n| *n <= far)
        {
            continue;
        }
        nearest.insert(page, far);
        let content = &web[&page];
        // A redirect is no step, so it goes before all others.
        if let Some(to) = content.moved {
            queue.push_front((to, far));
        }
        queue.extend(content.links.iter().map(|link| (*link, far + 1)));
    }
    let mut fetched: BTreeSet<Page> = nearest.keys().copied().collect();
    if requisites {
        let shown = nearest.keys().flat_map(|page| web[page].shown.clone());
        for mut shown in shown {
            let mut hops = 0;
            while hops <= 10 && fetched.insert(shown) {
                let Some(to) = web[&shown].moved else { break };
                shown = to;
                hops += 1;
            }
            // A page that redirects and was fetched as a page leads a picture on to where a page may not go.
            while let Some(to) = web[&shown].moved.filter(|_| hops <= 10) {
                fetched.insert(to);
                shown = to;
                hops += 1;
            }
        }
    }
    fetched
}

/// The hosts of one run.
struct Sites {
    sites: Vec<Site>,
}

/// Serves the web on 127.`net`.0.x, answers after times and with failures that the seed says.
fn serve(net: u8, web: Web, seed: u64, fails: bool) -> Sites {
    let names: Arc<OnceLock<Vec<String>>> = Arc::default();
    let random = Arc::new(Mutex::new(Random::new(seed)));
    let sites: Vec<Site> = (0..HOSTS)
        .map(|host| {
            let (web, names, random) = (web.clone(), Arc::clone(&names), Arc::clone(&random));
            Site::start([net, 0, u8::try_from(host).unwrap() + 1], move |asked| {
                answer(asked, host, &web, &names, &random, fails)
            })
        })
        .collect();
    names
        .set(sites.iter().map(|site| site.url("")).collect())
        .unwrap();
    Sites { sites }
}

fn answer(
    asked: &Request,
    host: usize,
    web: &Web,
    names: &OnceLock<Vec<String>>,
    random: &Mutex<Random>,
    fails: bool,
) -> Option<Reply> {
    let (wait, lot) = {
        let mut random = random.lock().unwrap();
        (random.index(25), random.index(9))
    };
    std::thread::sleep(Duration::from_millis(wait as u64));
    let n: usize = asked.target.strip_prefix("/p")?.parse().ok()?;
    if fails && asked.before == 0 && lot == 0 {
        return Some(Reply::status(500));
    }
    let content = web.get(&(host, n))?;
    let names = names.get()?;
    let url = |(host, n): &Page| format!("{}/p{n}", names[*host]);
    if let Some(to) = &content.moved {
        return Some(Reply::redirect(&url(to)));
    }
    let mut body = String::new();
    for shown in &content.shown {
        write!(body, "<img src=\"{}\">", url(shown)).unwrap();
    }
    for link in &content.links {
        write!(
            body,
            "<a href=\"{}#x\">a</a><a href=\"{}\">b</a>",
            url(link),
            url(link)
        )
        .unwrap();
    }
    write!(body, "{host} {n} <img src=\"{}\">", url(&(host, n))).unwrap();
    Some(Reply::html(body))
}

impl Sites {
    /// What was asked for and how often, failures aside.
    fn asked(&self) -> BTreeMap<Page, usize> {
        let mut asked = BTreeMap::new();
        for (host, site) in self.sites.iter().enumerate() {
            for target in site.pages() {
                let n = target.strip_prefix("/p").and_then(|n| n.parse().ok());
                *asked.entry((host, n.unwrap_or(usize::MAX))).or_default() += 1;
            }
        }
        asked
    }

    fn seeds(&self) -> [String; 2] {
        [self.sites[0].url("/p0"), self.sites[1].url("/p0")]
    }
}

const CONFIG: &str = "[retry]\ndelay_s = 0\nattempts = 5\n";

fn flags(sites: &Sites, place: &Place, once: usize, depth: usize, requisites: bool) -> Vec<String> {
    let config = place.file("order.toml", CONFIG);
    let [one, two] = sites.seeds();
    let (once, depth) = (once.to_string(), depth.to_string());
    let mut more = vec![
        one.as_str(),
        &two,
        "-c",
        &config,
        "--concurrency",
        &once,
        "--per-host",
        &once,
        "--depth",
        &depth,
    ];
    more.extend(requisites.then_some("--requisites"));
    place.crawl(&more)
}

#[test]
fn what_is_fetched_does_not_depend_on_the_order_of_answers() {
    let seed = number("ORBWEAVER_SEED").unwrap_or(1);
    let rounds = number("ORBWEAVER_ROUNDS").unwrap_or(3);
    println!("ORBWEAVER_SEED={seed} ORBWEAVER_ROUNDS={rounds}");
    for round in seed..seed + rounds {
        let web = web(round);
        for (depth, requisites) in [(3, false), (4, true), (9, true)] {
            let expected = expected(&web, &[0, 1, 2], depth, requisites);
            for (once, fails) in [(1, false), (3, true), (16, false), (16, true)] {
                let sites = serve(60, web.clone(), round * 31 + once, fails);
                let place = Place::new();
                let once = usize::try_from(once).unwrap();
                run(flags(&sites, &place, once, depth, requisites)).expect(0);
                let what = format!(
                    "web {round}, depth {depth}, requisites {requisites}, {once} at once, failures {fails}"
                );
                let asked = sites.asked();
                let fetched: BTreeSet<Page> = asked.keys().copied().collect();
                assert_eq!(fetched, expected, "{what}");
                if !fails {
                    let twice: Vec<_> = asked.iter().filter(|(_, n)| **n > 1).collect();
                    assert_eq!(twice, [], "{what}");
                }
                let status = place.status();
                assert!(status.balanced && status.queued == 0, "{what}: {status:?}");
                place.check();
            }
        }
    }
}

#[test]
fn nor_on_kills() {
    let seed = number("ORBWEAVER_SEED").unwrap_or(7);
    println!("ORBWEAVER_SEED={seed}");
    let web = web(seed);
    let expected = expected(&web, &[0, 1, 2], 4, true);
    let sites = serve(61, web, seed, true);
    let place = Place::new();
    let mut random = Random::new(seed);
    loop {
        let before: usize = sites.asked().values().sum();
        let wanted = before + 5 + random.index(30);
        let mut running = start(flags(&sites, &place, 16, 4, true));
        until("requests or the end", || {
            sites.asked().values().sum::<usize>() >= wanted || !running.is_running()
        });
        if !running.is_running() {
            running.wait().expect(0);
            break;
        }
        running.signal(Signal::KILL);
        running.wait();
    }
    let fetched: BTreeSet<Page> = sites.asked().keys().copied().collect();
    assert_eq!(fetched, expected);
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    place.check();
}

/// What an earlier run refused, a later one with a larger scope fetches, and nothing twice.
#[test]
fn a_later_run_with_wider_rules_takes_in_what_was_refused() {
    let web = web(11);
    let sites = serve(62, web.clone(), 5, false);
    let place = Place::new();
    run(flags(&sites, &place, 8, 2, false)).expect(0);
    let first: BTreeSet<Page> = sites.asked().keys().copied().collect();
    assert_eq!(first, expected(&web, &[0, 1, 2], 2, false));
    run(flags(&sites, &place, 8, 5, false)).expect(0);
    let second: BTreeSet<Page> = sites.asked().keys().copied().collect();
    assert_eq!(second, expected(&web, &[0, 1, 2], 5, false));
    run(flags(&sites, &place, 8, 5, true)).expect(0);
    let third: BTreeSet<Page> = sites.asked().keys().copied().collect();
    assert_eq!(third, expected(&web, &[0, 1, 2], 5, true));
    // A seed more: its host is in scope from now on, and its pages count from there.
    let mut more = flags(&sites, &place, 8, 5, true);
    more.push(sites.sites[4].url("/p0"));
    run(more).expect(0);
    let fetched = sites.asked();
    let with_seed = {
        let mut all = expected(&web, &[0, 1, 2, 4], 5, true);
        let mut from_4 = web.clone();
        // The oracle has two seeds; the third comes by a page that links to nothing else.
        from_4.get_mut(&(1, 0)).unwrap().moved = Some((4, 0));
        all.extend(expected(&from_4, &[0, 1, 2, 4], 5, true));
        all
    };
    assert_eq!(fetched.keys().copied().collect::<BTreeSet<_>>(), with_seed);
    assert_eq!(fetched.values().filter(|n| **n > 1).count(), 0);
    place.check();
}
