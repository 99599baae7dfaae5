//! Who carries orders out: one suite on both forms, the spider of the crawl's own process and a spider that is another
//! process, spoken to by the line protocol. Whatever is promised of an order holds for both.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use orbweaver_simweb::{SimConfig, SimWeb};

use crate::script::{Reply, Site};
use crate::support::{Place, Running, run, sim, start, until};

/// Who fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The process that crawls.
    Here,
    /// A spider beside it, which gets its orders pushed, or asks for them.
    Line(&'static str),
}

const FORMS: [Form; 3] = [Form::Here, Form::Line("push"), Form::Line("pull")];

/// What a crawl is set to: sections of its configuration and their lines, and the time for a fetch in seconds.
struct Setting<'a> {
    sections: &'a [(&'a str, &'a str)],
    timeout_s: u32,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            sections: &[("politeness", "rate = 0")],
            timeout_s: 30,
        }
    }
}

/// A crawl in one of the forms.
struct Rig {
    form: Form,
    place: Place,
    /// Store, spider and URL server; or the crawl.
    running: Vec<Running>,
    seeds: Vec<String>,
}

fn port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

impl Rig {
    fn start(form: Form, seeds: &[String], setting: &Setting<'_>) -> Self {
        let place = Place::new();
        let section = |prefix: &str| -> String {
            let lines = |(name, lines): &(&str, &str)| format!("[{prefix}{name}]\n{lines}\n");
            setting.sections.iter().map(lines).collect()
        };
        let time = setting.timeout_s;
        let limits = format!("total_timeout_s = {time}\nconnect_timeout_s = {time}");
        match form {
            Form::Here => place.file("crawl.toml", format!("{}[limits]\n{limits}\n", section(""))),
            Form::Line(mode) => {
                let (index, store) = (place.beside("index"), place.beside("store"));
                let text = format!(
                    "Mode = {mode:?}\nSpider_Port = {}\nStore_Host = \"127.0.0.1\"\nStore_Port = {}\nResults_Port = {}\n\
                     Contact = \"mailto:test@example.org\"\nAllow_Net = [\"127.0.0.0/8\"]\nDir = {store:?}\n\
                     Index_Dir = {index:?}\nTimeout_Update = 200\nTimeout_Spider_Status = 2\nTimeout_Req = {}\nTimeout_Connect = {}\n{}",
                    port(),
                    port(),
                    port(),
                    time * 1000,
                    time * 1000,
                    section("crawl."),
                );
                place.file("daemons.toml", text)
            }
        };
        let mut rig = Self {
            form,
            place,
            running: Vec::new(),
            seeds: seeds.to_vec(),
        };
        rig.begin();
        rig
    }

    fn begin(&mut self) {
        self.running = match self.form {
            Form::Here => vec![self.launch("crawl")],
            Form::Line(_) => ["store", "spider", "urlserver"]
                .map(|verb| self.launch(verb))
                .into(),
        };
    }

    fn launch(&self, verb: &str) -> Running {
        let seeds: Vec<&str> = self.seeds.iter().map(String::as_str).collect();
        let file = |name: &str| self.place.beside(name).to_str().unwrap().to_owned();
        match verb {
            "crawl" => {
                let config = file("crawl.toml");
                let mut args = vec!["crawl", "-o", self.place.arg(), "-c", &config];
                args.extend(["--allow-net", "127.0.0.0/8", "--progress", "off"]);
                args.extend(["--contact", "mailto:test@example.org"]);
                args.extend(seeds);
                start(args)
            }
            _ => {
                let config = file("daemons.toml");
                let mut args = vec![verb, "-c", &config];
                if verb == "urlserver" {
                    args.extend(seeds);
                }
                start(args)
            }
        }
    }

    /// The directory of the doc index.
    fn index(&self) -> String {
        match self.form {
            Form::Here => self.place.arg().to_owned(),
            Form::Line(_) => self.place.beside("index").to_str().unwrap().to_owned(),
        }
    }

    /// The directory of the archive.
    fn archive(&self) -> String {
        match self.form {
            Form::Here => self.place.arg().to_owned(),
            Form::Line(_) => self.place.beside("store").to_str().unwrap().to_owned(),
        }
    }

