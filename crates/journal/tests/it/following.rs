//! Readers at their own pace, and what is forgotten behind them.

use std::fs;

use orbweaver_journal::{Cursor, Error, Followers, OnDamage};

use crate::support::{append_to, follow, numbered, open};

#[test]
fn a_cursor_goes_on_while_entries_come_and_segments_change() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 300, OnDamage::Refuse);
    let mut cursor = Cursor::new(writer.segments(), 0);
    let mut seen = Vec::new();
    for number in 1..=40 {
        append_to(&mut writer, number);
        while let Some((position, payload)) = cursor.next(writer.written()).unwrap() {
            seen.push((position, payload.to_vec()));
        }
        assert_eq!(cursor.position(), number);
    }
    assert_eq!(seen, numbered(1, 40));
    assert!(writer.segments().count() > 3);
}

#[test]
fn segments_are_forgotten_below_a_position_but_for_the_last() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 300, OnDamage::Refuse);
    (1..=40).for_each(|to| append_to(&mut writer, to));
    let segments = writer.segments();
    let before = segments.count();
    assert_eq!(segments.forget(1, 2).unwrap(), 0);
    // A cursor that is in the middle of a segment reads on when it is removed.
    let mut cursor = Cursor::new(writer.segments(), 0);
    assert_eq!(cursor.next(40).unwrap().unwrap().0, 1);
    assert_eq!(segments.forget(40, 2).unwrap(), before - 2);
    assert_eq!(segments.count(), 2);
    let first = segments.first();
    assert!(first > 2);
    // One from before hears what is left.
    assert_eq!(follow(segments, 0, 40), numbered(first, 40));
    assert_eq!(cursor.next(40).unwrap().unwrap().0, first);
    drop(writer);
    let (writer, found) = open(place.path(), 300, OnDamage::Refuse);
    assert_eq!((writer.last(), found), (40, numbered(first, 40)));
}

#[test]
fn followers_are_kept_by_name_and_the_slowest_counts() {
    let place = tempfile::tempdir().unwrap();
    let followers = Followers::of(place.path());
    assert_eq!(followers.slowest().unwrap(), None);
    assert_eq!(followers.position("search").unwrap(), None);
    followers.set("search", 7).unwrap();
    followers.set("text", 3).unwrap();
    followers.set("search", 9).unwrap();
    let list = [("search".to_owned(), 9), ("text".to_owned(), 3)];
    assert_eq!(followers.list().unwrap(), list);
    assert_eq!(followers.slowest().unwrap(), Some(3));
    // One that was killed while it wrote, and one whose file was harmed.
    let dir = place.path().join("followers");
    fs::write(dir.join("search.new"), b"half").unwrap();
    fs::write(dir.join("text"), b"harmed").unwrap();
    assert_eq!(followers.position("search").unwrap(), Some(9));
    assert_eq!(followers.slowest().unwrap(), Some(0));
    followers.remove("text").unwrap();
    assert_eq!(followers.slowest().unwrap(), Some(9));
    for name in ["", "a/b", "..", "x.new", "ö"] {
        assert!(matches!(followers.set(name, 1), Err(Error::Name { .. })));
    }
}
