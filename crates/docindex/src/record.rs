//! The records of the doc index as they lie on disk: a version byte, a checksum, then postcard.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use orbweaver_model::{
    Candidate, CapturePlace, Claimed, Column, CrawlUrl, LinkKind, Outcome, Pace, Report, Revisit,
    Role, Spent, Timestamp, UrlKey,
};
use orbweaver_seen::Roles;

use crate::error::{Error, Result};

/// The format of everything in the doc index; `docs/formats/docindex.md` describes it.
pub const FORMAT: u8 = 5;

/// How a URL became known, and the best of the links to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Its number, counted from 1 in the order of acceptance.
    pub doc_id: u32,
    /// The URL.
    pub url: CrawlUrl,
    /// Where the link stood.
    pub kind: LinkKind,
    /// Links followed since the seed.
    pub depth: u16,
    /// 0 goes first.
    pub priority: u8,
    /// The page it was first found on.
    pub via: Option<UrlKey>,
    /// The redirects that led here, oldest first.
    pub chain: Vec<UrlKey>,
    /// When it became known.
    pub seen: Timestamp,
    /// A page links to it as to a page, but that was refused and it was accepted as a requisite of another: kind and depth of
    /// that link, which may be accepted yet.
    pub latent: Option<(LinkKind, u16)>,
    /// A page needs it to be shown: the kind of the first such link. Where it redirects, that is needed as well, though it
    /// may be refused as a page.
    pub shown: Option<LinkKind>,
}

impl LinkRecord {
    /// What stands in the queue for it.
    pub(crate) fn queued(
        &self,
        key: UrlKey,
        attempts: u8,
        revisit: Option<Box<Revisit>>,
    ) -> QueueRecord {
        QueueRecord {
            url_hash: key.url,
            doc_id: self.doc_id,
            attempts,
            kind: self.kind,
            depth: self.depth,
            chain: self.chain.clone(),
            url: self.url.clone(),
            revisit,
        }
    }

    /// What the best link to it makes of it.
    pub fn role(&self) -> Role {
        self.kind.role(self.depth)
    }

    /// What the best link makes of it, and what one that was refused would.
    pub(crate) fn roles(&self) -> Roles {
        let latent = self.latent.map(|(kind, depth)| kind.role(depth));
        [Some(self.role()), latent]
    }

    /// The place in the queue of its host: by priority, then breadth first, then by age.
    pub fn rank(&self) -> u64 {
        (u64::from(self.priority) << 48) | (u64::from(self.depth) << 32) | u64::from(self.doc_id)
    }
}

/// What became of a URL so far. Absent while no attempt was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// Attempts made.
    pub attempts: u8,
    /// True when a request was ever made for it: it is in the page budget of its host.
    pub asked: bool,
    /// True when the rules of the crawl refuse it, so that nobody was asked; other rules or another link may let it in.
    pub refused: bool,
    /// When it is to be requested again; none when it is finished.
    pub due: Option<Timestamp>,
    /// What the last attempt came to.
    pub report: Report,
    /// The attempts before the last, oldest first, at most [`Fate::KEPT`]; of more the newest are kept.
    pub earlier: Vec<Attempt>,
    /// What the last successful visit left for the next one.
    pub revisit: Option<Box<Revisit>>,
    /// Where its newest capture lies in the archive, whatever the attempts since came to: the newest that has the
    /// document, when the server has said since that it did not change.
    pub capture: Option<CapturePlace>,
}

impl Fate {
    /// Earlier attempts that are kept. A crawl makes four at most unless it is told otherwise.
    pub const KEPT: usize = 8;

    /// True when a visit has ever brought something, whatever the attempts since came to.
    pub(crate) fn brought_something(&self) -> bool {
        let revisit = self.revisit.as_ref();
        revisit.is_some_and(|revisit| revisit.digest != 0)
    }

