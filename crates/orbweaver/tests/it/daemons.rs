//! The three daemons as three processes: what they fetch and keep is what a crawl fetches and keeps, whichever of
//! them is killed, and the two seams hold against peers that know only the documents.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};
use orbweaver_testkit::{Random, number, seed};
use rustix::process::Signal;

use crate::support::{Place, Running, run, sim, start, until};

/// A free port of loopback.
fn port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// Three processes on one configuration, around a simulated web.
struct Trio {
    place: Place,
    /// The files of store and spider, and of the URL server.
    configs: [String; 2],
    seed: String,
}

impl Trio {
    fn new(web: &SimWeb, more: &str) -> Self {
        let times = "Timeout_Update = 200\nTimeout_Spider_Status = 2\nReq_Host_Per_Sec = 0";
        let both = format!("{times}\n{more}");
        Self::apart(web, [&both, &both])
    }

    /// With other settings for the spider and for the URL server.
    fn apart(web: &SimWeb, more: [&str; 2]) -> Self {
        let place = Place::new();
        let (index, store) = (place.beside("index"), place.beside("store"));
        let ports = [port(), port(), port()];
        let configs = [0, 1].map(|which| {
            let text = format!(
                "Spider_Port = {}\nStore_Host = \"127.0.0.1\"\nStore_Port = {}\nResults_Port = {}\n\
                 Contact = \"mailto:test@example.org\"\n\
                 Allow_Net = [\"127.0.0.0/8\"]\nDir = {store:?}\nIndex_Dir = {index:?}\n{}\n\
                 [crawl.scope]\nkind = \"any\"\n[crawl.retry]\ndelay_s = 0.01\n",
                ports[0], ports[1], ports[2], more[which],
            );
            place.file(&format!("daemons-{which}.toml"), text)
        });
        Self {
            place,
            configs,
            seed: web.seeds()[0].clone(),
        }
    }

    fn start(&self, verb: &str) -> Running {
        let config = &self.configs[usize::from(verb == "urlserver")];
        let mut args = vec![verb, "-c", config];
        if verb == "urlserver" {
            args.push(&self.seed);
        }
        start(args)
    }

    fn index(&self) -> String {
        self.place.beside("index").to_str().unwrap().to_owned()
    }

    fn store(&self) -> String {
        self.place.beside("store").to_str().unwrap().to_owned()
    }

    /// Queued URLs, once the URL server runs and answers.
    fn queued(&self) -> Option<u64> {
        // Each look is a process of its own, which must not slow down what it looks at.
        std::thread::sleep(Duration::from_millis(100));
        let said = run(["status", &self.index(), "--json"]);
        let status: serde_json::Value = serde_json::from_str(said.out().trim()).ok()?;
        assert_eq!(status["balanced"], true, "{status}");
        let known = status["accepted"].as_u64().filter(|known| *known > 1)?;
        assert!(known > 0);
        status["queued"].as_u64()
    }

    /// Class by URL.
    fn classes(dir: &str) -> BTreeMap<String, String> {
        let listed = run(["outcomes", dir]).expect(0).out();
        let pair = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (text("url"), text("class"))
        };
        listed.lines().map(pair).collect()
    }
}

fn end(running: Running) {
    running.signal(Signal::TERM);
    running.wait().expect(3);
}

fn web() -> SimWeb {
    sim(SimConfig {
        hosts: 12,
        pages: 25,
        page_bytes: 6000,
        ..SimConfig::default()
    })
}

/// What a crawl of the same web makes of it, and the bodies it keeps.
fn crawled(web: &SimWeb) -> (Place, BTreeMap<String, String>) {
    let place = Place::new();
    let seed = web.seeds()[0].clone();
    run(place.crawl(&[&seed, "--scope", "any"])).expect(0);
    let classes = Trio::classes(place.arg());
    (place, classes)
}

/// The documents of an archive: how often each was captured, and that each is what the other archive has.
fn same_documents(one: &str, other: &str, urls: &BTreeMap<String, String>) {
    for (url, class) in urls {
        if class == "success" {
            let ours = run(["get", one, url]).expect(0).stdout;
            let theirs = run(["get", other, url]).expect(0).stdout;
            assert!(ours == theirs, "{url} differs");
        }
    }
}

