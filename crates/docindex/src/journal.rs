//! The files of a store before it is opened: journals that are damaged in the middle, and what does not
//! belong there.
//!
//! The store takes whatever it cannot read in its journal for the torn end that a crash leaves, and cuts the
//! file there: a flipped bit would cost everything behind it, and nobody would hear of it. So the journals
//! are read once before. A batch is a start (tag 1, count, sequence number), entries (tag 2 or 4), and an end
//! (tag 3, XXH3 of the entries, four fixed bytes); integers are little-endian.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};

/// The last bytes of every whole batch.
const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];

/// Fails with the name of the first file that is damaged in a way that the store would not name, or that is
/// not the store's.
pub(crate) fn inspect(path: &Path) -> Result<()> {
    if let Some(stranger) = strangers(path).first() {
        return Err(Error::Record {
            keyspace: "files",
            why: format!("{} does not belong to the doc index", stranger.display()),
        });
    }
    // Without it the store would begin anew over what is there.
    let marker = path.join("version");
    if !marker.is_file() && entries(path).next().is_some() {
        return Err(Error::Record {
            keyspace: "files",
            why: format!("{} is missing", marker.display()),
        });
    }
    for file in journals(path) {
        if let Some(byte) = survey(&file).map_err(fjall::Error::from)?.damaged {
            return Err(Error::Record {
                keyspace: "journal",
                why: format!("{}, byte {byte}: its checksum is wrong", file.display()),
            });
        }
    }
    Ok(())
}

/// Moves strangers away and takes damaged commits out of journals; the whole file stays beside.
/// What was done, in words.
pub(crate) fn mend(path: &Path) -> Result<Vec<String>> {
    let mend = || -> io::Result<Vec<String>> {
        let mut done = Vec::new();
        for (n, stranger) in strangers(path).into_iter().enumerate() {
            let away = path.with_extension("strangers");
            fs::create_dir_all(&away)?;
            let name = stranger.file_name().unwrap_or_default().to_string_lossy();
            let to = away.join(format!("{n}-{name}"));
            fs::rename(&stranger, &to)?;
            let (from, to) = (stranger.display(), to.display());
            done.push(format!(
                "{from} does not belong to the doc index and is now {to}"
            ));
        }
        for file in journals(path) {
            let found = survey(&file)?;
            let Some(byte) = found.damaged else {
                continue;
            };
            rewrite(&file, &found.sound)?;
            let file = file.display();
            done.push(format!(
                "{file} is damaged at byte {byte}: commits in it are lost"
            ));
        }
        Ok(done)
    };
    Ok(mend().map_err(fjall::Error::from)?)
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    found.map(|entry| entry.path())
}

fn journals(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = entries(path).filter(|file| is_journal(file)).collect();
    found.sort();
    found
}

fn is_journal(file: &Path) -> bool {
    file.extension().is_some_and(|ext| ext == "jnl")
}

fn is_number(name: Option<&std::ffi::OsStr>) -> bool {
    name.and_then(|name| name.to_str()?.parse::<u64>().ok())
        .is_some()
}

/// Files and directories over which the store would stumble.
fn strangers(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in entries(path) {
        let like_ours = file
            .extension()
            .is_some_and(|ext| ext.eq_ignore_ascii_case("jnl"));
        let ours = is_journal(&file) && file.is_file() && is_number(file.file_stem());
        if (like_ours && !ours) || file.file_name().is_some_and(|name| name.to_str().is_none()) {
            found.push(file);
        }
    }
    for keyspace in entries(&path.join("keyspaces")) {
        if keyspace.is_dir() && !is_number(keyspace.file_name()) {
            found.push(keyspace);
            continue;
        }
        let tables = entries(&keyspace.join("tables"));
        found.extend(tables.filter(|table| table.is_dir() || !is_number(table.file_name())));
    }
    found
}

/// What can be read of a journal.
struct Survey {
    /// Whole batches that lie together, by their first byte and the byte after their last.
    sound: Vec<(u64, u64)>,
    /// The first damaged byte, when more than a torn end comes there.
    damaged: Option<u64>,
}