    /// True when the URL counts for a page budget, now or since an earlier visit.
    pub(crate) fn is_page(&self) -> bool {
        let is_document = self.due.is_none() && self.report.outcome.class.is_document();
        is_document || (self.due.is_some() && self.brought_something())
    }

    /// True when the URL was refused because its robots.txt was unavailable, and is retried later: it is to be
    /// visited, though the last time nobody was asked for it.
    pub fn is_chance(&self) -> bool {
        let planned = self.revisit.as_ref().and_then(|revisit| revisit.due);
        self.due.is_none() && self.report.ip.is_none() && planned.is_some()
    }

    /// What the next fate of this URL keeps as its earlier attempts.
    pub(crate) fn into_earlier(self) -> Vec<Attempt> {
        let mut earlier = self.earlier;
        let Report {
            outcome,
            status,
            at,
            ..
        } = self.report;
        earlier.push(Attempt {
            at,
            outcome,
            status,
        });
        let surplus = earlier.len().saturating_sub(Self::KEPT);
        earlier.drain(..surplus);
        earlier
    }
}

/// An attempt that was not the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it ended.
    pub at: Timestamp,
    /// Class and reason.
    pub outcome: Outcome,
    /// HTTP status, when there was one.
    pub status: Option<u16>,
}

/// URLs that were handed to the URL server at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimRecord {
    pub(crate) at: Timestamp,
    pub(crate) urls: Vec<Claimed>,
}

/// A place in the queue of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    pub(crate) url_hash: u64,
    pub(crate) doc_id: u32,
    pub(crate) attempts: u8,
    pub(crate) kind: LinkKind,
    pub(crate) depth: u16,
    pub(crate) chain: Vec<UrlKey>,
    pub(crate) url: CrawlUrl,
    pub(crate) revisit: Option<Box<Revisit>>,
}

impl QueueRecord {
    /// True when the URL has brought something before.
    pub(crate) fn is_visit(&self) -> bool {
        self.revisit
            .as_ref()
            .is_some_and(|before| before.digest != 0)
    }

    /// The same as the URL server gets it.
    pub(crate) fn candidate(self, host: u64) -> Candidate {
        Candidate {
            key: UrlKey {
                host,
                url: self.url_hash,
            },
            doc_id: self.doc_id,
            url: self.url,
            kind: self.kind,
            depth: self.depth,
            attempts: self.attempts,
            chain: self.chain,
            revisit: self.revisit,
        }
    }
}

/// What is known of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// URLs waiting in its queue, claimed ones and retries included.
    pub queued: u32,
    /// URLs of it for which a request was made, whatever came of it: what its page budget counts.
    pub asked: u32,
    /// The budget that is spent: no new URL is queued for it.
    pub spent: Option<Spent>,
    /// Not to be asked before this moment.
    pub not_before: Timestamp,
    /// Requests to it, repeated ones included.
    pub requests: u32,
    /// Bytes received from it, in all attempts.
    pub bytes: u64,
    /// When the first request to it ended.
    pub since: Option<Timestamp>,
    /// Attempts at its URLs that failed, repeated ones included, whether a request was made or not.
    pub failed: u32,
    /// How long its answers take in milliseconds: each new one counts for an eighth.
    pub millis: u32,
    /// How it has answered lately, for whoever asks it next.
    pub pace: Pace,
    /// Since when an operator has blocked it.
    pub blocked: Option<Timestamp>,
    /// The time between two requests that an operator has set for it.
    pub gap: Option<Duration>,
}

impl HostRecord {
    /// Takes in what an attempt tells about the host.
    pub(crate) fn learn(&mut self, report: &Report) {
        let column = report.outcome.class.column();
        self.failed += u32::from(matches!(column, Column::Failed | Column::Queued));
        self.bytes = self.bytes.saturating_add(report.bytes);
        if report.ip.is_some() {
            self.since = self.since.or(Some(report.at));
            self.millis = match self.requests {
                0 => report.millis,
                _ => average(self.millis, report.millis),
            };
            self.requests += 1;
            match report.outcome.class.is_trouble(report.status) {
                true => self.pace.failed(),
                false => self
                    .pace
                    .answered(Duration::from_millis(report.millis.into())),
            }
        }
    }
}

