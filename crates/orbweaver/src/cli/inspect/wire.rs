//! Captured traffic between two daemons as text: one line per message, with the byte where it begins.
//!
//! What cannot be read is named, and reading goes on behind it where the protocol says where that is.

use std::io::Write;

use anyhow::Result;

use orbweaver_model::Method;
use orbweaver_wire::line::{BadLine, MAX_LINE, read_order, trans_of};
use orbweaver_wire::record::{ANSWER_LEN, HEAD_LEN};
use orbweaver_wire::results::POSITION_LEN;
use orbweaver_wire::{
    Answer, Command, Data, Decoded, FromSpider, OrderLine, Record, Records, ToSpider, Word,
};

/// Which conversation was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Orders and statuses.
    Line,
    /// Records on their way to the store.
    Store,
    /// The store's answers.
    Answers,
    /// Results on their way to a follower, or what a follower says.
    Results,
}

impl Kind {
    /// What a capture looks like: the protocol of lines is the only one that begins with visible letters.
    pub(super) fn guess(bytes: &[u8]) -> Self {
        let begin = bytes.get(..HEAD_LEN.min(bytes.len())).unwrap_or_default();
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match begin.iter().all(is_text) {
            true => Self::Line,
            false => Self::Store,
        }
    }
}

/// Prints a capture.
pub(super) fn show(bytes: &[u8], kind: Kind, out: &mut dyn Write) -> Result<()> {
    match kind {
        Kind::Line => lines(bytes, out, line),
        Kind::Store => records(bytes, 0, out),
        Kind::Answers => answers(bytes, out),
        Kind::Results if Kind::guess(bytes) == Kind::Line => lines(bytes, out, command),
        Kind::Results => records(bytes, POSITION_LEN, out),
    }
}

fn lines(
    bytes: &[u8],
    out: &mut dyn Write,
    read: impl Fn(&[u8]) -> Result<String, &'static str>,
) -> Result<()> {
    let mut at = 0;
    for whole in bytes.split_inclusive(|byte| *byte == b'\n') {
        let shown = || {
            let text =
                String::from_utf8_lossy(whole.get(..whole.len().min(200)).unwrap_or_default());
            format!("{:?}", text.trim_end_matches(['\r', '\n']))
        };
        let words = match whole.strip_suffix(b"\n") {
            None => Err("the line has no end"),
            Some(line) if line.len() > MAX_LINE + 1 => Err("the line is too long"),
            Some(line) => read(line.strip_suffix(b"\r").unwrap_or(line)),
        };
        match words {
            Ok(words) => writeln!(out, "{at}: {words}")?,
            Err(why) => writeln!(out, "{at}: damaged: {why}: {}", shown())?,
        }
        at += whole.len();
    }
    Ok(())
}

fn line(line: &[u8]) -> Result<String, &'static str> {
    match Word::read(line) {
        Ok(Word::Plain(FromSpider::Get(count))) => {
            return Ok(format!("GET: {count} orders more"));
        }
        Ok(Word::Plain(FromSpider::Working(id))) => return Ok(format!("working on {id}")),
        Ok(Word::Plain(FromSpider::Done(id))) => return Ok(format!("done with {id}")),
        Ok(Word::Sent(id)) => return Ok(format!("request of {id} written")),
        Ok(Word::Stopped(id)) => return Ok(format!("{id} given up")),
        Ok(Word::Head(head)) => {
            let (id, status, outcome) = (head.trans, head.status, head.outcome);
            return Ok(format!("HEAD of {id}: status {status}, {outcome}"));
        }
        Err(_) => {}
    }
    match ToSpider::read(line) {
        Some(Ok(said)) => return Ok(extended_words(&said)),
        Some(Err(bad)) => return Err(bad.why),
        None => {}
    }
    match read_order(line) {
        Ok(order) => Ok(order_words(&order)),
        // A line that begins like an order was meant as one.
        Err(BadLine { trans, why }) => Err(trans.map_or("not a message", |_| why)),
    }
}

fn extended_words(said: &ToSpider) -> String {
    match said {
        ToSpider::Agreed(version) => format!("extension agreed on, version {version}"),
        ToSpider::Stop(id) => format!("give {id} up"),
        ToSpider::Recall(id) => format!("give {id} up unless its request is written"),
        ToSpider::If(id, terms) => {
            let known = terms.known.as_deref();
            let value =
                |value: Option<&String>| value.map_or("none".to_owned(), |it| format!("{it:?}"));
            let etag = value(known.and_then(|it| it.etag.as_ref()));
            let modified = value(known.and_then(|it| it.last_modified.as_ref()));
            let method = match terms.method {
                Method::Get => "GET",
                Method::Head => "HEAD",
            };
            format!("terms of {id}: {method}, ETag {etag}, Last-Modified {modified}")
        }
    }
}

