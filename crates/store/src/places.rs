//! Where many URLs lie in the archive, for a listing that has the URLs of a host together.
//!
//! Looking each of millions of URLs up in every index takes a search per URL and file. The lines of one host stand
//! together in a sorted index, so they are read once, when its first URL comes. An index that is still being written
//! is not sorted and is read at the start; it is bounded by its writer. A host with more captures than fit in memory
//! is looked up URL by URL.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cdxj::{IndexLine, Lines, captures, first_at, indexes, open_index};
use crate::error::StoreError;
use crate::files::Layout;

/// Captures of one host that are held: some 100 MB of memory.
const HELD: usize = 500_000;

/// The newest capture of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The WARC file, by its finished name.
    pub file: Arc<str>,
    /// Where the record begins.
    pub offset: u64,
    /// Bytes of the record.
    pub length: u64,
    /// When it was captured, fourteen digits, UTC.
    pub timestamp: Box<str>,
    /// The media type as the server declared it, of the capture that a revisit refers to; none when it declared none.
    pub mime: Option<Box<str>>,
    /// SHA-1 of the payload in base 32; none where there is no payload.
    pub digest: Option<Box<str>>,
}

impl Place {
    fn of(line: IndexLine, file: Arc<str>) -> Self {
        let is_revisit = line.is_revisit();
        let said =
            |text: String, none: &str| (!text.is_empty() && text != none).then(|| text.into());
        Self {
            file,
            offset: line.offset,
            length: line.length,
            timestamp: line.timestamp.into(),
            mime: said(line.mime, "unk").filter(|_| !is_revisit),
            digest: said(line.digest, "-"),
        }
    }

    fn age(&self) -> (&str, &str, u64) {
        (&self.timestamp, &self.file, self.offset)
    }

    /// The newer of two, which knows what only the older says.
    fn or_newer(self, other: Self) -> Self {
        let (old, new) = match self.age() <= other.age() {
            true => (self, other),
            false => (other, self),
        };
        Self {
            mime: new.mime.or(old.mime),
            digest: new.digest.or(old.digest),
            ..new
        }
    }
}

/// Captures by the hash of their URLs. A collision of 64 bits is not worth the URLs.
type PlacesOfFile = HashMap<u64, Place>;

/// Finds places.
pub struct Places {
    dir: PathBuf,
    sorted: Vec<PathBuf>,
    hasher: RandomState,
    /// Of the indexes that are being written.
    open: PlacesOfFile,
    /// Of the host that was asked for last, by the part of the key that names it; none when there are too many.
    /// Emptied when another host comes.
    held: HashMap<String, Option<PlacesOfFile>>,
    host: String,
    /// Each name of a file once.
    names: HashMap<String, Arc<str>>,
    most: usize,
}

impl Places {
    /// Looks at the indexes of a crawl directory. What cannot be read of them counts as absent.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let mut places = Self {
            dir: dir.into(),
            sorted: Vec::new(),
            hasher: RandomState::new(),
            open: HashMap::new(),
            held: HashMap::new(),
            host: String::new(),
            names: HashMap::new(),
            most: HELD,
        };
        for (path, sorted) in indexes(&Layout::new(dir))? {
            if sorted {
                places.sorted.push(path);
                continue;
            }
            let Some((file, _)) = open_index(&path, false)? else {
                continue;
            };
            let mut lines = Lines::new(BufReader::with_capacity(256 << 10, file), 0);
            let mut open = std::mem::take(&mut places.open);
            while let Ok(Some(line)) = lines.next_parsed() {
                places.add(line, &mut open);
            }
            places.open = open;
        }
        Ok(places)
    }

    /// The newest capture of a URL, which has this key. Quick when the URLs of one `host` come together.
    pub fn find(&mut self, host: &str, surt: &str, url: &str) -> Option<Place> {
        if self.host != host {
            self.held.clear();
            host.clone_into(&mut self.host);
        }
        let prefix = surt.split_inclusive(')').next().unwrap_or(surt);
        if !self.held.contains_key(prefix) {
            let found = self.read(prefix);
            self.held.insert(prefix.to_owned(), found);
        }
        let hash = self.hasher.hash_one(url);
        let open = self.open.get(&hash).cloned();
        let sorted = match self.held.get(prefix) {
            Some(Some(found)) => found.get(&hash).cloned(),
            _ => self.search(surt, url),
        };
        match (sorted, open) {
            (Some(sorted), Some(open)) => Some(sorted.or_newer(open)),
            (sorted, open) => sorted.or(open),
        }
    }

    /// All captures whose keys begin so; none when they are too many.
    fn read(&mut self, prefix: &str) -> Option<PlacesOfFile> {
        let mut found = PlacesOfFile::new();
        for path in self.sorted.clone() {
            let Ok(lines) = lines_from(&path, prefix) else {
                continue;
            };
            let mut lines = lines;
            while let Ok(Some(line)) = lines.next_parsed() {
                if !line.surt.starts_with(prefix) {
                    break;
                }
                self.add(line, &mut found);
                if found.len() > self.most {
                    return None;
                }
            }
        }
        Some(found)
    }

    fn search(&mut self, surt: &str, url: &str) -> Option<Place> {
        let lines = captures(&self.dir, surt, url).ok()?;
        let mut found = PlacesOfFile::new();
        lines
            .into_iter()
            .for_each(|line| self.add(line, &mut found));
        found.into_values().next()
    }

    fn add(&mut self, line: IndexLine, to: &mut PlacesOfFile) {
        let hash = self.hasher.hash_one(line.url.as_str());
        let name = match self.names.get(&line.filename) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = line.filename.as_str().into();
                self.names.insert(line.filename.clone(), Arc::clone(&name));
                name
            }
        };
        let place = Place::of(line, name);
        let place = match to.remove(&hash) {
            Some(known) => known.or_newer(place),
            None => place,
        };
        to.insert(hash, place);
    }
}

