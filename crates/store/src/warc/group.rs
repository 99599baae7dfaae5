//! Groups: the records of one exchange, which are stored and recovered together or not at all.

use crate::cdxj::IndexLine;
use crate::date::{Date, parse_iso};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::http_head;
use crate::warc::last::{OFFSET, WARCINFO_ID};
use crate::warc::prepare::{NO_DIGEST, NOT_MODIFIED, describe};
use crate::warc::reader::{RecordHead, Records, StoredRecord, read_next};

/// Bytes of a request or metadata block; what we write is far smaller.
pub(crate) const MAX_SIDE_BLOCK: u64 = 1 << 20;

/// Bytes of an HTTP head that are looked at.
const MAX_HTTP_HEAD: usize = 1 << 20;

/// The records of one exchange, without the body.
#[derive(Debug)]
pub(crate) struct Group {
    /// The response or revisit.
    pub(crate) main: RecordHead,
    /// What its payload really is; none when the scan does not look.
    pub(crate) payload: Option<Digest>,
    pub(crate) request: Option<StoredRecord>,
    pub(crate) metadata: StoredRecord,
    /// Where the group ends.
    pub(crate) end: u64,
    /// The line that the index must have.
    pub(crate) line: IndexLine,
}

impl Group {
    /// True when the group says of itself that it was written to this place of the file whose first record
    /// has this identifier.
    pub(crate) fn is_at_home(&self, file: &str) -> bool {
        !file.is_empty()
            && self.metadata.head.field(WARCINFO_ID) == Some(file)
            && place_of(&self.metadata.block) == Some(self.main.offset)
    }
}

/// Where the group of a metadata record begins, as the record says.
pub(crate) fn place_of(metadata: &[u8]) -> Option<u64> {
    warc_field(metadata, OFFSET)?.parse().ok()
}

/// What stands at one place of a file.
#[derive(Debug)]
pub(crate) enum Item {
    /// The record that opens a file.
    Info {
        /// Its identifier, empty when it has none.
        id: String,
        /// Where it ends.
        end: u64,
    },
    /// An exchange.
    Group(Box<Group>),
}

impl Item {
    /// Where it ends.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::Info { end, .. } => *end,
            Self::Group(group) => group.end,
        }
    }
}

/// Reads a WARC file group by group. Any irregularity ends the scan with an error.
pub(crate) struct Groups {
    records: Records,
    /// The name that the lines of the index must give.
    filename: String,
    /// Whether payload digests are computed.
    hash: bool,
}

impl Groups {
    pub(crate) fn new(records: Records, filename: String, hash: bool) -> Self {
        Self {
            records,
            filename,
            hash,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Item>, StoreError> {
        let Some(main) = self.records.next_head()? else {
            return Ok(None);
        };
        match main.kind() {
            "warcinfo" => {
                let end = self.records.finish()?;
                let id = main.field("WARC-Record-ID").unwrap_or_default();
                Ok(Some(Item::Info {
                    id: id.to_owned(),
                    end,
                }))
            }
            "response" | "revisit" => {
                let group = self.group(main)?;
                Ok(Some(Item::Group(Box::new(group))))
            }
            other => {
                let what = format!("a record of type {other:?} where an exchange should begin");
                Err(self.damaged(main.offset, what))
            }
        }
    }

    fn group(&mut self, main: RecordHead) -> Result<Group, StoreError> {
        let (head, payload) = self.read_main()?;
        let main_end = self.records.finish()?;
        let mut side = self.side(&main, "the request or metadata record is missing")?;
        let request = if side.head.kind() == "request" {
            let metadata = self.side(&main, "the metadata record is missing")?;
            Some(std::mem::replace(&mut side, metadata))
        } else {
            None
        };
        if side.head.kind() != "metadata" {
            return Err(self.damaged(
                side.head.offset,
                "not the metadata record that should be here",
            ));
        }
        let line = self.line(&main, &head, main_end, &side)?;
        Ok(Group {
            end: side.end,
            main,
            payload,
            request,
            metadata: side,
            line,
        })
    }

    /// The HTTP head, and the digest of what follows it.
    fn read_main(&mut self) -> Result<(Vec<u8>, Option<Digest>), StoreError> {
        use sha1::Digest as _;
        let mut head = Vec::new();
        let mut hasher = sha1::Sha1::new();
        let mut in_head = true;
        let mut buffer = [0; 16 << 10];
        while in_head || self.hash {
            let read = self.records.read(&mut buffer)?;
            let chunk = buffer.get(..read).unwrap_or_default();
            if in_head {
                head.extend_from_slice(chunk);
                let end = http_head::find_end(&head);
                if end.is_some() || read == 0 || head.len() > MAX_HTTP_HEAD {
                    in_head = false;
                    let len = end.unwrap_or(head.len());
                    hasher.update(head.get(len..).unwrap_or_default());
                    head.truncate(len);
                }
            } else {
                hasher.update(chunk);
            }
            if read == 0 {
                break;
            }
        }
        Ok((head, self.hash.then(|| Digest::finish(hasher))))
    }

    /// The next record, which must belong to `main`.
    fn side(&mut self, main: &RecordHead, missing: &str) -> Result<StoredRecord, StoreError> {
        let Some(record) = read_next(&mut self.records, MAX_SIDE_BLOCK)? else {
            return Err(self.damaged(main.offset, missing));
        };
        if record.head.field("WARC-Concurrent-To") != main.field("WARC-Record-ID") {
            return Err(self.damaged(record.head.offset, missing));
        }
        Ok(record)
    }

    fn line(
        &self,
        main: &RecordHead,
        head: &[u8],
        end: u64,
        metadata: &StoredRecord,
    ) -> Result<IndexLine, StoreError> {
        let missing = |name| self.damaged(main.offset, format!("no usable {name}"));
        let url = main.field("WARC-Target-URI");
        let date = main.field("WARC-Date").and_then(parse_iso);
        let digest = main.field("WARC-Payload-Digest").and_then(Digest::parse);
        let surt = warc_field(&metadata.block, "surt");
        let digest = match (digest, main.field("WARC-Profile")) {
            (_, Some(NOT_MODIFIED)) => NO_DIGEST.to_owned(),
            (Some(digest), _) => digest.base32(),
            (None, _) => return Err(missing("WARC-Payload-Digest")),
        };
        Ok(IndexLine {
            surt: surt
                .ok_or_else(|| missing("surt in the metadata"))?
                .to_owned(),
            timestamp: Date::new(date.ok_or_else(|| missing("WARC-Date"))?)
                .digits()
                .to_string(),
            url: url.ok_or_else(|| missing("WARC-Target-URI"))?.to_owned(),
            length: end - main.offset,
            offset: main.offset,
            filename: self.filename.clone(),
            ..describe(head, main.kind() == "revisit", digest)
        })
    }

    fn damaged(&self, offset: u64, what: impl Into<String>) -> StoreError {
        StoreError::damaged(self.records.path(), offset, what)
    }
}

/// The value of a field in an `application/warc-fields` block.
pub(crate) fn warc_field<'a>(block: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(block).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let mut named = pairs.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim())
}

/// Where the original of a revisit lies, as its metadata says: file name and offset.
pub(crate) fn revisit_of(metadata: &[u8]) -> Option<(&str, u64)> {
    let (file, offset) = warc_field(metadata, "revisitOf")?.rsplit_once(' ')?;
    Some((file, offset.parse().ok()?))
}
