//! The doc index as its owner uses it: the life of a URL, budgets, redirects, restarts.
use std::collections::{BTreeMap, HashSet};

use orbweaver_docindex::{IndexOptions, Reader, Rest, Wanted};
use orbweaver_model::{
    Column, Event, HostSetting, LinkKind, NewLink, Outcome, OutcomeClass, Report,
};
use proptest::prelude::*;

use crate::support::*;

#[test]
fn a_url_is_queued_once_and_handed_out_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![
            link("http://a/1", 1),
            link("http://a/1", 1),
            link("http://a/0", 0),
        ])])
        .unwrap();
    let first = index.candidates(&want(10), at(2)).unwrap();
    assert_eq!(names(&first), ["http://a/0", "http://a/1"], "breadth first");
    assert!(index.candidates(&want(10), at(3)).unwrap().is_empty());
    index
        .apply([done(
            "http://a/0",
            report(OutcomeClass::Success),
            vec![link("http://a/1", 1)],
        )])
        .unwrap();
    assert!(index.candidates(&want(10), at(4)).unwrap().is_empty());
    assert_eq!((index.ledger().accepted, index.ledger().queued), (2, 1));
    sound(&index);
}

#[test]
fn hosts_take_turns_and_the_reject_list_is_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let all = ["http://a/1", "http://a/2", "http://b/1", "http://c/1"];
    index
        .apply([links(all.iter().map(|text| link(text, 0)).collect())])
        .unwrap();
    let wanted = Wanted {
        urls: 10,
        per_host: 1,
        reject: HashSet::from([key("http://b/").host]),
    };
    assert_eq!(
        names(&index.candidates(&wanted, at(2)).unwrap()),
        ["http://a/1", "http://c/1"]
    );
    assert_eq!(
        names(&index.candidates(&wanted, at(2)).unwrap()),
        ["http://a/2"]
    );
    assert_eq!(
        names(&index.candidates(&want(10), at(2)).unwrap()),
        ["http://b/1"]
    );
}

#[test]
fn a_link_of_lower_rank_that_comes_late_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(
            (0..5).map(|n| link(&format!("http://a/{n}"), 3)).collect(),
        )])
        .unwrap();
    assert_eq!(index.candidates(&want(2), at(2)).unwrap().len(), 2);
    index
        .apply([links(vec![link("http://a/late", 1)])])
        .unwrap();
    assert_eq!(
        names(&index.candidates(&want(1), at(2)).unwrap()),
        ["http://a/late"]
    );
    assert_eq!(index.candidates(&want(10), at(2)).unwrap().len(), 3);
}

#[test]
fn claims_of_a_dead_process_are_handed_out_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![
            link("http://a/1", 0),
            link("http://a/2", 0),
            link("http://a/3", 0),
        ])])
        .unwrap();
    assert_eq!(index.candidates(&want(2), at(2)).unwrap().len(), 2);
    index
        .apply([done("http://a/1", report(OutcomeClass::Success), vec![])])
        .unwrap();
    drop(index);
    let mut index = open(dir.path());
    assert!(index.resumed());
    assert_eq!(
        names(&index.candidates(&want(10), at(3)).unwrap()),
        ["http://a/2", "http://a/3"]
    );
    sound(&index);
}

#[test]
fn a_page_that_an_earlier_process_fetched_can_be_finished_unclaimed() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![link("http://a/1", 0), link("http://a/2", 0)])])
        .unwrap();
    let adopted = || {
        done(
            "http://a/1",
            report(OutcomeClass::Success),
            vec![link("http://a/3", 1)],
        )
    };
    index.apply([adopted(), adopted()]).unwrap();
    index.apply([adopted()]).unwrap();
    assert_eq!(index.ledger().documents(), 1);
    assert_eq!(
        names(&index.candidates(&want(10), at(3)).unwrap()),
        ["http://a/2", "http://a/3"]
    );
    sound(&index);
}

