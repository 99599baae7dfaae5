//! What two of our daemons add to the line protocol once both know that the other knows it.
//!
//! A TRANS_ID is made by the URL server, and the spider only gives it back. So a URL server that knows the extension
//! writes the ids of its first orders with zeros in front, twenty-four digits in all; to every other spider that is the
//! same number, which it gives back as it came or as it reads it. A spider that knows the extension answers with a WORKING
//! whose id has twenty-eight digits and holds these orders until it has heard AGREED, before which come the conditions of
//! the orders it has already. Nobody who does not know the extension ever sees a word that is not in its document.
//! `docs/formats/line-protocol.md` has the words.

use std::io::Write as _;

use orbweaver_model::{Conditions, FetchRequest, Method, OutcomeClass};

use crate::codes::{outcome_code, outcome_of_code};
use crate::line::{ANSWER_DIGITS, BadLine, Dialect, FromSpider, OFFER_DIGITS, number, printable};

/// The version of the extension that is spoken here.
pub const VERSION: u32 = 1;

/// The longest value of a header that is passed on; longer ones are left out. Real ETags have 30 bytes.
pub const MAX_VALUE: usize = 1024;

/// How many header fields of a HEAD are passed on at most.
const MAX_FIELDS: usize = 8;

/// True when the id of an order says that its writer knows the extension.
pub fn is_offer(line: &[u8]) -> bool {
    has_id_of(OFFER_DIGITS, line.split(u8::is_ascii_whitespace).take(1))
}

/// True when the id in a spider's word says that it knows the extension.
pub fn is_answer(line: &[u8]) -> bool {
    has_id_of(ANSWER_DIGITS, line.split(u8::is_ascii_whitespace).take(2))
}

fn has_id_of<'a>(digits: usize, mut fields: impl Iterator<Item = &'a [u8]>) -> bool {
    fields.any(|field| field.len() == digits && field.iter().all(u8::is_ascii_digit))
}

/// What an order has no room for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// GET or HEAD.
    pub method: Method,
    /// What the last visit left; none on the first.
    pub known: Option<Box<Conditions>>,
    /// The spider says when the request has been written, and writes it once at most.
    pub announce: bool,
}

impl Terms {
    /// What the order line does not say of a request.
    pub fn of(request: &FetchRequest) -> Self {
        Self {
            method: request.method,
            known: request.known.clone(),
            announce: request.announce,
        }
    }

    /// True when the order line says everything.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a URL server says besides orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToSpider {
    /// How this order is to be carried out: said before it, or before `Agreed` of those that were sent earlier.
    If(u64, Terms),
    /// The extension is spoken from here on, in this version.
    Agreed(u32),
    /// This order is given up, whatever has come of it so far.
    Stop(u64),
    /// This order is given up unless its request has been written.
    Recall(u64),
}

impl ToSpider {
    /// Writes the message with its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Writing to a Vec does not fail.
        let _ = match self {
            Self::Agreed(version) => writeln!(out, "AGREED {version}"),
            Self::Stop(id) => writeln!(out, "STOP {id}"),
            Self::Recall(id) => writeln!(out, "RECALL {id}"),
            Self::If(id, terms) => {
                let _ = write!(out, "IF {id} ");
                let flags = [
                    (b'A', terms.announce),
                    (b'H', terms.method == Method::Head),
                    (b'V', terms.known.is_some()),
                ];
                let before = out.len();
                out.extend(flags.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag));
                if out.len() == before {
                    out.push(b'-');
                }
                let known = terms.known.as_deref();
                for value in [
                    known.and_then(|it| it.etag.as_deref()),
                    known.and_then(|it| it.last_modified.as_deref()),
                ] {
                    out.push(b' ');
                    escape(value, out);
                }
                out.write_all(b"\n")
            }
        };
    }

    /// Reads a line; none when it is an order, or nothing of the extension.
    pub fn read(line: &[u8]) -> Option<Result<Self, BadLine>> {
        let text = printable(line)?;
        let mut fields = text.split_ascii_whitespace();
        let word = fields.next()?;
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if !["IF", "AGREED", "STOP", "RECALL"].into_iter().any(is) {
            return None;
        }
        let bad = BadLine {
            trans: None,
            why: "an invalid message of the extension",
        };
        let rest: Vec<&str> = fields.take(5).collect();
        let read = match *rest.as_slice() {
            [version] if is("AGREED") => number(version).map(Self::Agreed),
            [id] if is("STOP") => number(id).map(Self::Stop),
            [id] if is("RECALL") => number(id).map(Self::Recall),
            [id, flags, etag, modified] if is("IF") => {
                number(id).and_then(|id| Some(Self::If(id, terms(flags, etag, modified)?)))
            }
            _ => None,
        };
        Some(read.ok_or(bad))
    }
}

