//! How far each named reader of a journal has come, kept across restarts: no segment is forgotten before all have passed it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::segments::{remove_file, sync_dir};

/// The longest name of a follower.
const MAX_NAME: usize = 64;

/// The directory that has one small file per follower.
#[derive(Clone, Debug)]
pub struct Followers {
    dir: PathBuf,
}

impl Followers {
    /// The followers of the journal in this directory.
    pub fn of(journal: &Path) -> Self {
        Self {
            dir: journal.join("followers"),
        }
    }

    /// Where a follower has come to; none when there is no such follower. One whose file is damaged has to begin again.
    pub fn position(&self, name: &str) -> Result<Option<u64>, Error> {
        let path = self.path(name)?;
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(read(&bytes).unwrap_or(0))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path, error)),
        }
    }

    /// Keeps, durably, that a follower has come to this position. A new name is registered by it.
    pub fn set(&self, name: &str, position: u64) -> Result<(), Error> {
        let path = self.path(name)?;
        fs::create_dir_all(&self.dir).map_err(|e| Error::io("create", &self.dir, e))?;
        let new = self.dir.join(format!("{name}.new"));
        let mut bytes = position.to_be_bytes().to_vec();
        bytes.extend(xxh3_64(&bytes).to_be_bytes());
        let replace = || {
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        replace().map_err(|e| Error::io("write", &path, e))?;
        sync_dir(&self.dir)
    }

    /// Forgets a follower: nothing is kept for it any more.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        remove_file(&self.path(name)?)
    }

    /// All followers and where they have come to, by name.
    pub fn list(&self) -> Result<Vec<(String, u64)>, Error> {
        let failed = |e| Error::io("list", &self.dir, e);
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str().filter(|name| is_name(name)) else {
                continue;
            };
            if let Some(position) = self.position(name)? {
                found.push((name.to_owned(), position));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Where the slowest follower has come to; none when there is no follower.
    pub fn slowest(&self) -> Result<Option<u64>, Error> {
        Ok(self.list()?.into_iter().map(|(_, at)| at).min())
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        match is_name(name) {
            true => Ok(self.dir.join(name)),
            false => Err(Error::Name { name: name.into() }),
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits)
}

fn read(bytes: &[u8]) -> Option<u64> {
    let (position, sum) = bytes.split_at_checked(8)?;
    let sound = xxh3_64(position).to_be_bytes() == *sum;
    let position = position.try_into().ok().map(u64::from_be_bytes);
    position.filter(|_| sound)
}
