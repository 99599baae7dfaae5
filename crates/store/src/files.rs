//! The layout of a crawl directory: names, listing, and changes to directories that survive a power cut.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use orbweaver_model::Timestamp;

use crate::date::Date;
use crate::error::StoreError;

/// What a WARC file is called after its stem.
pub(crate) const WARC: &str = ".warc.gz";
/// What an index is called after its stem.
pub(crate) const CDXJ: &str = ".cdxj";
/// What is added to both while they are written.
pub(crate) const OPEN: &str = ".open";
/// A sorted index that is being written; worthless after a crash.
pub(crate) const NEW: &str = ".new";

/// Where everything lies inside one crawl directory.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) warc: PathBuf,
    pub(crate) cdxj: PathBuf,
    /// The journal of results, and the table of file numbers.
    pub(crate) results: PathBuf,
}

impl Layout {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            warc: dir.join("warc"),
            cdxj: dir.join("cdxj"),
            results: dir.join("results"),
        }
    }

    pub(crate) fn create(&self) -> Result<(), StoreError> {
        for dir in [&self.warc, &self.cdxj, &self.results] {
            fs::create_dir_all(dir).map_err(|e| StoreError::io("create", dir, e))?;
        }
        match self.warc.parent() {
            Some(parent) => sync_dir(parent),
            None => Ok(()),
        }
    }

    pub(crate) fn warc(&self, stem: &str) -> PathBuf {
        self.warc.join(format!("{stem}{WARC}"))
    }

    pub(crate) fn warc_open(&self, stem: &str) -> PathBuf {
        self.warc.join(format!("{stem}{WARC}{OPEN}"))
    }

    pub(crate) fn cdxj(&self, stem: &str) -> PathBuf {
        self.cdxj.join(format!("{stem}{CDXJ}"))
    }

    pub(crate) fn cdxj_open(&self, stem: &str) -> PathBuf {
        self.cdxj.join(format!("{stem}{CDXJ}{OPEN}"))
    }

    pub(crate) fn cdxj_new(&self, stem: &str) -> PathBuf {
        self.cdxj.join(format!("{stem}{CDXJ}{NEW}"))
    }

    /// The table of file numbers.
    pub(crate) fn numbers(&self) -> PathBuf {
        self.results.join("files")
    }

    /// The WARC file of this name, finished or still open. A file can be finished between the two looks,
    /// so the finished name is tried again.
    pub(crate) fn open_warc(&self, name: &str) -> Result<(PathBuf, File), StoreError> {
        #[cfg(test)]
        looked::at(&looked::OPENED);
        let finished = self.warc.join(name);
        let unfinished = self.warc.join(format!("{name}{OPEN}"));
        for path in [&finished, &unfinished, &finished] {
            match File::open(path) {
                Ok(file) => return Ok((path.clone(), file)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(StoreError::io("open", path, e)),
            }
        }
        let gone = io::Error::from(io::ErrorKind::NotFound);
        Err(StoreError::io("open", &finished, gone))
    }

    /// The stems of all files in `warc` or `cdxj` whose names end so, in the order of their names.
    pub(crate) fn stems(dir: &Path, suffix: &str) -> Result<Vec<String>, StoreError> {
        let names = names(dir)?;
        let stem = |name: &String| name.strip_suffix(suffix).map(str::to_owned);
        Ok(names.iter().filter_map(stem).collect())
    }
}

/// The names in a directory, sorted; empty when there is no directory. Names that are not UTF-8 are
/// never ours and are left out.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    #[cfg(test)]
    looked::at(&looked::LISTED);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::io("list", dir, e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| StoreError::io("list", dir, e))?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// What makes the name of a file: `orbweaver-<14 digits>-<5 digits>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stem {
    digits: String,
    serial: u32,
}

impl Stem {
    /// Reads a stem of ours.
    pub(crate) fn parse(stem: &str) -> Option<Self> {
        let (digits, serial) = stem.strip_prefix("orbweaver-")?.split_once('-')?;
        Some(Self {
            digits: digits.to_owned(),
            serial: serial.parse().ok()?,
        })
    }

    /// With these fourteen digits and this number; none when they are no digits.
    pub(crate) fn new(digits: &str, serial: u32) -> Option<Self> {
        let fits = digits.len() == 14 && digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| Self {
            digits: digits.to_owned(),
            serial,
        })
    }

    /// When the first capture of the file began.
    pub(crate) fn digits(&self) -> &str {
        &self.digits
    }

    /// The number of the file: never given twice in an archive.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// The one that comes before all that follow this number.
    pub(crate) fn with_serial_from(self, serial: u32) -> Self {
        Self {
            serial: self.serial.max(serial),
            ..self
        }
    }

    /// The next one, for a file whose first capture began at this time. Captures do not come in the order
    /// in which they began, and a clock may be set back; names never do, so that they sort by age.
    pub(crate) fn after(&self, began: Timestamp) -> Self {
        let digits = Date::new(began).digits().to_string();
        Self {
            digits: digits.max(self.digits.clone()),
            serial: self.serial.saturating_add(1),
        }
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "orbweaver-{}-{:05}", self.digits, self.serial)
    }
}

/// Makes creations, renames and removals in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    File::open(dir)
        .and_then(|handle| handle.sync_all())
        .map_err(|e| StoreError::io("sync", dir, e))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(|e| StoreError::io("rename", from, e))
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// How often this thread has looked at the archive, for tests that count it.
#[cfg(test)]
pub(crate) mod looked {
    use std::cell::Cell;
    use std::thread::LocalKey;

    thread_local! {
        pub(crate) static OPENED: Cell<u64> = const { Cell::new(0) };
        pub(crate) static LISTED: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn at(count: &'static LocalKey<Cell<u64>>) {
        count.set(count.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_age_whatever_the_clock_does() {
        let noon = Timestamp::from_millis(1_772_366_400_007);
        let first = Stem::default().after(noon);
        assert_eq!(first.to_string(), "orbweaver-20260301120000-00001");
        assert_eq!(Stem::parse(&first.to_string()), Some(first.clone()));
        let earlier = first.after(Timestamp::from_millis(0));
        assert_eq!(earlier.to_string(), "orbweaver-20260301120000-00002");
        assert_eq!(Stem::parse("other-1-2"), None);
    }
}
