//! Opening a crawl directory, taking it for one process, and the settings that it keeps.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use orbweaver_config::Config;

use crate::error::{Error, Result};

pub(crate) const MARK: &str = "orbweaver-crawl";
pub(crate) const FORMAT: &str = "orbweaver crawl directory, format 1\n";
/// The directory of a crawl.
#[derive(Clone, Debug)]
pub struct CrawlDir {
    path: PathBuf,
}

impl CrawlDir {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Takes an existing crawl.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        let line = || FORMAT.trim().to_owned();
        let mark = match fs::read(path.join(MARK)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound && looks_like_ours(path) => {
                let what = format!("{} has lost its file {MARK}", shown());
                return Err(Error::Mark { what, line: line() });
            }
            Err(error) if error.kind() == ErrorKind::NotFound && path.exists() => {
                return Err(Error::NotACrawl(shown()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::Missing(shown()));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(not_allowed(&path.join(MARK)));
            }
            Err(error) => return Err(unusable(path, error)),
        };
        // A mark without its end is what a kill leaves; the next crawl writes it anew.
        let cut = FORMAT.starts_with(&mark) && looks_like_ours(path);
        if mark == FORMAT || cut {
            return Ok(Self::at(path));
        }
        let (words, _) = FORMAT.rsplit_once(' ').unwrap_or((FORMAT, ""));
        let number = mark.strip_prefix(words).map(str::trim);
        match number.filter(|number| number.parse::<u32>().is_ok()) {
            Some(_) => Err(Error::Version {
                dir: shown(),
                mark: mark.trim().into(),
            }),
            None => {
                let what = format!("{} is damaged", path.join(MARK).display());
                Err(Error::Mark { what, line: line() })
            }
        }
    }

    /// Whether a process has the directory for itself.
    pub fn is_held(&self) -> bool {
        let mark = File::open(self.path.join(MARK));
        mark.is_ok_and(|mark| matches!(mark.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Why this user cannot talk to whoever crawls here, or read a file in it.
    pub fn not_allowed(file: &Path) -> Error {
        not_allowed(file)
    }

    /// Sees that this user may read everything in it, so that a missing permission is not taken for damage.
    pub fn readable(self) -> Result<Self> {
        self.readable_in(&["index", "warc", "cdxj", "results"])
    }

    /// The same for some of its directories.
    pub fn readable_in(self, parts: &[&str]) -> Result<Self> {
        match first_unreadable(&self.path, parts) {
            Some(file) => Err(not_allowed(&file)),
            None => Ok(self),
        }
    }

    /// Gives the files of the index the mode that all others have. The index replaces some of its files by private
    /// temporary ones, so this is done again and again.
    pub fn level_modes(&self) {
        let Ok(mark) = fs::metadata(self.path.join(MARK)) else {
            return;
        };
        let mode = mark.mode() & 0o666;
        for keyspace in fs::read_dir(self.index().join("keyspaces"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let current = keyspace.path().join("current");
            if fs::metadata(&current).is_ok_and(|about| about.mode() & 0o777 != mode) {
                // It may just have been replaced; there is a next time.
                let _ = fs::set_permissions(&current, PermissionsExt::from_mode(mode));
            }
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the doc index is.
    pub fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// The settings that the crawl was last run with.
    pub fn stored_config(&self) -> Result<Config> {
        let path = self.path.join("crawl.toml");
        if !path.exists() {
            return Ok(Config::default());
        }
        Config::read(&path).map_err(|error| match &error {
            orbweaver_config::Error::Read { source, .. }
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                not_allowed(&path)
            }
            _ => Error::Settings(error),
        })
    }

    /// Keeps the settings for the next run.
    pub fn store_config(&self, config: &Config) -> Result<()> {
        let text = config.kept().map_err(Error::Unwritable)?;
        let path = self.path.join("crawl.toml");
        let fresh = path.with_extension("toml.new");
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(|error| unusable(&self.path, error))
    }
}

/// True when what makes a crawl is there.
fn looks_like_ours(path: &Path) -> bool {
    ["index", "warc", "cdxj"]
        .iter()
        .all(|name| path.join(name).is_dir())
}

/// True when a process was killed while it marked a directory as a crawl.
pub(crate) fn half_marked(path: &Path) -> bool {
    fs::read_to_string(path.join(MARK))
        .is_ok_and(|mark| mark != FORMAT && FORMAT.starts_with(&mark))
}

/// Files that are looked at for permissions; whoever may read so many may read the rest.
const LOOKED_AT: usize = 100_000;

/// The first file of a crawl that this user may not read.
fn first_unreadable(dir: &Path, parts: &[&str]) -> Option<PathBuf> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let allowed = |path: &Path, access| {
        let asked = accessat(CWD, path, access, AtFlags::EACCESS);
        !matches!(
            asked,
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM)
        )
    };
    let mut left = vec![dir.to_path_buf()];
    let mut seen = 0;
    while let Some(place) = left.pop().filter(|_| seen < LOOKED_AT) {
        if !allowed(&place, Access::READ_OK | Access::EXEC_OK) {
            return Some(place);
        }
        for entry in fs::read_dir(&place).ok()?.flatten() {
            seen += 1;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind)
                    if kind.is_dir()
                        && (place != dir || parts.iter().any(|part| path.ends_with(part))) =>
                {
                    left.push(path)
                }
                Ok(kind) if kind.is_file() && !allowed(&path, Access::READ_OK) => {
                    return Some(path);
                }
                _ => {}
            }
        }
    }
    None
}

fn not_allowed(file: &Path) -> Error {
    let owner = fs::metadata(file).map(|about| format!(" (it belongs to user {})", about.uid()));
    Error::Denied {
        file: file.display().to_string(),
        owner: owner.unwrap_or_default(),
    }
}

pub(crate) fn unusable(path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        path: path.into(),
        source,
    }
}
