//! A crawl directory: what lies where, and whether it is ours to use.
//!
//! | path | what |
//! |---|---|
//! | `orbweaver-crawl` | one line that names the format; locked by the process that crawls |
//! | `orbweaver-demo` | there when `demo` made all of it, and may replace it |
//! | `crawl.toml` | the settings of the crawl, as given; a resumed crawl starts from them |
//! | `index/` | the doc index |
//! | `warc/`, `cdxj/` | what was fetched |
//! | `log/` | a line for each request |
//! | `changes.jsonl` | what operators changed, and when |
//! | `control.sock` | while a crawl runs: where it answers questions |

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::exit::{Ending, Fatal};
use orbweaver_config::Config;

const MARK: &str = "orbweaver-crawl";
const FORMAT: &str = "orbweaver crawl directory, format 1\n";

/// What `demo` puts into a directory that it may replace later.
const DEMO: &str = "orbweaver-demo";
const DEMO_SAYS: &str = "made by `orbweaver demo`, which replaces it; `orbweaver crawl` in this directory removes this file\n";
/// Attempts at the lock, and the time between them.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);
/// All that a crawl writes at the top of its directory.
const OURS: &[&str] = &[
    MARK,
    DEMO,
    "crawl.toml",
    "crawl.toml.new",
    "index",
    "warc",
    "cdxj",
    "log",
    "changes.jsonl",
    "control.sock",
];

/// The directory of a crawl.
#[derive(Clone, Debug)]
pub(crate) struct CrawlDir {
    path: PathBuf,
}

/// A crawl directory that this process has for itself, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Held {
    dir: CrawlDir,
    /// Its mark, locked. The lock goes with the process, however that ends.
    _mark: File,
    presence: Presence,
}

/// Tells whether a directory is still what it was when it was taken.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    mark: PathBuf,
    /// Device and inode of the mark.
    identity: (u64, u64),
}

impl Presence {
    /// False when the directory was removed, moved, or replaced by another: what is written then is lost.
    pub(crate) fn holds(&self) -> bool {
        // A disk that fails for other reasons is not a directory that is gone.
        match fs::metadata(&self.mark) {
            Ok(about) => identity(&about) == self.identity,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// What is said when it is gone.
    pub(crate) fn gone(&self) -> anyhow::Error {
        let dir = self.mark.parent().unwrap_or(&self.mark);
        Fatal::with(
            Ending::Directory,
            format!(
                "the crawl directory {} was removed or moved while the crawl ran, so the crawl has ended; \
                 what was fetched is where the directory is now",
                dir.display()
            ),
        )
    }
}

fn identity(about: &fs::Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

impl Held {
    /// The directory.
    pub(crate) fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    /// Whether it is still there.
    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Takes away what an earlier demo has left, and nothing else.
    pub(crate) fn clear_demo(&self) -> Result<()> {
        let path = &self.dir.path;
        let failed = |error: std::io::Error| unusable(path, &error);
        let is_demo = path.join(DEMO).exists();
        let mut all = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            all.push(entry.map_err(failed)?.path());
        }
        let is_mark = |path: &PathBuf| [MARK, DEMO].iter().any(|name| path.ends_with(name));
        if !is_demo && !all.iter().all(is_mark) {
            return Err(Fatal::with(
                Ending::Directory,
                format!(
                    "{} holds a crawl that `demo` did not make, or that was used since; choose another directory with -o",
                    path.display()
                ),
            ));
        }
        if let Some(foreign) = all.iter().find(|path| !is_ours(path)) {
            return Err(Fatal::with(
                Ending::Directory,
                format!(
                    "{} is not of the demo; move it away, or choose another directory with -o",
                    foreign.display()
                ),
            ));
        }
        // Whoever is killed here has left a demo that can be replaced.
        fs::write(path.join(DEMO), DEMO_SAYS).map_err(failed)?;
        for old in all.iter().filter(|path| !is_mark(path)) {
            let removed = match old.is_dir() && !old.is_symlink() {
                true => fs::remove_dir_all(old),
                false => fs::remove_file(old),
            };
            removed.map_err(|error| {
                let shown = old.display();
                Fatal::with(
                    Ending::Directory,
                    format!("cannot replace {shown}: {error}"),
                )
            })?;
        }
        Ok(())
    }

    /// A crawl was accepted here, so that this is no demo any more.
    pub(crate) fn keep(&self) {
        let _ = fs::remove_file(self.dir.path.join(DEMO));
    }
}

/// True for what a crawl writes. In the directories of the archive anything else is somebody's.
fn is_ours(path: &Path) -> bool {
    let known = |name: &str| path.ends_with(name);
    if !OURS.iter().any(|name| known(name)) {
        return false;
    }
    if !known("warc") && !known("cdxj") {
        return true;
    }
    let ours = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(b"orbweaver-")
        })
    };
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(ours))
}

