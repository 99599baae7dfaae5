//! The captures of an archive in the order in which they were archived, from the archive alone.
//!
//! A WARC file is appended to by one thread, and files are numbered in the order of their making; so captures come in the
//! order of (number, offset), which is that of the journal. From here entries are made again that the journal lost or has
//! forgotten.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use orbweaver_model::{CapturePlace, Purpose, Timestamp};

use super::entry::{Entry, Standing};
use crate::cdxj::{Lines, open_index};
use crate::date::{parse_digits, parse_iso};
use crate::error::StoreError;
use crate::files::{CDXJ, Layout, OPEN, Stem, WARC, names};
use crate::warc::group::{MAX_SIDE_BLOCK, warc_field};
use crate::warc::reader::{Records, read_next};

/// A capture as an index names it.
#[derive(Debug)]
struct Line {
    place: CapturePlace,
    length: u64,
    timestamp: String,
    url: String,
}

/// Goes through the captures of an archive.
#[derive(Debug)]
pub(crate) struct Past {
    layout: Layout,
    /// Files that are still to be read, oldest first.
    files: VecDeque<(u32, String)>,
    /// The captures of the file that is being read, oldest first. Bounded by the size of one index.
    lines: VecDeque<Line>,
    /// The file that is being read; none when it cannot be opened.
    warc: Option<File>,
    after: Option<CapturePlace>,
}

impl Past {
    /// The captures behind a place; all without one.
    pub(crate) fn behind(layout: &Layout, after: Option<CapturePlace>) -> Result<Self, StoreError> {
        let mut files: Vec<(u32, String)> = Vec::new();
        for name in names(&layout.cdxj)? {
            let stem = name.strip_suffix(OPEN).unwrap_or(&name);
            let Some(stem) = stem.strip_suffix(CDXJ) else {
                continue;
            };
            let number = Stem::parse(stem).map(|stem| stem.serial());
            let wanted = number.filter(|number| after.is_none_or(|after| *number >= after.file));
            files.extend(wanted.map(|number| (number, stem.to_owned())));
        }
        files.sort();
        files.dedup();
        Ok(Self {
            layout: layout.clone(),
            files: files.into(),
            lines: VecDeque::new(),
            warc: None,
            after,
        })
    }

    /// The place of the last capture of an archive.
    pub(crate) fn last_of(layout: &Layout) -> Result<Option<CapturePlace>, StoreError> {
        let mut past = Self::behind(layout, None)?;
        while let Some((number, stem)) = past.files.pop_back() {
            past.open(number, &stem)?;
            if let Some(line) = past.lines.back() {
                return Ok(Some(line.place));
            }
        }
        Ok(None)
    }

    /// The next capture, as an entry without a note.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(self.entry(line)));
            }
            let Some((number, stem)) = self.files.pop_front() else {
                return Ok(None);
            };
            self.open(number, &stem)?;
        }
    }

    fn open(&mut self, number: u32, stem: &str) -> Result<(), StoreError> {
        let opened = self.layout.open_warc(&format!("{stem}{WARC}"));
        self.warc = opened.ok().map(|(_, file)| file);
        let path = self.layout.cdxj_open(stem);
        let Some((index, _)) = open_index(&path, false)? else {
            return Ok(());
        };
        let index = std::io::BufReader::with_capacity(256 << 10, index);
        let mut lines = Lines::new(index, 0);
        let mut found = Vec::new();
        let failed = |e| StoreError::io("read", &path, e);
        while let Some(line) = lines.next_parsed().map_err(failed)? {
            let place = CapturePlace {
                file: number,
                offset: line.offset,
            };
            if self.after.is_none_or(|after| place > after) {
                found.push(Line {
                    place,
                    length: line.length,
                    timestamp: line.timestamp,
                    url: line.url,
                });
            }
        }
        found.sort_by_key(|line| line.place);
        found.dedup_by_key(|line| line.place);
        self.lines = found.into();
        Ok(())
    }

    /// What the index does not say, the metadata record does; of a damaged one the index has to do.
    fn entry(&self, line: Line) -> Entry {
        let facts = self.warc.as_ref().and_then(|file| {
            let after = line.place.offset.checked_add(line.length)?;
            facts(&self.layout.warc, file.try_clone().ok()?, after)
        });
        let (at, purpose) = facts.unwrap_or_else(|| {
            let began = parse_digits(&line.timestamp).unwrap_or_default();
            (began, Purpose::Page)
        });
        Entry {
            at,
            purpose,
            standing: Standing::Stored(line.place),
            url: line.url,
            note: Vec::new(),
        }
    }
}

/// When the exchange ended whose request or metadata record begins here, and what it was for.
fn facts(path: &Path, file: File, offset: u64) -> Option<(Timestamp, Purpose)> {
    // A request and a metadata record fit in 4 KiB.
    let mut records = Records::from_file(path, file, offset, 4 << 10).ok()?;
    for _ in 0..2 {
        let record = read_next(&mut records, MAX_SIDE_BLOCK).ok()??;
        if record.head.kind() != "metadata" {
            continue;
        }
        let began = record.head.field("WARC-Date").and_then(parse_iso)?;
        let took = warc_field(&record.block, "fetchTimeMs").and_then(|text| text.parse().ok());
        let ended = began.as_millis().saturating_add(took.unwrap_or(0));
        let purpose = match warc_field(&record.block, "purpose") {
            Some("robots") => Purpose::Robots,
            _ => Purpose::Page,
        };
        return Some((Timestamp::from_millis(ended), purpose));
    }
    None
}
