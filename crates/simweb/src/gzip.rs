//! A gzip member put together from pieces that were compressed beforehand.
//!
//! Compressing 16 KiB anew takes more time than everything else a server does for a page, and even its
//! checksum takes a quarter of it. So each piece is compressed and summed once; what stands between
//! pieces is stored, and the checksums are joined by arithmetic.

use flate2::{Compress, Compression, Crc, FlushCompress};

/// The generator polynomial of CRC-32, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// A text that can stand anywhere in a member.
pub(crate) struct Splice {
    /// Deflate blocks that refer to nothing before them and end on a byte boundary.
    blocks: Vec<u8>,
    crc: u32,
    /// What a checksum is multiplied by when the text is appended to what it sums.
    shift: u32,
    len: u32,
}

impl Splice {
    pub(crate) fn new(text: &[u8]) -> Self {
        Self {
            blocks: deflate(text),
            crc: crc(text),
            shift: text.chunks(0xffff).fold(ONE, |shift, block| {
                multiply(shift, shift_by(block.len() as u16))
            }),
            len: text.len() as u32,
        }
    }
}

/// A member being written.
pub(crate) struct Member<'a> {
    out: &'a mut Vec<u8>,
    crc: u32,
    len: u32,
}

impl<'a> Member<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        // RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system.
        out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        Self {
            out,
            crc: 0,
            len: 0,
        }
    }

    /// Appends a text as it is, in stored blocks (RFC 1951, 3.2.4) of at most 65,535 bytes.
    pub(crate) fn store(&mut self, text: &[u8]) {
        for block in text.chunks(0xffff) {
            store(self.out, block);
            let len = block.len() as u16;
            self.crc = multiply(self.crc, shift_by(len)) ^ crc(block);
            self.len = self.len.wrapping_add(len.into());
        }
    }

    /// Appends a text that is compressed already.
    pub(crate) fn splice(&mut self, splice: &Splice) {
        self.out.extend_from_slice(&splice.blocks);
        self.crc = multiply(self.crc, splice.shift) ^ splice.crc;
        self.len = self.len.wrapping_add(splice.len);
    }

    /// Writes an empty last block, the checksum and the length.
    pub(crate) fn finish(self) {
        self.out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
        self.out.extend_from_slice(&self.crc.to_le_bytes());
        self.out.extend_from_slice(&self.len.to_le_bytes());
    }
}

/// Deflate blocks that end with an empty stored block, as a full flush leaves them.
fn deflate(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let done =
        Compress::new(Compression::best(), false).compress_vec(text, &mut out, FlushCompress::Full);
    if done.is_err() || !out.ends_with(&[0, 0, 0xff, 0xff]) {
        // Never seen; the text uncompressed means the same.
        out.clear();
        text.chunks(0xffff).for_each(|block| store(&mut out, block));
    }
    out
}

fn store(out: &mut Vec<u8>, block: &[u8]) {
    let len = block.len() as u16;
    out.push(0);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(block);
}

fn crc(text: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(text);
    crc.sum()
}

/// The polynomial 1.
const ONE: u32 = 1 << 31;

/// x to the power of eight times `bytes`: appending so many zero bytes multiplies a checksum by it.
fn shift_by(bytes: u16) -> u32 {
    let [high, low] = bytes.to_be_bytes();
    let at = |table: &[u32; 256], n: u8| table.get(usize::from(n)).copied().unwrap_or(ONE);
    multiply(at(&HIGH, high), at(&LOW, low))
}

static LOW: [u32; 256] = powers(1 << (31 - 8));

static HIGH: [u32; 256] = {
    let mut base = 1 << (31 - 8);
    let mut doublings = 0;
    while doublings < 8 {
        base = multiply(base, base);
        doublings += 1;
    }
    powers(base)
};

#[allow(
    clippy::indexing_slicing,
    reason = "computed by the compiler, which would refuse an index out of bounds"
)]
const fn powers(base: u32) -> [u32; 256] {
    let mut powers = [ONE; 256];
    let mut n = 1;
    while n < 256 {
        powers[n] = multiply(powers[n - 1], base);
        n += 1;
    }
    powers
}

/// The product of two polynomials modulo the generator, by shifting and adding.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        // Without branches, for the bits of a checksum cannot be guessed.
        product ^= b & ((a & bit != 0) as u32).wrapping_neg();
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn pieces_make_a_whole() {
        let long: Vec<u8> = (0..200_000_u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8)
            .collect();
        let parts: [&[u8]; 5] = [b"stored ", b"spliced spliced spliced", b"", &long, b"x"];
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        let mut member = Member::new(&mut out);
        for part in parts {
            member.store(part);
            member.splice(&Splice::new(part));
            expected.extend_from_slice(part);
            expected.extend_from_slice(part);
        }
        member.finish();
        let mut read = Vec::new();
        GzDecoder::new(&out[..]).read_to_end(&mut read).unwrap();
        assert!(read == expected);
    }
}
