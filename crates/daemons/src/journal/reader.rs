//! Reading a journal: entry by entry for a follower, file by file at the start and for the check.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::entry::{Entry, FRAME_LEN, MAX_PAYLOAD, sum};
use super::{HEAD_LEN, MARK, Shelf};

/// Why reading a file ended before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Where the last whole entry ends.
    pub(crate) offset: u64,
    /// What is wrong there.
    pub(crate) what: &'static str,
}

/// What one step of reading found.
enum Step {
    Entry(Box<Entry>, u64),
    End,
    Damaged(&'static str),
}

/// Reads one file from the beginning: calls `each` for every whole entry with its number and the place
/// where it ends. Returns the number of the first entry, unless not even the head is whole, and what is
/// wrong.
pub(crate) fn scan(
    path: &Path,
    each: &mut dyn FnMut(u64, Entry, u64),
) -> io::Result<(Option<u64>, Option<Damage>)> {
    let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
    let damage = |offset, what| Some(Damage { offset, what });
    let Some(first) = read_head(&mut file)? else {
        return Ok((None, damage(0, "no head of a journal file")));
    };
    let (mut position, mut offset) = (first, HEAD_LEN);
    loop {
        match step(&mut file, position)? {
            Step::Entry(entry, length) => {
                offset += length;
                each(position, *entry, offset);
                position += 1;
            }
            Step::End => return Ok((Some(first), None)),
            Step::Damaged(what) => return Ok((Some(first), damage(offset, what))),
        }
    }
}

fn read_head(file: &mut impl Read) -> io::Result<Option<u64>> {
    let mut mark = [0; 8];
    let mut first = [0; 8];
    let whole = read_whole(file, &mut mark)? && read_whole(file, &mut first)?;
    Ok((whole && mark == MARK).then(|| u64::from_be_bytes(first)))
}

fn step(file: &mut impl Read, position: u64) -> io::Result<Step> {
    let mut length = [0; 4];
    let mut written = [0; 8];
    match file.read(&mut length[..1])? {
        0 => return Ok(Step::End),
        _ if !read_whole(file, &mut length[1..])? || !read_whole(file, &mut written)? => {
            return Ok(Step::Damaged("an entry breaks off"));
        }
        _ => {}
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_PAYLOAD {
        return Ok(Step::Damaged("an entry has an impossible length"));
    }
    let mut payload = vec![0; length];
    if !read_whole(file, &mut payload)? {
        return Ok(Step::Damaged("an entry breaks off"));
    }
    if sum(&payload, position) != u64::from_be_bytes(written) {
        return Ok(Step::Damaged("an entry has a wrong checksum"));
    }
    Ok(match Entry::read(&payload) {
        Some(entry) => Step::Entry(Box::new(entry), (FRAME_LEN + length) as u64),
        None => Step::Damaged("an entry makes no sense"),
    })
}

fn read_whole(file: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A reader that follows the journal over all its files.
pub(crate) struct Cursor {
    shelf: Shelf,
    /// The number of the next entry.
    next: u64,
    open: Option<Open>,
}

struct Open {
    serial: u32,
    file: BufReader<File>,
    /// Where the next entry begins.
    offset: u64,
}

impl Cursor {
    /// Begins behind `position`.
    pub(crate) fn new(shelf: Shelf, position: u64) -> Self {
        Self {
            shelf,
            next: position.saturating_add(1),
            open: None,
        }
    }

    /// The next entry and its number, if it is durable: the last durable one is `last`. What was
    /// forgotten meanwhile is passed over.
    pub(crate) fn next(&mut self, last: u64) -> io::Result<Option<(u64, Entry)>> {
        while self.next <= last {
            let Some(volume) = self.shelf.holding(self.next) else {
                return Ok(None);
            };
            self.next = self.next.max(volume.first);
            if self
                .open
                .as_ref()
                .is_none_or(|open| open.serial != volume.serial)
            {
                self.open = Some(self.find(volume.serial, volume.first)?);
            }
            let position = self.next;
            if let Some(entry) = self.read()? {
                self.next += 1;
                return Ok(Some((position, entry)));
            }
        }
        Ok(None)
    }

    /// The entry is durable, so it is there; what the buffer holds may have been read before it was.
    fn read(&mut self) -> io::Result<Option<Entry>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let mut what = "";
        for _ in 0..2 {
            match step(&mut open.file, self.next)? {
                Step::Entry(entry, length) => {
                    open.offset += length;
                    return Ok(Some(*entry));
                }
                Step::End => what = "an entry that was written is not there",
                Step::Damaged(why) => what = why,
            }
            open.file.seek(SeekFrom::Start(open.offset))?;
        }
        Err(damaged(what))
    }

    /// Opens a file and goes to the next entry in it.
    fn find(&self, serial: u32, first: u64) -> io::Result<Open> {
        let mut file = BufReader::with_capacity(64 << 10, File::open(self.shelf.path(serial))?);
        if read_head(&mut file)? != Some(first) {
            return Err(damaged("no head of a journal file"));
        }
        let mut offset = HEAD_LEN;
        for position in first..self.next {
            match step(&mut file, position)? {
                Step::Entry(_, length) => offset += length,
                _ => return Err(damaged("an entry that was written is not there")),
            }
        }
        Ok(Open {
            serial,
            file,
            offset,
        })
    }
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
