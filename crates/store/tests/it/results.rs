//! The results: what survives a kill and a power cut, what followers hear, what is forgotten.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use orbweaver_model::{CapturePlace, Purpose};
use orbweaver_store::{
    Archive, Begin, Entry, Keep, Kept, Standing, StoreError, StoreOptions, Writer, check_results,
    read_place,
};

use crate::sample::{Sample, findings, new_dir, one_of_each, options, prose};

fn open(dir: &Path, options: StoreOptions) -> Archive {
    let (writer, _) = Writer::open(dir, options).unwrap();
    Archive::start(writer, &mut |_| {}, |_| {}).unwrap()
}

/// Segments that hold a handful of entries, and WARC files that hold a few exchanges.
fn small() -> StoreOptions {
    StoreOptions {
        results_segment: 150,
        rotate_bytes: 5000,
        ..options()
    }
}

fn page(n: u64) -> Sample {
    Sample::page(&format!("/{n}"), n, &prose(n, 1500))
}

/// Puts pages into the archive, each after the one before was acknowledged.
fn put(archive: &Archive, samples: &[Sample]) -> Vec<Kept> {
    let put = |sample: &Sample| {
        let (tell, heard) = mpsc::sync_channel(1);
        let ack = Box::new(move |kept: Result<Kept, _>| tell.send(kept.unwrap()).unwrap());
        archive.put(&sample.capture(), b"", ack);
        heard.recv().unwrap()
    };
    samples.iter().map(put).collect()
}

fn after(archive: &Archive, position: u64) -> Vec<(u64, Entry)> {
    let mut reading = archive.results().after(position).unwrap();
    std::iter::from_fn(|| reading.next_entry().unwrap()).collect()
}

/// Without positions, which entries do not have that come from the archive.
fn bare(entries: &[(u64, Entry)]) -> Vec<Entry> {
    entries.iter().map(|(_, entry)| entry.clone()).collect()
}

fn sound(dir: &Path) -> u64 {
    let mut found = Vec::new();
    let entries = check_results(dir, &mut |it| found.push(it.to_string())).unwrap();
    assert_eq!(found, Vec::<String>::new());
    entries
}

/// A copy of a directory as a kill would leave it at this moment.
fn killed(dir: &Path) -> tempfile::TempDir {
    let copy = new_dir();
    copy_into(dir, copy.path());
    copy
}

fn copy_into(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_into(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("results")).unwrap();
    let mut logs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|it| it == "log"));
    logs.sort();
    logs
}

#[test]
fn every_exchange_has_an_entry_with_its_place() {
    let dir = new_dir();
    let archive = open(dir.path(), options());
    let samples = one_of_each();
    let kept = put(&archive, &samples);
    let entries = after(&archive, 0);
    assert_eq!(entries.len(), samples.len());
    for (((position, entry), kept), sample) in entries.iter().zip(&kept).zip(&samples) {
        assert_eq!((*position, entry.place()), (kept.position, kept.place));
        assert_eq!(
            (entry.url.as_str(), entry.at),
            (sample.url(), sample.result.ended)
        );
        let stored = archive.read(kept.place.unwrap(), u64::MAX).unwrap();
        assert_eq!(
            (stored.purpose, stored.url.as_str()),
            (entry.purpose, sample.url())
        );
        let is_robots = entry.purpose == Purpose::Robots;
        assert_eq!(is_robots, sample.is_robots);
    }
    archive.close().unwrap();
    assert_eq!(sound(dir.path()), samples.len() as u64);
}

#[test]
fn what_the_journal_lost_is_entered_again_from_the_archive() {
    let dir = new_dir();
    let archive = open(dir.path(), small());
    let mut samples: Vec<Sample> = (0..12).map(page).collect();
    samples.extend(one_of_each());
    put(&archive, &samples);
    let entries = after(&archive, 0);
    let alive = killed(dir.path());
    archive.close().unwrap();
    for dir in [dir, alive] {
        // All of it, as in a directory of an earlier version; each segment; any number of bytes at the end.
        let files = logs(dir.path());
        assert!(files.len() > 2);
        for file in &files {
            let copy = killed(dir.path());
            fs::remove_file(copy.path().join("results").join(file.file_name().unwrap())).unwrap();
            let archive = open(copy.path(), small());
            assert_eq!(bare(&after(&archive, 0)), bare(&entries));
            assert_eq!(archive.results().last(), entries.len() as u64);
        }
        let last = files.last().unwrap();
        let whole = fs::read(last).unwrap();
        for cut in (0..whole.len()).step_by(7) {
            fs::write(last, &whole[..cut]).unwrap();
            let copy = killed(dir.path());
            let archive = open(copy.path(), small());
            assert_eq!(after(&archive, 0), entries, "{cut}");
        }
        fs::remove_dir_all(dir.path().join("results")).unwrap();
        let archive = open(dir.path(), small());
        assert_eq!(after(&archive, 0), entries);
        put(&archive, &[page(99)]);
        assert_eq!(after(&archive, entries.len() as u64).len(), 1);
        archive.close().unwrap();
        assert_eq!(sound(dir.path()), entries.len() as u64 + 1);
        assert_eq!(findings(dir.path()), Vec::<String>::new());
    }
}

