//! What this machine has too little of is charged to nobody else.

use orbweaver_simweb::{SimConfig, VisitLimits};
use rustix::process::Signal;

use crate::support::{Place, sim, start, until};

fn config(seed: u64) -> SimConfig {
    SimConfig {
        seed,
        hosts: 60,
        pages: 30,
        page_bytes: 3000,
        latency_ms: 30,
        ..SimConfig::default()
    }
}

#[test]
fn too_few_file_descriptors_cost_no_page() {
    let web = sim(config(91));
    let place = Place::new();
    let seed = &web.seeds()[0];
    let ended = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_orbweaver"))
        .args(place.crawl(&[seed, "--scope", "any", "--progress", "plain"]))
        .output()
        .unwrap();
    let (out, said) = (&ended.stdout, String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    // It says so, and asks no more at once than it can.
    let out = String::from_utf8_lossy(out);
    assert!(out.contains("the limit on open files allows"), "{out}");
    assert_eq!(
        web.stats().faults(&VisitLimits::default()),
        Vec::<String>::new()
    );
    let status = place.status();
    assert!(status.balanced && status.queued == 0, "{status:?}");
    place.check();
}

#[test]
fn a_process_that_was_stopped_loses_no_attempt() {
    let web = sim(config(92));
    let place = Place::new();
    let seed = &web.seeds()[0];
    let limits = place.file("short.toml", "[limits]\ntotal_timeout_s = 2.0\n");
    let crawl = start(place.crawl(&[seed, "--scope", "any", "--config", &limits]));
    until("some pages", || web.stats().fetched > 20);
    crawl.signal(Signal::STOP);
    // Longer than any fetch may take.
    std::thread::sleep(std::time::Duration::from_secs(5));
    crawl.signal(Signal::CONT);
    crawl.wait().expect(0);
    assert_eq!(
        web.stats().faults(&VisitLimits::default()),
        Vec::<String>::new()
    );
    let fates = place.fates();
    let repeated: Vec<&str> = (fates.iter())
        .filter(|it| it.attempts > 1 || it.class.starts_with("failed"))
        .map(|it| it.url.as_str())
        .collect();
    assert_eq!(repeated, [""; 0]);
}
