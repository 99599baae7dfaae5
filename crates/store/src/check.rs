//! Reading everything in a crawl directory and saying what is wrong, without changing anything.
//!
//! It also works beside a running crawl and on what a crash left behind: in an unfinished file a torn end
//! and captures that the index does not have yet are notes, for the next start repairs them.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::cdxj::{IndexLine, Lines};
use crate::date::parse_iso;
use crate::digest::Digest;
use crate::error::StoreError;
use crate::files::{CDXJ, Layout, NEW, OPEN, WARC, names};
use crate::warc::group::{Group, Groups, Item, revisit_of};
use crate::warc::prepare::NOT_MODIFIED;
use crate::warc::reader::{Records, StoredRecord, read_head_in};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; the next start of the crawl repairs it or it does no harm.
    Note,
    /// Something is damaged, missing, or contradicts something else.
    Error,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, relative to the crawl directory.
    pub file: String,
    /// Where in the file, when it is about a place.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Note => "note",
            Severity::Error => "error",
        };
        match self.offset {
            Some(offset) => write!(f, "{word}: {} at byte {offset}: {}", self.file, self.what),
            None => write!(f, "{word}: {}: {}", self.file, self.what),
        }
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// WARC files.
    pub files: u64,
    /// Records in them.
    pub records: u64,
    /// Exchanges: responses and revisits.
    pub captures: u64,
    /// Those that are revisits.
    pub revisits: u64,
    /// Lines of the indexes.
    pub lines: u64,
    /// Findings that are notes.
    pub notes: u64,
    /// Findings that are errors.
    pub errors: u64,
}

/// Verifies every record, digest, group, index line and file name in a crawl directory. `report` hears of
/// each finding as it is made.
pub fn check(dir: &Path, report: &mut dyn FnMut(Finding)) -> Summary {
    let mut check = Check {
        layout: Layout::new(dir),
        summary: Summary::default(),
        report,
    };
    if let Err(error) = check.directory() {
        check.say(Severity::Error, "", None, error.to_string());
    }
    check.summary
}

struct Check<'a> {
    layout: Layout,
    summary: Summary,
    report: &'a mut dyn FnMut(Finding),
}

/// The file that is being read.
struct Subject {
    stem: String,
    /// Name inside the crawl directory.
    warc: String,
    cdxj: String,
    cdxj_path: PathBuf,
    unfinished: bool,
    /// Where a record should begin → where its index line stands and a hash of that line.
    lines: HashMap<u64, (u64, u64)>,
    /// Exchanges of an unfinished file whose lines are still to come: how many, and where the first begins.
    unlisted: Option<(u64, u64)>,
}

