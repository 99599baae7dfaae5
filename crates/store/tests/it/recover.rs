//! Crashes: a file cut anywhere is made whole.

use std::fs;
use std::path::Path;

use orbweaver_store::{IndexLine, Location, Writer, check, each_capture, get};
use proptest::prelude::*;

use crate::sample::{Sample, findings, new_dir, one_of_each, options, prose, store_all};

/// A directory with an unfinished file, as a killed process leaves it.
fn killed(dir: &Path, samples: &[Sample]) -> Vec<Location> {
    let (mut writer, _) = Writer::open(dir, options()).unwrap();
    store_all(&mut writer, samples)
}

fn listed(dir: &Path) -> Vec<IndexLine> {
    let mut lines = Vec::new();
    each_capture(dir, &mut |line| lines.push(line)).unwrap();
    lines
}

/// The files of `from` in a new directory.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = new_dir();
    for part in ["warc", "cdxj"] {
        fs::create_dir(to.path().join(part)).unwrap();
        for entry in fs::read_dir(from.join(part)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.path().join(part).join(entry.file_name())).unwrap();
        }
    }
    to
}

fn open_file(dir: &Path, part: &str) -> std::path::PathBuf {
    let mut files = fs::read_dir(dir.join(part))
        .unwrap()
        .map(|e| e.unwrap().path());
    files
        .find(|path| path.extension().unwrap() == "open")
        .unwrap()
}