fn compare(trio: &Trio, web: &SimWeb) {
    let (crawl, expected) = crawled(web);
    let found = Trio::classes(&trio.index());
    assert_eq!(found, expected);
    // Every thirtieth, for each needs two processes.
    let some = expected.into_iter().step_by(30).collect();
    same_documents(&trio.store(), crawl.arg(), &some);
    run(["check", &trio.store()]).expect(0);
    run(["check", &trio.index()]).expect(0);
}

fn crawls_alike(more: &str) {
    let web = web();
    let trio = Trio::new(&web, more);
    let running = ["store", "spider", "urlserver"].map(|verb| trio.start(verb));
    until("the end of the crawl", || trio.queued() == Some(0));
    let limits = VisitLimits {
        per_host: Some(1),
        per_ip: Some(1),
        ..VisitLimits::default()
    };
    assert_eq!(web.stats().faults(&limits), Vec::<String>::new());
    let [store, spider, urlserver] = running;
    end(urlserver);
    end(spider);
    end(store);
    compare(&trio, &web);
}

#[test]
fn three_daemons_that_push_do_what_a_crawl_does() {
    crawls_alike("Mode = \"push\"");
}

#[test]
fn three_daemons_that_pull_do_what_a_crawl_does() {
    crawls_alike("Mode = \"pull\"\nConcurrency = 16");
}

/// Whatever one of them is set to and the other is not told, every page is fetched.
#[test]
fn any_pair_of_settings_makes_progress() {
    // Places of the spider, orders of the URL server, Timeout_Update in milliseconds, Timeout_Spider_Status in seconds,
    // the orders of one host, and how long a page takes.
    for (mode, places, orders, update, status, window, latency) in [
        ("push", 10, 512, 1000, 2.0, 1, 100),
        ("push", 1, 512, 200, 0.5, 1, 10),
        ("push", 512, 1, 200, 0.4, 1, 10),
        ("push", 3, 512, 1000, 1.0, 4, 50),
        // Sent again before a word is due, and while it is being fetched.
        ("push", 4, 64, 10_000, 0.2, 1, 600),
        ("push", 2, 64, 10_000, 0.1, 2, 150),
        ("pull", 2, 512, 200, 0.5, 1, 10),
        ("pull", 512, 2, 1000, 0.5, 2, 10),
    ] {
        let web = sim(SimConfig {
            hosts: 30,
            pages: 3,
            page_bytes: 2000,
            latency_ms: latency,
            ..SimConfig::default()
        });
        let common = format!("Mode = {mode:?}\nReq_Host_Per_Sec = 0");
        let spider = format!("{common}\nConcurrency = {places}\nTimeout_Update = {update}");
        let urlserver = format!(
            "{common}\nConcurrency = {orders}\nTimeout_Spider_Status = {status}\nReq_Host_Concurrent = {window}"
        );
        let trio = Trio::apart(&web, [&spider, &urlserver]);
        let began = std::time::Instant::now();
        let running = ["store", "spider", "urlserver"].map(|verb| trio.start(verb));
        until("the end of the crawl", || trio.queued() == Some(0));
        let stats = web.stats();
        println!(
            "{mode} {places}/{orders}, {update} ms / {status} s: {} pages, {} again, {:?}",
            stats.fetched,
            stats.duplicates.count,
            began.elapsed()
        );
        let [store, spider, urlserver] = running;
        end(urlserver);
        end(spider);
        end(store);
        // What is sent again joins the fetch that is under way.
        assert!(stats.duplicates.count <= stats.fetched / 10, "{stats:?}");
        let expected = crawled(&web).1;
        assert_eq!(Trio::classes(&trio.index()), expected);
    }
}

