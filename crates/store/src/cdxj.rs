//! The CDXJ index: one line per capture, written exactly as pywb's own indexer writes it.
//!
//! `key timestamp {json}`, sorted by bytes once the WARC file is finished. The key is a SURT that the caller
//! makes; pywb finds a page only when its own canonical form of the URL gives the same key.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use orbweaver_model::CapturePlace;
use serde::Deserialize;

use crate::error::StoreError;
use crate::files::{CDXJ, Layout, OPEN, names};
use crate::numbers::place_in;

/// No line is longer: a URL and its key have at most 32 KiB each and JSON at worst multiplies by six.
const MAX_LINE: u64 = 512 << 10;

/// Damaged lines that are named; more of them say nothing more.
const MAX_DAMAGED: usize = 1000;

/// One line of an index: where one capture lies and what it was.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IndexLine {
    /// The sort key, a SURT.
    #[serde(skip)]
    pub surt: String,
    /// When it was captured, fourteen digits, UTC.
    #[serde(skip)]
    pub timestamp: String,
    /// The URL.
    pub url: String,
    /// The media type as the server declared it; `warc/revisit` for a revisit, `unk` when it declared none.
    #[serde(default)]
    pub mime: String,
    /// The status code; empty for a revisit, by pywb's custom.
    #[serde(default)]
    pub status: String,
    /// SHA-1 of the payload in base 32, without a prefix.
    #[serde(default)]
    pub digest: String,
    /// Bytes of the record in the file.
    #[serde(deserialize_with = "number")]
    pub length: u64,
    /// Where the record begins.
    #[serde(deserialize_with = "number")]
    pub offset: u64,
    /// The WARC file, by its finished name.
    pub filename: String,
}

impl IndexLine {
    /// Where the capture lies; none in a file that is not numbered.
    pub fn place(&self) -> Option<CapturePlace> {
        place_in(&self.filename, self.offset)
    }

    /// Reads a line, with or without its line end.
    pub fn parse(line: &str) -> Option<Self> {
        let (surt, rest) = line.split_once(' ')?;
        let (timestamp, json) = rest.split_once(' ')?;
        let mut parsed: Self = serde_json::from_str(json.trim_end()).ok()?;
        parsed.surt = surt.to_owned();
        parsed.timestamp = timestamp.to_owned();
        Some(parsed)
    }

    /// The line with its line end.
    pub fn render(&self) -> String {
        let mut line = self.render_start();
        finish_line(&mut line, self.offset, &self.filename);
        line
    }

    /// The line up to where it depends on the place of the record.
    pub(crate) fn render_start(&self) -> String {
        let mut line = String::with_capacity(self.surt.len() + self.url.len() + 256);
        line.push_str(&self.surt);
        line.push(' ');
        line.push_str(&self.timestamp);
        line.push_str(" {");
        push_field(&mut line, "url", &self.url);
        for (name, value) in [
            ("mime", &self.mime),
            ("status", &self.status),
            ("digest", &self.digest),
        ] {
            if !value.is_empty() && value != "-" {
                line.push_str(", ");
                push_field(&mut line, name, value);
            }
        }
        line.push_str(", \"length\": \"");
        line.push_str(&self.length.to_string());
        line.push('"');
        line
    }

    /// True when the record holds no body of its own.
    pub fn is_revisit(&self) -> bool {
        self.mime == "warc/revisit"
    }
}

/// Adds to a line what is known only when its record has a place.
pub(crate) fn finish_line(line: &mut String, offset: u64, filename: &str) {
    line.push_str(", \"offset\": \"");
    line.push_str(&offset.to_string());
    line.push_str("\", ");
    push_field(line, "filename", filename);
    line.push_str("}\n");
}

fn push_field(line: &mut String, name: &str, value: &str) {
    push_string(line, name);
    line.push_str(": ");
    push_string(line, value);
}

