//! The log of changes: what operators did to a crawl, one JSON line each, and how each is taken back.
//!
//! A line is on the disk before its change takes effect, so that no change is ever missing in it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};
use serde::{Deserialize, Serialize};

use orbweaver_model::Timestamp;

use crate::question::Question;
use orbweaver_config::units::moment;
use orbweaver_crawldir::CrawlDir;

/// What was changed. `was` is how it stood before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Pause, or its end.
    Paused {
        /// How it stands since.
        paused: bool,
        /// How it stood before.
        was: bool,
    },
    /// The crawl was told to end.
    Stop,
    /// A host was blocked, or freed.
    Blocked {
        /// Which.
        host: String,
        /// How it stands since.
        blocked: bool,
        /// How it stood before.
        was: bool,
    },
    /// A host got a rate of its own, or lost it.
    Rate {
        /// Which.
        host: String,
        /// Requests per second; none for the crawl's own rate.
        rate: Option<f64>,
        /// How it stood before.
        was: Option<f64>,
    },
    /// Seeds came in.
    Add {
        /// Which.
        urls: Vec<String>,
    },
    /// Settings were read again; those that took effect.
    Reload {
        /// Which, with their old and new values.
        settings: Vec<String>,
    },
}

impl Change {
    /// The question that takes the change back.
    fn inverse(&self) -> Result<Question, &'static str> {
        match self {
            Self::Paused { paused, was } if paused == was => Err("it changed nothing"),
            Self::Blocked { blocked, was, .. } if blocked == was => Err("it changed nothing"),
            Self::Paused { was: true, .. } => Ok(Question::Pause),
            Self::Paused { was: false, .. } => Ok(Question::Resume),
            Self::Blocked {
                host, was: true, ..
            } => Ok(Question::Block { host: host.clone() }),
            Self::Blocked {
                host, was: false, ..
            } => Ok(Question::Unblock { host: host.clone() }),
            Self::Rate { host, was, .. } => Ok(Question::Rate {
                host: host.clone(),
                rate: *was,
            }),
            Self::Stop => Err("`orbweaver crawl -o DIR` resumes a crawl that was stopped"),
            Self::Add { .. } => {
                Err("a known URL stays known; block its host to prevent fetching it")
            }
            Self::Reload { .. } => Err("change the settings back and reload them"),
        }
    }

    /// The change in words.
    pub fn words(&self) -> String {
        let rate = |rate: &Option<f64>| match rate {
            Some(0.0) => "no limit".to_owned(),
            Some(rate) => format!("{rate} requests/s"),
            None => "the rate of the crawl".to_owned(),
        };
        match self {
            Self::Paused { paused: true, .. } => "paused".into(),
            Self::Paused { paused: false, .. } => "resumed".into(),
            Self::Stop => "stopped".into(),
            Self::Blocked {
                host,
                blocked: true,
                ..
            } => format!("blocked {host}"),
            Self::Blocked { host, .. } => format!("unblocked {host}"),
            Self::Rate {
                host,
                rate: now,
                was,
            } => format!("rate of {host}: {} (was {})", rate(now), rate(was)),
            Self::Add { urls } => format!("added {}", urls.join(" ")),
            Self::Reload { settings } if settings.is_empty() => {
                "reloaded; nothing took effect".into()
            }
            Self::Reload { settings } => format!("reloaded: {}", settings.join(", ")),
        }
    }
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1.
    pub n: u64,
    /// When, in UTC.
    pub at: String,
    /// What was changed.
    #[serde(flatten)]
    pub change: Change,
    /// The entry that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
}

/// The log of one crawl.
#[derive(Clone, Debug)]
pub struct Changes {
    path: PathBuf,
}

impl Changes {
    /// The log in a crawl directory.
    pub fn of(dir: &CrawlDir) -> Self {
        Self {
            path: dir.path().join("changes.jsonl"),
        }
    }

