//! Records as a stream: what was written once stays readable, and nothing else is taken for it.

use orbweaver_coldstore::stream::{Block, Incoming, Outgoing};
use orbweaver_coldstore::{Error, Result};

/// A stream of version 1 as it was written when version 1 was new. It is never written again.
const FIXTURE: &[u8] = include_bytes!("../fixtures/stream-1.bin");
const HEAD: &[u8] = b"a store of two keyspaces";

type Record = (usize, Vec<u8>, Vec<u8>);

fn records() -> Vec<Record> {
    let record = |place: usize, key: &str, value: &str| (place, key.into(), value.into());
    vec![
        record(0, "a", "first"),
        record(0, "b", ""),
        record(0, "b\0", "after it"),
        record(2, "", "no key"),
        record(2, "z", "last"),
    ]
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Outgoing::begin(&mut bytes, HEAD).unwrap();
    for (place, key, value) in records {
        out.keyspace(*place);
        out.row(key, value).unwrap();
    }
    out.end().unwrap();
    bytes
}

fn read(mut bytes: &[u8]) -> Result<Vec<Record>> {
    let (head, mut stream) = Incoming::begin(&mut bytes)?;
    assert_eq!(head, HEAD);
    let mut found = Vec::new();
    while let Block::Row(place, key, value) = stream.read_on()? {
        found.push((place, key, value));
    }
    Ok(found)
}

#[test]
fn a_stream_of_version_1_is_read() {
    assert_eq!(read(FIXTURE).unwrap(), records());
}

#[test]
fn the_bytes_have_not_changed_without_their_version() {
    assert!(
        FIXTURE == written(&records()),
        "streams are written in other bytes than version 1 says: give them a new version, read the old one too, and follow docs/formats/snapshot.md"
    );
}

#[test]
fn whatever_is_cut_or_flipped_is_refused() {
    for cut in 0..FIXTURE.len() {
        assert!(
            matches!(read(&FIXTURE[..cut]), Err(Error::Stream(_))),
            "cut at {cut}"
        );
    }
    for bit in 0..FIXTURE.len() * 8 {
        let mut flipped = FIXTURE.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(read(&flipped), Err(Error::Stream(_))), "bit {bit}");
    }
}

/// Blocks of some 256 KiB, of which two change places: each is whole, and the stream is not.
#[test]
fn large_streams_come_in_blocks_that_keep_their_order() {
    let value = vec![7; 100_000];
    let many: Vec<Record> = (0..12u8).map(|n| (0, vec![n], value.clone())).collect();
    let bytes = written(&many);
    assert_eq!(read(&bytes).unwrap(), many);
    let mut blocks = Vec::new();
    let (magic, mut rest) = bytes.split_at(9);
    while !rest.is_empty() {
        let length = 12 + u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        blocks.push(&rest[..length]);
        rest = &rest[length..];
    }
    assert!(blocks.len() > 4, "{} blocks", blocks.len());
    blocks.swap(1, 2);
    let swapped = [magic, &blocks.concat()[..]].concat();
    assert!(matches!(read(&swapped), Err(Error::Stream(_))));
}

#[test]
fn records_that_are_not_in_their_order_are_refused() {
    let mut backwards = records();
    backwards.swap(0, 1);
    assert!(matches!(read(&written(&backwards)), Err(Error::Stream(_))));
    let twice = [records(), records()[4..].to_vec()].concat();
    assert!(matches!(read(&written(&twice)), Err(Error::Stream(_))));
}
