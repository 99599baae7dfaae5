//! After damage: where the next group begins that was really written there.
//!
//! A body can hold anything, a whole WARC file as well, and bodies that are compressed already are stored as
//! they are. So bytes that look like a group prove nothing: one flipped bit in a picture would be enough to
//! turn a group inside of it into a capture of any site. What proves it is the metadata record, which names
//! the place of its group and the first record of its file; the identifier of that record is random, was
//! never sent to anybody, and differs from file to file. A file that does not have it, because an older
//! version wrote it or because its first record is the damaged one, gives nothing back after damage.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use memchr::memmem;

use crate::error::StoreError;
use crate::warc::group::{Groups, Item, MAX_SIDE_BLOCK, place_of};
use crate::warc::last::WARCINFO_ID;
use crate::warc::reader::{Records, read_at};

/// How a gzip member begins that libdeflate wrote: no name, no time.
const MEMBER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];

/// Bytes read at once.
const WINDOW: usize = 1 << 20;

/// How far before the identifier a metadata record can begin: two URLs of the longest kind fit.
const BACK: usize = 64 << 10;

/// Where the next group after `from` begins that is at home in the file whose first record is `info`.
pub(crate) fn next_group(path: &Path, from: u64, info: &str) -> Result<Option<u64>, StoreError> {
    if info.is_empty() {
        return Ok(None);
    }
    let finder = memmem::Finder::new(info.as_bytes());
    // Metadata records are stored uncompressed, so that the identifier stands in the file as it is.
    each_window(path, from, BACK + info.len(), &mut |at, bytes| {
        for hit in finder.find_iter(bytes) {
            let before = bytes.get(hit.saturating_sub(BACK)..hit).unwrap_or_default();
            let Some(start) = memmem::rfind(before, &MEMBER) else {
                continue;
            };
            let record = at + (hit - before.len() + start) as u64;
            if let Some(group) = named_by(path, record, info)?
                && group > from
                && is_group(path, group, Some(info))?
            {
                return Ok(Some(group));
            }
        }
        Ok(None)
    })
}

/// True when something after `from` looks like a group. It proves nothing, but the bytes are worth keeping.
pub(crate) fn looks_like_more(path: &Path, from: u64) -> Result<bool, StoreError> {
    let finder = memmem::Finder::new(&MEMBER);
    let found = each_window(path, from, MEMBER.len() - 1, &mut |at, bytes| {
        for hit in finder.find_iter(bytes) {
            let place = at + hit as u64;
            // The place of the damage itself is known not to be one.
            if place > from && is_group(path, place, None)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    })?;
    Ok(found.is_some())
}

/// The place of the group whose metadata record begins here, if one of this file does.
fn named_by(path: &Path, record: u64, info: &str) -> Result<Option<u64>, StoreError> {
    match read_at(path, record, MAX_SIDE_BLOCK) {
        Ok(found) if found.head.field(WARCINFO_ID) == Some(info) => Ok(place_of(&found.block)),
        Ok(_) | Err(StoreError::Damaged { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// True when a whole group begins here and, where a file is given, says that it belongs here.
fn is_group(path: &Path, at: u64, info: Option<&str>) -> Result<bool, StoreError> {
    let mut groups = Groups::new(Records::open_at(path, at)?, String::new(), false);
    match groups.next() {
        Ok(Some(Item::Group(group))) => Ok(info.is_none_or(|info| group.is_at_home(info))),
        Ok(_) | Err(StoreError::Damaged { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Looks at a piece of a file and where it begins, and says where in the file it found something.
type Look<'a> = dyn FnMut(u64, &[u8]) -> Result<Option<u64>, StoreError> + 'a;

/// Calls `look` with pieces of the file from `from` on, each with its place and the last `overlap` bytes of
/// the one before, until it finds something.
fn each_window(
    path: &Path,
    from: u64,
    overlap: usize,
    look: &mut Look<'_>,
) -> Result<Option<u64>, StoreError> {
    let failed = |e| StoreError::io("read", path, e);
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut window = vec![0; WINDOW + overlap];
    let mut at = from;
    let mut have = 0;
    loop {
        let room = window.get_mut(have..).unwrap_or_default();
        let read = file.read(room).map_err(failed)?;
        if read == 0 {
            return Ok(None);
        }
        let filled = have + read;
        if let Some(found) = look(at, window.get(..filled).unwrap_or_default())? {
            return Ok(Some(found));
        }
        let keep = filled.min(overlap);
        window.copy_within(filled - keep..filled, 0);
        at += (filled - keep) as u64;
        have = keep;
    }
}
