//! A crawl directory that one process has for itself, and whether it is still where it was.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::dir::{CrawlDir, FORMAT, MARK, half_marked, unusable};
use crate::error::{Error, Result};

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
    "results",
    "log",
    "changes.jsonl",
    "control.sock",
];

/// A crawl directory that this process has for itself, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Held {
    dir: CrawlDir,
    /// Its mark, locked. The lock goes with the process, however that ends.
    _mark: File,
    presence: Presence,
}

/// Tells whether a directory is still what it was when it was taken.
#[derive(Clone, Debug)]
pub struct Presence {
    mark: PathBuf,
    /// Device and inode of the mark.
    identity: (u64, u64),
}

impl Presence {
    /// False when the directory was removed, moved, or replaced by another: what is written then is lost.
    pub fn holds(&self) -> bool {
        // A disk that fails for other reasons is not a directory that is gone.
        match fs::metadata(&self.mark) {
            Ok(about) => identity(&about) == self.identity,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// What is said when it is gone.
    pub fn gone(&self) -> Error {
        let dir = self.mark.parent().unwrap_or(&self.mark);
        Error::Gone(dir.display().to_string())
    }
}

fn identity(about: &fs::Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

impl Held {
    /// The directory.
    pub fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    /// Whether it is still there.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Takes away what an earlier demo has left, and nothing else.
    pub fn clear_demo(&self) -> Result<()> {
        let path = self.dir.path();
        let failed = |error: std::io::Error| unusable(path, error);
        let is_demo = path.join(DEMO).exists();
        let mut all = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            all.push(entry.map_err(failed)?.path());
        }
        let is_mark = |path: &PathBuf| [MARK, DEMO].iter().any(|name| path.ends_with(name));
        if !is_demo && !all.iter().all(is_mark) {
            return Err(Error::NotTheDemo(format!(
                "{} contains a crawl that `demo` did not create, or that was used since; choose another directory with -o",
                path.display()
            )));
        }
        if let Some(foreign) = all.iter().find(|path| !is_ours(path)) {
            return Err(Error::NotTheDemo(format!(
                "{} was not created by the demo; move it away, or choose another directory with -o",
                foreign.display()
            )));
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
                Error::NotTheDemo(format!("cannot replace {shown}: {error}"))
            })?;
        }
        Ok(())
    }

    /// A crawl was accepted here, so that this is no demo any more.
    pub fn keep(&self) {
        let _ = fs::remove_file(self.dir.path().join(DEMO));
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
    pub fn hold(path: &Path) -> Result<Held> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() && !half_marked(path) {
                    Self::open(path)?;
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(|error| unusable(path, error))?;
            }
            Err(error) => return Err(unusable(path, error)),
        }
        let failed = |error: std::io::Error| unusable(path, error);
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
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::InUse(path.display().to_string()));
                }
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
            return Err(Error::InUse(path.display().to_string()));
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
            dir: Self::at(path),
            _mark: mark,
            presence,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use orbweaver_config::Config;

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
        assert!(
            error.to_string().contains("is not a crawl directory"),
            "{error}"
        );
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
            assert!(
                error.to_string().contains("was not created by the demo"),
                "{error}"
            );
            assert!(path.join(name).exists());
            fs::remove_file(path.join(name)).unwrap();
        }
        // A crawl has gone on in it.
        held.keep();
        let error = held.clear_demo().unwrap_err();
        assert!(error.to_string().contains("did not create"), "{error}");
        assert!(path.join("warc").exists());
    }
}
