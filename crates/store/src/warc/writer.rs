//! The writer: one open WARC file and its index, appended to by whole groups.
//!
//! It never waits and never retries; the [`crate::Archive`] around it does. After any error the same call
//! can be made again, and nothing that was synced is touched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orbweaver_model::{CapturePlace, Timestamp};

use crate::cdxj::finish_line;
use crate::date::Date;
use crate::digest::{Digest, Digests};
use crate::error::StoreError;
use crate::files::{self, Layout, Stem, WARC, names};
use crate::numbers;
use crate::options::StoreOptions;
use crate::warc::prepare::{Archivist, Prepared};
use crate::warc::recover::{self, Recovery};
use crate::warc::render::{Press, RecordId, Squeeze, one_line};
use crate::warc::seal::seal;
use crate::warc::tail::{self, Opener, Tail};

/// Bytes of index after which a file is finished however small its WARC is: the index is sorted in
/// memory. With real pages it is a quarter of a million captures, more than a gigabyte of WARC.
const MAX_INDEX: u64 = 64 << 20;

/// Where a group was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The WARC file, by its finished name.
    pub file: Arc<str>,
    /// Where its response or revisit record begins.
    pub offset: u64,
    /// Bytes of that record.
    pub length: u64,
    /// The number of the file.
    pub number: u32,
}

impl Location {
    /// The same without names.
    pub fn place(&self) -> CapturePlace {
        CapturePlace {
            file: self.number,
            offset: self.offset,
        }
    }
}

/// Appends groups to the WARC files of one crawl directory.
pub struct Writer {
    dir: PathBuf,
    layout: Layout,
    options: StoreOptions,
    digests: Arc<Digests>,
    current: Option<Current>,
    /// The name of the last file, from which the next follows.
    last: Stem,
    pub(crate) opener: Opener,
    /// For the records that name their place.
    press: Press,
    /// Bytes of index after which a file is finished.
    pub(super) max_index: u64,
}

/// The file being written.
struct Current {
    stem: String,
    name: Arc<str>,
    /// The identifier of its first record.
    info: RecordId,
    /// The number of the file in `Digests`.
    number: u32,
    warc: Tail,
    index: Tail,
    /// Payloads that may be referred to as soon as they are durable.
    fresh: Vec<(Digest, u64)>,
}

