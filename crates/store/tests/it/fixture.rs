//! A directory written by an earlier version keeps opening.

use std::path::{Path, PathBuf};

use orbweaver_store::{Writer, check, get};

use crate::sample::{findings, new_dir, one_of_each, options, store_all};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

#[test]
fn the_stored_directory_is_clean_and_whole() {
    assert_eq!(findings(&fixture()), Vec::<String>::new());
    let summary = check(&fixture(), &mut |_| {});
    let samples = one_of_each();
    assert_eq!(summary.captures, samples.len() as u64);
    assert_eq!(summary.revisits, 1);
    for sample in &samples {
        let stored = get(&fixture(), &sample.surt, sample.url())
            .unwrap()
            .document
            .unwrap();
        assert_eq!(stored.response, sample.exchange().response);
        assert_eq!(stored.request, sample.exchange().request);
    }
}

#[test]
fn the_index_is_written_as_it_was() {
    let dir = new_dir();
    let name = "orbweaver-20260301120001-00001";
    for (part, end) in [("warc", ".warc.gz"), ("cdxj", ".cdxj")] {
        std::fs::create_dir(dir.path().join(part)).unwrap();
        let file = format!("{part}/{name}{end}");
        std::fs::copy(fixture().join(&file), dir.path().join(&file)).unwrap();
    }
    let index = dir.path().join(format!("cdxj/{name}.cdxj"));
    let before = std::fs::read(&index).unwrap();
    std::fs::remove_file(&index).unwrap();
    let (_, recovery) = Writer::open(dir.path(), options()).unwrap();
    assert_eq!(recovery.reindexed.len(), 1);
    assert_eq!(std::fs::read(&index).unwrap(), before);
}

#[test]
#[ignore = "writes the stored directory anew, for a change of the format"]
fn write_the_stored_directory() {
    let _ = std::fs::remove_dir_all(fixture());
    let (mut writer, _) = Writer::open(&fixture(), options()).unwrap();
    store_all(&mut writer, &one_of_each());
    writer.close().unwrap();
}
