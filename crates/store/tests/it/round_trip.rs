//! What goes in comes out.

use orbweaver_model::{OutcomeClass, Protocol, Revisit, Truncation};
use orbweaver_store::{
    Records, StoreOptions, Writer, captured_at, check, each_capture, get, lookup, read_at,
    read_place,
};

use crate::sample::{self, Sample, new_dir, one_of_each, options, prose, store_all};

#[test]
fn every_exchange_comes_back_byte_for_byte() {
    let dir = new_dir();
    let samples = one_of_each();
    let (mut writer, recovery) = Writer::open(dir.path(), options()).unwrap();
    assert!(recovery.finished.is_empty() && recovery.dropped.is_empty());
    let places = store_all(&mut writer, &samples);
    for finished in [false, true] {
        if finished {
            writer.close().unwrap();
        }
        for (sample, place) in samples.iter().zip(&places) {
            let stored = get(dir.path(), &sample.surt, sample.url())
                .unwrap()
                .document
                .unwrap();
            assert_eq!(
                stored,
                read_place(dir.path(), place.place(), u64::MAX).unwrap()
            );
            assert_eq!(stored.url, sample.url());
            assert_eq!(stored.surt, sample.surt);
            assert_eq!(stored.response, sample.exchange().response);
            assert_eq!(stored.request, sample.exchange().request);
            assert_eq!(stored.head_len, sample.exchange().head_len);
            assert_eq!(stored.status, sample.exchange().status);
            assert_eq!(stored.protocol, sample.exchange().protocol);
            assert_eq!(stored.truncated, sample.exchange().truncated);
            assert_eq!(stored.started, sample.result.started);
            assert_eq!(stored.ip, sample.result.connected);
            assert_eq!(
                (stored.millis, stored.wire_bytes),
                (42, sample.result.wire_bytes)
            );
            // How a robots.txt was found is no question.
            let hops = (!sample.is_robots).then_some("3");
            assert_eq!(stored.metadata("hopsFromSeed"), hops);
            assert_eq!(stored.metadata("via"), Some("http://example.org/"));
        }
        assert_eq!(sample::findings(dir.path()), Vec::<String>::new());
        let mut urls = Vec::new();
        each_capture(dir.path(), &mut |line| urls.push(line.url)).unwrap();
        urls.sort();
        let mut stored: Vec<&str> = samples.iter().map(Sample::url).collect();
        stored.sort_unstable();
        assert_eq!(urls, stored);
    }
    let summary = check(dir.path(), &mut |_| {});
    assert_eq!(
        (summary.captures, summary.revisits),
        (samples.len() as u64, 1)
    );
    assert_eq!(summary.records, 1 + 3 * samples.len() as u64);
    assert_eq!(summary.lines, samples.len() as u64);
}

#[test]
fn marks_of_an_exchange_are_kept() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    store_all(&mut writer, &one_of_each());
    let cut = get(dir.path(), "org,example)/cut", "http://example.org/cut");
    let cut = cut.unwrap().document.unwrap();
    assert_eq!(cut.truncated, Some(Truncation::Disconnect));
    let outcome = cut.outcome.unwrap();
    assert_eq!(outcome.class, OutcomeClass::Truncated);
    assert_eq!(
        outcome.reason, "cut\\u{d}\\u{a}short",
        "a line end in a reason must not end the line"
    );
    let h2 = get(dir.path(), "org,example)/h2", "http://example.org/h2");
    assert_eq!(h2.unwrap().document.unwrap().protocol, Protocol::Http2);
    let robots = get(
        dir.path(),
        "org,example)/robots.txt",
        "http://example.org/robots.txt",
    );
    let robots = robots.unwrap().document.unwrap();
    assert_eq!(robots.metadata("purpose"), Some("robots"));
    assert_eq!(robots.metadata("docId"), None);
}

