//! Owners, followers and their logs: whoever folds a log holds the same bytes, one owner at a time extends it, and a
//! failure of the log loses nothing and repeats nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orbweaver_docindex::{
    Append, Batch, Damaged, DocIndex, Error, IndexOptions, KeptLog, LocalLog, Log, LogError, Owner,
    Replica, Standing, import,
};
use orbweaver_model::{
    Archived, CapturePlace, Event, OutcomeClass, RecrawlBounds, Report, RobotsRecord, Rules,
    Timestamp,
};
use orbweaver_testkit::Random;
use proptest::prelude::*;

use crate::support::*;

fn options(node: &str) -> IndexOptions {
    IndexOptions {
        seed: SEED,
        memory: 8 << 20,
        node: node.into(),
        recrawl: true,
        ..IndexOptions::default()
    }
}

fn replica(dir: &Path, node: &str) -> Replica {
    Replica::open(&dir.join(node), options(node), Damaged::Refuse).unwrap()
}

/// A process of a node that follows a log.
fn follower<L: Log>(dir: &Path, node: &str, log: L) -> Owner<L> {
    Owner::over(replica(dir, node), log)
}

/// A process of a node that has made itself the owner.
fn owner<L: Log>(dir: &Path, node: &str, log: L) -> Owner<L> {
    let mut owner = follower(dir, node, log);
    owner.take_over(at(0)).unwrap();
    owner
}

/// Every byte of every keyspace.
fn bytes(replica: &Replica) -> Vec<u8> {
    let mut bytes = Vec::new();
    let position = replica.reader().export(&mut bytes).unwrap();
    assert_eq!(position, replica.applied());
    bytes
}

fn page(n: u64) -> String {
    format!("http://h{}/{}", n % 4, n % 60)
}

/// Does to an index what a crawl does, one step at a time.
struct Crawl {
    random: Random,
    now: u64,
    archived: u64,
}

impl Crawl {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            now: 1000,
            archived: 0,
        }
    }

    fn at(&self) -> Timestamp {
        at(self.now)
    }

    fn links(&mut self) -> Vec<orbweaver_model::NewLink> {
        let count = 1 + self.random.below(5);
        let mut draw = || match self.random.below(6) {
            0 => refused(&page(self.random.below(60)), "out of scope"),
            depth => link(&page(self.random.below(60)), depth as u16),
        };
        (0..count).map(|_| draw()).collect()
    }

    fn answer(&mut self, url: &str) -> Event {
        self.archived += 1;
        let archived = Some(Archived {
            place: CapturePlace {
                file: 1,
                offset: self.archived * 100,
            },
            position: self.archived,
        });
        let report = Report {
            at: self.at(),
            ..report(OutcomeClass::Success)
        };
        match self.random.below(6) {
            0 => Event::Retry {
                key: key(url),
                report: Report {
                    outcome: orbweaver_model::Outcome::plain(OutcomeClass::Deferred),
                    ..report
                },
                due: at(self.now + self.random.below(50)),
                archived: None,
            },
            1 => Event::Return {
                keys: vec![key(url)],
            },
            2 => done(
                url,
                redirects_to(&page(self.random.below(60))),
                self.links(),
            ),
            visits => Event::Done {
                key: key(url),
                report,
                links: self.links(),
                revisit: visited(visits as u32 - 2, Some(at(self.now + 30))),
                archived,
            },
        }
    }

    /// One step, in one or a few calls to the index.
    fn step<L: Log>(&mut self, index: &mut Owner<L>) -> orbweaver_docindex::Result<()> {
        self.now += self.random.below(20);
        match self.random.below(12) {
            0..4 => {
                let event = Event::Links {
                    links: self.links(),
                    at: self.at(),
                };
                index.apply([event])
            }
            4..8 => {
                let found = index.candidates(&want(3), self.at())?;
                let answers = found.iter().map(|found| self.answer(found.url.as_str()));
                let answers: Vec<_> = answers.collect();
                // Some are never answered.
                let most = answers.len().saturating_sub(self.random.below(2) as usize);
                index.apply(answers.into_iter().take(most))
            }
            8 => {
                let bounds = RecrawlBounds {
                    min: Duration::from_secs(1),
                    max: Duration::from_secs(100 + self.random.below(2)),
                };
                index.plan_visits(Some(bounds)).map(drop)
            }
            9 => {
                let rules = Rules {
                    hash: self.random.below(3),
                    requisites: false,
                };
                index.rules_changed(&|host| host == "h1", true)?;
                index.apply([Event::Judged { rules }])
            }
            10 => {
                let robots = RobotsRecord {
                    fetched: self.at(),
                    expires: at(self.now + 100),
                    status: 200,
                    body: b"User-agent: *".to_vec(),
                };
                let origin = url(&page(self.random.below(4))).origin().to_owned();
                index.apply([
                    Event::Robots { origin, robots },
                    Event::RobotsAsked { requests: 1 },
                ])
            }
            _ => {
                let keys: Vec<_> = index
                    .to_reconsider(5)?
                    .into_iter()
                    .map(|(key, _)| key)
                    .collect();
                index.apply([
                    Event::Reopen {
                        keys: keys.clone(),
                        at: self.at(),
                    },
                    Event::Reconsidered { keys },
                    Event::Host {
                        host: key(&page(2)).host,
                        not_before: at(self.now + 10),
                    },
                ])
            }
        }
    }

    fn run<L: Log>(&mut self, index: &mut Owner<L>, steps: usize) {
        for _ in 0..steps {
            self.step(index).unwrap();
            assert!(index.ledger().balances());
        }
    }
}

