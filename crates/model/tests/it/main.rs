//! Events as bytes: what was written once stays readable, and a change of the encoding does not go unnoticed.
#![allow(clippy::unwrap_used, reason = "everything here is a test")]

use std::path::Path;
use std::time::Duration;

use orbweaver_model::event::codec::{CodecError, VERSION, decode, encode};
use orbweaver_model::{
    Archived, CapturePlace, ChangeRate, Claimed, CrawlUrl, Epoch, Event, HostSetting, KeySeed,
    Link, LinkKind, NewLink, Outcome, OutcomeClass, RecrawlBounds, Report, Revisit, RobotsRecord,
    Rules, Spent, Timestamp, UrlKey,
};

/// A batch of version 1 as it was written when version 1 was new. It is never written again.
const FIXTURE: &[u8] = include_bytes!("../fixtures/events-1.bin");

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn key(n: u64) -> UrlKey {
    UrlKey {
        host: 0x0102_0304_0506_0708,
        url: n,
    }
}

fn link(path: &str, refused: Option<Outcome>) -> NewLink {
    let link = Link {
        url: CrawlUrl::from_canonical(&format!("https://example.org{path}")).unwrap(),
        kind: LinkKind::A,
        depth: 2,
        priority: 16,
        via: Some(key(1)),
        chain: vec![key(2), key(3)],
    };
    NewLink { link, refused }
}

fn report() -> Report {
    Report {
        outcome: Outcome::because(OutcomeClass::HttpError, "not found"),
        status: Some(404),
        ip: Some("2001:db8::7".parse().unwrap()),
        bytes: 70_000,
        millis: 250,
        at: at(1_700_000_000_123),
        redirect: Some("https://example.org/elsewhere".into()),
    }
}

fn revisit() -> Revisit {
    Revisit {
        visits: 3,
        rate: ChangeRate::default(),
        seen: at(5),
        captured: at(6),
        digest: 7,
        length: Some(8),
        etag: Some("\"tag\"".into()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()),
        due: Some(at(9)),
    }
}

/// One of each, some in more than one form.
fn one_of_each() -> Vec<Event> {
    let archived = Archived {
        place: CapturePlace {
            file: 12,
            offset: 1 << 33,
        },
        position: 99,
    };
    vec![
        Event::Begin {
            seed: KeySeed(0xfeed),
        },
        Event::Epoch {
            epoch: Epoch {
                number: 4,
                node: "node-2".into(),
            },
            at: at(1),
        },
        Event::Links {
            links: vec![
                link("/a", None),
                link("/b", Some(Outcome::out_of_scope("another host"))),
            ],
            at: at(2),
        },
        Event::Claim {
            batch: 5,
            at: at(3),
            urls: vec![Claimed {
                key: key(4),
                rank: 1 << 52,
                attempts: 1,
            }],
        },
        Event::Done {
            key: key(5),
            report: report(),
            links: vec![link("/c", None)],
            revisit: Some(Box::new(revisit())),
            archived: Some(archived),
        },
        Event::Done {
            key: key(6),
            report: Report::unasked(Outcome::plain(OutcomeClass::DeniedRobots), at(4)),
            links: vec![],
            revisit: None,
            archived: None,
        },
        Event::Retry {
            key: key(7),
            report: report(),
            due: at(5),
            archived: Some(archived),
        },
        Event::Return { keys: vec![key(8)] },
        Event::Schedule {
            visits: vec![(key(9), Some(at(6))), (key(10), None)],
        },
        Event::Planned {
            bounds: Some(RecrawlBounds {
                min: Duration::from_secs(60),
                max: Duration::from_millis(86_400_500),
            }),
        },
        Event::Due {
            now: at(7),
            visits: true,
        },
        Event::Promote {
            urls: vec![(key(11), 3)],
        },
        Event::Exhaust {
            host: 12,
            spent: Spent::Bytes,
            outcome: Outcome::because(OutcomeClass::DeniedPolicy, "spent"),
            at: at(8),
        },
        Event::Reconsider {
            keys: vec![key(13)],
        },
        Event::Reconsidered {
            keys: vec![key(14)],
        },
        Event::Reopen {
            keys: vec![key(15)],
            at: at(9),
        },
        Event::Judged {
            rules: Rules {
                hash: 16,
                requisites: true,
            },
        },
        Event::Results { position: 17 },
        Event::Robots {
            origin: "https://example.org".into(),
            robots: RobotsRecord {
                fetched: at(10),
                expires: at(11),
                status: 200,
                body: b"User-agent: *\nDisallow: /x\n".to_vec(),
            },
        },
        Event::RobotsAsked { requests: 18 },
        Event::Host {
            host: 19,
            not_before: at(12),
        },
        Event::Setting {
            host: 20,
            setting: HostSetting::Gap(Some(Duration::from_millis(1500))),
            at: at(13),
        },
        Event::Setting {
            host: 20,
            setting: HostSetting::Blocked(true),
            at: at(14),
        },
    ]
}

