//! The store's thread: order, acknowledgements, the end.

use std::sync::Arc;
use std::sync::mpsc;

use orbweaver_store::{Archive, Keep, Notice, StoreError, StoreOptions, Writer, check, read_place};

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
    let archive = Archive::start(writer, &mut |_| {}, |notice| {
        assert!(matches!(notice, Notice::Durable(_)), "{notice:?}");
    });
    let archive = Arc::new(archive.unwrap());
    let (acks, answers) = mpsc::sync_channel(1000);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (archive, acks) = (Arc::clone(&archive), acks.clone());
            scope.spawn(move || {
                for n in 0..50 {
                    let path = format!("/{thread}/{n}");
                    let sample = Sample::page(&path, n, &prose(thread * 1000 + n, 3000));
                    let acks = acks.clone();
                    let ack = move |answer| acks.send((thread, n, answer)).unwrap();
                    archive.put(&sample.capture(), b"", Box::new(ack));
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
        let kept = answer.unwrap();
        let stored = read_place(dir.path(), kept.place.unwrap(), u64::MAX).unwrap();
        assert_eq!(stored.url, format!("http://example.org/{thread}/{n}"));
        let here = Some((kept.place, kept.position));
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
    let archive = Archive::start(writer, &mut |_| {}, |_| {}).unwrap();
    let sample = Sample::page("/a", 1, &prose(1, 2000));
    let (sender, answer) = mpsc::sync_channel(1000);
    let ack = Box::new(move |kept| sender.send(kept).unwrap());
    archive.put(&sample.capture(), b"", ack);
    let place = answer.recv().unwrap().unwrap().place.unwrap();
    let stored = archive.read(place, u64::MAX).unwrap();
    assert_eq!(stored.response, sample.exchange().response);
    assert_eq!(archive.backlog(), 0);
}

#[test]
fn after_the_end_nothing_is_taken() {
    let dir = new_dir();
    let (writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archive = Archive::start(writer, &mut |_| {}, |_| {}).unwrap();
    archive.close().unwrap();
    archive.close().unwrap();
    let (sender, answer) = mpsc::sync_channel(1000);
    let ack = Box::new(move |kept| sender.send(kept).unwrap());
    archive.put(&Sample::page("/a", 1, "x").capture(), b"", ack);
    assert!(matches!(answer.recv().unwrap(), Err(StoreError::Stopped)));
}
