//! Bodies that never are in memory: stored, referred to, read back, and torn anywhere.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use orbweaver_model::Spooled;
use orbweaver_store::{Writer, get, read_place};

use crate::sample::{Sample, findings, new_dir, options, prose, store_all};

/// The sample with its body on disk instead of in memory, and some bytes behind it that are not its own.
fn spooled(mut sample: Sample) -> (Sample, Vec<u8>) {
    let exchange = sample.result.exchange.as_mut().unwrap();
    let whole = exchange.response.to_vec();
    let body = exchange.response.split_off(exchange.head_len);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&body).unwrap();
    file.write_all(b"and what follows").unwrap();
    let spooled = Spooled::new(file, body.len() as u64, Box::new(()));
    exchange.spooled = Some(Arc::new(spooled));
    (sample, whole)
}

fn film(path: &str, second: u64) -> Sample {
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    let head = "HTTP/1.1 200 OK\nContent-Type: video/mp4";
    Sample::new(path, second, head, &body)
}

#[test]
fn a_body_on_disk_is_stored_as_if_it_had_been_in_memory() {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let (text, whole_text) = spooled(Sample::page("/text", 2, &prose(2, 2_000_000)));
    let (moving, whole_film) = spooled(film("/film", 3));
    let (again, _) = spooled(film("/again", 4));
    let samples = [
        Sample::page("/first", 1, &prose(1, 1500)),
        text,
        moving,
        again,
        Sample::page("/last", 5, &prose(5, 1500)),
    ];
    let places = store_all(&mut writer, &samples);
    writer.close().unwrap();
    assert_eq!(findings(dir.path()), Vec::<String>::new());
    for (place, whole) in [(1, &whole_text), (2, &whole_film), (3, &whole_film)] {
        let at = &places[place];
        let stored = read_place(dir.path(), at.place(), u64::MAX).unwrap();
        assert!(&stored.response == whole, "{place}");
        // The same body again is not stored again.
        assert_eq!(stored.revisit, place == 3);
        let beginning = read_place(dir.path(), at.place(), 10_000).unwrap();
        assert!(whole.starts_with(&beginning.response) && beginning.response.len() >= 9_000);
    }
    let warc = fs::read_dir(dir.path().join("warc")).unwrap().count();
    assert_eq!(warc, 1, "nothing is left beside the file");
}

#[test]
fn a_kill_in_the_middle_of_a_large_group_leaves_what_was_before() {
    let whole = new_dir();
    let (mut writer, _) = Writer::open(whole.path(), options()).unwrap();
    let (large, _) = spooled(film("/film", 2));
    let first = Sample::page("/first", 1, &prose(1, 1500));
    let places = store_all(&mut writer, &[first.clone(), large.clone()]);
    drop(writer);
    let name = fs::read_dir(whole.path().join("warc"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let bytes = fs::read(name.path()).unwrap();
    let begin = places[1].offset as usize;
    let record = begin + places[1].length as usize;
    for cut in [
        begin + 1,
        begin + 1_000_000,
        record - 1,
        record,
        record + 10,
        bytes.len() - 1,
    ] {
        let dir = new_dir();
        fs::create_dir(dir.path().join("warc")).unwrap();
        let path = dir.path().join("warc").join(name.file_name());
        fs::write(&path, &bytes[..cut]).unwrap();
        let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
        assert_eq!(recovery.cuts.len(), 1, "{cut}");
        assert_eq!(findings(dir.path()), Vec::<String>::new());
        let there = |sample: &Sample| {
            get(dir.path(), &sample.surt, sample.url())
                .unwrap()
                .document
        };
        assert!(there(&first).is_some() && there(&large).is_none(), "{cut}");
    }
}