/// After a power cut the journal may have pages that the archive lost: they were never acknowledged.
#[test]
fn what_the_archive_lost_is_cut_from_the_journal() {
    let dir = new_dir();
    let archive = open(dir.path(), options());
    let kept = put(&archive, &(0..10).map(page).collect::<Vec<_>>());
    let copy = killed(dir.path());
    drop(archive);
    let warc = fs::read_dir(copy.path().join("warc")).unwrap().next();
    let warc = warc.unwrap().unwrap().path();
    let at = kept[6].place.unwrap().offset + 10;
    let file = OpenOptions::new().write(true).open(&warc).unwrap();
    file.set_len(at).unwrap();
    let archive = open(copy.path(), options());
    assert_eq!(archive.results().last(), 6);
    let again = put(&archive, &[page(77)]);
    assert_eq!(again[0].position, 7);
    // A number is never given twice, though that file is still there.
    assert_eq!(again[0].place.unwrap().file, 2);
    let urls: Vec<String> = after(&archive, 5).into_iter().map(|(_, e)| e.url).collect();
    assert_eq!(urls, ["http://example.org/5", "http://example.org/77"]);
    archive.close().unwrap();
    assert_eq!(sound(copy.path()), 7);
}

#[test]
fn damage_in_a_crawls_journal_is_mended_from_the_archive() {
    let dir = new_dir();
    let archive = open(dir.path(), small());
    put(&archive, &(0..30).map(page).collect::<Vec<_>>());
    let entries = after(&archive, 0);
    archive.close().unwrap();
    for file in logs(dir.path()) {
        let whole = fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(61) {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&file, &bytes).unwrap();
            let copy = killed(dir.path());
            let archive = open(copy.path(), small());
            assert_eq!(after(&archive, 0), entries, "{} at {at}", file.display());
        }
        fs::write(&file, &whole).unwrap();
    }
}

#[test]
fn damage_in_a_stores_journal_stops_it() {
    let dir = new_dir();
    let durable = || StoreOptions {
        durable_results: true,
        ..small()
    };
    let archive = open(dir.path(), durable());
    put(&archive, &(0..30).map(page).collect::<Vec<_>>());
    archive.close().unwrap();
    let first = logs(dir.path()).remove(0);
    let mut bytes = fs::read(&first).unwrap();
    bytes[100] ^= 4;
    fs::write(&first, bytes).unwrap();
    let (writer, _) = Writer::open(dir.path(), durable()).unwrap();
    let error = Archive::start(writer, &mut |_| {}, |_| {}).err().unwrap();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let mut errors = 0;
    check_results(dir.path(), &mut |_| errors += 1).unwrap();
    assert!(errors > 0);
}

#[test]
fn the_journal_of_an_earlier_store_is_a_clear_error() {
    let dir = new_dir();
    fs::create_dir(dir.path().join("results")).unwrap();
    fs::write(dir.path().join("results/000001.log"), b"OWRSLT1\n").unwrap();
    let (writer, _) = Writer::open(dir.path(), options()).unwrap();
    let error = Archive::start(writer, &mut |_| {}, |_| {}).err().unwrap();
    assert!(matches!(error, StoreError::Version { .. }), "{error}");
}

