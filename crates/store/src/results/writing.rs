//! Opening the journal of results, and writing it.
//!
//! What is in the WARC files is the truth. When they are more than the journal knows, because the process died or the power
//! failed, what they have behind its last entry is entered again; when the journal knows more, which only a power cut can
//! do, its end is cut. So a crawl need not sync the journal: its entries come out of the archive again, with the same
//! positions. A store that enters attempts without an exchange syncs it before it answers.

use std::path::Path;

use orbweaver_journal::{Error, OnDamage, Options, Writer};
use orbweaver_model::CapturePlace;

use super::entry::{Draft, Entry, KIND, MAX_PAYLOAD, Standing};
use super::follow::Results;
use super::past::Past;
use crate::error::StoreError;
use crate::files::{Layout, names};
use crate::options::StoreOptions;

/// Entries that wait in memory at most while the journal catches up.
const BATCH: usize = 1 << 20;

/// The journal while it is written.
#[derive(Debug)]
pub(crate) struct Writing {
    writer: Writer,
    results: Results,
    is_durable: bool,
    /// The highest number of a file that an entry named.
    newest_file: u32,
}

impl Writing {
    /// Opens the journal of an archive that was just made whole. Calls `each` with every entry that is there, old or made
    /// again.
    pub(crate) fn open(
        layout: &Layout,
        options: &StoreOptions,
        each: &mut dyn FnMut(&Entry),
    ) -> Result<Self, StoreError> {
        refuse_earlier(&layout.results)?;
        let mut last: Option<CapturePlace> = None;
        let mut known = 0;
        let end = match options.durable_results {
            true => None,
            false => Some(archive_end(layout)?),
        };
        let on_damage = match options.durable_results {
            true => OnDamage::Refuse,
            false => OnDamage::Cut,
        };
        let mut is_ahead = false;
        let mut newest_file = 0;
        let writer = Writer::open(
            &layout.results,
            journal_options(options),
            on_damage,
            &mut |position, payload| {
                let Some(entry) = Entry::read(payload) else {
                    return;
                };
                newest_file = newest_file.max(entry.place().map_or(0, |place| place.file));
                is_ahead |= end.is_some_and(|end| entry.place() > end);
                if is_ahead {
                    return;
                }
                known = position;
                if let Standing::Stored(place) = entry.standing {
                    last = Some(place);
                }
                each(&entry);
            },
        );
        let mut writer = writer?;
        if end.is_some() && (is_ahead || last.is_none()) {
            // Positions count the exchanges of the archive: without any entry left the count begins anew.
            writer.truncate(if last.is_some() { known } else { 0 })?;
        }
        catch_up(&mut writer, layout, last, each)?;
        let is_in_archive = !options.durable_results;
        let results = Results::new(layout, writer.segments(), writer.last(), is_in_archive);
        Ok(Self {
            writer,
            results,
            is_durable: options.durable_results,
            newest_file,
        })
    }

    /// The highest number of an archive file that the journal knew of, though the file may be gone.
    pub(crate) fn newest_file(&self) -> u32 {
        self.newest_file
    }

    /// The same, for those who follow.
    pub(crate) fn results(&self) -> Results {
        self.results.clone()
    }

    /// Adds an entry and says its position.
    pub(crate) fn append(&mut self, draft: &Draft) -> Result<u64, StoreError> {
        Ok(self.writer.append(draft.payload())?)
    }

    /// Follows a write of the archive to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        match self.is_durable {
            true => Ok(()),
            false => Ok(self.writer.flush()?),
        }
    }

    /// Follows a sync of the archive, after which what was entered is acknowledged. Says up to which position.
    pub(crate) fn sync(&mut self) -> Result<u64, StoreError> {
        match self.is_durable {
            true => self.writer.sync()?,
            false => self.writer.flush()?,
        }
        self.results.publish(self.writer.written());
        Ok(self.writer.written())
    }

    /// Makes all of it durable.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        Ok(self.writer.sync()?)
    }
}

pub(crate) fn journal_options(options: &StoreOptions) -> Options {
    Options {
        kind: KIND,
        segment_bytes: options.results_segment,
        max_payload: MAX_PAYLOAD,
    }
}

/// The last capture of the archive; none when it has none.
fn archive_end(layout: &Layout) -> Result<Option<CapturePlace>, StoreError> {
    Past::last_of(layout)
}

/// Enters what the archive has behind a place.
fn catch_up(
    writer: &mut Writer,
    layout: &Layout,
    after: Option<CapturePlace>,
    each: &mut dyn FnMut(&Entry),
) -> Result<(), StoreError> {
    let mut past = Past::behind(layout, after)?;
    while let Some(entry) = past.next()? {
        let mut draft = Draft::new(entry.at, entry.purpose, &entry.url, &[]);
        draft.stands(entry.standing);
        writer.append(draft.payload())?;
        if writer.waiting() >= BATCH {
            writer.flush()?;
        }
        each(&entry);
    }
    if writer.waiting() > 0 {
        writer.sync()?;
    }
    Ok(())
}

/// The journal that stores of earlier versions wrote holds results that are nowhere else, in a form that is not read here.
fn refuse_earlier(dir: &Path) -> Result<(), StoreError> {
    let is_earlier = |name: &String| {
        let serial = name.strip_suffix(".log");
        serial.is_some_and(|it| it.len() == 6 && it.bytes().all(|b| b.is_ascii_digit()))
    };
    match names(dir)?.iter().find(|name| is_earlier(name)) {
        None => Ok(()),
        Some(name) => Err(StoreError::Version {
            path: dir.join(name),
        }),
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Io {
                doing,
                path,
                source,
            } => Self::io(doing, &path, source),
            Error::Damaged { path, offset, what } => Self::damaged(&path, offset, what),
            Error::Foreign { path } => Self::Version { path },
            other @ (Error::TooLong { .. } | Error::Name { .. }) => {
                Self::damaged(Path::new("results"), 0, other.to_string())
            }
        }
    }
}
