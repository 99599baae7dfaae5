//! The log of a crawl: one line for each request, in a file of the crawl directory that rotates.
//!
//! A queue leads to a thread that writes: filled by whoever knows what came of a request, bounded by `QUEUE`; whoever
//! finds it full waits, for a line is never left out while the disk works. A disk that fails costs lines and never the
//! crawl, and the summary says so. `docs/formats/crawl-directory.md` has the columns.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Context, Result};

use orbweaver_config::LogOptions;
use orbweaver_docindex::Reader;
use orbweaver_model::{CrawlUrl, FetchResult, OutcomeClass, Report, Timestamp, UrlKey, Visit};
use orbweaver_store::Digest;

use crate::notices::Notices;
use orbweaver_config::units::moment;

/// The file that is written.
const NAME: &str = "crawl.log";
/// Lines that may wait to be written.
const QUEUE: usize = 4096;

/// What the log says of one request, or of one URL that was given up before any.
#[derive(Clone, Debug)]
pub struct LogLine {
    at: Timestamp,
    status: Option<u16>,
    class: OutcomeClass,
    bytes: u64,
    millis: u32,
    url: Box<str>,
    /// The URL's key, by which the page is found that led to it; none for a robots.txt, which no page links to.
    key: Option<UrlKey>,
    media: Option<Box<str>>,
    /// With its prefix.
    digest: Option<Box<str>>,
}

impl LogLine {
    /// On the answer to a request for a page.
    pub fn page(visit: &Visit, report: &Report) -> Self {
        let candidate = &visit.candidate;
        Self {
            key: Some(candidate.key),
            media: media(&visit.result),
            ..Self::unasked(candidate.url.as_str(), candidate.key, report)
        }
    }

    /// On a URL that was given up without a request.
    pub fn unasked(url: &str, key: UrlKey, report: &Report) -> Self {
        Self {
            at: report.at,
            status: report.status,
            class: report.outcome.class,
            bytes: report.bytes,
            millis: report.millis,
            url: url.into(),
            key: Some(key),
            media: None,
            digest: None,
        }
    }

    /// On the answer to a request for a robots.txt.
    pub fn robots(url: &CrawlUrl, result: &FetchResult) -> Self {
        Self {
            at: result.ended,
            status: result.status(),
            class: result.outcome.class,
            bytes: result.wire_bytes,
            millis: result.millis(),
            url: url.as_str().into(),
            key: None,
            media: media(result),
            digest: None,
        }
    }

    /// With the digest of the payload, as the archive has it.
    pub fn with_digest(mut self, digest: Option<Digest>) -> Self {
        self.digest = digest.map(|digest| digest.labelled().into());
        self
    }

    fn render(&self, via: Option<&str>) -> String {
        let mut line = format!("{} ", moment(self.at));
        // Writing to a string does not fail.
        let _ = match self.status {
            Some(status) => write!(line, "{status}"),
            None => write!(line, "-"),
        };
        let word = |text: &Option<Box<str>>| text.as_deref().unwrap_or("-").to_owned();
        let _ = write!(
            line,
            " {} {} {} {} {} {} {}",
            self.class,
            self.bytes,
            self.millis,
            self.url,
            via.unwrap_or("-"),
            word(&self.media),
            word(&self.digest),
        );
        line
    }
}

/// The media type as declared, if it is one: type and subtype without parameters.
fn media(result: &FetchResult) -> Option<Box<str>> {
    let headers = &result.exchange.as_ref()?.headers;
    let declared = headers.get(http::header::CONTENT_TYPE)?.to_str().ok()?;
    media_type(declared)
}

/// The same of a header's text.
fn media_type(declared: &str) -> Option<Box<str>> {
    let essence = declared.split(';').next().unwrap_or_default().trim();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-/".contains(&byte);
    let fits = (1..=127).contains(&essence.len()) && essence.bytes().all(is_word);
    fits.then(|| essence.to_ascii_lowercase().into())
}

/// Gets each line as it is written.
pub type ShowLine = Box<dyn Fn(&str) + Send>;

/// What goes to the thread: lines, and at the end none.
type Message = Option<LogLine>;

/// The way into the log; none leads nowhere.
#[derive(Clone, Debug, Default)]
pub struct Log(Option<SyncSender<Message>>);

impl Log {
    /// Adds a line.
    pub fn add(&self, line: LogLine) {
        self.send(Some(line));
    }

    fn send(&self, message: Message) {
        if let Some(queue) = &self.0 {
            // The thread ends only when the crawl does.
            let _ = queue.send(message);
        }
    }
}

/// The thread that writes, to be waited for.
pub struct Writing(JoinHandle<()>);

impl Writing {
    /// Waits until all lines are written.
    pub fn finish(self, log: &Log) {
        log.send(None);
        let _ = self.0.join();
    }
}

/// A log whose thread is not yet there, because others must be built with it first.
pub struct Prepared {
    inbox: Receiver<Message>,
}

/// The way in, and what `start` needs.
pub fn prepare(options: &LogOptions, shown: bool) -> (Log, Option<Prepared>) {
    if options.files == 0 && !shown {
        return (Log::default(), None);
    }
    let (sender, inbox) = sync_channel(QUEUE);
    (Log(Some(sender)), Some(Prepared { inbox }))
}

