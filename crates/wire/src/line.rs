//! The line protocol between URL server and spider, in both dialects.
//!
//! Push: the URL server sends `TRANS_ID DOC_ID HOST_IP URL` and hears `TRANS_ID WORKING` and
//! `TRANS_ID DONE`. Pull: the spider asks with `GET n`, gets `TRANS_ID DOC_ID HOST_IP HOST_NAME URL` and
//! answers `WORKING TRANS_ID` and `DONE TRANS_ID`. Both sides read both forms at any time; only what they
//! write follows the dialect. `docs/formats/line-protocol.md` has the words.

use std::io::Write as _;
use std::net::IpAddr;
use std::str::FromStr;

use orbweaver_model::{CrawlUrl, Order, TransId};
use thiserror::Error;

/// Bytes of a line without its end: the longest URL there is, and room for the other fields.
pub const MAX_LINE: usize = CrawlUrl::MAX_LEN + 1024;

/// Host slots that fit in a TRANS_ID, hence the greatest Queue_Count.
pub const MAX_SLOTS: u32 = 1 << SLOT_BITS;

/// Places of an active window that fit in a TRANS_ID, hence the greatest Req_Host_Concurrent.
pub const MAX_ACTIVE: u16 = 1 << ACTIVE_BITS;

/// Digits of an id in an order whose writer knows the extension: more than any number of 64 bits has.
pub const OFFER_DIGITS: usize = 24;

/// Digits of an id in the answer of a spider that knows it, too: neither what it was sent nor what it stands for.
pub const ANSWER_DIGITS: usize = 28;

const ACTIVE_BITS: u32 = 12;
const SLOT_BITS: u32 = 20;

/// How orders and statuses are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The URL server sends as it likes: four fields, `id DONE`.
    Push,
    /// The spider asks with GET: five fields, `DONE id`.
    Pull,
}

/// The number that stands for a transaction on the wire: generation × 2³² + slot × 2¹² + active, so that
/// it fits in 64 bits, which any peer has a type for. None when slot or active pass their bounds.
pub fn trans_number(trans: TransId) -> Option<u64> {
    let fits = trans.slot < MAX_SLOTS && trans.active < MAX_ACTIVE;
    fits.then(|| {
        u64::from(trans.generation) << (SLOT_BITS + ACTIVE_BITS)
            | u64::from(trans.slot) << ACTIVE_BITS
            | u64::from(trans.active)
    })
}

/// The transaction for a number: every number stands for one.
pub fn trans_of(number: u64) -> TransId {
    let active = number & u64::from(MAX_ACTIVE - 1);
    let slot = (number >> ACTIVE_BITS) & u64::from(MAX_SLOTS - 1);
    TransId {
        generation: (number >> (SLOT_BITS + ACTIVE_BITS)) as u32,
        slot: slot as u32,
        active: active as u16,
    }
}

/// An order as the spider reads it. The URL is as it was sent: who fetches it sees to its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderLine {
    /// How the answer is matched to the order.
    pub trans: u64,
    /// The document's number; 0 for a robots.txt.
    pub doc_id: u32,
    /// The address to connect to.
    pub ip: IpAddr,
    /// The host's name, in the form with five fields.
    pub host: Option<Box<str>>,
    /// What to ask for.
    pub url: Box<str>,
}

/// What a spider says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromSpider {
    /// It can take so many orders more.
    Get(u32),
    /// It is at work on this order.
    Working(u64),
    /// It is done with this order, and the result is stored.
    Done(u64),
}

/// A line that is no message. When the id of an order can be read it is there, so that the order can be
/// answered with DONE instead of being sent again forever.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct BadLine {
    /// The order's id.
    pub trans: Option<u64>,
    /// What is wrong with the line.
    pub why: &'static str,
}

/// A line passed [`MAX_LINE`]: the connection must end, for nobody knows where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a line is longer than {} bytes", MAX_LINE)]
pub struct LineTooLong;

