//! The naive crawler: hyper fetches, lol_html finds the links, url resolves them, a hash set remembers
//! them, a queue per host holds them. It obeys robots.txt and stores nothing.
//!
//! This is what anyone would write in an afternoon, and therefore the yardstick: what a whole crawler costs
//! more than this is the price of what it does beyond. It uses the system's allocator and one thread.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, LOCATION};
use lol_html::{HtmlRewriter, Settings, element};
use tokio::task::JoinSet;
use url::Url;

use crate::client::{self, Connection};
use crate::contest::{CONCURRENCY, PER_HOST};
use crate::raw::{authority, target};
use crate::robots::Rules;

/// Connections kept open in all; the queues of a small web would otherwise keep one per host and place.
const IDLE: usize = 512;

/// Crawls everything that can be reached.
pub(crate) async fn crawl(seeds: Vec<Url>) -> Result<()> {
    let mut crawl = Crawl::default();
    for seed in seeds {
        crawl.meet(seed)?;
    }
    let mut out = JoinSet::new();
    loop {
        while out.len() < CONCURRENCY {
            let Some(job) = crawl.next() else {
                break;
            };
            out.spawn(fetch(job));
        }
        match out.join_next().await {
            Some(ended) => crawl.take(ended??)?,
            None => return Ok(()),
        }
    }
}

#[derive(Default)]
struct Crawl {
    seen: HashSet<String>,
    hosts: Vec<Host>,
    by_authority: HashMap<String, usize>,
    /// Hosts that have work and room for a request, each once.
    ready: VecDeque<usize>,
    idle: usize,
}

struct Host {
    authority: String,
    address: SocketAddr,
    robots: Robots,
    queue: VecDeque<Url>,
    busy: usize,
    idle: Vec<Connection>,
    in_turn: bool,
}

enum Robots {
    Unknown,
    Asked,
    Known(Rules),
}

/// One request to make; the URL is none for a robots.txt.
struct Job {
    host: usize,
    url: Option<Url>,
    authority: String,
    address: SocketAddr,
    connection: Option<Connection>,
}

/// What came of it.
struct Answer {
    host: usize,
    url: Option<Url>,
    connection: Connection,
    status: u16,
    location: Option<String>,
    is_html: bool,
    body: Bytes,
}

impl Crawl {
    /// Queues a URL that is new.
    fn meet(&mut self, url: Url) -> Result<()> {
        if url.scheme() != "http" || self.seen.contains(url.as_str()) {
            return Ok(());
        }
        self.seen.insert(url.as_str().to_owned());
        let number = self.host(&url)?;
        if let Some(host) = self.hosts.get_mut(number) {
            host.queue.push_back(url);
        }
        self.turn(number);
        Ok(())
    }

    fn host(&mut self, url: &Url) -> Result<usize> {
        let authority = authority(url);
        if let Some(number) = self.by_authority.get(&authority) {
            return Ok(*number);
        }
        let found = url.socket_addrs(|| None)?;
        let number = self.hosts.len();
        self.hosts.push(Host {
            authority: authority.clone(),
            address: found.first().copied().context("no address")?,
            robots: Robots::Unknown,
            queue: VecDeque::new(),
            busy: 0,
            idle: Vec::new(),
            in_turn: false,
        });
        self.by_authority.insert(authority, number);
        Ok(number)
    }

    /// Puts a host into the round if it has work and room.
    fn turn(&mut self, number: usize) {
        let Some(host) = self.hosts.get_mut(number) else {
            return;
        };
        let waits = matches!(host.robots, Robots::Asked);
        if !host.in_turn && !host.queue.is_empty() && host.busy < PER_HOST && !waits {
            host.in_turn = true;
            self.ready.push_back(number);
        }
    }