/// All batches of a log with their positions.
fn batches(log: &mut impl Log) -> Vec<(u64, Batch)> {
    let mut all = Vec::new();
    let mut from = 0;
    while let Some((position, batch)) = log.next(from).unwrap() {
        from = position;
        all.push((position, batch));
    }
    all
}

#[test]
fn a_crawl_leaves_the_same_bytes_over_either_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = owner(dir.path(), "kept", KeptLog::default());
    Crawl::new(5).run(&mut kept, 120);
    // The one-machine form, as the crawler opens it.
    let here = IndexOptions {
        node: "kept".into(),
        ..options("")
    };
    let mut local = DocIndex::open(&dir.path().join("local"), here, at(0)).unwrap();
    Crawl::new(5).run(&mut local, 120);
    assert!(kept.ledger().accepted > 40);
    assert_eq!(bytes(&local), bytes(&kept));
    let mut found = Vec::new();
    orbweaver_docindex::check(&kept.reader(), &mut |finding| found.push(finding)).unwrap();
    assert_eq!(found, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// A log that was kept, folded from its beginning in other groups than it was made in: the same bytes everywhere.
    #[test]
    fn a_log_is_replayed_in_other_groups(seed in any::<u64>(), sizes in prop::collection::vec(1..9usize, 1..9)) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = KeptLog::default();
        let mut index = owner(dir.path(), "a", log.clone());
        let mut crawl = Crawl::new(seed);
        crawl.run(&mut index, 40);
        drop(index);
        // A second epoch, for what a restart writes.
        let mut index = owner(dir.path(), "a", log.clone());
        crawl.run(&mut index, 20);
        let expected = bytes(&index);
        let all = batches(&mut log);
        let mut grouped = replica(dir.path(), "grouped");
        let mut rest = &all[..];
        for size in sizes.iter().cycle() {
            let (group, later) = rest.split_at((*size).min(rest.len()));
            let Some((position, _)) = group.last() else { break };
            let events: Vec<Event> = group.iter().flat_map(|(_, batch)| batch.to_vec()).collect();
            grouped.fold(*position, &events).unwrap();
            rest = later;
        }
        prop_assert!(bytes(&grouped) == expected);
        // Event by event: positions count events here.
        let mut single = replica(dir.path(), "single");
        let events = all.iter().flat_map(|(_, batch)| batch.iter());
        for (event, position) in events.zip(1..) {
            single.fold(position, std::slice::from_ref(event)).unwrap();
        }
        prop_assert!(bytes(&single) == expected);
    }

    /// From a snapshot at any position a replica follows on to the same bytes.
    #[test]
    fn a_snapshot_is_followed_on(seed in any::<u64>(), before in 1..40usize, after in 0..30usize) {
        let dir = tempfile::tempdir().unwrap();
        let log = KeptLog::default();
        let mut index = owner(dir.path(), "a", log.clone());
        let mut crawl = Crawl::new(seed);
        crawl.run(&mut index, before);
        let snapshot = bytes(&index);
        let position = import(&dir.path().join("b"), 8 << 20, &mut &snapshot[..]).unwrap();
        prop_assert_eq!(position, index.applied());
        let mut other = follower(dir.path(), "b", log);
        prop_assert!(bytes(&other) == snapshot);
        crawl.run(&mut index, after);
        while other.follow(3).unwrap() > 0 {}
        prop_assert!(bytes(&other) == bytes(&index));
        // It can also go on alone.
        other.take_over(crawl.at()).unwrap();
        crawl.run(&mut other, 10);
    }
}

