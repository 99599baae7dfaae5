//! The memory budget: a seen-set that is too small for what is known answers as well as a large one.
use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_model::Event;

use crate::support::{SEED, at, key, link};

const URLS: usize = 80_000;

fn open(dir: &std::path::Path, memory: u64) -> DocIndex {
    let options = IndexOptions {
        seed: SEED,
        memory,
        ..IndexOptions::default()
    };
    DocIndex::open(dir, options, at(0)).unwrap()
}

fn name(n: usize) -> String {
    format!("http://a{}.example/{n}", n % 7)
}

fn offer(index: &mut DocIndex, urls: std::ops::Range<usize>) {
    for from in urls.step_by(100) {
        let links = (from..from + 100).map(|n| link(&name(n), 1)).collect();
        index.apply([Event::Links { links, at: at(1) }]).unwrap();
    }
}

#[test]
fn known_urls_beyond_the_budget_stay_known() {
    let dir = tempfile::tempdir().unwrap();
    // 320 KiB for the seen-set: two fifths of what these URLs take.
    let small = 512 << 10;
    let mut index = open(dir.path(), small);
    offer(&mut index, 0..URLS);
    assert!(!index.seen().is_complete());
    assert!(index.seen().bytes() < 360 << 10, "{}", index.seen().bytes());
    assert_eq!(index.ledger().accepted, URLS as u64);
    // Offered again, some in the same commit in which they are new.
    offer(&mut index, URLS / 2..URLS);
    let twice = vec![link(&name(URLS), 1), link(&name(URLS), 1)];
    let twice = Event::Links {
        links: twice,
        at: at(1),
    };
    index.apply([twice]).unwrap();
    for n in 0..=URLS {
        assert!(index.seen().contains(key(&name(n))), "{n}");
    }
    assert!(!index.seen().contains(key(&name(URLS + 1))));
    assert_eq!(index.ledger().accepted, URLS as u64 + 1);
    drop(index);

    // As well after a restart, with as little memory and with enough.
    for (memory, complete) in [(small, false), (64 << 20, true)] {
        let mut index = open(dir.path(), memory);
        assert_eq!(index.seen().is_complete(), complete);
        assert_eq!(index.seen().len(), URLS + 1);
        offer(&mut index, 0..URLS);
        assert_eq!(index.ledger().accepted, URLS as u64 + 1);
        assert!(index.seen().contains(key(&name(5))));
        assert!(!index.seen().contains(key(&name(URLS + 1))));
    }
}
