//! The store's thread: order, acknowledgements, the end.

use std::sync::Arc;
use std::sync::mpsc;

use orbweaver_store::{Archive, StoreError, StoreOptions, Writer, check, exchange_at};

use crate::sample::{Sample, findings, new_dir, options, prose};

#[test]
fn many_threads_submit_and_every_group_is_acknowledged_in_order() {
    let dir = new_dir();
    let options = StoreOptions {
        rotate_bytes: 100_000,
        queue_bytes: 20_000,
        ..options()
    };
    let (writer, _) = Writer::open(dir.path(), options).unwrap();
    let archive = Arc::new(Archive::start(writer, |trouble| assert!(trouble.is_none())).unwrap());
    let (acks, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (archive, acks) = (Arc::clone(&archive), acks.clone());
            scope.spawn(move || {
                let archivist = archive.archivist();
                let mut scratch = archivist.scratch();
                for n in 0..50 {
                    let path = format!("/{thread}/{n}");
                    let sample = Sample::page(&path, n, &prose(thread * 1000 + n, 3000));
                    let acks = acks.clone();
                    let ack = move |answer| acks.send((thread, n, answer)).unwrap();
                    let prepared = sample.prepare(&archivist, &mut scratch);
                    archive.submit(prepared, Box::new(ack));
                }
            });
        }
    });
    archive.close().unwrap();
    drop(acks);
    let mut next = [0; 4];
    let mut last = None;
    for (thread, n, answer) in answers {
        assert_eq!(n, next[thread as usize], "thread {thread}");
        next[thread as usize] += 1;
        let place = answer.unwrap();
        let stored = exchange_at(dir.path(), &place.file, place.offset).unwrap();
        assert_eq!(stored.url, format!("http://example.org/{thread}/{n}"));
        let here = Some((place.file, place.offset));
        assert!(here > last, "acknowledged in the order of the file");
        last = here;
    }
    assert_eq!(next, [50; 4]);
    assert_eq!(findings(dir.path()), Vec::<String>::new());
    let summary = check(dir.path(), &mut |_| {});
    assert_eq!(summary.captures, 200);
    assert!(summary.files > 1);
}

#[test]
fn an_acknowledged_group_is_on_disk_while_the_file_is_open() {
    let dir = new_dir();
    let (writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archive = Archive::start(writer, |_| {}).unwrap();
    let archivist = archive.archivist();
    let sample = Sample::page("/a", 1, &prose(1, 2000));
    let prepared = sample.prepare(&archivist, &mut archivist.scratch());
    let (sender, answer) = mpsc::channel();
    archive.submit(prepared, Box::new(move |place| sender.send(place).unwrap()));
    let place = answer.recv().unwrap().unwrap();
    let stored = exchange_at(dir.path(), &place.file, place.offset).unwrap();
    assert_eq!(stored.response, sample.exchange().response);
    assert_eq!(archive.backlog(), 0);
}

#[test]
fn after_the_end_nothing_is_taken() {
    let dir = new_dir();
    let (writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archive = Archive::start(writer, |_| {}).unwrap();
    let archivist = archive.archivist();
    let prepared = Sample::page("/a", 1, "x").prepare(&archivist, &mut archivist.scratch());
    archive.close().unwrap();
    archive.close().unwrap();
    let (sender, answer) = mpsc::channel();
    archive.submit(prepared, Box::new(move |place| sender.send(place).unwrap()));
    assert!(matches!(answer.recv().unwrap(), Err(StoreError::Stopped)));
}