/// The lines of a sorted index from the first whose key is not smaller than this.
fn lines_from(path: &Path, prefix: &str) -> io::Result<Lines<BufReader<File>>> {
    let mut file = File::open(path)?;
    let start = first_at(&mut file, prefix.as_bytes())?;
    file.seek(SeekFrom::Start(start))?;
    Ok(Lines::new(BufReader::with_capacity(64 << 10, file), start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(surt: &str, url: &str, timestamp: &str, mime: &str, offset: u64) -> String {
        let line = IndexLine {
            surt: surt.into(),
            timestamp: timestamp.into(),
            url: url.into(),
            mime: mime.into(),
            status: "200".into(),
            digest: format!("D{offset}"),
            length: 10,
            offset,
            filename: format!("orbweaver-{timestamp}-00001.warc.gz"),
        };
        line.render()
    }

    #[test]
    fn the_newest_capture_is_found_in_sorted_and_open_indexes() {
        let place = tempfile::tempdir().unwrap();
        let cdxj = place.path().join("cdxj");
        std::fs::create_dir(&cdxj).unwrap();
        let mut lines: Vec<String> = (0..2000)
            .map(|n| {
                let (surt, url) = (format!("org,a)/{n:04}"), format!("http://a.org/{n:04}"));
                line(&surt, &url, "20260101000000", "text/html", n)
            })
            .collect();
        lines.push(line(
            "org,b)/",
            "http://b.org/",
            "20260101000000",
            "text/css",
            1,
        ));
        lines.sort();
        std::fs::write(cdxj.join("orbweaver-1-00001.cdxj"), lines.concat()).unwrap();
        let open = [
            line(
                "org,a)/0007",
                "http://a.org/0007",
                "20260201000000",
                "warc/revisit",
                70,
            ),
            line("org,c)/", "http://c.org/", "20260201000000", "unk", 71),
        ];
        std::fs::write(cdxj.join("orbweaver-2-00002.cdxj.open"), open.concat()).unwrap();
        for most in [HELD, 10] {
            let mut places = Places::open(place.path()).unwrap();
            places.most = most;
            let mut find = |host: &str, surt: &str, url: &str| places.find(host, surt, url);
            let plain = find("a.org", "org,a)/1999", "http://a.org/1999").unwrap();
            assert_eq!(
                (plain.offset, plain.mime.as_deref()),
                (1999, Some("text/html"))
            );
            let again = find("a.org", "org,a)/0007", "http://a.org/0007").unwrap();
            assert_eq!(
                (again.offset, again.mime.as_deref()),
                (70, Some("text/html"))
            );
            assert_eq!(again.digest.as_deref(), Some("D70"));
            let other = find("b.org", "org,b)/", "http://b.org/").unwrap();
            assert_eq!(other.mime.as_deref(), Some("text/css"));
            let fresh = find("c.org", "org,c)/", "http://c.org/").unwrap();
            assert_eq!((fresh.offset, fresh.mime), (71, None));
            assert_eq!(find("a.org", "org,a)/none", "http://a.org/none"), None);
        }
    }
}
