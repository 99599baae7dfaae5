//! Bodies that are on disk: their records are made without ever being in memory.
//!
//! A WARC record says its length and the digest of its payload before the payload comes, and a gzip member is
//! written from its beginning to its end. So the body is read twice, once for the digest and once for the record, which
//! is compressed into a second file without a name, beside the WARC files. The writer then copies that. Reading
//! and compressing is done by whoever prepares, in parallel; the one thread that writes only copies.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use orbweaver_model::Spooled;

use crate::digest::Digest;
use crate::warc::render::Squeeze;

/// Bytes read at once.
const PIECE: usize = 256 << 10;

/// A record that is ready to be copied.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) file: File,
    pub(crate) len: u64,
}

/// The digest of a body on disk.
pub(crate) fn digest_of(body: &Spooled) -> io::Result<Digest> {
    use sha1::Digest as _;
    let mut hasher = sha1::Sha1::new();
    let mut reader = FileReader::new(body.file(), body.size());
    let mut buffer = vec![0; PIECE];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            return Ok(Digest::finish(hasher));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

/// A record in a gzip member of its own: its head, the HTTP head, and the body from disk.
pub(crate) fn press(
    dir: &Path,
    record: &[u8],
    head: &[u8],
    body: &Spooled,
    squeeze: Squeeze,
) -> io::Result<Bulk> {
    let file = tempfile::tempfile_in(dir)?;
    let level = match squeeze {
        Squeeze::Dense => Compression::fast(),
        Squeeze::Stored => Compression::none(),
    };
    let out = BufWriter::with_capacity(PIECE, file);
    let mut out: GzEncoder<_> = GzBuilder::new().write(out, level);
    out.write_all(record)?;
    out.write_all(head)?;
    io::copy(
        &mut io::BufReader::with_capacity(PIECE, FileReader::new(body.file(), body.size())),
        &mut out,
    )?;
    out.write_all(b"\r\n\r\n")?;
    let file = out.finish()?.into_inner().map_err(|e| e.into_error())?;
    let len = file.metadata()?.len();
    Ok(Bulk { file, len })
}

/// Reads a file from its beginning, wherever others read it.
pub(crate) struct FileReader<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> FileReader<'a> {
    pub(crate) fn new(file: &'a File, len: u64) -> Self {
        Self {
            file,
            at: 0,
            end: len,
        }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.file.read_at(buffer, self.at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}