#[test]
fn a_follower_lags_restarts_and_catches_up() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let mut index = owner(dir.path(), "a", log.clone());
    let mut other = follower(dir.path(), "b", log.clone());
    let mut crawl = Crawl::new(7);
    for round in 0..12 {
        crawl.run(&mut index, 8);
        let tail = log.tail();
        assert!(other.follow(5).unwrap() <= 5);
        assert_eq!(log.tail(), tail, "a follower appends nothing");
        assert!(other.applied() < index.applied(), "it lags");
        assert_eq!(other.standing(), Standing::Follows);
        assert!(matches!(
            other.apply([Event::Return { keys: vec![] }]),
            Err(Error::Fenced)
        ));
        if round % 3 == 2 {
            drop(other);
            other = follower(dir.path(), "b", log.clone());
            assert_eq!(log.tail(), tail, "nor does opening one");
        }
    }
    while other.follow(100).unwrap() > 0 {}
    assert_eq!(bytes(&other), bytes(&index));
    assert_eq!(other.epoch(), index.epoch());
}

#[test]
fn of_two_owners_one_is_fenced() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let mut first = owner(dir.path(), "a", log.clone());
    first
        .apply([links(vec![link("http://a/1", 0), link("http://b/2", 0)])])
        .unwrap();
    let found = first.candidates(&want(9), at(5)).unwrap();
    assert_eq!(found.len(), 2);
    let before = bytes(&first);
    // The other takes over while the first does not notice.
    let mut second = follower(dir.path(), "b", log.clone());
    second.take_over(at(6)).unwrap();
    assert_eq!(second.standing(), Standing::Owns);
    let epoch = second.epoch().unwrap();
    assert_eq!((epoch.number, epoch.node.as_str()), (2, "b"));
    // What the first had handed out is with the second now, and what the first says of it means nothing.
    let late = || done("http://a/1", report(OutcomeClass::Success), vec![]);
    assert!(matches!(first.apply([late()]), Err(Error::Fenced)));
    assert_eq!(first.standing(), Standing::Fenced);
    assert_eq!(bytes(&first), before, "nothing has happened here");
    let mut handed_out = first.handed_out();
    handed_out.sort();
    let mut keys: Vec<_> = found.iter().map(|found| found.key).collect();
    keys.sort();
    assert_eq!(handed_out, keys);
    assert!(matches!(first.apply([late()]), Err(Error::Fenced)), "still");
    assert!(matches!(
        first.candidates(&want(9), at(7)),
        Err(Error::Fenced)
    ));
    assert_eq!(second.candidates(&want(9), at(7)).unwrap().len(), 2);
    second.apply([late()]).unwrap();
    // It goes on as a follower.
    while first.follow(1).unwrap() > 0 {}
    assert_eq!(first.standing(), Standing::Follows);
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(first.handed_out(), second.handed_out());
    // And as the owner again, at the new tail; now the other is fenced.
    second.apply([links(vec![link("http://c/3", 0)])]).unwrap();
    first.take_over(at(8)).unwrap();
    assert_eq!(first.epoch().unwrap().number, 3);
    assert_eq!(first.ledger().accepted, 3);
    assert!(matches!(second.sync(), Ok(())));
    assert!(matches!(second.apply([late()]), Err(Error::Fenced)));
    let mut names = first.candidates(&want(9), at(9)).unwrap();
    names.sort_by_key(|candidate| candidate.doc_id);
    assert_eq!(crate::support::names(&names), ["http://b/2", "http://c/3"]);
    sound_replica(&first);
}

