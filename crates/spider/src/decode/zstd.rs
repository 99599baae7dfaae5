//! zstd (RFC 8878), windows of up to 8 MiB (RFC 9659), any number of frames.
//!
//! The library decodes from a reader and stops for good when the reader has too little, so input is
//! collected here until a whole header or block is there. A block is at most 128 KiB.

use std::io::Read;

use bytes::{Buf, BytesMut};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{Coding, Corrupt, PIECE, Step};

/// RFC 9659 asks of both sides to keep to 8 MiB in HTTP.
const MAX_WINDOW: u64 = 8 << 20;

/// The largest block a frame may hold (RFC 8878, 3.1.1.2.3).
const MAX_BLOCK: usize = 128 << 10;

const DAMAGED: Corrupt = Corrupt("damaged compressed data");

pub(super) struct Zstd {
    frame: FrameDecoder,
    waiting: BytesMut,
    state: State,
    /// What was decoded and not given out, at most.
    kept: usize,
}

/// Where in the stream the decoder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the header of a frame.
    Header,
    /// Inside a frame; true when a checksum follows its last block.
    Blocks(bool),
    /// Inside a frame that is to be passed over, with so many bytes left.
    Skipping(usize),
    /// After the frames, in something else.
    Done,
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MAX_WINDOW);
        Self {
            frame,
            waiting: BytesMut::new(),
            state: State::Header,
            kept: 0,
        }
    }

    /// One step on the waiting bytes: how many it used and how many it decoded; none when there are
    /// too few of them.
    fn advance(&mut self) -> Result<Option<(usize, usize)>, Corrupt> {
        match self.state {
            State::Header => self.header(),
            State::Blocks(checksum) => self.block(checksum),
            State::Skipping(left) => {
                let skipped = left.min(self.waiting.len());
                self.state = match left - skipped {
                    0 => State::Header,
                    left => State::Skipping(left),
                };
                Ok((skipped > 0 || left == 0).then_some((skipped, 0)))
            }
            State::Done => Ok((!self.waiting.is_empty()).then_some((self.waiting.len(), 0))),
        }
    }

    fn header(&mut self) -> Result<Option<(usize, usize)>, Corrupt> {
        let Some(&magic) = self.waiting.first_chunk::<4>() else {
            return Ok(None);
        };
        match u32::from_le_bytes(magic) {
            0xfd2f_b528 => self.frame_header(),
            0x184d_2a50..=0x184d_2a5f => {
                let Some(&length) = self
                    .waiting
                    .get(4..)
                    .and_then(|rest| rest.first_chunk::<4>())
                else {
                    return Ok(None);
                };
                self.state = State::Skipping(u32::from_le_bytes(length) as usize);
                Ok(Some((8, 0)))
            }
            // Before the first frame this is no zstd; after one it is garbage that follows the page.
            _ if self.frame.blocks_decoded() == 0 => Err(DAMAGED),
            _ => {
                self.state = State::Done;
                Ok(Some((0, 1)))
            }
        }
    }

    fn frame_header(&mut self) -> Result<Option<(usize, usize)>, Corrupt> {
        let Some(&descriptor) = self.waiting.get(4) else {
            return Ok(None);
        };
        let single_segment = descriptor & 0x20 != 0;
        let dictionary = match descriptor & 3 {
            0 => 0,
            flag => 1 << (flag - 1),
        };
        let content_size = match descriptor >> 6 {
            0 => usize::from(single_segment),
            flag => 1 << flag,
        };
        let length = 5 + usize::from(!single_segment) + dictionary + content_size;
        let Some(mut header) = self.waiting.get(..length) else {
            return Ok(None);
        };
        self.frame.reset(&mut header).map_err(|_| DAMAGED)?;
        self.state = State::Blocks(descriptor & 4 != 0);
        Ok(Some((length, 0)))
    }

    fn block(&mut self, checksum: bool) -> Result<Option<(usize, usize)>, Corrupt> {
        let Some(&[low, middle, high]) = self.waiting.first_chunk::<3>() else {
            return Ok(None);
        };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let last = header & 1 != 0;
        let size = (header >> 3) as usize;
        // A run-length block holds one byte, however often it is repeated.
        let run_length = header >> 1 & 3 == 1;
        let compressed = header >> 1 & 3 == 2;
        if size > MAX_BLOCK {
            return Err(DAMAGED);
        }
        let content = if run_length { 1 } else { size };
        let length = 3 + content + if last && checksum { 4 } else { 0 };
        let Some(mut block) = self.waiting.get(..length) else {
            return Ok(None);
        };
        self.frame
            .decode_blocks(&mut block, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(|_| DAMAGED)?;
        // How much a compressed block holds is known to the library alone.
        self.kept += if compressed { MAX_BLOCK } else { size };
        if last {
            self.state = State::Header;
        }
        Ok(Some((length, size)))
    }

    /// Gives out what the window does not need; everything, once the frame is complete.
    fn drain(&mut self, out: &mut Vec<u8>, room: usize) -> Result<usize, Corrupt> {
        let before = out.len();
        let mut piece = [0; PIECE];
        while out.len() < room {
            let read = self.frame.read(&mut piece).map_err(|_| DAMAGED)?;
            self.kept = self.kept.saturating_sub(read);
            if read == 0 {
                let most = match self.state {
                    State::Blocks(_) => MAX_WINDOW as usize,
                    State::Header | State::Skipping(_) | State::Done => 0,
                };
                self.kept = self.kept.min(most);
                break;
            }
            out.extend_from_slice(piece.get(..read).unwrap_or_default());
        }
        Ok(out.len() - before)
    }
}

impl Coding for Zstd {
    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Corrupt> {
        self.waiting.extend_from_slice(input);
        let mut step = Step {
            consumed: input.len(),
            ..Step::default()
        };
        let mut block = false;
        loop {
            step.produced += self.drain(out, room)?;
            if out.len() >= room {
                break;
            }
            // One block at a time: four bytes can be 128 KiB, and the caller watches over the memory.
            if block {
                step.more = true;
                break;
            }
            let Some((used, decoded)) = self.advance()? else {
                break;
            };
            self.waiting.advance(used);
            step.produced += decoded;
            block = decoded > 0;
        }
        step.done = self.state == State::Done;
        Ok(step)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let complete =
            self.state == State::Done || (self.state == State::Header && self.waiting.is_empty());
        if let State::Blocks(_) = self.state {
            // The library keeps back a window's worth until the frame ends. An empty last block, with
            // room for a checksum that nobody compares, ends it and sets free what has come.
            let mut end: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
            let _ended = self
                .frame
                .decode_blocks(&mut end, BlockDecodingStrategy::UptoBlocks(1));
        }
        self.drain(out, usize::MAX).is_ok() && complete
    }

    fn held(&self) -> usize {
        self.kept + self.waiting.len()
    }
}
