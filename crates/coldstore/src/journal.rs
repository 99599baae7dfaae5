//! The journals of a store, read as they lie there.
//!
//! The store takes whatever it cannot read in its journal for the torn end that a crash leaves, and cuts the
//! file there: a flipped bit would cost everything behind it, and nobody would hear of it. So the journals
//! are read here first. A batch is a start (tag 1, count, sequence number), entries (tag 2 or 4), and an end
//! (tag 3, XXH3 of the entries, four fixed bytes); integers are little-endian.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

/// The last bytes of every whole batch.
const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];
/// No value is larger; ours have less than a megabyte.
const MAX_VALUE: u32 = 64 << 20;

/// One change of a key.
pub(crate) struct Write {
    /// The number of the keyspace.
    pub(crate) space: u64,
    pub(crate) key: Vec<u8>,
    /// None when the key was removed.
    pub(crate) value: Option<Vec<u8>>,
}

/// What a journal is worth.
#[derive(Default)]
pub(crate) struct Worth {
    /// Where it is damaged, when that is more than the torn end that a crash leaves: first byte of each such place,
    /// and the byte after its last.
    pub(crate) damaged: Vec<(u64, u64)>,
    /// The sequence number of the last whole batch.
    pub(crate) last: Option<u64>,
}

/// Reads every whole batch of a journal; each comes with its sequence number.
pub(crate) fn read(path: &Path, each: &mut dyn FnMut(u64, Vec<Write>)) -> io::Result<Worth> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let Worth {
        mut damaged,
        mut last,
    } = Worth::default();
    let mut scratch = Vec::new();
    let mut begin = 0;
    loop {
        // Sequence numbers are in no checksum, but only ever grow.
        let whole = batch(&mut file, &mut scratch)
            .ok()
            .filter(|(number, _)| last.is_none_or(|last| *number > last));
        if let Some((number, writes)) = whole {
            last = Some(number);
            begin = file.stream_position()?;
            each(number, writes);
            continue;
        }
        // The end of this batch, or of the first whole one after it, is where the next begins. A batch
        // that was torn off by a crash has no end, and nothing comes after it.
        file.seek(SeekFrom::Start(begin))?;
        let Some(skipped) = to_trailer(&mut file)? else {
            return Ok(Worth { damaged, last });
        };
        match damaged.last_mut() {
            Some(before) if before.1 == begin => before.1 = begin + skipped,
            _ => damaged.push((begin, begin + skipped)),
        }
        begin += skipped;
        file.seek(SeekFrom::Start(begin))?;
    }
}

/// Reads one batch with its sequence number. Any error means that there is none.
fn batch(file: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<(u64, Vec<Write>)> {
    let mut start = [0; 13];
    file.read_exact(&mut start)?;
    let [1, count @ .., _, _, _, _, _, _, _, _] = start else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let [.., n0, n1, n2, n3, n4, n5, n6, n7] = start;
    let mut hasher = Xxh3::new();
    let mut writes = Vec::new();
    for _ in 0..u32::from_le_bytes(count) {
        writes.extend(entry(file, scratch)?);
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
    let number = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    let writes: io::Result<Vec<Write>> = writes.into_iter().map(Packed::unpack).collect();
    Ok((number, writes?))
}

/// A write whose batch is not verified yet.
struct Packed {
    write: Write,
    /// The length of the value when it is compressed.
    compressed: Option<u32>,
}

impl Packed {
    fn unpack(self) -> io::Result<Write> {
        let Self {
            mut write,
            compressed,
        } = self;
        if let (Some(length), Some(value)) = (compressed, &mut write.value) {
            if length > MAX_VALUE {
                return Err(io::ErrorKind::InvalidData.into());
            }
            *value = lz4_flex::block::decompress(value, length as usize)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        }
        Ok(write)
    }
}

/// Reads one entry of a batch as it lies there. One that clears a keyspace says nothing here: none of ours is
/// ever cleared.
fn entry(file: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<Option<Packed>> {
    scratch.clear();
    take(file, scratch, 1)?;
    match scratch.first() {
        Some(4) => return take(file, scratch, 8).map(|()| None),
        Some(2) => {}
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    // Type, compression, keyspace; then the lengths of key, value, and value as it lies there.
    let mut head = [0; 20];
    file.read_exact(&mut head)?;
    scratch.extend_from_slice(&head);
    let [
        kind,
        compression,
        s0,
        s1,
        s2,
        s3,
        s4,
        s5,
        s6,
        s7,
        lengths @ ..,
    ] = head;
    let [k0, k1, l0, l1, l2, l3, v0, v1, v2, v3] = lengths;
    let begin = scratch.len();
    let key = u16::from_le_bytes([k0, k1]);
    take(file, scratch, u64::from(key))?;
    let middle = scratch.len();
    take(
        file,
        scratch,
        u64::from(u32::from_le_bytes([v0, v1, v2, v3])),
    )?;
    let part = |from: usize, to: usize| scratch.get(from..to).unwrap_or_default().to_vec();
    let write = Write {
        space: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
        key: part(begin, middle),
        value: (kind == 0).then(|| part(middle, scratch.len())),
    };
    let compressed = (compression != 0).then_some(u32::from_le_bytes([l0, l1, l2, l3]));
    Ok(Some(Packed { write, compressed }))
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
    let nothing = vec![0; chunk.len()];
    let mut passed = 0;
    loop {
        let count = file.read(&mut chunk)?;
        // A new journal is 64 MiB of nothing; comparing it with nothing is as fast as reading it.
        if count > 0 && chunk.get(..count) == nothing.get(..count) {
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