    /// Whoever fetches dies at once, and comes back.
    fn kill_the_fetcher(&mut self) {
        let (at, verb) = match self.form {
            Form::Here => (0, "crawl"),
            Form::Line(_) => (1, "spider"),
        };
        let dying = self.running.remove(at);
        dying.signal(Signal::KILL);
        dying.wait();
        let again = self.launch(verb);
        self.running.insert(at, again);
    }

    fn status(&self) -> Option<serde_json::Value> {
        let said = run(["status", &self.index(), "--json"]);
        let status: serde_json::Value = serde_json::from_str(said.out().trim()).ok()?;
        assert_eq!(status["balanced"], true, "{status}");
        Some(status)
    }

    /// Waits until every known URL is finished; a crawl of its own ends by itself.
    fn finish(mut self) -> Finished {
        match self.form {
            Form::Here => {
                self.running.remove(0).wait().expect(0);
            }
            Form::Line(_) => {
                until("the end of the crawl", || {
                    thread::sleep(Duration::from_millis(100));
                    self.status().is_some_and(|status| {
                        status["accepted"].as_u64() > Some(0) && status["queued"] == 0
                    })
                });
            }
        }
        self.stop()
    }

    /// Stops what runs, the URL server first.
    fn stop(mut self) -> Finished {
        while let Some(running) = self.running.pop() {
            running.signal(Signal::INT);
            running.wait().expect(3);
        }
        Finished { rig: self }
    }

    fn why(&self, url: &str) -> String {
        run(["why", &self.index(), url]).out()
    }
}

/// A crawl that has ended, and whose directories can be looked at.
struct Finished {
    rig: Rig,
}

impl Finished {
    /// The class of a URL.
    fn class(&self, url: &str) -> String {
        let listed = run(["outcomes", &self.rig.index()]).expect(0).out();
        let lines =
            (listed.lines()).map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
        let mut found = lines.filter(|line| line["url"] == url);
        let class = found
            .next()
            .map(|line| line["class"].as_str().unwrap().to_owned());
        assert!(found.next().is_none(), "{url} is listed twice");
        class.unwrap_or_else(|| panic!("{url} is not listed: {listed}"))
    }

    fn check(&self) {
        run(["check", &self.rig.index()]).expect(0);
        run(["check", &self.rig.archive()]).expect(0);
        assert!(self.rig.status().is_some());
    }

    fn body(&self, url: &str) -> String {
        let got = run(["get", &self.rig.archive(), url]).expect(0);
        String::from_utf8(got.stdout).unwrap()
    }
}

#[test]
fn every_order_is_answered_once() {
    for (number, form) in (1..).zip(FORMS) {
        let site = Site::start([64, 0, number], |asked| match asked.target.as_str() {
            "/" => Some(Reply::links((0..30).map(|n| format!("/{n}")))),
            "/robots.txt" | "/7" => None,
            "/8" => Some(Reply::redirect("/9")),
            other => Some(Reply::html(format!("page {other}"))),
        });
        let finished = Rig::start(form, &[site.url("/")], &Setting::default()).finish();
        let mut pages = site.pages();
        pages.sort();
        let mut wanted: Vec<String> = (0..30).map(|n| format!("/{n}")).collect();
        wanted.push("/".into());
        wanted.sort();
        assert_eq!(pages, wanted, "{form:?}");
        assert_eq!(site.asked("/robots.txt"), 1, "{form:?}");
        for (target, class) in [
            ("/3", "success"),
            ("/7", "http_error"),
            ("/8", "redirect_followed"),
        ] {
            assert_eq!(finished.class(&site.url(target)), class, "{form:?}");
        }
        finished.check();
        assert_eq!(finished.body(&site.url("/3")), "page /3");
    }
}