/// A spider with three places that knows only the document, and is silent about what it has not read.
#[test]
fn a_spider_with_few_places_is_not_given_more_than_it_can_do() {
    let script = Script::new();
    let place = Place::new();
    let seeds: Vec<String> = (1..=40).map(|n| format!("http://127.77.2.{n}/")).collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let more = "Timeout_Spider_Status = 1";
    let running = alone(&place, &[script.port()], more, &seeds);
    let mut talk = script.accept();
    let mut orders = 0;
    let index = place.beside("index");
    let is_done = || {
        let classes = Trio::classes(index.to_str().unwrap());
        classes.len() == 40 && classes.values().all(|class| class == "success")
    };
    while orders < 80 || !is_done() {
        if talk.is_silent() {
            continue;
        }
        let order = talk.order();
        orders += 1;
        talk.say(&format!("{} WORKING", order[0]));
        talk.say(&format!("{} DONE", order[0]));
        // One after the other, slower than the patience of the URL server with forty.
        std::thread::sleep(Duration::from_millis(60));
    }
    // A robots.txt and a page each, and not every one twice.
    assert!(orders < 160, "{orders}");
    end(running);
}

/// A spider that accepts and hangs up is connected to ever more rarely.
#[test]
fn a_spider_that_hangs_up_is_backed_off_from() {
    let script = Script::new();
    let place = Place::new();
    let running = alone(&place, &[script.port()], "", &["http://127.77.0.9/"]);
    let mut gaps = Vec::new();
    let mut last = std::time::Instant::now();
    for _ in 0..7 {
        drop(script.accept());
        gaps.push(last.elapsed());
        last = std::time::Instant::now();
    }
    // 0.1 s doubled five times, of each at most half less.
    let total: Duration = gaps.iter().skip(1).sum();
    assert!(total >= Duration::from_millis(3000), "{gaps:?}");
    end(running);
}

/// Any one of the three is killed, again and again, at moments that the run itself determines.
#[test]
fn any_daemon_can_be_killed() {
    let kills = number("ORBWEAVER_KILLS").map_or(30, |kills| kills.min(200));
    let web = sim(SimConfig {
        hosts: 12,
        pages: u32::try_from(kills * 2).unwrap().max(25),
        page_bytes: 3000,
        latency_ms: 20,
        ..SimConfig::default()
    });
    let trio = Trio::new(&web, "Mode = \"push\"");
    let verbs = ["store", "spider", "urlserver"];
    let mut running = verbs.map(|verb| Some(trio.start(verb)));
    let mut random = Random::new(seed("ORBWEAVER_SEED"));
    let expected = web.stats().expected;
    for kill in 0..kills {
        let goal = expected * (kill + 1) / (kills + 2);
        until("some more pages", || web.stats().fetched >= goal);
        let victim = random.index(3);
        let slot = &mut running[victim];
        let hit = slot.take().unwrap();
        hit.signal(Signal::KILL);
        hit.wait();
        *slot = Some(trio.start(verbs[victim]));
    }
    until("the end of the crawl", || trio.queued() == Some(0));
    let again = web.stats().duplicates.count;
    let [store, spider, urlserver] = running.map(Option::unwrap);
    end(urlserver);
    end(spider);
    end(store);
    compare(&trio, &web);
    // Twelve hosts with a window of one: no more than twelve were in flight at any kill.
    assert!(
        again <= kills * 12,
        "{again} fetched again in {kills} kills"
    );
}

/// A spider that knows only the document: it reads orders line by line and says what it is told to.
struct Script {
    listener: TcpListener,
}

struct Talk {
    lines: BufReader<TcpStream>,
    stream: TcpStream,
}

impl Script {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { listener }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn accept(&self) -> Talk {
        let (stream, _) = self.listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Talk { lines, stream }
    }
}

impl Talk {
    /// The fields of the next order.
    fn order(&mut self) -> Vec<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        assert!(read > 0 && line.ends_with('\n'), "the connection ended");
        line.trim_end().split(' ').map(str::to_owned).collect()
    }

    fn say(&mut self, line: &str) {
        self.stream.write_all(line.as_bytes()).unwrap();
        self.stream.write_all(b"\n").unwrap();
    }

    /// Whether an order comes within a moment.
    fn is_silent(&mut self) -> bool {
        let moment = Some(Duration::from_millis(300));
        self.stream.set_read_timeout(moment).unwrap();
        let silent = self.lines.fill_buf().is_err();
        self.stream.set_read_timeout(None).unwrap();
        silent
    }
}