impl Check<'_> {
    fn directory(&mut self) -> Result<(), StoreError> {
        let open = format!("{WARC}{OPEN}");
        let warcs = names(&self.layout.warc)?;
        let indexes = names(&self.layout.cdxj)?;
        for name in &warcs {
            if let Some(stem) = name.strip_suffix(&open) {
                if warcs.iter().any(|other| *other == format!("{stem}{WARC}")) {
                    let what = "there is a finished file of the same name".to_owned();
                    self.say(Severity::Error, &format!("warc/{name}"), None, what);
                }
                self.file(stem, true);
            } else if let Some(stem) = name.strip_suffix(WARC) {
                self.file(stem, false);
            } else {
                let what = "not a file of the store".to_owned();
                self.say(Severity::Note, &format!("warc/{name}"), None, what);
            }
        }
        for name in &indexes {
            self.stray_index(name, &warcs);
        }
        Ok(())
    }

    fn stray_index(&mut self, name: &str, warcs: &[String]) {
        let has = |stem: &str, end: &str| warcs.iter().any(|w| *w == format!("{stem}{WARC}{end}"));
        let (severity, what) = if let Some(stem) = name.strip_suffix(&format!("{CDXJ}{OPEN}")) {
            if has(stem, OPEN) {
                return;
            }
            (
                Severity::Note,
                "an unsorted index that is not needed any more",
            )
        } else if let Some(stem) = name.strip_suffix(CDXJ) {
            if has(stem, "") || has(stem, OPEN) {
                return;
            }
            (Severity::Error, "its WARC file is missing")
        } else if name.ends_with(&format!("{CDXJ}{NEW}")) {
            (Severity::Note, "an index whose sorting was interrupted")
        } else {
            (Severity::Note, "not a file of the store")
        };
        self.say(severity, &format!("cdxj/{name}"), None, what.to_owned());
    }

    fn file(&mut self, stem: &str, unfinished: bool) {
        self.summary.files += 1;
        let end = if unfinished { OPEN } else { "" };
        let cdxj_path = match unfinished {
            true => self.layout.cdxj_open(stem),
            false => self.layout.cdxj(stem),
        };
        let mut subject = Subject {
            stem: stem.to_owned(),
            warc: format!("warc/{stem}{WARC}{end}"),
            cdxj: format!("cdxj/{stem}{CDXJ}{end}"),
            cdxj_path,
            unfinished,
            lines: HashMap::new(),
            unlisted: None,
        };
        self.index(&mut subject);
        if let Err(error) = self.records(&mut subject) {
            self.say(Severity::Error, &subject.warc, None, error.to_string());
        }
        if let Some((count, first)) = subject.unlisted {
            let what = match count {
                1 => "the index has no line for this record yet".to_owned(),
                _ => format!(
                    "the index has no lines yet for {count} records, of which this is the first"
                ),
            };
            self.say(Severity::Note, &subject.warc, Some(first), what);
        }
        let mut left: Vec<(u64, u64)> = subject.lines.drain().map(|(o, (at, _))| (at, o)).collect();
        left.sort_unstable();
        for (at, offset) in left {
            let what = format!("no whole exchange begins at byte {offset} of the WARC file");
            self.say(subject.lesser(), &subject.cdxj, Some(at), what);
        }
    }

    /// Reads the index of a file: the syntax and order of its lines, and which records they name.
    fn index(&mut self, subject: &mut Subject) {
        let file = match File::open(&subject.cdxj_path) {
            Ok(file) => file,
            Err(e) => {
                let what = format!("the index cannot be opened: {e}");
                self.say(subject.lesser(), &subject.cdxj, None, what);
                return;
            }
        };
        let mut lines = Lines::new(BufReader::with_capacity(256 << 10, file), 0);
        let name = format!("{}{WARC}", subject.stem);
        let mut previous = Vec::new();
        loop {
            let (at, line) = match lines.next() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(e) => {
                    self.say(Severity::Error, &subject.cdxj, None, e.to_string());
                    break;
                }
            };
            self.summary.lines += 1;
            let parsed = std::str::from_utf8(line).ok().and_then(IndexLine::parse);
            let problem = match parsed {
                // Also when nothing but its end is missing.
                _ if subject.unfinished && !line.ends_with(b"\n") => {
                    self.say(
                        Severity::Note,
                        &subject.cdxj,
                        Some(at),
                        "a torn last line".into(),
                    );
                    continue;
                }
                None => Some("not a line of an index"),
                Some(line) if line.filename != name => Some("it names another WARC file"),
                Some(parsed) => {
                    let entry = (at, hash(line));
                    let twice = subject.lines.insert(parsed.offset, entry).is_some();
                    twice.then_some("a second line for the same record")
                }
            };
            if let Some(what) = problem {
                self.say(Severity::Error, &subject.cdxj, Some(at), what.to_owned());
            }
            if !subject.unfinished {
                if previous.as_slice() > line {
                    let what = "the line is out of order".to_owned();
                    self.say(Severity::Error, &subject.cdxj, Some(at), what);
                }
                previous.clear();
                previous.extend_from_slice(line);
            }
        }
    }

    /// Reads every record of a file. After damage the scan goes on at the next place the index names.
    fn records(&mut self, subject: &mut Subject) -> Result<(), StoreError> {
        let name = format!("{}{WARC}", subject.stem);
        let mut from = 0;
        let mut torn: Option<(u64, String)> = None;
        loop {
            let (path, handle) = self.layout.open_warc(&name)?;
            let records = Records::from_file(&path, handle, from, 64 << 10)?;
            let mut groups = Groups::new(records, name.clone(), true);
            let mut first = from == 0;
            let mut whole = from;
            let (offset, what) = loop {
                match groups.next() {
                    Ok(None) => {
                        self.damage(subject, torn, subject.lesser());
                        return Ok(());
                    }
                    Ok(Some(item)) => {
                        // Something whole follows, so that what was before is no torn end.
                        self.damage(subject, torn.take(), Severity::Error);
                        self.item(subject, &item, std::mem::take(&mut first));
                        whole = item.end();
                    }
                    Err(StoreError::Damaged { offset, what, .. }) => break (offset, what),
                    Err(other) => return Err(other),
                }
            };
            self.damage(subject, torn.take(), Severity::Error);
            torn = Some((offset, what));
            let next = subject
                .lines
                .keys()
                .copied()
                .filter(|at| *at > offset)
                .min();
            // The damaged group's own line is not to blame.
            subject.lines.retain(|at, _| !(whole..=offset).contains(at));
            match next {
                Some(next) => from = next,
                None => {
                    self.damage(subject, torn, subject.lesser());
                    return Ok(());
                }
            }
        }
    }

    fn damage(&mut self, subject: &Subject, damage: Option<(u64, String)>, severity: Severity) {
        if let Some((offset, what)) = damage {
            self.say(severity, &subject.warc, Some(offset), what);
        }
    }

    fn item(&mut self, subject: &mut Subject, item: &Item, first: bool) {
        self.summary.records += 1;
        match item {
            Item::Info { .. } => {}
            Item::Group(group) => {
                if first {
                    let what = "the file does not begin with a warcinfo record".to_owned();
                    self.say(
                        Severity::Error,
                        &subject.warc,
                        Some(group.main.offset),
                        what,
                    );
                }
                self.group(subject, group);
            }
        }
    }

    fn group(&mut self, subject: &mut Subject, group: &Group) {
        self.summary.captures += 1;
        self.summary.records += 1 + u64::from(group.request.is_some());
        let revisit = group.main.kind() == "revisit";
        let at = group.main.offset;
        if revisit {
            self.summary.revisits += 1;
            if let Err(what) = self.original(group) {
                self.say(Severity::Error, &subject.warc, Some(at), what);
            }
        } else if group.payload.map(Digest::base32).as_ref() != Some(&group.line.digest) {
            let what = "the payload does not have the digest in WARC-Payload-Digest".to_owned();
            self.say(Severity::Error, &subject.warc, Some(at), what);
        }
        for side in group.request.iter().chain([&group.metadata]) {
            if !block_digest_holds(side) {
                let what = "the block does not have the digest in WARC-Block-Digest".to_owned();
                self.say(Severity::Error, &subject.warc, Some(side.head.offset), what);
            }
        }
        let expected = group.line.render();
        match subject.lines.remove(&at) {
            // While a crawl writes, there may be thousands.
            None if subject.unfinished => subject.unlisted.get_or_insert((0, at)).0 += 1,
            None => {
                let what = "the index has no line for this record".to_owned();
                self.say(Severity::Error, &subject.warc, Some(at), what);
            }
            Some((_, found)) if found == hash(expected.as_bytes()) => {}
            Some((line_at, _)) => {
                let what = difference(&subject.cdxj_path, line_at, &group.line);
                self.say(Severity::Error, &subject.cdxj, Some(line_at), what);
            }
        }
    }

    /// Whether the record that a revisit refers to is there and is the one.
    fn original(&self, group: &Group) -> Result<(), String> {
        if group.main.field("WARC-Profile") == Some(NOT_MODIFIED) {
            return match group.main.field("WARC-Refers-To-Date").and_then(parse_iso) {
                Some(_) => Ok(()),
                None => Err("the revisit does not say which capture is unchanged".to_owned()),
            };
        }
        let Some((file, offset)) = revisit_of(&group.metadata.block) else {
            return Err("the revisit does not say where its original is".to_owned());
        };
        let original = read_head_in(&self.layout, file, offset)
            .map_err(|e| format!("the original of the revisit cannot be read: {e}"))?;
        let same = original.kind() == "response"
            && [
                ("WARC-Record-ID", "WARC-Refers-To"),
                ("WARC-Target-URI", "WARC-Refers-To-Target-URI"),
                ("WARC-Date", "WARC-Refers-To-Date"),
                ("WARC-Payload-Digest", "WARC-Payload-Digest"),
            ]
            .iter()
            .all(|(theirs, ours)| original.field(theirs) == group.main.field(ours));
        match same {
            true => Ok(()),
            false => Err(format!(
                "the record in {file} at byte {offset} is not its original"
            )),
        }
    }

    fn say(&mut self, severity: Severity, file: &str, offset: Option<u64>, what: String) {
        match severity {
            Severity::Note => self.summary.notes += 1,
            Severity::Error => self.summary.errors += 1,
        }
        (self.report)(Finding {
            severity,
            file: file.to_owned(),
            offset,
            what,
        });
    }
}