    /// The next request, from the next host in the round.
    fn next(&mut self) -> Option<Job> {
        loop {
            let number = self.ready.pop_front()?;
            let host = self.hosts.get_mut(number)?;
            host.in_turn = false;
            let url = match &host.robots {
                Robots::Unknown => {
                    host.robots = Robots::Asked;
                    None
                }
                Robots::Asked => continue,
                Robots::Known(rules) => {
                    let allowed = std::iter::from_fn(|| host.queue.pop_front())
                        .find(|url| rules.allow(&target(url)));
                    let Some(url) = allowed else {
                        continue;
                    };
                    Some(url)
                }
            };
            host.busy += 1;
            let connection = host.idle.pop();
            self.idle -= usize::from(connection.is_some());
            let job = Job {
                host: number,
                url,
                authority: host.authority.clone(),
                address: host.address,
                connection,
            };
            self.turn(number);
            return Some(job);
        }
    }

    /// Takes in an answer.
    fn take(&mut self, answer: Answer) -> Result<()> {
        let found = match &answer.url {
            Some(url) => links(url, &answer)?,
            None => Vec::new(),
        };
        if let Some(host) = self.hosts.get_mut(answer.host) {
            host.busy -= 1;
            if answer.url.is_none() {
                let text = String::from_utf8_lossy(&answer.body);
                let rules = if answer.status == 200 { &text } else { "" };
                host.robots = Robots::Known(Rules::read(rules));
            }
            if self.idle < IDLE && !host.queue.is_empty() {
                host.idle.push(answer.connection);
                self.idle += 1;
            }
        }
        self.turn(answer.host);
        for url in found {
            self.meet(url)?;
        }
        Ok(())
    }
}

async fn fetch(job: Job) -> Result<Answer> {
    let target = job.url.as_ref().map_or("/robots.txt".into(), target);
    let mut connection = match job.connection {
        Some(connection) if !connection.is_closed() => connection,
        _ => client::connect(job.address).await?,
    };
    let answer = client::get(&mut connection, &job.authority, &target).await?;
    let header = |name| {
        let value = answer.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Ok(Answer {
        host: job.host,
        url: job.url,
        status: answer.status().as_u16(),
        location: header(LOCATION),
        is_html: header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html")),
        connection,
        body: answer.into_body().collect().await?.to_bytes(),
    })
}

/// Where an answer leads: the target of a redirect, or what the page links to.
fn links(url: &Url, answer: &Answer) -> Result<Vec<Url>> {
    if let (300..400, Some(location)) = (answer.status, &answer.location) {
        return Ok(url.join(location).ok().map(normal).into_iter().collect());
    }
    if answer.status != 200 || !answer.is_html {
        return Ok(Vec::new());
    }
    let base = RefCell::new(url.clone());
    let found = RefCell::new(Vec::new());
    let settings = Settings::new()
        .append_element_content_handler(element!("base[href]", |tag| {
            let href = tag.get_attribute("href").unwrap_or_default();
            if let Ok(new) = url.join(&href) {
                base.replace(new);
            }
            Ok(())
        }))
        .append_element_content_handler(element!("a[href]", |tag| {
            let href = tag.get_attribute("href").unwrap_or_default();
            let href = htmlize::unescape_attribute(&href);
            if let Ok(link) = base.borrow().join(&href) {
                found.borrow_mut().push(normal(link));
            }
            Ok(())
        }));
    let mut reader = HtmlRewriter::new(settings, |_: &[u8]| {});
    reader.write(&answer.body)?;
    reader.end()?;
    Ok(found.into_inner())
}

/// Without fragment, and with percent escapes in upper case: two spellings of one page are one page.
fn normal(mut url: Url) -> Url {
    url.set_fragment(None);
    if url.as_str().contains('%') {
        let mut text = String::with_capacity(url.as_str().len());
        let mut digits = 0;
        for c in url.as_str().chars() {
            text.push(if digits > 0 {
                c.to_ascii_uppercase()
            } else {
                c
            });
            digits = if c == '%' { 2 } else { i32::max(digits - 1, 0) };
        }
        return Url::parse(&text).unwrap_or(url);
    }
    url
}
