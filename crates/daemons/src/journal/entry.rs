//! One entry of the journal, in memory and on disk.

use bytes::{Buf, Bytes};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use orbweaver_model::Timestamp;
use orbweaver_wire::{Decoded, Record, Records};

/// Bytes before the payload of an entry: its length and its checksum.
pub(crate) const FRAME_LEN: usize = 12;

/// The largest payload: two URLs of 64 KiB and a file name, with room to spare.
pub(crate) const MAX_PAYLOAD: usize = 256 << 10;

/// Where the data of a record lies in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) file: String,
    pub(crate) offset: u64,
}

/// What the archive has of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There was no data to keep.
    Nothing,
    /// Its data was archived for this entry.
    Archived(Location),
    /// The same data for the same document was in the archive before.
    Again(Location),
}

impl Standing {
    pub(crate) fn location(&self) -> Option<&Location> {
        match self {
            Self::Nothing => None,
            Self::Archived(location) | Self::Again(location) => Some(location),
        }
    }

    const fn to_byte(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Archived(_) => 1,
            Self::Again(_) => 2,
        }
    }
}

/// A record that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it came.
    pub(crate) received: Timestamp,
    /// What recognises the same record when it is sent again; 0 without data.
    pub(crate) key: u128,
    /// The record, without its data.
    pub(crate) record: Record,
    pub(crate) standing: Standing,
}

impl Entry {
    /// Appends the entry as it stands on disk. The checksum covers its number too, so that an entry in a
    /// wrong place is not taken for a right one. False, and nothing appended, when it cannot be spelled.
    pub(crate) fn write(&self, position: u64, out: &mut Vec<u8>) -> bool {
        let record = Record {
            data: Bytes::new(),
            ..self.record.clone()
        };
        let Some(record) = record.encode() else {
            return false;
        };
        let mut payload = Vec::with_capacity(64 + record.len());
        payload.push(self.standing.to_byte());
        payload.extend(self.received.as_millis().to_be_bytes());
        payload.extend(self.key.to_be_bytes());
        payload.extend(record);
        if let Some(location) = self.standing.location() {
            payload.extend(location.offset.to_be_bytes());
            payload.extend(location.file.as_bytes());
        }
        let Ok(length) = u32::try_from(payload.len()) else {
            return false;
        };
        out.extend(length.to_be_bytes());
        out.extend(sum(&payload, position).to_be_bytes());
        out.extend(payload);
        true
    }

    /// Reads a payload whose checksum was right; none when it still makes no sense.
    pub(crate) fn read(mut payload: &[u8]) -> Option<Self> {
        if payload.len() < 25 {
            return None;
        }
        let standing = payload.get_u8();
        let received = Timestamp::from_millis(payload.get_u64());
        let key = payload.get_u128();
        let mut records = Records::new(0);
        records.feed(payload);
        let Some(Decoded::Record(record)) = records.next() else {
            return None;
        };
        let mut rest = records.buffer().split().freeze();
        let mut location = || {
            let offset = (rest.len() >= 8).then(|| rest.get_u64())?;
            let file = String::from_utf8(rest.split_off(0).to_vec()).ok()?;
            Some(Location { file, offset })
        };
        let standing = match standing {
            0 => Standing::Nothing,
            1 => Standing::Archived(location()?),
            2 => Standing::Again(location()?),
            _ => return None,
        };
        Some(Self {
            received,
            key,
            record,
            standing,
        })
    }
}

/// The checksum of an entry.
pub(crate) fn sum(payload: &[u8], position: u64) -> u64 {
    xxh3_64_with_seed(payload, position)
}
