//! Who speaks on a port without a key, told by the first bytes.
//!
//! A port of loopback is open to every web page that a browser on this machine shows: a page can have its browser send
//! POST with a body of its choice to any port, and lines or records in the body would be obeyed. What a browser cannot
//! do is to begin with anything but its own protocol. So nothing is obeyed before the first words have been recognised
//! as ours, and each protocol has something in its first words that no browser can send
//! (`docs/decisions/first-words.md`):
//!
//! - an order begins with a number and has four or five fields; the request line of HTTP has three, whatever method a
//!   page chooses, and TLS, STUN and HTTP/2 do not begin with a digit;
//! - a command to the results has two words, and the first is FOLLOW or HAVE;
//! - the fifth byte of a record is 0 or 1, and so is the eighth; in HTTP every byte is at least 32 up to the first line
//!   end, which stands behind more than eight, and STUN has other bytes there. A ClientHello of TLS can have these, and
//!   is told by the rest of it.

use crate::line::{MAX_LINE, read_order};
use crate::results::Command;
use crate::service::Service;

/// What the first bytes of a connection say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWords {
    /// More must be heard.
    Unfinished,
    /// They are of this protocol.
    Ours,
    /// They are not, with the reason.
    Foreign(&'static str),
}

const HTTP: &str = "it speaks HTTP, as a web page in a browser does; nothing was executed";
const TLS: &str = "it speaks TLS, but this port has no key";
const OTHER: &str = "its first bytes are not of this protocol; nothing was executed";

/// Judges the first bytes, all that were heard so far.
pub fn judge(service: Service, heard: &[u8]) -> FirstWords {
    match service {
        Service::Line => judge_line(heard, |first| first.is_ascii_digit(), is_order),
        Service::Results => {
            let begins = |first: u8| matches!(first.to_ascii_uppercase(), b'F' | b'H');
            judge_line(heard, begins, |line| Command::read(line).is_ok())
        }
        Service::Store => judge_record(heard),
    }
}

/// Judges the first line that is not empty.
fn judge_line(
    heard: &[u8],
    begins: impl Fn(u8) -> bool,
    is_ours: impl Fn(&[u8]) -> bool,
) -> FirstWords {
    let text = heard.trim_ascii_start();
    match text.first() {
        None if heard.len() > MAX_LINE => return FirstWords::Foreign(OTHER),
        None => return FirstWords::Unfinished,
        Some(first) if !begins(*first) => return foreign(text),
        Some(_) => {}
    }
    match text.iter().position(|byte| *byte == b'\n') {
        None if text.len() > MAX_LINE + 1 => FirstWords::Foreign(OTHER),
        None => FirstWords::Unfinished,
        Some(end) => {
            let line = text.get(..end).unwrap_or_default();
            match is_ours(line.trim_ascii_end()) {
                true => FirstWords::Ours,
                false => foreign(text),
            }
        }
    }
}

/// A malformed order is still one when its id can be read, for it must be answered. A request line whose method is a
/// number is none.
fn is_order(line: &[u8]) -> bool {
    let mut fields = line.split(u8::is_ascii_whitespace);
    let is_request = fields.any(|field| field.starts_with(b"HTTP/"));
    !is_request && !matches!(read_order(line), Err(bad) if bad.trans.is_none())
}

fn judge_record(heard: &[u8]) -> FirstWords {
    let flag = |at: usize| heard.get(at).is_none_or(|byte| *byte <= 1);
    if !flag(4) || !flag(7) {
        return foreign(heard);
    }
    let may_be_tls = heard.starts_with(&[0x16, 0x03]);
    match heard.first_chunk::<11>() {
        Some(hello) if is_hello(*hello) => FirstWords::Foreign(TLS),
        Some(_) => FirstWords::Ours,
        None if heard.len() >= 8 && !may_be_tls => FirstWords::Ours,
        None => FirstWords::Unfinished,
    }
}

/// The beginning of a ClientHello in one record: handshake, the version of the record, its length, client_hello and its
/// length, which is less by four, and the version of TLS 1.2 (RFC 8446, 4.1.2).
fn is_hello(bytes: [u8; 11]) -> bool {
    let [kind, 3, 0..=4, high, low, 1, 0, high_in, low_in, 3, 3] = bytes else {
        return false;
    };
    let whole = u16::from_be_bytes([high, low]);
    kind == 0x16 && u16::from_be_bytes([high_in, low_in]).checked_add(4) == Some(whole)
}

fn foreign(heard: &[u8]) -> FirstWords {
    let first = heard
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    FirstWords::Foreign(match heard {
        [0x16, 0x03, ..] => TLS,
        _ if first.len() >= 5
            && first
                .trim_ascii_end()
                .iter()
                .all(|byte| (b' '..=b'~').contains(byte)) =>
        {
            match first.windows(5).any(|five| five == b"HTTP/")
                || !first.ends_with(b"\r") && is_method(first)
            {
                true => HTTP,
                false => OTHER,
            }
        }
        _ => OTHER,
    })
}

