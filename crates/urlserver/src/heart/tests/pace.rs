//! Gaps that follow what a host does and says.

use super::*;

/// A rig with one host at a request a second, and an order of it.
fn rig() -> (Rig, Order) {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        slow_factor: 2.0,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2", "http://a/3", "http://a/4"]);
    let order = rig.order("http://a/1");
    (rig, order)
}

/// The order ends so long after its request was written, which is now.
fn end(rig: &mut Rig, order: &Order, response: Option<u64>) {
    let sent = rig.now;
    rig.heart.sent(order.trans, sent, rig.now);
    rig.now = sent.after(Duration::from_millis(response.unwrap_or_default()));
    let done = Done {
        sent: Some(sent),
        first_byte: response.map(|_| rig.now),
        ended: rig.now,
        connect_failed: false,
        failed: response.is_none(),
        robots: None,
    };
    rig.heart.done(order.trans, done, rig.now);
    rig.collect();
}

/// The next order goes out this long after the last one was written, and not before.
fn next_after(rig: &mut Rig, since: Timestamp, millis: u64) -> Order {
    let at = since.as_millis() + millis;
    rig.pass(at - 1 - rig.now.as_millis());
    rig.none_out();
    rig.pass(1);
    rig.orders.pop_front().unwrap()
}

#[test]
fn a_failing_host_is_asked_less_and_a_host_that_answers_again_is_asked_as_before() {
    let (mut rig, order) = rig();
    let start = rig.now;
    end(&mut rig, &order, None);
    let order = next_after(&mut rig, start, 2000 + 1);
    let start = rig.now;
    end(&mut rig, &order, None);
    let order = next_after(&mut rig, start, 4000 + 1);
    let start = rig.now;
    end(&mut rig, &order, Some(10));
    next_after(&mut rig, start, 10 + 2000 + 1);
}

#[test]
fn a_slow_host_is_asked_less() {
    let (mut rig, order) = rig();
    let start = rig.now;
    end(&mut rig, &order, Some(3000));
    next_after(&mut rig, start, 3000 + 6000 + 1);
}

fn know(rig: &mut Rig, host: &str, response: u32, strikes: u8) {
    let pace = Pace { response, strikes };
    rig.heart.known_paces(&[(host.into(), pace)], rig.now);
}

#[test]
fn what_an_earlier_process_had_learnt_counts_until_this_one_knows_better() {
    let (mut rig, order) = rig();
    // Too late: this process has begun to learn by itself.
    let start = rig.now;
    end(&mut rig, &order, Some(10));
    know(&mut rig, "a", 3000, 5);
    rig.collect();
    next_after(&mut rig, start, 10 + 1000 + 1);

    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        slow_factor: 2.0,
        resumed: true,
        ..quick()
    });
    let start = rig.now;
    know(&mut rig, "a", 3000, 0);
    know(&mut rig, "b", 10, 5);
    rig.free(&["http://a", "http://b"]);
    rig.give(&["http://a/1", "http://b/1", "http://b/2"]);
    // The process before may have asked just before it died, and that takes a moment to arrive.
    let order = next_after(&mut rig, start, 250 + 6000 + 1);
    assert_eq!(order.url().host(), "a");
    let order = next_after(&mut rig, start, 250 + 32_000 + 1);
    assert_eq!(order.url().host(), "b");
    let start = rig.now;
    end(&mut rig, &order, Some(10));
    next_after(&mut rig, start, 10 + 4000 + 1);
}

#[test]
fn without_a_limit_there_is_no_slowing_down() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2"]);
    let order = rig.order("http://a/1");
    end(&mut rig, &order, None);
    rig.order("http://a/2");
}

#[test]
fn a_crawl_delay_beyond_the_cap_is_capped_and_said_so() {
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    rig.robots("http://a", fetched("User-agent: *\nCrawl-delay: 5000\n"));
    let capped = Notice::DelayCapped {
        origin: "http://a".into(),
        asked: Duration::from_secs(5000),
        kept: Duration::from_secs(300),
    };
    assert_eq!(rig.notices.iter().filter(|n| **n == capped).count(), 1);
    rig.pass(300_000);
    rig.none_out();
    rig.pass(1);
    rig.order("http://a/1");
    let mut rig = Rig::new(quick());
    rig.give(&["http://a/1"]);
    rig.robots("http://a", fetched("User-agent: *\nCrawl-delay: 300\n"));
    let said = |notice: &Notice| matches!(notice, Notice::DelayCapped { .. });
    assert!(!rig.notices.iter().any(said));
}