    /// Every entry, oldest first. A line that a kill has torn is passed over.
    pub fn read(&self) -> Result<Vec<Entry>> {
        let text = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| self.unusable()),
        };
        let text = String::from_utf8_lossy(&text);
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(entries.collect())
    }

    /// Where lines begin that cannot be read. The end of the last one may be torn by a kill.
    pub fn damaged(&self) -> Vec<u64> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let mut at = 0;
        let mut found = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.ends_with(b"\n") && line.len() > 1;
            if whole && serde_json::from_slice::<Entry>(line).is_err() {
                found.push(at);
            }
            at += line.len() as u64;
        }
        found
    }

    /// Writes an entry to the disk itself; its number. The caller makes sure that nobody else writes.
    pub fn append(&self, change: &Change, undoes: Option<u64>, at: Timestamp) -> Result<u64> {
        let last = self.read()?.iter().map(|entry| entry.n).max();
        let entry = Entry {
            n: last.unwrap_or(0) + 1,
            at: moment(at),
            change: change.clone(),
            undoes,
        };
        let torn = std::fs::read(&self.path)
            .is_ok_and(|bytes| !bytes.ends_with(b"\n") && !bytes.is_empty());
        let line = format!(
            "{}{}\n",
            if torn { "\n" } else { "" },
            orbweaver_crawldir::json::line(&entry)
        );
        self.write(&line).map_err(|source| Error::ChangeLog {
            path: self.path.clone(),
            source,
        })?;
        Ok(entry.n)
    }

    fn write(&self, line: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        // The name of a new file is on the disk when its directory is.
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn unusable(&self) -> String {
        format!("cannot use {}", self.path.display())
    }

    /// The question that takes an entry back, unless that is impossible or done already.
    pub fn inverse(&self, n: u64) -> Result<Question> {
        let entries = self.read()?;
        let Some(entry) = entries.iter().find(|entry| entry.n == n) else {
            return Err(Error::not_found(format!(
                "there is no change {n}; `orbweaver ctl {} log` lists them",
                self.dir()
            )));
        };
        if let Some(by) = entries.iter().find(|later| later.undoes == Some(n)) {
            return Err(Error::input(format!(
                "change {n} was already reverted, by change {}",
                by.n
            )));
        }
        entry.change.inverse().map_err(|why| {
            let why = why.replace("DIR", &self.dir());
            Error::input(format!("change {n} cannot be reverted: {why}"))
        })
    }

    /// The crawl directory, as it is called.
    fn dir(&self) -> String {
        let dir = self.path.parent().unwrap_or(&self.path);
        dir.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, Changes) {
        let place = tempfile::tempdir().unwrap();
        let held = CrawlDir::hold(&place.path().join("crawl")).unwrap();
        let dir = held.dir().clone();
        (place, Changes::of(&dir))
    }

    fn rate(rate: Option<f64>, was: Option<f64>) -> Change {
        Change::Rate {
            host: "a".into(),
            rate,
            was,
        }
    }

    #[test]
    fn entries_are_numbered_and_survive_a_torn_line() {
        let (_place, log) = log();
        let at = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(log.append(&rate(Some(2.0), None), None, at).unwrap(), 1);
        let mut text = std::fs::read_to_string(&log.path).unwrap();
        text.push_str("{\"n\":2,\"at\":");
        std::fs::write(&log.path, text).unwrap();
        assert_eq!(log.append(&Change::Stop, None, at).unwrap(), 2);
        let entries = log.read().unwrap();
        assert_eq!(
            entries.iter().map(|entry| entry.n).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(entries[0].change, rate(Some(2.0), None));
        assert_eq!(entries[0].at, "2023-11-14T22:13:20.000Z");
    }

    #[test]
    fn what_can_be_taken_back_can_be_taken_back_once() {
        let (_place, log) = log();
        let at = Timestamp::from_millis(0);
        let blocked = |was| Change::Blocked {
            host: "a".into(),
            blocked: true,
            was,
        };
        for change in [
            rate(Some(2.0), Some(1.0)),
            blocked(false),
            blocked(true),
            Change::Stop,
        ] {
            log.append(&change, None, at).unwrap();
        }
        let host = || "a".to_owned();
        assert_eq!(
            log.inverse(1).unwrap(),
            Question::Rate {
                host: host(),
                rate: Some(1.0)
            }
        );
        assert_eq!(log.inverse(2).unwrap(), Question::Unblock { host: host() });
        for (n, why) in [
            (3, "changed nothing"),
            (4, "orbweaver crawl"),
            (9, "no change 9"),
        ] {
            let error = log.inverse(n).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        log.append(&rate(Some(1.0), Some(2.0)), Some(1), at)
            .unwrap();
        let error = log.inverse(1).unwrap_err().to_string();
        assert!(error.contains("by change 5"), "{error}");
    }
}