fn terms(flags: &str, etag: &str, modified: &str) -> Option<Terms> {
    if !flags.bytes().all(|flag| b"AHV-".contains(&flag)) {
        return None;
    }
    let known = flags.contains('V').then(|| {
        Some(Box::new(Conditions {
            etag: unescape(etag)?,
            last_modified: unescape(modified)?,
        }))
    });
    Some(Terms {
        method: match flags.contains('H') {
            true => Method::Head,
            false => Method::Get,
        },
        known: match known {
            Some(known) => Some(known?),
            None => None,
        },
        announce: flags.contains('A'),
    })
}

/// What came of a HEAD. It is told here and not to the store, for it brings nothing to keep; when it is lost, the order
/// is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadAnswer {
    /// The order.
    pub trans: u64,
    /// What became of the request.
    pub outcome: OutcomeClass,
    /// The status.
    pub status: u16,
    /// Milliseconds that it took.
    pub millis: u32,
    /// Bytes that were read.
    pub bytes: u64,
    /// The header fields that tell of a change, by their names in lower case.
    pub fields: Vec<(String, String)>,
}

impl HeadAnswer {
    /// The header fields that are passed on: those that tell a changed document from an unchanged one, and how long to
    /// wait.
    pub const FIELDS: [&str; 4] = ["etag", "last-modified", "content-length", "retry-after"];
}

/// What a spider says, with the words of the extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A word of the document.
    Plain(FromSpider),
    /// The request of this order has been written.
    Sent(u64),
    /// This order was given up as it was wished; there is no result.
    Stopped(u64),
    /// The answer to a HEAD; DONE follows.
    Head(Box<HeadAnswer>),
}

impl Word {
    /// Writes the message with its line end; to whom the extension is known with the ids spelled so.
    pub fn write(&self, dialect: Dialect, extended: bool, out: &mut Vec<u8>) {
        // Writing to a Vec does not fail.
        let _ = match self {
            Self::Plain(word) => {
                word.write(dialect, extended, out);
                Ok(())
            }
            Self::Sent(id) => writeln!(out, "SENT {id}"),
            Self::Stopped(id) => writeln!(out, "STOPPED {id}"),
            Self::Head(head) => {
                let outcome = outcome_code(head.outcome, None);
                let (id, status, millis, bytes) =
                    (head.trans, head.status, head.millis, head.bytes);
                let _ = write!(out, "HEAD {id} {outcome} {status} {millis} {bytes}");
                let short = (head.fields.iter()).filter(|(_, value)| value.len() <= MAX_VALUE);
                for (name, value) in short.take(MAX_FIELDS) {
                    let _ = write!(out, " {name}=");
                    escape(Some(value), out);
                }
                out.write_all(b"\n")
            }
        };
    }

    /// Reads a message of the document or of the extension.
    pub fn read(line: &[u8]) -> Result<Self, BadLine> {
        let Some(text) = printable(line) else {
            return FromSpider::read(line).map(Self::Plain);
        };
        let mut fields = text.split_ascii_whitespace();
        let word = fields.next().unwrap_or_default();
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let read = if is("SENT") {
            (fields.next()).and_then(|id| Some(Self::Sent(number(id)?)))
        } else if is("STOPPED") {
            (fields.next()).and_then(|id| Some(Self::Stopped(number(id)?)))
        } else if is("HEAD") {
            head_answer(fields).map(|head| Self::Head(Box::new(head)))
        } else {
            return FromSpider::read(line).map(Self::Plain);
        };
        read.ok_or(BadLine {
            trans: None,
            why: "an invalid message of the extension",
        })
    }
}

fn head_answer<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<HeadAnswer> {
    Some(HeadAnswer {
        trans: number(fields.next()?)?,
        outcome: outcome_of_code(number(fields.next()?)?)?.0,
        status: number(fields.next()?).filter(|status| (100..1000).contains(status))?,
        millis: number(fields.next()?)?,
        bytes: number(fields.next()?)?,
        fields: fields
            .take(MAX_FIELDS)
            .map(|field| {
                let (name, value) = field.split_once('=')?;
                let name = name.to_ascii_lowercase();
                let known = HeadAnswer::FIELDS.contains(&name.as_str());
                let value = unescape(value)??;
                (known && value.len() <= MAX_VALUE).then_some((name, value))
            })
            .collect::<Option<Vec<_>>>()?,
    })
}

