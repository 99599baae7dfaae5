//! A week of crawling in virtual time, as large as wanted: the heart alone among hosts, addresses,
//! a doc index, a resolver and a spider made of random numbers. Every promise is checked at every step,
//! as the servers and the doc index see it. A failing run prints its seed, and the seed replays it.
//!
//! The large run is `cargo xtask sim-heart [HOSTS] [URLS] [SEED]`. Differently from `simulation.rs`, the
//! books here take a few bits per URL, and the process is restarted, gently and with violence.

mod books;
mod web;
mod world;

use std::time::Instant;

use orbweaver_urlserver::UrlServerOptions;

use self::world::{Plan, World};

fn run(plan: Plan) {
    let (hosts, urls, seed) = (plan.hosts, plan.urls, plan.seed);
    println!("seed {seed}: {hosts} hosts, {urls} URLs");
    let start = Instant::now();
    let mut world = World::new(plan);
    world.run();
    println!("{}", world.summary(start.elapsed()));
}

#[test]
fn twenty_thousand_hosts() {
    run(Plan {
        seed: 1,
        hosts: 20_000,
        urls: 200_000,
        restart_every: 300,
        options: UrlServerOptions {
            queue_count: 4096,
            queue_len: 8,
            in_flight: 1500,
            rest_bytes: 1 << 20,
            ..UrlServerOptions::default()
        },
    });
}

#[test]
fn few_queues_and_wide_windows() {
    for seed in 2..8 {
        run(Plan {
            seed,
            hosts: 400,
            urls: 6000,
            restart_every: 2000,
            options: UrlServerOptions {
                queue_count: 50 + seed as usize,
                queue_len: 3,
                host_concurrent: seed as u16 % 3 + 1,
                ip_concurrent: seed as u16 % 4 + 1,
                host_per_sec: 2.0,
                ip_per_sec: seed as f64 / 2.0,
                in_flight: 100,
                rest_bytes: 20_000,
                ..UrlServerOptions::default()
            },
        });
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
#[ignore = "takes minutes and gigabytes: cargo xtask sim-heart"]
fn a_week_of_a_million_hosts() {
    run(Plan {
        seed: number("ORBWEAVER_SIM_SEED", 1),
        hosts: number("ORBWEAVER_SIM_HOSTS", 1_000_000) as u32,
        urls: number("ORBWEAVER_SIM_URLS", 50_000_000) as u32,
        restart_every: 3600,
        options: UrlServerOptions {
            queue_count: 16_384,
            in_flight: 2048,
            // Enough to remember every one of a million hosts.
            rest_bytes: 1 << 30,
            ..UrlServerOptions::default()
        },
    });
}