/// Writes an order with its line end, and with `offer` its id so that a spider that knows the extension sees that this
/// side does. False, and nothing written, when its transaction has no number.
pub fn write_order(order: &Order, dialect: Dialect, offer: bool, out: &mut Vec<u8>) -> bool {
    let Some(trans) = trans_number(order.trans) else {
        return false;
    };
    let trans = id(trans, offer.then_some(OFFER_DIGITS));
    let doc_id = order.page().map_or(0, |page| page.doc_id);
    let (ip, url) = (order.ip, order.url());
    // Writing to a Vec does not fail.
    let _ = match dialect {
        Dialect::Push => writeln!(out, "{trans} {doc_id} {ip} {url}"),
        Dialect::Pull => writeln!(out, "{trans} {doc_id} {ip} {} {url}", url.host()),
    };
    true
}

/// Reads an order in either form.
pub fn read_order(line: &[u8]) -> Result<OrderLine, BadLine> {
    let mut bad = BadLine {
        trans: None,
        why: "not printable ASCII",
    };
    let Some(text) = printable(line) else {
        // The id may still be legible, and a legible id gets its answer.
        let first = line
            .split(u8::is_ascii_whitespace)
            .find(|it| !it.is_empty());
        bad.trans = first.and_then(|it| number(std::str::from_utf8(it).ok()?));
        return Err(bad);
    };
    let fields: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    bad.trans = fields.first().and_then(|first| number(first));
    let (head, host, url) = match *fields.as_slice() {
        [id, doc, ip, url] => ([id, doc, ip], None, url),
        [id, doc, ip, host, url] => ([id, doc, ip], Some(host), url),
        _ => {
            bad.why = "an order has four or five fields";
            return Err(bad);
        }
    };
    let [_, doc, ip] = head;
    let Some(trans) = bad.trans else {
        bad.why = "TRANS_ID is not a number of 64 bits";
        return Err(bad);
    };
    let Some(doc_id) = number(doc) else {
        bad.why = "DOC_ID is not a number of 32 bits";
        return Err(bad);
    };
    let Ok(ip) = ip.parse() else {
        bad.why = "HOST_IP is not an address";
        return Err(bad);
    };
    Ok(OrderLine {
        trans,
        doc_id,
        ip,
        host: host.map(Into::into),
        url: url.into(),
    })
}

impl FromSpider {
    /// Writes the message with its line end, and with `extended` its id as those do who know the extension.
    pub fn write(self, dialect: Dialect, extended: bool, out: &mut Vec<u8>) {
        let (trans, word) = match self {
            Self::Get(count) => {
                // Writing to a Vec does not fail.
                let _ = writeln!(out, "GET {count}");
                return;
            }
            Self::Working(trans) => (trans, "WORKING"),
            Self::Done(trans) => (trans, "DONE"),
        };
        let trans = id(trans, extended.then_some(ANSWER_DIGITS));
        let _ = match dialect {
            Dialect::Push => writeln!(out, "{trans} {word}"),
            Dialect::Pull => writeln!(out, "{word} {trans}"),
        };
    }

    /// Reads a message, whatever the order of its two words.
    pub fn read(line: &[u8]) -> Result<Self, BadLine> {
        let bad = |why| BadLine { trans: None, why };
        let text = printable(line).ok_or(bad("not printable ASCII"))?;
        let mut fields = text.split_ascii_whitespace();
        let (Some(first), Some(second), None) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(bad("a status has two words"));
        };
        if first.eq_ignore_ascii_case("GET") {
            let count = number(second).ok_or(bad("GET needs a number of 32 bits"))?;
            return Ok(Self::Get(count));
        }
        let (word, id) = match number(first) {
            Some(id) => (second, id),
            None => (
                first,
                number(second).ok_or(bad("a status needs a TRANS_ID"))?,
            ),
        };
        if word.eq_ignore_ascii_case("DONE") {
            Ok(Self::Done(id))
        } else if word.eq_ignore_ascii_case("WORKING") {
            Ok(Self::Working(id))
        } else {
            Err(bad("neither GET, WORKING nor DONE"))
        }
    }
}

/// An id as it is written, with zeros in front up to so many digits.
fn id(trans: u64, digits: Option<usize>) -> String {
    format!("{trans:0width$}", width = digits.unwrap_or(0))
}

/// The text of a line of printable ASCII; a tab counts as a space.
pub(crate) fn printable(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?;
    let is_good = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    text.bytes().all(is_good).then_some(text)
}

/// Digits only: `parse` alone would take a plus sign too.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Cuts a stream into lines. It holds one line and one piece of what was read, never more.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the line that is being put together begins.
    start: usize,
    /// How far was looked for its end.
    looked: usize,
}