#[test]
fn a_server_that_never_answers_costs_its_order_and_no_other() {
    for (number, form) in (1..).zip(FORMS) {
        let site = Site::start([64, 1, number], |asked| match asked.target.as_str() {
            "/" => Some(Reply::links(["/silent", "/fine"])),
            "/silent" => Some(Reply::silence()),
            "/fine" => Some(Reply::html("fine")),
            _ => None,
        });
        let setting = Setting {
            timeout_s: 1,
            sections: &[("politeness", "rate = 0"), ("retry", "delay_s = 0.01")],
        };
        let finished = Rig::start(form, &[site.url("/")], &setting).finish();
        assert_eq!(
            finished.class(&site.url("/silent")),
            "failed_timeout",
            "{form:?}"
        );
        assert_eq!(finished.class(&site.url("/fine")), "success", "{form:?}");
        // Once, and once again as with any failure that may pass.
        assert_eq!(site.asked("/silent"), 2, "{form:?}");
        finished.check();
    }
}

#[test]
fn an_order_that_dies_with_its_fetcher_is_carried_out_by_the_next() {
    for (number, form) in (1..).zip(FORMS) {
        // The first who asks for it gets no answer.
        let site = Site::start([64, 2, number], |asked| match asked.target.as_str() {
            "/" => Some(Reply::links(["/late"])),
            "/late" if asked.before == 0 => Some(Reply::silence()),
            "/late" => Some(Reply::html("at last")),
            _ => None,
        });
        let mut rig = Rig::start(form, &[site.url("/")], &Setting::default());
        until("the page to be asked for", || site.asked("/late") == 1);
        rig.kill_the_fetcher();
        let finished = rig.finish();
        assert_eq!(finished.class(&site.url("/late")), "success", "{form:?}");
        assert_eq!(site.asked("/late"), 2, "{form:?}");
        assert_eq!(site.asked("/"), 1, "{form:?}");
        finished.check();
        assert_eq!(finished.body(&site.url("/late")), "at last");
    }
}

/// Forty hosts that never answer hold sixteen places for an hour each; the others get through because orders are given up.
#[test]
fn orders_are_given_up_for_others() {
    for (number, form) in (1..).zip(FORMS) {
        let silent: Vec<Site> = (1..=40)
            .map(|n| {
                Site::start([65, number, n], |asked| match asked.target.as_str() {
                    "/robots.txt" => None,
                    _ => Some(Reply::silence()),
                })
            })
            .collect();
        let honest: Vec<Site> = (1..=3)
            .map(|n| {
                Site::start([66, number, n], |asked| match asked.target.as_str() {
                    "/robots.txt" => None,
                    "/" => Some(Reply::links((0..8).map(|n| format!("/{n}")))),
                    other => Some(Reply::html(format!("page {other}"))),
                })
            })
            .collect();
        let mut seeds: Vec<String> = silent.iter().map(|site| site.url("/a")).collect();
        seeds.extend(honest.iter().map(|site| site.url("/")));
        let setting = Setting {
            timeout_s: 3600,
            sections: &[("politeness", "rate = 0"), ("fetch", "concurrency = 16")],
        };
        let rig = Rig::start(form, &seeds, &setting);
        until("the pages of the others", || {
            honest.iter().all(|site| site.pages().len() == 9)
        });
        let finished = rig.stop();
        let most = silent.iter().map(|site| site.asked("/a")).max();
        assert!(most <= Some(4), "{form:?} {most:?}");
        finished.check();
    }
}

/// With several requests at once the gap is counted from when each is written, which only whoever writes it knows.
#[test]
fn gaps_are_counted_from_the_request() {
    for (number, form) in (1..).zip(FORMS) {
        let site = Site::start([64, 3, number], |asked| match asked.target.as_str() {
            "/" => Some(Reply::links((0..6).map(|n| format!("/{n}")))),
            "/robots.txt" => None,
            other => {
                // Slower than the gap, so that the window is used.
                thread::sleep(Duration::from_millis(1200));
                Some(Reply::html(other))
            }
        });
        let setting = Setting {
            sections: &[(
                "politeness",
                "rate = 2\nper_host = 4\nip_rate = 2\nper_ip = 4\nslow_factor = 0",
            )],
            ..Setting::default()
        };
        let finished = Rig::start(form, &[site.url("/")], &setting).finish();
        // Half a second, as a busy machine may see it.
        let shortest = site.shortest_gap();
        assert!(
            shortest >= Duration::from_millis(250),
            "{form:?}: {shortest:?}"
        );
        finished.check();
    }
}