/// The kinds of events there are: a new one does not compile here before it is counted, and listed above.
fn kind(event: &Event) -> usize {
    match event {
        Event::Begin { .. } => 0,
        Event::Epoch { .. } => 1,
        Event::Links { .. } => 2,
        Event::Claim { .. } => 3,
        Event::Done { .. } => 4,
        Event::Retry { .. } => 5,
        Event::Return { .. } => 6,
        Event::Schedule { .. } => 7,
        Event::Planned { .. } => 8,
        Event::Due { .. } => 9,
        Event::Promote { .. } => 10,
        Event::Exhaust { .. } => 11,
        Event::Reconsider { .. } => 12,
        Event::Reconsidered { .. } => 13,
        Event::Reopen { .. } => 14,
        Event::Judged { .. } => 15,
        Event::Results { .. } => 16,
        Event::Robots { .. } => 17,
        Event::RobotsAsked { .. } => 18,
        Event::Host { .. } => 19,
        Event::Setting { .. } => 20,
    }
}
const KINDS: usize = 21;

#[test]
fn every_kind_of_event_is_in_the_batch() {
    let mut kinds: Vec<_> = one_of_each().iter().map(kind).collect();
    kinds.dedup();
    assert_eq!(kinds, (0..KINDS).collect::<Vec<_>>());
}

/// What version 1 has written is read for ever.
#[test]
fn a_batch_of_version_1_is_read() {
    assert_eq!(FIXTURE.first(), Some(&1));
    assert_eq!(decode(FIXTURE).unwrap(), one_of_each());
}

/// Whoever changes an event, or the order of events, changes these bytes.
#[test]
fn the_encoding_has_not_changed_without_its_version() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/events-{VERSION}.bin"));
    assert!(
        path.exists(),
        "version {VERSION} of the events has no fixture: write one with encode(&one_of_each()), keep the older ones, and have decode read them"
    );
    let kept = std::fs::read(path).unwrap();
    assert!(
        kept == encode(&one_of_each()),
        "events are written in other bytes than version {VERSION} says: raise codec::VERSION, have decode read the old version too, and follow docs/formats/events.md"
    );
}

#[test]
fn an_unknown_version_is_named() {
    let mut bytes = FIXTURE.to_vec();
    bytes[0] = 9;
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error, CodecError::Version(9));
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn damage_is_named_and_never_panics() {
    for cut in 0..FIXTURE.len() {
        assert!(decode(&FIXTURE[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 8..FIXTURE.len() * 8 {
        let mut flipped = FIXTURE.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = decode(&flipped).unwrap_err();
        assert!(matches!(error, CodecError::Damaged(_)), "bit {bit}");
    }
    let mut longer = FIXTURE.to_vec();
    longer.push(0);
    assert!(decode(&longer).is_err());
}

/// A length that lies costs no memory, even when the checksum agrees with it.
#[test]
fn a_length_that_lies_costs_nothing() {
    let mut bytes = encode(&[]);
    bytes.truncate(5);
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    let sum = (xxhash_rust::xxh3::xxh3_64(&bytes[5..]) as u32).to_le_bytes();
    bytes[1..5].copy_from_slice(&sum);
    assert!(matches!(decode(&bytes), Err(CodecError::Damaged(_))));
}