#[test]
fn a_repeated_body_is_stored_once_and_only_when_its_first_is_synced() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archivist = writer.archivist();
    let mut scratch = archivist.scratch();
    let text = prose(5, 20_000);
    let mut put = |writer: &mut Writer, path: &str, second| {
        let prepared = Sample::page(path, second, &text).prepare(&archivist, &mut scratch);
        let size = prepared.size();
        writer.append(&prepared).unwrap();
        size
    };
    let first = put(&mut writer, "/1", 1);
    writer.flush().unwrap();
    let unsynced = put(&mut writer, "/2", 2);
    writer.sync().unwrap();
    let synced = put(&mut writer, "/3", 3);
    assert!(
        unsynced > first - 50,
        "nothing may refer to what a power cut can take"
    );
    assert!(synced < first / 2, "{synced} against {first}");
    writer.close().unwrap();
    // A new writer learns the payloads from the index.
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archivist = writer.archivist();
    let sample = Sample::page("/4", 4, &text);
    let prepared = sample.prepare(&archivist, &mut archivist.scratch());
    assert!(prepared.size() < first / 2);
    writer.append(&prepared).unwrap();
    writer.close().unwrap();
    let stored = get(dir.path(), &sample.surt, sample.url())
        .unwrap()
        .document
        .unwrap();
    assert!(stored.revisit);
    assert_eq!(stored.response, sample.exchange().response);
    assert_eq!(sample::findings(dir.path()), Vec::<String>::new());
}

#[test]
fn small_cut_and_redirecting_bodies_are_never_revisits() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let text = prose(6, 2000);
    let moved = "HTTP/1.1 302 Found\nLocation: /x\nContent-Type: text/html";
    let mut cut = Sample::page("/cut", 4, &text);
    cut.result.exchange.as_mut().unwrap().truncated = Some(Truncation::Time);
    let samples = [
        Sample::page("/first", 1, &text),
        Sample::new("/moved", 2, moved, text.as_bytes()),
        cut,
        Sample::page("/small", 5, "tiny"),
        Sample::page("/small-too", 6, "tiny"),
    ];
    store_all(&mut writer, &samples);
    writer.close().unwrap();
    assert_eq!(check(dir.path(), &mut |_| {}).revisits, 0);
}

#[test]
fn files_rotate_by_size_and_every_capture_is_found() {
    let dir = new_dir();
    let options = StoreOptions {
        rotate_bytes: 10_000,
        ..options()
    };
    let (mut writer, _) = Writer::open(dir.path(), options.clone()).unwrap();
    let samples: Vec<Sample> = (0..40)
        .map(|n| Sample::page(&format!("/{n}"), n, &prose(n, 2000)))
        .collect();
    let places = store_all(&mut writer, &samples);
    writer.close().unwrap();
    let mut files: Vec<&str> = places.iter().map(|place| &*place.file).collect();
    files.dedup();
    assert!(files.len() > 3);
    assert!(files.is_sorted());
    for file in &files {
        let len = dir.path().join("warc").join(file).metadata().unwrap().len();
        assert!(len < 15_000, "{file} has {len} bytes");
    }
    for sample in &samples {
        let line = lookup(dir.path(), &sample.surt, sample.url()).unwrap();
        assert_eq!(line.unwrap().url, sample.url());
    }
    assert_eq!(
        lookup(dir.path(), "org,example)/41", "http://example.org/41").unwrap(),
        None
    );
    assert_eq!(sample::findings(dir.path()), Vec::<String>::new());
    // The numbers go on where the last run stopped.
    let (mut writer, _) = Writer::open(dir.path(), options).unwrap();
    let next = store_all(&mut writer, &[Sample::page("/next", 50, &prose(50, 100))]);
    assert!(*next[0].file > **files.last().unwrap());
}