fn cut(path: &Path, len: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

/// Takes over and says which of the samples are there, after seeing that all is clean.
fn survivors(dir: &Path, samples: &[Sample]) -> Vec<usize> {
    let before: Vec<String> = findings(dir);
    assert!(
        before.iter().all(|line| line.starts_with("note")),
        "{before:?}"
    );
    let (mut writer, _) = Writer::open(dir, options()).unwrap();
    assert_eq!(findings(dir), Vec::<String>::new());
    let lines = listed(dir);
    let stored = |sample: &Sample| match get(dir, &sample.surt, sample.url()).unwrap().document {
        Some(stored) => {
            assert_eq!(stored.response, sample.exchange().response);
            assert!(lines.iter().any(|line| line.url == stored.url));
            true
        }
        None => false,
    };
    let there = (0..samples.len())
        .filter(|n| stored(&samples[*n]))
        .collect();
    // And the writer goes on.
    let next = Sample::page("/next", 99, "next");
    store_all(&mut writer, std::slice::from_ref(&next));
    writer.close().unwrap();
    assert_eq!(findings(dir), Vec::<String>::new());
    assert!(get(dir, &next.surt, next.url()).unwrap().document.is_some());
    there
}

#[test]
fn cut_at_every_byte_of_the_last_group() {
    let dir = new_dir();
    let samples = [
        Sample::page("/a", 1, &prose(1, 1500)),
        Sample::page("/b", 2, "short"),
        Sample::page("/c", 3, "the last one"),
    ];
    let places = killed(dir.path(), &samples);
    let path = open_file(dir.path(), "warc");
    let full = path.metadata().unwrap().len();
    for len in places[2].offset..=full {
        let copy = copy(dir.path());
        cut(&open_file(copy.path(), "warc"), len);
        let expected: Vec<usize> = (0..if len == full { 3 } else { 2 }).collect();
        assert_eq!(
            survivors(copy.path(), &samples),
            expected,
            "cut at {len} of {full}"
        );
    }
}

#[test]
fn a_file_without_a_whole_group_disappears() {
    for keep in [0, 1, 100, 500] {
        let dir = new_dir();
        killed(dir.path(), &[Sample::page("/a", 1, &prose(1, 1500))]);
        cut(&open_file(dir.path(), "warc"), keep);
        let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
        assert_eq!(recovery.dropped.len(), 1);
        assert_eq!(fs::read_dir(dir.path().join("warc")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(dir.path().join("cdxj")).unwrap().count(), 0);
    }
}

#[test]
fn any_crash_between_the_steps_of_finishing_is_taken_up() {
    let samples = one_of_each();
    let unfinished = new_dir();
    killed(unfinished.path(), &samples);
    let finished = copy(unfinished.path());
    let (_, recovery) = Writer::open(finished.path(), options()).unwrap();
    assert_eq!(recovery.finished.len(), 1);
    assert!(recovery.cuts.is_empty());
    let name = recovery.finished[0].clone();
    let stem = name.strip_suffix(".warc.gz").unwrap().to_owned();
    let index = format!("cdxj/{stem}.cdxj");
    let sorted = fs::read(finished.path().join(&index)).unwrap();
    let all: Vec<usize> = (0..samples.len()).collect();

    // The sorted index half written; whole, but the WARC still open.
    for (half, content) in [(true, &sorted[..100]), (false, &sorted[..])] {
        let dir = copy(unfinished.path());
        let suffix = if half { ".new" } else { "" };
        fs::write(dir.path().join(format!("{index}{suffix}")), content).unwrap();
        assert_eq!(survivors(dir.path(), &samples), all);
        assert!(!dir.path().join(format!("{index}.new")).exists());
    }
    // The WARC finished, the unsorted index not removed yet.
    let dir = copy(finished.path());
    let open = format!("{index}.open");
    fs::copy(unfinished.path().join(&open), dir.path().join(&open)).unwrap();
    assert_eq!(survivors(dir.path(), &samples), all);
    assert!(!dir.path().join(&open).exists());
    // Either index lost.
    let dir = copy(unfinished.path());
    fs::remove_file(dir.path().join(&open)).unwrap();
    assert_eq!(survivors(dir.path(), &samples), all);
    assert_eq!(fs::read(dir.path().join(&index)).unwrap(), sorted);
    let dir = copy(finished.path());
    fs::remove_file(dir.path().join(&index)).unwrap();
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    assert_eq!(recovery.reindexed, [name]);
    assert_eq!(fs::read(dir.path().join(&index)).unwrap(), sorted);
}

#[test]
fn a_lost_index_of_a_damaged_file_names_what_is_whole() {
    let dir = new_dir();
    let samples: Vec<Sample> = (0..4)
        .map(|n| Sample::page(&format!("/{n}"), n, &prose(n, 1500)))
        .collect();
    let places = killed(dir.path(), &samples);
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    let name = &recovery.finished[0];
    let path = dir.path().join("warc").join(name);
    let mut bytes = fs::read(&path).unwrap();
    for place in [1, 2] {
        bytes[places[place].offset as usize + 300] ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let stem = name.strip_suffix(".warc.gz").unwrap();
    fs::remove_file(dir.path().join(format!("cdxj/{stem}.cdxj"))).unwrap();
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    assert_eq!(recovery.reindexed, std::slice::from_ref(name));
    let read = |sample: &Sample| get(dir.path(), &sample.surt, sample.url()).unwrap();
    let documents: Vec<bool> = samples.iter().map(|s| read(s).document.is_some()).collect();
    assert_eq!(documents, [true, false, false, true]);
    assert_eq!(check(dir.path(), &mut |_| {}).errors, 1);
}

#[test]
fn a_damaged_capture_is_named_and_an_older_one_read() {
    let dir = new_dir();
    let samples: Vec<Sample> = (0..3)
        .map(|n| Sample::page("/same", n, &prose(n, 1500)))
        .collect();
    let places = killed(dir.path(), &samples);
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    let path = dir.path().join("warc").join(&recovery.finished[0]);
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let newest = &samples[2];
    for (n, place) in places.iter().enumerate().rev() {
        bytes[place.offset as usize + 300] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let found = get(dir.path(), &newest.surt, newest.url()).unwrap();
        assert_eq!(found.damage.len(), places.len() - n);
        let said = found.damage.last().unwrap().to_string();
        assert!(said.contains(&format!("byte {}", place.offset)), "{said}");
        let older = samples.get(n.wrapping_sub(1));
        let expected = older.map(|sample| sample.exchange().response.clone());
        assert_eq!(
            found.document.map(|found| found.response),
            expected.map(Into::into)
        );
    }
    // A line whose key is damaged is found all the same, and one that says nothing is named.
    fs::write(&path, &whole).unwrap();
    let index = open_index(dir.path());
    let lines = fs::read_to_string(&index).unwrap();
    fs::write(
        &index,
        lines.replace("org,example)/same", "org,exbmple)/same"),
    )
    .unwrap();
    let found = get(dir.path(), &newest.surt, newest.url()).unwrap();
    assert!(found.document.is_some() && found.damage.is_empty());
    fs::write(&index, lines.replace('{', "[")).unwrap();
    let found = get(dir.path(), &newest.surt, newest.url()).unwrap();
    assert_eq!((found.document, found.damage.len()), (None, 3));
}

fn open_index(dir: &Path) -> std::path::PathBuf {
    let mut found = fs::read_dir(dir.join("cdxj")).unwrap();
    found.next().unwrap().unwrap().path()
}

#[test]
fn whole_groups_behind_damage_are_set_aside() {
    let dir = new_dir();
    let samples: Vec<Sample> = (0..3)
        .map(|n| Sample::page(&format!("/{n}"), n, &prose(n, 1500)))
        .collect();
    let places = killed(dir.path(), &samples);
    let path = open_file(dir.path(), "warc");
    let mut bytes = fs::read(&path).unwrap();
    bytes[places[1].offset as usize + 300] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let errors = check(dir.path(), &mut |_| {}).errors;
    assert_eq!(errors, 1, "{:?}", findings(dir.path()));
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    let kept = recovery.cuts[0].kept.clone().unwrap();
    assert_eq!(recovery.cuts[0].at, places[1].offset);
    assert_eq!(fs::read(kept).unwrap(), bytes[places[1].offset as usize..]);
    assert_eq!(listed(dir.path()).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cut_anywhere_gives_whole_groups_only(
        sizes in prop::collection::vec(0_usize..5000, 1..6),
        repeat in any::<bool>(),
        warc_cut in 0.0_f64..=1.0,
        cdxj_cut in 0.0_f64..=1.0,
    ) {
        let dir = new_dir();
        let body = |n: usize, size| prose(if repeat { 0 } else { n as u64 }, size);
        let samples: Vec<Sample> = sizes
            .iter()
            .enumerate()
            .map(|(n, size)| Sample::page(&format!("/{n}"), n as u64, &body(n, *size)))
            .collect();
        let places = killed(dir.path(), &samples);
        let at = |part, share: f64| {
            let path = open_file(dir.path(), part);
            let len = (path.metadata().unwrap().len() as f64 * share) as u64;
            cut(&path, len);
            len
        };
        let len = at("warc", warc_cut);
        let index_len = at("cdxj", cdxj_cut);
        prop_assert!(index_len < u64::MAX);
        let there = survivors(dir.path(), &samples);
        // Whole is what ends before the cut, which is where the next one begins.
        let whole = (0..samples.len() - 1).filter(|n| places[n + 1].offset <= len).count();
        prop_assert!(there.len() == whole || (warc_cut == 1.0 && there.len() == samples.len()));
        prop_assert!(there.iter().copied().eq(0..there.len()));
    }
}
