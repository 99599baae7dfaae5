//! Reading a journal entry by entry, at the reader's own pace, while it grows.

use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};

use crate::error::Error;
use crate::segment::{HEAD_LEN, Head, Step, read_head, step};
use crate::segments::Segments;

/// A reader that goes through all segments in order.
#[derive(Debug)]
pub struct Cursor {
    segments: Segments,
    /// The position of the next entry.
    next: u64,
    open: Option<Reading>,
    payload: Vec<u8>,
}

#[derive(Debug)]
struct Reading {
    first: u64,
    file: BufReader<File>,
    /// Where the next entry begins.
    offset: u64,
}

impl Cursor {
    /// Begins behind `position`; 0 is before the first entry.
    pub fn new(segments: Segments, position: u64) -> Self {
        Self {
            segments,
            next: position.saturating_add(1),
            open: None,
            payload: Vec::new(),
        }
    }

    /// The position of the last entry that was read, or behind which this began.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// The next entry and its position, if it is not behind `last`, which must have been written. What was forgotten
    /// meanwhile is passed over.
    pub fn next(&mut self, last: u64) -> Result<Option<(u64, &[u8])>, Error> {
        if self.next > last {
            return Ok(None);
        }
        let Some(first) = self.segments.holding(self.next) else {
            return Ok(None);
        };
        self.next = self.next.max(first);
        if self.next > last {
            return Ok(None);
        }
        let mut open = match self.open.take() {
            Some(open) if open.first == first => open,
            _ => self.find(first)?,
        };
        self.read(&mut open)?;
        self.open = Some(open);
        let position = self.next;
        self.next += 1;
        Ok(Some((position, &self.payload)))
    }

    /// The entry was written, so it is there; what the buffer holds may have been read before it was.
    fn read(&mut self, open: &mut Reading) -> Result<(), Error> {
        let path = self.segments.path(open.first);
        let failed = |e: io::Error| Error::io("read", &path, e);
        let max = self.segments.options.max_payload;
        let mut what = "";
        for _ in 0..2 {
            match step(&mut open.file, self.next, max, &mut self.payload).map_err(failed)? {
                Step::Entry(length) => {
                    open.offset += length;
                    return Ok(());
                }
                Step::End => what = "an entry that was written is not there",
                Step::Damaged(why) => what = why,
            }
            let back = open.file.seek(SeekFrom::Start(open.offset));
            back.map_err(failed)?;
        }
        Err(Error::damaged(&path, open.offset, what))
    }

    /// Opens a segment and goes to the next entry in it.
    fn find(&mut self, first: u64) -> Result<Reading, Error> {
        let path = self.segments.path(first);
        let failed = |e: io::Error| Error::io("read", &path, e);
        let options = std::sync::Arc::clone(&self.segments.options);
        let file = File::open(&path).map_err(failed)?;
        let mut file = BufReader::with_capacity(64 << 10, file);
        if read_head(&mut file, &options).map_err(failed)? != Head::First(first) {
            return Err(Error::damaged(&path, 0, "it has no head"));
        }
        let mut offset = HEAD_LEN;
        for position in first..self.next {
            let step = step(&mut file, position, options.max_payload, &mut self.payload);
            match step.map_err(failed)? {
                Step::Entry(length) => offset += length,
                Step::End => {
                    let what = "an entry that was written is not there";
                    return Err(Error::damaged(&path, offset, what));
                }
                Step::Damaged(what) => return Err(Error::damaged(&path, offset, what)),
            }
        }
        Ok(Reading {
            first,
            file,
            offset,
        })
    }
}
