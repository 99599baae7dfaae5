//! What the tests share: numbered payloads, and opening with what was found.

use std::path::{Path, PathBuf};

use orbweaver_journal::{Cursor, Finding, OnDamage, Options, Segments, Writer, audit};

pub(crate) type Entries = Vec<(u64, Vec<u8>)>;

pub(crate) fn options(segment_bytes: u64) -> Options {
    Options {
        kind: *b"test   1",
        segment_bytes,
        max_payload: 1000,
    }
}

/// The payload of a position: its length depends on it.
pub(crate) fn payload(position: u64) -> Vec<u8> {
    let len = usize::try_from(position % 7 * 10).unwrap();
    let mut bytes = position.to_le_bytes().to_vec();
    bytes.extend(vec![b'x'; len]);
    bytes
}

pub(crate) fn numbered(from: u64, to: u64) -> Entries {
    (from..=to).map(|n| (n, payload(n))).collect()
}

pub(crate) fn open(dir: &Path, segment_bytes: u64, on_damage: OnDamage) -> (Writer, Entries) {
    let mut found = Vec::new();
    let writer = Writer::open(
        dir,
        options(segment_bytes),
        on_damage,
        &mut |position, payload| {
            found.push((position, payload.to_vec()));
        },
    );
    (writer.unwrap(), found)
}

/// Appends the entries after the last up to this position, one batch.
pub(crate) fn append_to(writer: &mut Writer, to: u64) {
    for position in writer.last() + 1..=to {
        assert_eq!(writer.append(&payload(position)).unwrap(), position);
    }
    writer.sync().unwrap();
}

pub(crate) fn follow(segments: Segments, position: u64, last: u64) -> Entries {
    let mut cursor = Cursor::new(segments, position);
    let mut seen = Vec::new();
    while let Some((position, payload)) = cursor.next(last).unwrap() {
        seen.push((position, payload.to_vec()));
    }
    seen
}

/// The segments of a directory by name.
pub(crate) fn logs(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .collect();
    files.sort();
    files
}

pub(crate) fn findings(dir: &Path) -> (u64, Vec<Finding>) {
    let mut found = Vec::new();
    let entries = audit(dir, &options(0), &mut |_| {}, &mut |finding| {
        found.push(finding);
    });
    (entries.unwrap(), found)
}