fn order_words(order: &OrderLine) -> String {
    let trans = trans_of(order.trans);
    let what = match order.doc_id {
        0 => "robots.txt".to_owned(),
        doc_id => format!("document {doc_id}"),
    };
    let host = order.host.as_ref().map(|host| format!("host {host}, "));
    format!(
        "order {} (generation {}, slot {}, place {}): {what} from {}, {}{}",
        order.trans,
        trans.generation,
        trans.slot,
        trans.active,
        order.ip,
        host.unwrap_or_default(),
        order.url
    )
}

fn command(line: &[u8]) -> Result<String, &'static str> {
    match Command::read(line).map_err(|bad| bad.why)? {
        Command::Follow(position) => Ok(format!("follow from {position}")),
        Command::Have(position) => Ok(format!("have up to {position}")),
    }
}

/// Records, each behind so many bytes of position.
fn records(bytes: &[u8], prefix: usize, out: &mut dyn Write) -> Result<()> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some((decoded, length)) = one_record(rest, prefix) else {
            let what = if prefix == 0 { "record" } else { "result" };
            let left = rest.len();
            writeln!(
                out,
                "{at}: damaged: the {what} breaks off after {left} bytes"
            )?;
            return Ok(());
        };
        let position = rest.first_chunk().filter(|_| prefix > 0);
        let position = position.map(|bytes| format!("result {}: ", u64::from_be_bytes(*bytes)));
        let position = position.unwrap_or_default();
        match decoded {
            Decoded::Record(record) => writeln!(out, "{at}: {position}{}", record_words(&record))?,
            Decoded::Refused { doc_id, why } => {
                writeln!(out, "{at}: damaged: {position}document {doc_id}: {why}")?;
            }
        }
        at += length;
    }
    Ok(())
}

/// The first record, and how long it is.
fn one_record(bytes: &[u8], prefix: usize) -> Option<(Decoded, usize)> {
    let head: &[u8; HEAD_LEN] = bytes.get(prefix..)?.first_chunk()?;
    let [.., a, b, c, d, e, f, g, h] = *head;
    let url = usize::from(u16::from_be_bytes([a, b]));
    let new_url = usize::from(u16::from_be_bytes([c, d]));
    let data = usize::try_from(u32::from_be_bytes([e, f, g, h])).ok()?;
    let length = prefix + HEAD_LEN + url + new_url + data;
    let mut records = Records::new(usize::MAX);
    records.feed(bytes.get(prefix..length)?);
    Some((records.next()?, length))
}

fn record_words(record: &Record) -> String {
    let mut words = format!(
        "document {}, {}, http {}, {} ms, {}",
        record.doc_id, record.outcome, record.http, record.millis, record.url
    );
    let mut add = |more: String| words += &more;
    if !record.new_url.is_empty() {
        add(format!(", to {}", record.new_url));
    }
    if let Some(cut) = record.cut {
        add(format!(", cut by {}", cut.as_str()));
    }
    let kind = match record.kind {
        Data::Body => "body",
        Data::Message => "message",
    };
    add(match record.data.len() {
        0 => ", no data".to_owned(),
        length => format!(", {length} bytes of {kind}"),
    });
    if record.success != record.outcome.is_document() {
        add(format!(", success is {}", u8::from(record.success)));
    }
    words
}

fn answers(bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    for (at, answer) in bytes.chunks(ANSWER_LEN).enumerate() {
        let at = at * ANSWER_LEN;
        let Some(answer) = answer.first_chunk() else {
            let left = answer.len();
            writeln!(
                out,
                "{at}: damaged: the answer breaks off after {left} bytes"
            )?;
            break;
        };
        let [a, b, c, d, verdict] = *answer;
        let doc_id = u32::from_be_bytes([a, b, c, d]);
        match Answer::decode(*answer) {
            Some(answer) => writeln!(out, "{at}: document {doc_id}: {}", answer.verdict.as_str())?,
            None => writeln!(
                out,
                "{at}: damaged: document {doc_id}: {verdict} is no verdict"
            )?,
        }
    }
    Ok(())
}