/// A JSON string in ASCII, the way Python's json module writes it.
fn push_string(line: &mut String, text: &str) {
    line.push('"');
    // Nearly all texts need no escape, and a look at their bytes shows it.
    if text
        .bytes()
        .all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\')
    {
        line.push_str(text);
        line.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            ' '..='~' => line.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    line.push('"');
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The lines of one index file, in its order, one at a time.
pub(crate) struct Lines<R> {
    input: R,
    offset: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, offset: u64) -> Self {
        Self {
            input,
            offset,
            buffer: Vec::new(),
        }
    }

    /// The next line with its line end and its place. A line without end is a torn one; a line that is
    /// too long is cut.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(MAX_LINE);
        let len = limited.read_until(b'\n', &mut self.buffer)?;
        let at = self.offset;
        self.offset += len as u64;
        Ok((len > 0).then_some((at, self.buffer.as_slice())))
    }

    /// The next line that can be read, taken apart.
    pub(crate) fn next_parsed(&mut self) -> io::Result<Option<IndexLine>> {
        while let Some((_, line)) = self.next()? {
            let parsed = std::str::from_utf8(line).ok().and_then(IndexLine::parse);
            if parsed.is_some() {
                return Ok(parsed);
            }
        }
        Ok(None)
    }
}

/// The newest capture of a URL in a crawl directory, finished files and open ones alike.
pub fn lookup(dir: &Path, surt: &str, url: &str) -> Result<Option<IndexLine>, StoreError> {
    Ok(captures(dir, surt, url)?.into_iter().next())
}

/// All captures of a URL, the newest first.
pub(crate) fn captures(dir: &Path, surt: &str, url: &str) -> Result<Vec<IndexLine>, StoreError> {
    let layout = Layout::new(dir);
    let mut found = Vec::new();
    for (path, sorted) in indexes(&layout)? {
        let Some((mut file, sorted)) = open_index(&path, sorted)? else {
            continue;
        };
        let lines = search(&mut file, sorted, surt, url);
        found.extend(lines.map_err(|e| StoreError::io("read", &path, e))?);
    }
    newest_first(&mut found);
    Ok(found)
}

/// All captures of a URL, the newest first, found by reading every line: one whose key is damaged, or that is out of
/// order, is not found otherwise. Each line that cannot be read goes to `damaged`.
pub(crate) fn captures_anywhere(
    dir: &Path,
    url: &str,
    damaged: &mut Vec<StoreError>,
) -> Result<Vec<IndexLine>, StoreError> {
    let mut found = Vec::new();
    for (path, sorted) in indexes(&Layout::new(dir))? {
        let Some((file, sorted)) = open_index(&path, sorted)? else {
            continue;
        };
        let mut lines = Lines::new(BufReader::with_capacity(256 << 10, file), 0);
        let failed = |e| StoreError::io("read", &path, e);
        while let Some((at, line)) = lines.next().map_err(failed)? {
            // The end of an unsorted one may be torn.
            let whole = sorted || line.ends_with(b"\n");
            match std::str::from_utf8(line).ok().and_then(IndexLine::parse) {
                Some(line) => found.extend(Some(line).filter(|line| line.url == url)),
                None if whole && damaged.len() < MAX_DAMAGED => {
                    let what = "not a line of an index";
                    damaged.push(StoreError::damaged(&path, at, what));
                }
                None => {}
            }
        }
    }
    newest_first(&mut found);
    Ok(found)
}

/// Files come in the order of their names, which is that of their age.
fn newest_first(found: &mut [IndexLine]) {
    let rank = |line: &IndexLine| (line.timestamp.clone(), line.filename.clone(), line.offset);
    found.sort_by_cached_key(|line| std::cmp::Reverse(rank(line)));
}

