//! What a page costs the server. By hand, for it says something only on a quiet machine:
//! `cargo test -p orbweaver-simweb cost -- --ignored --nocapture`.

use std::thread;

use orbweaver_simweb::{SimConfig, SimWeb};

use crate::client::Client;

const CLIENTS: u32 = 4;
const PAGES: u32 = 10_000;

/// CPU time of the server's threads so far, in microseconds.
fn server_micros() -> u64 {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| task.unwrap().path())
        .filter(|task| std::fs::read_to_string(task.join("comm")).unwrap() == "simweb\n")
        .map(|task| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
            // User and system time in ticks of a hundredth of a second.
            (fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()) * 10_000
        })
        .sum()
}

fn measure(fields: &'static str) {
    let web = SimWeb::start(SimConfig {
        hosts: CLIENTS,
        pages: PAGES,
        ..SimConfig::default()
    })
    .unwrap();
    let before = server_micros();
    thread::scope(|scope| {
        for host in 0..CLIENTS {
            let web = &web;
            scope.spawn(move || {
                let mut client = Client::for_url(&web.url(host, 0));
                for page in 0..PAGES {
                    client.ask(&web.url(host, page), fields);
                    assert_eq!(client.answer().unwrap().status, 200);
                }
            });
        }
    });
    let pages = u64::from(CLIENTS * PAGES);
    let micros = (server_micros() - before) as f64 / pages as f64;
    let bytes = web.stats().bytes_sent / pages;
    println!("{micros:.1} µs and {bytes} bytes a page ({fields:?})");
}

#[test]
#[ignore = "a measurement, not a test"]
fn cost_of_a_page() {
    measure("");
    measure("Accept-Encoding: gzip\r\n");
}
