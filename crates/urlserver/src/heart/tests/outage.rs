//! A robots.txt that cannot be had: who waits for it and how long, and who gets another chance when.

use super::*;

const DAY: u64 = 86_400_000;

/// The URLs that were refused, and when they deserve another chance, in milliseconds from now.
fn chances(rig: &mut Rig) -> Vec<(String, u64)> {
    let now = rig.now;
    rig.notices
        .drain(..)
        .filter_map(|notice| match notice {
            Notice::Refuse {
                candidate,
                again: Some(again),
                ..
            } => Some((
                candidate.url.to_string(),
                again.since(now).as_millis() as u64,
            )),
            _ => None,
        })
        .collect()
}

/// Within a quarter, which hosts come back earlier or later by.
fn about(millis: u64, pause: u64) -> bool {
    (pause..=pause + pause / 4).contains(&millis)
}

/// The robots.txt is asked for five times in vain; gives the URLs that are refused then.
fn fail(rig: &mut Rig, origin: &str) -> Vec<(String, u64)> {
    for pause in [2000, 6000, 15_000, 30_000] {
        rig.robots(origin, server_error());
        rig.pass(pause - 1);
        rig.none_out();
        rig.pass(pause / 4 + 1);
    }
    rig.notices.clear();
    rig.robots(origin, server_error());
    rig.none_out();
    chances(rig)
}

#[test]
fn a_robots_txt_that_cannot_be_had_is_asked_for_five_times_and_then_denies() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 3,
        ..quick()
    });
    rig.give(&["http://a/1", "http://a/2", "http://b/1"]);
    rig.robots("http://a", server_error());
    // Nobody else waits.
    rig.no_robots("http://b");
    rig.order("http://b/1");
    for pause in [2000, 6000, 15_000] {
        rig.pass(pause - 1);
        rig.none_out();
        rig.pass(pause / 4 + 1);
        rig.robots("http://a", server_error());
    }
    rig.pass(29_999);
    rig.none_out();
    assert!(rig.refusals().is_empty(), "they wait");
    rig.pass(7501);
    rig.robots("http://a", server_error());
    let refusals = rig.refusals();
    assert_eq!(refusals.len(), 2);
    for (_, outcome) in refusals {
        assert_eq!(outcome.class, OutcomeClass::DeniedRobots);
        assert_eq!(outcome.reason, "robots.txt: status 503");
    }
    assert!(
        chances(&mut rig)
            .iter()
            .all(|(_, wait)| about(*wait, 600_000))
    );
    rig.give(&["http://a/3"]);
    rig.none_out();
    assert_eq!(rig.refusals().len(), 1, "the verdict holds for a while");
}

#[test]
fn a_robots_txt_that_comes_back_within_the_minute_costs_nothing() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1", "http://a/2"]);
    for pause in [2000, 6000, 15_000, 30_000] {
        rig.robots("http://a", server_error());
        rig.pass(pause + pause / 4);
    }
    rig.no_robots("http://a");
    let order = rig.order("http://a/1");
    rig.done(&order);
    rig.order("http://a/2");
    assert!(rig.refusals().is_empty());
}

#[test]
fn another_chance_comes_later_after_each_time_in_vain_and_every_day_at_last() {
    let mut rig = Rig::new(quick());
    let mut expected = 600_000;
    for round in 0..12 {
        rig.give(&["http://a/1"]);
        // The first time it is asked for five times, then once.
        let refused = match round {
            0 => fail(&mut rig, "http://a"),
            _ => {
                rig.notices.clear();
                rig.robots("http://a", server_error());
                rig.none_out();
                chances(&mut rig)
            }
        };
        let [(url, wait)] = refused.as_slice() else {
            panic!("{refused:?}");
        };
        assert_eq!(url, "http://a/1");
        assert!(about(*wait, expected), "round {round}: {wait} ms");
        expected = (expected * 2).min(DAY);
        rig.pass(*wait);
    }
    // Once it was had, patience begins anew.
    rig.give(&["http://a/1"]);
    rig.no_robots("http://a");
    let order = rig.order("http://a/1");
    rig.done(&order);
    rig.pass(DAY);
    rig.give(&["http://a/2"]);
    assert!(about(fail(&mut rig, "http://a")[0].1, 600_000));
}

