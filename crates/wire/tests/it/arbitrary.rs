//! Arbitrary bytes in arbitrary pieces: no decoder panics, hangs, holds more than its limit, or reads
//! differently because the stream was cut elsewhere.

use bytes::Bytes;
use orbweaver_model::{OutcomeClass, Truncation};
use orbweaver_wire::line::{MAX_LINE, read_order};
use orbweaver_wire::{
    Answers, Command, Data, Decoded, Entries, FromSpider, HttpCode, Lines, Record, Records,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const MAX_DATA: usize = 300;

/// The pieces of a stream, cut where the numbers say.
fn pieces<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    for cut in cuts {
        let (piece, rest) = bytes.split_at(cut % (bytes.len() + 1));
        found.push(piece);
        bytes = rest;
    }
    found.push(bytes);
    found
}

fn records_of(pieces: &[&[u8]]) -> Vec<Decoded> {
    let mut records = Records::new(MAX_DATA);
    let mut found = Vec::new();
    for piece in pieces {
        records.feed(piece);
        while let Some(decoded) = records.next() {
            found.push(decoded);
        }
        assert!(records.size() <= 2 * 65_535 + MAX_DATA);
        // Whatever is held is smaller than what the record under way may take.
        assert!(records.buffer().len() < records.size().max(20));
    }
    found
}

fn lines_of(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut lines = Lines::new();
    let mut found = Vec::new();
    for piece in pieces {
        lines.feed(piece);
        loop {
            match lines.next() {
                Ok(Some(line)) => found.push(line.to_vec()),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
        assert!(lines.rest().len() <= MAX_LINE + 1);
    }
    (found, false)
}

prop_compose! {
    fn record()(
        doc_id: u32,
        success: bool,
        outcome in select(OutcomeClass::ALL),
        cut in select(&[None, Some(Truncation::Length), Some(Truncation::Time), Some(Truncation::Disconnect)][..]),
        status in prop::option::of(0u16..1000),
        whole: bool,
        millis: u32,
        url in "[!-~]{1,80}",
        new_url in "[!-~]{0,80}",
        data in vec(any::<u8>(), 0..MAX_DATA),
    ) -> Record {
        let (http, data) = (HttpCode::of(status), Bytes::from(data));
        let kind = if whole { Data::Message } else { Data::Body };
        Record { doc_id, success, outcome, cut, http, kind, millis, url, new_url, data }
    }
}

proptest! {
    #[test]
    fn records_come_back_however_they_are_cut(
        records in vec(record(), 0..8),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let bytes: Vec<u8> = records.iter().flat_map(|it| it.encode().unwrap()).collect();
        let read = records_of(&pieces(&bytes, &cuts));
        let wanted: Vec<Decoded> = records.into_iter().map(Decoded::Record).collect();
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn arbitrary_bytes_are_some_records(
        bytes in vec(any::<u8>(), 0..4000),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        prop_assert_eq!(records_of(&[&bytes]), records_of(&pieces(&bytes, &cuts)));
    }

    /// Small lengths, so that arbitrary contents really are read.
    #[test]
    fn records_of_arbitrary_contents_keep_their_frame(
        heads in vec((any::<[u8; 12]>(), 0u8..9, 0u8..9, 0u16..1000), 0..6),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let mut bytes = Vec::new();
        for (numbers, url, new_url, data) in &heads {
            bytes.extend_from_slice(numbers);
            bytes.extend([0, *url, 0, *new_url, 0, 0]);
            bytes.extend(data.to_be_bytes());
            bytes.resize(bytes.len() + usize::from(*url) + usize::from(*new_url) + usize::from(*data), b'x');
        }
        let read = records_of(&pieces(&bytes, &cuts));
        prop_assert_eq!(read.len(), heads.len());
        for (decoded, (numbers, _, _, data)) in read.iter().zip(&heads) {
            let wanted = u32::from_be_bytes(*numbers.first_chunk().unwrap());
            match decoded {
                Decoded::Record(record) => {
                    prop_assert_eq!(record.doc_id, wanted);
                    prop_assert_eq!(record.data.len(), usize::from(*data).min(MAX_DATA));
                    let over = usize::from(*data) > MAX_DATA;
                    prop_assert!(!over || record.cut == Some(Truncation::Length));
                }
                Decoded::Refused { doc_id, .. } => prop_assert_eq!(*doc_id, wanted),
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_some_entries_and_some_answers(
        bytes in vec(any::<u8>(), 0..4000),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let entries_of = |pieces: &[&[u8]]| {
            let mut entries = Entries::new(MAX_DATA);
            let mut found = Vec::new();
            for piece in pieces {
                entries.feed(piece);
                while let Some(entry) = entries.next() { found.push(entry); }
            }
            found
        };
        prop_assert_eq!(entries_of(&[&bytes]), entries_of(&pieces(&bytes, &cuts)));
        let answers_of = |pieces: &[&[u8]]| {
            let mut answers = Answers::new();
            let mut found = Vec::new();
            for piece in pieces {
                answers.feed(piece);
                while let Some(answer) = answers.next() { found.push(answer); }
            }
            found
        };
        prop_assert_eq!(answers_of(&[&bytes]), answers_of(&pieces(&bytes, &cuts)));
        prop_assert_eq!(answers_of(&[&bytes]).len(), bytes.len() / 5);
    }

    #[test]
    fn lines_come_back_however_they_are_cut(
        bytes in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r')], 0..2000),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let (lines, _) = lines_of(&pieces(&bytes, &cuts));
        prop_assert_eq!(&lines, &lines_of(&[&bytes]).0);
        let ended = bytes.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines.len(), ended);
    }

    #[test]
    fn a_long_line_ends_the_stream_wherever_it_is_cut(
        before in 0usize..100,
        over in 1usize..3000,
        ended: bool,
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let mut bytes = b"ok\n".repeat(before);
        // One more than the limit may be the CR of an end that is still to come.
        bytes.resize(bytes.len() + MAX_LINE + 1 + over, b'x');
        if ended { bytes.push(b'\n'); }
        let (lines, long) = lines_of(&pieces(&bytes, &cuts));
        prop_assert!(long);
        prop_assert_eq!(lines.len(), before);
    }

    #[test]
    fn arbitrary_lines_are_read_or_refused(line in vec(any::<u8>(), 0..300)) {
        let _ = read_order(&line);
        let _ = FromSpider::read(&line);
        let _ = Command::read(&line);
    }

    #[test]
    fn likely_lines_are_read_or_refused(line in "[0-9]{0,22} ?[0-9]{0,12} ?[0-9a-f:.]{0,16} ?[!-~]{0,20}") {
        if let Ok(order) = read_order(line.as_bytes()) {
            let host = order.host.map(|host| format!(" {host}")).unwrap_or_default();
            let again = format!("{} {} {}{host} {}", order.trans, order.doc_id, order.ip, order.url);
            prop_assert!(read_order(again.as_bytes()).is_ok());
        }
    }
}