#[test]
fn retries_wait_for_their_time_also_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    for attempt in 0..2 {
        let found = index.candidates(&want(10), at(1000 * attempt)).unwrap();
        assert_eq!(u64::from(found[0].attempts), attempt);
        let due = at(1000 * attempt + 1000);
        index
            .apply([Event::Retry {
                key: key("http://a/1"),
                report: report(OutcomeClass::Deferred),
                due,
                archived: None,
            }])
            .unwrap();
        assert_eq!(index.next_due(), Some(due));
        assert!(
            index
                .candidates(&want(10), at(1000 * attempt + 999))
                .unwrap()
                .is_empty()
        );
        sound(&index);
        drop(index);
        index = open(dir.path());
    }
    assert_eq!(index.next_due(), Some(at(2000)));
    assert_eq!(
        index.candidates(&want(10), at(2000)).unwrap()[0].attempts,
        2
    );
    index
        .apply([done(
            "http://a/1",
            report(OutcomeClass::FailedTimeout),
            vec![],
        )])
        .unwrap();
    let entry = index.reader().entry(key("http://a/1")).unwrap().unwrap();
    let fate = entry.fate.unwrap();
    assert_eq!(fate.attempts, 3);
    let earlier = fate.earlier.iter().map(|attempt| attempt.outcome.class);
    assert_eq!(
        earlier.collect::<Vec<_>>(),
        [OutcomeClass::Deferred, OutcomeClass::Deferred]
    );
    assert_eq!(index.ledger().column(Column::Failed), 1);
    let host = index.reader().host("a").unwrap().unwrap();
    assert_eq!((host.requests, host.failed, host.millis), (3, 3, 5));
    sound(&index);
}

#[test]
fn of_many_attempts_the_newest_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    for attempt in 0..12 {
        assert_eq!(index.candidates(&want(10), at(attempt)).unwrap().len(), 1);
        let report = Report {
            at: at(attempt),
            ..report(OutcomeClass::Deferred)
        };
        let retry = Event::Retry {
            key: key("http://a/1"),
            report,
            due: at(attempt + 1),
            archived: None,
        };
        index.apply([retry]).unwrap();
    }
    let entry = index.reader().entry(key("http://a/1")).unwrap().unwrap();
    let fate = entry.fate.unwrap();
    let kept: Vec<u64> = (fate.earlier.iter())
        .map(|attempt| attempt.at.as_millis())
        .collect();
    assert_eq!(kept, (3..11).collect::<Vec<_>>());
    assert_eq!(fate.report.at, at(11));
}

#[test]
fn where_a_url_rests_can_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let reader = index.reader();
    let pages = ["http://a/1", "http://a/2", "http://a/3", "http://b/1"];
    index
        .apply([links(pages.map(|page| link(page, 1)).to_vec())])
        .unwrap();
    let rest = |text: &str| {
        let entry = reader.entry(key(text)).unwrap().unwrap();
        reader.rest(&entry).unwrap()
    };
    assert_eq!(rest("http://a/3"), Some(Rest::Queue { ahead: 2 }));
    assert_eq!(rest("http://b/1"), Some(Rest::Queue { ahead: 0 }));
    let wanted = Wanted {
        urls: 1,
        per_host: 1,
        reject: HashSet::from([key("http://b/1").host]),
    };
    assert_eq!(
        names(&index.candidates(&wanted, at(7)).unwrap()),
        ["http://a/1"]
    );
    assert_eq!(rest("http://a/1"), Some(Rest::Claimed { since: at(7) }));
    assert_eq!(rest("http://a/3"), Some(Rest::Queue { ahead: 1 }));
    let put_off = Event::Retry {
        key: key("http://a/1"),
        report: report(OutcomeClass::Deferred),
        due: at(50),
        archived: None,
    };
    index.apply([put_off]).unwrap();
    assert_eq!(rest("http://a/1"), Some(Rest::Retry { due: at(50) }));
    index
        .apply([Event::Due {
            now: at(50),
            visits: false,
        }])
        .unwrap();
    assert_eq!(rest("http://a/1"), Some(Rest::Queue { ahead: 0 }));
    index.candidates(&wanted, at(60)).unwrap();
    assert_eq!(rest("http://a/1"), Some(Rest::Claimed { since: at(60) }));
    index
        .apply([done("http://a/1", report(OutcomeClass::Success), vec![])])
        .unwrap();
    assert_eq!(rest("http://a/1"), None);
}

#[test]
fn a_blocked_host_is_not_offered_until_it_is_free_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![link("http://a/1", 0), link("http://b/1", 0)])])
        .unwrap();
    let host = key("http://a/1").host;
    let set = |setting, when| Event::Setting {
        host,
        setting,
        at: at(when),
    };
    let gap = Some(std::time::Duration::from_secs(3));
    index
        .apply([
            set(HostSetting::Blocked(true), 5),
            set(HostSetting::Blocked(true), 6),
            set(HostSetting::Gap(gap), 7),
        ])
        .unwrap();
    drop(index);
    let mut index = open(dir.path());
    let record = index.host(host).unwrap();
    assert_eq!((record.blocked, record.gap), (Some(at(5)), gap));
    assert_eq!(
        names(&index.candidates(&want(10), at(8)).unwrap()),
        ["http://b/1"]
    );
    assert_eq!(index.next_chance(at(8)), None, "no time will free it");
    index
        .apply([
            set(HostSetting::Blocked(false), 9),
            set(HostSetting::Gap(None), 9),
        ])
        .unwrap();
    let record = index.host(host).unwrap();
    assert_eq!((record.blocked, record.gap), (None, None));
    assert_eq!(
        names(&index.candidates(&want(10), at(10)).unwrap()),
        ["http://a/1"]
    );
    sound(&index);
}