/// A page that never changes and one that always does, by their ETags.
fn changing(address: [u8; 3]) -> Site {
    Site::start(address, |asked| {
        let page = |tag: String, body: String| {
            let known = asked.field("If-None-Match") == Some(tag.as_str());
            let reply = match known {
                true => Reply::status(304),
                false => Reply::html(body),
            };
            Some(reply.with(&format!("ETag: {tag}")))
        };
        match asked.target.as_str() {
            "/" => Some(Reply::links(["/steady", "/moving", "/dated"])),
            "/steady" => page("\"a 100% steady one\"".into(), "the same words".repeat(99)),
            "/moving" => page(
                format!("\"{}\"", asked.before),
                format!("look {}", asked.before),
            ),
            "/dated" => {
                let date = "Sun, 06 Nov 1994 08:49:37 GMT";
                let reply = match asked.field("If-Modified-Since") == Some(date) {
                    true => Reply::status(304),
                    false => Reply::html("dated".repeat(99)),
                };
                Some(reply.with(&format!("Last-Modified: {date}")))
            }
            _ => None,
        }
    })
}

const RECRAWL: (&str, &str) = ("recrawl", "on = true\nmin = \"1s\"\nmax = \"60s\"");

#[test]
fn conditions_are_sent_and_a_304_is_no_page() {
    for (number, form) in (1..).zip(FORMS) {
        let site = changing([64, 4, number]);
        let setting = Setting {
            sections: &[("politeness", "rate = 0"), RECRAWL],
            ..Setting::default()
        };
        let rig = Rig::start(form, &[site.url("/")], &setting);
        until("some visits", || {
            site.asked("/moving") >= 6 && site.asked("/steady") >= 3 && site.asked("/dated") >= 3
        });
        let finished = rig.stop();
        for asked in site.log().into_iter().filter(|asked| asked.before > 0) {
            match asked.target.as_str() {
                "/steady" => {
                    let tag = Some("\"a 100% steady one\"");
                    assert_eq!(asked.field("If-None-Match"), tag, "{form:?}");
                }
                "/dated" => assert!(asked.field("If-Modified-Since").is_some(), "{form:?}"),
                _ => {}
            }
        }
        finished.check();
        assert!(
            finished
                .body(&site.url("/steady"))
                .starts_with("the same words")
        );
        let why = finished.rig.why(&site.url("/steady"));
        assert!(why.contains("not modified"), "{form:?}: {why}");
        assert!(finished.body(&site.url("/moving")).starts_with("look"));
    }
}

#[test]
fn head_is_asked_first_where_that_is_wanted() {
    for (number, form) in (1..).zip(FORMS) {
        let site = changing([64, 5, number]);
        let recrawl = format!("{}\nhead_first = true", RECRAWL.1);
        let setting = Setting {
            sections: &[("politeness", "rate = 0"), ("recrawl", &recrawl)],
            ..Setting::default()
        };
        let rig = Rig::start(form, &[site.url("/")], &setting);
        until("looks at both kinds of page", || {
            site.asked("/moving") >= 6 && site.asked("/steady") >= 3
        });
        let finished = rig.stop();
        let of = |page: &str| -> Vec<String> {
            let log = site.log().into_iter().filter(|asked| asked.target == page);
            log.map(|asked| asked.method).collect()
        };
        let steady = of("/steady");
        assert_eq!(steady[0], "GET", "{form:?}");
        assert!(
            steady[1..].iter().all(|method| method == "HEAD"),
            "{form:?}: {steady:?}"
        );
        // Each HEAD that shows a change is followed by the page itself.
        assert_eq!(
            of("/moving")[..5],
            ["GET", "HEAD", "GET", "HEAD", "GET"],
            "{form:?}"
        );
        finished.check();
        assert!(
            finished
                .body(&site.url("/steady"))
                .starts_with("the same words")
        );
    }
}

