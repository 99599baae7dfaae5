//! Repairing an archive that nobody writes to: files that a crash left open are finished, and indexes that do not agree with their
//! WARC files are made again from them. WARC files themselves are never changed beyond a torn end: what is damaged in them
//! cannot be made up.

use std::collections::BTreeSet;
use std::path::Path;

use crate::check::{Severity, check};
use crate::error::StoreError;
use crate::files::{CDXJ, Layout};
use crate::warc::recover::reindex;

/// Repairs what can be proven from the WARC files; what was done, in words.
pub fn repair(dir: &Path) -> Result<Vec<String>, StoreError> {
    let layout = Layout::new(dir);
    let mut stems = BTreeSet::new();
    check(dir, &mut |found| {
        let name = found.file.rsplit('/').next().unwrap_or_default();
        if let (Severity::Error, Some(stem)) = (found.severity, name.strip_suffix(CDXJ)) {
            stems.insert(stem.to_owned());
        }
    });
    stems.retain(|stem| layout.cdxj(stem).exists() && layout.warc(stem).exists());
    let stems: Vec<String> = stems.into_iter().collect();
    let recovery = reindex(&layout, &stems)?;
    let mut done = Vec::new();
    for file in &recovery.finished {
        done.push(format!("{file} was left open and was finished"));
    }
    for file in &recovery.dropped {
        done.push(format!(
            "{file} contained no complete record and was removed"
        ));
    }
    for cut in &recovery.cuts {
        done.push(format!(
            "{} ended in {} torn bytes, which were cut off",
            cut.file, cut.bytes
        ));
    }
    for file in &recovery.reindexed {
        done.push(format!("the CDXJ index of {file} was rebuilt from it"));
    }
    // What the new index leaves out is lost, and must not be lost in silence.
    done.extend(recovery.skipped.iter().map(ToString::to_string));
    Ok(done)
}
