//! The body of an answer as it comes in: decoded piece by piece, inside the memory of its fetch.
//!
//! Both HTTP versions hand their pieces here. What is kept of the wire is theirs; what a body that
//! could not be decoded counts as is decided in `outcome_of`. What is decoded is there to be read for links,
//! so it ends at a limit of its own, while the body goes on to the archive as it came.

use bytes::Bytes;
use http::HeaderMap;
use orbweaver_model::Truncation;

use crate::budget::{FREE_BYTES, Share};
use crate::deadline::Deadline;
use crate::decode::{Corrupt, Decoder, Flow};

/// Decoded output after which other tasks get a turn: about a millisecond of work.
const YIELD_BYTES: usize = 1 << 20;

/// A body that passes the limit on decoded bytes and grew more than this is a bomb, and is cut there. Logs and
/// tables reach some twenty or forty; zeroes a hundred with the fastest gzip, a thousand with the best, and more with
/// other codings.
const BOMB_RATIO: usize = 64;

/// The decoding of one body and the memory of its fetch.
pub(crate) struct Gather {
    share: Share,
    decoder: Option<Decoder>,
    decoded: Vec<u8>,
    max_decoded: usize,
    corrupt: Option<Corrupt>,
    /// Nobody reads the body: it is decoded to see whether it can be, and dropped.
    discard: bool,
    /// Decoded bytes that were dropped.
    dropped: usize,
    /// Bytes that the decoder was given.
    fed: usize,
    /// The body may go to disk.
    may_spill: bool,
    /// There was no memory for what is decoded.
    short: bool,
    /// There is more than `decoded` may hold.
    over: bool,
}

/// What became of a body's decoding.
pub(crate) struct Gathered {
    /// The decoded body or its beginning; none when what is kept of the wire has it.
    pub(crate) decoded: Option<Bytes>,
    /// Why decoding stopped before the end.
    pub(crate) corrupt: Option<Corrupt>,
    /// There is more of the body than `decoded` has: it is whole on the wire, and was read in part.
    pub(crate) over: bool,
}

impl Gather {
    /// Nothing gathered yet. With `discard` nothing of what is decoded is kept; with `may_spill` the body can go to
    /// disk when there is no memory for it.
    pub(crate) fn new(share: Share, discard: bool, may_spill: bool) -> Self {
        Self {
            share,
            decoder: None,
            decoded: Vec::new(),
            max_decoded: 0,
            corrupt: None,
            discard,
            dropped: 0,
            fed: 0,
            may_spill,
            short: false,
            over: false,
        }
    }

    /// Prepares for the body that follows these headers.
    pub(crate) fn begin(&mut self, headers: &HeaderMap, max_encodings: usize, max_decoded: usize) {
        self.max_decoded = max_decoded;
        match Decoder::new(headers, max_encodings) {
            Ok(decoder) => self.decoder = decoder,
            Err(corrupt) => self.corrupt = Some(corrupt),
        }
    }

    /// What is kept of the wire goes to disk, and is read from there: from now on nothing decoded is kept, and
    /// decoding only tells whether it can be done.
    pub(crate) fn spill(&mut self) {
        self.discard = true;
        self.drop_decoded();
        self.decoded.shrink_to_fit();
    }

    /// True when there was no memory for what is decoded: the body should go to disk, however small it is.
    pub(crate) fn wants_spill(&self) -> bool {
        self.short
    }

    /// Takes more memory if there is some at once.
    pub(crate) fn try_grow(&mut self) -> bool {
        self.share.try_grow()
    }

    /// What the record of the wire may take of the memory granted so far. It grows by doubling, so that
    /// beyond the first bytes half of it may be empty.
    pub(crate) fn allowance(&self) -> usize {
        let held = self.decoder.as_ref().map_or(0, Decoder::held);
        let left = self
            .share
            .granted()
            .saturating_sub(self.decoded.capacity() + held);
        left.min(FREE_BYTES).max(left / 2)
    }

