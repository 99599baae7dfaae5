//! Hosts whose addresses are several, of the newer kind, or others than before.

use super::*;

/// One request at a time and per second to an address, hosts without a limit of their own.
fn by_address() -> UrlServerOptions {
    UrlServerOptions {
        queue_count: 10,
        ip_concurrent: 1,
        ip_per_sec: 1.0,
        ..quick()
    }
}

fn found(addresses: &[&str], seconds: u64) -> Result<Resolved, Outcome> {
    Ok(Resolved {
        addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
        ttl: Duration::from_secs(seconds),
    })
}

/// A rig whose resolver the test plays itself.
fn rig(hosts: &[(&str, &str)]) -> Rig {
    let mut rig = Rig::new(by_address());
    rig.addresses = None;
    for (host, ip) in hosts {
        rig.free(&[&format!("http://{host}")]);
        rig.give(&[&format!("http://{host}/1"), &format!("http://{host}/2")]);
        rig.heart.resolved(host, found(&[ip], 100), rig.now);
        rig.collect();
    }
    rig
}

#[test]
fn a_host_that_moves_in_line_goes_by_the_limits_of_its_new_address() {
    let mut rig = rig(&[("a", "10.0.0.1"), ("b", "10.0.0.1"), ("c", "10.0.0.2")]);
    let of_a = rig.order("http://a/1");
    let of_c = rig.order("http://c/1");
    rig.none_out();
    // b waits behind a for the first address, and moves to that of c, which is busy too.
    rig.heart.resolved("b", found(&["10.0.0.2"], 100), rig.now);
    rig.none_out();
    rig.done(&of_a);
    rig.pass(1001);
    assert_eq!(rig.order("http://a/2").ip.to_string(), "10.0.0.1");
    rig.none_out();
    rig.done(&of_c);
    rig.pass(1000);
    rig.none_out();
    rig.pass(1);
    assert_eq!(rig.order("http://b/1").ip.to_string(), "10.0.0.2");
    rig.none_out();
}

#[test]
fn what_is_out_counts_where_it_was_sent() {
    let mut rig = rig(&[("a", "10.0.0.1"), ("b", "10.0.0.1")]);
    let of_a = rig.order("http://a/1");
    rig.heart.resolved("a", found(&["10.0.0.9"], 100), rig.now);
    rig.pass(5000);
    rig.none_out();
    rig.done(&of_a);
    // The host goes on at its new address at once, the old one keeps its gap.
    assert_eq!(rig.order("http://a/2").ip.to_string(), "10.0.0.9");
    rig.pass(1000);
    rig.none_out();
    rig.pass(1);
    assert_eq!(rig.order("http://b/1").ip.to_string(), "10.0.0.1");
}

#[test]
fn addresses_that_expire_in_line_are_asked_for_again() {
    let mut rig = rig(&[("a", "10.0.0.1"), ("b", "10.0.0.1")]);
    let of_a = rig.order("http://a/1");
    rig.questions.clear();
    rig.pass(101_000);
    rig.done(&of_a);
    rig.pass(1001);
    rig.none_out();
    rig.questions.sort();
    assert_eq!(rig.questions, ["a", "b"]);
    rig.heart.resolved("b", found(&["10.0.0.3"], 100), rig.now);
    rig.collect();
    assert_eq!(rig.order("http://b/1").ip.to_string(), "10.0.0.3");
}

#[test]
fn the_newer_addresses_have_limits_too_and_mix_with_the_older() {
    let mut rig = rig(&[
        ("a", "2001:db8::1"),
        ("b", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
    ]);
    let order = rig.order("http://a/1");
    rig.none_out();
    let refused = Done {
        sent: None,
        first_byte: None,
        ended: rig.now,
        connect_failed: true,
        failed: true,
        robots: None,
    };
    let both = found(&["2001:db8::1", "10.0.0.1"], 100);
    rig.heart.resolved("a", both, rig.now);
    rig.heart.done(order.trans, refused, rig.now);
    rig.collect();
    assert_eq!(
        rig.order("http://a/2").ip.to_string(),
        "10.0.0.1",
        "the other one"
    );
    rig.pass(1001);
    assert_eq!(rig.order("http://b/1").ip.to_string(), "2001:db8::1");
    rig.none_out();
}

#[test]
fn time_that_jumps_or_stands_still_sends_nothing_early() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2", "http://a/3"]);
    let order = rig.order("http://a/1");
    rig.done(&order);
    for _ in 0..1000 {
        rig.pass(0);
    }
    rig.none_out();
    // Hours later, and the request of the next one was written before they passed: nothing proves that its
    // server has seen it before the end, which is now.
    rig.pass(3_000_000);
    let order = rig.order("http://a/2");
    let written = rig.now;
    rig.now = rig.now.after(Duration::from_secs(7200));
    rig.heart.sent(order.trans, written, rig.now);
    rig.none_out();
    let done = Done {
        sent: Some(written),
        first_byte: None,
        ended: rig.now,
        connect_failed: false,
        failed: false,
        robots: None,
    };
    rig.heart.done(order.trans, done, rig.now);
    rig.pass(1000);
    rig.none_out();
    rig.pass(1);
    rig.robots("http://a", server_error());
    rig.none_out();
    // And to the end of time.
    rig.heart.tick(Timestamp::from_millis(u64::MAX));
    rig.give(&["http://b/1"]);
}

/// One machine under three addresses is asked as one, and is connected to at the address that was found.
#[test]
fn an_address_in_another_spelling_is_the_same_machine() {
    let mut rig = rig(&[
        ("a", "192.0.2.1"),
        ("b", "::ffff:192.0.2.1"),
        ("c", "64:ff9b::192.0.2.1"),
    ]);
    let mut addresses = Vec::new();
    for url in ["http://a/1", "http://b/1", "http://c/1"] {
        let order = rig.order(url);
        rig.none_out();
        addresses.push(order.ip.to_string());
        rig.done(&order);
        rig.pass(1001);
    }
    assert_eq!(addresses, ["192.0.2.1", "192.0.2.1", "64:ff9b::c000:201"]);
}
