//! Repairing a crawl directory: what can be proven from the rest of it.
//!
//! The archive first, from its WARC files; then the doc index, from its URLs; then pages that count as fetched and are in no
//! archive are queued again.

use crate::error::Result;

use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_model::{Event, UrlKey};

use crate::clock;
use orbweaver_config::units::counted;
use orbweaver_crawldir::CrawlDir;
use orbweaver_watch::check::unarchived;

/// Memory for the doc index while it is repaired.
const MEMORY: u64 = 128 << 20;

/// URLs queued again in one commit.
const GROUP: usize = 4096;

/// Repairs the directory of a crawl that does not run; what was done, in words.
pub(crate) fn repair(dir: &CrawlDir) -> Result<Vec<String>> {
    let _held = CrawlDir::hold(dir.path())?;
    let mut done = orbweaver_store::repair(dir.path())?;
    if !dir.index().exists() {
        return Ok(done);
    }
    done.extend(orbweaver_docindex::repair(&dir.index(), MEMORY)?);
    done.extend(queue_unarchived(dir)?);
    Ok(done)
}

fn queue_unarchived(dir: &CrawlDir) -> Result<Option<String>> {
    let now = clock::steady()();
    let mut docs = DocIndex::open(&dir.index(), IndexOptions::default(), now)?;
    let reader = docs.reader();
    // What a URL server has heard of is in the archive of a store elsewhere.
    if reader.results()?.is_some() {
        return Ok(None);
    }
    let mut lost: Vec<UrlKey> = Vec::new();
    unarchived(dir, &reader, &mut |url| {
        lost.push(url.key(reader.seed()));
        Ok(())
    })?;
    for keys in lost.chunks(GROUP) {
        let keys = keys.to_vec();
        docs.apply([Event::Reopen { keys, at: now }])?;
    }
    docs.sync()?;
    let count = counted(lost.len() as u64, "page");
    Ok((!lost.is_empty())
        .then(|| format!("{count} counted as fetched but not in the archive: queued again")))
}
