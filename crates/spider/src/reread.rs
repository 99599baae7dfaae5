//! An exchange from the archive, as the spider would have handed it on: framing and encoding undone.
//!
//! The message was accepted by hyper when it was fetched; here its parts are found again without a
//! connection. What cannot be read any more is none, never an error: the archive has the bytes.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use orbweaver_model::{Exchange, Limits, Method, Protocol, Truncation};

use crate::decode::{Decoder, Flow};
use crate::framing::{Chunks, Framing, final_head};

/// Reads a stored request and response. None when the response has no head that can be read.
pub fn reread(
    request: Bytes,
    response: Bytes,
    protocol: Protocol,
    truncated: Option<Truncation>,
    limits: &Limits,
) -> Option<Exchange> {
    let head = final_head(&response)?;
    let (status, headers) = parse_head(response.get(head.clone())?)?;
    let framed = match protocol {
        Protocol::Http1 => unframed(&response, head.end, &headers),
        Protocol::Http2 => response.slice(head.end..),
    };
    let body = decoded(framed, &headers, limits);
    Some(Exchange {
        method: match request.starts_with(b"HEAD ") {
            true => Method::Head,
            false => Method::Get,
        },
        request,
        head_len: head.end,
        status,
        headers,
        body,
        protocol,
        truncated,
        response,
        spooled: None,
    })
}

fn parse_head(head: &[u8]) -> Option<(u16, HeaderMap)> {
    let lines = head.iter().filter(|byte| **byte == b'\n').count();
    let mut fields = vec![httparse::EMPTY_HEADER; lines];
    let mut parsed = httparse::Response::new(&mut fields);
    // The same leniency as with a live connection.
    httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut parsed, head)
        .ok()?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    Some((parsed.code?, headers))
}

fn unframed(response: &Bytes, start: usize, headers: &HeaderMap) -> Bytes {
    match Framing::of(None, headers) {
        Framing::Chunked => Chunks::walk(response, start).gather(response),
        Framing::Length(_) | Framing::Close => response.slice(start..),
    }
}

fn decoded(framed: Bytes, headers: &HeaderMap, limits: &Limits) -> Bytes {
    let Ok(Some(mut decoder)) = Decoder::new(headers, limits.max_encodings) else {
        return framed;
    };
    let mut out = Vec::new();
    decoder.feed(framed.clone());
    match decoder.pull(&mut out, limits.max_decoded_bytes, usize::MAX) {
        Ok(Flow::Hungry) => {
            decoder.finish(&mut out, limits.max_decoded_bytes);
        }
        Ok(Flow::Full | Flow::Starved) => {}
        // Data that is not what its header says is kept as it is, unless some of it made sense.
        Err(_) if out.is_empty() => return framed,
        Err(_) => {}
    }
    out.truncate(limits.max_decoded_bytes);
    out.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(response: &[u8]) -> Option<Exchange> {
        let response = Bytes::copy_from_slice(response);
        reread(
            Bytes::new(),
            response,
            Protocol::Http1,
            None,
            &Limits::default(),
        )
    }

    #[test]
    fn plain_chunked_and_gzipped() {
        let plain = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLink: x\r\n\r\nhello").unwrap();
        assert_eq!((plain.status, plain.body.as_ref()), (200, &b"hello"[..]));
        assert_eq!(plain.headers["link"], "x");
        assert_eq!(plain.head_len, 47);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"hello hello").unwrap();
        let packed = gzip.finish().unwrap();
        let mut message =
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_vec();
        write!(message, "{:x}\r\n", packed.len()).unwrap();
        message.extend_from_slice(&packed);
        message.extend_from_slice(b"\r\n0\r\n\r\n");
        assert_eq!(read(&message).unwrap().body.as_ref(), b"hello hello");
    }

    #[test]
    fn what_is_no_message_is_none() {
        assert!(read(b"SSH-2.0-OpenSSH\r\n\r\n").is_none());
        assert!(read(b"HTTP/1.1 200 OK\r\nA: b").is_none());
        let lying = read(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n<html>").unwrap();
        assert_eq!(lying.body.as_ref(), b"<html>");
    }
}