/// A value as one field: printable ASCII as it is, every other byte and the percent sign as an escape; `-` for none.
fn escape(value: Option<&str>, out: &mut Vec<u8>) {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        out.push(b'-');
        return;
    };
    for byte in value.bytes() {
        // A single hyphen would be none.
        if byte.is_ascii_graphic() && byte != b'%' && value != "-" {
            out.push(byte);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The value of a field. None when it is not well escaped; a value of none for `-`.
#[allow(clippy::option_option, reason = "a missing or malformed value")]
fn unescape(field: &str) -> Option<Option<String>> {
    if field == "-" {
        return Some(None);
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_good = text
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic() || byte >= 0x80);
    (is_good && !text.is_empty()).then_some(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(etag: Option<&str>, modified: Option<&str>) -> Option<Box<Conditions>> {
        Some(Box::new(Conditions {
            etag: etag.map(str::to_owned),
            last_modified: modified.map(str::to_owned),
        }))
    }

    #[test]
    fn what_is_said_to_a_spider_comes_back() {
        let modified = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (said, line) in [
            (ToSpider::Agreed(1), "AGREED 1"),
            (ToSpider::Stop(7), "STOP 7"),
            (ToSpider::Recall(7), "RECALL 7"),
            (
                ToSpider::If(
                    7,
                    Terms {
                        method: Method::Head,
                        known: conditions(Some("W/\"50%\""), modified),
                        announce: true,
                    },
                ),
                "IF 7 AHV W/\"50%25\" Sun,%2006%20Nov%201994%2008:49:37%20GMT",
            ),
            (
                ToSpider::If(
                    0,
                    Terms {
                        known: conditions(Some("-"), None),
                        ..Terms::default()
                    },
                ),
                "IF 0 V %2D -",
            ),
            (ToSpider::If(1, Terms::default()), "IF 1 - - -"),
        ] {
            let mut written = Vec::new();
            said.write(&mut written);
            assert_eq!(written, format!("{line}\n").into_bytes());
            assert_eq!(ToSpider::read(line.as_bytes()), Some(Ok(said)));
        }
    }

    #[test]
    fn what_a_spider_says_comes_back() {
        let head = HeadAnswer {
            trans: 7,
            outcome: OutcomeClass::Success,
            status: 304,
            millis: 12,
            bytes: 345,
            fields: vec![
                ("etag".to_owned(), "\"a b\"".to_owned()),
                ("content-length".to_owned(), "17".to_owned()),
            ],
        };
        for (word, line) in [
            (Word::Sent(7), "SENT 7"),
            (Word::Stopped(7), "STOPPED 7"),
            (
                Word::Head(Box::new(head)),
                "HEAD 7 1 304 12 345 etag=\"a%20b\" content-length=17",
            ),
            (
                Word::Plain(FromSpider::Working(7)),
                "0000000000000000000000000007 WORKING",
            ),
            (Word::Plain(FromSpider::Get(3)), "GET 3"),
        ] {
            let mut written = Vec::new();
            word.write(Dialect::Push, true, &mut written);
            assert_eq!(written, format!("{line}\n").into_bytes());
            assert_eq!(Word::read(line.as_bytes()), Ok(word));
        }
    }

    #[test]
    fn an_offer_is_known_by_its_zeros_and_by_nothing_else() {
        let offer = "000000000000012884971522 42 192.0.2.7 http://example.org/";
        assert!(is_offer(offer.as_bytes()));
        for line in [
            "12884971522 42 192.0.2.7 http://example.org/",
            "0012884971522 42 192.0.2.7 http://example.org/",
            "0000000000012884971522x0 42 192.0.2.7 http://example.org/",
            "1 000000000000012884971522 192.0.2.7 http://example.org/",
            "",
        ] {
            assert!(!is_offer(line.as_bytes()), "{line}");
        }
        for line in [
            "0000000000000000012884971522 WORKING",
            "DONE 0000000000000000012884971522",
        ] {
            assert!(is_answer(line.as_bytes()), "{line}");
        }
        // Who gives back what it got does not know what it says.
        for line in [
            "12884971522 DONE",
            "000000000000012884971522 WORKING",
            "DONE 000000000000012884971522",
            "",
        ] {
            assert!(!is_answer(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "IF 7 X - -",
            "IF 7 V %zz -",
            "IF 7 V %0A -",
            "IF x - - -",
            "IF 7 -",
            "STOP",
            "STOP -1",
            "AGREED one",
        ] {
            assert!(ToSpider::read(line.as_bytes()).unwrap().is_err(), "{line}");
        }
        for line in [
            "SENT",
            "HEAD 7 1 99 1 1",
            "HEAD 7 0 200 1 1",
            "HEAD 7 1 200 1 1 x-other=1",
            "HEAD 7 1 200 1 1 etag",
            "HEAD 7 1 200 1 1 etag=%0D%0A",
        ] {
            assert!(Word::read(line.as_bytes()).is_err(), "{line}");
        }
        assert_eq!(ToSpider::read(b"7 1 192.0.2.7 http://a/"), None);
    }
}
