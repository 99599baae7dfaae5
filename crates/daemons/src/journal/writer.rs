//! Writing a journal: whole batches, durable or not there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::entry::Entry;
use super::reader::scan;
use super::{HEAD_LEN, MARK, Shelf, Volume};

/// Bytes after which a file is finished: some thirty thousand entries, so that a follower finds its place
/// in a moment and files are forgotten in pieces that do not matter.
pub(crate) const ROTATE: u64 = 8 << 20;

/// The one who writes.
pub(crate) struct Writer {
    shelf: Shelf,
    file: File,
    serial: u32,
    /// Bytes of the file that are durable.
    synced: u64,
    /// The file may have more bytes than that.
    torn: bool,
    /// The number of the next entry.
    next: u64,
    rotate: u64,
}

impl Writer {
    /// Opens the journal, or begins one; a torn end is cut. Calls `each` for every entry that is there.
    pub(crate) fn open(
        dir: &Path,
        rotate: u64,
        each: &mut dyn FnMut(u64, Entry),
    ) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let shelf = Shelf::new(dir.to_path_buf());
        let mut serials = Shelf::serials(dir)?;
        let mut last = None;
        while let Some(serial) = (!serials.is_empty()).then(|| serials.remove(0)) {
            let path = shelf.path(serial);
            let (mut next, mut end) = (0, HEAD_LEN);
            let (first, damage) = scan(&path, &mut |position, entry, offset| {
                (next, end) = (position + 1, offset);
                each(position, entry);
            })?;
            let torn = damage.is_some();
            match (first, damage) {
                (Some(first), damage) if damage.is_none() || serials.is_empty() => {
                    shelf.add(Volume { serial, first });
                    last = Some((serial, next.max(first), end, torn));
                }
                // The process died while it made this file: nothing was in it.
                (None, _) if serials.is_empty() => std::fs::remove_file(&path)?,
                (_, damage) => {
                    let damage = damage.map_or("no head", |damage| damage.what);
                    let what = format!(
                        "{}: {damage}; run the check on this directory",
                        path.display()
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        let Some((serial, next, synced, torn)) = last else {
            let file = create(&shelf, 1, 1)?;
            return Ok(Self::at(shelf, file, 1, 1, rotate));
        };
        let file = OpenOptions::new().append(true).open(shelf.path(serial))?;
        let mut writer = Self {
            synced,
            torn,
            ..Self::at(shelf, file, serial, next, rotate)
        };
        writer.cut_back()?;
        Ok(writer)
    }

    fn at(shelf: Shelf, file: File, serial: u32, next: u64, rotate: u64) -> Self {
        Self {
            shelf,
            file,
            serial,
            synced: HEAD_LEN,
            torn: false,
            next,
            rotate,
        }
    }

    /// The files, for those who read.
    pub(crate) fn shelf(&self) -> Shelf {
        self.shelf.clone()
    }

    /// The number of the last entry; 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.next - 1
    }

    /// Makes a batch durable. After a failure nothing of it is there and the same call can be made again.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        if self.synced >= self.rotate {
            self.begin_next()?;
        }
        self.cut_back()?;
        let mut bytes = Vec::new();
        let mut next = self.next;
        for entry in entries {
            if entry.write(next, &mut bytes) {
                next += 1;
            }
        }
        self.torn = true;
        // A failed sync may have dropped pages, so the bytes are written anew after it.
        let written = self.file.write_all(&bytes);
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            // If even this fails it is tried again before the next write.
            let _ = self.cut_back();
            return Err(error);
        }
        self.torn = false;
        self.synced += bytes.len() as u64;
        self.next = next;
        Ok(())
    }

    fn cut_back(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.synced)?;
            self.file.sync_data()?;
            self.torn = false;
        }
        Ok(())
    }

    fn begin_next(&mut self) -> io::Result<()> {
        let serial = self.serial + 1;
        self.file = create(&self.shelf, serial, self.next)?;
        self.serial = serial;
        self.synced = HEAD_LEN;
        Ok(())
    }
}

fn create(shelf: &Shelf, serial: u32, first: u64) -> io::Result<File> {
    let path = shelf.path(serial);
    let head = [MARK, first.to_be_bytes()].concat();
    let make = || {
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        // What an attempt before this one left.
        file.set_len(0)?;
        file.write_all(&head)?;
        file.sync_all()?;
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(file)
    };
    let made: io::Result<File> = make();
    if made.is_ok() {
        shelf.add(Volume { serial, first });
    }
    made
}
