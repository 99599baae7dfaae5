//! One segment file: its head, the frame of an entry, and reading one after the other.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::Options;
use crate::error::Error;

/// What every segment begins with; the digit is the version of this layout.
const MARK: [u8; 8] = *b"OWJRNL1\n";

/// Bytes before the first entry: mark, kind, position of the first entry, checksum of the three.
pub(crate) const HEAD_LEN: u64 = 32;

/// Bytes before a payload: its length and its checksum.
pub(crate) const FRAME_LEN: usize = 12;

/// The head of a segment whose first entry has this position.
pub(crate) fn head(options: &Options, first: u64) -> Vec<u8> {
    let mut head = [MARK, options.kind, first.to_be_bytes()].concat();
    head.extend(xxh3_64(&head).to_be_bytes());
    head
}

/// Adds an entry to `out`. Its checksum covers its position too, so that an entry in a wrong place is not taken for a
/// right one. False, and nothing added, when the payload is too long.
pub(crate) fn write(payload: &[u8], position: u64, max: usize, out: &mut Vec<u8>) -> bool {
    let length = match u32::try_from(payload.len()) {
        Ok(length) if payload.len() <= max => length,
        _ => return false,
    };
    out.extend(length.to_be_bytes());
    out.extend(xxh3_64_with_seed(payload, position).to_be_bytes());
    out.extend_from_slice(payload);
    true
}

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A segment of this journal that begins with this position.
    First(u64),
    /// Whole, but of another kind or version.
    Foreign,
    /// Not whole.
    Broken,
}

/// What one step of reading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An entry of so many bytes with its frame; the payload is in the buffer.
    Entry(u64),
    End,
    Damaged(&'static str),
}

pub(crate) fn read_head(file: &mut impl Read, options: &Options) -> io::Result<Head> {
    let mut parts = [[0; 8]; 4];
    for part in &mut parts {
        if !read_whole(file, part)? {
            return Ok(Head::Broken);
        }
    }
    let [mark, kind, first, sum] = parts;
    let whole = xxh3_64(&[mark, kind, first].concat()) == u64::from_be_bytes(sum);
    Ok(match whole {
        true if mark == MARK && kind == options.kind => Head::First(u64::from_be_bytes(first)),
        true => Head::Foreign,
        false => Head::Broken,
    })
}

/// Reads the next entry, which must have this position, into `payload`.
pub(crate) fn step(
    file: &mut impl Read,
    position: u64,
    max: usize,
    payload: &mut Vec<u8>,
) -> io::Result<Step> {
    const BROKEN: Step = Step::Damaged("an entry breaks off");
    let mut begin = [0; 1];
    let mut length = [0; 3];
    let mut sum = [0; 8];
    if !read_whole(file, &mut begin)? {
        return Ok(Step::End);
    }
    if !read_whole(file, &mut length)? || !read_whole(file, &mut sum)? {
        return Ok(BROKEN);
    }
    let ([a], [b, c, d]) = (begin, length);
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > max {
        return Ok(Step::Damaged("an entry has an impossible length"));
    }
    payload.clear();
    payload.resize(length, 0);
    if !read_whole(file, payload)? {
        return Ok(BROKEN);
    }
    if xxh3_64_with_seed(payload, position) != u64::from_be_bytes(sum) {
        return Ok(Step::Damaged("an entry has a wrong checksum"));
    }
    Ok(Step::Entry((FRAME_LEN + length) as u64))
}

fn read_whole(file: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// What reading a whole segment found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) head: Head,
    /// Entries that are whole.
    pub(crate) entries: u64,
    /// Where the last whole entry ends; 0 without a head.
    pub(crate) end: u64,
    /// What is wrong behind it.
    pub(crate) damage: Option<&'static str>,
}

/// Reads a segment that should begin with `first`, and calls `each` for every whole entry with its position, its payload
/// and the place where it ends.
pub(crate) fn scan(
    path: &Path,
    first: u64,
    options: &Options,
    each: &mut dyn FnMut(u64, &[u8], u64),
) -> Result<Scan, Error> {
    let failed = |e| Error::io("read", path, e);
    let mut file = BufReader::with_capacity(256 << 10, File::open(path).map_err(failed)?);
    let head = read_head(&mut file, options).map_err(failed)?;
    let mut scan = Scan {
        head,
        entries: 0,
        end: 0,
        damage: match head {
            Head::First(found) if found == first => None,
            Head::First(_) => Some("its head names another position than its name"),
            Head::Foreign => Some("it is of another kind or version"),
            Head::Broken => Some("it has no head"),
        },
    };
    if scan.damage.is_some() {
        return Ok(scan);
    }
    scan.end = HEAD_LEN;
    let mut payload = Vec::new();
    loop {
        let position = first.saturating_add(scan.entries);
        match step(&mut file, position, options.max_payload, &mut payload).map_err(failed)? {
            Step::Entry(length) => {
                scan.entries += 1;
                scan.end += length;
                each(position, &payload, scan.end);
            }
            Step::End => return Ok(scan),
            Step::Damaged(what) => {
                scan.damage = Some(what);
                return Ok(scan);
            }
        }
    }
}
