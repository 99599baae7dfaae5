//! The binary protocol from spider to store: one record per result, one answer per record.
//!
//! A record is 20 bytes of numbers in network byte order, then URL, new URL and data. The framing is in
//! the first 20 bytes alone, so a record whose contents make no sense is refused and the next one is
//! read as if nothing had happened. `docs/formats/store-protocol.md` has the layout.

use bytes::{Buf, Bytes, BytesMut};
use orbweaver_model::{OutcomeClass, Truncation};

use crate::codes::{HttpCode, outcome_code, outcome_of_code};

/// Bytes of a record before its URL.
pub const HEAD_LEN: usize = 20;

/// Bytes of an answer.
pub const ANSWER_LEN: usize = 5;

/// What the data of a record is: the byte that the original layout left unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The document's body.
    Body = 0,
    /// The whole HTTP response message as received, head first.
    Message = 1,
}

/// One result on its way to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The document's number; 0 for a robots.txt.
    pub doc_id: u32,
    /// Whether a document was received.
    pub success: bool,
    /// What became of the URL.
    pub outcome: OutcomeClass,
    /// How the data was cut, when it is not whole.
    pub cut: Option<Truncation>,
    /// The status as an enumeration.
    pub http: HttpCode,
    /// What the data is.
    pub kind: Data,
    /// Milliseconds that the fetch took.
    pub millis: u32,
    /// The URL; at most 65,535 bytes.
    pub url: String,
    /// Where the server pointed instead; empty for nowhere. At most 65,535 bytes.
    pub new_url: String,
    /// The document; empty when none came.
    pub data: Bytes,
}

impl Record {
    /// The first bytes on the wire; URL, new URL and data follow as they are. None when a length does not
    /// fit in its field.
    pub fn head(&self) -> Option<[u8; HEAD_LEN]> {
        let url = u16::try_from(self.url.len()).ok()?;
        let new_url = u16::try_from(self.new_url.len()).ok()?;
        let data = u32::try_from(self.data.len()).ok()?;
        let mut head = [0; HEAD_LEN];
        let parts: [&[u8]; 6] = [
            &self.doc_id.to_be_bytes(),
            &[
                u8::from(self.success),
                outcome_code(self.outcome, self.cut),
                self.http.to_byte(),
                self.kind as u8,
            ],
            &self.millis.to_be_bytes(),
            &url.to_be_bytes(),
            &new_url.to_be_bytes(),
            &data.to_be_bytes(),
        ];
        let bytes = parts.into_iter().flatten();
        head.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Some(head)
    }

    /// The whole record. None when a length does not fit in its field.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let head = self.head()?;
        let parts = [
            &head,
            self.url.as_bytes(),
            self.new_url.as_bytes(),
            &self.data,
        ];
        Some(parts.concat())
    }
}

/// What came out of the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A record.
    Record(Record),
    /// A record whose contents make no sense; the answer is [`Verdict::Refused`].
    Refused {
        /// The number to answer with.
        doc_id: u32,
        /// What is wrong.
        why: &'static str,
    },
}

/// The numbers of a record as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    doc_id: u32,
    success: u8,
    outcome: u8,
    http: u8,
    kind: u8,
    millis: u32,
    url_len: usize,
    new_url_len: usize,
    data_len: usize,
}

#[derive(Debug)]
enum Stage {
    /// Waiting for the numbers.
    Head,
    /// Waiting for everything else that is kept.
    Rest(Head),
    /// Letting go by what is over the limit.
    Skip { left: usize, done: Decoded },
}

/// Reads records from a stream, however it is cut. It holds one record of at most the limit, and never
/// fails: bytes that are no record come out as refused records.
#[derive(Debug)]
pub struct Records {
    buffer: BytesMut,
    stage: Stage,
    max_data: usize,
}

