//! The check of a journal that may be written to meanwhile: every entry whole, every position in its place.

use std::path::Path;

use crate::Options;
use crate::error::Error;
use crate::segment::scan;
use crate::segments::{Segments, name};

/// Something to be said about a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// False for what a process that is writing, or was killed, leaves behind and mends by itself.
    pub is_error: bool,
    /// The name of the file.
    pub file: String,
    /// Where in it, when it is about a place.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// An entry that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<'a> {
    /// Its position.
    pub position: u64,
    /// Its payload.
    pub payload: &'a [u8],
    /// The name of its segment.
    pub file: &'a str,
    /// Where it ends there.
    pub end: u64,
}

/// Reads the journal of a directory, without changing anything: calls `each` for every whole entry and `found` with what is
/// wrong. Says how many are whole.
pub fn audit(
    dir: &Path,
    options: &Options,
    each: &mut dyn FnMut(Whole<'_>),
    found: &mut dyn FnMut(Finding),
) -> Result<u64, Error> {
    let mut entries = 0;
    let mut expected = None;
    let firsts = Segments::listed(dir)?;
    for first in &firsts {
        let file = name(*first);
        let is_last = firsts.last() == Some(first);
        let path = dir.join(&file);
        let scanned = scan(&path, *first, options, &mut |position, payload, end| {
            each(Whole {
                position,
                payload,
                file: &file,
                end,
            });
        });
        let scanned = match scanned {
            // Forgotten since the directory was listed.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                continue;
            }
            scanned => scanned?,
        };
        entries += scanned.entries;
        let mut tell = |is_error, offset, what: String| {
            found(Finding {
                is_error,
                file: file.clone(),
                offset,
                what,
            });
        };
        if let Some(expected) = expected.filter(|expected| expected != first) {
            let what = format!("begins with entry {first}, but {expected} comes next");
            tell(true, None, what);
        }
        if let Some(what) = scanned.damage {
            tell(!is_last, Some(scanned.end), what.into());
        }
        expected = Some(first.saturating_add(scanned.entries));
    }
    Ok(entries)
}
