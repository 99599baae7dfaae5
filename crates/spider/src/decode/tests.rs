//! Encodings good and bad, fed whole and byte by byte.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// A page that compresses, and not to nothing.
fn page() -> Vec<u8> {
    let mut page = Vec::new();
    for n in 0..8_000_u32 {
        write!(page, "<p>{} {}</p>", n, n.wrapping_mul(2_654_435_761)).unwrap();
    }
    page
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// brotli in blocks that hold their data as it is: a window of 64 KiB, blocks of up to that size.
fn brotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, block) in data.chunks(1 << 16).enumerate() {
        let length = block.len() as u32 - 1;
        let header = match at {
            0 => (length << 4) | (1 << 20),
            _ => (length << 3) | (1 << 19),
        };
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out.push(3);
    out
}

fn zstd(data: &[u8]) -> Vec<u8> {
    compress_to_vec(data, CompressionLevel::Fastest)
}

/// A zstd frame of run-length blocks: four bytes stand for 128 KiB.
fn zstd_bomb(blocks: usize) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    for _ in 0..blocks {
        let header: u32 = (128 << 10) << 3 | 1 << 1;
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.push(b'z');
    }
    out.extend_from_slice(&[1, 0, 0]);
    out
}

fn decoder(encodings: &str) -> Result<Option<Decoder>, Corrupt> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, encodings.parse().unwrap());
    Decoder::new(&headers, 4)
}

/// Decodes `data` in pieces of `step` bytes: the output, and whether it is complete or damaged.
fn decode(
    encodings: &str,
    data: &[u8],
    step: usize,
    room: usize,
) -> (Vec<u8>, Result<bool, Corrupt>) {
    let mut decoder = decoder(encodings).unwrap().unwrap();
    let mut out = Vec::new();
    for piece in data.chunks(step) {
        decoder.feed(Bytes::copy_from_slice(piece));
        // Small steps of output, so that codings are interrupted in the middle of a block.
        loop {
            let now = room.min(out.len() + 1000);
            match decoder.pull(&mut out, now, usize::MAX) {
                Ok(Flow::Hungry) => break,
                Ok(Flow::Full) if out.len() >= room => return (out, Ok(false)),
                Ok(Flow::Full | Flow::Starved) => {}
                Err(corrupt) => return (out, Err(corrupt)),
            }
        }
    }
    let complete = decoder.finish(&mut out, room);
    (out, Ok(complete))
}

#[test]
fn every_encoding_in_pieces_of_any_size() {
    let page = page();
    for (encodings, data) in [
        ("gzip", gzip(&page)),
        ("X-GZip", gzip(&page)),
        ("deflate", zlib(&page)),
        ("deflate", raw_deflate(&page)),
        ("br", brotli(&page)),
        ("zstd", zstd(&page)),
        ("identity, gzip", gzip(&page)),
        ("gzip, br", brotli(&gzip(&page))),
        ("zstd, deflate, gzip", gzip(&zlib(&zstd(&page)))),
        ("br, gzip, zstd", zstd(&gzip(&brotli(&page)))),
    ] {
        for step in [1, 7, 4096, usize::MAX] {
            let (out, end) = decode(encodings, &data, step, usize::MAX);
            assert_eq!(end, Ok(true), "{encodings} {step}");
            assert!(out == page, "{encodings} {step}");
        }
    }
}

#[test]
fn further_members_and_frames_are_part_of_the_page_and_garbage_is_not() {
    let (one, two) = (b"<html>part one ".as_slice(), b"part two</html>".as_slice());
    let both = [one, two].concat();
    for step in [1, 5, usize::MAX] {
        let members = [gzip(one), gzip(two)].concat();
        assert_eq!(
            decode("gzip", &members, step, 999),
            (both.clone(), Ok(true))
        );
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let frames = [zstd(one), skippable.to_vec(), zstd(two)].concat();
        assert_eq!(decode("zstd", &frames, step, 999), (both.clone(), Ok(true)));
        for (encoding, page) in [
            ("gzip", gzip(&both)),
            ("deflate", zlib(&both)),
            ("br", brotli(&both)),
            ("zstd", zstd(&both)),
        ] {
            let data = [page, b"GARBAGE".repeat(100_000)].concat();
            let (out, end) = decode(encoding, &data, step.max(5), usize::MAX);
            assert_eq!((out, end), (both.clone(), Ok(true)), "{encoding} {step}");
        }
    }
}

#[test]
fn what_is_cut_gives_its_beginning() {
    let page = page();
    for (encoding, data) in [
        ("gzip", gzip(&page)),
        ("deflate", zlib(&page)),
        ("br", brotli(&page)),
        ("zstd", zstd(&page)),
    ] {
        let (out, end) = decode(encoding, &data[..data.len() * 9 / 10], 999, usize::MAX);
        assert_eq!(end, Ok(false), "{encoding}");
        assert!(out.len() > page.len() / 4, "{encoding}");
        assert!(page.starts_with(&out), "{encoding}");
    }
}