impl Records {
    /// Keeps at most `max_data` bytes of a record's data; what is longer is cut there and marked as cut by
    /// a size limit.
    pub fn new(max_data: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            stage: Stage::Head,
            max_data,
        }
    }

    /// Adds what was read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Where to read into directly.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes that the record under way will take in memory, as far as they are known.
    pub fn size(&self) -> usize {
        match &self.stage {
            Stage::Head => HEAD_LEN,
            Stage::Rest(head) => self.kept(head),
            Stage::Skip { .. } => 0,
        }
    }

    /// True when a record has begun and not ended.
    pub fn is_amid(&self) -> bool {
        !self.buffer.is_empty() || !matches!(self.stage, Stage::Head)
    }

    /// The next record; none until more is fed.
    #[allow(clippy::should_implement_trait, reason = "none is not the end")]
    pub fn next(&mut self) -> Option<Decoded> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Head) {
                Stage::Head => self.stage = Stage::Rest(self.read_head()?),
                Stage::Rest(head) if self.buffer.len() < self.kept(&head) => {
                    self.stage = Stage::Rest(head);
                    return None;
                }
                Stage::Rest(head) => {
                    let left = head.data_len.saturating_sub(self.max_data);
                    let done = self.read_rest(head);
                    self.stage = Stage::Skip { left, done };
                }
                Stage::Skip { left, done } => {
                    let now = left.min(self.buffer.len());
                    self.buffer.advance(now);
                    if now == left {
                        return Some(done);
                    }
                    let left = left - now;
                    self.stage = Stage::Skip { left, done };
                    return None;
                }
            }
        }
    }

    fn kept(&self, head: &Head) -> usize {
        head.url_len + head.new_url_len + head.data_len.min(self.max_data)
    }

    fn read_head(&mut self) -> Option<Head> {
        let buffer = &mut self.buffer;
        if buffer.len() < HEAD_LEN {
            return None;
        }
        Some(Head {
            doc_id: buffer.get_u32(),
            success: buffer.get_u8(),
            outcome: buffer.get_u8(),
            http: buffer.get_u8(),
            kind: buffer.get_u8(),
            millis: buffer.get_u32(),
            url_len: buffer.get_u16().into(),
            new_url_len: buffer.get_u16().into(),
            data_len: usize::try_from(buffer.get_u32()).unwrap_or(usize::MAX),
        })
    }

    fn read_rest(&mut self, head: Head) -> Decoded {
        let url = self.buffer.split_to(head.url_len);
        let new_url = self.buffer.split_to(head.new_url_len);
        let data = self.buffer.split_to(head.data_len.min(self.max_data));
        match record(head, &url, &new_url, data.freeze(), self.max_data) {
            Ok(record) => Decoded::Record(record),
            Err(why) => Decoded::Refused {
                doc_id: head.doc_id,
                why,
            },
        }
    }
}

fn record(
    head: Head,
    url: &[u8],
    new_url: &[u8],
    data: Bytes,
    max_data: usize,
) -> Result<Record, &'static str> {
    let text = |bytes: &[u8], why| match std::str::from_utf8(bytes) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(text.to_owned()),
        _ => Err(why),
    };
    let (outcome, cut) = outcome_of_code(head.outcome).ok_or("the outcome is not in the table")?;
    let mut record = Record {
        doc_id: head.doc_id,
        success: match head.success {
            0 => false,
            1 => true,
            _ => return Err("success is neither 0 nor 1"),
        },
        outcome,
        cut,
        http: HttpCode::from_byte(head.http).ok_or("the HTTP code is not in the table")?,
        kind: match head.kind {
            0 => Data::Body,
            1 => Data::Message,
            _ => return Err("the kind of the data is neither 0 nor 1"),
        },
        millis: head.millis,
        url: text(url, "the URL is not printable ASCII")?,
        new_url: text(new_url, "the new URL is not printable ASCII")?,
        data,
    };
    if record.url.is_empty() {
        return Err("there is no URL");
    }
    if head.data_len > max_data {
        record.cut = Some(Truncation::Length);
        if record.outcome == OutcomeClass::Success {
            record.outcome = OutcomeClass::Truncated;
        }
    }
    Ok(record)
}

/// What the store did with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is durable.
    Stored = 0,
    /// It was durable before.
    AlreadyHad = 1,
    /// It makes no sense and must not be sent again.
    Refused = 2,
    /// It could not be stored now and must be sent again later.
    TryLater = 3,
}

impl Verdict {
    /// Every verdict, by its number.
    pub const ALL: [Self; 4] = [
        Self::Stored,
        Self::AlreadyHad,
        Self::Refused,
        Self::TryLater,
    ];

    /// The words for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::AlreadyHad => "duplicate",
            Self::Refused => "refused",
            Self::TryLater => "retry later",
        }
    }
}

/// The store's answer to one record. Answers come in the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the record that is answered.
    pub doc_id: u32,
    /// What was done with it.
    pub verdict: Verdict,
}

impl Answer {
    /// The bytes on the wire.
    pub fn encode(self) -> [u8; ANSWER_LEN] {
        let [a, b, c, d] = self.doc_id.to_be_bytes();
        [a, b, c, d, self.verdict as u8]
    }

    /// Reads five bytes; none when the verdict is not in the table.
    pub fn decode(bytes: [u8; ANSWER_LEN]) -> Option<Self> {
        let [a, b, c, d, verdict] = bytes;
        Some(Self {
            doc_id: u32::from_be_bytes([a, b, c, d]),
            verdict: *Verdict::ALL.get(usize::from(verdict))?,
        })
    }
}

/// Reads answers from a stream, however it is cut.
#[derive(Debug, Default)]
pub struct Answers {
    partial: Vec<u8>,
}

impl Answers {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    /// The next five bytes, read or as they came; none until more is fed.
    #[allow(clippy::should_implement_trait, reason = "none is not the end")]
    pub fn next(&mut self) -> Option<Result<Answer, [u8; ANSWER_LEN]>> {
        let bytes: [u8; ANSWER_LEN] = *self.partial.first_chunk()?;
        self.partial.drain(..ANSWER_LEN);
        Some(Answer::decode(bytes).ok_or(bytes))
    }
}
