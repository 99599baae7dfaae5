//! Content encodings undone, piece by piece, under limits.
//!
//! A few bytes can stand for gigabytes, and encodings can be stacked, so nothing here runs to its
//! end on its own: the caller says how long the output may become and gets control back there. The
//! wire formats are the libraries' business; what a broken page counts as is the caller's.

mod brotli;
mod flate;
mod zstd;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Why a body cannot be decoded, or not further: one short phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt(pub(crate) &'static str);

/// What one call of a coding did.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Bytes of the input that are done with.
    consumed: usize,
    /// Bytes that were decoded, given out or still held back.
    produced: usize,
    /// The stream is complete; what follows is passed over.
    done: bool,
    /// There may be more without further input.
    more: bool,
}

/// One content coding. Four of them implement it.
trait Coding: Send {
    /// Decodes into `out` until it has about `room` bytes or `input` is used up. Called with an empty
    /// input it gives out what a full `out` held back.
    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Corrupt>;

    /// There is no more input: gives out what was held back, and says whether the stream was complete.
    fn finish(&mut self, out: &mut Vec<u8>) -> bool;

    /// Bytes of data that it keeps to itself now, about; what every decoder needs is not counted.
    fn held(&self) -> usize;
}

/// Input that a coding may swallow without giving anything back. A gzip header can hold a file name
/// without end, and brotli and zstd have blocks that hold nothing; an honest stream of any of them
/// gives data after at most one block of 128 KiB.
const MAX_BARREN: usize = 256 << 10;

/// What one coding hands to the next at a time.
const PIECE: usize = 16 << 10;

/// The codings of a body, outermost first.
pub(crate) struct Decoder {
    layers: Vec<Layer>,
}

struct Layer {
    coding: Box<dyn Coding>,
    input: Bytes,
    /// Input swallowed since the last byte of output.
    barren: usize,
    done: bool,
    /// Output was full at the last call: there may be more without further input.
    held_back: bool,
}

/// Why decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// All input is used up.
    Hungry,
    /// The output is as long as it may become.
    Full,
    /// Output and decoders fill the memory they have.
    Starved,
}

impl Decoder {
    /// The decoder for a message with these headers; none when its body is not encoded.
    pub(crate) fn new(headers: &HeaderMap, max_encodings: usize) -> Result<Option<Self>, Corrupt> {
        if !headers.contains_key(CONTENT_ENCODING) {
            return Ok(None);
        }
        let mut layers = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            for name in value.as_bytes().split(|byte| *byte == b',') {
                let Some(coding) = coding(name.trim_ascii())? else {
                    continue;
                };
                if layers.len() == max_encodings {
                    return Err(Corrupt("too many content encodings"));
                }
                layers.push(Layer {
                    coding,
                    input: Bytes::new(),
                    barren: 0,
                    done: false,
                    held_back: false,
                });
            }
        }
        // They are listed in the order in which they were applied (RFC 9110, 8.4).
        layers.reverse();
        Ok((!layers.is_empty()).then_some(Self { layers }))
    }

    /// Gives the next bytes of the body. Call `pull` until it is hungry before giving more.
    pub(crate) fn feed(&mut self, input: Bytes) {
        if let Some(outermost) = self.layers.first_mut() {
            outermost.input = input;
        }
    }

    /// Decodes until `out` has about `room` bytes, `out` and what is held take about `memory` bytes, or
    /// nothing more can be had.
    pub(crate) fn pull(
        &mut self,
        out: &mut Vec<u8>,
        room: usize,
        memory: usize,
    ) -> Result<Flow, Corrupt> {
        pull(&mut self.layers, out, room, memory)
    }

    /// Bytes that were given and not used yet.
    pub(crate) fn unused(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.input.len())
    }

    /// Bytes of data that the codings keep to themselves: windows, mostly.
    pub(crate) fn held(&self) -> usize {
        held(&self.layers)
    }

    /// The body has ended. Gives out what was held back, up to about `room` bytes, and says whether
    /// every stream in it was complete.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, room: usize) -> bool {
        let mut complete = true;
        let mut layers = self.layers.as_mut_slice();
        while let Some((layer, inner)) = layers.split_first_mut() {
            if let Some(next) = inner.first_mut() {
                let mut held = Vec::new();
                complete &= layer.coding.finish(&mut held);
                next.input = held.into();
                complete &= pull(inner, out, room, usize::MAX).is_ok();
            } else {
                complete &= layer.coding.finish(out);
            }
            layers = inner;
        }
        complete
    }
}

/// The coding of a name. Encodings that change nothing are none.
fn coding(name: &[u8]) -> Result<Option<Box<dyn Coding>>, Corrupt> {
    Ok(Some(match name.to_ascii_lowercase().as_slice() {
        b"gzip" | b"x-gzip" => Box::new(flate::Gzip::new()),
        b"deflate" => Box::new(flate::Deflate::new()),
        b"br" => Box::new(brotli::Brotli::new()),
        b"zstd" => Box::new(zstd::Zstd::new()),
        b"" | b"identity" | b"none" => return Ok(None),
        _ => return Err(Corrupt("unknown content encoding")),
    }))
}

fn held(layers: &[Layer]) -> usize {
    layers.iter().map(|layer| layer.coding.held()).sum()
}

fn pull(
    layers: &mut [Layer],
    out: &mut Vec<u8>,
    room: usize,
    memory: usize,
) -> Result<Flow, Corrupt> {
    let Some((layer, outer)) = layers.split_last_mut() else {
        return Ok(Flow::Hungry);
    };
    loop {
        if out.len() >= room {
            return Ok(Flow::Full);
        }
        let own = memory.saturating_sub(layer.coding.held());
        let limit = own.saturating_sub(held(outer));
        if out.len() >= limit {
            return Ok(Flow::Starved);
        }
        if layer.input.is_empty() && !layer.held_back {
            let mut piece = Vec::new();
            let flow = pull(outer, &mut piece, PIECE, own.saturating_sub(out.len()))?;
            if piece.is_empty() {
                return Ok(match flow {
                    Flow::Starved => Flow::Starved,
                    Flow::Hungry | Flow::Full => Flow::Hungry,
                });
            }
            layer.input = piece.into();
        }
        layer.step(out, room.min(limit))?;
    }
}

impl Layer {
    fn step(&mut self, out: &mut Vec<u8>, room: usize) -> Result<(), Corrupt> {
        if self.done {
            self.input.clear();
            self.held_back = false;
            return Ok(());
        }
        let step = self.coding.decode(&self.input, out, room)?;
        self.input.advance(step.consumed.min(self.input.len()));
        self.done = step.done;
        self.held_back = step.more || out.len() >= room;
        self.barren = match step.produced {
            0 => self.barren + step.consumed,
            _ => 0,
        };
        // A coding that neither takes nor gives would be asked forever.
        let stuck = step.consumed == 0 && step.produced == 0 && !self.input.is_empty();
        if self.barren > MAX_BARREN || (stuck && !self.done) {
            return Err(Corrupt("content encoding without content"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
