//! A store that fails on purpose, for tests: the n-th call to it says that the disk is broken.
//!
//! Debug builds read `ORBWEAVER_FAULTS`: `120` fails the 120th call to the store, `120+3` that and the two
//! after it, and `120+3,late` lets commits do their work before they fail, as a disk may. Release builds
//! have none of this.

use crate::error::Result;

/// Counts a call; an error when it is one that shall fail.
pub(crate) fn call() -> Result<()> {
    #[cfg(debug_assertions)]
    plan::count(false)?;
    Ok(())
}

/// The end of a commit whose work is done; an error when it was one that shall fail late.
pub(crate) fn committed() -> Result<()> {
    #[cfg(debug_assertions)]
    plan::count(true)?;
    Ok(())
}

#[cfg(debug_assertions)]
mod plan {
    use crate::error::{Error, Result};

    /// Calls `first` up to `last` fail, counted from 1.
    #[derive(Clone, Copy, Default)]
    pub(super) struct Plan {
        pub(super) first: u64,
        pub(super) last: u64,
        pub(super) late: bool,
    }

    #[cfg(test)]
    thread_local! {
        pub(super) static HERE: std::cell::Cell<(Plan, u64)> = const {
            std::cell::Cell::new((Plan { first: 0, last: 0, late: false }, 0))
        };
    }

    /// Late calls are not counted again: they share the number of the commit that they end.
    pub(super) fn count(late: bool) -> Result<()> {
        let (plan, number) = numbered(late);
        let hit = (plan.first..=plan.last).contains(&number) && plan.late == late && number > 0;
        if hit {
            // EIO.
            let broken = std::io::Error::from_raw_os_error(5);
            return Err(Error::Store(fjall::Error::Io(broken)));
        }
        Ok(())
    }

    #[cfg(test)]
    fn numbered(late: bool) -> (Plan, u64) {
        HERE.with(|here| {
            let (plan, before) = here.get();
            let number = before + u64::from(!late);
            here.set((plan, number));
            (plan, number)
        })
    }

    #[cfg(not(test))]
    fn numbered(late: bool) -> (Plan, u64) {
        use std::sync::OnceLock;
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

        static PLAN: OnceLock<Plan> = OnceLock::new();
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let plan =
            PLAN.get_or_init(|| parse(&std::env::var("ORBWEAVER_FAULTS").unwrap_or_default()));
        let number = CALLS.fetch_add(u64::from(!late), Relaxed) + u64::from(!late);
        (*plan, number)
    }

    #[cfg_attr(test, expect(dead_code, reason = "tests set the plan themselves"))]
    fn parse(text: &str) -> Plan {
        let (calls, late) = match text.split_once(',') {
            Some((calls, how)) => (calls, how == "late"),
            None => (text, false),
        };
        let (first, count) = calls.split_once('+').unwrap_or((calls, "1"));
        let first: u64 = first.parse().unwrap_or(0);
        let count: u64 = count.parse().unwrap_or(1);
        Plan {
            first,
            last: first.saturating_add(count).saturating_sub(1),
            late,
        }
    }
}