impl CrawlDir {
    /// Takes a directory for this process alone: a new one, or an existing crawl. Anything else in that place is left
    /// alone, and nothing of a crawl is touched while another process has it.
    pub(crate) fn hold(path: &Path) -> Result<Held> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() && !half_marked(path) {
                    Self::open(path)?;
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(|error| unusable(path, &error))?;
            }
            Err(error) => return Err(unusable(path, &error)),
        }
        let failed = |error: std::io::Error| unusable(path, &error);
        let place = path.join(MARK);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut mark = options.open(&place).map_err(failed)?;
        let mut attempts = 1;
        loop {
            match mark.try_lock() {
                Ok(()) => break,
                // `is_held` looks for an instant; whoever crawls has it for longer.
                Err(TryLockError::WouldBlock) if attempts < ATTEMPTS => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(in_use(path)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            attempts += 1;
        }
        let identity = identity(&mark.metadata().map_err(failed)?);
        let presence = Presence {
            mark: place,
            identity,
        };
        if !presence.holds() {
            return Err(in_use(path));
        }
        let mut says = Vec::new();
        mark.read_to_end(&mut says).map_err(failed)?;
        if says != FORMAT.as_bytes() {
            // Empty when it is new, cut when a process was killed while it wrote it; `open` has refused all else.
            mark.rewind()
                .and_then(|()| mark.set_len(0))
                .and_then(|()| mark.write_all(FORMAT.as_bytes()))
                .map_err(failed)?;
        }
        Ok(Held {
            dir: Self { path: path.into() },
            _mark: mark,
            presence,
        })
    }

    /// Takes an existing crawl.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let refused = |why: String| Err(Fatal::with(Ending::Directory, why));
        let mark = match fs::read(path.join(MARK)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound && looks_like_ours(path) => {
                return refused(format!(
                    "{shown} has lost its file {MARK}; write the line `{}` into it",
                    FORMAT.trim()
                ));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && path.exists() => {
                return refused(format!(
                    "{shown} holds no crawl; name a directory that `orbweaver crawl -o` has written, or an empty one for a new crawl"
                ));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return refused(format!("there is no directory {shown}"));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(not_allowed(&path.join(MARK)));
            }
            Err(error) => return Err(unusable(path, &error)),
        };
        // A mark without its end is what a kill leaves; the next crawl writes it anew.
        let cut = FORMAT.starts_with(&mark) && looks_like_ours(path);
        if mark == FORMAT || cut {
            return Ok(Self { path: path.into() });
        }
        let (words, _) = FORMAT.rsplit_once(' ').unwrap_or((FORMAT, ""));
        let number = mark.strip_prefix(words).map(str::trim);
        match number.filter(|number| number.parse::<u32>().is_ok()) {
            Some(_) => refused(format!(
                "{shown} was written by another version ({}); use that version, or choose another directory",
                mark.trim()
            )),
            None => refused(format!(
                "{} is damaged; write the line `{}` into it",
                path.join(MARK).display(),
                FORMAT.trim()
            )),
        }
    }

    /// Whether a process has the directory for itself.
    pub(crate) fn is_held(&self) -> bool {
        let mark = File::open(self.path.join(MARK));
        mark.is_ok_and(|mark| matches!(mark.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Sees that this user may read everything in it, so that a missing permission is not taken for damage.
    pub(crate) fn readable(self) -> Result<Self> {
        self.readable_in(&["index", "warc", "cdxj", "results"])
    }

    /// The same for some of its directories.
    pub(crate) fn readable_in(self, parts: &[&str]) -> Result<Self> {
        match first_unreadable(&self.path, parts) {
            Some(file) => Err(not_allowed(&file)),
            None => Ok(self),
        }
    }

    /// Gives the files of the index the mode that all others have. The index replaces some of its files by private
    /// temporary ones, so this is done again and again.
    pub(crate) fn level_modes(&self) {
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
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the doc index is.
    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// The settings that the crawl was last run with.
    pub(crate) fn stored_config(&self) -> Result<Config> {
        let path = self.path.join("crawl.toml");
        if !path.exists() {
            return Ok(Config::default());
        }
        Config::read(&path).map_err(|error| {
            let error = anyhow::Error::from(error);
            if denied(&error) {
                return Fatal::with(Ending::Directory, format!("{error:#}"));
            }
            Fatal::input(format!(
                "{error:#}\ncorrect the file, or move it away and give seeds and settings again"
            ))
        })
    }

    /// Keeps the settings for the next run.
    pub(crate) fn store_config(&self, config: &Config) -> Result<()> {
        let text = toml::to_string(config).context("the settings cannot be written as TOML")?;
        let path = self.path.join("crawl.toml");
        let fresh = path.with_extension("toml.new");
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(|error| unusable(&self.path, &error))
    }
}

/// True when what makes a crawl is there.
fn looks_like_ours(path: &Path) -> bool {
    ["index", "warc", "cdxj"]
        .iter()
        .all(|name| path.join(name).is_dir())
}

/// True when a process was killed while it marked a directory as a crawl.
fn half_marked(path: &Path) -> bool {
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

/// What a reader hears who may not read.
pub(crate) fn not_allowed(file: &Path) -> anyhow::Error {
    let owner = fs::metadata(file).map(|about| format!(" (it belongs to user {})", about.uid()));
    Fatal::with(
        Ending::Directory,
        format!(
            "this user may not read {}{}; run the command as its owner, or have its permissions changed",
            file.display(),
            owner.unwrap_or_default()
        ),
    )
}

/// True when an error comes from a missing permission.
fn denied(error: &anyhow::Error) -> bool {
    let kind = |cause: &std::io::Error| cause.kind() == ErrorKind::PermissionDenied;
    error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(kind))
}

fn in_use(path: &Path) -> anyhow::Error {
    let shown = path.display();
    Fatal::with(
        Ending::Directory,
        format!(
            "{shown} is in use by another process; `orbweaver status {shown}` shows what it does, \
             `orbweaver ctl {shown} stop` stops it; or choose another directory"
        ),
    )
}

fn unusable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, then run the same command again"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "choose a directory that this user may write to"
        }
        _ => "choose another directory with -o",
    };
    let ending = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => {
            Ending::Disk
        }
        _ => Ending::Directory,
    };
    Fatal::with(
        ending,
        format!("cannot use {}: {error}; {advice}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_made_and_found_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        let dir = CrawlDir::hold(&path).unwrap().dir().clone();
        let config: Config = toml::from_str("contact = \"x\"").unwrap();
        dir.store_config(&config).unwrap();
        assert_eq!(
            CrawlDir::hold(&path)
                .unwrap()
                .dir()
                .stored_config()
                .unwrap(),
            config
        );
    }

    #[test]
    fn a_half_written_mark_is_finished() {
        let place = tempfile::tempdir().unwrap();
        for written in ["", "orbweaver craw"] {
            fs::write(place.path().join(MARK), written).unwrap();
            CrawlDir::hold(place.path()).unwrap();
            CrawlDir::open(place.path()).unwrap();
        }
    }

    #[test]
    fn what_is_no_crawl_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("thesis.txt"), "years of work").unwrap();
        let error = CrawlDir::hold(place.path()).unwrap_err();
        assert!(error.to_string().contains("holds no crawl"), "{error}");
        fs::write(
            place.path().join(MARK),
            "orbweaver crawl directory, format 9\n",
        )
        .unwrap();
        let error = CrawlDir::hold(place.path()).unwrap_err();
        assert!(error.to_string().contains("format 9"), "{error}");
        fs::write(place.path().join(MARK), b"orbweaver cr\xe1wl").unwrap();
        let error = CrawlDir::hold(place.path()).unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{error}");
        fs::remove_file(place.path().join(MARK)).unwrap();
        for name in ["index", "warc", "cdxj"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let error = CrawlDir::hold(place.path()).unwrap_err();
        assert!(error.to_string().contains("has lost its file"), "{error}");
    }

    #[test]
    fn one_process_at_a_time_and_gone_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("crawl");
        let held = CrawlDir::hold(&path).unwrap();
        let error = CrawlDir::hold(&path).unwrap_err();
        assert!(
            error.to_string().contains("in use by another process"),
            "{error}"
        );
        assert!(held.presence().holds());
        fs::rename(&path, place.path().join("elsewhere")).unwrap();
        assert!(!held.presence().holds());
        let other = CrawlDir::hold(&path).unwrap();
        assert!(!held.presence().holds() && other.presence().holds());
    }

    #[test]
    fn a_demo_replaces_only_a_demo() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("demo");
        let held = CrawlDir::hold(&path).unwrap();
        held.clear_demo().unwrap();
        fs::create_dir(path.join("warc")).unwrap();
        fs::write(path.join("warc/orbweaver-1.warc.gz"), "x").unwrap();
        held.clear_demo().unwrap();
        assert!(!path.join("warc").exists() && path.join(DEMO).exists());
        // Somebody's own files among it.
        for name in ["notes.txt", "warc/mine.warc.gz"] {
            fs::create_dir_all(path.join("warc")).unwrap();
            fs::write(path.join(name), "years of work").unwrap();
            let error = held.clear_demo().unwrap_err();
            assert!(error.to_string().contains("is not of the demo"), "{error}");
            assert!(path.join(name).exists());
            fs::remove_file(path.join(name)).unwrap();
        }
        // A crawl has gone on in it.
        held.keep();
        let error = held.clear_demo().unwrap_err();
        assert!(error.to_string().contains("did not make"), "{error}");
        assert!(path.join("warc").exists());
    }
}
