//! A plain file server: a folder as it lies, on an address of its own, with a log of what it was asked.
//!
//! It knows nothing of crawlers and makes nothing up but what every file server does: types by the names of
//! files, `index.html` or a listing for a folder, a redirect from `dir` to `dir/`. Symbolic links are followed,
//! for Debian's packages have many that lead out of their folder.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use orbweaver_testkit::Random;
use url::Url;

/// What a request is answered with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `text/html` and the like; empty where there is no body.
    pub(crate) media: &'static str,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// The folder behind a server, which can be asked without a socket, too.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn new(root: &Path) -> Self {
        let root = fs::canonicalize(root)
            .unwrap_or_else(|error| panic!("cannot serve {}: {error}", root.display()));
        assert!(root.is_dir(), "{} is no folder", root.display());
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The URLs of all HTML files, in order.
    pub(crate) fn pages(&self, origin: &Url) -> Vec<Url> {
        let mut pages = Vec::new();
        let mut folders = vec![(self.root.clone(), origin.clone())];
        while let Some((folder, url)) = folders.pop() {
            let Ok(here) = fs::canonicalize(&folder) else {
                continue;
            };
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                // A name that is no text has no one spelling in a URL.
                let (Some(name), Ok(place)) = (name.to_str(), fs::canonicalize(&path)) else {
                    continue;
                };
                let mut url = url.clone();
                url.path_segments_mut().unwrap().pop_if_empty().push(name);
                if place.is_file()
                    && matches!(media_of(&path), "text/html" | "application/xhtml+xml")
                {
                    pages.push(url);
                } else if place.is_dir() && !here.starts_with(&place) {
                    folders.push((path, url));
                }
            }
        }
        pages.sort();
        pages
    }

    /// The answer to a request for this target, such as `/library/index.html?x=1`.
    pub(crate) fn answer(&self, target: &str) -> Answer {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        // No tree speaks for a whole host, so what it has under that name is not meant for us.
        if path == "/robots.txt" {
            return missing();
        }
        let Some(file) = self.file(path) else {
            return missing();
        };
        let Ok(found) = fs::metadata(&file) else {
            return missing();
        };
        if found.is_file() {
            return match path.ends_with('/') {
                true => missing(),
                false => page(media_of(&file), fs::read(&file)),
            };
        }
        if !found.is_dir() {
            return missing();
        }
        if !path.ends_with('/') {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            return Answer {
                status: 301,
                location: Some(format!("{path}/{query}")),
                ..Answer::default()
            };
        }
        for index in ["index.html", "index.htm", "index.xhtml"] {
            let index = file.join(index);
            if index.is_file() {
                return page(media_of(&index), fs::read(&index));
            }
        }
        page("text/html", self.listing(&file))
    }

    /// The file that a path names. An empty segment names none, and nothing leads above the root.
    fn file(&self, path: &str) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;

        let mut file = self.root.clone();
        let path = path.strip_prefix('/')?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Some(file);
        }
        for segment in path.split('/') {
            let name = unescape(segment);
            if name.is_empty() || name == b"." || name == b".." {
                return None;
            }
            if name.contains(&b'/') || name.contains(&0) {
                return None;
            }
            file.push(std::ffi::OsStr::from_bytes(&name));
        }
        Some(file)
    }

    /// A page with a link to everything in a folder. What leads back to a folder above is left out: listed, it
    /// would make a tree without end.
    fn listing(&self, dir: &Path) -> std::io::Result<Vec<u8>> {
        use std::os::unix::ffi::OsStrExt as _;

        let here = fs::canonicalize(dir)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(place) = fs::canonicalize(entry.path()) else {
                continue;
            };
            let slash = if place.is_dir() { "/" } else { "" };
            if !here.starts_with(&place) {
                names.push(escape(entry.file_name().as_bytes()) + slash);
            }
        }
        names.sort();
        let mut html = String::from("<!DOCTYPE html>\n<title>Index</title>\n<ul>\n");
        for name in names {
            // `./`, because a colon in a name would make it a scheme.
            html.push_str(&format!("<li><a href=\"./{name}\">{name}</a>\n"));
        }
        Ok((html + "</ul>\n").into_bytes())
    }
}

fn missing() -> Answer {
    Answer {
        status: 404,
        media: "text/plain",
        body: b"not here\n".to_vec(),
        ..Answer::default()
    }
}

fn page(media: &'static str, body: std::io::Result<Vec<u8>>) -> Answer {
    match body {
        Ok(body) => Answer {
            status: 200,
            media,
            body,
            ..Answer::default()
        },
        Err(_) => missing(),
    }
}