#[test]
fn a_slow_follower_holds_nothing_up_and_loses_nothing() {
    let dir = new_dir();
    let archive = open(dir.path(), small());
    let mut slow = archive.results().follower("slow", Begin::First).unwrap();
    let mut killed_one = archive.results().follower("killed", Begin::First).unwrap();
    put(&archive, &(0..20).map(page).collect::<Vec<_>>());
    let full = logs(dir.path()).len();
    assert!(full > 4);
    // The doc index is through, and so is one of the others, but for what it was killed in.
    archive.results().folded(20).unwrap();
    for position in 1..=15 {
        assert_eq!(killed_one.next_entry().unwrap().unwrap().0, position);
        if position <= 10 {
            killed_one.have(position).unwrap();
        }
    }
    drop(killed_one);
    assert_eq!(
        logs(dir.path()).len(),
        full,
        "the slow one has read nothing yet"
    );
    assert_eq!(slow.next_entry().unwrap().unwrap().0, 1);
    slow.have(1).unwrap();
    archive.close().unwrap();
    drop(archive);

    let archive = open(dir.path(), small());
    let mut killed_one = archive.results().follower("killed", Begin::First).unwrap();
    let mut again = archive.results().follower("slow", Begin::First).unwrap();
    assert_eq!((killed_one.position(), again.position()), (10, 1));
    assert_eq!(killed_one.next_entry().unwrap().unwrap().0, 11);
    let heard: Vec<u64> = std::iter::from_fn(|| again.next_entry().unwrap())
        .map(|(position, entry)| {
            let stored = archive.read(entry.place().unwrap(), u64::MAX).unwrap();
            assert_eq!(stored.url, entry.url);
            position
        })
        .collect();
    assert_eq!(heard, (2..=20).collect::<Vec<_>>());
    assert!(!again.wait(Duration::ZERO));
    again.have(20).unwrap();
    killed_one.have(20).unwrap();
    archive.results().folded(20).unwrap();
    assert_eq!(logs(dir.path()).len(), 2);
    // More comes, and is heard of.
    put(&archive, &[page(50)]);
    assert!(again.wait(Duration::from_secs(60)));
    assert_eq!(again.next_entry().unwrap().unwrap().0, 21);
    assert_eq!(
        archive.results().follower("new", Begin::Now).unwrap().lag(),
        0
    );
    assert_eq!(
        archive
            .results()
            .follower("all", Begin::First)
            .unwrap()
            .lag(),
        21
    );
    archive.results().dismiss("slow").unwrap();
    archive.close().unwrap();
}

#[test]
fn what_was_forgotten_is_read_from_the_archive() {
    let dir = new_dir();
    let archive = open(dir.path(), small());
    let samples: Vec<Sample> = (0..25).map(page).collect();
    put(&archive, &samples);
    let entries = after(&archive, 0);
    assert!(archive.results().folded(25).unwrap() > 2);
    let first = archive.results().first();
    assert!(first > 5);
    let found = after(&archive, 0);
    assert_eq!(bare(&found), bare(&entries));
    // What is not in the journal has no position there.
    let (past, rest): (Vec<_>, Vec<_>) = found.iter().partition(|(position, _)| *position == 0);
    assert_eq!(past.len() as u64, first - 1);
    assert_eq!(rest[0].0, first);
    // Who is not that far behind hears only the journal.
    assert_eq!(after(&archive, first), entries[first as usize..]);
    archive.close().unwrap();
}

#[test]
fn places_hold_across_rotation_recovery_and_loss() {
    let dir = new_dir();
    let archive = open(dir.path(), small());
    let samples: Vec<Sample> = (0..40).map(page).collect();
    let mut places: Vec<CapturePlace> = Vec::new();
    let all_there = |dir: &Path, places: &[CapturePlace]| {
        for (place, sample) in places.iter().zip(&samples) {
            let stored = read_place(dir, *place, u64::MAX).unwrap();
            assert_eq!(stored.url, sample.url());
        }
    };
    for kept in put(&archive, &samples[..20]) {
        places.extend(kept.place);
    }
    all_there(dir.path(), &places);
    let dir = killed(dir.path());
    drop(archive);
    let archive = open(dir.path(), small());
    all_there(dir.path(), &places);
    for kept in put(&archive, &samples[20..]) {
        places.extend(kept.place);
    }
    archive.close().unwrap();
    fs::remove_file(dir.path().join("results/files")).unwrap();
    all_there(dir.path(), &places);
    // The newest file is lost: its number is not given to another.
    let newest = places.last().unwrap().file;
    for sub in ["warc", "cdxj"] {
        let entries = fs::read_dir(dir.path().join(sub)).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.to_str().unwrap().contains(&format!("-{newest:05}.")) {
                fs::remove_file(path).unwrap();
            }
        }
    }
    let error = read_place(dir.path(), *places.last().unwrap(), 10).unwrap_err();
    assert!(error.is_damage(), "{error}");
    let archive = open(dir.path(), small());
    let kept = put(&archive, &[page(70)]);
    assert_eq!(kept[0].place.unwrap().file, newest + 1);
    assert!(matches!(
        after(&archive, 0).last().unwrap().1.standing,
        Standing::Stored(_)
    ));
}