fn sound_replica(replica: &Replica) {
    let mut found = Vec::new();
    orbweaver_docindex::check(&replica.reader(), &mut |finding| found.push(finding)).unwrap();
    assert_eq!(found, []);
}

/// How an append fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing is appended, and that is not known.
    Lost,
    /// It is appended, and that is not known.
    Unheard,
    /// It is appended a while later, when somebody appends something else.
    Late,
    /// Somebody else appends first.
    Beaten,
}

/// A log of which some calls fail.
struct Flaky<L> {
    log: L,
    /// The next appends, each with how it fails.
    faults: Vec<(usize, Fault)>,
    appends: usize,
    late: Option<(u64, Batch)>,
    failures: usize,
    /// The next reads that fail.
    unreadable: usize,
}

impl<L: Log> Flaky<L> {
    fn new(log: L, faults: &[(usize, Fault)]) -> Self {
        Self {
            log,
            faults: faults.to_vec(),
            appends: 0,
            late: None,
            failures: 0,
            unreadable: 0,
        }
    }
}

impl<L: Log> Log for Flaky<L> {
    fn append(&mut self, expected: u64, batch: &Batch) -> Result<Append, LogError> {
        if let Some((expected, batch)) = self.late.take() {
            self.log.append(expected, &batch)?;
        }
        self.appends += 1;
        let fault = self.faults.iter().find(|(n, _)| *n == self.appends);
        let Some((_, fault)) = fault else {
            return self.log.append(expected, batch);
        };
        self.failures += 1;
        // A log that has stumbled stumbles once more.
        self.unreadable = 1;
        match fault {
            Fault::Lost => {}
            Fault::Unheard => {
                self.log.append(expected, batch)?;
            }
            Fault::Late => self.late = Some((expected, Arc::clone(batch))),
            Fault::Beaten => {
                let stranger = Event::RobotsAsked { requests: 1 };
                self.log.append(expected, &Arc::new(vec![stranger]))?;
            }
        }
        Err(LogError("no response in time".into()))
    }

    fn next(&mut self, from: u64) -> Result<Option<(u64, Batch)>, LogError> {
        if self.unreadable > 0 {
            self.unreadable -= 1;
            return Err(LogError("cannot be reached".into()));
        }
        self.log.next(from)
    }

    fn forget(&mut self, position: u64) {
        self.log.forget(position);
    }
}

/// One suite on both logs: whatever becomes of an append, the index is as if nothing had happened until it has recovered, and
/// then as if it had not failed.
fn survives_failing_appends<L: Log>(make: impl Fn() -> L) {
    for fault in [Fault::Lost, Fault::Unheard, Fault::Late] {
        for at_append in 2..8 {
            let dir = tempfile::tempdir().unwrap();
            let mut sound = owner(dir.path(), "sound", make());
            let log = Flaky::new(make(), &[(at_append, fault), (at_append + 1, fault)]);
            let options = IndexOptions {
                node: "sound".into(),
                ..options("")
            };
            let path = dir.path().join("flaky");
            let replica = Replica::open(&path, options, Damaged::Refuse).unwrap();
            let mut flaky = Owner::over(replica, log);
            flaky.take_over(at(0)).unwrap();
            for n in 0..9 {
                let event = links(vec![link(&page(n), 0), link(&page(n + 1), 1)]);
                sound.apply([event.clone()]).unwrap();
                let before = (bytes(&flaky), flaky.seen().len(), flaky.ledger().clone());
                let Err(error) = flaky.apply([event.clone()]) else {
                    continue;
                };
                assert!(
                    matches!(error, Error::Log(_)) && error.is_trouble(),
                    "{error}"
                );
                let after = (bytes(&flaky), flaky.seen().len(), flaky.ledger().clone());
                assert_eq!(before, after, "{fault:?}: nothing has happened yet");
                assert!(
                    matches!(flaky.apply([event]), Err(Error::Stopped)),
                    "nothing is appended before it is known what came of that"
                );
                let mut attempts = 0;
                while flaky.recover(&error).is_err() {
                    attempts += 1;
                    assert!(attempts < 9, "it never recovers");
                }
                assert_eq!(flaky.standing(), Standing::Owns);
            }
            assert_eq!(bytes(&flaky), bytes(&sound), "{fault:?} at {at_append}");
        }
    }
}

