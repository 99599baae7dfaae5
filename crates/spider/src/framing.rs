//! Where a response begins and ends in the record of an exchange.
//!
//! hyper has already judged the message when these functions look at it; they only find the places
//! again. They never fail: on bytes that do not fit they stop at the last place that does.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::TRANSFER_ENCODING;
use memchr::memchr;

use crate::status::{Action, action};

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// By the last chunk.
    Chunked,
    /// By the end of the connection.
    Close,
}

impl Framing {
    /// The framing of a body whose length hyper knows or does not know.
    pub(crate) fn of(length: Option<u64>, headers: &HeaderMap) -> Self {
        if let Some(length) = length {
            return Self::Length(length);
        }
        // hyper's rule (RFC 9112, 6.3): chunked must be the last coding of the last field line.
        let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
        let coding = last
            .and_then(|value| value.as_bytes().rsplit(|byte| *byte == b',').next())
            .map(<[u8]>::trim_ascii);
        match coding {
            Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => Self::Chunked,
            _ => Self::Close,
        }
    }
}

/// The place of the final head: interim (1xx) heads and blank lines before it are passed over. None
/// while it is not complete.
pub(crate) fn final_head(record: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    loop {
        start = skip_blank_lines(record, start);
        let end = head_end(record, start)?;
        let head = record.get(start..end).unwrap_or_default();
        if !is_interim(head) {
            return Some(start..end);
        }
        start = end;
    }
}