    /// Waits for more memory. The server's clock stands still meanwhile: the delay is ours.
    pub(crate) async fn grow(&mut self, deadline: &mut Deadline) {
        deadline.pause(self.share.grow()).await;
    }

    /// Takes a piece of the body, `recorded` being what the wire's record takes now. The error says why
    /// no more is wanted.
    pub(crate) async fn take(
        &mut self,
        piece: Bytes,
        recorded: usize,
        deadline: &mut Deadline,
    ) -> Result<(), Truncation> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        self.fed += piece.len();
        decoder.feed(piece);
        self.drain(recorded, deadline).await
    }

    async fn drain(&mut self, recorded: usize, deadline: &mut Deadline) -> Result<(), Truncation> {
        let mut pause = self.decoded.len() + YIELD_BYTES;
        while let Some(decoder) = &mut self.decoder {
            // One byte more than allowed shows that there is more.
            let room = self.max_decoded.saturating_add(1);
            let room = room.saturating_sub(self.dropped);
            let memory = self.share.granted().saturating_sub(recorded);
            match decoder.pull(&mut self.decoded, room, memory) {
                Ok(Flow::Hungry) => {
                    self.drop_decoded();
                    return Ok(());
                }
                Ok(Flow::Full) => {
                    let whole = self.dropped + self.decoded.len();
                    let used = self.fed - decoder.unused().min(self.fed);
                    if whole / BOMB_RATIO > used {
                        return Err(Truncation::Length);
                    }
                    self.over = true;
                    self.decoder = None;
                }
                // Only while that makes room: one byte always stays.
                Ok(Flow::Starved) if self.discard && self.decoded.len() > 1 => {
                    self.drop_decoded();
                }
                Ok(Flow::Starved) if self.share.try_grow() => {}
                Ok(Flow::Starved) if self.may_spill && !self.discard => {
                    self.short = true;
                    self.spill();
                }
                Ok(Flow::Starved) => self.grow(deadline).await,
                Err(corrupt) => {
                    self.corrupt = Some(corrupt);
                    self.decoder = None;
                }
            }
            if self.decoded.len() >= pause {
                pause = self.decoded.len() + YIELD_BYTES;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Where nobody reads the body, one byte of it shows that there was something.
    fn drop_decoded(&mut self) {
        if self.discard && self.decoded.len() > 1 {
            self.dropped += self.decoded.len() - 1;
            self.decoded.truncate(1);
        }
    }

    /// The body is over: `raw_len` is what the decoder was given in all. The fetch's memory goes with the
    /// returned response, of which `recorded` bytes are allocated.
    pub(crate) fn finish(
        mut self,
        response: Bytes,
        recorded: usize,
        raw_len: usize,
    ) -> (Bytes, Gathered) {
        let mut encoded = self.over || (self.corrupt.is_some() && !self.decoded.is_empty());
        if let Some(mut decoder) = self.decoder.take() {
            let room = self.max_decoded.saturating_add(1);
            let complete = decoder.finish(&mut self.decoded, room.saturating_sub(self.dropped));
            // Nothing at all is an empty document in any encoding.
            let whole = self.dropped + self.decoded.len();
            if !complete && raw_len > 0 && whole <= self.max_decoded {
                self.corrupt = Some(Corrupt("compressed data ends early"));
            }
            encoded = true;
        }
        self.over |= self.dropped + self.decoded.len() > self.max_decoded;
        self.decoded.truncate(self.max_decoded);
        let size = recorded + self.decoded.len();
        let decoded = encoded.then(|| shrunk(self.decoded));
        let response = self.share.keep(response, size);
        let gathered = Gathered {
            decoded,
            corrupt: self.corrupt,
            over: self.over,
        };
        (response, gathered)
    }
}

/// The bytes without a tail of unused capacity that is worth a copy to give back.
fn shrunk(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() > bytes.len() + bytes.len() / 4 + 4096 {
        bytes.shrink_to_fit();
    }
    bytes.into()
}
