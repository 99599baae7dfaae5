//! robots.txt files that the doc index has, and rules that take too much memory.

use super::*;

fn rules(origin: &str, count: usize) -> Vec<u8> {
    let mut text = format!("# {origin}\nUser-agent: *\nDisallow: /no\nCrawl-delay: 2\n");
    for n in 0..count {
        text.push_str(&format!("Disallow: /private/{n:08}/*.html$\n"));
    }
    text.into_bytes()
}

fn fetched(body: Vec<u8>) -> RobotsAnswer {
    RobotsAnswer::Fetched {
        status: 200,
        body,
        expires: None,
    }
}

/// The origins whose files are wanted back.
fn recalled(rig: &mut Rig) -> Vec<String> {
    rig.collect();
    let mut origins = Vec::new();
    rig.notices.retain(|notice| match notice {
        Notice::RecallRobots { origin } => {
            origins.push(origin.clone());
            false
        }
        _ => true,
    });
    origins
}

fn kept(rig: &Rig, body: Vec<u8>) -> Option<RobotsRecord> {
    Some(RobotsRecord {
        fetched: rig.now,
        expires: rig.now.after(Duration::from_secs(3600)),
        status: 200,
        body,
    })
}

fn answer(rig: &mut Rig, origin: &str, record: Option<RobotsRecord>) {
    rig.heart.known_robots(origin, record, rig.now);
    rig.collect();
}

#[test]
fn a_resumed_crawl_asks_the_doc_index_before_the_server() {
    let mut rig = Rig::new(UrlServerOptions {
        resumed: true,
        ..quick()
    });
    rig.pass(60_000);
    rig.give(&["http://a/no", "http://a/1", "http://b/1"]);
    rig.none_out();
    assert_eq!(recalled(&mut rig), ["http://a", "http://b"]);
    // More URLs wait with the first.
    rig.give(&["http://a/2"]);
    assert!(recalled(&mut rig).is_empty());
    let record = kept(&rig, rules("a", 0));
    answer(&mut rig, "http://a", record);
    rig.order("http://a/1");
    assert_eq!(rig.refusals().len(), 1);
    answer(&mut rig, "http://b", None);
    rig.no_robots("http://b");
    rig.order("http://b/1");
}

#[test]
fn an_answer_that_comes_when_nobody_waits_any_more_changes_nothing() {
    let mut rig = Rig::new(UrlServerOptions {
        resumed: true,
        ..quick()
    });
    rig.pass(60_000);
    rig.give(&["http://a/1"]);
    assert_eq!(recalled(&mut rig), ["http://a"]);
    assert_eq!(rig.heart.drain(rig.now).len(), 1);
    answer(&mut rig, "http://a", None);
    answer(&mut rig, "http://a", None);
    rig.none_out();
}

/// Of a thousand hosts with the largest files only some can be held; the others are judged when their rules are
/// at hand, and keep their Crawl-delay.
#[test]
fn rules_beyond_their_share_are_used_and_given_up() {
    let each = rules("x", 4000);
    let rest_bytes = 2 * each.len();
    let mut rig = Rig::new(UrlServerOptions {
        rest_bytes,
        queue_count: 50,
        queue_len: 8,
        in_flight: 50,
        ..quick()
    });
    let hosts: Vec<String> = (0..20).map(|n| format!("http://h{n}")).collect();
    for host in &hosts {
        rig.give(&[
            &format!("{host}/1"),
            &format!("{host}/no"),
            &format!("{host}/2"),
        ]);
    }
    for host in &hosts {
        let at = rig.orders.iter().position(|order| {
            order.purpose() == Purpose::Robots && order.url().origin() == host.as_str()
        });
        let order = rig.orders.remove(at.unwrap()).unwrap();
        rig.done_with(&order, Some(fetched(rules(host, 4000))));
    }
    assert!(rig.heart.slots.rules() <= rest_bytes / 2 + each.len());
    assert!(rig.refusals().len() >= 18, "most are denied at once");
    // Both pages of each go out without the rules, and not before their time.
    rig.pass(2001);
    let first: Vec<Order> = rig.orders.drain(..).collect();
    assert_eq!(first.len(), 20);
    first.iter().for_each(|order| rig.done(order));
    rig.pass(1999);
    rig.none_out();
    rig.pass(2);
    let second: Vec<Order> = rig.orders.drain(..).collect();
    assert_eq!(second.len(), 20);
    assert!(recalled(&mut rig).is_empty());
    // The next one of a host whose rules were given up has them back, for a moment.
    rig.give(&["http://h19/3", "http://h19/no"]);
    second.iter().for_each(|order| rig.done(order));
    assert_eq!(recalled(&mut rig), ["http://h19"]);
    rig.pass(2001);
    rig.none_out();
    let record = kept(&rig, rules("h19", 4000));
    answer(&mut rig, "http://h19", record);
    rig.order("http://h19/3");
    assert_eq!(rig.refusals().len(), 21);
    assert!(rig.heart.slots.rules() <= rest_bytes / 2 + each.len());
}

#[test]
fn a_host_that_was_forgotten_is_not_asked_for_its_robots_txt_again() {
    let mut rig = Rig::new(UrlServerOptions {
        rest_bytes: 1,
        ..quick()
    });
    for host in ["http://a", "http://b", "http://c"] {
        rig.give(&[&format!("{host}/1")]);
        rig.no_robots(host);
        let order = rig.order(&format!("{host}/1"));
        rig.done(&order);
        rig.pass(60_000);
    }
    rig.give(&["http://a/2"]);
    rig.none_out();
    let wanted = recalled(&mut rig);
    assert_eq!(wanted.last().map(String::as_str), Some("http://a"));
    let record = kept(&rig, Vec::new());
    answer(&mut rig, "http://a", record);
    rig.order("http://a/2");
}
