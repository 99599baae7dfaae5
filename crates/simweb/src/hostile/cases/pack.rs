//! Encoders, as simple as the formats allow: the library's gzip, and hand-made streams of the others.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

/// A gzip member.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into a vector cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// A zlib stream.
pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Bare deflate data.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// The header of a zstd frame with a window of 8 MiB, the largest for HTTP (RFC 9659): exponent 13.
pub(crate) fn zstd_begin() -> Vec<u8> {
    zstd_begin_window(13 << 3)
}

/// The header of a zstd frame with this window descriptor (RFC 8878, 3.1.1.1.2).
pub(crate) fn zstd_begin_window(window: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, window]
}

/// A zstd block of the largest size that holds one byte again and again.
pub(crate) fn zstd_run(byte: u8) -> Vec<u8> {
    let header: u32 = (128 << 10) << 3 | 1 << 1;
    let [low, middle, high, _] = header.to_le_bytes();
    vec![low, middle, high, byte]
}

/// A zstd frame of one raw block.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let header = (bytes.len() as u32) << 3 | 1;
    let mut frame = zstd_begin();
    frame.extend_from_slice(header.to_le_bytes().get(..3).unwrap_or_default());
    frame.extend_from_slice(bytes);
    frame
}

/// A brotli stream of one uncompressed block of up to 64 KiB (RFC 7932, 9.2).
pub(crate) fn brotli(bytes: &[u8]) -> Vec<u8> {
    // WBITS 16 is a single 0 bit; then ISLAST 0, MNIBBLES 4 (two bits 0), MLEN - 1 in 16 bits, and
    // ISUNCOMPRESSED 1, filled up to a byte.
    let length = (bytes.len().clamp(1, 1 << 16) - 1) as u32;
    let header = length << 4 | 1 << 20;
    let mut stream = header.to_le_bytes().get(..3).unwrap_or_default().to_vec();
    stream.extend_from_slice(bytes);
    // ISLAST and ISLASTEMPTY.
    stream.push(3);
    stream
}

/// The begin of a brotli stream with the largest window, 16 MiB (WBITS 24 is four bits 1), and a block
/// of one byte.
pub(crate) fn brotli_begin() -> Vec<u8> {
    let header: u32 = 0xf | 1 << 23;
    let mut stream = header.to_le_bytes().get(..3).unwrap_or_default().to_vec();
    stream.push(b' ');
    stream
}

/// An uncompressed brotli block of 64 KiB, to stand after another.
pub(crate) fn brotli_block(byte: u8) -> Vec<u8> {
    let header: u32 = 0xffff << 3 | 1 << 19;
    let mut block = header.to_le_bytes().get(..3).unwrap_or_default().to_vec();
    block.resize(3 + (1 << 16), byte);
    block
}