/// A word of capital letters and a space, or what can become one.
fn is_method(text: &[u8]) -> bool {
    let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    !word.is_empty() && word.iter().all(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the bytes are cut, the verdict is the same, and nothing that is foreign passes in between.
    fn judged(service: Service, bytes: &[u8]) -> FirstWords {
        let mut last = FirstWords::Unfinished;
        for end in 0..=bytes.len() {
            last = judge(service, &bytes[..end]);
            if last != FirstWords::Unfinished {
                let whole = judge(service, bytes);
                let alike = matches!(
                    (last, whole),
                    (FirstWords::Ours, FirstWords::Ours)
                        | (FirstWords::Foreign(_), FirstWords::Foreign(_))
                );
                assert!(alike, "{service:?} {end}: {last:?} {whole:?}");
                return whole;
            }
        }
        last
    }

    const ALL: [Service; 3] = [Service::Line, Service::Store, Service::Results];

    #[test]
    fn nothing_that_a_browser_sends_is_ours() {
        let body =
            "\r\nHost: 127.0.0.1:8701\r\n\r\n1 1 127.0.0.1 http://127.0.0.1/\nFOLLOW 0\nHAVE 9\n";
        for line in [
            "POST / HTTP/1.1",
            "GET / HTTP/1.1",
            "HEAD / HTTP/1.1",
            "OPTIONS / HTTP/1.1",
            "PUT / HTTP/1.1",
            "7 / HTTP/1.1",
            "7 /1/127.0.0.1/x HTTP/1.1",
            "FOLLOW / HTTP/1.1",
            "HAVE /9 HTTP/1.1",
            "F / HTTP/1.1",
            "PRI * HTTP/2.0",
            "CONNECT a:1 HTTP/1.1",
            "A / HTTP/1.1",
            "AB / HTTP/1.0",
            "0 0 HTTP/1.1",
        ] {
            let request = format!("{line}{body}");
            for service in ALL {
                assert_eq!(
                    judged(service, request.as_bytes()),
                    FirstWords::Foreign(HTTP),
                    "{service:?} {line}"
                );
            }
        }
        // STUN over TCP, as WebRTC speaks it to a TURN server, and framed by RFC 4571.
        let stun =
            b"\x00\x03\x00\x58\x21\x12\xa4\x42\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c";
        let framed = [&b"\x00\x64"[..], stun].concat();
        for service in ALL {
            assert!(
                matches!(judged(service, stun), FirstWords::Foreign(_)),
                "{service:?}"
            );
            assert!(
                matches!(judged(service, &framed), FirstWords::Foreign(_)),
                "{service:?}"
            );
        }
    }

    #[test]
    fn a_client_hello_is_told_whatever_its_length() {
        for length in 40_u16..3000 {
            let mut hello = vec![0x16, 3, 1];
            hello.extend(length.to_be_bytes());
            hello.extend([1, 0]);
            hello.extend((length - 4).to_be_bytes());
            hello.extend([3, 3]);
            hello.extend([0x5a; 32]);
            for service in ALL {
                assert_eq!(
                    judged(service, &hello),
                    FirstWords::Foreign(TLS),
                    "{service:?} {length}"
                );
            }
        }
    }

    #[test]
    fn what_peers_say_first_is_ours() {
        for line in [
            "1 1 127.0.0.1 http://127.0.0.1/\n",
            "1 0 ::1 example.org http://example.org/robots.txt\r\n",
            "\r\n\n  7 1 192.0.2.7 http://example.org/\n",
            "7 x 192.0.2.7 http://example.org/\n",
            "7\n",
        ] {
            assert_eq!(
                judged(Service::Line, line.as_bytes()),
                FirstWords::Ours,
                "{line}"
            );
        }
        for line in ["FOLLOW 0\n", "have 17\r\n"] {
            assert_eq!(
                judged(Service::Results, line.as_bytes()),
                FirstWords::Ours,
                "{line}"
            );
        }
        for line in [
            "hello\n",
            "x 1 1 1\n",
            "99999999999999999999 1 ::1 http://a/\n",
        ] {
            assert_eq!(
                judged(Service::Line, line.as_bytes()),
                FirstWords::Foreign(OTHER),
                "{line}"
            );
        }
        let record = |doc_id: u32, success: u8, outcome: u8, kind: u8| {
            let mut bytes = doc_id.to_be_bytes().to_vec();
            bytes.extend([
                success, outcome, 10, kind, 0, 0, 0, 9, 0, 9, 0, 0, 0, 0, 0, 0,
            ]);
            bytes
        };
        for bytes in [
            record(0, 1, 1, 1),
            record(u32::MAX, 0, 31, 0),
            record(0x1603_0102, 1, 1, 0),
            record(0x504f_5354, 0, 1, 1),
        ] {
            assert_eq!(
                judged(Service::Store, &bytes),
                FirstWords::Ours,
                "{bytes:?}"
            );
        }
        for bytes in [record(1, 2, 1, 1), record(1, 1, 1, 2)] {
            assert!(matches!(
                judged(Service::Store, &bytes),
                FirstWords::Foreign(_)
            ));
        }
    }
}
