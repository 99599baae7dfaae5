//! One suite on two forms of an archive: the one in WARC files, and one that holds everything in memory.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use orbweaver_model::{CapturePlace, Purpose, Timestamp};

use super::*;
use crate::archive::Archive;
use crate::files::Layout;
use crate::http_head;
use crate::options::StoreOptions;
use crate::results::{Draft, Standing, Writing};
use crate::sample::{Sample, new_dir, options, prose};
use crate::warc::writer::Writer;

/// An archive in memory, with its results on disk. It knows nothing of WARC.
struct Memory {
    state: Mutex<State>,
    results: Results,
}

struct State {
    exchanges: Vec<StoredExchange>,
    journal: Writing,
    is_open: bool,
}

impl Memory {
    fn open(dir: &Path) -> Self {
        let layout = Layout::new(dir);
        layout.create().unwrap();
        let options = StoreOptions {
            durable_results: true,
            ..options()
        };
        let journal = Writing::open(&layout, &options, &mut |_| {}).unwrap();
        Self {
            results: journal.results(),
            state: Mutex::new(State {
                exchanges: Vec::new(),
                journal,
                is_open: true,
            }),
        }
    }

    fn finish(&self, mut draft: Draft, standing: Standing, ack: Ack) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_open {
            return ack(Err(StoreError::Stopped));
        }
        draft.stands(standing);
        let position = state.journal.append(&draft).unwrap();
        state.journal.sync().unwrap();
        ack(Ok(Kept {
            position,
            place: standing.place(),
            digest: None,
        }));
    }
}

impl Keep for Memory {
    fn put(&self, capture: &Capture<'_>, note: &[u8], ack: Ack) -> Placed {
        let exchange = capture.result.exchange.as_ref().unwrap();
        let stored = StoredExchange::of(capture, exchange);
        let offset = {
            let mut state = self.state.lock().unwrap();
            state.exchanges.push(stored);
            state.exchanges.len() as u64
        };
        let place = CapturePlace { file: 0, offset };
        let (at, purpose) = (capture.result.ended, capture.of.purpose());
        let draft = Draft::new(at, purpose, capture.url.as_str(), note);
        self.finish(draft, Standing::Stored(place), ack);
        Placed::at(place)
    }

    fn enter(&self, attempt: &Attempt<'_>, ack: Ack) {
        let draft = Draft::new(attempt.at, attempt.purpose, attempt.url, attempt.note);
        let same = attempt.same.and_then(Placed::get);
        self.finish(draft, same.map_or(Standing::Nothing, Standing::Before), ack);
    }

    fn read(&self, place: CapturePlace, max: u64) -> Result<StoredExchange, StoreError> {
        let state = self.state.lock().unwrap();
        let at = usize::try_from(place.offset).unwrap().checked_sub(1);
        let found = at.and_then(|at| state.exchanges.get(at));
        let missing = || StoreError::damaged(Path::new("memory"), place.offset, "nothing is here");
        let mut found = found.ok_or_else(missing)?.clone();
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        found.response.truncate(max);
        Ok(found)
    }

    fn results(&self) -> &Results {
        &self.results
    }

    fn backlog(&self) -> usize {
        0
    }

    fn trouble(&self) -> Option<StoreError> {
        None
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap();
        state.is_open = false;
        state.journal.close()
    }
}

impl StoredExchange {
    fn of(capture: &Capture<'_>, exchange: &orbweaver_model::Exchange) -> Self {
        Self {
            url: capture.url.as_str().to_owned(),
            surt: capture.surt.to_owned(),
            started: capture.result.started,
            ip: capture.result.connected,
            request: exchange.request.to_vec(),
            response: exchange.response.to_vec(),
            head_len: http_head::head_len(&exchange.response),
            status: exchange.status,
            protocol: exchange.protocol,
            truncated: exchange.truncated,
            revisit: false,
            unchanged_since: None,
            outcome: Some(capture.outcome.clone()),
            millis: capture.result.millis(),
            wire_bytes: capture.result.wire_bytes,
            purpose: capture.of.purpose(),
            doc_id: None,
            metadata: Vec::new(),
        }
    }
}

