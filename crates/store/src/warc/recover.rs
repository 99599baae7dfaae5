//! Taking over a directory: unfinished files are made whole, strays removed, missing indexes rebuilt.
//!
//! A WARC file alone is enough to rebuild its index, so the unsorted index of an unfinished file is never
//! trusted. What was acknowledged was synced before, so cutting a torn tail cannot touch it; should a tail
//! hold whole groups after damage in the middle, it is set aside instead of being thrown away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::cdxj::{IndexLine, Lines};
use crate::digest::{Digest, Digests};
use crate::error::StoreError;
use crate::files::{self, CDXJ, Layout, NEW, OPEN, WARC, names};
use crate::warc::group::{Groups, Item};
use crate::warc::reader::Records;
use crate::warc::writer::{finish_names, write_sorted};

/// A torn end that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The WARC file, by its finished name.
    pub file: String,
    /// Where it ends now.
    pub at: u64,
    /// Bytes that were cut off.
    pub bytes: u64,
    /// Where those bytes were put, when they hold more than one torn group.
    pub kept: Option<PathBuf>,
}

/// What was found and done when a directory was taken over.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Torn ends that were cut off.
    pub cuts: Vec<Cut>,
    /// Unfinished files that are finished now, by name.
    pub finished: Vec<String>,
    /// Unfinished files that held no whole exchange and are gone.
    pub dropped: Vec<String>,
    /// Finished files whose index was missing and has been rebuilt.
    pub reindexed: Vec<String>,
    /// Indexes of the files that the last run may have written without the doc index knowing it.
    recent: Vec<PathBuf>,
}

impl Recovery {
    /// True when there was nothing to repair.
    pub fn is_clean(&self) -> bool {
        self.cuts.is_empty()
            && self.finished.is_empty()
            && self.dropped.is_empty()
            && self.reindexed.is_empty()
    }

    /// Calls `each` for every capture of the recovered files and of the one finished last: those that
    /// the doc index may not know as done. They come file by file, in the order of the index.
    pub fn recent(&self, each: &mut dyn FnMut(IndexLine)) -> Result<(), StoreError> {
        for path in &self.recent {
            let mut lines = open_lines(path)?;
            let failed = |e| StoreError::io("read", path, e);
            while let Some(line) = lines.next_parsed().map_err(failed)? {
                each(line);
            }
        }
        Ok(())
    }
}

pub(crate) fn recover(layout: &Layout) -> Result<Recovery, StoreError> {
    let mut recovery = Recovery::default();
    let open = format!("{WARC}{OPEN}");
    let last_finished = Layout::stems(&layout.warc, WARC)?.pop();
    recovery
        .recent
        .extend(last_finished.map(|stem| layout.cdxj(&stem)));
    for stem in Layout::stems(&layout.warc, &open)? {
        make_whole(layout, &stem, &mut recovery)?;
    }
    clear_strays(layout)?;
    for stem in Layout::stems(&layout.warc, WARC)? {
        if !layout.cdxj(&stem).exists() {
            let lines = scan_past_damage(&layout.warc(&stem), &format!("{stem}{WARC}"))?;
            write_sorted(layout, &stem, &lines)?;
            recovery.reindexed.push(format!("{stem}{WARC}"));
        }
    }
    Ok(recovery)
}

/// Fills the memory of payloads from the indexes, newest files first, until it is full.
pub(crate) fn remember(layout: &Layout, digests: &Digests, max: usize) -> Result<(), StoreError> {
    for stem in Layout::stems(&layout.cdxj, CDXJ)?.iter().rev() {
        if digests.len() >= max / 2 {
            break;
        }
        // What an index says of a file that is gone or cut short must not be taken for stored.
        let Ok(warc) = fs::metadata(layout.warc(stem)) else {
            continue;
        };
        let number = digests.register(&format!("{stem}{WARC}"));
        let path = layout.cdxj(stem);
        let mut lines = open_lines(&path)?;
        let failed = |e| StoreError::io("read", &path, e);
        while let Some(line) = lines.next_parsed().map_err(failed)? {
            let there = line.offset.saturating_add(line.length) <= warc.len();
            let own = there && !line.is_revisit();
            if let Some(digest) = Digest::parse(&line.digest).filter(|_| own) {
                digests.insert(digest, number, line.offset);
            }
        }
    }
    Ok(())
}

/// What a WARC file holds up to its first damage.
struct Scan {
    /// Where the last whole group ends.
    whole: u64,
    /// The index lines of the groups, in the order of the file.
    lines: Vec<u8>,
    damage: Option<StoreError>,
}

/// The index lines of every whole group of a finished file. What is damaged in between is for the check to name.
fn scan_past_damage(path: &Path, name: &str) -> Result<Vec<u8>, StoreError> {
    let mut lines = Vec::new();
    let mut from = Some(0);
    while let Some(begin) = from {
        let scan = scan(path, name, begin)?;
        lines.extend_from_slice(&scan.lines);
        from = match scan.damage {
            Some(_) => next_group(path, scan.whole)?,
            None => None,
        };
    }
    Ok(lines)
}

