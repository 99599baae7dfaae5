//! Servers that follow a script: what the simulated web is too well-behaved for.
//!
//! Each has an address of its own in 127.0.0.0/8 and answers by a function from request to reply. It
//! remembers who asked for what, and when.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The lines of the head after the first.
    pub(crate) fields: Vec<String>,
    /// How often the same was asked for before.
    pub(crate) before: usize,
    pub(crate) at: Instant,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    fields: Vec<String>,
    body: Vec<u8>,
    /// Bytes of the body that are sent before the connection ends; all of them when none.
    cut: Option<usize>,
    /// The connection stays open and nothing comes.
    silent: bool,
}

impl Request {
    /// The value of a head field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let pairs = self.fields.iter().filter_map(|line| line.split_once(':'));
        let mut named = pairs.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.trim())
    }
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            fields: vec![format!("Content-Type: {kind}")],
            body: body.into(),
            cut: None,
            silent: false,
        }
    }

    /// A page.
    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    /// A page with links and nothing else.
    pub(crate) fn links<S: AsRef<str>>(hrefs: impl IntoIterator<Item = S>) -> Self {
        let links = hrefs
            .into_iter()
            .map(|href| format!("<a href=\"{}\">x</a>\n", href.as_ref()));
        Self::html(links.collect::<String>())
    }

    pub(crate) fn text(body: &str) -> Self {
        Self::new(200, "text/plain", body)
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::new(status, "text/plain", format!("{status}\n"))
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::status(302).with(&format!("Location: {to}"))
    }

    /// A head field more.
    pub(crate) fn with(mut self, field: &str) -> Self {
        self.fields.push(field.to_owned());
        self
    }

    /// Only so many bytes of the body come.
    pub(crate) fn cut(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// No answer ever.
    pub(crate) fn silence() -> Self {
        Self {
            silent: true,
            ..Self::status(200)
        }
    }
}

/// A server. Its threads end with the process of the tests.
pub(crate) struct Site {
    ip: Ipv4Addr,
    port: u16,
    log: Arc<Mutex<Vec<Request>>>,
}

impl Site {
    /// Serves on 127.`a`.`b`.`c`. What the script does not know is not found.
    pub(crate) fn start(
        [a, b, c]: [u8; 3],
        script: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let ip = Ipv4Addr::new(127, a, b, c);
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (kept, script) = (Arc::clone(&log), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, script) = (Arc::clone(&kept), Arc::clone(&script));
                thread::spawn(move || serve(stream, &log, &*script));
            }
        });
        Self { ip, port, log }
    }

    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// The URL of a target on this site.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}:{}{target}", self.ip, self.port)
    }

    /// Every request so far.
    pub(crate) fn log(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// How often a target was asked for.
    pub(crate) fn asked(&self, target: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter().filter(|seen| seen.target == target).count()
    }

    /// The targets in the order of the requests, robots.txt aside.
    pub(crate) fn pages(&self) -> Vec<String> {
        let log = self.log().into_iter().map(|seen| seen.target);
        log.filter(|target| target != "/robots.txt").collect()
    }

    /// The shortest time between two requests.
    pub(crate) fn shortest_gap(&self) -> Duration {
        let log = self.log();
        let gaps = log.windows(2).map(|two| two[1].at - two[0].at);
        gaps.min().unwrap()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    script: &(impl Fn(&Request) -> Option<Reply> + ?Sized),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim_end().is_empty() {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let mut words = head[0].split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let request = {
            let mut log = log.lock().unwrap();
            let before = log.iter().filter(|seen| seen.target == target).count();
            log.push(Request {
                method,
                target,
                fields: head[1..].to_vec(),
                before,
                at: Instant::now(),
            });
            log.last().unwrap().clone()
        };
        let reply = script(&request).unwrap_or_else(|| Reply::status(404));
        if reply.silent {
            // Until the client goes.
            while reader.fill_buf().is_ok_and(|read| !read.is_empty()) {
                reader.consume(1);
            }
            return;
        }
        let bodiless = request.method == "HEAD" || reply.status == 304;
        if stream.write_all(&message(&reply, bodiless)).is_err() || reply.cut.is_some() {
            return;
        }
    }
}

fn message(reply: &Reply, bodiless: bool) -> Vec<u8> {
    let mut message = format!(
        "HTTP/1.1 {} Scripted\r\nContent-Length: {}\r\n",
        reply.status,
        reply.body.len()
    );
    for field in &reply.fields {
        message.push_str(field);
        message.push_str("\r\n");
    }
    message.push_str("\r\n");
    let mut message = message.into_bytes();
    let whole = if bodiless { 0 } else { reply.body.len() };
    let sent = reply.cut.unwrap_or(whole);
    message.extend_from_slice(&reply.body[..sent]);
    message
}
