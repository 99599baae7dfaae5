//! Writing a journal: entries are gathered in memory and come out whole or not at all.
//!
//! After any error the same call can be made again: what was not written is still in memory, and a file that may have got
//! a part of it is cut back first.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::Options;
use crate::error::Error;
use crate::segment::{HEAD_LEN, Head, head, scan, write};
use crate::segments::{Segments, remove_file, sync_dir};

/// What to do when a segment is damaged anywhere but at the end of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// Open nothing: what the entries say is nowhere else.
    Refuse,
    /// Cut the journal there and remove all that follows: whoever owns it can append the same entries again.
    Cut,
}

/// The one who writes. Nobody else may write to the directory.
#[derive(Debug)]
pub struct Writer {
    segments: Segments,
    /// The segment that grows; none until something is written.
    open: Option<Open>,
    /// Entries that are not in the file yet, as they will stand there. Bounded by the owner, who calls `flush` or `sync`.
    buffer: Vec<u8>,
    /// The position of the last entry that is in a file.
    written: u64,
    /// The position of the last entry.
    last: u64,
}

#[derive(Debug)]
struct Open {
    first: u64,
    file: File,
    /// Bytes of the file that are good.
    len: u64,
    /// The file may have more bytes than that.
    torn: bool,
}

impl Writer {
    /// Opens the journal in a directory, or begins one; a torn end is cut. Calls `each` for every entry that is there.
    pub fn open(
        dir: &Path,
        options: Options,
        on_damage: OnDamage,
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
        let mut writer = Self {
            segments: Segments::new(dir, options),
            open: None,
            buffer: Vec::new(),
            written: 0,
            last: 0,
        };
        let firsts = Segments::listed(dir)?;
        for (at, first) in firsts.iter().enumerate() {
            let is_last = at + 1 == firsts.len();
            let follows = at == 0 || *first == writer.last.saturating_add(1);
            if !writer.take_up(*first, follows, is_last, on_damage, each)? {
                for first in firsts.iter().skip(at + 1) {
                    remove_file(&writer.segments.path(*first))?;
                }
                sync_dir(dir)?;
                break;
            }
        }
        Ok(writer)
    }

    /// Takes up one segment. False when the journal ends here, whatever follows.
    fn take_up(
        &mut self,
        first: u64,
        follows: bool,
        is_last: bool,
        on_damage: OnDamage,
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<bool, Error> {
        let path = self.segments.path(first);
        if !follows || first == 0 {
            let what = "its first entry is not the next";
            return match on_damage {
                OnDamage::Refuse => Err(Error::damaged(&path, 0, what)),
                OnDamage::Cut => remove_file(&path).map(|()| false),
            };
        }
        let options = std::sync::Arc::clone(&self.segments.options);
        let found = scan(&path, first, &options, &mut |position, payload, _| {
            each(position, payload);
        })?;
        if found.head == Head::Foreign {
            return Err(Error::Foreign { path });
        }
        // The process may have died while it made the last one, or wrote to it.
        let headless = found.end == 0 && length(&path)? > HEAD_LEN;
        let is_torn_end = is_last && !headless;
        if let (Some(what), false, OnDamage::Refuse) = (found.damage, is_torn_end, on_damage) {
            return Err(Error::damaged(&path, found.end, what));
        }
        self.last = first + found.entries - 1;
        self.written = self.last;
        if found.end == 0 {
            remove_file(&path)?;
            return Ok(false);
        }
        let file = OpenOptions::new().append(true).open(&path);
        self.open = Some(Open {
            first,
            file: file.map_err(|e| Error::io("open", &path, e))?,
            len: found.end,
            torn: found.damage.is_some(),
        });
        self.segments.add(first);
        self.cut_back()?;
        Ok(found.damage.is_none())
    }

    /// The files, for those who read.
    pub fn segments(&self) -> Segments {
        self.segments.clone()
    }

    /// The position of the last entry, written or not; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The position of the last entry that readers can find.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that wait for [`Writer::flush`] or [`Writer::sync`].
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Adds an entry in memory and says its position.
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, Error> {
        let (position, max) = (self.last + 1, self.segments.options.max_payload);
        if !write(payload, position, max, &mut self.buffer) {
            let len = payload.len();
            return Err(Error::TooLong { len, max });
        }
        self.last = position;
        Ok(position)
    }

    /// Hands all entries to the operating system, which survives the end of this process.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.bring_out(false)
    }

