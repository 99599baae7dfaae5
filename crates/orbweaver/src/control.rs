//! Asking a running crawl: a socket in its directory that answers one question a connection.
//!
//! The doc index has one owner, so a second process cannot read it while the crawl runs; it asks here
//! instead. Question: one line with a word. Answer: lines, then the end of the connection.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use orbweaver_docindex::Reader;

use crate::crawl_dir::CrawlDir;

const NAME: &str = "control.sock";
/// A question that does not come, or an answer that nobody reads, ends the connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The ledger.
    Status,
    /// Every URL.
    Outcomes,
    /// What is wrong with the doc index.
    Check,
}

impl Question {
    fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Outcomes => "outcomes",
            Self::Check => "check",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Status, Self::Outcomes, Self::Check]
            .into_iter()
            .find(|question| question.word() == word)
    }
}

/// The socket of a running crawl; gone when dropped.
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens in the crawl's directory. `answer` writes the lines.
    pub(crate) fn listen(
        dir: &CrawlDir,
        reader: Reader,
        answer: impl Fn(Question, &Reader, &mut dyn Write) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let path = dir.path().join(NAME);
        // Left over from a process that was killed: the lock on the doc index says that it is gone.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(short(&path)?.as_path())
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
        let answer = std::sync::Arc::new(answer);
        thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (reader, answer) = (reader.clone(), std::sync::Arc::clone(&answer));
                    // A listing can take minutes; the next question must not wait for it.
                    let _ = thread::Builder::new().name("answer".into()).spawn(move || {
                        let _ = serve(&stream, &|question, out| answer(question, &reader, out));
                    });
                }
            })?;
        Ok(Self { path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(
    stream: &UnixStream,
    answer: &dyn Fn(Question, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(std::io::Read::take(stream, 64)).read_line(&mut line)?;
    let mut out = BufWriter::new(stream);
    if let Some(question) = Question::of(line.trim()) {
        answer(question, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Asks a running crawl; none when there is none.
pub(crate) fn ask(dir: &CrawlDir, question: Question) -> Result<Option<impl BufRead + use<>>> {
    let path = dir.path().join(NAME);
    let Ok(stream) = UnixStream::connect(short(&path)?.as_path()) else {
        return Ok(None);
    };
    writeln!(&stream, "{}", question.word())?;
    Ok(Some(BufReader::new(stream)))
}

/// A path to a socket must fit in 107 bytes. Through a handle of its directory every path is short.
fn short(path: &Path) -> Result<ShortPath> {
    use std::os::fd::AsRawFd;
    let parent = path.parent().unwrap_or(Path::new("."));
    let handle =
        std::fs::File::open(parent).with_context(|| format!("cannot open {}", parent.display()))?;
    let name = format!("/proc/self/fd/{}/{NAME}", handle.as_raw_fd());
    Ok(ShortPath {
        path: name.into(),
        _handle: handle,
    })
}

struct ShortPath {
    path: PathBuf,
    _handle: std::fs::File,
}

impl ShortPath {
    fn as_path(&self) -> &Path {
        &self.path
    }
}
