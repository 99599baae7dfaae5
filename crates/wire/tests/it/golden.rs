//! Golden files: the bytes are the protocol, whatever the code becomes.

use bytes::Bytes;
use orbweaver_model::{
    Candidate, CrawlUrl, KeySeed, LinkKind, Order, OutcomeClass, Subject, TransId, Truncation,
};
use orbweaver_wire::line::{read_order, trans_of, write_order};
use orbweaver_wire::{
    Answer, Answers, Data, Decoded, Dialect, Entries, FromSpider, HttpCode, Lines, Record, Records,
    Verdict,
};

/// The bytes of a hex file; lines that begin with # are words.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let bytes = lines.flat_map(str::split_whitespace);
    bytes
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

fn record(doc_id: u32, outcome: OutcomeClass, url: &str) -> Record {
    Record {
        doc_id,
        success: true,
        outcome,
        cut: None,
        http: HttpCode::of(Some(200)),
        kind: Data::Message,
        millis: 137,
        url: url.into(),
        new_url: String::new(),
        data: Bytes::new(),
    }
}

fn the_cut_one() -> Record {
    Record {
        cut: Some(Truncation::Length),
        kind: Data::Body,
        millis: 30_000,
        data: Bytes::from_static(b"part of it"),
        ..record(44, OutcomeClass::Truncated, "http://example.org/long")
    }
}

fn all() -> Vec<(&'static str, Record)> {
    vec![
        (
            include_str!("../golden/record-page.hex"),
            Record {
                data: Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
                ..record(42, OutcomeClass::Success, "http://example.org/")
            },
        ),
        (
            include_str!("../golden/record-redirect.hex"),
            Record {
                success: false,
                http: HttpCode::of(Some(301)),
                millis: 20,
                new_url: "http://example.org/new".into(),
                data: Bytes::from_static(b"HTTP/1.1 301 Moved\r\nLocation: /new\r\n\r\n"),
                ..record(43, OutcomeClass::RedirectFollowed, "http://example.org/old")
            },
        ),
        (include_str!("../golden/record-cut.hex"), the_cut_one()),
        (
            include_str!("../golden/record-failure.hex"),
            Record {
                success: false,
                http: HttpCode::NONE,
                kind: Data::Body,
                millis: 5001,
                ..record(
                    0,
                    OutcomeClass::FailedDns,
                    "http://nowhere.example/robots.txt",
                )
            },
        ),
    ]
}

#[test]
fn records_are_written_and_read_as_in_the_files() {
    for (text, record) in all() {
        let bytes = hex(text);
        assert_eq!(record.encode().unwrap(), bytes);
        let mut records = Records::new(1 << 20);
        records.feed(&bytes);
        assert_eq!(records.next(), Some(Decoded::Record(record)));
        assert!(!records.is_amid());
    }
}

#[test]
fn answers_are_written_and_read_as_in_the_file() {
    let bytes = hex(include_str!("../golden/answers.hex"));
    let wanted: Vec<Answer> = [42, 43, 44, 0]
        .into_iter()
        .zip(Verdict::ALL)
        .map(|(doc_id, verdict)| Answer { doc_id, verdict })
        .collect();
    let written: Vec<u8> = wanted.iter().flat_map(|answer| answer.encode()).collect();
    assert_eq!(written, bytes);
    let mut answers = Answers::new();
    answers.feed(&bytes);
    for answer in wanted {
        assert_eq!(answers.next(), Some(Ok(answer)));
    }
    answers.feed(&[0, 0, 0, 1, 4]);
    assert_eq!(answers.next(), Some(Err([0, 0, 0, 1, 4])));
}

#[test]
fn an_entry_is_a_position_and_a_record() {
    let mut entries = Entries::new(1 << 20);
    entries.feed(&hex(include_str!("../golden/entry.hex")));
    assert_eq!(entries.next(), Some((7, Decoded::Record(the_cut_one()))));
    assert!(!entries.is_amid());
}

#[test]
fn orders_are_written_and_read_as_in_the_file() {
    let url = CrawlUrl::from_canonical("http://example.org/").unwrap();
    let order = Order {
        trans: TransId {
            generation: 3,
            slot: 17,
            active: 2,
        },
        ip: "192.0.2.7".parse().unwrap(),
        subject: Subject::Page(Candidate {
            key: url.key(KeySeed(0)),
            doc_id: 42,
            url,
            kind: LinkKind::A,
            depth: 0,
            attempts: 0,
            chain: Vec::new(),
            revisit: None,
        }),
        announce: false,
    };
    let mut written = Vec::new();
    assert!(write_order(&order, Dialect::Push, false, &mut written));
    assert!(write_order(&order, Dialect::Pull, false, &mut written));
    let golden = include_bytes!("../golden/orders.txt");
    assert_eq!(written, golden);
    let mut lines = Lines::new();
    lines.feed(golden);
    for host in [None, Some("example.org")] {
        let read = read_order(lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(trans_of(read.trans), order.trans);
        assert_eq!((read.doc_id, read.ip), (42, order.ip));
        assert_eq!(
            (read.host.as_deref(), &*read.url),
            (host, "http://example.org/")
        );
    }
}

#[test]
fn statuses_are_written_and_read_as_in_the_file() {
    let (working, done) = (
        FromSpider::Working(12_884_971_522),
        FromSpider::Done(12_884_971_522),
    );
    let mut written = Vec::new();
    FromSpider::Get(16).write(Dialect::Pull, false, &mut written);
    for dialect in [Dialect::Push, Dialect::Pull] {
        working.write(dialect, false, &mut written);
        done.write(dialect, false, &mut written);
    }
    let golden = include_bytes!("../golden/statuses.txt");
    assert_eq!(written, golden);
    let mut lines = Lines::new();
    lines.feed(golden);
    for wanted in [FromSpider::Get(16), working, done, working, done] {
        assert_eq!(FromSpider::read(lines.next().unwrap().unwrap()), Ok(wanted));
    }
}