impl Lines {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.looked -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end, LF or CR LF; none until more is fed.
    #[allow(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        let rest = self.buffer.get(self.looked..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            // One more, for the CR.
            let long = self.looked - self.start > MAX_LINE + 1;
            return if long { Err(LineTooLong) } else { Ok(None) };
        };
        let (from, to) = (self.start, self.looked + length);
        self.start = to + 1;
        self.looked = to + 1;
        let line = self.buffer.get(from..to).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > MAX_LINE {
            return Err(LineTooLong);
        }
        Ok(Some(line))
    }

    /// What stands after the last line end.
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_one_number() {
        let trans = TransId {
            generation: 3,
            slot: 17,
            active: 2,
        };
        let number = trans_number(trans).unwrap();
        assert_eq!(number, 3 * (1 << 32) + 17 * (1 << 12) + 2);
        assert_eq!(trans_of(number), trans);
        for number in [0, 1, u64::MAX, 1 << 32, 0x1234_5678_9abc_def0] {
            assert_eq!(trans_number(trans_of(number)), Some(number));
        }
        let slot = MAX_SLOTS;
        assert_eq!(trans_number(TransId { slot, ..trans }), None);
        let active = MAX_ACTIVE;
        assert_eq!(trans_number(TransId { active, ..trans }), None);
    }

    #[test]
    fn orders_in_both_forms() {
        let four = read_order(b"12884971522 42 192.0.2.7 http://example.org/a?b=c").unwrap();
        assert_eq!(
            (four.trans, four.doc_id, four.host),
            (12_884_971_522, 42, None)
        );
        assert_eq!(four.ip, "192.0.2.7".parse::<IpAddr>().unwrap());
        let five = read_order(b"0 0 ::1 example.org http://example.org/robots.txt").unwrap();
        assert_eq!(five.host.as_deref(), Some("example.org"));
        assert_eq!(&*five.url, "http://example.org/robots.txt");
    }

    #[test]
    fn a_bad_order_gives_its_id_when_that_can_be_read() {
        for (line, trans) in [
            (&b"7 x 192.0.2.7 http://a/"[..], Some(7)),
            (b"7 1 192.0.2.700 http://a/", Some(7)),
            (b"7 4294967296 192.0.2.7 http://a/", Some(7)),
            (b"7", Some(7)),
            (b"7 1 192.0.2.7 h http://a/ more", Some(7)),
            (b"7 1 192.0.2.7 http://a/\xc3\xa4", Some(7)),
            (b"+7 1 192.0.2.7 http://a/", None),
            (b"99999999999999999999 1 192.0.2.7 http://a/", None),
            (b"", None),
        ] {
            let bad = read_order(line).unwrap_err();
            assert_eq!(bad.trans, trans, "{:?}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn statuses_in_either_order() {
        for (line, wanted) in [
            (&b"GET 16"[..], FromSpider::Get(16)),
            (b"7 DONE", FromSpider::Done(7)),
            (b"DONE 7", FromSpider::Done(7)),
            (b"working 7", FromSpider::Working(7)),
            (b"7\tWORKING", FromSpider::Working(7)),
        ] {
            assert_eq!(FromSpider::read(line), Ok(wanted));
        }
        for line in [
            &b"GET"[..],
            b"GET -1",
            b"GET x",
            b"DONE",
            b"7 FINE",
            b"7 7",
            b"DONE x",
            b"",
        ] {
            assert!(FromSpider::read(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut lines = Lines::new();
        lines.feed(b"one\r\ntwo\nthr");
        assert_eq!(lines.next(), Ok(Some(&b"one"[..])));
        assert_eq!(lines.next(), Ok(Some(&b"two"[..])));
        assert_eq!(lines.next(), Ok(None));
        lines.feed(b"ee\n");
        assert_eq!(lines.next(), Ok(Some(&b"three"[..])));
        let piece = [b'x'; 4096];
        let mut fed = 0;
        while lines.next() == Ok(None) {
            lines.feed(&piece);
            fed += piece.len();
            assert!(fed <= MAX_LINE + 2 * piece.len());
        }
        assert_eq!(lines.next(), Err(LineTooLong));
    }
}