/// Fails calls of this thread from now on, counted from 1; 0 ends that.
#[cfg(test)]
pub(crate) fn fail(first: u64, count: u64, late: bool) {
    let last = first.saturating_add(count).saturating_sub(1);
    plan::HERE.with(|here| here.set((plan::Plan { first, last, late }, 0)));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use orbweaver_model::{
        Column, CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome, OutcomeClass, Report,
        Timestamp,
    };

    use super::fail;
    use crate::error::Result;
    use crate::{DocIndex, IndexOptions, Ledger, Wanted, check};

    const HOSTS: u64 = 5;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Every page links to two more, up to a number; every seventh page needs a second attempt.
    fn links(page: u64) -> Vec<NewLink> {
        let link = |n: u64| NewLink {
            link: Link {
                url: CrawlUrl::from_canonical(&format!("http://h{}.example/{n}", n % HOSTS))
                    .unwrap(),
                kind: LinkKind::A,
                depth: 1,
                priority: 1,
                via: None,
                chain: Vec::new(),
            },
            refused: None,
        };
        let next = [page * 2 + 1, page * 2 + 2];
        next.into_iter().filter(|n| *n < 90).map(link).collect()
    }

    fn report(class: OutcomeClass) -> Report {
        Report {
            ip: Some([127, 0, 0, 1].into()),
            ..Report::unasked(Outcome::plain(class), at(3))
        }
    }

    /// Calls until it works, as the owner of an index does. A batch that nobody got is taken back.
    fn insist<T>(
        index: &mut DocIndex,
        failures: &mut u32,
        mut call: impl FnMut(&mut DocIndex) -> Result<T>,
    ) -> Option<T> {
        let before = index.last_batch();
        let error = match call(index) {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        *failures += 1;
        assert!(error.is_trouble() && *failures < 50, "{error}");
        while index.recover(&error).is_err() || index.take_back(before).is_err() {
            *failures += 1;
            assert!(*failures < 50, "it never works again");
        }
        None
    }

    /// A crawl in small: everything is handed out, answered, and links to more. How often a page was
    /// answered for good, and the calls that failed.
    fn crawl(dir: &Path, faults: (u64, u64, bool)) -> (Ledger, Vec<u32>, u32) {
        let options = IndexOptions {
            seed: KeySeed(1),
            memory: 8 << 20,
            ..IndexOptions::default()
        };
        let mut index = DocIndex::open(dir, options, at(0)).unwrap();
        let mut failures = 0;
        let mut answered = vec![0; 90];
        fail(faults.0, faults.1, faults.2);
        // What `apply` was given is folded in the end, whether it fails or not.
        let first = Event::Links {
            links: links(0),
            at: at(1),
        };
        insist(&mut index, &mut failures, |index| {
            index.apply([first.clone()])
        });
        let mut round = 0;
        while index.ledger().queued > 0 {
            round += 1;
            assert!(round < 500, "no end");
            let wanted = Wanted {
                urls: 7,
                per_host: 2,
                reject: HashSet::new(),
            };
            let Some(found) = insist(&mut index, &mut failures, |index| {
                index.candidates(&wanted, at(1000 * round))
            }) else {
                continue;
            };
            let mut events = Vec::new();
            let mut back = Vec::new();
            for (n, candidate) in found.iter().enumerate() {
                let page: u64 = candidate
                    .url
                    .path()
                    .trim_start_matches('/')
                    .parse()
                    .unwrap();
                let key = candidate.key;
                if n == 3 && round % 2 == 0 {
                    back.push(key);
                } else if page.is_multiple_of(7) && candidate.attempts == 0 {
                    let report = report(OutcomeClass::FailedTimeout);
                    events.push(Event::Retry {
                        key,
                        report,
                        due: at(1000 * round + 1),
                        archived: None,
                    });
                } else {
                    answered[page as usize] += 1;
                    let report = report(OutcomeClass::Success);
                    events.push(Event::Done {
                        key,
                        report,
                        links: links(page),
                        revisit: None,
                        archived: None,
                    });
                }
            }
            events.push(Event::Return { keys: back });
            insist(&mut index, &mut failures, |index| {
                index.apply(events.clone())
            });
            if round % 3 == 0 {
                insist(&mut index, &mut failures, |index| index.sync());
            }
        }
        fail(0, 0, false);
        let mut found = Vec::new();
        check(&index.reader(), &mut |finding| found.push(finding)).unwrap();
        assert_eq!(found, []);
        let ledger = index.ledger().clone();
        drop(index);
        (ledger, answered, failures)
    }

    #[test]
    fn whatever_call_to_the_store_fails_nothing_is_lost_or_done_twice() {
        let around = tempfile::tempdir().unwrap();
        let (sound, once, none) = crawl(&around.path().join("sound"), (0, 0, false));
        assert_eq!(none, 0);
        assert_eq!(sound.column(Column::Done), 89);
        let mut hit = 0;
        for (count, late) in [(1, false), (3, false), (1, true)] {
            for call in (1..).step_by(23) {
                let dir = around.path().join(format!("{call}-{count}-{late}"));
                let (ledger, answered, failures) = crawl(&dir, (call, count, late));
                assert_eq!(
                    (ledger, answered),
                    (sound.clone(), once.clone()),
                    "call {call}+{count}"
                );
                std::fs::remove_dir_all(dir).unwrap();
                hit += failures;
                if failures == 0 && !late || call > 400 {
                    break;
                }
            }
        }
        assert!(hit > 12, "only {hit} calls failed");
    }
}
