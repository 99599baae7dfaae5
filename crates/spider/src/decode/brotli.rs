//! brotli (RFC 7932), windows of up to 16 MiB.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Coding, Corrupt, PIECE, Step};

pub(super) struct Brotli {
    /// Boxed: it is several kilobytes.
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    done: bool,
    /// What it has given out, of which it keeps a window.
    given: usize,
}

/// The largest window of a strict stream (RFC 7932, 9.1).
const MAX_WINDOW: usize = 16 << 20;

impl Brotli {
    /// Strict: the "large window" variant, which browsers do not speak, could ask for a gigabyte.
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            done: false,
            given: 0,
        }
    }
}

impl Coding for Brotli {
    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Corrupt> {
        let before = out.len();
        let mut piece = [0; PIECE];
        let (mut available_in, mut consumed) = (input.len(), 0);
        loop {
            let (mut available_out, mut written) = (piece.len(), 0);
            let mut total = 0;
            let result = BrotliDecompressStream(
                &mut available_in,
                &mut consumed,
                input,
                &mut available_out,
                &mut written,
                &mut piece,
                &mut total,
                &mut self.state,
            );
            out.extend_from_slice(piece.get(..written).unwrap_or_default());
            self.done = matches!(result, BrotliResult::ResultSuccess);
            match result {
                BrotliResult::ResultFailure => return Err(Corrupt("damaged compressed data")),
                BrotliResult::NeedsMoreOutput if out.len() < room => {}
                _ => break,
            }
        }
        self.given = self.given.saturating_add(out.len() - before);
        Ok(Step {
            consumed,
            produced: out.len() - before,
            done: self.done,
            more: false,
        })
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> bool {
        self.done
    }

    /// The library's window doubles with what goes through it, and is half full on average.
    fn held(&self) -> usize {
        self.given.saturating_mul(2).min(MAX_WINDOW)
    }
}