impl Writer {
    /// Takes over a crawl directory, new or left behind by a crash: unfinished files are made whole and
    /// finished. The first file of this writer begins with the first append.
    ///
    /// The caller must hold the crawl directory for itself; two writers would cut each other's files.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<(Self, Recovery), StoreError> {
        let layout = Layout::new(dir);
        layout.create()?;
        let recovery = recover::recover(&layout)?;
        let digests = Arc::new(Digests::new(options.max_digests));
        recover::remember(&layout, &digests, options.max_digests)?;
        let stems = Layout::stems(&layout.warc, WARC)?;
        let stems: Vec<Stem> = stems.iter().filter_map(|stem| Stem::parse(stem)).collect();
        numbers::rebuild(&layout, &stems)?;
        let last = used(&layout)?;
        let writer = Self {
            dir: dir.to_path_buf(),
            layout,
            options,
            digests,
            current: None,
            last,
            opener: Box::new(tail::create),
            press: Press::new(0),
            max_index: MAX_INDEX,
        };
        Ok((writer, recovery))
    }

    /// The part that prepares what this writer appends.
    pub fn archivist(&self) -> Archivist {
        Archivist::new(
            self.layout.clone(),
            Arc::clone(&self.digests),
            &self.options,
        )
    }

    /// The crawl directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Files of this writer get numbers behind this one.
    pub(crate) fn begin_after(&mut self, number: u32) {
        self.last = std::mem::take(&mut self.last).with_serial_from(number);
    }

    /// The options it was opened with.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Adds a group in memory; [`Writer::flush`] and [`Writer::sync`] bring it out. It fails only when a
    /// file has to be begun or finished and that fails; then the group was not added.
    pub fn append(&mut self, prepared: &Prepared) -> Result<Location, StoreError> {
        if self.current.as_ref().is_some_and(|file| self.is_full(file)) {
            self.close()?;
        }
        if self.current.is_none() {
            self.current = Some(self.begin(prepared.captured)?);
        }
        if prepared.bulk.is_some() {
            self.sync()?;
        }
        let Some(file) = &mut self.current else {
            return Err(StoreError::Stopped);
        };
        let offset = file.warc.len();
        if let Some(bulk) = &prepared.bulk {
            // Durable at once, for it is too large to be kept until the next sync. Without the records that
            // follow it is a torn end, as any other part of a group.
            file.warc.append_file(&bulk.file, bulk.len)?;
        }
        file.warc.push(&prepared.bytes);
        let mut last = Vec::new();
        (prepared.last).render(&mut self.press, file.info, offset, &mut last);
        file.warc.push(&last);
        let mut line = prepared.line.clone();
        finish_line(&mut line, offset, &file.name);
        file.index.push(line.as_bytes());
        file.fresh
            .extend(prepared.payload.map(|digest| (digest, offset)));
        Ok(Location {
            file: Arc::clone(&file.name),
            offset,
            length: prepared.length,
            number: self.last.serial(),
        })
    }

    /// Hands everything to the operating system, which survives the end of this process.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        match &mut self.current {
            // The WARC goes first: an index line never points at what was not written.
            Some(file) => file.warc.flush().and_then(|()| file.index.flush()),
            None => Ok(()),
        }
    }

    /// Makes everything durable, which survives a power cut. From now on revisits may refer to it.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let Some(file) = &mut self.current else {
            return Ok(());
        };
        file.warc.sync()?;
        file.index.sync()?;
        for (digest, offset) in file.fresh.drain(..) {
            self.digests.insert(digest, file.number, offset);
        }
        Ok(())
    }

    /// Bytes that are not durable yet.
    pub fn unsynced(&self) -> usize {
        self.current.as_ref().map_or(0, |file| file.warc.unsynced())
    }

    /// Finishes the open file: syncs it, sorts its index, gives both their final names. The next append
    /// begins another.
    pub fn close(&mut self) -> Result<(), StoreError> {
        self.sync()?;
        if let Some(file) = &self.current {
            seal(&self.layout, &file.stem)?;
        }
        self.current = None;
        Ok(())
    }

    fn is_full(&self, file: &Current) -> bool {
        file.warc.len() >= self.options.rotate_bytes || file.index.len() >= self.max_index
    }

    fn begin(&mut self, began: Timestamp) -> Result<Current, StoreError> {
        let next = self.last.after(began);
        let stem = next.to_string();
        let made = self.create(&stem, began);
        if made.is_err() {
            // What was made before the failure would be in the way of the next attempt.
            let _ = files::remove(&self.layout.warc_open(&stem));
            let _ = files::remove(&self.layout.cdxj_open(&stem));
        }
        let file = made?;
        // Only a short cut: without it the file is found by its name.
        let _ = numbers::enter(&self.layout, &next);
        self.last = next;
        Ok(file)
    }

    fn create(&mut self, stem: &str, began: Timestamp) -> Result<Current, StoreError> {
        let mut warc = Tail::create(self.layout.warc_open(stem), &mut self.opener)?;
        let index = Tail::create(self.layout.cdxj_open(stem), &mut self.opener)?;
        files::sync_dir(&self.layout.warc)?;
        files::sync_dir(&self.layout.cdxj)?;
        let name: Arc<str> = format!("{stem}{WARC}").into();
        let id = RecordId::new();
        warc.push(&info(&self.options, &name, id, began));
        Ok(Current {
            stem: stem.to_owned(),
            number: self.digests.register(&name),
            name,
            info: id,
            warc,
            index,
            fresh: Vec::new(),
        })
    }
}

/// The last name that was ever given, as far as anything in the directory tells: what was set aside from a damaged file still
/// has its number.
fn used(layout: &Layout) -> Result<Stem, StoreError> {
    let mut last = Stem::default();
    for dir in [&layout.warc, &layout.cdxj] {
        for name in names(dir)? {
            let stem = name.split('.').next().and_then(Stem::parse);
            if let Some(stem) = stem {
                last = last.with_serial_from(stem.serial()).max(stem);
            }
        }
    }
    Ok(last)
}

/// The record that opens a file.
fn info(options: &StoreOptions, name: &str, id: RecordId, began: Timestamp) -> Vec<u8> {
    use std::fmt::Write as _;
    let mut block = String::new();
    for (field, value) in [
        ("software", options.software.as_str()),
        ("format", "WARC File Format 1.1"),
        ("operator", &options.operator),
        ("robots", &options.robots),
    ] {
        if !value.is_empty() {
            // Writing to a String does not fail.
            let _ = write!(block, "{field}: {}\r\n", one_line(value));
        }
    }
    let mut out = Vec::new();
    let digest = Digest::of(block.as_bytes()).base32();
    Press::new(0)
        .begin("warcinfo", id)
        .field("WARC-Date", Date::new(began).iso())
        .field("WARC-Filename", name)
        .field("Content-Type", "application/warc-fields")
        .field("WARC-Block-Digest", format_args!("sha1:{digest}"))
        .finish(&[block.as_bytes()], Squeeze::Stored, &mut out);
    out
}
