//! Damage of every kind is named with its place, and nothing else is blamed.

use std::fs;
use std::path::{Path, PathBuf};

use orbweaver_store::{Location, Writer, check};

use crate::sample::{Sample, findings, new_dir, one_of_each, options, prose, store_all};

fn finished(dir: &Path, samples: &[Sample]) -> (PathBuf, PathBuf, Vec<Location>) {
    let (mut writer, _) = Writer::open(dir, options()).unwrap();
    let places = store_all(&mut writer, samples);
    writer.close().unwrap();
    let name = places[0].file.to_string();
    let index = name.replace(".warc.gz", ".cdxj");
    (
        dir.join("warc").join(name),
        dir.join("cdxj").join(index),
        places,
    )
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = change(fs::read_to_string(path).unwrap());
    fs::write(path, text).unwrap();
}

#[test]
fn every_flipped_byte_of_a_group_is_found() {
    let dir = new_dir();
    let samples = [
        Sample::page("/a", 1, &prose(1, 1100)),
        Sample::page("/b", 2, "short"),
        Sample::page("/c", 3, "after"),
    ];
    let (warc, _, places) = finished(dir.path(), &samples);
    let good = fs::read(&warc).unwrap();
    for at in places[1].offset..places[2].offset {
        let mut bad = good.clone();
        bad[at as usize] ^= 0x10;
        fs::write(&warc, bad).unwrap();
        let mut found = Vec::new();
        let summary = check(dir.path(), &mut |finding| found.push(finding));
        let idle = is_idle(&members(&good), at);
        assert!(summary.errors == 1 || idle, "byte {at}: {found:?}");
        assert!(
            found.iter().all(|f| f.file.starts_with("warc/")),
            "{found:?}"
        );
        let inside = |offset: u64| (places[1].offset..places[2].offset).contains(&offset);
        assert!(
            found.iter().all(|f| f.offset.is_some_and(inside)),
            "{found:?}"
        );
    }
}

/// Where gzip members begin, and the end of the last.
fn members(bytes: &[u8]) -> Vec<u64> {
    let starts = bytes.windows(8).enumerate();
    let starts = starts.filter(|(_, w)| *w == [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    let starts = starts.map(|(at, _)| at as u64);
    starts.chain([bytes.len() as u64]).collect()
}

/// Whether the flipped bit means nothing: bytes 4 to 9 of a gzip member are a time and two hints that
/// nobody reads, byte 10 of a stored one is mostly padding, and so is the last one before the checksum.
fn is_idle(members: &[u64], at: u64) -> bool {
    let spans = members.windows(2).map(|pair| (pair[0], pair[1]));
    let mut around = spans.filter(|(start, end)| (*start..*end).contains(&at));
    let idle = |(start, end): (u64, u64)| (4..11).contains(&(at - start)) || at + 9 == end;
    around.next().is_some_and(idle)
}

#[test]
fn each_kind_of_wrong_index_line_is_named() {
    let samples = one_of_each();
    type Change = fn(String) -> String;
    let cases: [(&str, Change); 8] = [
        ("says status \"201\"", |t| {
            t.replacen("\"200\"", "\"201\"", 1)
        }),
        ("says url", |t| {
            t.replacen("example.org/a\"", "example.org/A\"", 1)
        }),
        ("says mime", |t| t.replacen("image/png", "image/gif", 1)),
        ("says timestamp", |t| {
            t.replacen(" 20260301", " 20260302", 1)
        }),
        ("out of order", |t| {
            let mut lines: Vec<&str> = t.split_inclusive('\n').collect();
            lines.swap(0, 1);
            lines.concat()
        }),
        ("has no line for this record", |t| {
            t.split_inclusive('\n').skip(1).collect()
        }),
        ("not a line of an index", |t| format!("{t}zzz\n")),
        ("names another WARC file", |t| {
            t.replacen(".warc.gz", ".warc.xz", 1)
        }),
    ];
    for (expected, change) in cases {
        let dir = new_dir();
        let (_, index, _) = finished(dir.path(), &samples);
        edit(&index, change);
        let found = findings(dir.path());
        let named = found.iter().any(|line| line.contains(expected));
        assert!(named, "{expected}: {found:?}");
        assert!(found.len() <= 2, "{found:?}");
    }
}

#[test]
fn a_line_that_points_nowhere_is_an_error() {
    let dir = new_dir();
    let (_, index, places) = finished(dir.path(), &[Sample::page("/a", 1, "x")]);
    let offset = format!("\"offset\": \"{}\"", places[0].offset);
    edit(&index, |t| t.replace(&offset, "\"offset\": \"5\""));
    let found = findings(dir.path());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("no line for this record"), "{found:?}");
    assert!(
        found[1].contains("no whole exchange begins at byte 5"),
        "{found:?}"
    );
}

#[test]
fn a_revisit_whose_original_is_gone_is_an_error() {
    let dir = new_dir();
    let text = prose(1, 2000);
    let (warc, index, _) = finished(dir.path(), &[Sample::page("/a", 1, &text)]);
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    store_all(&mut writer, &[Sample::page("/b", 2, &text)]);
    writer.close().unwrap();
    assert_eq!(check(dir.path(), &mut |_| {}).revisits, 1);
    assert_eq!(findings(dir.path()), Vec::<String>::new());
    fs::remove_file(warc).unwrap();
    fs::remove_file(index).unwrap();
    let found = findings(dir.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("original of the revisit cannot be read"),
        "{found:?}"
    );
}

#[test]
fn stray_files_are_told_apart() {
    let dir = new_dir();
    finished(dir.path(), &[Sample::page("/a", 1, "x")]);
    fs::write(dir.path().join("warc/notes.txt"), "x").unwrap();
    fs::write(dir.path().join("cdxj/lost.cdxj"), "").unwrap();
    fs::write(dir.path().join("cdxj/half.cdxj.new"), "").unwrap();
    fs::write(dir.path().join("cdxj/old.cdxj.open"), "").unwrap();
    let summary = check(dir.path(), &mut |_| {});
    assert_eq!(
        (summary.errors, summary.notes),
        (1, 3),
        "{:?}",
        findings(dir.path())
    );
}

#[test]
fn a_torn_end_of_an_open_file_is_a_note() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let places = store_all(&mut writer, &one_of_each());
    let open = dir.path().join(format!("warc/{}.open", places[0].file));
    let len = open.metadata().unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&open).unwrap();
    file.set_len(len - 3).unwrap();
    let summary = check(dir.path(), &mut |_| {});
    assert_eq!(
        (summary.errors, summary.notes),
        (0, 1),
        "{:?}",
        findings(dir.path())
    );
    assert_eq!(open.metadata().unwrap().len(), len - 3);
}

#[test]
fn lines_that_are_still_to_come_are_one_note() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let places = store_all(&mut writer, &one_of_each());
    let stem = places[0].file.trim_end_matches(".warc.gz");
    fs::write(dir.path().join(format!("cdxj/{stem}.cdxj.open")), "").unwrap();
    let found = findings(dir.path());
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = format!("no lines yet for {} records", places.len());
    assert!(found[0].contains(&expected), "{found:?}");
    assert!(found[0].contains(&format!("at byte {}", places[0].offset)));
}
