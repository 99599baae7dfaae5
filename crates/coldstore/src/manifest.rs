//! The small files of a keyspace, verified before anybody believes them: `current` names a version file and
//! its checksum, the version file names the tables and theirs.
//!
//! The store itself does not look at the first of these checksums, and it removes tables that its version file
//! does not name: one flipped bit there would cost a table. It also reserves memory for as many sections as a
//! file says it has, before it verifies that; so what is verified here is verified before the store is let at it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The end of a file of sections: `SFA!`, version 1, checksum kind 0, checksum, place and length of the directory.
const TRAILER: u64 = 4 + 1 + 1 + 16 + 8 + 8;
/// No directory of sections is larger.
const MAX_DIRECTORY: u64 = 64 << 10;
/// No version file is larger: a table has 33 bytes in it.
const MAX_VERSION: u64 = 64 << 20;

/// A table that belongs to a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    /// Of the whole file.
    pub(crate) checksum: u128,
    /// Added to the sequence numbers in it.
    pub(crate) global_seqno: u64,
}

/// Why a file is not what it should be.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

impl Fault {
    fn new(file: &Path, why: impl ToString) -> Self {
        Self {
            file: file.into(),
            why: why.to_string(),
        }
    }
}

/// The tables of the keyspace in this directory.
pub(crate) fn tables(dir: &Path) -> Result<Vec<Listed>, Fault> {
    let current = dir.join("current");
    let bytes = read_small(&current, 64).map_err(|error| Fault::new(&current, error))?;
    let parsed = || -> Option<(u64, u128)> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (sum, kind) = rest.split_first_chunk::<16>()?;
        (kind == [0]).then(|| (u64::from_le_bytes(*id), u128::from_le_bytes(*sum)))
    };
    let Some((id, sum)) = parsed() else {
        return Err(Fault::new(&current, "it is damaged"));
    };
    let version = dir.join(format!("v{id}"));
    let bytes = match read_small(&version, MAX_VERSION) {
        // The number may be wrong as well as the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = format!("it names v{id}, which is not there");
            return Err(Fault::new(&current, why));
        }
        read => read.map_err(|error| Fault::new(&version, error))?,
    };
    if xxh3_128(&bytes) != sum {
        return Err(Fault::new(&version, "its checksum is wrong"));
    }
    listed(&bytes).ok_or_else(|| Fault::new(&version, "it is not a list of tables"))
}

/// Whether a file of sections has a sound directory of them at its end.
pub(crate) fn has_directory(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length < TRAILER {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(length - TRAILER))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer)?;
    let Some((sum, place)) = read_trailer(&trailer) else {
        return Ok(false);
    };
    let end = length - TRAILER;
    if place > end || end - place > MAX_DIRECTORY {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(place))?;
    let mut directory = Vec::new();
    file.take(end - place).read_to_end(&mut directory)?;
    Ok(xxh3_128(&directory) == sum)
}

/// The checksum of a whole file.
pub(crate) fn checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3::new();
    let mut chunk = vec![0; 1 << 18];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hasher.digest128()),
            Ok(count) => hasher.update(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checksum and place of the directory.
fn read_trailer(bytes: &[u8]) -> Option<(u128, u64)> {
    let rest = bytes.strip_prefix(b"SFA!\x01\x00")?;
    let (sum, rest) = rest.split_first_chunk::<16>()?;
    let (place, _) = rest.split_first_chunk::<8>()?;
    Some((u128::from_le_bytes(*sum), u64::from_le_bytes(*place)))
}

/// The tables in a version file that is known to be as it was written.
fn listed(bytes: &[u8]) -> Option<Vec<Listed>> {
    let trailer = bytes.len().checked_sub(TRAILER as usize)?;
    let (_, place) = read_trailer(bytes.get(trailer..)?)?;
    let directory = bytes.get(usize::try_from(place).ok()?..trailer)?;
    let mut rest = section(directory, b"tables", bytes)?;
    let mut found = Vec::new();
    for _ in 0..take::<1>(&mut rest)?[0] {
        for _ in 0..take::<1>(&mut rest)?[0] {
            for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
                let id = u64::from_le_bytes(take(&mut rest)?);
                let [0] = take::<1>(&mut rest)? else {
                    return None;
                };
                found.push(Listed {
                    id,
                    checksum: u128::from_le_bytes(take(&mut rest)?),
                    global_seqno: u64::from_le_bytes(take(&mut rest)?),
                });
            }
        }
    }
    Some(found)
}

/// The bytes of one section.
fn section<'a>(mut directory: &[u8], name: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    directory = directory.strip_prefix(b"TOC!")?;
    for _ in 0..u32::from_le_bytes(take(&mut directory)?) {
        let place = usize::try_from(u64::from_le_bytes(take(&mut directory)?)).ok()?;
        let length = usize::try_from(u64::from_le_bytes(take(&mut directory)?)).ok()?;
        let size = usize::from(u16::from_le_bytes(take(&mut directory)?));
        let (found, rest) = directory.split_at_checked(size)?;
        if found == name {
            return bytes.get(place..place.checked_add(length)?);
        }
        directory = rest;
    }
    None
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}
