//! Long robots.txt files and many URLs that they deny: whoever has them pays for them.

use super::*;

fn fetched(body: String) -> RobotsAnswer {
    RobotsAnswer::Fetched {
        status: 200,
        body: body.into_bytes(),
        expires: None,
    }
}

/// A host with thousands of URLs that it denies, and one with nothing to deny.
#[test]
fn nobody_waits_for_the_refusals_of_another() {
    let mut rig = Rig::new(UrlServerOptions {
        queue_len: 4000,
        ..quick()
    });
    let denied: Vec<String> = (0..3000).map(|n| format!("http://a/no/{n}")).collect();
    let denied: Vec<&str> = denied.iter().map(String::as_str).collect();
    rig.give(&denied);
    rig.robots("http://a", fetched("User-agent: *\nDisallow: /no\n".into()));
    rig.free(&["http://b"]);
    let (mut calls, mut most, mut pages) = (0, 0, 0);
    while rig.heart.census().queued > 0 {
        let before = rig.refusals().len();
        rig.give(&[&format!("http://b/{calls}")]);
        let order = rig.orders.pop_front().unwrap();
        rig.done(&order);
        pages += u32::from(order.url().host() == "b");
        most = most.max(rig.refusals().len() - before);
        rig.pass(1);
        most = most.max(rig.refusals().len() - before);
        calls += 1;
    }
    assert_eq!(rig.refusals().len(), 3000);
    assert_eq!(pages, calls, "the other host is served at every step");
    assert!(most <= 128, "{most} refusals in one step");
    assert!(calls > 3000 / 128 && rig.heart.census().hosts == 0);
}

/// Rules that are costly to ask, whatever is done: each piece of theirs is in every target, and all of them have to be
/// tried. Such verdicts are given in turn, also when they allow.
#[test]
fn costly_rules_are_paid_for_by_their_host() {
    let mut body = String::from("User-agent: *\n");
    for n in 0..20_000u32 {
        let star = |bit: u32| if n >> bit & 1 == 1 { "*a" } else { "*b" };
        let pattern: String = (0..15).map(star).collect();
        body.push_str(&format!("Disallow: /{pattern}*c\n"));
    }
    let mut rig = Rig::new(UrlServerOptions {
        queue_len: 100,
        ..quick()
    });
    let urls: Vec<String> = (0..50).map(|n| format!("http://a/cabababab{n}")).collect();
    rig.give(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    rig.robots("http://a", fetched(body));
    rig.free(&["http://b"]);
    let first = rig.orders.pop_front().unwrap();
    rig.done(&first);
    // The next one of this host takes its turn, and before that any number of the other.
    for n in 0..20 {
        let url = format!("http://b/{n}");
        rig.give(&[&url]);
        let order = rig.order(&url);
        rig.done(&order);
    }
    rig.none_out();
    let mut passed = 0;
    while rig.orders.is_empty() {
        rig.pass(1);
        passed += 1;
        assert!(passed < 1000, "it is never the turn of the first host");
    }
    assert_eq!(rig.orders[0].url().host(), "a");
}

/// When rules take too much memory, the longest ones go, not those that come last.
#[test]
fn short_rules_stay_when_long_ones_have_to_go() {
    let long = |n: usize| {
        let mut body = String::from("User-agent: *\n");
        for line in 0..4000 + n {
            body.push_str(&format!("Disallow: /long/{line:08}\n"));
        }
        body
    };
    let mut short = String::from("User-agent: *\nDisallow: /no\n");
    for line in 0..200 {
        short.push_str(&format!("Disallow: /short/{line:08}\n"));
    }
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 50,
        queue_len: 8,
        rest_bytes: 4 * long(0).len(),
        ..quick()
    });
    for n in 0..10 {
        let origin = format!("http://long{n}");
        rig.give(&[&format!("{origin}/1"), &format!("{origin}/2")]);
        rig.robots(&origin, fetched(long(n)));
        rig.order(&format!("{origin}/1"));
    }
    for n in 0..10 {
        let origin = format!("http://short{n}");
        rig.give(&[
            &format!("{origin}/1"),
            &format!("{origin}/no"),
            &format!("{origin}/2"),
        ]);
        rig.robots(&origin, fetched(short.clone()));
        let order = rig.order(&format!("{origin}/1"));
        rig.done(&order);
        rig.order(&format!("{origin}/2"));
    }
    let wanted = rig.notices.iter().any(
        |notice| matches!(notice, Notice::RecallRobots { origin } if origin.contains("short")),
    );
    assert!(!wanted, "short rules had to go");
    assert_eq!(rig.refusals().len(), 10);
    assert!(rig.heart.slots.rules() <= rig.heart.options.rules_bytes());
}

/// Files that were given up for their size come back a few at a time, and not faster than they can be read.
#[test]
fn long_files_are_recalled_at_a_bounded_rate() {
    let mut body = String::from("User-agent: *\n");
    for line in 0..4000 {
        body.push_str(&format!("Disallow: /long/{line:08}\n"));
    }
    let mut rig = Rig::new(UrlServerOptions {
        queue_count: 50,
        queue_len: 8,
        in_flight: 50,
        rest_bytes: body.len() / 4,
        ..quick()
    });
    for n in 0..20 {
        let origin = format!("http://h{n}");
        rig.give(&[&format!("{origin}/1")]);
        rig.robots(&origin, fetched(body.clone()));
        rig.order(&format!("{origin}/1"));
        rig.give(&[&format!("{origin}/2")]);
    }
    let record = RobotsRecord {
        fetched: rig.now,
        expires: rig.now.after(Duration::from_secs(3600)),
        status: 200,
        body: body.clone().into_bytes(),
    };
    let (mut answered, mut steps) = (0, 0);
    while answered < 20 {
        rig.collect();
        let mut wanted = Vec::new();
        rig.notices.retain(|notice| match notice {
            Notice::RecallRobots { origin } => {
                wanted.push(origin.clone());
                false
            }
            _ => true,
        });
        assert!(wanted.len() <= 4, "{} at once", wanted.len());
        for origin in wanted {
            rig.heart
                .known_robots(&origin, Some(record.clone()), rig.now);
            answered += 1;
        }
        rig.pass(1);
        steps += 1;
        assert!(steps < 10_000, "{answered} answered");
    }
    // A tenth of a millisecond for each kilobyte.
    assert!(steps >= 16 * body.len() / 10_000, "{steps} milliseconds");
}