fn scan(path: &Path, name: &str, from: u64) -> Result<Scan, StoreError> {
    let mut groups = Groups::new(Records::open_at(path, from)?, name.to_owned(), false);
    let mut scan = Scan {
        whole: from,
        lines: Vec::new(),
        damage: None,
    };
    loop {
        match groups.next() {
            Ok(None) => return Ok(scan),
            Ok(Some(item)) => {
                scan.whole = item.end();
                if let Item::Group(group) = item {
                    scan.lines.extend_from_slice(group.line.render().as_bytes());
                }
            }
            Err(damage @ StoreError::Damaged { .. }) => {
                scan.damage = Some(damage);
                return Ok(scan);
            }
            // The disk cannot be read: cutting now would destroy what may be good.
            Err(other) => return Err(other),
        }
    }
}

fn make_whole(layout: &Layout, stem: &str, recovery: &mut Recovery) -> Result<(), StoreError> {
    let path = layout.warc_open(stem);
    let name = format!("{stem}{WARC}");
    let scan = scan(&path, &name, 0)?;
    let length = path
        .metadata()
        .map_err(|e| StoreError::io("read", &path, e))?;
    let torn = length.len().saturating_sub(scan.whole);
    if torn > 0 {
        let kept = set_aside(&path, stem, scan.whole)?;
        recovery.cuts.push(Cut {
            file: name.clone(),
            at: scan.whole,
            bytes: torn,
            kept,
        });
    }
    if scan.lines.is_empty() {
        files::remove(&path)?;
        files::remove(&layout.cdxj_open(stem))?;
        files::remove(&layout.cdxj(stem))?;
        recovery.dropped.push(name);
        return files::sync_dir(&layout.warc);
    }
    cut(&path, scan.whole).map_err(|e| StoreError::io("cut", &path, e))?;
    write_sorted(layout, stem, &scan.lines)?;
    finish_names(layout, stem)?;
    recovery.recent.push(layout.cdxj(stem));
    recovery.finished.push(name);
    Ok(())
}

fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()
}

/// Copies a tail away when a whole group lies in it behind the damage.
fn set_aside(path: &Path, stem: &str, from: u64) -> Result<Option<PathBuf>, StoreError> {
    if next_group(path, from)?.is_none() {
        return Ok(None);
    }
    let kept = path.with_file_name(format!("{stem}.damaged-{from}"));
    let copy = || {
        let mut source = File::open(path)?;
        source.seek(SeekFrom::Start(from))?;
        let mut target = File::create(&kept)?;
        io::copy(&mut source, &mut target)?;
        target.flush()?;
        target.sync_all()
    };
    copy().map_err(|e| StoreError::io("copy", &kept, e))?;
    Ok(Some(kept))
}

/// Where the next whole group after `from` begins. Only places that look like the beginning of a
/// gzip member are tried, so that a long tail is read about once.
fn next_group(path: &Path, from: u64) -> Result<Option<u64>, StoreError> {
    let failed = |e| StoreError::io("read", path, e);
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut window = vec![0; 1 << 20];
    let mut at = from;
    let mut have = 0;
    loop {
        let room = window.get_mut(have..).unwrap_or_default();
        let read = file.read(room).map_err(failed)?;
        let bytes = window.get(..have + read).unwrap_or_default();
        for (place, start) in bytes.windows(MEMBER.len()).enumerate() {
            let begin = at + place as u64;
            // The place of the damage itself is known not to be one.
            if start == MEMBER && begin > from && is_group(path, begin)? {
                return Ok(Some(begin));
            }
        }
        if read == 0 {
            return Ok(None);
        }
        // What may be the beginning of a member at the edge stays in the window.
        let keep = (have + read).min(MEMBER.len() - 1);
        let moved = have + read - keep;
        window.copy_within(moved..have + read, 0);
        at += moved as u64;
        have = keep;
    }
}

/// How a gzip member begins that libdeflate wrote: no name, no time.
const MEMBER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];

fn is_group(path: &Path, at: u64) -> Result<bool, StoreError> {
    let mut groups = Groups::new(Records::open_at(path, at)?, String::new(), false);
    Ok(matches!(groups.next(), Ok(Some(Item::Group(_)))))
}

/// Removes what a crash leaves beside finished files: half-sorted indexes and unsorted ones without a file.
fn clear_strays(layout: &Layout) -> Result<(), StoreError> {
    let unsorted = format!("{CDXJ}{OPEN}");
    let half = format!("{CDXJ}{NEW}");
    for name in names(&layout.cdxj)? {
        if name.ends_with(&half) || name.ends_with(&unsorted) {
            files::remove(&layout.cdxj.join(name))?;
        }
    }
    files::sync_dir(&layout.cdxj)
}

fn open_lines(path: &Path) -> Result<Lines<BufReader<File>>, StoreError> {
    let file = fs::File::open(path).map_err(|e| StoreError::io("open", path, e))?;
    Ok(Lines::new(BufReader::with_capacity(256 << 10, file), 0))
}