impl Subject {
    /// How bad it is when something at the end is missing.
    fn lesser(&self) -> Severity {
        match self.unfinished {
            true => Severity::Note,
            false => Severity::Error,
        }
    }
}

fn block_digest_holds(record: &StoredRecord) -> bool {
    match record.head.field("WARC-Block-Digest") {
        Some(text) => Digest::parse(text) == Some(Digest::of(&record.block)),
        None => true,
    }
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Says in which field a line differs from what its record asks for.
fn difference(path: &Path, at: u64, expected: &IndexLine) -> String {
    let read = || -> io::Result<Option<IndexLine>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Lines::new(BufReader::new(file), at).next_parsed()
    };
    let Ok(Some(found)) = read() else {
        return "the line cannot be read again".to_owned();
    };
    let length = (found.length.to_string(), expected.length.to_string());
    let fields = [
        ("key", &found.surt, &expected.surt),
        ("timestamp", &found.timestamp, &expected.timestamp),
        ("url", &found.url, &expected.url),
        ("mime", &found.mime, &expected.mime),
        ("status", &found.status, &expected.status),
        ("digest", &found.digest, &expected.digest),
        ("length", &length.0, &length.1),
    ];
    match fields.iter().find(|(_, found, expected)| found != expected) {
        Some((name, found, expected)) => {
            format!("the line says {name} {found:?}, the record says {expected:?}")
        }
        None => "the line is not in the canonical form".to_owned(),
    }
}