    /// Makes all entries that were appended since the last call durable, which survives a power cut. Entries that were
    /// flushed before are as durable as the system has made them.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.bring_out(true)
    }

    fn bring_out(&mut self, durably: bool) -> Result<(), Error> {
        if self.buffer.is_empty() && !durably {
            return Ok(());
        }
        self.cut_back()?;
        if !self.buffer.is_empty() {
            self.begin_if_full()?;
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        open.torn = true;
        let written = open.file.write_all(&self.buffer);
        // A failed sync may have dropped pages, so the bytes are written anew after it.
        let synced = written.and_then(|()| match durably {
            true => open.file.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = synced {
            let path = self.segments.path(open.first);
            // If even this fails it is tried again before the next write.
            let _ = self.cut_back();
            return Err(Error::io("write", &path, error));
        }
        open.torn = false;
        open.len += self.buffer.len() as u64;
        self.buffer.clear();
        self.written = self.last;
        Ok(())
    }

    /// Removes all entries behind `position`, which must not be waiting.
    pub fn truncate(&mut self, position: u64) -> Result<(), Error> {
        self.bring_out(false)?;
        if position >= self.last {
            return Ok(());
        }
        let dir = self.segments.dir().to_path_buf();
        let firsts = Segments::listed(&dir)?;
        // From the newest, so that a death in between leaves a journal without a hole.
        for first in firsts.into_iter().rev() {
            let path = self.segments.path(first);
            if first > position {
                self.open = None;
                remove_file(&path)?;
                self.segments.remove(first);
                self.last = first - 1;
                self.written = self.last;
                continue;
            }
            let mut end = HEAD_LEN;
            let options = std::sync::Arc::clone(&self.segments.options);
            scan(&path, first, &options, &mut |at, _, to| {
                if at <= position {
                    end = to;
                }
            })?;
            let file = OpenOptions::new().append(true).open(&path);
            self.open = Some(Open {
                first,
                file: file.map_err(|e| Error::io("open", &path, e))?,
                len: end,
                torn: true,
            });
            self.cut_back()?;
            break;
        }
        self.last = position;
        self.written = position;
        sync_dir(&dir)
    }

    /// Cuts off what a failed write may have left.
    fn cut_back(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.as_mut().filter(|open| open.torn) else {
            return Ok(());
        };
        let cut = open.file.set_len(open.len);
        let path = self.segments.path(open.first);
        cut.and_then(|()| open.file.sync_data())
            .map_err(|e| Error::io("cut", &path, e))?;
        open.torn = false;
        Ok(())
    }

    fn begin_if_full(&mut self) -> Result<(), Error> {
        let first = self.written + 1;
        if let Some(open) = &self.open {
            if open.len < self.segments.options.segment_bytes {
                return Ok(());
            }
            // Only the last segment may lose its end to a power cut.
            let path = self.segments.path(open.first);
            let synced = open.file.sync_data();
            synced.map_err(|e| Error::io("sync", &path, e))?;
        }
        let path = self.segments.path(first);
        let head = head(&self.segments.options, first);
        let make = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            // What an attempt before this one left.
            file.set_len(0)?;
            file.write_all(&head)?;
            file.sync_all()?;
            Ok(file)
        };
        let file = make().map_err(|e| Error::io("create", &path, e))?;
        sync_dir(self.segments.dir())?;
        self.open = Some(Open {
            first,
            file,
            len: HEAD_LEN,
            torn: false,
        });
        self.segments.add(first);
        Ok(())
    }
}

fn length(path: &Path) -> Result<u64, Error> {
    let found = std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?;
    Ok(found.len())
}
