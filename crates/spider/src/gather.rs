//! The body of an answer as it comes in: decoded piece by piece, inside the memory of its fetch.
//!
//! Both HTTP versions hand their pieces here. What is kept of the wire is theirs; what a body that
//! could not be decoded counts as is decided in `outcome_of`.

use bytes::Bytes;
use http::HeaderMap;
use orbweaver_model::Truncation;

use crate::budget::Share;
use crate::deadline::Deadline;
use crate::decode::{Corrupt, Decoder, Flow};

/// Decoded output after which other tasks get a turn: about a millisecond of work.
const YIELD_BYTES: usize = 1 << 20;

/// The decoding of one body and the memory of its fetch.
pub(crate) struct Gather<'a> {
    share: Share<'a>,
    decoder: Option<Decoder>,
    decoded: Vec<u8>,
    max_decoded: usize,
    corrupt: Option<Corrupt>,
}

/// What became of a body's decoding.
pub(crate) struct Gathered {
    /// The decoded body; none when it was not encoded, or in no way that is known.
    pub(crate) decoded: Option<Bytes>,
    /// Why decoding stopped before the end.
    pub(crate) corrupt: Option<Corrupt>,
    /// The decoded body was cut at its limit.
    pub(crate) over: bool,
}

impl<'a> Gather<'a> {
    /// Nothing gathered yet.
    pub(crate) fn new(share: Share<'a>) -> Self {
        Self {
            share,
            decoder: None,
            decoded: Vec::new(),
            max_decoded: 0,
            corrupt: None,
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

    /// What the record of the wire may take of the memory granted so far.
    pub(crate) fn allowance(&self) -> usize {
        let held = self.decoder.as_ref().map_or(0, Decoder::held);
        self.share
            .granted()
            .saturating_sub(self.decoded.len() + held)
    }

    /// Waits for more memory; false when the fetch's time is up first. The server's clock stands still
    /// meanwhile: the delay is ours, so the caller begins the step anew.
    pub(crate) async fn grow(&mut self, deadline: &mut Deadline) -> bool {
        deadline.last_step();
        deadline.bound(self.share.grow()).await.is_some()
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
        decoder.feed(piece);
        self.drain(recorded, deadline).await
    }

    async fn drain(&mut self, recorded: usize, deadline: &mut Deadline) -> Result<(), Truncation> {
        let mut pause = self.decoded.len() + YIELD_BYTES;
        while let Some(decoder) = &mut self.decoder {
            // One byte more than allowed shows that there is more.
            let room = self.max_decoded.saturating_add(1);
            let memory = self.share.granted().saturating_sub(recorded);
            match decoder.pull(&mut self.decoded, room, memory) {
                Ok(Flow::Hungry) => return Ok(()),
                Ok(Flow::Full) => return Err(Truncation::Length),
                Ok(Flow::Starved) => {
                    if !self.grow(deadline).await {
                        return Err(Truncation::Time);
                    }
                }
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

    /// The body is over: `raw` is what the decoder was given in all. The fetch's memory goes with the
    /// returned response.
    pub(crate) fn finish(mut self, response: Bytes, raw_len: usize) -> (Bytes, Gathered) {
        let mut encoded = self.corrupt.is_some() && !self.decoded.is_empty();
        if let Some(mut decoder) = self.decoder.take() {
            let complete = decoder.finish(&mut self.decoded, self.max_decoded.saturating_add(1));
            // Nothing at all is an empty document in any encoding.
            if !complete && raw_len > 0 && self.decoded.len() <= self.max_decoded {
                self.corrupt = Some(Corrupt("compressed data ends early"));
            }
            encoded = true;
        }
        let over = self.decoded.len() > self.max_decoded;
        self.decoded.truncate(self.max_decoded);
        let decoded = encoded.then(|| shrunk(self.decoded));
        let response = self.share.keep(response);
        let gathered = Gathered {
            decoded,
            corrupt: self.corrupt,
            over,
        };
        (response, gathered)
    }
}

/// The bytes without a tail of unused capacity that is worth a copy to give back.
fn shrunk(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() > 2 * bytes.len() + 4096 {
        bytes.shrink_to_fit();
    }
    bytes.into()
}
