//! brotli (RFC 7932), windows of up to 16 MiB.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Coding, Corrupt, PIECE, Step};

pub(super) struct Brotli {
    /// Boxed: it is several kilobytes.
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    done: bool,
}

impl Brotli {
    /// Strict: the "large window" variant, which browsers do not speak, could ask for a gigabyte.
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            done: false,
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
        Ok(Step {
            consumed,
            produced: out.len() - before,
            done: self.done,
        })
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> bool {
        self.done
    }
}