/// Opens an index and says whether it is sorted. An open one may have been finished since the directory was
/// listed; then its sorted form is taken.
pub(crate) fn open_index(path: &Path, sorted: bool) -> Result<Option<(File, bool)>, StoreError> {
    let finished = path.with_extension("");
    let ways = [(path, sorted), (finished.as_path(), true)];
    for (path, sorted) in ways.into_iter().take(if sorted { 1 } else { 2 }) {
        match File::open(path) {
            Ok(file) => return Ok(Some((file, sorted))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io("open", path, e)),
        }
    }
    Ok(None)
}

/// Calls `each` for every line of every index in a crawl directory that can be read.
pub fn each_capture(dir: &Path, each: &mut dyn FnMut(IndexLine)) -> Result<(), StoreError> {
    for (path, sorted) in indexes(&Layout::new(dir))? {
        let Some((file, _)) = open_index(&path, sorted)? else {
            continue;
        };
        let mut lines = Lines::new(BufReader::with_capacity(64 << 10, file), 0);
        let failed = |e| StoreError::io("read", &path, e);
        while let Some(line) = lines.next_parsed().map_err(failed)? {
            each(line);
        }
    }
    Ok(())
}

/// The indexes of a crawl directory by age, and whether they are sorted. Where a crash left both forms the
/// sorted one counts, for it holds the same lines.
pub(crate) fn indexes(layout: &Layout) -> Result<Vec<(PathBuf, bool)>, StoreError> {
    let names = names(&layout.cdxj)?;
    let mut found = Vec::new();
    for name in &names {
        if name.ends_with(CDXJ) {
            found.push((layout.cdxj.join(name), true));
        } else if let Some(finished) = name.strip_suffix(OPEN) {
            let both = names.iter().any(|other| other == finished);
            if finished.ends_with(CDXJ) && !both {
                found.push((layout.cdxj.join(name), false));
            }
        }
    }
    Ok(found)
}

fn search(file: &mut File, sorted: bool, surt: &str, url: &str) -> io::Result<Vec<IndexLine>> {
    let prefix = format!("{surt} ").into_bytes();
    let start = if sorted { first_at(file, &prefix)? } else { 0 };
    file.seek(SeekFrom::Start(start))?;
    let mut lines = Lines::new(BufReader::with_capacity(64 << 10, file), start);
    let mut found = Vec::new();
    while let Some((_, line)) = lines.next()? {
        if !line.starts_with(&prefix) {
            if sorted {
                break;
            }
            continue;
        }
        let parsed = std::str::from_utf8(line).ok().and_then(IndexLine::parse);
        found.extend(parsed.filter(|line| line.url == url));
    }
    Ok(found)
}

/// Where in a sorted file the first line begins that is not smaller than `key`.
pub(crate) fn first_at(file: &mut File, key: &[u8]) -> io::Result<u64> {
    // Lines that begin before `low` are smaller, lines that begin after `high` are not.
    let mut low = 0;
    let mut high = file.metadata()?.len();
    // Below a few pages reading on is cheaper than another jump.
    while high.saturating_sub(low) > 16 << 10 {
        let middle = low + (high - low) / 2;
        match line_after(file, middle, high)? {
            Some((line, end)) if line.as_slice() < key => low = end,
            _ => high = middle,
        }
    }
    file.seek(SeekFrom::Start(low))?;
    let mut lines = Lines::new(BufReader::new(&mut *file), low);
    let mut at = low;
    while let Some((begin, line)) = lines.next()? {
        at = begin;
        if line >= key {
            return Ok(at);
        }
        at += line.len() as u64;
    }
    Ok(at)
}

/// The first line that begins after `at` and not after `last`, and where it ends.
fn line_after(file: &mut File, at: u64, last: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    file.seek(SeekFrom::Start(at))?;
    let mut lines = Lines::new(BufReader::with_capacity(4 << 10, &mut *file), at);
    lines.next()?;
    let Some((begin, line)) = lines.next()? else {
        return Ok(None);
    };
    Ok((begin <= last).then(|| (line.to_vec(), begin + line.len() as u64)))
}
