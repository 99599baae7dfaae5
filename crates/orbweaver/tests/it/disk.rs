//! A disk that is full or read-only: nothing that was acknowledged is lost, and the crawl goes on when the
//! disk does.
//!
//! The disks are made in a mount namespace of the test's own, which every Linux lets root do and most let
//! everybody do.

use std::process::Command;

use orbweaver_simweb::{SimConfig, SimWeb, VisitLimits};

use crate::support::{Place, run, sim};

/// Runs a shell script that may mount things; none when this machine does not let us.
pub(crate) fn in_a_namespace(script: &str, args: &[&str]) -> Option<String> {
    let may = Command::new("unshare")
        .args(["-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output();
    if !may.is_ok_and(|tried| tried.status.success()) {
        println!("skipped: this machine lets nobody mount a disk to fill up");
        return None;
    }
    let ran = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, env!("CARGO_BIN_EXE_orbweaver")])
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{complained}");
    Some(said)
}

fn web() -> SimWeb {
    sim(SimConfig {
        hosts: 20,
        pages: 60,
        ..SimConfig::default()
    })
}

/// Crawls until the disk is full. `$0` is the program, `$1` the place of the disk, `$2` the seed, `$3` a
/// file for what it says.
///
/// Who meets the full disk first is chance: the watch over the space that is left, the archive, or the doc
/// index. All of them wait and say so.
const FILL: &str = r#"
    crawl() {
        exec "$0" crawl "$2" -o "$1/crawl" --scope any --allow-net 127.0.0.0/8 --rate 0 \
            --progress plain --contact mailto:test@example.org >"$3.out" 2>>"$3"
    }
    mount -t tmpfs -o size=5m tmpfs "$1"
    touch "$3"
    (crawl "$@") &
    pid=$!
    until grep -qi "no space left\|the disk is full" "$3"; do
        kill -0 $pid || { cat "$3"; exit 1; }
        sleep 0.05
    done
"#;

/// Fills the disk, does what `then` says, and returns what that prints.
fn fill(web: &SimWeb, place: &Place, then: &str) -> Option<(String, String)> {
    std::fs::create_dir(place.dir()).unwrap();
    let log = place.beside("log");
    let seed = web.seeds().remove(0);
    let script = format!("{FILL}{then}");
    let said = in_a_namespace(&script, &[place.arg(), &seed, log.to_str().unwrap()])?;
    Some((said, std::fs::read_to_string(log).unwrap()))
}

#[test]
fn a_full_disk_holds_the_crawl_up_until_there_is_space() {
    let web = web();
    let place = Place::new();
    let then = r#"
        mount -o remount,size=400m "$1"
        wait $pid
        echo "ended $?"
        "$0" check "$1/crawl" | tail -1
    "#;
    let Some((said, log)) = fill(&web, &place, then) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "ended 0", "{said}{log}");
    assert!(lines[1].ends_with("no errors"), "{said}{log}");
    let faults = web.stats().faults(&VisitLimits::default());
    assert_eq!(faults, Vec::<String>::new(), "{log}");
}

/// The disk fills up by other hands, to the last byte and over and over.
#[test]
fn a_disk_that_fills_up_and_empties_again_and_again_only_holds_the_crawl_up() {
    let web = web();
    let place = Place::new();
    let then = r#"
        mount -o remount,size=400m "$1"
        for round in 1 2 3 4 5 6; do
            # Some more has been kept; then not another byte fits.
            kept=$(du -sk "$1" | cut -f1)
            until [ $(du -sk "$1" | cut -f1) -gt $((kept + 100)) ] || ! kill -0 $pid; do sleep 0.02; done
            cat /dev/zero >"$1/ballast" 2>/dev/null
            sleep 0.7
            rm "$1/ballast"
        done
        wait $pid
        echo "ended $?"
        "$0" check "$1/crawl" | tail -1
    "#;
    let Some((said, log)) = fill(&web, &place, then) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "ended 0", "{said}{log}");
    assert!(lines[1].ends_with("no errors"), "{said}{log}");
    let faults = web.stats().faults(&VisitLimits::default());
    assert_eq!(faults, Vec::<String>::new(), "{log}");
}

#[test]
fn a_crawl_that_is_stopped_on_a_full_disk_resumes_later() {
    let web = web();
    let place = Place::new();
    let then = r#"
        kill -TERM $pid
        wait $pid
        echo "stopped $?"
        mount -o remount,size=400m "$1"
        "$0" status "$1/crawl" | grep ledger
        "$0" check "$1/crawl" | tail -1
        (crawl "$@")
        echo "resumed $?"
        "$0" check "$1/crawl" | tail -1
    "#;
    let Some((said, log)) = fill(&web, &place, then) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    // What was fetched and could not be kept makes it a failure of the disk; when all was kept, a stop.
    assert!(
        ["stopped 5", "stopped 3"].contains(&lines[0]),
        "{said}{log}"
    );
    assert!(lines[1].contains("balances"), "{said}{log}");
    assert!(lines[2].ends_with("no errors"), "{said}{log}");
    assert_eq!(lines[3], "resumed 0", "{said}{log}");
    assert!(lines[4].ends_with("no errors"), "{said}{log}");
    let stats = web.stats();
    assert_eq!(stats.missed.count, 0, "{:?}", stats.missed);
}

#[test]
fn a_read_only_disk_is_one_clear_sentence() {
    let web = web();
    let place = Place::new();
    let seed = web.seeds().remove(0);
    run(place.crawl(&[&seed, "--scope", "any", "--pages", "20"])).expect(0);
    let script = r#"
        mount --bind "$1" "$1"
        mount -o remount,ro,bind "$1"
        "$0" crawl -o "$1" --pages 0 --progress off 2>&1
        echo "crawl $?"
        "$0" crawl "$2" -o "$1/new" --progress off 2>&1
        echo "new $?"
        "$0" get "$1" "$2" | wc -c
    "#;
    let Some(said) = in_a_namespace(script, &[place.arg(), &seed]) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    for complaint in [lines[0], lines[2]] {
        assert!(complaint.contains("Read-only file system"), "{said}");
        assert!(complaint.contains("choose a directory"), "{said}");
    }
    assert_eq!((lines[1], lines[3]), ("crawl 5", "new 5"), "{said}");
    let size = web.body_of(&seed).unwrap().len();
    assert_eq!(lines[4].trim(), size.to_string(), "{said}");
    // Nothing is lost.
    run([
        "crawl",
        "-o",
        place.arg(),
        "--pages",
        "0",
        "--progress",
        "off",
    ])
    .expect(0);
    assert_eq!(web.stats().missed.count, 0);
}
