//! A crawl directory: what lies where, and whether it is ours to use.
//!
//! | path | what |
//! |---|---|
//! | `orbweaver-crawl` | one line that names the format |
//! | `crawl.toml` | the settings of the crawl, as given; a resumed crawl starts from them |
//! | `index/` | the doc index |
//! | `warc/`, `cdxj/` | what was fetched |
//! | `changes.jsonl` | what operators changed, and when |
//! | `control.sock` | while a crawl runs: where it answers questions |

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::config::Config;
use crate::exit::{Ending, Fatal};

const MARK: &str = "orbweaver-crawl";
const FORMAT: &str = "orbweaver crawl directory, format 1\n";

/// The directory of a crawl.
#[derive(Clone, Debug)]
pub(crate) struct CrawlDir {
    path: PathBuf,
}

impl CrawlDir {
    /// Creates the directory, or takes an existing crawl. Anything else in that place is left alone.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let dir = Self { path: path.into() };
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() && !half_marked(path) {
                    return Self::open(path);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(|error| unusable(path, &error))?;
            }
            Err(error) => return Err(unusable(path, &error)),
        }
        fs::write(dir.path.join(MARK), FORMAT).map_err(|error| unusable(path, &error))?;
        Ok(dir)
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
            // What is shown of a damaged file must not steer a terminal.
            let shown = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
            let said: String = format!("{error:#}").trim_end().chars().map(shown).collect();
            Fatal::input(format!(
                "{said}\ncorrect the file, or move it away and give seeds and settings again"
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
        let dir = CrawlDir::create(&path).unwrap();
        let config: Config = toml::from_str("contact = \"x\"").unwrap();
        dir.store_config(&config).unwrap();
        assert_eq!(
            CrawlDir::create(&path).unwrap().stored_config().unwrap(),
            config
        );
    }

    #[test]
    fn a_half_written_mark_is_finished() {
        let place = tempfile::tempdir().unwrap();
        for written in ["", "orbweaver craw"] {
            fs::write(place.path().join(MARK), written).unwrap();
            CrawlDir::create(place.path()).unwrap();
            CrawlDir::open(place.path()).unwrap();
        }
    }

    #[test]
    fn what_is_no_crawl_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("thesis.txt"), "years of work").unwrap();
        let error = CrawlDir::create(place.path()).unwrap_err();
        assert!(error.to_string().contains("holds no crawl"), "{error}");
        fs::write(
            place.path().join(MARK),
            "orbweaver crawl directory, format 9\n",
        )
        .unwrap();
        let error = CrawlDir::create(place.path()).unwrap_err();
        assert!(error.to_string().contains("format 9"), "{error}");
        fs::write(place.path().join(MARK), b"orbweaver cr\xe1wl").unwrap();
        let error = CrawlDir::create(place.path()).unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{error}");
        fs::remove_file(place.path().join(MARK)).unwrap();
        for name in ["index", "warc", "cdxj"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let error = CrawlDir::create(place.path()).unwrap_err();
        assert!(error.to_string().contains("has lost its file"), "{error}");
    }
}