#[test]
fn damage_is_seen_and_what_came_before_it_is_kept() {
    let page = page();
    for (encoding, mut data) in [("gzip", gzip(&page)), ("deflate", zlib(&page))] {
        let at = data.len() - 4;
        data[at] ^= 0xff;
        let (out, end) = decode(encoding, &data, 4096, usize::MAX);
        assert_eq!(end, Err(Corrupt("damaged compressed data")), "{encoding}");
        assert!(out == page, "{encoding}");
    }
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let (out, end) = decode(encoding, b"<!doctype html><p>plain", 4096, usize::MAX);
        assert_eq!((out.len(), end.is_err()), (0, true), "{encoding}");
    }
}

#[test]
fn bombs_stop_at_the_room_there_is() {
    const ROOM: usize = 1 << 20;
    let zeros = vec![0; 64 << 20];
    let bomb = gzip(&zeros);
    for (encodings, data) in [
        ("gzip", bomb.clone()),
        ("gzip, gzip", gzip(&bomb)),
        ("zstd", zstd_bomb(1000)),
        ("br", brotli(&zeros[..2 << 20])),
    ] {
        let (out, end) = decode(encodings, &data, usize::MAX, ROOM);
        assert_eq!(end, Ok(false), "{encodings}");
        assert!(
            (ROOM..ROOM + (256 << 10)).contains(&out.len()),
            "{encodings}"
        );
    }
}

#[test]
fn input_without_output_has_an_end() {
    // A gzip member whose file name never ends.
    let mut name = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
    name.resize(MAX_BARREN * 2, b'n');
    // Empty gzip members, empty zstd blocks, a zstd frame to be passed over.
    let members = gzip(b"").repeat(MAX_BARREN / 10);
    let mut blocks = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    blocks.resize(MAX_BARREN * 2, 0);
    let mut skippable = vec![0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0x7f];
    skippable.resize(MAX_BARREN * 2, 0);
    for (encoding, data) in [
        ("gzip", name),
        ("gzip", members),
        ("zstd", blocks),
        ("zstd", skippable),
    ] {
        let (out, end) = decode(encoding, &data, 16 << 10, usize::MAX);
        let barren = Err(Corrupt("content encoding without content"));
        assert_eq!((out.len(), end), (0, barren), "{encoding}");
    }
}

#[test]
fn huge_windows_and_unknown_encodings_are_refused() {
    // Window descriptor 0xff: 3.75 TiB. Then 16 MiB, just above the limit.
    for descriptor in [0xff, 0x70] {
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, descriptor, 1, 0, 0];
        let (out, end) = decode("zstd", &frame, 3, usize::MAX);
        assert_eq!((out.len(), end.is_err()), (0, true), "{descriptor:x}");
    }
    let refused = |encodings: &str| decoder(encodings).err();
    assert_eq!(refused("foo"), Some(Corrupt("unknown content encoding")));
    assert_eq!(
        refused("gzip, foo"),
        Some(Corrupt("unknown content encoding"))
    );
    let stack = ["gzip"; 5].join(",");
    assert_eq!(refused(&stack), Some(Corrupt("too many content encodings")));
    for nothing in ["identity", "", " , none"] {
        assert!(matches!(decoder(nothing), Ok(None)), "{nothing:?}");
    }
}

/// A stream that says little and keeps much stops where the memory does, and goes on when there is more.
#[test]
fn what_a_coding_keeps_is_counted() {
    // A window of 8 MiB and 32 blocks of 128 KiB of one letter: 4 MiB that the window keeps back.
    let mut kept_back = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    let run: u32 = ((128 << 10) << 3) | 2;
    for _ in 0..32 {
        kept_back.extend_from_slice(&run.to_le_bytes()[..3]);
        kept_back.push(b'x');
    }
    for (encodings, body) in [
        ("zstd", kept_back.clone()),
        ("zstd, gzip", gzip(&kept_back)),
        ("br", brotli(&vec![b'x'; 4 << 20])),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encodings.parse().unwrap());
        let mut decoder = Decoder::new(&headers, 4).unwrap().unwrap();
        decoder.feed(Bytes::from(body));
        let (mut out, mut memory, mut waits) = (Vec::new(), 64 << 10, 0);
        loop {
            let flow = decoder.pull(&mut out, usize::MAX, memory).unwrap();
            let taken = out.len() + decoder.held();
            assert!(
                taken < memory + (256 << 10),
                "{encodings}: {taken} of {memory}"
            );
            match flow {
                Flow::Hungry => break,
                Flow::Full | Flow::Starved => {
                    memory += 64 << 10;
                    waits += 1;
                }
            }
        }
        decoder.finish(&mut out, usize::MAX);
        assert_eq!(out.len(), 4 << 20, "{encodings}");
        assert!(waits > 40, "{encodings}: {waits}");
    }
}