#[test]
fn appends_that_fail_on_the_local_log() {
    survives_failing_appends(|| LocalLog::after(0));
}

#[test]
fn appends_that_fail_on_the_kept_log() {
    survives_failing_appends(KeptLog::default);
}

#[test]
fn an_append_that_fails_because_somebody_was_quicker_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let mut index = owner(
        dir.path(),
        "a",
        Flaky::new(log.clone(), &[(2, Fault::Beaten)]),
    );
    let error = index
        .apply([links(vec![link("http://a/1", 0)])])
        .unwrap_err();
    assert!(matches!(error, Error::Log(_)));
    while let Err(error) = index.recover(&error) {
        if matches!(error, Error::Fenced) {
            break;
        }
    }
    assert_eq!(index.standing(), Standing::Fenced);
    assert_eq!(index.ledger().accepted, 0);
    while index.follow(1).unwrap() > 0 {}
    assert_eq!(
        (index.ledger().robots_requests, index.ledger().accepted),
        (1, 0)
    );
    assert_eq!(index.applied(), log.tail());
}

#[test]
fn whoever_is_too_late_to_take_over_tries_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    drop(owner(dir.path(), "a", log.clone()));
    let mut late = follower(
        dir.path(),
        "b",
        Flaky::new(log.clone(), &[(1, Fault::Beaten)]),
    );
    assert!(matches!(late.take_over(at(9)), Err(Error::Log(_))));
    assert_eq!(late.standing(), Standing::Follows);
    assert!(late.take_over(at(9)).is_err(), "the log cannot be read");
    late.take_over(at(9)).unwrap();
    assert_eq!(late.epoch().unwrap().number, 2);
    assert_eq!(
        late.ledger().robots_requests,
        1,
        "what came first is folded"
    );
    // An epoch of which it was not known whether it began is one more, and harms nobody.
    let mut other = follower(dir.path(), "c", Flaky::new(log, &[(1, Fault::Unheard)]));
    assert!(other.take_over(at(9)).is_err());
    while other.take_over(at(9)).is_err() {}
    assert_eq!(other.epoch().unwrap().number, 4);
}

#[test]
fn a_log_that_does_not_begin_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = KeptLog::default();
    let stray = Arc::new(vec![links(vec![link("http://a/1", 0)])]);
    log.append(0, &stray).unwrap();
    let mut index = follower(dir.path(), "a", log);
    assert!(matches!(index.take_over(at(1)), Err(Error::NotBegun)));
}

#[test]
fn a_follower_takes_the_seed_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let index = owner(dir.path(), "a", log.clone());
    let other = IndexOptions {
        seed: orbweaver_model::KeySeed(999),
        ..options("b")
    };
    let empty = Replica::open(&dir.path().join("b"), other, Damaged::Refuse).unwrap();
    assert_eq!(empty.seed(), None);
    let mut other = Owner::over(empty, log);
    other.take_over(at(3)).unwrap();
    assert_eq!(other.seed(), index.seed());
}

/// A snapshot of a small crawl.
fn snapshot(dir: &Path) -> Vec<u8> {
    let mut index = owner(dir, "original", KeptLog::default());
    Crawl::new(3).run(&mut index, 60);
    bytes(&index)
}

fn is_refused(dir: &Path, bytes: &[u8], what: &str) {
    let error = import(&dir.join("copy"), 8 << 20, &mut &bytes[..]).unwrap_err();
    assert!(matches!(error, Error::Snapshot(_)), "{what}: {error}");
    let names = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name != "original").collect();
    assert!(left.is_empty(), "{what}: {left:?} is left behind");
}

