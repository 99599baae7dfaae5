//! Peers that know only the documents: the bytes and lines are spelled here by hand, and nothing of the
//! wire crate is used. And `inspect wire`, which puts such conversations in words.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::{Place, Running, run, start, start_with};

/// Longer than any answer takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A store that runs.
pub(crate) struct Store {
    pub(crate) running: Running,
    pub(crate) records: SocketAddr,
    pub(crate) results: SocketAddr,
}

/// Starts a store in the place's directory. Ports that were taken before are taken again.
pub(crate) fn store(place: &Place, before: Option<&Store>, more: &str) -> Store {
    let port = |at: Option<SocketAddr>| at.map_or(0, |at| at.port());
    let config = format!(
        "Store_Port = {}\nResults_Port = {}\nDir = {:?}\n{more}",
        port(before.map(|store| store.records)),
        port(before.map(|store| store.results)),
        place.dir(),
    );
    let config = place.file("store.toml", config);
    let running = start(["store", "-c", &config]);
    Store {
        records: listening(&running, "records"),
        results: listening(&running, "results"),
        running,
    }
}

/// A spider that runs.
pub(crate) struct Spider {
    pub(crate) running: Running,
    pub(crate) orders: SocketAddr,
}

/// Starts a spider that brings its results to this port.
pub(crate) fn spider(place: &Place, store: SocketAddr, more: &str) -> Spider {
    let config = format!(
        "Spider_Port = 0\nStore_Port = {}\nAllow_Net = [\"127.0.0.0/8\"]\n{more}",
        store.port()
    );
    let config = place.file("spider.toml", config);
    let running = start(["spider", "-c", &config]);
    Spider {
        orders: listening(&running, "orders"),
        running,
    }
}

