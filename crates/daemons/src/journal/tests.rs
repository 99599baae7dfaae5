//! The journal as it survives: torn ends, failed files, followers, forgetting.

use bytes::Bytes;

use orbweaver_model::{OutcomeClass, Timestamp};
use orbweaver_wire::{Data, HttpCode, Record};

use super::*;

fn entry(number: u32) -> Entry {
    let location = Location {
        file: "orbweaver-20260301120000-00001.warc.gz".into(),
        offset: u64::from(number) * 1000,
    };
    Entry {
        received: Timestamp::from_millis(1_772_366_400_000),
        key: u128::from(number) << 64,
        record: Record {
            doc_id: number,
            success: true,
            outcome: OutcomeClass::Success,
            cut: None,
            http: HttpCode::of(Some(200)),
            kind: Data::Message,
            millis: 12,
            url: format!("http://example.org/{number}"),
            new_url: String::new(),
            data: Bytes::new(),
        },
        standing: match number % 3 {
            0 => Standing::Nothing,
            1 => Standing::Archived(location),
            _ => Standing::Again(location),
        },
    }
}

fn open(dir: &Path, rotate: u64) -> (Writer, Vec<(u64, Entry)>) {
    let mut found = Vec::new();
    let writer = Writer::open(dir, rotate, &mut |position, entry| {
        found.push((position, entry))
    });
    (writer.unwrap(), found)
}

fn numbered(from: u64, to: u64) -> Vec<(u64, Entry)> {
    (from..=to)
        .map(|n| (n, entry(u32::try_from(n).unwrap())))
        .collect()
}

fn append(writer: &mut Writer, from: u64, to: u64) {
    let entries: Vec<Entry> = numbered(from, to)
        .into_iter()
        .map(|(_, entry)| entry)
        .collect();
    writer.append(&entries).unwrap();
}

fn follow(shelf: Shelf, position: u64, last: u64) -> Vec<(u64, Entry)> {
    let mut cursor = Cursor::new(shelf, position);
    std::iter::from_fn(|| cursor.next(last).unwrap()).collect()
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, found) = open(place.path(), 1 << 20);
    assert!(found.is_empty() && writer.last() == 0);
    append(&mut writer, 1, 3);
    append(&mut writer, 4, 5);
    assert_eq!(follow(writer.shelf(), 0, 5), numbered(1, 5));
    assert_eq!(follow(writer.shelf(), 3, 5), numbered(4, 5));
    assert_eq!(follow(writer.shelf(), 0, 4), numbered(1, 4));
    drop(writer);
    let (mut writer, found) = open(place.path(), 1 << 20);
    assert_eq!(found, numbered(1, 5));
    append(&mut writer, 6, 6);
    assert_eq!(follow(writer.shelf(), 4, 6), numbered(5, 6));
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20);
    append(&mut writer, 1, 2);
    let path = writer.shelf().path(1);
    let two = fs::read(&path).unwrap().len();
    append(&mut writer, 3, 3);
    let whole = fs::read(&path).unwrap();
    drop(writer);
    for cut in two + 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let (mut writer, found) = open(place.path(), 1 << 20);
        assert_eq!(found, numbered(1, 2), "{cut}");
        append(&mut writer, 3, 3);
        assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
    }
    // A bit that turned over is an end too, at the tail; elsewhere it stops the store.
    let mut bad = whole.clone();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(&path, bad).unwrap();
    assert_eq!(open(place.path(), 1 << 20).1, numbered(1, 2));
}

#[test]
fn a_file_whose_head_was_never_written_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 100);
    append(&mut writer, 1, 4);
    drop(writer);
    fs::write(place.path().join("000002.log"), b"OWRS").unwrap();
    let (mut writer, found) = open(place.path(), 100);
    assert_eq!(found, numbered(1, 4));
    append(&mut writer, 5, 6);
    assert_eq!(writer.shelf().volumes().len(), 2);
    assert_eq!(follow(writer.shelf(), 0, 6), numbered(1, 6));
}

#[test]
fn a_hole_in_the_middle_is_not_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 100);
    append(&mut writer, 1, 4);
    append(&mut writer, 5, 8);
    let path = writer.shelf().path(1);
    drop(writer);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let error = Writer::open(place.path(), 100, &mut |_, _| {})
        .err()
        .unwrap();
    assert!(error.to_string().contains("000001.log"), "{error}");
}

#[test]
fn a_follower_goes_on_while_entries_come_and_files_change() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 600);
    let mut cursor = Cursor::new(writer.shelf(), 0);
    let mut seen = Vec::new();
    for number in 1..=40 {
        append(&mut writer, number, number);
        while let Some(found) = cursor.next(writer.last()).unwrap() {
            seen.push(found);
        }
    }
    assert_eq!(seen, numbered(1, 40));
    assert!(writer.shelf().volumes().len() > 3);
}

#[test]
fn folded_files_are_forgotten_but_for_the_last() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 600);
    for number in 1..=40 {
        append(&mut writer, number, number);
    }
    let shelf = writer.shelf();
    let before = shelf.volumes();
    let third = before[2].first;
    assert_eq!(shelf.forget(third - 2).unwrap(), 1);
    assert_eq!(shelf.forget(third - 1).unwrap(), 1);
    assert_eq!(shelf.volumes(), before[2..]);
    // A follower from before hears what is left.
    assert_eq!(follow(shelf.clone(), 0, 40), numbered(third, 40));
    shelf.forget(40).unwrap();
    assert_eq!(shelf.volumes().len(), KEEP);
    drop(writer);
    let (writer, found) = open(place.path(), 600);
    assert_eq!(writer.last(), 40);
    assert_eq!(found.last().map(|(position, _)| *position), Some(40));
}
