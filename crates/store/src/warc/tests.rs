//! Tests on a disk that fails: full, unable to sync, unable to cut, unwritable.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::archive::Archive;
use crate::error::StoreError;
use crate::exchange::get;
use crate::keep::{Keep, Kept, Notice};
use crate::options::StoreOptions;
use crate::sample::{Sample, findings, new_dir, options, prose};
use crate::warc::tail::Medium;
use crate::warc::writer::Writer;

/// What is wrong with the disk.
struct Faults {
    /// Bytes that still fit.
    space: AtomicU64,
    no_sync: AtomicBool,
    no_cut: AtomicBool,
    /// Files that can still be made.
    files: AtomicU64,
}

/// A file on that disk. A failed sync loses what was not synced, as the page cache does.
struct Faulty {
    file: File,
    synced: u64,
    faults: Arc<Faults>,
}

impl Medium for Faulty {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let space = self.faults.space.load(SeqCst) as usize;
        if space == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let wrote = self.file.write(&bytes[..bytes.len().min(space)])?;
        self.faults.space.fetch_sub(wrote as u64, SeqCst);
        Ok(wrote)
    }

    fn sync(&mut self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        if self.faults.no_sync.load(SeqCst) {
            self.file.set_len(self.synced)?;
            self.file.set_len(len)?;
            return Err(io::Error::other("the disk is gone"));
        }
        self.synced = len;
        Ok(())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        if self.faults.no_cut.load(SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        let before = self.file.metadata()?.len();
        self.faults
            .space
            .fetch_add(before.saturating_sub(len), SeqCst);
        self.file.set_len(len)
    }
}

/// A writer on such a disk.
fn open(dir: &Path, options: StoreOptions) -> (Writer, Arc<Faults>) {
    let faults = Arc::new(Faults {
        space: AtomicU64::new(1 << 30),
        no_sync: AtomicBool::new(false),
        no_cut: AtomicBool::new(false),
        files: AtomicU64::new(1000),
    });
    let (mut writer, _) = Writer::open(dir, options).unwrap();
    let disk = Arc::clone(&faults);
    writer.opener = Box::new(move |path| {
        if disk.files.load(SeqCst) == 0 {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        disk.files.fetch_sub(1, SeqCst);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        let faults = Arc::clone(&disk);
        Ok(Box::new(Faulty {
            file,
            synced: 0,
            faults,
        }))
    });
    (writer, faults)
}

fn pages(count: u64) -> Vec<Sample> {
    let page = |n| Sample::page(&format!("/{n}"), n, &prose(n, 1500));
    (0..count).map(page).collect()
}

fn append(writer: &mut Writer, samples: &[Sample]) {
    let archivist = writer.archivist();
    let mut scratch = archivist.scratch();
    for sample in samples {
        let prepared = sample.prepare(&archivist, &mut scratch);
        writer.append(&prepared).unwrap();
    }
}

fn all_stored(dir: &Path, samples: &[Sample]) {
    for sample in samples {
        let stored = get(dir, &sample.surt, sample.url())
            .unwrap()
            .document
            .unwrap();
        assert_eq!(stored.response, sample.exchange().response);
    }
    assert_eq!(findings(dir), Vec::<String>::new());
}

#[test]
fn a_full_disk_leaves_whole_groups_and_the_writer_goes_on() {
    for space in [0, 1, 100, 1000, 2500, 6000] {
        let dir = new_dir();
        let (mut writer, faults) = open(dir.path(), options());
        let samples = pages(6);
        append(&mut writer, &samples[..2]);
        writer.sync().unwrap();
        faults.space.store(space, SeqCst);
        append(&mut writer, &samples[2..]);
        for _ in 0..3 {
            let error = writer.sync().unwrap_err();
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
            let found = findings(dir.path());
            let torn = found
                .iter()
                .any(|line| !line.contains("no line for this record"));
            assert!(!torn, "only index lines may be missing: {found:?}");
        }
        faults.space.store(1 << 30, SeqCst);
        writer.close().unwrap();
        all_stored(dir.path(), &samples);
    }
}

#[test]
fn what_a_failed_sync_lost_is_written_again() {
    let dir = new_dir();
    let (mut writer, faults) = open(dir.path(), options());
    let samples = pages(4);
    append(&mut writer, &samples[..2]);
    writer.sync().unwrap();
    faults.no_sync.store(true, SeqCst);
    append(&mut writer, &samples[2..]);
    writer.flush().unwrap();
    assert!(matches!(writer.sync(), Err(StoreError::Io { .. })));
    // What could not be synced is gone from the file; the index is only ahead of it.
    let found = findings(dir.path());
    let ahead = |line: &String| line.contains("no whole exchange begins at");
    assert!(found.len() == 2 && found.iter().all(ahead), "{found:?}");
    faults.no_sync.store(false, SeqCst);
    writer.close().unwrap();
    all_stored(dir.path(), &samples);
}

#[test]
fn a_file_that_could_not_be_cut_is_cut_before_the_next_write() {
    let dir = new_dir();
    let (mut writer, faults) = open(dir.path(), options());
    let samples = pages(3);
    append(&mut writer, &samples[..1]);
    writer.sync().unwrap();
    append(&mut writer, &samples[1..]);
    faults.no_cut.store(true, SeqCst);
    faults.space.store(1000, SeqCst);
    writer.flush().unwrap_err();
    faults.space.store(1 << 30, SeqCst);
    writer.flush().unwrap_err();
    faults.no_cut.store(false, SeqCst);
    writer.close().unwrap();
    all_stored(dir.path(), &samples);
}

#[test]
fn a_file_that_could_not_be_begun_leaves_nothing_in_the_way() {
    for files in [0, 1] {
        let dir = new_dir();
        let (mut writer, faults) = open(dir.path(), options());
        faults.files.store(files, SeqCst);
        let samples = pages(1);
        let archivist = writer.archivist();
        let prepared = samples[0].prepare(&archivist, &mut archivist.scratch());
        let error = writer.append(&prepared).unwrap_err();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
        faults.files.store(2, SeqCst);
        writer.append(&prepared).unwrap();
        writer.close().unwrap();
        all_stored(dir.path(), &samples);
    }
}

#[test]
fn an_index_that_grows_large_ends_its_file() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    writer.max_index = 500;
    let samples = pages(10);
    append(&mut writer, &samples);
    writer.close().unwrap();
    all_stored(dir.path(), &samples);
    let files = std::fs::read_dir(dir.path().join("warc")).unwrap().count();
    assert_eq!(files, 4, "three lines pass 500 bytes");
}