/// A URL server that knows of no store, so that DONE is all it hears.
fn alone(place: &Place, ports: &[u16], more: &str, seeds: &[&str]) -> Running {
    let spiders: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let index = place.beside("index");
    let text = format!(
        "Spiders = {spiders:?}\nReq_Host_Per_Sec = 0\nAllow_Net = [\"127.0.0.0/8\"]\nIndex_Dir = {index:?}\n{more}\n",
    );
    let config = place.file("urlserver.toml", text);
    start([&["urlserver", "-c", &config], seeds].concat())
}

#[test]
fn a_url_server_speaks_to_a_spider_that_knows_only_the_document() {
    let script = Script::new();
    let place = Place::new();
    let seeds = [
        "http://127.77.0.1/a",
        "http://127.77.0.2/b",
        "http://127.77.0.1/c",
    ];
    let running = alone(
        &place,
        &[script.port()],
        "Timeout_Spider_Status = 600",
        &seeds,
    );
    let mut talk = script.accept();
    // Lines that say nothing are dropped, whatever they are.
    for noise in [
        "",
        "HELLO",
        "7 FINE",
        "DONE",
        "DONE 999999",
        "GET x",
        "\u{1}\u{2}\r",
    ] {
        talk.say(noise);
    }
    let mut pages = Vec::new();
    let mut robots = 0;
    while pages.len() < seeds.len() {
        let order = talk.order();
        let [id, doc, ip, url] = order.as_slice() else {
            panic!("{order:?}");
        };
        assert!(
            id.parse::<u64>().is_ok() && url.contains(ip.as_str()),
            "{order:?}"
        );
        talk.say(&format!("{id} WORKING"));
        match doc.parse::<u32>().unwrap() {
            0 => {
                assert!(url.ends_with("/robots.txt"), "{order:?}");
                robots += 1;
                talk.say(&format!("{id} DONE"));
            }
            // The other order of words is as good.
            _ => {
                pages.push(url.clone());
                talk.say(&format!("DONE {id}\r"));
            }
        }
    }
    pages.sort_unstable();
    assert_eq!(
        pages,
        [
            "http://127.77.0.1/a",
            "http://127.77.0.1/c",
            "http://127.77.0.2/b"
        ]
    );
    assert_eq!(robots, 2);
    let index = place.beside("index");
    let index = index.to_str().unwrap();
    until("three documents that are done", || {
        Trio::classes(index)
            .values()
            .filter(|class| *class == "success")
            .count()
            == 3
    });
    end(running);
    // What it has heard of is in an archive that it knows nothing of.
    run(["check", index]).expect(0);
}

/// A spider that takes a TRANS_ID for a word and gives it back as it came, and one that takes it for a number.
#[test]
fn a_spider_that_knows_only_the_document_hears_nothing_else() {
    for (is_number, mode, fields) in [(false, "push", 4), (true, "push", 4), (false, "pull", 5)] {
        let script = Script::new();
        let place = Place::new();
        let more = format!("Mode = {mode:?}\nTimeout_Spider_Status = 600");
        let seeds: Vec<String> = (1..=4).map(|n| format!("http://127.77.3.{n}/")).collect();
        let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
        let running = alone(&place, &[script.port()], &more, &seeds);
        let mut talk = script.accept();
        if mode == "pull" {
            talk.say("GET 100");
        }
        let first = talk.order();
        // The offer: the same number.
        assert_eq!((first.len(), first[0].len()), (fields, 24), "{first:?}");
        let say = |talk: &mut Talk, id: &str| {
            let id = match is_number {
                true => id.parse::<u64>().unwrap().to_string(),
                false => id.to_owned(),
            };
            match mode {
                "push" => talk.say(&format!("{id} WORKING\n{id} DONE")),
                _ => talk.say(&format!("WORKING {id}\nDONE {id}")),
            }
        };
        say(&mut talk, &first[0]);
        // A robots.txt and a page of each; who has answered is not offered again.
        let mut plain = 0;
        for _ in 1..8 {
            let order = talk.order();
            assert_eq!(order.len(), fields, "{order:?}");
            assert!(order.last().unwrap().starts_with("http://127.77.3."));
            plain += usize::from(!order[0].starts_with('0'));
            say(&mut talk, &order[0]);
        }
        assert!(plain >= 4, "{plain}");
        assert!(talk.is_silent());
        end(running);
    }
}