fn seed(text: &str) -> NewLink {
    let mut new = link(text, 0);
    new.link.kind = LinkKind::Seed;
    new.link.priority = 0;
    new
}

#[test]
fn a_refused_url_that_is_named_as_a_seed_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([
            links(vec![
                refused("http://a/1", "out of scope"),
                link("http://a/2", 1),
            ]),
            done("http://a/2", report(OutcomeClass::Success), vec![]),
            links(vec![seed("http://a/1"), seed("http://a/2")]),
        ])
        .unwrap();
    assert_eq!(
        (index.ledger().queued, index.ledger().column(Column::Done)),
        (1, 1),
        "what was fetched is not fetched again"
    );
    sound(&index);
    assert_eq!(
        names(&index.candidates(&want(10), at(3)).unwrap()),
        ["http://a/1"]
    );
    let seeds: Vec<_> = index.reader().seeds().map(Result::unwrap).collect();
    assert_eq!(seeds, [url("http://a/1"), url("http://a/2")]);
    sound(&index);
}

#[test]
fn a_host_that_must_wait_is_not_offered_before_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![link("http://a/1", 0), link("http://b/1", 0)])])
        .unwrap();
    assert_eq!(index.candidates(&want(10), at(1)).unwrap().len(), 2);
    let host = key("http://a/1").host;
    index
        .apply([
            Event::Return {
                keys: vec![key("http://a/1"), key("http://unknown/")],
            },
            Event::Host {
                host,
                not_before: at(500),
            },
        ])
        .unwrap();
    drop(index);
    let mut index = open(dir.path());
    index
        .apply([done("http://b/1", report(OutcomeClass::Success), vec![])])
        .unwrap();
    assert!(index.candidates(&want(10), at(499)).unwrap().is_empty());
    assert_eq!(index.next_chance(at(499)), Some(at(500)));
    assert_eq!(
        names(&index.candidates(&want(10), at(500)).unwrap()),
        ["http://a/1"]
    );
    sound(&index);
}

#[test]
fn a_wait_that_grows_while_a_host_is_put_off_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let wait = |url: &str, end: u64| Event::Host {
        host: key(url).host,
        not_before: at(end),
    };
    let (a, b) = ("http://a/1", "http://b/1");
    index.apply([links(vec![link(a, 0), link(b, 0)])]).unwrap();
    index.apply([wait(a, 500), wait(b, 700)]).unwrap();
    assert!(index.candidates(&want(10), at(1)).unwrap().is_empty());
    index
        .apply([wait(a, 900), links(vec![link("http://a/2", 0)])])
        .unwrap();
    assert!(index.candidates(&want(10), at(600)).unwrap().is_empty());
    assert_eq!(index.next_chance(at(600)), Some(at(700)));
    assert_eq!(names(&index.candidates(&want(10), at(700)).unwrap()), [b]);
    assert_eq!(index.next_chance(at(700)), Some(at(900)));
    assert_eq!(index.candidates(&want(10), at(900)).unwrap().len(), 2);
    sound(&index);
}

#[test]
fn a_refused_link_is_recorded_and_never_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![refused("http://b/1", "out of scope")])])
        .unwrap();
    assert!(index.candidates(&want(10), at(3)).unwrap().is_empty());
    assert_eq!(index.ledger().column(Column::Refused), 1);
    let entry = index.reader().entries().next().unwrap().unwrap();
    assert_eq!(entry.fate.unwrap().report.outcome.reason, "out of scope");
    sound(&index);
}

