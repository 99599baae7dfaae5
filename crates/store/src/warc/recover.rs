//! Taking over a directory: unfinished files are made whole, strays removed, missing indexes rebuilt.
//!
//! A WARC file alone is enough to rebuild its index, so the unsorted index of an unfinished file is never
//! trusted. What was acknowledged was synced before, so cutting a torn tail cannot touch it; should a tail
//! hold whole groups after damage in the middle, it is set aside instead of being thrown away. A rebuilt
//! index names nothing behind damage that does not prove its place (`resync.rs`).

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::cdxj::Lines;
use crate::digest::{Digest, Digests};
use crate::error::StoreError;
use crate::files::{self, CDXJ, Layout, NEW, OPEN, WARC, names};
use crate::warc::group::{Groups, Item};
use crate::warc::reader::Records;
use crate::warc::resync;
use crate::warc::seal::{finish_names, write_sorted};

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

/// A part of a file that a rebuilt index does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The WARC file, by its finished name.
    pub file: String,
    /// Where the part begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// What is wrong where it begins.
    pub damage: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            from,
            to,
            damage,
        } = self;
        write!(
            f,
            "warc/{file} is damaged at byte {from} ({damage}); its new index names nothing between there and byte {to}"
        )
    }
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
    /// Parts of those that could not be read, or that nothing vouches for.
    pub skipped: Vec<Skipped>,
}

pub(crate) fn recover(layout: &Layout) -> Result<Recovery, StoreError> {
    let mut recovery = Recovery::default();
    let open = format!("{WARC}{OPEN}");
    for stem in Layout::stems(&layout.warc, &open)? {
        make_whole(layout, &stem, &mut recovery)?;
    }
    clear_strays(layout)?;
    for stem in Layout::stems(&layout.warc, WARC)? {
        if !layout.cdxj(&stem).exists() {
            let name = format!("{stem}{WARC}");
            let lines = scan_past_damage(&layout.warc(&stem), &name, &mut recovery.skipped)?;
            write_sorted(layout, &stem, &lines)?;
            recovery.reindexed.push(name);
        }
    }
    Ok(recovery)
}

/// Makes again the indexes of these WARC files, from the files themselves; the old ones are kept beside the new.
pub(crate) fn reindex(layout: &Layout, stems: &[String]) -> Result<Recovery, StoreError> {
    for stem in stems {
        let old = layout.cdxj(stem);
        let kept = old.with_file_name(format!("{stem}.damaged-cdxj"));
        fs::rename(&old, &kept).map_err(|e| StoreError::io("rename", &old, e))?;
    }
    recover(layout)
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
    /// The identifier of the file's first record; empty when that was not read or its groups do not name it.
    info: String,
    damage: Option<String>,
}

/// The index lines of every whole group of a finished file that was written where it stands.
fn scan_past_damage(
    path: &Path,
    name: &str,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<u8>, StoreError> {
    let mut lines = Vec::new();
    let mut info = String::new();
    let mut from = 0;
    loop {
        let scan = scan(path, name, from)?;
        lines.extend_from_slice(&scan.lines);
        if from == 0 {
            info = scan.info;
        }
        let Some(damage) = scan.damage else {
            return Ok(lines);
        };
        let next = resync::next_group(path, scan.whole, &info)?;
        skipped.push(Skipped {
            file: name.to_owned(),
            from: scan.whole,
            to: match next {
                Some(next) => next,
                None => length(path)?,
            },
            damage,
        });
        match next {
            Some(next) => from = next,
            None => return Ok(lines),
        }
    }
}

fn scan(path: &Path, name: &str, from: u64) -> Result<Scan, StoreError> {
    let mut groups = Groups::new(Records::open_at(path, from)?, name.to_owned(), false);
    let mut scan = Scan {
        whole: from,
        lines: Vec::new(),
        info: String::new(),
        damage: None,
    };
    loop {
        match groups.next() {
            Ok(None) => return Ok(scan),
            Ok(Some(item)) => {
                let first = scan.whole == 0;
                scan.whole = item.end();
                match item {
                    Item::Info { id, .. } if first => scan.info = id,
                    Item::Info { .. } => {}
                    Item::Group(group) => {
                        // An older version wrote it: nothing in it says where it belongs.
                        if from == 0 && !group.is_at_home(&scan.info) {
                            scan.info.clear();
                        }
                        scan.lines.extend_from_slice(group.line.render().as_bytes());
                    }
                }
            }
            Err(StoreError::Damaged { what, .. }) => {
                scan.damage = Some(what);
                return Ok(scan);
            }
            // The disk cannot be read: cutting now would destroy what may be good.
            Err(other) => return Err(other),
        }
    }
}

fn length(path: &Path) -> Result<u64, StoreError> {
    let found = path
        .metadata()
        .map_err(|e| StoreError::io("read", path, e))?;
    Ok(found.len())
}

fn make_whole(layout: &Layout, stem: &str, recovery: &mut Recovery) -> Result<(), StoreError> {
    let path = layout.warc_open(stem);
    let name = format!("{stem}{WARC}");
    let scan = scan(&path, &name, 0)?;
    let torn = length(&path)?.saturating_sub(scan.whole);
    if torn > 0 {
        let kept = set_aside(&path, stem, &scan)?;
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
    recovery.finished.push(name);
    Ok(())
}

fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()
}

/// Copies a tail away when a whole group lies in it behind the damage. Where the file cannot vouch for its
/// groups, whatever looks like one is kept: nothing is read from there but by hand.
fn set_aside(path: &Path, stem: &str, scan: &Scan) -> Result<Option<PathBuf>, StoreError> {
    let from = scan.whole;
    let more = match scan.info.as_str() {
        "" => resync::looks_like_more(path, from)?,
        info => resync::next_group(path, from, info)?.is_some(),
    };
    if !more {
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

/// Removes what a crash leaves beside finished files: half-sorted indexes and unsorted ones without a file.
fn clear_strays(layout: &Layout) -> Result<(), StoreError> {
    let unsorted = format!("{CDXJ}{OPEN}");
    let half = format!("{CDXJ}{NEW}");
    for name in names(&layout.cdxj)? {
        if name.ends_with(&half) || name.ends_with(&unsorted) {
            files::remove(&layout.cdxj.join(name))?;
        }
    }
    // A large body on its way, on a file system that has no files without a name.
    for name in names(&layout.warc)? {
        if name.starts_with(".tmp") {
            files::remove(&layout.warc.join(name))?;
        }
    }
    files::sync_dir(&layout.cdxj)
}

fn open_lines(path: &Path) -> Result<Lines<BufReader<File>>, StoreError> {
    let file = fs::File::open(path).map_err(|e| StoreError::io("open", path, e))?;
    Ok(Lines::new(BufReader::with_capacity(256 << 10, file), 0))
}
