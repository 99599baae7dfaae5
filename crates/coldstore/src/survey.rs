//! The files of a store before it is opened: what is missing, what does not belong there, and what is damaged
//! so that the store would not say it, would remove more on account of it, or would stop the process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::journal;
use crate::manifest;

/// Fails with the first file that the store must not be let at. What goes through may be damaged still, but the
/// store says so itself. Returns the sequence number of the last commit that is in a journal.
pub fn inspect(path: &Path, keyspaces: usize) -> Result<Option<u64>> {
    if is_empty(path)? {
        return Ok(None);
    }
    let mut first = None;
    outside(path, &mut |file, what| {
        first.get_or_insert_with(|| Error::damaged(file, what));
    })?;
    if let Some(error) = first {
        return Err(error);
    }
    // The store's own has number 0, those of its user follow in the order in which they were made.
    for number in 0..=keyspaces as u64 {
        let dir = path.join("keyspaces").join(number.to_string());
        let listed =
            manifest::tables(&dir).map_err(|fault| Error::damaged(&fault.file, fault.why))?;
        for table in listed {
            let file = dir.join("tables").join(table.id.to_string());
            let sound = manifest::has_directory(&file);
            if !sound.or_else(forgive)? {
                let why = "its end is damaged";
                return Err(Error::damaged(&file, why));
            }
        }
    }
    let mut last = None;
    for file in journals(path)? {
        let read = journal::read(&file, &mut |_, _| {})?;
        if let Some((byte, _)) = read.damaged.first() {
            let what = format!("its checksum is wrong at byte {byte}");
            return Err(Error::damaged(&file, what));
        }
        last = last.max(read.last);
    }
    // The first keyspace says what the store holds, and is never empty.
    if last.is_none() && numbered(&path.join("keyspaces/1/tables"))?.is_empty() {
        return Err(Error::damaged(&path.join("*.jnl"), NOTHING_IS_LEFT));
    }
    Ok(last)
}

/// What is said of an index without a record.
pub const NOTHING_IS_LEFT: &str = "all that was in the journals is lost, and with it the index";

/// What is said of a journal that ends before the tables do.
pub const END_IS_LOST: &str =
    "the last commits are lost, of which some keyspaces know and others do not";

/// What can be seen of an index without looking into its larger files.
pub fn outside(path: &Path, report: &mut dyn FnMut(&Path, String)) -> Result<()> {
    for stranger in strangers(path)? {
        report(&stranger, "it does not belong to the doc index".into());
    }
    // Without it the store would begin anew over what is there.
    let marker = path.join("version");
    match fs::read(&marker) {
        Ok(bytes) if bytes == *b"FJL\x03" => {}
        Ok(_) => report(&marker, "it does not say the version of the store".into()),
        Err(error) => report(&marker, error.to_string()),
    }
    let lock = path.join("lock");
    if !lock.is_file() {
        report(&lock, "it is not there".into());
    }
    // There always is one: the store would begin another, and nobody would know what was in the first.
    if journals(path)?.is_empty() {
        let what = "there is no journal: the last commits are lost";
        report(&path.join("*.jnl"), what.into());
    }
    Ok(())
}

/// True when there is nothing that a store could be made of.
pub fn is_empty(path: &Path) -> Result<bool> {
    Ok(entries(path)?.is_empty())
}

/// The journals of a store.
pub(crate) fn journals(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = entries(path)?;
    found.retain(|file| is_journal(file));
    found.sort();
    Ok(found)
}

/// The numbers that files in a directory have for names.
pub(crate) fn numbered(dir: &Path) -> Result<Vec<u64>> {
    let files = entries(dir)?;
    let mut found: Vec<u64> = files
        .iter()
        .filter(|file| file.is_file())
        .filter_map(|file| number(file.file_name()))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// A file that is not there, or too short, is not sound; that is no trouble with the disk.
fn forgive(error: io::Error) -> io::Result<bool> {
    use io::ErrorKind::{IsADirectory, NotFound, UnexpectedEof};
    match error.kind() {
        NotFound | UnexpectedEof | IsADirectory => Ok(false),
        _ => Err(error),
    }
}

/// What is in a directory; nothing when there is none.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

fn is_journal(file: &Path) -> bool {
    let named = file.extension().is_some_and(|ext| ext == "jnl");
    named && file.is_file() && number(file.file_stem()).is_some()
}

fn number(name: Option<&OsStr>) -> Option<u64> {
    name?.to_str()?.parse().ok()
}

/// Files and directories over which the store would stumble.
fn strangers(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in entries(path)? {
        let extension = file.extension();
        let like_ours = extension.is_some_and(|ext| ext.eq_ignore_ascii_case("jnl"));
        let nameless = file.file_name().is_some_and(|name| name.to_str().is_none());
        if nameless || (like_ours && !is_journal(&file)) {
            found.push(file);
        }
    }
    for keyspace in entries(&path.join("keyspaces"))? {
        if keyspace.is_dir() && number(keyspace.file_name()).is_none() {
            found.push(keyspace);
            continue;
        }
        let tables = entries(&keyspace.join("tables"))?;
        let strange = |table: &PathBuf| table.is_dir() || number(table.file_name()).is_none();
        found.extend(tables.into_iter().filter(strange));
    }
    found.sort();
    Ok(found)
}
