//! A host that is in trouble is asked less, and a crash does not make the crawl forget it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::script::{Reply, Site};
use crate::support::{Place, start, until};

#[test]
fn a_host_that_failed_is_asked_as_seldom_after_a_kill() {
    let site = Site::start([3, 4, 1], |asked| {
        let is_robots = asked.target == "/robots.txt";
        (!is_robots).then(|| Reply::status(500))
    });
    let place = Place::new();
    let seeds: Vec<String> = (0..20).map(|n| site.url(&format!("/{n}"))).collect();
    let mut args: Vec<&str> = seeds.iter().map(String::as_str).collect();
    args.extend(["--rate", "20", "--per-host", "1"]);
    let running = start(place.crawl(&args));
    // The gap is a twentieth of a second and doubles with each failure. When the sixth goes out, five are over, and
    // the last of them may not be on disk yet.
    until("six requests", || site.pages().len() >= 6);
    running.signal(Signal::KILL);
    running.wait();
    let before = site.log().len();
    let began = Instant::now();
    let running = start(place.crawl(&args));
    until("another request", || site.log().len() > before);
    let waited = site.log()[before].at - began;
    assert!(waited >= Duration::from_millis(50 << 4), "{waited:?}");
    drop(running);
}