#[test]
fn a_host_gets_its_budget_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open_with(
        dir.path(),
        IndexOptions {
            seed: SEED,
            budgets: pages(3),
            ..IndexOptions::default()
        },
    );
    index
        .apply([links(
            (0..6).map(|n| link(&format!("http://a/{n}"), 0)).collect(),
        )])
        .unwrap();
    assert_eq!(index.candidates(&want(10), at(2)).unwrap().len(), 3);
    assert!(
        index.candidates(&want(10), at(2)).unwrap().is_empty(),
        "the rest of the budget is lent"
    );
    let unasked = Report {
        ip: None,
        ..report(OutcomeClass::DeniedRobots)
    };
    index.apply([done("http://a/0", unasked, vec![])]).unwrap();
    assert_eq!(
        index.candidates(&want(10), at(2)).unwrap().len(),
        1,
        "robots.txt gave one back"
    );
    for n in 1..4 {
        index
            .apply([done(
                &format!("http://a/{n}"),
                report(OutcomeClass::Success),
                vec![],
            )])
            .unwrap();
    }
    assert!(index.candidates(&want(10), at(2)).unwrap().is_empty());
    assert_eq!(index.ledger().class(OutcomeClass::DeniedPolicy), 2);
    index.apply([links(vec![link("http://a/new", 0)])]).unwrap();
    assert_eq!(index.ledger().class(OutcomeClass::DeniedPolicy), 3);
    assert_eq!(index.ledger().queued, 0);
    sound(&index);
}

/// A server that fails makes URLs wait for a repetition; that must not make room for others.
#[test]
fn a_page_budget_counts_urls_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open_with(
        dir.path(),
        IndexOptions {
            seed: SEED,
            budgets: pages(5),
            ..IndexOptions::default()
        },
    );
    let all = (0..50).map(|n| link(&format!("http://a/{n}"), 1)).collect();
    index.apply([links(all)]).unwrap();
    let mut asked = BTreeMap::new();
    for round in 0..20u64 {
        let now = at(round * 100);
        for candidate in index.candidates(&want(3), now).unwrap() {
            let attempts = asked.entry(candidate.url.to_string()).or_insert(0);
            *attempts += 1;
            let mut report = report(OutcomeClass::Deferred);
            // The first time no address is found, which is no request.
            report.ip = report.ip.filter(|_| round > 0);
            let event = match *attempts {
                1 | 2 => Event::Retry {
                    key: candidate.key,
                    report,
                    due: at(round * 100 + 150),
                    archived: None,
                },
                _ => done(
                    candidate.url.as_str(),
                    Report {
                        outcome: Outcome::plain(OutcomeClass::HttpError),
                        ..report
                    },
                    vec![],
                ),
            };
            index.apply([event]).unwrap();
        }
        sound(&index);
    }
    assert_eq!(index.host(key("http://a/0").host).unwrap().asked, 5);
    // Three that had no address in the first round were not asked then.
    let requested = asked.len();
    assert!((5..=8).contains(&requested), "{asked:?}");
    assert_eq!(index.ledger().queued, 0);
    assert_eq!(index.ledger().class(OutcomeClass::HttpError), 5);
}

#[test]
fn a_chain_of_redirects_that_was_begun_goes_on_though_the_pages_are_used_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open_with(
        dir.path(),
        IndexOptions {
            seed: SEED,
            budgets: pages(1),
            ..IndexOptions::default()
        },
    );
    index
        .apply([links(vec![
            link("http://a/1", 0),
            link("http://a/other", 0),
        ])])
        .unwrap();
    let mut chain = Vec::new();
    for n in 1..4 {
        let found = index.candidates(&want(10), at(2)).unwrap();
        assert_eq!(found.len(), 1, "hop {n}");
        let (from, to) = (format!("http://a/{n}"), format!("http://a/{}", n + 1));
        assert_eq!(found[0].url.as_str(), from);
        chain.push(from.clone());
        let before: Vec<&str> = chain.iter().map(String::as_str).collect();
        let hop = redirect(&to, &before);
        index
            .apply([done(&from, redirects_to(&to), vec![hop])])
            .unwrap();
    }
    assert_eq!(
        class_of(&index, "http://a/1"),
        OutcomeClass::RedirectFollowed
    );
    assert_eq!(
        class_of(&index, "http://a/other"),
        OutcomeClass::DeniedPolicy
    );
    sound(&index);
}

#[test]
fn a_loop_of_redirects_is_seen_whichever_end_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![
            link("http://a/a", 0),
            link("http://a/b", 0),
            link("http://a/self", 0),
        ])])
        .unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    index
        .apply([done("http://a/a", redirects_to("http://a/b"), vec![])])
        .unwrap();
    assert_eq!(
        class_of(&index, "http://a/a"),
        OutcomeClass::RedirectFollowed
    );
    index
        .apply([done("http://a/b", redirects_to("http://a/a"), vec![])])
        .unwrap();
    index
        .apply([done("http://a/self", redirects_to("http://a/self"), vec![])])
        .unwrap();
    for text in ["http://a/a", "http://a/b", "http://a/self"] {
        assert_eq!(
            class_of(&index, text),
            OutcomeClass::RedirectLimit,
            "{text}"
        );
    }
    sound(&index);
}

