//! Bodies that hold records: whatever is damaged around them, they never become captures.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use orbweaver_store::{Writer, check, each_capture, get};

use crate::sample::{Sample, new_dir, options, prose, store_all};

/// The bytes of a finished WARC file that holds one page of another crawl, with an address of its own.
fn foreign_file() -> Vec<u8> {
    let dir = new_dir();
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    store_all(&mut writer, &[Sample::page("/forged", 1, "forged")]);
    writer.close().unwrap();
    let name = only_file(&dir.path().join("warc"));
    fs::read(name).unwrap()
}

fn only_file(dir: &Path) -> std::path::PathBuf {
    fs::read_dir(dir).unwrap().next().unwrap().unwrap().path()
}

/// The same without its first record: the group alone.
fn foreign_group() -> Vec<u8> {
    let file = foreign_file();
    let mark = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
    let second = file.windows(8).skip(1).position(|it| it == mark).unwrap() + 1;
    file[second..].to_vec()
}

fn picture(path: &str, second: u64, body: &[u8]) -> Sample {
    let head = "HTTP/1.1 200 OK\nContent-Type: image/png";
    Sample::new(path, second, head, body)
}

/// Stores a picture with `payload` in it between honest pages, damages the file by `harm`, which gets its
/// bytes and where the picture's record begins and ends, and rebuilds its index.
fn rebuilt(
    payload: &[u8],
    harm: &dyn Fn(&mut Vec<u8>, usize, usize),
) -> (tempfile::TempDir, usize) {
    let dir = new_dir();
    let samples = [
        Sample::page("/first", 1, &prose(1, 1500)),
        picture("/picture", 2, payload),
        Sample::page("/last", 3, &prose(3, 1500)),
    ];
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let places = store_all(&mut writer, &samples);
    writer.close().unwrap();
    let path = only_file(&dir.path().join("warc"));
    let mut bytes = fs::read(&path).unwrap();
    harm(
        &mut bytes,
        places[1].offset as usize,
        places[2].offset as usize,
    );
    fs::write(&path, bytes).unwrap();
    fs::remove_file(only_file(&dir.path().join("cdxj"))).unwrap();
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    (dir, recovery.skipped.len())
}

fn urls(dir: &Path) -> Vec<String> {
    let mut urls = Vec::new();
    each_capture(dir, &mut |line| urls.push(line.url)).unwrap();
    urls
}

#[test]
fn a_group_in_a_picture_is_no_capture_whatever_bits_flip() {
    let mut payloads = vec![
        foreign_group(),
        foreign_file(),
        [&b"PNG"[..], &foreign_file()].concat(),
    ];
    // The group of the same file at another place, as somebody has it who can read the archive.
    let mut many = foreign_group();
    many.extend(foreign_group());
    payloads.push(many);
    for payload in payloads {
        for flips in [&[40][..], &[11], &[0], &[40, 300, 700], &[200, 201, 202]] {
            let (dir, skipped) = rebuilt(&payload, &|bytes, from, _| {
                for at in flips {
                    bytes[from + at] ^= 1;
                }
            });
            assert_eq!(skipped, 1, "{flips:?}");
            // What follows the damage proves its place and is there.
            assert_eq!(
                urls(dir.path()),
                ["http://example.org/first", "http://example.org/last"]
            );
            let forged = get(
                dir.path(),
                "org,example)/forged",
                "http://example.org/forged",
            );
            assert!(forged.unwrap().document.is_none());
            assert_eq!(check(dir.path(), &mut |_| {}).errors, 1);
        }
    }
}

#[test]
fn a_copy_of_the_files_own_group_is_no_capture_elsewhere() {
    // Someone who could read the open file repeats its first group inside of a body.
    let dir = new_dir();
    let first = Sample::page("/first", 1, &prose(1, 1500));
    let (mut writer, _) = Writer::open(dir.path(), options()).unwrap();
    let places = store_all(&mut writer, std::slice::from_ref(&first));
    let path = only_file(&dir.path().join("warc"));
    let copied = fs::read(&path).unwrap()[places[0].offset as usize..].to_vec();
    let places = store_all(&mut writer, &[picture("/picture", 2, &copied)]);
    writer.close().unwrap();
    let path = only_file(&dir.path().join("warc"));
    let mut bytes = fs::read(&path).unwrap();
    bytes[places[0].offset as usize + 40] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::remove_file(only_file(&dir.path().join("cdxj"))).unwrap();
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    assert_eq!(recovery.skipped.len(), 1);
    assert_eq!(urls(dir.path()), ["http://example.org/first"]);
}

#[test]
fn a_file_that_cannot_vouch_gives_nothing_back_after_damage() {
    // The first record is the damaged one: nobody knows the file's identifier any more.
    let (dir, skipped) = rebuilt(&foreign_group(), &|bytes, _, _| bytes[60] ^= 1);
    assert_eq!((urls(dir.path()).len(), skipped), (0, 1));
}

#[test]
fn a_length_that_lies_is_damage() {
    // The length of the picture's record says more or less than there is, its gzip member whole.
    let (dir, skipped) = rebuilt(&foreign_group(), &|bytes, from, to| {
        let mut record = Vec::new();
        let mut input = flate2::bufread::GzDecoder::new(&bytes[from..to]);
        std::io::Read::read_to_end(&mut input, &mut record).unwrap();
        let member = to - from - input.into_inner().len();
        let text = b"Content-Length: ";
        let at = record
            .windows(text.len())
            .position(|it| it == text)
            .unwrap()
            + text.len();
        record[at] = if record[at] == b'1' { b'2' } else { b'1' };
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        packed.write_all(&record).unwrap();
        bytes.splice(from..from + member, packed.finish().unwrap());
    });
    assert_eq!(skipped, 1);
    let urls = urls(dir.path());
    assert!(urls.contains(&"http://example.org/first".to_owned()));
    assert!(!urls.contains(&"http://example.org/forged".to_owned()));
}
