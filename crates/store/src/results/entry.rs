//! One entry of the results, in memory and as the payload of the journal.

use orbweaver_model::{CapturePlace, Purpose, Timestamp};

/// What the journal's segments say their payloads are; the digit is the version of the form below.
pub(crate) const KIND: [u8; 8] = *b"results1";

/// The longest payload: two URLs of 64 KiB, with room to spare.
pub(crate) const MAX_PAYLOAD: usize = 256 << 10;

/// Bytes before the URL: what is kept and for whom, when, the place, the length of the URL.
const FIXED: usize = 1 + 8 + 4 + 8 + 4;

/// The bit of the first byte that says that it was for a robots.txt.
const ROBOTS: u8 = 4;

/// What the archive has of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There was nothing to keep.
    Nothing,
    /// The exchange was archived for this entry.
    Stored(CapturePlace),
    /// The same was in the archive before.
    Before(CapturePlace),
}

impl Standing {
    /// Where the exchange lies.
    pub fn place(self) -> Option<CapturePlace> {
        match self {
            Self::Nothing => None,
            Self::Stored(place) | Self::Before(place) => Some(place),
        }
    }
}

/// One result: what became known of a URL at one time, and where the exchange lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the attempt ended.
    pub at: Timestamp,
    /// Page or robots.txt.
    pub purpose: Purpose,
    /// What the archive has of it.
    pub standing: Standing,
    /// What was asked for.
    pub url: String,
    /// What the one who submitted it wants to have back; empty in an entry that was made again from the archive.
    pub note: Vec<u8>,
}

impl Entry {
    /// Where the exchange lies; none when there was nothing to keep.
    pub fn place(&self) -> Option<CapturePlace> {
        self.standing.place()
    }

    /// Reads a payload; none when it makes no sense.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (fixed, rest) = payload.split_at_checked(FIXED)?;
        let (what, fixed) = fixed.split_first()?;
        let number = |range: std::ops::Range<usize>| {
            let bytes = fixed.get(range)?.iter();
            Some(bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
        };
        let place = CapturePlace {
            file: u32::try_from(number(8..12)?).ok()?,
            offset: number(12..20)?,
        };
        let standing = match what & !ROBOTS {
            0 => Standing::Nothing,
            1 => Standing::Stored(place),
            2 => Standing::Before(place),
            _ => return None,
        };
        let length = usize::try_from(number(20..24)?).ok()?;
        let (url, note) = rest.split_at_checked(length)?;
        Some(Self {
            at: Timestamp::from_millis(number(0..8)?),
            purpose: match what & ROBOTS {
                0 => Purpose::Page,
                _ => Purpose::Robots,
            },
            standing,
            url: std::str::from_utf8(url).ok()?.to_owned(),
            note: note.to_vec(),
        })
    }

    /// The payload that reads as this.
    #[cfg(test)]
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut draft = Draft::new(self.at, self.purpose, &self.url, &self.note);
        draft.stands(self.standing);
        draft.payload
    }
}

/// A payload whose place is still to be filled in: all else is done by the one who submits it.
#[derive(Debug)]
pub(crate) struct Draft {
    payload: Vec<u8>,
}

impl Draft {
    pub(crate) fn new(at: Timestamp, purpose: Purpose, url: &str, note: &[u8]) -> Self {
        let mut payload = Vec::with_capacity(FIXED + url.len() + note.len());
        payload.push(match purpose {
            Purpose::Page => 0,
            Purpose::Robots => ROBOTS,
        });
        payload.extend(at.as_millis().to_be_bytes());
        payload.extend([0; 12]);
        // A longer one is refused before it comes to the journal.
        let length = u32::try_from(url.len()).unwrap_or(u32::MAX);
        payload.extend(length.to_be_bytes());
        payload.extend_from_slice(url.as_bytes());
        payload.extend_from_slice(note);
        Self { payload }
    }

    /// Fills in what the archive has.
    pub(crate) fn stands(&mut self, standing: Standing) {
        let (word, place) = match standing {
            Standing::Nothing => (0, None),
            Standing::Stored(place) => (1, Some(place)),
            Standing::Before(place) => (2, Some(place)),
        };
        if let Some(what) = self.payload.first_mut() {
            *what = *what & ROBOTS | word;
        }
        let Some(place) = place else {
            return;
        };
        if let Some(room) = self.payload.get_mut(9..13) {
            room.copy_from_slice(&place.file.to_be_bytes());
        }
        if let Some(room) = self.payload.get_mut(13..21) {
            room.copy_from_slice(&place.offset.to_be_bytes());
        }
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// False when the journal would not take it.
    pub(crate) fn fits(&self) -> bool {
        self.payload.len() <= MAX_PAYLOAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let place = (any::<u32>(), any::<u64>())
            .prop_map(|(file, offset)| CapturePlace { file, offset })
            .boxed();
        let standing = prop_oneof![
            Just(Standing::Nothing),
            place.clone().prop_map(Standing::Stored),
            place.prop_map(Standing::Before),
        ];
        let note = prop::collection::vec(any::<u8>(), 0..20);
        (any::<u64>(), any::<bool>(), standing, ".{0,20}", note).prop_map(
            |(at, robots, standing, url, note)| Entry {
                at: Timestamp::from_millis(at),
                purpose: match robots {
                    true => Purpose::Robots,
                    false => Purpose::Page,
                },
                standing,
                url,
                note,
            },
        )
    }

    proptest! {
        #[test]
        fn an_entry_reads_as_it_was_written(entry in entry()) {
            prop_assert_eq!(Entry::read(&entry.write()), Some(entry));
        }

        #[test]
        fn any_bytes_read_as_an_entry_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(entry) = Entry::read(&bytes) {
                prop_assert_eq!(Entry::read(&entry.write()), Some(entry));
            }
        }
    }
}