impl Prepared {
    /// Starts the thread. `show` gets each line, too.
    pub fn start(
        self,
        dir: &Path,
        options: LogOptions,
        reader: Reader,
        show: Option<ShowLine>,
        notices: Arc<Notices>,
    ) -> Result<Writing> {
        let file = (options.files > 0).then(|| Rotating::new(dir.join("log"), options));
        let mut writer = Writer {
            reader,
            pages: HashMap::new(),
            file,
            show,
            complain: Box::new(move |error| {
                notices.add(format!(
                    "the request log cannot be written, some lines are missing: {error}"
                ));
            }),
        };
        let inbox = self.inbox;
        thread::Builder::new()
            .name("log".into())
            .spawn(move || writer.run(&inbox))
            .map(Writing)
            .context("cannot start the log thread")
    }
}

/// The pages of which links were fetched lately; a page has many.
const PAGES: usize = 4096;

/// Lines are written in groups: waking up for each would cost more than writing it.
const TOGETHER: Duration = Duration::from_millis(20);

struct Writer {
    reader: Reader,
    /// URLs of pages that led to others. Filled as lines are written, emptied when there are many.
    pages: HashMap<UrlKey, Arc<str>>,
    file: Option<Rotating>,
    show: Option<ShowLine>,
    complain: Box<dyn Fn(io::Error) + Send>,
}

impl Writer {
    fn run(&mut self, inbox: &Receiver<Message>) {
        let mut ended = false;
        while !ended && let Ok(first) = inbox.recv() {
            for message in std::iter::once(first).chain(inbox.try_iter()) {
                match message {
                    Some(line) => self.write(&line),
                    None => ended = true,
                }
            }
            if let Some(Err(error)) = self.file.as_mut().map(Rotating::flush) {
                (self.complain)(error);
            }
            if !ended {
                thread::sleep(TOGETHER);
            }
        }
    }

    fn write(&mut self, line: &LogLine) {
        let via = line.key.and_then(|key| self.via(key));
        let line = line.render(via.as_deref());
        if let Some(show) = &self.show {
            show(&line);
        }
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.push(&line)) {
            (self.complain)(error);
        }
    }

    /// The page that led to a URL. An index in trouble costs this column and no line.
    fn via(&mut self, key: UrlKey) -> Option<Arc<str>> {
        let via = self.reader.link(key).ok()??.via?;
        if let Some(page) = self.pages.get(&via) {
            return Some(Arc::clone(page));
        }
        let page: Arc<str> = self.reader.link(via).ok()??.url.as_str().into();
        if self.pages.len() >= PAGES {
            self.pages.clear();
        }
        self.pages.insert(via, Arc::clone(&page));
        Some(page)
    }
}

/// The file, closed and numbered when it is large enough: `crawl.log`, `crawl.log.1` before it, and so on.
struct Rotating {
    dir: PathBuf,
    options: LogOptions,
    open: Option<(BufWriter<File>, u64)>,
}

impl Rotating {
    fn new(dir: PathBuf, options: LogOptions) -> Self {
        Self {
            dir,
            options,
            open: None,
        }
    }

    fn push(&mut self, line: &str) -> io::Result<()> {
        if self
            .open
            .as_ref()
            .is_some_and(|(_, len)| *len >= self.options.rotate)
        {
            self.flush()?;
            self.open = None;
            self.rotate()?;
        }
        let (mut file, len) = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        file.write_all(line.as_bytes())?;
        file.write_all(b"\n")?;
        self.open = Some((file, len + line.len() as u64 + 1));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.open {
            Some((file, _)) => file.flush(),
            None => Ok(()),
        }
    }

    /// Opens the file where an earlier run has left it. A line that a kill has torn is ended.
    fn begin(&self) -> io::Result<(BufWriter<File>, u64)> {
        // Not with its parents: a crawl directory that is gone stays gone.
        match fs::create_dir(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.dir.join(NAME);
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        let mut len = file.seek(SeekFrom::End(0))?;
        if len > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(len - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                len += 1;
            }
        }
        Ok((BufWriter::new(file), len))
    }

    /// Each file gets the next higher number; the oldest is overwritten or removed.
    fn rotate(&self) -> io::Result<()> {
        let named = |number: u32| match number {
            0 => self.dir.join(NAME),
            number => self.dir.join(format!("{NAME}.{number}")),
        };
        let last = self.options.files.saturating_sub(1);
        if last == 0 {
            return fs::remove_file(named(0));
        }
        for number in (0..last).rev() {
            match fs::rename(named(number), named(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_bounded_in_size_and_number() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("log");
        let options = LogOptions {
            rotate: 100,
            files: 3,
        };
        let mut log = Rotating::new(dir.clone(), options.clone());
        for n in 0..100 {
            log.push(&format!("line {n:04} {}", "x".repeat(20)))
                .unwrap();
        }
        log.flush().unwrap();
        let mut names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["crawl.log", "crawl.log.1", "crawl.log.2"]);
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
        assert!(read("crawl.log").contains("line 0099"));
        assert!(read("crawl.log.1").len() < 140);
        // Another run goes on, and a torn line does not run into the next.
        drop(log);
        fs::write(dir.join("crawl.log"), "torn").unwrap();
        let mut log = Rotating::new(dir.clone(), options);
        log.push("whole").unwrap();
        log.flush().unwrap();
        assert_eq!(read("crawl.log"), "torn\nwhole\n");
    }

    #[test]
    fn media_types_are_words() {
        assert_eq!(
            media_type("Text/HTML; charset=utf-8").as_deref(),
            Some("text/html")
        );
        for odd in ["", "a b", "text/\u{1b}[2J", &"x".repeat(200)] {
            assert_eq!(media_type(odd), None, "{odd}");
        }
    }
}
