//! The check of a journal: every entry whole, every number in its place, every document where it should be.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Shelf;
use super::reader::scan;

/// Something to be said about a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// False for what a store that is writing, or was killed, leaves behind and mends by itself.
    pub is_error: bool,
    /// The file.
    pub place: String,
    /// At which byte of it.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// An entry whose document must be in the archive.
struct Promise {
    place: u64,
    position: u64,
    serial: u32,
    end: u64,
}

/// Reads the journal of a store's directory, says what is wrong, and returns how many entries are whole.
pub fn audit(dir: &Path, found: &mut dyn FnMut(Finding)) -> Result<u64> {
    let journal = Shelf::dir(dir);
    let serials = Shelf::serials(&journal)?;
    if serials.is_empty() {
        return Ok(0);
    }
    let mut tell = |is_error, serial: u32, offset, what: String| {
        found(Finding {
            is_error,
            place: format!("results/{serial:06}.log"),
            offset,
            what,
        });
    };
    let shelf = Shelf::new(journal);
    let mut promises = Vec::new();
    let mut entries = 0;
    let mut expected = None;
    for serial in &serials {
        let (serial, is_last) = (*serial, serials.last() == Some(serial));
        let mut next = None;
        let (first, damage) = scan(&shelf.path(serial), &mut |position, entry, end| {
            entries += 1;
            next = Some(position + 1);
            promises.extend(entry.standing.location().map(|location| Promise {
                place: fingerprint(&location.file, location.offset),
                position,
                serial,
                end,
            }));
        })?;
        if let (Some(first), Some(expected)) = (first, expected)
            && first != expected
        {
            let what = format!("begins with entry {first}, but {expected} comes next");
            tell(true, serial, None, what);
        }
        if let Some(damage) = damage {
            tell(!is_last, serial, Some(damage.offset), damage.what.into());
        }
        expected = next.or(first);
    }
    // Looked at after the journal: what was entered had been archived before.
    let archived = archived(dir)?;
    for promise in promises {
        if !archived.contains(&promise.place) {
            let what = format!(
                "the document of entry {} is not in the archive",
                promise.position
            );
            tell(true, promise.serial, Some(promise.end), what);
        }
    }
    Ok(entries)
}

/// The places of all captures.
fn archived(dir: &Path) -> Result<HashSet<u64>> {
    let mut places = HashSet::new();
    orbweaver_store::each_capture(dir, &mut |line| {
        places.insert(fingerprint(&line.filename, line.offset));
    })?;
    Ok(places)
}

fn fingerprint(file: &str, offset: u64) -> u64 {
    xxh3_64_with_seed(file.as_bytes(), offset)
}