#[test]
fn a_snapshot_that_is_cut_short_or_damaged_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = snapshot(dir.path());
    let mut random = Random::new(1);
    let length = whole.len() as u64;
    for cut in [0, 1, 8, 9, 12, 20, 21, length - 1, length - 21]
        .into_iter()
        .chain((0..12).map(|_| random.below(length)))
    {
        is_refused(dir.path(), &whole[..cut as usize], &format!("cut at {cut}"));
    }
    for bit in (0..9 * 8)
        .step_by(11)
        .chain((0..24).map(|_| random.below(length * 8)))
    {
        let mut flipped = whole.clone();
        flipped[bit as usize / 8] ^= 1 << (bit % 8);
        is_refused(dir.path(), &flipped, &format!("bit {bit}"));
    }
    let longer = [&whole[..], &[0]].concat();
    is_refused(dir.path(), &longer, "bytes after its end");
    let mut newer = whole.clone();
    newer[8] = 2;
    is_refused(dir.path(), &newer, "another version");
    import(&dir.path().join("copy"), 8 << 20, &mut &whole[..]).unwrap();
}

#[test]
fn a_snapshot_goes_into_an_empty_directory_only() {
    let dir = tempfile::tempdir().unwrap();
    let whole = snapshot(dir.path());
    let place = dir.path().join("copy");
    std::fs::create_dir(&place).unwrap();
    import(&place, 8 << 20, &mut &whole[..]).unwrap();
    assert!(matches!(
        import(&place, 8 << 20, &mut &whole[..]),
        Err(Error::Occupied(_))
    ));
    let copy = Replica::open(&place, options("copy"), Damaged::Refuse).unwrap();
    assert_eq!(bytes(&copy), whole);
    sound_replica(&copy);
    // Read from its files it is the same.
    drop(copy);
    let mut cold = Vec::new();
    let reader = orbweaver_docindex::Reader::open(&place, 8 << 20).unwrap();
    reader.export(&mut cold).unwrap();
    assert!(cold == whole);
}

/// What is mended is not what the log says any more, so a replica of a log is never mended.
#[test]
fn a_damaged_replica_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let mut index = owner(dir.path(), "a", log.clone());
    Crawl::new(2).run(&mut index, 20);
    let expected = bytes(&index);
    drop(index);
    let journal = dir.path().join("a/0.jnl");
    let mut harmed = std::fs::read(&journal).unwrap();
    harmed[40] ^= 1;
    std::fs::write(&journal, &harmed).unwrap();
    let refused = Replica::open(&dir.path().join("a"), options("a"), Damaged::Refuse);
    let error = refused.err().unwrap();
    assert!(error.is_damage(), "{error}");
    assert_eq!(std::fs::read(&journal).unwrap(), harmed);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // The log makes another.
    let mut other = follower(dir.path(), "b", log);
    while other.follow(100).unwrap() > 0 {}
    assert_eq!(bytes(&other), expected);
}

/// A standby that takes over counts nothing as handed out, for budgets as little as for claims.
#[test]
fn what_was_lent_to_the_owner_before_is_free_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = KeptLog::default();
    let limited = |node: &str| {
        let options = IndexOptions {
            budgets: pages(2),
            ..options(node)
        };
        let replica = Replica::open(&dir.path().join(node), options, Damaged::Refuse).unwrap();
        Owner::over(replica, log.clone())
    };
    let mut first = limited("a");
    first.take_over(at(0)).unwrap();
    let pages = ["http://a/1", "http://a/2"].map(|page| link(page, 0));
    first.apply([links(pages.to_vec())]).unwrap();
    assert_eq!(first.candidates(&want(9), at(1)).unwrap().len(), 2);
    let mut second = limited("b");
    while second.follow(1).unwrap() > 0 {}
    assert_eq!(second.claimed(), 2);
    second.take_over(at(2)).unwrap();
    assert_eq!(second.claimed(), 0);
    assert_eq!(second.candidates(&want(9), at(3)).unwrap().len(), 2);
}