#[test]
fn a_server_that_names_a_time_gets_it() {
    let busy = |seconds| RobotsAnswer::Unreachable {
        outcome: Outcome::because(OutcomeClass::DeniedRobots, "robots.txt: status 429"),
        wait: Some(Duration::from_secs(seconds)),
    };
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    rig.robots("http://a", busy(120));
    rig.pass(119_999);
    rig.none_out();
    rig.pass(1);
    // A short time does not make the pause shorter.
    rig.robots("http://a", busy(0));
    rig.pass(5999);
    rig.none_out();
    rig.pass(1501);
    // A long one is the time of the next chance, at most a day away.
    rig.notices.clear();
    rig.robots("http://a", busy(3600));
    assert_eq!(chances(&mut rig), [("http://a/1".into(), 3_600_000)]);
    rig.pass(3_600_000);
    rig.give(&["http://a/1"]);
    rig.notices.clear();
    rig.robots("http://a", busy(u64::MAX));
    assert_eq!(chances(&mut rig), [("http://a/1".into(), DAY)]);
}

#[test]
fn a_robots_txt_that_moved_to_a_host_that_asks_for_patience_gets_as_much() {
    let mut rig = Rig::new(quick());
    let hour = rig.now.after(Duration::from_secs(3600));
    rig.heart.hold("b", hour, rig.now);
    rig.give(&["http://a/1"]);
    rig.notices.clear();
    rig.robots("http://a", moved(Some("http://b/robots.txt")));
    rig.none_out();
    assert_eq!(chances(&mut rig), [("http://a/1".into(), 3_600_000)]);
    // A short time is waited for.
    let mut rig = Rig::new(quick());
    let minute = rig.now.after(Duration::from_secs(60));
    rig.heart.hold("b", minute, rig.now);
    rig.give(&["http://a/1"]);
    rig.robots("http://a", moved(Some("http://b/robots.txt")));
    rig.pass(59_999);
    rig.none_out();
    rig.pass(1);
    let order = rig.order("http://b/robots.txt");
    rig.done_with(&order, Some(RobotsAnswer::Unavailable { status: 404 }));
    rig.order("http://a/1");
}

#[test]
fn when_the_host_itself_is_unreachable_its_urls_fail_as_it_did() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    let refused = Outcome::because(OutcomeClass::FailedConnect, "connection refused");
    for _ in 0..5 {
        rig.robots("http://a", RobotsAnswer::unreachable(&refused));
        rig.pass(60_000);
    }
    let expected = Outcome::because(
        OutcomeClass::FailedConnect,
        "robots.txt: connection refused",
    );
    assert_eq!(rig.refusals(), vec![("http://a/1".into(), expected)]);
}

#[test]
fn a_host_that_only_waits_makes_way_when_every_queue_is_taken() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1", "http://a/2", "http://b/1", "http://c/1"]);
    rig.notices.clear();
    rig.robots("http://a", server_error());
    let returned = rig.notices.iter().find_map(|notice| match notice {
        Notice::Return { candidates, until } => Some((candidates.len(), *until)),
        _ => None,
    });
    let (urls, until) = returned.unwrap();
    assert_eq!(urls, 2);
    let until = until.unwrap();
    assert!(about(until.since(rig.now).as_millis() as u64, 2000));
    rig.no_robots("http://b");
    rig.no_robots("http://c");
    let order = rig.order("http://b/1");
    rig.done(&order);
    let order = rig.order("http://c/1");
    rig.done(&order);
    // It comes back when the time has come, and what was tried before counts.
    rig.pass(2500);
    rig.give(&["http://a/1"]);
    rig.robots("http://a", server_error());
    rig.pass(5999);
    rig.none_out();
    rig.pass(1501);
    rig.order("http://a/robots.txt");
}
