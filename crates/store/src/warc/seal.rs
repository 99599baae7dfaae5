//! Finishing a WARC file: its index is sorted, and both get their final names.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use crate::error::StoreError;
use crate::files::{self, Layout};

/// Gives a synced file and its index their final form. Every step can be repeated: whatever a crash or a
/// failure leaves is taken up by the next call or by recovery.
pub(crate) fn seal(layout: &Layout, stem: &str) -> Result<(), StoreError> {
    let unsorted = layout.cdxj_open(stem);
    if unsorted.exists() {
        let lines = std::fs::read(&unsorted).map_err(|e| StoreError::io("read", &unsorted, e))?;
        write_sorted(layout, stem, &lines)?;
    }
    finish_names(layout, stem)
}

/// Writes the lines of an index in their order, under its final name.
pub(crate) fn write_sorted(layout: &Layout, stem: &str, lines: &[u8]) -> Result<(), StoreError> {
    let mut sorted: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    sorted.sort_unstable();
    let path = layout.cdxj_new(stem);
    let write = || {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        for line in &sorted {
            out.write_all(line)?;
        }
        out.into_inner().map_err(|e| e.into_error())?.sync_all()
    };
    write().map_err(|e| StoreError::io("write", &path, e))?;
    files::rename(&path, &layout.cdxj(stem))?;
    files::sync_dir(&layout.cdxj)
}

/// The WARC file gets its final name after its index is durable; the unsorted index goes last.
pub(crate) fn finish_names(layout: &Layout, stem: &str) -> Result<(), StoreError> {
    let open = layout.warc_open(stem);
    if open.exists() {
        files::rename(&open, &layout.warc(stem))?;
    }
    files::sync_dir(&layout.warc)?;
    files::remove(&layout.cdxj_open(stem))?;
    files::sync_dir(&layout.cdxj)
}