/// Every second visit to a web that does not change is a 304, whoever makes it; nothing is fetched whole twice.
#[test]
fn a_web_that_does_not_change_is_visited_with_304s() {
    for form in FORMS {
        let web: SimWeb = sim(SimConfig {
            hosts: 4,
            pages: 12,
            page_bytes: 2000,
            ..SimConfig::default()
        });
        let setting = Setting {
            sections: &[
                ("politeness", "rate = 0"),
                ("scope", "kind = \"any\""),
                RECRAWL,
            ],
            ..Setting::default()
        };
        let seeds = [web.seeds()[0].clone()];
        let rig = Rig::start(form, &seeds, &setting);
        let expected = web.stats().expected;
        until("a second visit to each", || {
            web.stats().not_modified >= expected
        });
        let finished = rig.stop();
        let stats = web.stats();
        assert_eq!(
            (stats.fetched, stats.duplicates.count),
            (expected, 0),
            "{form:?}: {stats:?}"
        );
        finished.check();
    }
}

/// A server whose queue of connections is full while it likes: who connects waits, with nothing sent yet.
struct Narrow {
    listener: TcpListener,
    /// What came on each connection of others, once it has ended.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Narrow {
    fn start(ip: Ipv4Addr) -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
        let made = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&made, &std::net::SocketAddrV4::new(ip, 0)).unwrap();
        listen(&made, 0).unwrap();
        Self {
            listener: made.into(),
            heard: Arc::default(),
        }
    }

    fn address(&self) -> std::net::SocketAddr {
        self.listener.local_addr().unwrap()
    }

    fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address())
    }

    /// Answers one request, and before that fills the queue, so that the next connection has to wait.
    fn answer_and_fill(&self, answer: &str) -> Vec<TcpStream> {
        let (mut stream, _) = self.listener.accept().unwrap();
        let request = head(&mut stream);
        assert!(request.starts_with("GET /robots.txt"), "{request}");
        let mut fill = Vec::new();
        let moment = Duration::from_millis(200);
        // Until one does not fit.
        while let Ok(one) = TcpStream::connect_timeout(&self.address(), moment) {
            fill.push(one);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        fill
    }

    /// Empties the queue and serves whoever comes, each on a thread, which listens to the end.
    fn open(&self, fill: Vec<TcpStream>) {
        for _ in &fill {
            drop(self.listener.accept().unwrap());
        }
        drop(fill);
        let (listener, heard) = (self.listener.try_clone().unwrap(), Arc::clone(&self.heard));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                thread::spawn(move || {
                    let mut all = Vec::new();
                    let _ = stream.read_to_end(&mut all);
                    let text = String::from_utf8_lossy(&all).into_owned();
                    heard.lock().unwrap().push(text);
                });
            }
        });
    }
}

fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

/// A host is blocked while the connection to it is being made: it is connected to, and nothing is asked.
#[test]
fn a_host_that_is_blocked_before_the_first_byte_is_not_asked() {
    for (number, form) in (1..).zip(FORMS) {
        let narrow = Narrow::start(Ipv4Addr::new(127, 64, 6, number));
        let page = narrow.url("/page");
        let setting = Setting {
            sections: &[("politeness", "rate = 0"), ("recrawl", "on = true")],
            timeout_s: 120,
        };
        let rig = Rig::start(form, std::slice::from_ref(&page), &setting);
        let fill = narrow
            .answer_and_fill("HTTP/1.1 404 None\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let is_out = || rig.why(&page).contains("with the spider");
        until("the page to be out", is_out);
        let host = narrow.address().ip().to_string();
        run(["ctl", &rig.index(), "block", &host]).expect(0);
        narrow.open(fill);
        until("the order to come back", || !is_out());
        let finished = rig.stop();
        // A spider that is told in time does not even connect.
        until("the connection to end", || {
            form != Form::Here || !narrow.heard.lock().unwrap().is_empty()
        });
        // Not a byte, on any of them.
        let heard = narrow.heard.lock().unwrap().clone();
        assert!(heard.iter().all(String::is_empty), "{form:?}: {heard:?}");
        let status = finished.rig.status().unwrap();
        assert_eq!(status["queued"], 1, "{form:?}: {status}");
        finished.check();
    }
}