/// The type of a file by its name. What follows a known ending may be a language or a charset, as in
/// `index.html.ja.utf8`; a name without any ending that is known is text.
fn media_of(file: &Path) -> &'static str {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut endings = name.rsplit('.').collect::<Vec<_>>();
    // What stands before the first dot is no ending.
    endings.pop();
    for ending in endings {
        let known = match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" => "text/html",
            "xhtml" | "xht" => "application/xhtml+xml",
            "xml" => "application/xml",
            "css" => "text/css",
            "js" | "mjs" => "text/javascript",
            "json" | "map" => "application/json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "ico" => "image/vnd.microsoft.icon",
            "pdf" => "application/pdf",
            "ps" => "application/postscript",
            "gz" | "tgz" => "application/gzip",
            "svgz" | "bz2" | "xz" | "zip" | "jar" | "inv" => "application/octet-stream",
            "woff" => "font/woff",
            "woff2" => "font/woff2",
            "ttf" => "font/ttf",
            "otf" => "font/otf",
            "eot" => "application/vnd.ms-fontobject",
            "mp4" => "video/mp4",
            "webm" => "video/webm",
            "ogg" | "oga" => "audio/ogg",
            "mp3" => "audio/mpeg",
            "wav" => "audio/wav",
            "txt" | "text" | "md" | "rst" => "text/plain",
            _ => continue,
        };
        return known;
    }
    "text/plain"
}

pub(crate) fn unescape(segment: &str) -> Vec<u8> {
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = segment
            .get(at + 1..at + 3)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

fn escape(name: &[u8]) -> String {
    let mut out = String::new();
    for &b in name {
        if b.is_ascii_alphanumeric() || b"-._~+,".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

/// A running server of a tree. Dropped, it stops.
pub(crate) struct Site {
    tree: Arc<Tree>,
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Every target that was asked for, in the order of the requests.
    log: Mutex<Vec<String>>,
    /// A request takes up to so many milliseconds to be answered.
    latency_ms: AtomicU64,
    stop: AtomicBool,
}

impl Site {
    /// Serves a tree on an address that no documentation mentions: pages about servers link to 127.0.0.1.
    pub(crate) fn start(tree: &Arc<Tree>, random: &mut Random) -> Self {
        let mut part = || u8::try_from(2 + random.below(250)).unwrap();
        let ip = Ipv4Addr::new(127, part(), part(), part());
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let site = Self {
            tree: tree.clone(),
            addr: listener.local_addr().unwrap(),
            shared: Arc::default(),
        };
        let (tree, shared) = (tree.clone(), site.shared.clone());
        let seed = random.below(u64::MAX);
        thread::spawn(move || {
            for (number, stream) in (1..).zip(listener.incoming()) {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (tree, shared) = (tree.clone(), shared.clone());
                let random = Random::new(seed ^ number);
                thread::spawn(move || {
                    // A peer that was killed is no failure of the server.
                    let _ = serve(stream, &tree, &shared, random);
                });
            }
        });
        site
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The URL of a target.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr)
    }

    /// Begins a new log, and answers within so many milliseconds from now on.
    pub(crate) fn begin(&self, latency_ms: u64) {
        self.shared.log.lock().unwrap().clear();
        self.shared.latency_ms.store(latency_ms, Ordering::Relaxed);
    }

    /// Notes one more request, as a crawler that fetches twice would make.
    pub(crate) fn ask_again(&self, target: &str) {
        self.shared.log.lock().unwrap().push(target.to_owned());
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.shared.log.lock().unwrap().len()
    }

    /// How often each target was asked for.
    pub(crate) fn asked(&self) -> HashMap<String, usize> {
        let mut times = HashMap::new();
        for target in self.shared.log.lock().unwrap().iter() {
            *times.entry(target.clone()).or_default() += 1;
        }
        times
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.addr);
    }
}

/// No request of a crawler is longer.
const MAX_HEAD: u64 = 64 << 10;

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    tree: &Tree,
    shared: &Shared,
    mut random: Random,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some((method, target, keep)) = request(&mut reader)? {
        shared.log.lock().unwrap().push(target.clone());
        let latency = shared.latency_ms.load(Ordering::Relaxed);
        if latency > 0 {
            thread::sleep(Duration::from_micros(random.below(latency * 1000)));
        }
        let answer = tree.answer(&target);
        let mut head = format!(
            "HTTP/1.1 {} -\r\nContent-Length: {}\r\n",
            answer.status,
            answer.body.len()
        );
        if !answer.media.is_empty() {
            head.push_str(&format!("Content-Type: {}\r\n", answer.media));
        }
        if let Some(location) = &answer.location {
            head.push_str(&format!("Location: {location}\r\n"));
        }
        if !keep {
            head.push_str("Connection: close\r\n");
        }
        let mut message = (head + "\r\n").into_bytes();
        if method != "HEAD" {
            message.extend(answer.body);
        }
        writer.write_all(&message)?;
        if !keep {
            break;
        }
    }
    Ok(())
}

/// Method and target of the next request, and whether the connection lives on; none when the peer has ended it.
fn request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, String, bool)>> {
    let mut first = None;
    let mut keep = true;
    let mut head = reader.take(MAX_HEAD);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            break;
        }
        if first.is_none() {
            first = Some(line.to_owned());
        } else if line.eq_ignore_ascii_case("connection: close") {
            keep = false;
        }
    }
    let mut words = first.iter().flat_map(|line| line.split(' '));
    Ok(match (words.next(), words.next()) {
        (Some(method), Some(target)) => Some((method.to_owned(), target.to_owned(), keep)),
        _ => None,
    })
}
