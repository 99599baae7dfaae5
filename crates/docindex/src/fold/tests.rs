//! Tests that the fold comes to the same bytes however its events are grouped into commits.

use std::path::Path;

use proptest::prelude::*;

use orbweaver_model::{
    Archived, CapturePlace, Claimed, CrawlUrl, Epoch, Event, HostSetting, KeySeed, Link, LinkKind,
    NewLink, Outcome, OutcomeClass, RecrawlBounds, Report, Revisit, RobotsRecord, Rules, Spent,
    Timestamp, UrlKey,
};

use crate::record::{QueueRecord, decode};
use crate::{Damaged, IndexOptions, Replica};

const SEED: KeySeed = KeySeed(9);
/// Kinds of steps that `Driver::event` knows.
const KINDS: u8 = 26;

/// A replica whose commits are what the test says.
struct Folded {
    dir: tempfile::TempDir,
    replica: Replica,
    events: u64,
}

impl Folded {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut folded = Self {
            replica: open(dir.path()),
            dir,
            events: 0,
        };
        folded.commit(&[Event::Begin { seed: SEED }]);
        folded
    }

    /// Folds events in one commit.
    fn commit(&mut self, events: &[Event]) {
        self.events += events.len() as u64;
        self.replica.fold(self.events, events).unwrap();
    }

    /// Another process goes on, with what it finds on the disk.
    fn restart(self) -> Self {
        drop(self.replica);
        let replica = open(self.dir.path());
        assert_eq!(replica.applied(), self.events);
        Self { replica, ..self }
    }

    /// Every record of every keyspace.
    fn dump(&self) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        for table in self.replica.store.tables() {
            for row in table.iter() {
                let (key, value) = row.into_inner().unwrap();
                all.push((table.name(), key.to_vec(), value.to_vec()));
            }
        }
        all
    }

    fn findings(&self) -> Vec<crate::check::Finding> {
        let mut found = Vec::new();
        crate::check::check(&self.replica.reader(), &mut |finding| found.push(finding)).unwrap();
        found
    }
}

