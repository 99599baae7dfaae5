//! The check of the results: every entry whole and sensible, every exchange that one names in the archive.

use std::collections::HashSet;
use std::path::Path;

use orbweaver_journal::audit;
use orbweaver_model::CapturePlace;

use super::entry::Entry;
use super::writing::journal_options;
use crate::cdxj::each_capture;
use crate::check::{Finding, Severity};
use crate::error::StoreError;
use crate::files::Layout;
use crate::options::StoreOptions;

/// Reads the results of a crawl directory, says what is wrong, and returns how many entries are whole.
pub fn check_results(dir: &Path, report: &mut dyn FnMut(Finding)) -> Result<u64, StoreError> {
    let mut promised = Vec::new();
    let mut tell = |severity, file: &str, offset, what: String| {
        report(Finding {
            severity,
            file: format!("results/{file}"),
            offset,
            what,
        });
    };
    let mut damage = Vec::new();
    let mut senseless = Vec::new();
    let entries = audit(
        &Layout::new(dir).results,
        &journal_options(&StoreOptions::default()),
        &mut |whole| {
            let named = || (whole.position, whole.file.to_owned(), whole.end);
            match Entry::read(whole.payload) {
                Some(entry) => promised.extend(entry.place().map(|place| (place, named()))),
                None => senseless.push(named()),
            }
        },
        &mut |found| damage.push(found),
    )?;
    for found in damage {
        let severity = match found.is_error {
            true => Severity::Error,
            false => Severity::Note,
        };
        tell(severity, &found.file, found.offset, found.what);
    }
    for (position, file, end) in senseless {
        let what = format!("entry {position} cannot be decoded");
        tell(Severity::Error, &file, Some(end), what);
    }
    // Looked at after the journal: what was entered had been archived before.
    let archived = archived(dir)?;
    for (place, (position, file, end)) in promised {
        if !archived.contains(&place) {
            let what = format!("the exchange of entry {position} is not in the archive");
            tell(Severity::Error, &file, Some(end), what);
        }
    }
    Ok(entries)
}

/// The places of all captures.
fn archived(dir: &Path) -> Result<HashSet<CapturePlace>, StoreError> {
    let mut places = HashSet::new();
    each_capture(dir, &mut |line| {
        places.extend(line.place());
    })?;
    Ok(places)
}
