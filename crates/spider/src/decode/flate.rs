//! gzip and deflate.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Coding, Corrupt, Step};

/// The least room made for one call.
const MIN_ROOM: usize = 4 << 10;

/// gzip (RFC 1952): any number of members one after another; whatever follows them is passed over,
/// as browsers do.
pub(super) struct Gzip {
    member: Decompress,
    /// Between two members, with the first byte of what may be the next one's mark.
    between: Option<Option<u8>>,
    done: bool,
}

const MARK: [u8; 2] = [0x1f, 0x8b];

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            member: new_member(),
            between: None,
            done: false,
        }
    }

    /// Looks for the mark of a further member.
    fn look_for_mark(&mut self, seen: Option<u8>, input: &[u8]) -> Result<Step, Corrupt> {
        let mut step = Step::default();
        let Some(&byte) = input.first() else {
            return Ok(step);
        };
        step.consumed = 1;
        match (seen, byte) {
            (None, 0x1f) => self.between = Some(Some(byte)),
            (Some(_), 0x8b) => {
                self.between = None;
                self.member = new_member();
                let mut nothing = Vec::new();
                inflate(&mut self.member, &MARK, &mut nothing, 0)?;
            }
            _ => {
                self.done = true;
                step.done = true;
            }
        }
        Ok(step)
    }
}

fn new_member() -> Decompress {
    Decompress::new_gzip(15)
}

impl Coding for Gzip {
    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Corrupt> {
        if let Some(seen) = self.between {
            return self.look_for_mark(seen, input);
        }
        let (step, ended) = inflate(&mut self.member, input, out, room)?;
        if ended {
            self.between = Some(None);
        }
        Ok(step)
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> bool {
        self.done || self.between.is_some()
    }

    fn held(&self) -> usize {
        0
    }
}

/// "deflate": a zlib stream (RFC 9110, 8.4.1.2), or the bare deflate data that some servers send.
pub(super) struct Deflate {
    stream: Option<Decompress>,
    /// The first byte, while the second has not come.
    first: Option<u8>,
    done: bool,
}

impl Deflate {
    pub(super) fn new() -> Self {
        Self {
            stream: None,
            first: None,
            done: false,
        }
    }

    /// Tells by the first two bytes which of the two it is (RFC 1950, 2.2), and consumes one of them.
    fn begin(&mut self, input: &[u8]) -> Result<Step, Corrupt> {
        let Some(&byte) = input.first() else {
            return Ok(Step::default());
        };
        let Some(first) = self.first else {
            self.first = Some(byte);
            return Ok(Step {
                consumed: 1,
                ..Step::default()
            });
        };
        let zlib = first & 0x0f == 8 && u16::from_be_bytes([first, byte]) % 31 == 0;
        let mut stream = Decompress::new(zlib);
        inflate(&mut stream, &[first], &mut Vec::new(), 0)?;
        self.stream = Some(stream);
        // The second byte is left for the stream; counted as given so that this is no standstill.
        Ok(Step {
            produced: 1,
            ..Step::default()
        })
    }
}

impl Coding for Deflate {
    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Corrupt> {
        let Some(stream) = &mut self.stream else {
            return self.begin(input);
        };
        let (mut step, ended) = inflate(stream, input, out, room)?;
        self.done = ended;
        step.done = ended;
        Ok(step)
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> bool {
        self.done
    }

    fn held(&self) -> usize {
        0
    }
}

/// Inflates into `out`; true when the stream has ended.
fn inflate(
    stream: &mut Decompress,
    input: &[u8],
    out: &mut Vec<u8>,
    room: usize,
) -> Result<(Step, bool), Corrupt> {
    let missing = room.saturating_sub(out.len());
    // Doubles, like any vector, but never beyond the room there is, for all of it may be filled.
    if out.capacity() == out.len() {
        out.reserve_exact(missing.min(out.len().max(MIN_ROOM)));
    }
    let (before_in, before_out) = (stream.total_in(), stream.total_out());
    let status = stream
        .decompress_vec(input, out, FlushDecompress::None)
        .map_err(|_| Corrupt("damaged compressed data"))?;
    let step = Step {
        consumed: (stream.total_in() - before_in) as usize,
        produced: (stream.total_out() - before_out) as usize,
        ..Step::default()
    };
    Ok((step, status == Status::StreamEnd))
}
