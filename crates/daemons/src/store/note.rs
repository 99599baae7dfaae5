//! What a store keeps with a result beyond its URL and its place: the record as it came, without its data.

use bytes::{Buf, Bytes};

use orbweaver_model::OutcomeClass;
use orbweaver_store::{Entry, StoredExchange};
use orbweaver_wire::{Data, Decoded, HttpCode, Record, Records};

/// The note to a record: what recognises it, and the record without data. None when it cannot be spelled.
pub(super) fn write(key: u128, record: &Record) -> Option<Vec<u8>> {
    let bare = Record {
        data: Bytes::new(),
        ..record.clone()
    };
    let mut note = key.to_be_bytes().to_vec();
    note.extend(bare.encode()?);
    Some(note)
}

/// Reads a note; none when there is none, as in an entry that was made again from the archive.
pub(super) fn read(entry: &Entry) -> Option<(u128, Record)> {
    let mut note = entry.note.as_slice();
    if note.len() < 16 {
        return None;
    }
    let key = note.get_u128();
    let mut records = Records::new(0);
    records.feed(note);
    match records.next() {
        Some(Decoded::Record(record)) => Some((key, record)),
        _ => None,
    }
}

/// The record of an exchange that came without a note: the process died before it was entered. Where a redirect leads is in
/// the message itself.
pub(super) fn record_of(stored: &StoredExchange) -> Record {
    let class = stored.outcome.as_ref().map(|outcome| outcome.class);
    let class = class.unwrap_or(OutcomeClass::Success);
    Record {
        doc_id: stored.doc_id.unwrap_or(0),
        success: class.is_document(),
        outcome: class,
        cut: stored.truncated,
        http: HttpCode::of(Some(stored.status).filter(|status| *status > 0)),
        kind: Data::Message,
        millis: stored.millis,
        url: stored.url.clone(),
        new_url: String::new(),
        data: Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orbweaver_model::{Purpose, Timestamp};
    use orbweaver_store::Standing;

    #[test]
    fn a_note_reads_as_it_was_written_and_others_do_not() {
        let record = Record {
            doc_id: 9,
            success: true,
            outcome: OutcomeClass::Success,
            cut: None,
            http: HttpCode::of(Some(200)),
            kind: Data::Message,
            millis: 12,
            url: "http://example.org/a".into(),
            new_url: "http://example.org/b".into(),
            data: Bytes::from_static(b"data"),
        };
        let entry = |note: &[u8]| Entry {
            at: Timestamp::from_millis(1),
            purpose: Purpose::Page,
            standing: Standing::Nothing,
            url: record.url.clone(),
            note: note.to_vec(),
        };
        let note = write(u128::MAX - 3, &record).unwrap();
        let bare = Record {
            data: Bytes::new(),
            ..record.clone()
        };
        assert_eq!(read(&entry(&note)), Some((u128::MAX - 3, bare)));
        for cut in 0..note.len() {
            assert_eq!(read(&entry(&note[..cut])), None, "{cut}");
        }
    }
}
