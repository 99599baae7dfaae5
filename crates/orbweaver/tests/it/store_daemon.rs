//! The store as a daemon, driven by peers that know only the documents.

use std::collections::HashMap;
use std::io::Write;
use std::net::Shutdown;

use orbweaver_testkit::Random;
use rustix::process::Signal;

use crate::disk::in_a_namespace;
use crate::support::{Place, run, start, until};
use crate::wire::{Raw, Store, answer, connect, follow, store};

fn stop(store: Store) {
    store.running.signal(Signal::TERM);
    store.running.wait().expect(3);
}

/// Sends records on one connection and returns the verdicts.
fn send(store: &Store, records: &[Raw]) -> Vec<(u32, u8)> {
    let mut stream = connect(store.records);
    let bytes: Vec<u8> = records.iter().flat_map(Raw::bytes).collect();
    stream.write_all(&bytes).unwrap();
    records
        .iter()
        .map(|_| answer(&mut stream).unwrap())
        .collect()
}

#[test]
fn a_record_is_stored_answered_and_passed_on() {
    let place = Place::new();
    let running = store(&place, None, "");
    let page = Raw::page(42, "http://example.org/", "<p>hello");
    let failure = Raw {
        success: 0,
        outcome: 18,
        http: 0,
        pad: 0,
        data: Vec::new(),
        ..Raw::page(43, "http://nowhere.example/", "")
    };
    let robots = Raw::page(0, "http://example.org/robots.txt", "User-agent: *\n");
    let body = Raw {
        http: 54,
        pad: 0,
        success: 0,
        outcome: 4,
        data: b"only a body".to_vec(),
        ..Raw::page(44, "http://example.org/gone", "")
    };
    let all = [page.clone(), failure.clone(), robots.clone(), body.clone()];
    assert_eq!(send(&running, &all), [(42, 0), (43, 0), (0, 0), (44, 0)]);
    assert_eq!(place.get("http://example.org/"), b"<p>hello");
    assert_eq!(place.get("http://example.org/gone"), b"only a body");
    let mut heard = follow(running.results, 0, 4);
    heard.sort_by_key(|(_, record)| record.doc_id);
    let mut positions: Vec<u64> = heard.iter().map(|(position, _)| *position).collect();
    positions.sort_unstable();
    assert_eq!(positions, [1, 2, 3, 4]);
    let heard: Vec<Raw> = heard.into_iter().map(|(_, record)| record).collect();
    // A body comes back behind the least head.
    let whole = Raw {
        pad: 1,
        data: b"HTTP/1.1 404 \r\nContent-Length: 11\r\n\r\nonly a body".to_vec(),
        ..body
    };
    assert_eq!(heard, [robots, page, failure, whole]);
    let found = place.check();
    assert_eq!(
        (&found["captures"], &found["results"]),
        (&3.into(), &4.into())
    );
    stop(running);
    let found = place.check();
    assert_eq!(
        (&found["captures"], &found["results"]),
        (&3.into(), &4.into())
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_the_next_is_read() {
    let place = Place::new();
    let running = store(&place, None, "Max_Doc_Size = 1000");
    let page = |doc_id| Raw::page(doc_id, &format!("http://example.org/{doc_id}"), "x");
    let long = Raw::page(5, "http://example.org/5", &"long ".repeat(20_000));
    let records = [
        Raw {
            outcome: 31,
            ..page(1)
        },
        Raw {
            success: 2,
            ..page(2)
        },
        Raw {
            url: b"no URL".to_vec(),
            ..page(3)
        },
        Raw {
            url: b"ftp://example.org/".to_vec(),
            ..page(4)
        },
        long.clone(),
        page(6),
    ];
    let verdicts = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 0), (6, 0)];
    assert_eq!(send(&running, &records), verdicts);
    let heard = follow(running.results, 0, 3);
    // What is no URL of ours cannot be archived; but whoever waits for its result hears of it.
    let ftp = &heard[0].1;
    assert_eq!((ftp.doc_id, ftp.data.len()), (4, 0));
    let cut = &heard[1].1;
    // The limit is for the body; the head of a message may come on top, 64 KiB of it.
    assert_eq!((cut.doc_id, cut.outcome), (5, 3 + 32));
    assert_eq!(cut.data, long.data[..1000 + (64 << 10)]);
    // A peer that breaks off in the middle of a record takes nobody with it.
    let mut stream = connect(running.records);
    stream.write_all(&page(7).bytes()[..30]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(answer(&mut stream), None);
    assert_eq!(send(&running, &[page(8)]), [(8, 0)]);
    assert_eq!(place.check()["results"], 4);
}

/// Other peers spell URLs in other ways, and call data a message that is none. All of it is kept.
#[test]
fn what_others_send_is_kept_under_the_canonical_url_and_as_what_it_is() {
    let place = Place::new();
    let running = store(&place, None, "");
    let upper = Raw::page(1, "HTTP://Example.ORG:80/a/../b#c", "one");
    let bare = Raw {
        data: b"<html>no head".to_vec(),
        ..Raw::page(2, "http://example.org", "")
    };
    let moved = Raw {
        outcome: 5,
        http: 41,
        success: 0,
        new_url: b"/New/../c".to_vec(),
        ..Raw::page(3, "http://example.org/old", "")
    };
    assert_eq!(
        send(&running, &[upper, bare, moved]),
        [(1, 0), (2, 0), (3, 0)]
    );
    assert_eq!(place.get("http://example.org/b"), b"one");
    assert_eq!(place.get("http://example.org/"), b"<html>no head");
    let mut heard: Vec<Raw> = follow(running.results, 0, 3)
        .into_iter()
        .map(|it| it.1)
        .collect();
    heard.sort_by_key(|record| record.doc_id);
    assert_eq!(heard[0].url, b"http://example.org/b");
    assert!(heard[1].data.ends_with(b"\r\n\r\n<html>no head"));
    assert_eq!(heard[2].new_url, b"http://example.org/c");
    stop(running);
    assert_eq!(place.check()["captures"], 3);
}

#[test]
fn the_same_again_is_not_stored_again() {
    let place = Place::new();
    let running = store(&place, None, "");
    // Small enough that the archive alone would store it twice.
    let page = Raw::page(42, "http://example.org/", "hello");
    let slower = Raw {
        millis: 99,
        ..page.clone()
    };
    let changed = Raw::page(42, "http://example.org/", "goodbye");
    let elsewhere = Raw::page(42, "http://example.org/2", "hello");
    assert_eq!(
        send(&running, &[page.clone(), page.clone()]),
        [(42, 0), (42, 1)]
    );
    let rest = [slower.clone(), changed, elsewhere];
    assert_eq!(send(&running, &rest), [(42, 1), (42, 0), (42, 0)]);
    assert_eq!(place.check()["captures"], 3);
    let again = store_again(&place, running);
    assert_eq!(send(&again, std::slice::from_ref(&page)), [(42, 1)]);
    assert_eq!(place.check()["captures"], 3);
    // Whoever follows hears of every attempt.
    let heard = follow(again.results, 0, 6);
    assert_eq!(
        (&heard[0].1, &heard[2].1, &heard[5].1),
        (&page, &slower, &page)
    );
}

fn store_again(place: &Place, running: Store) -> Store {
    let (records, results) = (running.records, running.results);
    running.running.signal(Signal::TERM);
    running.running.wait().expect(3);
    let before = Store {
        running: start(["--version"]),
        records,
        results,
    };
    store(place, Some(&before), "")
}

/// Records are sent as fast as they are taken, the store is killed somewhere, and what was not answered
/// is sent again, as the document's spider would do it.
#[test]
fn killed_over_and_over_nothing_acknowledged_is_lost_and_nothing_is_kept_twice() {
    const RECORDS: u32 = 3000;
    let place = Place::new();
    let pages: Vec<Raw> = (1..=RECORDS)
        .map(|number| {
            // Half of them small, where the archive itself would not notice a second copy.
            let filling = if number % 2 == 0 { 1500 } else { 10 };
            let body = format!("{number} {}", "x".repeat(filling));
            Raw::page(number, &format!("http://example.org/{number}"), &body)
        })
        .collect();
    let mut verdicts: HashMap<u32, u8> = HashMap::new();
    let mut kills = 0;
    let mut running = store(&place, None, "");
    while verdicts.len() < pages.len() {
        let missing: Vec<&Raw> = pages
            .iter()
            .filter(|page| !verdicts.contains_key(&page.doc_id))
            .collect();
        // Killed after so many answers of this round; the rest is on its way in all states.
        let deadly = 40 + 97 * kills;
        let mut killed = false;
        let mut stream = connect(running.records);
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for page in &missing {
                    if writer.write_all(&page.bytes()).is_err() {
                        return;
                    }
                }
            });
            let mut heard = 0;
            while let Some((doc_id, verdict)) = answer(&mut stream) {
                assert!(verdict <= 1, "{doc_id}: {verdict}");
                assert_eq!(
                    verdicts.insert(doc_id, verdict),
                    None,
                    "{doc_id} answered twice"
                );
                heard += 1;
                if heard == deadly {
                    running.running.signal(Signal::KILL);
                    killed = true;
                }
                if verdicts.len() == pages.len() {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
        if killed {
            kills += 1;
            let (records, results) = (running.records, running.results);
            let ended = Store {
                running: start(["--version"]),
                records,
                results,
            };
            running.running.wait();
            assert_eq!(place.check()["errors"], 0);
            running = store(&place, Some(&ended), "");
        }
    }
    println!("{kills} kills");
    assert!(kills >= 3);
    let found = place.check();
    assert_eq!(found["captures"], RECORDS);
    let results = found["results"].as_u64().unwrap();
    let heard = follow(running.results, 0, usize::try_from(results).unwrap());
    let mut seen: HashMap<u32, usize> = HashMap::new();
    for (_, record) in heard {
        assert_eq!(record, pages[record.doc_id as usize - 1]);
        *seen.entry(record.doc_id).or_default() += 1;
    }
    assert_eq!(seen.len(), pages.len());
    stop(running);
}

#[test]
fn one_store_a_directory_and_no_open_port_without_a_key() {
    let place = Place::new();
    let first = store(&place, None, "");
    let config = place.file(
        "second.toml",
        format!("Store_Port = 0\nResults_Port = 0\nDir = {:?}", place.dir()),
    );
    let second = run(["store", "-c", &config]).expect(4);
    assert!(
        second.complaint().contains("in use"),
        "{}",
        second.complaint()
    );
    let config = place.file(
        "open.toml",
        "Store_Host = \"0.0.0.0\"\nStore_Port = 0\nDir = \"never-made\"",
    );
    let refused = run(["store", "-c", &config]).expect(2);
    assert!(
        refused.complaint().contains("Key_File"),
        "{}",
        refused.complaint()
    );
    let taken = first.records.port();
    let config = place.file(
        "taken.toml",
        format!("Store_Port = {taken}\nDir = \"never-made\""),
    );
    let refused = run(["store", "-c", &config]).expect(2);
    assert!(
        refused.complaint().contains("listen"),
        "{}",
        refused.complaint()
    );
    let config = place.file("wrong.toml", "Store_Prot = 1");
    let refused = run(["store", "-c", &config]).expect(2);
    assert!(
        refused.complaint().contains("Store_Prot"),
        "{}",
        refused.complaint()
    );
    assert!(!std::path::Path::new("never-made").exists());
}

/// A store on a small disk. `$0` is the program, `$1` the place of the disk, `$2` the configuration, `$3` a
/// file for what it says. The disk grows when `$3.grow` is there; the store ends with `$3.end`.
const SMALL_DISK: &str = r#"
    mount -t tmpfs -o size=4m tmpfs "$1"
    "$0" store -c "$2" 2>"$3" &
    pid=$!
    until [ -e "$3.grow" ]; do kill -0 $pid || { cat "$3"; exit 1; }; sleep 0.05; done
    mount -o remount,size=200m "$1"
    until [ -e "$3.end" ]; do kill -0 $pid || { cat "$3"; exit 1; }; sleep 0.05; done
    kill -TERM $pid
    wait $pid
    "$0" check "$1/store" --json | tail -n 1
"#;

#[test]
fn a_full_disk_loses_nothing() {
    const RECORDS: u32 = 400;
    let place = Place::new();
    let disk = place.beside("disk");
    std::fs::create_dir(&disk).unwrap();
    let dir = disk.join("store");
    let config = format!("Store_Port = 0\nResults_Port = 0\nDir = {dir:?}");
    let config = place.file("store.toml", config);
    let log = place.beside("log").to_str().unwrap().to_owned();
    let arguments = [disk.to_str().unwrap().to_owned(), config, log.clone()];
    let running = std::thread::spawn(move || {
        let arguments = arguments.each_ref().map(String::as_str);
        in_a_namespace(SMALL_DISK, &arguments)
    });
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    until("a store that listens, or no disk", || {
        said().contains(" for results") || running.is_finished()
    });
    if running.is_finished() {
        assert_eq!(running.join().unwrap(), None);
        return;
    }
    let text = said();
    let address = text
        .split("listening on ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let address = address.parse().unwrap();
    let page = |number: u32| {
        let mut page = Raw::page(number, &format!("http://example.org/{number}"), "");
        page.data.extend(Random::new(number.into()).bytes(20_000));
        page
    };
    let mut stream = connect(address);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("a full disk", || said().contains("cannot be written"));
            // Whoever comes now is told so, and is not kept waiting.
            let mut late = connect(address);
            late.write_all(&page(RECORDS).bytes()).unwrap();
            assert_eq!(answer(&mut late), Some((RECORDS, 3)));
            std::fs::write(format!("{log}.grow"), "").unwrap();
        });
        // One after the other, each as often as it takes.
        for number in 1..=RECORDS {
            loop {
                stream.write_all(&page(number).bytes()).unwrap();
                match answer(&mut stream).unwrap() {
                    (_, 3) => std::thread::sleep(std::time::Duration::from_millis(20)),
                    answered => break assert_eq!(answered, (number, 0)),
                }
            }
        }
    });
    std::fs::write(format!("{log}.end"), "").unwrap();
    let found = running.join().unwrap().unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        (&found["captures"], &found["errors"]),
        (&RECORDS.into(), &0.into()),
        "{found}"
    );
}
