//! What was written is there, however the process ended.

use std::fs;

use orbweaver_journal::{Error, OnDamage, Options, Writer};

use crate::support::{append_to, findings, follow, logs, numbered, open, options};

#[test]
fn what_was_written_is_there_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, found) = open(place.path(), 1 << 20, OnDamage::Refuse);
    assert!(found.is_empty() && writer.last() == 0);
    append_to(&mut writer, 3);
    append_to(&mut writer, 5);
    assert_eq!(follow(writer.segments(), 0, 5), numbered(1, 5));
    assert_eq!(follow(writer.segments(), 3, 5), numbered(4, 5));
    assert_eq!(follow(writer.segments(), 0, 4), numbered(1, 4));
    drop(writer);
    let (mut writer, found) = open(place.path(), 1 << 20, OnDamage::Refuse);
    assert_eq!(found, numbered(1, 5));
    append_to(&mut writer, 6);
    assert_eq!(follow(writer.segments(), 4, 6), numbered(5, 6));
    assert_eq!(findings(place.path()), (6, vec![]));
}

#[test]
fn entries_are_seen_when_they_are_flushed_and_not_before() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Cut);
    writer.append(b"a").unwrap();
    assert_eq!((writer.last(), writer.written()), (1, 0));
    assert!(logs(place.path()).is_empty());
    writer.flush().unwrap();
    assert_eq!((writer.written(), writer.waiting()), (1, 0));
    assert_eq!(
        follow(writer.segments(), 0, writer.written()),
        [(1, b"a".to_vec())]
    );
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Refuse);
    append_to(&mut writer, 2);
    let path = logs(place.path()).remove(0);
    let two = fs::read(&path).unwrap().len();
    append_to(&mut writer, 3);
    let whole = fs::read(&path).unwrap();
    drop(writer);
    for cut in two + 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let notes = findings(place.path());
        assert!(notes.0 == 2 && !notes.1[0].is_error, "{notes:?}");
        let (mut writer, found) = open(place.path(), 1 << 20, OnDamage::Refuse);
        assert_eq!(found, numbered(1, 2), "{cut}");
        append_to(&mut writer, 3);
        assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
    }
}

#[test]
fn a_segment_whose_head_was_never_written_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 100, OnDamage::Refuse);
    append_to(&mut writer, 4);
    drop(writer);
    fs::write(place.path().join("00000000000000000005.log"), b"OWJR").unwrap();
    let (mut writer, found) = open(place.path(), 100, OnDamage::Refuse);
    assert_eq!(found, numbered(1, 4));
    append_to(&mut writer, 6);
    assert_eq!(writer.segments().count(), 2);
    assert_eq!(follow(writer.segments(), 0, 6), numbered(1, 6));
}

#[test]
fn a_journal_of_another_kind_is_not_touched() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Cut);
    append_to(&mut writer, 2);
    drop(writer);
    let before = fs::read(&logs(place.path())[0]).unwrap();
    let other = Options {
        kind: *b"test   2",
        ..options(100)
    };
    let error = Writer::open(place.path(), other, OnDamage::Cut, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&logs(place.path())[0]).unwrap(), before);
}

#[test]
fn a_payload_that_is_too_long_is_refused_alone() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Refuse);
    append_to(&mut writer, 1);
    let error = writer.append(&[0; 1001]).unwrap_err();
    assert!(matches!(error, Error::TooLong { len: 1001, .. }));
    append_to(&mut writer, 2);
    assert_eq!(follow(writer.segments(), 0, 2), numbered(1, 2));
}

#[test]
fn truncating_removes_what_is_behind_across_segments() {
    for keep in 0..=20 {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, _) = open(place.path(), 150, OnDamage::Refuse);
        (1..=20).for_each(|to| append_to(&mut writer, to));
        writer.truncate(keep).unwrap();
        assert_eq!(writer.last(), keep);
        assert_eq!(follow(writer.segments(), 0, keep), numbered(1, keep));
        append_to(&mut writer, keep + 3);
        assert_eq!(
            follow(writer.segments(), 0, keep + 3),
            numbered(1, keep + 3)
        );
        drop(writer);
        let (_, found) = open(place.path(), 150, OnDamage::Refuse);
        assert_eq!(found, numbered(1, keep + 3));
        assert_eq!(findings(place.path()), (keep + 3, vec![]));
    }
}

/// A disk that is full: the journal is where a directory lies in its way.
#[test]
fn after_a_failure_the_same_entries_are_written() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 100, OnDamage::Refuse);
    append_to(&mut writer, 4);
    let in_the_way = place.path().join("00000000000000000005.log");
    fs::create_dir(&in_the_way).unwrap();
    writer.append(&crate::support::payload(5)).unwrap();
    for _ in 0..2 {
        assert!(matches!(writer.sync(), Err(Error::Io { .. })));
        assert_eq!((writer.last(), writer.written()), (5, 4));
    }
    fs::remove_dir(&in_the_way).unwrap();
    append_to(&mut writer, 6);
    assert_eq!(follow(writer.segments(), 0, 6), numbered(1, 6));
}