/// The address that a daemon says it listens on.
fn listening(running: &Running, what: &str) -> SocketAddr {
    loop {
        let line = running.line().unwrap();
        let said = line.split("listening on ").nth(1);
        if let Some((address, found)) = said.and_then(|rest| rest.split_once(" for ")) {
            assert_eq!(found, what, "{line}");
            return address.parse().unwrap();
        }
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A line protocol on a socket.
pub(crate) struct Talk {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Talk {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let writer = connect(address);
        Self {
            reader: BufReader::new(writer.try_clone().unwrap()),
            writer,
        }
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).unwrap();
        self.writer.write_all(b"\n").unwrap();
    }

    /// The next line; none at the end.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        // A connection that is reset has ended too.
        let read = self.reader.read_line(&mut line);
        match read {
            Ok(1..) => Some(line.trim_end().to_owned()),
            Ok(0) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The next line that is not this one.
    pub(crate) fn hear_except(&mut self, passed_over: &str) -> Option<String> {
        loop {
            let line = self.hear();
            if line.as_deref() != Some(passed_over) {
                return line;
            }
        }
    }

    /// Waits for a line.
    pub(crate) fn wait_for(&mut self, wanted: &str) {
        while self.hear().unwrap() != wanted {}
    }
}

/// A record as the document lays it out: numbers in network byte order, then the three texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) doc_id: u32,
    pub(crate) success: u8,
    pub(crate) outcome: u8,
    pub(crate) http: u8,
    pub(crate) pad: u8,
    pub(crate) millis: u32,
    pub(crate) url: Vec<u8>,
    pub(crate) new_url: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Raw {
    /// A page that was fetched: the whole message in 12 ms.
    pub(crate) fn page(doc_id: u32, url: &str, body: &str) -> Self {
        let length = body.len();
        let message = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Self {
            doc_id,
            success: 1,
            outcome: 1,
            http: 10,
            pad: 1,
            millis: 12,
            url: url.into(),
            new_url: Vec::new(),
            data: message.into(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.doc_id.to_be_bytes().to_vec();
        bytes.extend([self.success, self.outcome, self.http, self.pad]);
        bytes.extend(self.millis.to_be_bytes());
        bytes.extend(u16::try_from(self.url.len()).unwrap().to_be_bytes());
        bytes.extend(u16::try_from(self.new_url.len()).unwrap().to_be_bytes());
        bytes.extend(u32::try_from(self.data.len()).unwrap().to_be_bytes());
        for text in [&self.url, &self.new_url, &self.data] {
            bytes.extend(text);
        }
        bytes
    }

    /// Reads one; none when the other side is gone.
    pub(crate) fn read(stream: &mut impl Read) -> Option<Self> {
        let mut head = [0; 20];
        stream.read_exact(&mut head).ok()?;
        let long = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let short =
            |at: usize| usize::from(u16::from_be_bytes(head[at..at + 2].try_into().unwrap()));
        let mut text = |length: usize| {
            let mut text = vec![0; length];
            stream.read_exact(&mut text).ok().map(|()| text)
        };
        Some(Self {
            doc_id: long(0),
            success: head[4],
            outcome: head[5],
            http: head[6],
            pad: head[7],
            millis: long(8),
            url: text(short(12))?,
            new_url: text(short(14))?,
            data: text(long(16) as usize)?,
        })
    }
}

/// The next answer of a store: number and verdict; none when it is gone.
pub(crate) fn answer(stream: &mut impl Read) -> Option<(u32, u8)> {
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).ok()?;
    Some((u32::from_be_bytes(bytes[..4].try_into().unwrap()), bytes[4]))
}

/// The next `count` results behind a position.
pub(crate) fn follow(address: SocketAddr, position: u64, count: usize) -> Vec<(u64, Raw)> {
    let mut stream = connect(address);
    stream
        .write_all(format!("FOLLOW {position}\n").as_bytes())
        .unwrap();
    (0..count)
        .map(|_| {
            let mut position = [0; 8];
            stream.read_exact(&mut position).unwrap();
            (
                u64::from_be_bytes(position),
                Raw::read(&mut stream).unwrap(),
            )
        })
        .collect()
}

fn inspect(flags: &[&str], input: impl Into<Vec<u8>>) -> Vec<String> {
    let arguments = ["inspect", "wire"].iter().chain(flags);
    let shown = start_with(arguments, input.into()).wait().expect(0).out();
    shown.lines().map(str::to_owned).collect()
}

#[test]
fn a_conversation_of_lines_in_words() {
    let lines = "12884971522 42 192.0.2.7 http://example.org/\n\
                 7 0 ::1 example.org http://example.org/robots.txt\r\n\
                 GET 16\n7 WORKING\nDONE 7\nnonsense\n7 x 192.0.2.7 http://example.org/\n7 DO";
    let shown = inspect(&["--line"], lines);
    let wanted = [
        "0: order 12884971522 (generation 3, slot 17, place 2): document 42 from 192.0.2.7, http://example.org/",
        "45: order 7 (generation 0, slot 0, place 7): robots.txt from ::1, host example.org, http://example.org/robots.txt",
        "96: GET: 16 orders more",
        "103: working on 7",
        "113: done with 7",
        "120: damaged: not a message: \"nonsense\"",
        "129: damaged: DOC_ID is not a number of 32 bits: \"7 x 192.0.2.7 http://example.org/\"",
        "163: damaged: the line has no end: \"7 DO\"",
    ];
    assert_eq!(shown, wanted);
    // It is the protocol of lines that looks like lines.
    assert_eq!(inspect(&[], lines), wanted);
}

#[test]
fn the_extension_in_words() {
    let lines = "000000000000000000000007 42 192.0.2.7 http://a/\n0000000000000000000000000007 WORKING\n\
                 IF 7 HV \"x%20y\" -\nAGREED 1\nSENT 7\nHEAD 7 1 304 12 345 etag=\"x\"\nRECALL 8\nSTOP 8\nSTOPPED 8\nIF 7 ?";
    let shown = inspect(&["--line"], format!("{lines}\n"));
    let words: Vec<&str> = shown
        .iter()
        .map(|it| it.split_once(": ").unwrap().1)
        .collect();
    assert_eq!(
        words,
        [
            "order 7 (generation 0, slot 0, place 7): document 42 from 192.0.2.7, http://a/",
            "working on 7",
            "terms of 7: HEAD, ETag \"\\\"x y\\\"\", Last-Modified none",
            "extension agreed on, version 1",
            "request of 7 written",
            "HEAD of 7: status 304, success",
            "give 8 up unless its request is written",
            "give 8 up",
            "8 given up",
            "damaged: an invalid message of the extension: \"IF 7 ?\"",
        ]
    );
}

#[test]
fn a_conversation_of_records_in_words() {
    let page = Raw::page(42, "http://example.org/", "hello");
    let redirect = Raw {
        success: 0,
        outcome: 5,
        http: 41,
        new_url: b"http://example.org/new".to_vec(),
        data: Vec::new(),
        ..Raw::page(43, "http://example.org/old", "")
    };
    let unknown = Raw {
        outcome: 31,
        ..Raw::page(44, "http://example.org/odd", "x")
    };
    let mut bytes = [page.bytes(), redirect.bytes(), unknown.bytes()].concat();
    let third = page.bytes().len() + redirect.bytes().len();
    let rest = bytes.len();
    bytes.extend(&page.bytes()[..30]);
    let wanted = [
        "0: document 42, success, http 200, 12 ms, http://example.org/, 68 bytes of message"
            .to_owned(),
        format!(
            "{}: document 43, redirect_followed, http 301, 12 ms, http://example.org/old, to http://example.org/new, no data",
            page.bytes().len()
        ),
        format!("{third}: damaged: document 44: the outcome is not in the table"),
        format!("{rest}: damaged: the record breaks off after 30 bytes"),
    ];
    assert_eq!(inspect(&["--store"], bytes.clone()), wanted);
    assert_eq!(inspect(&[], bytes), wanted);
    let answers = [
        0, 0, 0, 42, 0, 0, 0, 0, 43, 1, 0, 0, 0, 44, 2, 0, 0, 0, 0, 3, 0, 0, 0, 7, 9, 1,
    ];
    let shown = inspect(&["--answers"], answers);
    assert_eq!(
        shown,
        [
            "0: document 42: stored",
            "5: document 43: duplicate",
            "10: document 44: refused",
            "15: document 0: retry later",
            "20: damaged: document 7: 9 is no verdict",
            "25: damaged: the answer breaks off after 1 bytes",
        ]
    );
}

#[test]
fn a_stream_of_results_in_words() {
    let mut bytes = 7_u64.to_be_bytes().to_vec();
    bytes.extend(Raw::page(42, "http://example.org/", "hello").bytes());
    bytes.extend([0, 0, 0]);
    let end = bytes.len() - 3;
    let shown = inspect(&["--results"], bytes);
    let wanted = [
        "0: result 7: document 42, success, http 200, 12 ms, http://example.org/, 68 bytes of message".to_owned(),
        format!("{end}: damaged: the result breaks off after 3 bytes"),
    ];
    assert_eq!(shown, wanted);
    assert_eq!(
        inspect(&["--results"], "FOLLOW 0\nHAVE 7\nWANT 8\n"),
        [
            "0: follow from 0",
            "9: have up to 7",
            "16: damaged: neither FOLLOW nor HAVE: \"WANT 8\"",
        ]
    );
}

#[test]
fn only_one_protocol_at_a_time() {
    let refused = run(["inspect", "wire", "--line", "--store", "x"]).expect(2);
    assert!(
        refused.stderr.contains("cannot be used with"),
        "{}",
        refused.stderr
    );
    run(["inspect", "links", "--store", "x"]).expect(2);
}
