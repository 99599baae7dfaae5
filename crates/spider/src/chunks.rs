//! Where a chunked message ends that is not kept in one piece.
//!
//! `framing` walks over a record in memory; a body on disk is walked over while it goes there. Both read chunks as
//! hyper does, which has judged the message already.

/// Walks over a chunked body that comes in pieces, to find where its message ends.
#[derive(Debug)]
pub(crate) struct ChunkWalk {
    state: Walk,
    /// Bytes walked over.
    at: u64,
    end: Option<u64>,
}

/// What is expected next.
#[derive(Debug)]
enum Walk {
    /// The first line of a chunk: its size so far, whether that is still being read, and whether it has a digit.
    Size { size: u64, open: bool, any: bool },
    /// So many bytes of data.
    Data(u64),
    /// The line end after the data.
    AfterData,
    /// A line of the trailer, with the number of bytes in it other than CR.
    Trailer(usize),
    /// Nothing more: the end, or what is not chunks.
    Over,
}

impl ChunkWalk {
    pub(crate) fn new() -> Self {
        Self {
            state: Walk::start(),
            at: 0,
            end: None,
        }
    }

    /// Where the message ends; none while its end has not come, or when it does not look like chunks.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some((byte, after)) = rest.split_first() {
            if let Walk::Data(left) = self.state {
                let skip = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                rest = rest.get(skip..).unwrap_or_default();
                self.at += skip as u64;
                self.state = match left - skip as u64 {
                    0 => Walk::AfterData,
                    left => Walk::Data(left),
                };
                continue;
            }
            rest = after;
            self.at += 1;
            self.step(*byte);
            if matches!(self.state, Walk::Over) {
                return;
            }
        }
    }

    fn step(&mut self, byte: u8) {
        let state = std::mem::replace(&mut self.state, Walk::Over);
        self.state = match (state, byte) {
            (Walk::Size { any: false, .. }, b'\n') => Walk::Over,
            (Walk::Size { size: 0, .. }, b'\n') => Walk::Trailer(0),
            (Walk::Size { size, .. }, b'\n') => Walk::Data(size),
            (
                Walk::Size {
                    size,
                    open: true,
                    any,
                },
                byte,
            ) => match (byte as char).to_digit(16) {
                Some(digit) if size >> 60 == 0 => Walk::Size {
                    size: size << 4 | u64::from(digit),
                    open: true,
                    any: true,
                },
                Some(_) => Walk::Over,
                // Blanks may come before the number; anything else ends it.
                None => Walk::Size {
                    size,
                    open: !any && byte.is_ascii_whitespace(),
                    any,
                },
            },
            (state @ Walk::Size { open: false, .. }, _) => state,
            (Walk::AfterData, b'\r') => Walk::AfterData,
            (Walk::AfterData, b'\n') => Walk::start(),
            (Walk::Trailer(0), b'\n') => {
                self.end = Some(self.at);
                Walk::Over
            }
            (Walk::Trailer(_), b'\n') => Walk::Trailer(0),
            (Walk::Trailer(count), b'\r') => Walk::Trailer(count),
            (Walk::Trailer(count), _) => Walk::Trailer(count + 1),
            (Walk::AfterData | Walk::Data(_) | Walk::Over, _) => Walk::Over,
        };
    }
}

impl Walk {
    fn start() -> Self {
        Self::Size {
            size: 0,
            open: true,
            any: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Chunks;

    #[test]
    fn both_walks_find_the_same_end_however_the_pieces_fall() {
        for (record, ends) in [
            (&b"5\r\nhello\r\n0\r\n\r\nNEXT"[..], true),
            (b"5;x=y\r\nhello\r\n3\r\n...\r\n0\r\nT: 1\r\n\r\n", true),
            (b"0005\nhello\n0\n\nNEXT", true),
            (b" 5 \r\nhello\r\n0\r\n\r\n", true),
            (b"0\r\n\r\n", true),
            (b"1000\r\nhello", false),
            (b"5\r\nhello\r\n1", false),
            (b"5\r\nhello\r\n0\r\n", false),
            (b"ZZ\r\nhello", false),
            (b"fffffffffffffffff\r\nhello", false),
        ] {
            let whole = Chunks::walk(record, 0).end as u64;
            for piece in 1..=record.len() {
                let mut walk = ChunkWalk::new();
                record.chunks(piece).for_each(|part| walk.feed(part));
                let wanted = ends.then_some(whole);
                assert_eq!(walk.end(), wanted, "{:?}", record.escape_ascii());
            }
        }
    }
}