#[test]
fn an_order_of_which_nothing_is_heard_is_sent_again() {
    let script = Script::new();
    let place = Place::new();
    let more = "Timeout_Spider_Status = 0.3";
    let running = alone(&place, &[script.port()], more, &["http://127.77.0.3/"]);
    let mut talk = script.accept();
    let first = talk.order();
    let again = talk.order();
    assert_eq!(first[1..], again[1..]);
    assert_ne!(first[0], again[0], "a name is not used twice");
    // The late answer to the first is harmless, the answer to the second counts.
    talk.say(&format!("{} DONE", first[0]));
    talk.say(&format!("{} DONE", again[0]));
    let page = talk.order();
    assert_eq!(page[3], "http://127.77.0.3/");
    // A connection that is gone brings every pending order again.
    drop(talk);
    let mut talk = script.accept();
    let page_again = talk.order();
    assert_eq!(page[1..], page_again[1..]);
    assert_ne!(page[0], page_again[0]);
    // And so does one that is closed for a line without end.
    let long = "x".repeat(1 << 20);
    let _ = talk.stream.write_all(long.as_bytes());
    let mut talk = script.accept();
    let once_more = talk.order();
    talk.say(&format!("{} DONE", once_more[0]));
    let index = place.beside("index");
    until("a document that is done", || {
        Trio::classes(index.to_str().unwrap())
            .values()
            .any(|class| class == "success")
    });
    end(running);
}

#[test]
fn a_spider_that_pulls_gets_what_it_asked_for_and_five_fields() {
    let script = Script::new();
    let place = Place::new();
    let seeds = [
        "http://127.77.0.4/",
        "http://127.77.0.5/",
        "http://127.77.0.6/",
    ];
    let more = "Mode = \"pull\"\nTimeout_Spider_Status = 600";
    let running = alone(&place, &[script.port()], more, &seeds);
    let mut talk = script.accept();
    assert!(talk.is_silent(), "an order that nobody asked for");
    talk.say("GET 2");
    for _ in 0..2 {
        let order = talk.order();
        assert_eq!(order.len(), 5, "{order:?}");
        assert!(
            order[4].starts_with(&format!("http://{}/", order[3])),
            "{order:?}"
        );
    }
    assert!(talk.is_silent(), "more orders than were asked for");
    talk.say("GET 1");
    assert_eq!(talk.order().len(), 5);
    end(running);
}

#[test]
fn the_orders_of_a_dead_spider_go_to_the_other() {
    let (one, other) = (Script::new(), Script::new());
    let place = Place::new();
    let seeds: Vec<String> = (1..=6).map(|n| format!("http://127.77.1.{n}/")).collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let more = "Mode = \"pull\"\nTimeout_Spider_Status = 600";
    let running = alone(&place, &[one.port(), other.port()], more, &seeds);
    let (mut first, mut second) = (one.accept(), other.accept());
    // Each has three of the six robots.txt.
    let three = |talk: &mut Talk| -> Vec<String> {
        talk.say("GET 3");
        (0..3).map(|_| talk.order()[4].clone()).collect()
    };
    let mut lost = three(&mut first);
    let kept = three(&mut second);
    assert!(lost.iter().all(|url| !kept.contains(url)));
    drop(first);
    drop(one);
    let mut again = three(&mut second);
    lost.sort_unstable();
    again.sort_unstable();
    assert_eq!(again, lost);
    end(running);
}
