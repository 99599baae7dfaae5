//! Files that are torn, harmed or gone: what is whole stays, and nothing wrong is ever read.

use std::fs;

use orbweaver_journal::{Cursor, Error, OnDamage, Writer};
use proptest::prelude::*;

use crate::support::{append_to, findings, follow, logs, numbered, open, options};

#[test]
fn a_hole_in_the_middle_is_not_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 100, OnDamage::Refuse);
    (1..=8).for_each(|to| append_to(&mut writer, to));
    drop(writer);
    let path = logs(place.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let error = Writer::open(place.path(), options(100), OnDamage::Refuse, &mut |_, _| {});
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("0001.log"), "{error}");
    let (_, found) = findings(place.path());
    assert!(found.iter().any(|finding| finding.is_error), "{found:?}");
    // Whoever can write the entries again has it cut there.
    let (mut writer, found) = open(place.path(), 100, OnDamage::Cut);
    assert!(found.len() < 8);
    append_to(&mut writer, 8);
    assert_eq!(follow(writer.segments(), 0, 8), numbered(1, 8));
    assert_eq!(findings(place.path()), (8, vec![]));
}

#[test]
fn a_cursor_says_where_damage_is() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Refuse);
    append_to(&mut writer, 5);
    let path = logs(place.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut cursor = Cursor::new(writer.segments(), 0);
    for position in 1..5 {
        assert_eq!(cursor.next(5).unwrap().unwrap().0, position);
    }
    for _ in 0..2 {
        assert!(matches!(cursor.next(5), Err(Error::Damaged { .. })));
    }
}

/// What is done to a file.
#[derive(Clone, Debug)]
enum Harm {
    Cut(u16),
    Flip(u16, u8),
    Remove,
    Append(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<u16>().prop_map(Harm::Cut),
        (any::<u16>(), 0..8u8).prop_map(|(at, bit)| Harm::Flip(at, 1 << bit)),
        Just(Harm::Remove),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Harm::Append),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Whatever is done to one of the files, opening it with leave to cut gives entries that were written, without a gap
    /// and in order; what is appended then is read back; and the check finds nothing any more.
    #[test]
    fn what_is_read_was_written(
        batches in prop::collection::vec(1..6u64, 1..12),
        victim in any::<prop::sample::Index>(),
        harm in harm(),
    ) {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, _) = open(place.path(), 200, OnDamage::Refuse);
        let mut last = 0;
        for batch in batches {
            last += batch;
            append_to(&mut writer, last);
        }
        drop(writer);
        let files = logs(place.path());
        let path = victim.get(&files);
        let mut bytes = fs::read(path).unwrap();
        let len = bytes.len();
        match &harm {
            Harm::Cut(at) => bytes.truncate(usize::from(*at) % len),
            Harm::Flip(at, bit) => bytes[usize::from(*at) % len] ^= *bit,
            Harm::Append(more) => bytes.extend(more),
            Harm::Remove => {}
        }
        match harm {
            Harm::Remove => fs::remove_file(path).unwrap(),
            _ => fs::write(path, bytes).unwrap(),
        }
        // The one who refuses changes nothing but the end.
        if let Ok(writer) = Writer::open(place.path(), options(200), OnDamage::Refuse, &mut |_, _| {}) {
            drop(writer);
        }
        let (mut writer, found) = open(place.path(), 200, OnDamage::Cut);
        if let Some((first, _)) = found.first() {
            prop_assert_eq!(&found, &numbered(*first, first + found.len() as u64 - 1));
            prop_assert_eq!(writer.last(), first + found.len() as u64 - 1);
        }
        let first = found.first().map_or(writer.last() + 1, |(first, _)| *first);
        let end = writer.last() + 4;
        append_to(&mut writer, end);
        prop_assert_eq!(follow(writer.segments(), 0, end), numbered(first, end));
        drop(writer);
        prop_assert_eq!(findings(place.path()).1, vec![]);
    }

    /// Bytes that nobody wrote: no panic, no entry, a clear error at most.
    #[test]
    fn anything_can_lie_there(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("00000000000000000001.log"), bytes).unwrap();
        let mut entries = 0;
        let opened = Writer::open(place.path(), options(200), OnDamage::Cut, &mut |_, _| entries += 1);
        prop_assert!(opened.is_ok());
        prop_assert_eq!(entries, 0);
    }
}

#[test]
fn a_harmed_head_of_a_full_segment_is_no_torn_beginning() {
    let place = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(place.path(), 1 << 20, OnDamage::Refuse);
    append_to(&mut writer, 5);
    drop(writer);
    let path = logs(place.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let refused = Writer::open(place.path(), options(200), OnDamage::Refuse, &mut |_, _| {});
    assert!(matches!(refused, Err(Error::Damaged { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
