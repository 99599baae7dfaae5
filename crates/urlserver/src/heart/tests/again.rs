//! Orders that are sent again are requests like any other for their server.

use super::*;
use crate::heart::Resend;

/// Lets time pass until so many orders are out, each written as soon as it is made.
fn out(rig: &mut Rig, count: usize) -> Vec<Order> {
    let mut out = Vec::new();
    while out.len() < count {
        rig.pass(1);
        while let Some(order) = rig.orders.pop_front() {
            rig.heart.sent(order.trans, rig.now, rig.now);
            rig.collect();
            out.push(order);
        }
    }
    out
}

#[test]
fn orders_that_are_sent_again_keep_the_gap_and_go_before_new_ones() {
    for (window, lost) in [(1, 1), (4, 3)] {
        let mut rig = Rig::new(UrlServerOptions {
            host_per_sec: 1.0,
            host_concurrent: window,
            ..quick()
        });
        rig.free(&["http://a"]);
        rig.give(&["http://a/1", "http://a/2", "http://a/3", "http://a/4"]);
        let orders = out(&mut rig, lost);
        // Their spider is gone, and another one could take them at once.
        let mut times = vec![rig.now];
        let mut waiting: VecDeque<_> = orders.iter().map(|order| order.trans).collect();
        let mut names = Vec::new();
        while let Some(trans) = waiting.pop_front() {
            match rig.heart.resend(trans, rig.now) {
                Resend::Now(new) => {
                    assert_eq!(rig.heart.resend(trans, rig.now), Resend::Never);
                    times.push(rig.now);
                    names.push(new);
                    rig.heart.sent(new, rig.now, rig.now);
                    rig.collect();
                }
                Resend::At(at) => {
                    assert!(at > rig.now);
                    waiting.push_back(trans);
                    rig.pass(5);
                    rig.none_out();
                }
                Resend::Never => panic!("{trans:?} is not over"),
            }
        }
        assert_eq!(names.len(), lost);
        if window > 1 {
            out(&mut rig, 1);
            times.push(rig.now);
        }
        for pair in times.windows(2) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Duration::from_secs(1), "window {window}: {gap:?}");
        }
    }
}

#[test]
fn a_result_that_comes_while_its_order_is_lost_ends_it() {
    let mut rig = Rig::new(UrlServerOptions {
        host_per_sec: 1.0,
        host_concurrent: 2,
        ..quick()
    });
    rig.free(&["http://a"]);
    rig.give(&["http://a/1", "http://a/2"]);
    let orders = out(&mut rig, 1);
    assert!(matches!(
        rig.heart.resend(orders[0].trans, rig.now),
        Resend::At(_)
    ));
    rig.pass(700);
    rig.none_out();
    rig.done(&orders[0]);
    assert_eq!(rig.heart.resend(orders[0].trans, rig.now), Resend::Never);
    out(&mut rig, 1);
}

#[test]
fn without_a_gap_nothing_waits() {
    let mut rig = Rig::new(quick());
    rig.free(&["http://a"]);
    rig.give(&["http://a/1"]);
    let order = rig.order("http://a/1");
    assert!(matches!(
        rig.heart.resend(order.trans, rig.now),
        Resend::Now(_)
    ));
}
