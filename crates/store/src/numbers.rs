//! Which WARC file has which number.
//!
//! The number of a file is the serial in its name, which is never given twice. The name has the time of its first capture
//! too, so a number alone does not make a name: `results/files` has the fourteen digits of each number at sixteen times the
//! number, so that the file of a capture is found with one read however many files there are. The table is only a short cut:
//! what it does not have, or has wrong, is found by listing the directory, and every start makes it again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;

use orbweaver_model::CapturePlace;

use crate::error::StoreError;
use crate::files::{Layout, Stem, WARC, names};

/// Bytes per number: the digits, and a line end to make it a text.
const RECORD: usize = 16;

/// Numbers that the table has at most: a file of 256 MiB for sixteen million archive files.
const TABLED: u32 = 1 << 24;

/// The name of the WARC file that has this number, finished or open; none when there is none.
pub(crate) fn name_of(layout: &Layout, number: u32) -> Result<Option<String>, StoreError> {
    if let Some(stem) = tabled(layout, number) {
        let is_there = layout.warc(&stem).exists() || layout.warc_open(&stem).exists();
        if is_there {
            return Ok(Some(format!("{stem}{WARC}")));
        }
    }
    let named = |name: String| {
        let (stem, _) = name.split_once(WARC)?;
        let parsed = Stem::parse(stem)?;
        (parsed.serial() == number).then(|| format!("{stem}{WARC}"))
    };
    Ok(names(&layout.warc)?.into_iter().find_map(named))
}

/// The place that a file and an offset are; none when the file is not one of an archive. The file may have its directory
/// before it.
pub fn place_in(file: &str, offset: u64) -> Option<CapturePlace> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(WARC)?;
    let file = Stem::parse(stem)?.serial();
    Some(CapturePlace { file, offset })
}

fn tabled(layout: &Layout, number: u32) -> Option<String> {
    let mut record = [0; RECORD];
    let file = File::open(layout.numbers()).ok()?;
    let at = u64::from(number) * RECORD as u64;
    file.read_exact_at(&mut record, at).ok()?;
    let digits = std::str::from_utf8(record.get(..14)?).ok()?;
    let stem = Stem::new(digits, number)?;
    Some(stem.to_string())
}

/// Enters one file in the table.
pub(crate) fn enter(layout: &Layout, stem: &Stem) -> Result<(), StoreError> {
    let Some(record) = record(stem) else {
        return Ok(());
    };
    let path = layout.numbers();
    let write = || {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        file.write_all_at(&record, u64::from(stem.serial()) * RECORD as u64)
    };
    write().map_err(|e: io::Error| StoreError::io("write", &path, e))
}

/// Makes the table again from the files that are there.
pub(crate) fn rebuild(layout: &Layout, stems: &[Stem]) -> Result<(), StoreError> {
    let mut table: Vec<u8> = Vec::new();
    for stem in stems {
        let Some(record) = record(stem) else {
            continue;
        };
        let at = stem.serial() as usize * RECORD;
        if table.len() < at + RECORD {
            table.resize(at + RECORD, 0);
        }
        if let Some(into) = table.get_mut(at..at + RECORD) {
            into.copy_from_slice(&record);
        }
    }
    let path = layout.numbers();
    if std::fs::read(&path).is_ok_and(|there| there == table) {
        return Ok(());
    }
    let new = path.with_extension("new");
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(&table)?;
        std::fs::rename(&new, &path)
    };
    write().map_err(|e| StoreError::io("write", &path, e))
}

fn record(stem: &Stem) -> Option<[u8; RECORD]> {
    if stem.serial() >= TABLED {
        return None;
    }
    let mut record = [b'\n'; RECORD];
    let digits = stem.digits().as_bytes();
    let room = record.get_mut(..14)?;
    (digits.len() == room.len()).then(|| room.copy_from_slice(digits))?;
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orbweaver_model::Timestamp;

    #[test]
    fn a_number_finds_its_file_with_and_without_the_table() {
        let place = tempfile::tempdir().unwrap();
        let layout = Layout::new(place.path());
        layout.create().unwrap();
        let mut stems = vec![Stem::default().after(Timestamp::from_millis(1_772_366_400_007))];
        for n in 1..20 {
            stems.push(stems[n - 1].after(Timestamp::from_millis(1_772_366_400_007 + n as u64)));
        }
        for stem in &stems {
            std::fs::write(layout.warc(&stem.to_string()), b"").unwrap();
        }
        let find = |number| name_of(&layout, number).unwrap();
        let all_found = || {
            for stem in &stems {
                assert_eq!(find(stem.serial()), Some(format!("{stem}{WARC}")));
            }
            assert_eq!((find(0), find(21), find(u32::MAX)), (None, None, None));
        };
        all_found();
        rebuild(&layout, &stems).unwrap();
        assert!(tabled(&layout, 20).is_some() && tabled(&layout, 21).is_none());
        all_found();
        // A table that lies is no harm.
        std::fs::write(layout.numbers(), vec![b'1'; 400]).unwrap();
        all_found();
        let next = stems[19].after(Timestamp::from_millis(0));
        enter(&layout, &next).unwrap();
        std::fs::write(layout.warc_open(&next.to_string()), b"").unwrap();
        assert_eq!(tabled(&layout, 21), Some(next.to_string()));
        assert_eq!(find(21), Some(format!("{next}{WARC}")));
        let place = place_in(&format!("warc/{}", find(21).unwrap()), 7).unwrap();
        assert_eq!((place.file, place.offset), (21, 7));
        assert_eq!(place_in("warc/other.warc.gz", 7), None);
    }

    /// Whatever the size of the archive, a read lists nothing and opens one WARC file; the original of a revisit is a second.
    #[test]
    fn a_read_costs_the_same_in_an_archive_of_thousands_of_files() {
        use crate::exchange::read_place;
        use crate::files::looked::{LISTED, OPENED};
        use crate::sample::{Sample, new_dir, options, prose};
        let dir = new_dir();
        let options = crate::StoreOptions {
            rotate_bytes: 1,
            ..options()
        };
        let (mut writer, _) = crate::Writer::open(dir.path(), options.clone()).unwrap();
        let archivist = writer.archivist();
        let mut scratch = archivist.scratch();
        let mut places = Vec::new();
        for n in 0..3000 {
            // Every tenth has the body of the first.
            let body = prose(if n % 10 == 9 { 0 } else { n }, 1200);
            let sample = Sample::page(&format!("/{n}"), n, &body);
            let prepared = sample.prepare(&archivist, &mut scratch);
            places.push(writer.append(&prepared).unwrap().place());
            writer.sync().unwrap();
        }
        writer.close().unwrap();
        assert_eq!(places[2999].file, 3000);
        for (n, place) in places.iter().enumerate().step_by(33) {
            let before = (LISTED.get(), OPENED.get());
            let stored = read_place(dir.path(), *place, u64::MAX).unwrap();
            let cost = (LISTED.get() - before.0, OPENED.get() - before.1);
            assert_eq!(stored.url, format!("http://example.org/{n}"));
            assert_eq!(cost, (0, 1 + u64::from(stored.revisit)));
        }
    }
}