fn skip_blank_lines(record: &[u8], mut at: usize) -> usize {
    while matches!(record.get(at), Some(b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// The place after the blank line that ends the head beginning at `start`. Lines may end in LF alone.
fn head_end(record: &[u8], start: usize) -> Option<usize> {
    let mut line = start;
    loop {
        let rest = record.get(line..)?;
        let feed = memchr(b'\n', rest)?;
        line += feed + 1;
        if feed == 0 || (feed == 1 && rest.first() == Some(&b'\r')) {
            return Some(line);
        }
    }
}

/// 100–199 but not 101, which hyper takes for final.
fn is_interim(head: &[u8]) -> bool {
    matches!(status_of(head), Some(100 | 102..=199))
}

/// The status in the first line of a head.
fn status_of(head: &[u8]) -> Option<u16> {
    let mut words = head.split(|byte| *byte == b' ').filter(|it| !it.is_empty());
    let digits = words.nth(1)?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// True for the beginning of a redirect that breaks off inside its Location.
pub(crate) fn ends_in_location(record: &[u8]) -> bool {
    let start = skip_blank_lines(record, 0);
    let head = record.get(start..).unwrap_or_default();
    let line = head.rsplit(|byte| *byte == b'\n').next();
    let name = line.and_then(|line| line.get(..9));
    status_of(head).is_some_and(|status| matches!(action(status), Action::Follow { .. }))
        && name.is_some_and(|name| name.eq_ignore_ascii_case(b"location:"))
}

/// The body of a chunked message: where its data lies in the record, and where the message ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// The places of the data, in order; the last may be cut.
    data: Vec<Range<usize>>,
    /// The place after the last byte that belongs to the message, as far as it has come.
    pub(crate) end: usize,
    total: usize,
}

impl Chunks {
    /// Walks over the chunks that begin at `start`.
    pub(crate) fn walk(record: &[u8], start: usize) -> Self {
        let mut chunks = Self::default();
        chunks.end = chunks.walk_from(record, start).unwrap_or(record.len());
        chunks
    }

    /// None when the record ends before the message does, or does not look like chunks.
    fn walk_from(&mut self, record: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let rest = record.get(at..)?;
            let line = rest.get(..memchr(b'\n', rest)?)?;
            at += line.len() + 1;
            let size = chunk_size(line)?;
            if size == 0 {
                return trailer_end(record, at);
            }
            let end = at.checked_add(size)?.min(record.len());
            if end > at {
                self.total += end - at;
                self.data.push(at..end);
            }
            at = end;
            at += match record.get(at..)? {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                _ => return None,
            };
        }
    }

    /// The first data there is: enough to see that there is some.
    pub(crate) fn first(&self, record: &Bytes) -> Bytes {
        let first = self.data.first();
        first.map_or_else(Bytes::new, |range| record.slice(range.clone()))
    }

    /// The data in one piece: a view of the record when it lies in one piece there.
    pub(crate) fn gather(&self, record: &Bytes) -> Bytes {
        match self.data.as_slice() {
            [] => Bytes::new(),
            [only] => record.slice(only.clone()),
            many => {
                let mut body = BytesMut::with_capacity(self.total);
                for range in many {
                    body.extend_from_slice(record.get(range.clone()).unwrap_or_default());
                }
                body.freeze()
            }
        }
    }
}

/// The hexadecimal number at the beginning of a chunk's first line; extensions follow it.
fn chunk_size(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_start();
    let digits = line
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let text = std::str::from_utf8(line.get(..digits)?).ok()?;
    usize::from_str_radix(text, 16).ok()
}

/// The trailer is a head without a first line: it ends with a blank line.
fn trailer_end(record: &[u8], at: usize) -> Option<usize> {
    head_end(record, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_head_is_found_behind_interim_ones() {
        for (record, wanted) in [
            (&b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"[..], Some(0..25)),
            (b"HTTP/1.1 200 OK\nA: b\n\nbody", Some(0..22)),
            (b"HTTP/1.1 200 OK\nA: b\r\n\n", Some(0..23)),
            (b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Some(4..23)),
            (
                b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.0 404 No\r\n\r\n",
                Some(55..74),
            ),
            (b"HTTP/1.1 101 Switching\r\n\r\nxx", Some(0..26)),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200", None),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n", None),
            (b"", None),
            (b"\r\n\r\n", None),
        ] {
            assert_eq!(final_head(record), wanted, "{:?}", record.escape_ascii());
        }
    }

    #[test]
    fn chunks_are_found_gathered_and_bounded() {
        for (record, body, end) in [
            (&b"5\r\nhello\r\n0\r\n\r\nNEXT"[..], &b"hello"[..], 15),
            (
                b"5;x=y\r\nhello\r\n3\r\n...\r\n0\r\nT: 1\r\n\r\n",
                b"hello...",
                33,
            ),
            (b"0005\nhello\n0\n\nNEXT", b"hello", 14),
            (b"0\r\n\r\n", b"", 5),
            // Cut in a chunk, in a size, before the end of the trailer.
            (b"1000\r\nhello", b"hello", 11),
            (b"5\r\nhello\r\n1", b"hello", 11),
            (b"5\r\nhello\r\n0\r\n", b"hello", 13),
            // Not chunks at all.
            (b"ZZ\r\nhello", b"", 9),
            (b"fffffffffffffffff\r\nhello", b"", 24),
            (b"ffffffffffffffff\r\nhello", b"", 23),
        ] {
            let chunks = Chunks::walk(record, 0);
            assert_eq!(chunks.end, end, "{:?}", record.escape_ascii());
            let bytes = Bytes::copy_from_slice(record);
            assert_eq!(chunks.gather(&bytes), body, "{:?}", record.escape_ascii());
        }
    }

    #[test]
    fn a_location_without_end_is_recognised() {
        for (record, wanted) in [
            (&b"HTTP/1.1 302 Found\r\nA: b\r\nLocation: /LLLL"[..], true),
            (b"HTTP/1.1 308 X\nlocation:/LLLL", true),
            (b"HTTP/1.1 200 OK\r\nLocation: /LLLL", false),
            (b"HTTP/1.1 302 Found\r\nLocation: /\r\nX: LLLL", false),
            (b"HTTP/1.1 302 Location: /", false),
            (b"", false),
        ] {
            assert_eq!(
                ends_in_location(record),
                wanted,
                "{:?}",
                record.escape_ascii()
            );
        }
    }

    #[test]
    fn one_chunk_is_not_copied() {
        let record = Bytes::from_static(b"5\r\nhello\r\n0\r\n\r\n");
        let body = Chunks::walk(&record, 0).gather(&record);
        assert_eq!(body.as_ptr(), record[3..].as_ptr());
    }

    #[test]
    fn chunked_must_come_last() {
        let headers = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRANSFER_ENCODING, value.parse().unwrap());
            }
            headers
        };
        for (values, wanted) in [
            (&["chunked"][..], Framing::Chunked),
            (&["gzip, Chunked"], Framing::Chunked),
            (&["gzip", "chunked"], Framing::Chunked),
            (&["chunked, gzip"], Framing::Close),
            (&["xchunked"], Framing::Close),
            (&[], Framing::Close),
        ] {
            assert_eq!(Framing::of(None, &headers(values)), wanted, "{values:?}");
        }
        assert_eq!(
            Framing::of(Some(3), &headers(&["chunked"])),
            Framing::Length(3)
        );
    }
}