#[test]
fn a_redirect_to_what_is_refused_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    index
        .apply([links(vec![
            link("http://a/1", 0),
            refused("http://b/known", "out of scope"),
            link("http://a/2", 0),
        ])])
        .unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    index
        .apply([done("http://a/1", redirects_to("http://b/known"), vec![])])
        .unwrap();
    assert_eq!(
        class_of(&index, "http://a/1"),
        OutcomeClass::RedirectRefused
    );
    let hop = redirect("http://a/3", &["http://a/2"]);
    index
        .apply([done("http://a/2", redirects_to("http://a/3"), vec![hop])])
        .unwrap();
    assert_eq!(
        class_of(&index, "http://a/2"),
        OutcomeClass::RedirectFollowed
    );
    assert_eq!(
        index.candidates(&want(10), at(2)).unwrap()[0].chain,
        [key("http://a/2")]
    );
    index
        .apply([done(
            "http://a/3",
            report(OutcomeClass::DeniedPolicy),
            vec![],
        )])
        .unwrap();
    assert_eq!(
        class_of(&index, "http://a/2"),
        OutcomeClass::RedirectRefused
    );
    sound(&index);
}

#[test]
fn a_second_owner_is_told_that_the_directory_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let _index = open(dir.path());
    let Err(error) = Reader::open(dir.path(), 1 << 20) else {
        panic!("opened twice")
    };
    assert!(
        error.to_string().contains("in use by another process"),
        "{error}"
    );
}

/// What may happen to an index, with small numbers so that URLs meet.
#[derive(Clone, Debug)]
enum Step {
    Found(Vec<u8>),
    Claim(usize),
    Finish(u8, Vec<u8>),
    Redirect(u8, u8),
    PutOff(u8),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..40u8;
    prop_oneof![
        prop::collection::vec(page.clone(), 1..6).prop_map(Step::Found),
        (1..8usize).prop_map(Step::Claim),
        (page.clone(), prop::collection::vec(page.clone(), 0..6))
            .prop_map(|(p, l)| Step::Finish(p, l)),
        (page.clone(), page.clone()).prop_map(|(p, t)| Step::Redirect(p, t)),
        page.prop_map(Step::PutOff),
        Just(Step::Restart),
    ]
}

fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

fn page(n: u8) -> String {
    format!("http://h{}/{n}", n % 3)
}

proptest! {
    // Each case opens stores again and again, which syncs; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: the ledger balances, nothing is lost, nothing is handed out
    /// while it is claimed, and a fold of the same events by another index gives the same records.
    #[test]
    fn any_history_is_sound(steps in prop::collection::vec(step(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut index = open(dir.path());
        let mut events = Vec::new();
        let mut out: BTreeMap<String, u8> = BTreeMap::new();
        for (n, step) in steps.into_iter().enumerate() {
            let now = at(n as u64 * 10);
            let event = match step {
                Step::Found(list) => links(list.iter().map(|n| link(&page(*n), 1)).collect()),
                Step::Claim(most) => {
                    for candidate in index.candidates(&want(most), now).unwrap() {
                        let name = candidate.url.to_string();
                        prop_assert_eq!(out.insert(name, candidate.attempts), None, "handed out twice");
                    }
                    sound(&index);
                    continue;
                }
                Step::Finish(n, list) => {
                    out.remove(&page(n));
                    {
                        let links = list.iter().map(|n| link(&page(*n), 2)).collect();
                        let mut event = done(&page(n), report(OutcomeClass::Success), links);
                        if let Event::Done { revisit, .. } = &mut event {
                            *revisit = visited(1, Some(at(now.as_millis() + 70)));
                        }
                        event
                    }
                }
                Step::Redirect(n, to) => {
                    out.remove(&page(n));
                    done(&page(n), redirects_to(&page(to)), vec![redirect(&page(to), &[&page(n)])])
                }
                Step::PutOff(n) => {
                    if out.remove(&page(n)).is_none() { continue; }
                    Event::Retry { key: key(&page(n)), report: report(OutcomeClass::Deferred), due: at(now.as_millis() + 50), archived: None, }
                }
                Step::Restart => {
                    drop(index);
                    index = open(dir.path());
                    out.clear();
                    sound(&index);
                    continue;
                }
            };
            events.push(event.clone());
            index.apply([event]).unwrap();
            prop_assert!(index.ledger().balances());
        }
        sound(&index);
    }
}
