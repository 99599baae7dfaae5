//! What is wrong with the doc index of a crawl, as JSON lines, and which pages its archive lacks.

use std::collections::HashSet;
use std::io::Write;

use serde::{Deserialize, Serialize};

use orbweaver_crawldir::CrawlDir;
use orbweaver_docindex::{Entry, Error as IndexError, Fate, Reader};
use orbweaver_model::CrawlUrl;

use crate::error::{Context, Result};
use orbweaver_crawldir::json;

/// Memory for reading an index that nobody else has open.
pub const READER_MEMORY: u64 = 64 << 20;

/// A line about the doc index.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IndexLine {
    /// Something is wrong.
    Finding {
        /// Where: a keyspace, or a file of it.
        place: String,
        /// At which byte of the file.
        offset: Option<u64>,
        /// What.
        what: String,
    },
    /// The last line: how many URLs were looked at.
    Urls {
        /// How many.
        urls: u64,
    },
}

impl IndexLine {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", json::line(self)).context("cannot write the findings")
    }
}

/// What is wrong with the index of a crawl that does not run.
pub fn read_index(dir: &CrawlDir) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    let reader = match Reader::open(&dir.index(), READER_MEMORY) {
        Err(error @ IndexError::Missing(_)) => {
            let line = IndexLine::Finding {
                place: String::new(),
                offset: None,
                what: error.to_string(),
            };
            line.write(&mut found)?;
            return Ok(found);
        }
        opened => opened?,
    };
    write_index_findings(&reader, &mut found)?;
    // What a URL server has heard of is in the archive of a store elsewhere.
    if reader.results()?.is_none() {
        write_unarchived(dir, &reader, &mut found)?;
    }
    Ok(found)
}

/// Writes what is wrong with a doc index, a JSON object a line, and at the end the number of URLs.
pub fn write_index_findings(reader: &Reader, out: &mut dyn Write) -> Result<()> {
    let mut failed = Ok(());
    let urls = orbweaver_docindex::check(reader, &mut |found| {
        if failed.is_ok() {
            let line = IndexLine::Finding {
                place: found.place,
                offset: found.offset,
                what: found.what,
            };
            failed = line.write(out);
        }
    })?;
    failed?;
    IndexLine::Urls { urls }.write(out)
}

/// A document that the index counts as fetched must be in the archive.
fn write_unarchived(dir: &CrawlDir, reader: &Reader, out: &mut dyn Write) -> Result<()> {
    unarchived(dir, reader, &mut |url| {
        let line = IndexLine::Finding {
            place: "fates".into(),
            offset: None,
            what: format!("{url} counts as fetched but is not in the archive"),
        };
        line.write(out)
    })
}

/// Calls back with each URL that counts as fetched and is not in the archive.
pub fn unarchived(
    dir: &CrawlDir,
    reader: &Reader,
    each: &mut dyn FnMut(&CrawlUrl) -> Result<()>,
) -> Result<()> {
    let mut archived = HashSet::new();
    let mut placed = HashSet::new();
    let seed = reader.seed();
    orbweaver_store::each_capture(dir.path(), &mut |line| {
        let url = seed.hash(&line.url);
        archived.insert(url);
        placed.extend(line.place().map(|place| (place, url)));
    })?;
    for entry in reader.entries() {
        // What cannot be read has been named.
        let Ok(Entry { link, fate }) = entry else {
            break;
        };
        let fetched = |fate: &Fate| fate.due.is_none() && fate.report.outcome.class.is_document();
        let Some(fate) = fate.filter(fetched) else {
            continue;
        };
        let url = seed.hash(link.url.as_str());
        let is_there = match fate.capture {
            Some(place) => placed.contains(&(place, url)),
            None => archived.contains(&url),
        };
        if !is_there {
            each(&link.url)?;
        }
    }
    Ok(())
}