/// What an archive says, in the order in which it says it.
enum Heard {
    Trouble(bool),
    Ack(Result<Kept, StoreError>),
}

/// Submits pages to an archive on a broken disk.
fn submit(
    dir: &Path,
    samples: &[Sample],
    break_disk: fn(&Faults),
) -> (Archive, Arc<Faults>, mpsc::Receiver<Heard>) {
    let options = StoreOptions {
        retry: Duration::from_millis(1),
        ..options()
    };
    let (writer, faults) = open(dir, options);
    break_disk(&faults);
    let (tell, heard) = mpsc::sync_channel(100_000);
    let trouble = tell.clone();
    let archive = Archive::start(writer, &mut |_| {}, move |notice| match notice {
        Notice::Failing(_) => trouble.send(Heard::Trouble(true)).unwrap(),
        Notice::Working => trouble.send(Heard::Trouble(false)).unwrap(),
        Notice::Durable(_) => {}
    });
    let archive = archive.unwrap();
    for sample in samples {
        let tell = tell.clone();
        let ack = move |answer| tell.send(Heard::Ack(answer)).unwrap();
        archive.put(&sample.capture(), b"", Box::new(ack));
    }
    (archive, faults, heard)
}

fn full(faults: &Faults) {
    faults.space.store(700, SeqCst);
}

fn unsyncable(faults: &Faults) {
    faults.no_sync.store(true, SeqCst);
}

#[test]
fn nothing_is_acknowledged_while_the_disk_fails_and_everything_after() {
    for break_disk in [full, unsyncable] {
        let dir = new_dir();
        let samples = pages(5);
        let (archive, faults, heard) = submit(dir.path(), &samples, break_disk);
        for _ in 0..5 {
            assert!(matches!(heard.recv().unwrap(), Heard::Trouble(true)));
            assert!(archive.trouble().is_some());
        }
        faults.no_sync.store(false, SeqCst);
        faults.space.store(1 << 30, SeqCst);
        archive.close().unwrap();
        let acks = heard.try_iter().filter(|h| matches!(h, Heard::Ack(Ok(_))));
        assert_eq!(acks.count(), samples.len());
        all_stored(dir.path(), &samples);
    }
}

#[test]
fn the_end_of_the_trouble_is_told() {
    let dir = new_dir();
    let (_archive, faults, heard) = submit(dir.path(), &pages(1), full);
    assert!(matches!(heard.recv().unwrap(), Heard::Trouble(true)));
    faults.space.store(1 << 30, SeqCst);
    let mut rest = heard
        .iter()
        .skip_while(|h| matches!(h, Heard::Trouble(true)));
    assert!(matches!(rest.next(), Some(Heard::Ack(Ok(_)))));
    assert!(matches!(rest.next(), Some(Heard::Trouble(false))));
}

#[test]
fn told_to_stop_on_a_full_disk_it_says_what_is_not_stored() {
    let dir = new_dir();
    let samples = pages(5);
    let (archive, _, heard) = submit(dir.path(), &samples, full);
    assert!(matches!(heard.recv().unwrap(), Heard::Trouble(true)));
    assert!(matches!(archive.close(), Err(StoreError::Full { .. })));
    let refused = |h: &Heard| matches!(h, Heard::Ack(Err(StoreError::Full { .. })));
    assert_eq!(heard.try_iter().filter(refused).count(), samples.len());
    Writer::open(dir.path(), options()).unwrap();
    assert_eq!(findings(dir.path()), Vec::<String>::new());
}