/// Moves an average an eighth of the way, so that some thirty answers make it forget what was before.
fn average(before: u32, now: u32) -> u32 {
    let sum = u64::from(before) * 7 + u64::from(now) + 4;
    u32::try_from(sum / 8).unwrap_or(u32::MAX)
}

/// Bytes before the record itself: the format and the checksum.
const HEAD: usize = 5;

/// Writes a record.
pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    // Nearly all records fit, and none of those makes the vector grow.
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(&[FORMAT, 0, 0, 0, 0]);
    // Writing plain data into a vector cannot fail; an empty value would be found by every reader.
    let mut bytes = postcard::to_extend(record, head).unwrap_or_default();
    if let Some((head, rest)) = bytes.split_at_mut_checked(HEAD) {
        let sum = checksum(rest);
        if let Some(place) = head.get_mut(1..) {
            place.copy_from_slice(&sum);
        }
    }
    bytes
}

/// Reads a record.
pub(crate) fn decode<T: DeserializeOwned>(keyspace: &'static str, bytes: &[u8]) -> Result<T> {
    let damaged = |why: String| Error::Record { keyspace, why };
    match bytes.split_first() {
        Some((&FORMAT, rest)) => {
            let Some((sum, rest)) = rest.split_first_chunk::<4>() else {
                return Err(damaged("it is cut short".into()));
            };
            if *sum != checksum(rest) {
                return Err(damaged("its checksum is wrong".into()));
            }
            postcard::from_bytes(rest).map_err(|error| damaged(error.to_string()))
        }
        Some((other, _)) => Err(damaged(format!("unknown format {other}"))),
        None => Err(damaged("it is empty".into())),
    }
}

/// Whether a record is as it was written, whatever it is a record of.
pub(crate) fn is_intact(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(&[FORMAT]);
    rest.and_then(<[u8]>::split_first_chunk::<4>)
        .is_some_and(|(sum, rest)| *sum == checksum(rest))
}

/// The store checks its blocks; this checks what came through the store, the RAM between included. 32 bits
/// do: a record is not attacked, it rots.
fn checksum(record: &[u8]) -> [u8; 4] {
    (xxhash_rust::xxh3::xxh3_64(record) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(priority: u8, depth: u16, doc_id: u32) -> LinkRecord {
        LinkRecord {
            doc_id,
            url: CrawlUrl::from_canonical("http://example.org/").unwrap(),
            kind: LinkKind::A,
            depth,
            priority,
            via: None,
            chain: Vec::new(),
            seen: Timestamp::from_millis(5),
            latent: None,
            shown: None,
        }
    }

    #[test]
    fn ranks_are_breadth_first_within_a_priority() {
        let order = [
            link(0, 9, 9),
            link(1, 0, 8),
            link(1, 2, 3),
            link(1, 2, 4),
            link(2, 0, 1),
        ];
        assert!(order.windows(2).all(|pair| pair[0].rank() < pair[1].rank()));
    }

    #[test]
    fn records_survive_and_damage_is_named() {
        let record = link(1, 2, 3);
        let bytes = encode(&record);
        assert_eq!(decode::<LinkRecord>("urls", &bytes).unwrap(), record);
        for cut in 0..bytes.len() {
            assert!(decode::<LinkRecord>("urls", &bytes[..cut]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<LinkRecord>("urls", &flipped).is_err(), "bit {bit}");
        }
        let mut other = bytes;
        other[0] = 9;
        assert!(
            decode::<LinkRecord>("urls", &other)
                .unwrap_err()
                .to_string()
                .contains("unknown format 9")
        );
    }
}