#[test]
fn the_newest_capture_of_a_url_is_found() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    for (second, text) in [(1, "one"), (9, "nine"), (5, "five")] {
        store_all(&mut writer, &[Sample::page("/same", second, text)]);
        writer.close().unwrap();
    }
    // Another URL with the same key, as when a key ignores the case.
    let mut other = Sample::page("/SAME", 20, "other");
    other.surt = "org,example)/same".to_owned();
    store_all(&mut writer, &[other]);
    let stored = get(dir.path(), "org,example)/same", "http://example.org/same");
    assert_eq!(stored.unwrap().document.unwrap().body(), b"nine");
    let stored = get(dir.path(), "org,example)/same", "http://example.org/SAME");
    assert_eq!(stored.unwrap().document.unwrap().body(), b"other");
}

#[test]
fn lookup_in_a_large_sorted_index() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let archivist = writer.archivist();
    let mut scratch = archivist.scratch();
    let samples: Vec<Sample> = (0..3000_u64)
        .map(|n| {
            let path = format!("/{}/{n}", "x".repeat((n % 90) as usize));
            Sample::page(&path, n, "small")
        })
        .collect();
    for sample in &samples {
        writer
            .append(&sample.prepare(&archivist, &mut scratch))
            .unwrap();
    }
    writer.close().unwrap();
    for sample in &samples {
        let found = lookup(dir.path(), &sample.surt, sample.url()).unwrap();
        assert_eq!(found.unwrap().url, sample.url());
        let absent = format!("{}!", sample.surt);
        assert_eq!(lookup(dir.path(), &absent, sample.url()).unwrap(), None);
    }
}

#[test]
fn records_are_read_one_by_one_and_uncompressed_files_too() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let places = store_all(&mut writer, &one_of_each());
    writer.close().unwrap();
    let path = dir.path().join("warc").join(&*places[0].file);
    let mut unpacked = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(std::fs::File::open(&path).unwrap());
    std::io::Read::read_to_end(&mut decoder, &mut unpacked).unwrap();
    let plain = dir.path().join("plain.warc");
    std::fs::write(&plain, unpacked).unwrap();

    let mut packed = Records::open(&path).unwrap();
    let mut open = Records::open(&plain).unwrap();
    let mut count = 0;
    while let Some(head) = packed.next_head().unwrap() {
        let other = open.next_head().unwrap().unwrap();
        assert_eq!(head.fields, other.fields);
        // Every other block is skipped, to see that skipping keeps the place.
        if count % 2 == 0 {
            let block = packed.read_block(1 << 20).unwrap();
            assert_eq!(block, open.read_block(1 << 20).unwrap());
            assert_eq!(read_at(&path, head.offset, 1 << 20).unwrap().block, block);
        }
        count += 1;
    }
    assert!(open.next_head().unwrap().is_none());
    assert_eq!(count, 1 + 3 * places.len());
    let large = read_at(&path, places[0].offset, 100).unwrap_err();
    assert!(
        large.to_string().contains("more than is read at once"),
        "{large}"
    );
}

/// A 304 refers to the document, and so does the next one, however many there were.
#[test]
fn when_a_document_was_captured_is_told_by_the_heads_of_its_records() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let captured = || captured_at(dir.path(), "org,example)/a", "http://example.org/a").unwrap();
    assert_eq!(captured(), None);
    let page = Sample::page("/a", 1, &prose(1, 3000));
    store_all(&mut writer, std::slice::from_ref(&page));
    for second in 2..5 {
        assert_eq!(captured(), Some(page.result.started), "{second}");
        let mut same = Sample::new("/a", second, "HTTP/1.1 304 Not Modified\nETag: \"x\"", b"");
        let before = Revisit {
            captured: captured().unwrap(),
            ..Revisit::unvisited(page.result.ended)
        };
        same.candidate.revisit = Some(Box::new(before));
        store_all(&mut writer, &[same]);
    }
    assert_eq!(captured(), Some(page.result.started));
    drop(writer);
    assert_eq!(sample::findings(dir.path()), Vec::<String>::new());
}