fn survey(path: &Path) -> io::Result<Survey> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut found = Survey {
        sound: Vec::new(),
        damaged: None,
    };
    let mut scratch = Vec::new();
    let mut begin = 0;
    let mut last = None;
    loop {
        let number = batch(&mut file, &mut scratch).ok();
        // Sequence numbers are in no checksum, but only ever grow.
        if let Some(number) = number.filter(|number| last.is_none_or(|last| *number > last)) {
            last = Some(number);
            let end = file.stream_position()?;
            match found.sound.last_mut() {
                Some(before) if before.1 == begin => before.1 = end,
                _ => found.sound.push((begin, end)),
            }
            begin = end;
            continue;
        }
        // The end of this batch, or of the first whole one after it, is where the next begins. A batch
        // that was torn off by a crash has no end, and nothing comes after it.
        file.seek(SeekFrom::Start(begin))?;
        let Some(skipped) = to_trailer(&mut file)? else {
            return Ok(found);
        };
        found.damaged.get_or_insert(begin);
        begin += skipped;
        file.seek(SeekFrom::Start(begin))?;
    }
}

/// Writes a journal anew with its whole batches.
fn rewrite(path: &Path, sound: &[(u64, u64)]) -> io::Result<()> {
    let fresh = path.with_extension("jnl-new");
    let mut from = File::open(path)?;
    let mut to = File::create(&fresh)?;
    for (begin, end) in sound {
        from.seek(SeekFrom::Start(*begin))?;
        io::copy(&mut Read::by_ref(&mut from).take(end - begin), &mut to)?;
    }
    to.sync_all()?;
    fs::rename(path, path.with_extension("jnl-damaged"))?;
    fs::rename(fresh, path)
}

/// Reads one batch; its sequence number. Any error means that there is none.
fn batch(file: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<u64> {
    let mut start = [0; 13];
    file.read_exact(&mut start)?;
    let [1, count @ .., _, _, _, _, _, _, _, _] = start else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let [.., n0, n1, n2, n3, n4, n5, n6, n7] = start;
    let mut hasher = Xxh3::new();
    for _ in 0..u32::from_le_bytes(count) {
        entry(file, scratch)?;
        hasher.update(scratch);
    }
    let mut end = [0; 13];
    file.read_exact(&mut end)?;
    let mut wanted = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (head, trailer) = wanted.split_at_mut(9);
    trailer.copy_from_slice(&TRAILER);
    if let Some(sum) = head.get_mut(1..) {
        sum.copy_from_slice(&hasher.digest().to_le_bytes());
    }
    if end != wanted {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]))
}

/// Reads one entry of a batch as it lies there.
fn entry(file: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<()> {
    scratch.clear();
    take(file, scratch, 1)?;
    let rest = match scratch.first() {
        // The number of a keyspace that is cleared.
        Some(4) => 8,
        Some(2) => {
            // Type, compression, keyspace; then the lengths of key, value, and value as it lies there.
            take(file, scratch, 10)?;
            let mut lengths = [0; 10];
            file.read_exact(&mut lengths)?;
            scratch.extend_from_slice(&lengths);
            let [k0, k1, _, _, _, _, v0, v1, v2, v3] = lengths;
            u64::from(u16::from_le_bytes([k0, k1]))
                + u64::from(u32::from_le_bytes([v0, v1, v2, v3]))
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    take(file, scratch, rest)
}

/// Appends exactly so many bytes; a length that is damaged costs no memory beyond the file.
fn take(file: &mut impl Read, scratch: &mut Vec<u8>, count: u64) -> io::Result<()> {
    match file.take(count).read_to_end(scratch)? as u64 == count {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// How far it is to the end of a batch, that included; none when no more comes.
fn to_trailer(file: &mut impl Read) -> io::Result<Option<u64>> {
    let mut window = [0; 4];
    let mut chunk = vec![0; 1 << 17];
    let mut passed = 0;
    loop {
        let count = file.read(&mut chunk)?;
        // A new journal is 64 MiB of nothing.
        if count > 0 && chunk.iter().take(count).all(|byte| *byte == 0) {
            passed += count as u64;
            window = [0; 4];
            continue;
        }
        for byte in chunk.iter().take(count) {
            window.rotate_left(1);
            window[3] = *byte;
            passed += 1;
            if window == TRAILER {
                return Ok(Some(passed));
            }
        }
        if count == 0 {
            return Ok(None);
        }
    }
}