fn open(dir: &Path) -> Replica {
    let options = IndexOptions {
        memory: 8 << 20,
        ..IndexOptions::default()
    };
    Replica::open(&dir.join("index"), options, Damaged::Refuse).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn url(n: u8) -> CrawlUrl {
    let n = n % 24;
    CrawlUrl::from_canonical(&format!("http://h{}/{n}", n % 3)).unwrap()
}

fn key(n: u8) -> UrlKey {
    url(n).key(SEED)
}

fn archived(n: u8) -> Option<Archived> {
    Some(Archived {
        place: CapturePlace {
            file: u32::from(n),
            offset: 5,
        },
        position: u64::from(n) + 1,
    })
}

/// Makes events that fit what was folded before, as the owner of an index does.
struct Driver {
    folded: Folded,
    now: u64,
}

impl Driver {
    fn link(&self, n: u8, how: u8) -> NewLink {
        let (kind, refused) = match how % 6 {
            0 => (LinkKind::Seed, None),
            1 => (LinkKind::Img, None),
            2 => (
                LinkKind::A,
                Some(Outcome::because(OutcomeClass::DeniedPolicy, "out of scope")),
            ),
            _ => (LinkKind::A, None),
        };
        let link = Link {
            url: url(n),
            kind,
            depth: u16::from(how % 5),
            priority: 16 + how % 3,
            via: Some(key(how)),
            chain: match how % 7 {
                0 => vec![key(how / 7)],
                _ => Vec::new(),
            },
        };
        NewLink { link, refused }
    }

    fn report(&self, class: OutcomeClass, redirect: Option<u8>) -> Report {
        Report {
            outcome: Outcome::plain(class),
            status: Some(200),
            ip: Some([127, 0, 0, 1].into()),
            bytes: 100,
            millis: 3,
            at: at(self.now),
            redirect: redirect.map(|n| url(n).to_string()),
        }
    }

    /// The first URLs in the queue of a host.
    fn waiting(&self, n: u8, most: usize) -> Vec<Claimed> {
        let prefix = key(n).host.to_be_bytes();
        let rows = self.folded.replica.store.queue.prefix(prefix).take(most);
        rows.map(|row| {
            let (place, value) = row.into_inner().unwrap();
            let waiting: QueueRecord = decode("queue", &value).unwrap();
            let place = UrlKey::from_bytes(place.as_ref().try_into().unwrap());
            Claimed {
                key: UrlKey {
                    host: place.host,
                    url: waiting.url_hash,
                },
                rank: place.url,
                attempts: waiting.attempts,
            }
        })
        .collect()
    }

    fn visited(&self, n: u8, due: Option<u64>) -> Option<Box<Revisit>> {
        Some(Box::new(Revisit {
            visits: 1,
            digest: u64::from(n) + 1,
            due: due.map(at),
            ..Revisit::unvisited(at(self.now))
        }))
    }

    fn event(&mut self, kind: u8, a: u8, b: u8, c: u8) -> Event {
        self.now += 7;
        let now = self.now;
        match kind % KINDS {
            // Twice the same URL in one event, and a third that may be known.
            0 => Event::Links {
                links: vec![self.link(a, b), self.link(a, c), self.link(b, c)],
                at: at(now),
            },
            1 => Event::Links {
                links: (0..8).map(|n| self.link(a.wrapping_add(n), 3)).collect(),
                at: at(now),
            },
            2 | 3 => Event::Claim {
                batch: self.folded.replica.last_batch() + 1,
                at: at(now),
                urls: self.waiting(a, 1 + usize::from(b % 4)),
            },
            4 | 5 => Event::Done {
                key: key(a),
                report: self.report(OutcomeClass::Success, None),
                links: vec![self.link(b, c), self.link(b, 4), self.link(c, 5)],
                revisit: None,
                archived: None,
            },
            6 => Event::Done {
                key: key(a),
                report: self.report(OutcomeClass::RedirectFollowed, Some(b)),
                links: vec![NewLink {
                    link: Link {
                        kind: LinkKind::Redirect,
                        chain: vec![key(a)],
                        ..self.link(b, 3).link
                    },
                    refused: None,
                }],
                revisit: None,
                archived: None,
            },
            7 => Event::Done {
                key: key(a),
                report: self.report(OutcomeClass::RedirectRefused, Some(b)),
                links: vec![],
                revisit: None,
                archived: None,
            },
            8 => Event::Done {
                key: key(a),
                report: self.report(OutcomeClass::Success, None),
                links: vec![],
                revisit: self.visited(b, c.is_multiple_of(2).then_some(now + u64::from(b))),
                archived: archived(b),
            },
            9 => Event::Retry {
                key: key(a),
                report: self.report(OutcomeClass::Deferred, None),
                due: at(now + u64::from(b)),
                archived: c.is_multiple_of(2).then(|| archived(b)).flatten(),
            },
            10 => Event::Return {
                keys: vec![key(a), key(b), key(a)],
            },
            11 => Event::Schedule {
                visits: vec![
                    (key(a), Some(at(now + 5))),
                    (key(b), None),
                    (key(a), Some(at(now + 9))),
                ],
            },
            12 => Event::Due {
                now: at(now + u64::from(a)),
                visits: b.is_multiple_of(2),
            },
            13 => Event::Promote {
                urls: vec![(key(a), b % 20), (key(a), c % 20), (key(b), c % 20)],
            },
            14 => Event::Exhaust {
                host: key(a).host,
                spent: [Spent::Pages, Spent::Bytes, Spent::Time][usize::from(b % 3)],
                outcome: Outcome::because(OutcomeClass::DeniedPolicy, "spent"),
                at: at(now),
            },
            15 => Event::Robots {
                origin: url(a).origin().to_owned(),
                robots: RobotsRecord {
                    fetched: at(now),
                    expires: at(now + 100),
                    status: 200,
                    body: vec![b; 4],
                },
            },
            16 => Event::Host {
                host: key(a).host,
                not_before: at(now + u64::from(b)),
            },
            17 => Event::Setting {
                host: key(a).host,
                setting: HostSetting::Blocked(b.is_multiple_of(2)),
                at: at(now),
            },
            18 => Event::Reconsider {
                keys: vec![key(a), key(b), key(a)],
            },
            19 => Event::Reconsidered {
                keys: vec![key(a), key(b)],
            },
            20 => Event::Reopen {
                keys: vec![key(a), key(a), key(c)],
                at: at(now),
            },
            21 => Event::Planned {
                bounds: a.is_multiple_of(2).then(RecrawlBounds::default),
            },
            22 => Event::Results {
                position: u64::from(a),
            },
            23 => Event::Judged {
                rules: Rules {
                    hash: u64::from(a),
                    requisites: false,
                },
            },
            24 => Event::RobotsAsked { requests: 2 },
            // Sometimes of somebody who is late.
            _ => Event::Epoch {
                epoch: Epoch {
                    number: u64::from(a % 2)
                        + self.folded.replica.epoch().map_or(0, |epoch| epoch.number),
                    node: format!("node {}", b % 3),
                },
                at: at(now),
            },
        }
    }

    /// A history in which each event was made after those before it were committed.
    fn history(steps: impl IntoIterator<Item = (u8, u8, u8, u8)>) -> (Vec<Event>, Folded) {
        let mut driver = Self {
            folded: Folded::new(),
            now: 1000,
        };
        let mut events = Vec::new();
        for (kind, a, b, c) in steps {
            let event = driver.event(kind, a, b, c);
            driver.folded.commit(std::slice::from_ref(&event));
            events.push(event);
        }
        (events, driver.folded)
    }
}

fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Events one by one, all at once, and in random groups: the same bytes in every keyspace, and all of it sound.
    #[test]
    fn grouping_leaves_no_trace(
        steps in prop::collection::vec((0..KINDS, any::<u8>(), any::<u8>(), any::<u8>()), 1..120),
        sizes in prop::collection::vec(0..9usize, 1..20),
    ) {
        let (events, alone) = Driver::history(steps);
        let expected = alone.dump();
        prop_assert_eq!(alone.findings(), vec![]);
        let mut together = Folded::new();
        together.commit(&events);
        prop_assert_eq!(&together.dump(), &expected);
        let mut grouped = Folded::new();
        let mut rest = &events[..];
        for size in sizes.iter().cycle().take(10_000) {
            // A commit without events changes nothing either.
            let (group, later) = rest.split_at((*size).min(rest.len()));
            grouped.commit(group);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        grouped.commit(rest);
        prop_assert_eq!(&grouped.dump(), &expected);
        // Nor does it matter when a replica was closed and opened between.
        let mut restarted = Folded::new();
        let (before, after) = events.split_at(events.len() * sizes[0] / 9);
        restarted.commit(before);
        let mut restarted = restarted.restart();
        restarted.commit(after);
        prop_assert_eq!(&restarted.dump(), &expected);
    }
}

/// Every event directly before every other in one commit, with URLs that meet again and again.
#[test]
fn every_pair_of_events_in_one_commit() {
    let mut draw = 0u64;
    let mut steps = Vec::new();
    for first in 0..KINDS {
        for second in 0..KINDS {
            for kind in [first, second] {
                draw += 1;
                let [a, b, c, ..] = xxhash_rust::xxh3::xxh3_64(&draw.to_le_bytes()).to_le_bytes();
                // Few URLs, so that most events meet what the one before has written.
                steps.push((kind, a % 5, b % 5, c % 5));
            }
        }
    }
    let (events, alone) = Driver::history(steps);
    let mut pairs = Folded::new();
    events.chunks(2).for_each(|pair| pairs.commit(pair));
    assert_eq!(pairs.dump(), alone.dump());
    assert_eq!(alone.findings(), []);
}
