//! Which encoding a document is in, found as browsers find it.
//!
//! In order: a byte order mark, the charset of the Content-Type header, what the document declares
//! (a meta element in the first 1024 bytes, an XML declaration, `@charset`), and at last a guess
//! from the bytes. Labels that the WHATWG list does not have, UTF-7 and UTF-32 among them, count as
//! absent.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED,
};

use crate::html::{Scanner, attribute};
use crate::media::Media;
use crate::rawtext::is_space;

/// The standard looks for a meta element in this many bytes.
const PRESCAN_BYTES: usize = 1024;

/// Bytes given to the detector: enough for a sure guess, at a tenth of a millisecond or so.
const GUESS_BYTES: usize = 64 << 10;

/// The encoding of a document. `header` is the charset of its Content-Type, `tld` the last label of
/// its host, which helps the guess.
pub fn detect(
    body: &[u8],
    media: Media,
    header: Option<&[u8]>,
    tld: Option<&str>,
) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = header.and_then(Encoding::for_label) {
        return encoding;
    }
    let start = body.get(..PRESCAN_BYTES).unwrap_or(body);
    let declared = match media {
        Media::Html => prescan(start).or_else(|| xml_declaration(start)),
        Media::Sitemap => xml_declaration(start),
        Media::Css => css_charset(start),
        Media::Text | Media::Other => None,
    };
    match (declared, media) {
        (Some(encoding), _) => encoding,
        (None, Media::Css | Media::Sitemap) => UTF_8,
        (None, Media::Html | Media::Text | Media::Other) => guess(body, tld),
    }
}

/// Turns the characters of a query into bytes as a form or link of a document in this encoding
/// would. None when that is UTF-8, which is what the URL parser does anyway.
pub fn query_encoder(
    encoding: &'static Encoding,
) -> Option<impl for<'q> Fn(&'q str) -> Cow<'q, [u8]>> {
    let output = encoding.output_encoding();
    (output != UTF_8).then_some(for_any_lifetime(move |query: &str| {
        encode_query(output, query)
    }))
}

/// Tells the compiler what it does not infer for a closure: the answer lives as long as the query.
fn for_any_lifetime<F: for<'q> Fn(&'q str) -> Cow<'q, [u8]>>(encode: F) -> F {
    encode
}

/// What the encoding lacks becomes `%26%23number%3B`: a character reference, already escaped,
/// because nobody later could tell its `&` from the query's own (URL standard, percent-encode after
/// encoding).
fn encode_query<'q>(encoding: &'static Encoding, query: &'q str) -> Cow<'q, [u8]> {
    if query.is_ascii() && encoding.is_ascii_compatible() {
        return Cow::Borrowed(query.as_bytes());
    }
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(query.len() * 2);
    let mut rest = query;
    loop {
        let room = encoder
            .max_buffer_length_from_utf8_without_replacement(rest.len())
            .unwrap_or(rest.len().saturating_mul(4))
            .max(16);
        out.reserve(room);
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return Cow::Owned(out),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
            }
        }
    }
}

/// The charset that a meta element declares.
fn prescan(start: &[u8]) -> Option<&'static Encoding> {
    let mut scanner = Scanner::for_prescan(start);
    let mut attributes = Vec::new();
    while let Some(tag) = scanner.next_tag(&mut attributes) {
        if tag.name() != b"meta" {
            continue;
        }
        let declared = attribute(&attributes, b"charset").or_else(|| {
            attribute(&attributes, b"http-equiv")
                .filter(|value| value.eq_ignore_ascii_case(b"content-type"))?;
            charset_in_content(attribute(&attributes, b"content")?)
        });
        if let Some(encoding) = declared.and_then(Encoding::for_label) {
            return Some(as_declared(encoding));
        }
    }
    None
}

/// A document that could be read this far is in no UTF-16, whatever it says.
fn as_declared(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The label in `text/html; charset=label` (HTML standard, "extracting a character encoding from a
/// meta element").
fn charset_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let at = rest
            .windows(7)
            .position(|window| window.eq_ignore_ascii_case(b"charset"))?;
        rest = trim_start(rest.get(at + 7..)?);
        let Some(value) = rest.strip_prefix(b"=") else {
            continue;
        };
        let value = trim_start(value);
        return match value.first()? {
            quote @ (b'"' | b'\'') => {
                let value = value.get(1..)?;
                value.get(..value.iter().position(|b| b == quote)?)
            }
            _ => {
                let end = value.iter().position(|b| is_space(*b) || *b == b';');
                value.get(..end.unwrap_or(value.len()))
            }
        };
    }
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|b| !is_space(*b));
    bytes
        .get(start.unwrap_or(bytes.len())..)
        .unwrap_or_default()
}

/// The encoding that `<?xml … encoding="label"?>` declares; its first characters betray UTF-16.
fn xml_declaration(start: &[u8]) -> Option<&'static Encoding> {
    if start.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if start.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let declaration = start.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..memchr::memchr(b'>', declaration)?)?;
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let value = trim_start(declaration.get(at + 8..)?).strip_prefix(b"=")?;
    let value = trim_start(value);
    let quote = *value.first().filter(|b| matches!(b, b'"' | b'\''))?;
    let value = value.get(1..)?;
    let label = value.get(..value.iter().position(|b| *b == quote)?)?;
    Encoding::for_label(label).map(as_declared)
}

/// The encoding that `@charset "label";` declares; it must be spelled exactly so (CSS Syntax 3.2).
fn css_charset(start: &[u8]) -> Option<&'static Encoding> {
    let rest = start.strip_prefix(b"@charset \"")?;
    let label = rest.get(..memchr::memchr(b'"', rest)?)?;
    rest.get(label.len() + 1).filter(|b| **b == b';')?;
    Encoding::for_label(label).map(as_declared)
}

/// A guess. Unlike a browser, which must not teach authors to leave the label out, we take valid
/// UTF-8 for what it is.
fn guess(body: &[u8], tld: Option<&str>) -> &'static Encoding {
    let ascii = Encoding::ascii_valid_up_to(body);
    if ascii == body.len() {
        return WINDOWS_1252;
    }
    // A body cut in the middle of a character is still UTF-8.
    if Encoding::utf8_valid_up_to(body) + 4 > body.len() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let from = ascii.saturating_sub(GUESS_BYTES / 8);
    let sample = body.get(from..).unwrap_or_default();
    let whole = sample.len() <= GUESS_BYTES;
    detector.feed(sample.get(..GUESS_BYTES).unwrap_or(sample), whole);
    // The detector insists on a lower-case ASCII label without dots.
    let tld = tld.filter(|tld| {
        tld.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    });
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}