/// An acknowledgement, and where it is heard.
fn ack() -> (Ack, Receiver<Result<Kept, StoreError>>) {
    let (tell, heard) = sync_channel(1);
    (Box::new(move |kept| tell.send(kept).unwrap()), heard)
}

fn put(keep: &dyn Keep, sample: &Sample, note: &[u8]) -> (Placed, Kept) {
    let (ack, heard) = ack();
    let placed = keep.put(&sample.capture(), note, ack);
    (placed, heard.recv().unwrap().unwrap())
}

/// What every archive does.
fn suite(keep: &dyn Keep) {
    let pages: Vec<Sample> = (0..5)
        .map(|n| Sample::page(&format!("/{n}"), n, &prose(n, 2000)))
        .collect();
    let mut results = keep.results().after(0).unwrap();
    assert_eq!(keep.results().last(), 0);
    for (number, page) in (1..).zip(&pages) {
        let note = [u8::try_from(number).unwrap()];
        let (placed, kept) = put(keep, page, &note);
        // Acknowledged means: numbered, placed, followed and read.
        assert_eq!(kept.position, number);
        assert_eq!(placed.get(), kept.place);
        assert_eq!(kept.archived().unwrap().position, number);
        let stored = keep.read(kept.place.unwrap(), u64::MAX).unwrap();
        assert_eq!(stored.response, page.exchange().response);
        assert_eq!(
            (stored.url.as_str(), stored.purpose),
            (page.url(), Purpose::Page)
        );
        let beginning = keep.read(kept.place.unwrap(), 10).unwrap();
        assert_eq!(beginning.response, page.exchange().response[..10]);
        let (position, entry) = results.next_entry().unwrap().unwrap();
        assert_eq!((position, entry.place()), (number, kept.place));
        assert_eq!(
            (entry.url.as_str(), entry.at),
            (page.url(), page.result.ended)
        );
        assert_eq!(entry.note, note);
    }
    // The same again, and nothing at all.
    let (first, _) = put(keep, &pages[0], b"");
    for same in [Some(&first), None] {
        let (ack, heard) = ack();
        let attempt = Attempt {
            at: Timestamp::from_millis(7),
            purpose: Purpose::Page,
            url: "http://example.org/again",
            note: b"n",
            same,
        };
        keep.enter(&attempt, ack);
        let kept = heard.recv().unwrap().unwrap();
        assert_eq!(kept.place, same.and_then(Placed::get));
    }
    let rest: Vec<_> = std::iter::from_fn(|| results.next_entry().unwrap()).collect();
    let standing = |at: usize| rest[at].1.standing;
    let place = first.get().unwrap();
    assert_eq!(standing(0), Standing::Stored(place));
    assert_eq!(standing(1), Standing::Before(place));
    assert_eq!(standing(2), Standing::Nothing);
    assert_eq!(rest[2].0, 8);
    assert!(keep.trouble().is_none() && keep.backlog() == 0);
    let nowhere = CapturePlace {
        file: 77,
        offset: 3000,
    };
    assert!(keep.read(nowhere, 10).unwrap_err().is_damage());
    keep.close().unwrap();
    keep.close().unwrap();
    let (ack, heard) = ack();
    keep.put(&pages[0].capture(), b"", ack);
    assert!(matches!(heard.recv().unwrap(), Err(StoreError::Stopped)));
}

#[test]
fn an_archive_in_warc_files_keeps_its_word() {
    for durable_results in [false, true] {
        let dir = new_dir();
        let options = StoreOptions {
            durable_results,
            ..options()
        };
        let (writer, _) = Writer::open(dir.path(), options).unwrap();
        suite(&Archive::start(writer, &mut |_| {}, |_| {}).unwrap());
    }
}

#[test]
fn an_archive_in_memory_keeps_its_word() {
    let dir = new_dir();
    suite(&Memory::open(dir.path()));
}
