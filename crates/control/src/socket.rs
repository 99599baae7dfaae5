//! The control socket of a running crawl, in its directory: one request per connection.
//!
//! The doc index has one owner, so a second process cannot read it while the crawl runs, and changes must
//! go through the ring; both ask here instead. Question: one line with a JSON object. Answer: JSON lines,
//! then the end of the connection. What is answered is decided in `control.rs`.

use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Context, Error, Kind, Result};
use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::question::Question;
use orbweaver_crawldir::CrawlDir;
use orbweaver_crawldir::json;

const NAME: &str = "control.sock";
/// A question that does not come, or an answer that nobody reads, ends the connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// No question is longer: a thousand URLs of ordinary length fit in.
const MAX_QUESTION: u64 = 1 << 20;
/// Questions that are answered at once.
const MAX_OPEN: usize = 64;

/// Why a question is not answered, as the one who listens says it.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Of which kind it is.
    pub kind: Kind,
    /// The reason, in words.
    pub message: String,
}

/// The same as a line.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    error: String,
    /// The number of its kind.
    code: u8,
}

/// The socket of a running crawl; gone when dropped.
pub struct Socket {
    path: PathBuf,
    /// Its inode: what another process has put in its place stays.
    inode: u64,
    /// The thread that accepts, and what ends it when it is dropped.
    accepting: Option<(UnixStream, JoinHandle<()>)>,
}

impl Socket {
    /// Listens in the crawl's directory. `answer` writes the lines.
    pub fn listen(
        dir: &CrawlDir,
        answer: impl Fn(Question, &mut dyn Write) -> Result<(), Refused> + Send + Sync + 'static,
    ) -> Result<Self> {
        let path = dir.path().join(NAME);
        // Left over from a process that was killed: the lock on the doc index says that it is gone.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(short(&path)?.as_path())
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        let failed = || format!("cannot listen on {}", path.display());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).with_context(failed)?;
        let inode = std::fs::metadata(&path).with_context(failed)?.ino();
        let (end, ended) = UnixStream::pair().with_context(failed)?;
        listener.set_nonblocking(true).with_context(failed)?;
        let thread = thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&listener, &ended, &Arc::new(answer)))
            .context("cannot start the thread that answers questions")?;
        Ok(Self {
            path,
            inode,
            accepting: Some((end, thread)),
        })
    }
}

/// Takes questions until the other end of `ended` is closed. What answers them is let go of then, for it holds the doc index.
fn accept<A>(listener: &UnixListener, ended: &UnixStream, answer: &Arc<A>)
where
    A: Fn(Question, &mut dyn Write) -> Result<(), Refused> + Send + Sync + 'static,
{
    let open: Arc<()> = Arc::default();
    loop {
        let mut ready = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        // An interrupted call is made again.
        let _ = poll(&mut ready, None);
        let [_, end] = &ready;
        if !end.revents().is_empty() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        // Whoever asks more at once is not served; each has a thread, for a listing can take minutes.
        if Arc::strong_count(&open) > MAX_OPEN || stream.set_nonblocking(false).is_err() {
            continue;
        }
        let (answer, place) = (Arc::clone(answer), Arc::clone(&open));
        let _ = thread::Builder::new().name("answer".into()).spawn(move || {
            let _place = place;
            // Whoever does not listen to the end needs no answer.
            let _ = serve(&stream, &*answer);
        });
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.accepting.take() {
            drop(end);
            let _ = thread.join();
        }
        if std::fs::metadata(&self.path).is_ok_and(|about| about.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn serve(
    stream: &UnixStream,
    answer: &dyn Fn(Question, &mut dyn Write) -> Result<(), Refused>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_QUESTION)).read_line(&mut line)?;
    let mut out = BufWriter::new(stream);
    let unknown = |error: serde_json::Error| Refused {
        kind: Kind::Input,
        message: format!("the crawl does not understand the request: {error}"),
    };
    let answered = serde_json::from_str(&line)
        .map_err(unknown)
        .and_then(|question| answer(question, &mut out));
    if let Err(refused) = answered {
        let refusal = Refusal {
            error: refused.message,
            code: refused.kind.number(),
        };
        writeln!(out, "{}", json::line(&refusal))?;
    }
    out.flush()
}

/// Asks a running crawl for lines; none when there is none.
pub fn ask(dir: &CrawlDir, question: &Question) -> Result<Option<impl BufRead + use<>>> {
    let path = dir.path().join(NAME);
    let stream = match UnixStream::connect(short(&path)?.as_path()) {
        Ok(stream) => stream,
        // A crawl of another user. A socket that a kill has left behind refuses all the same.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && dir.is_held() => {
            return Err(CrawlDir::not_allowed(&path).into());
        }
        Err(_) => return Ok(None),
    };
    let line = json::line(question);
    writeln!(&stream, "{line}").context("the crawl is ending; try again")?;
    Ok(Some(BufReader::new(stream)))
}

/// Asks a running crawl for one object; none when there is none. A refusal is an error.
pub fn ask_one<T: DeserializeOwned>(dir: &CrawlDir, question: &Question) -> Result<Option<T>> {
    let Some(mut answer) = ask(dir, question)? else {
        return Ok(None);
    };
    let mut line = String::new();
    answer
        .read_line(&mut line)
        .context("the crawl is ending and gave no answer; try again")?;
    if let Some(refused) = refusal(line.as_bytes()) {
        return Err(refused);
    }
    let read = serde_json::from_str(&line);
    read.map(Some).map_err(|_| Error::NoAnswer)
}

/// What a line of an answer refuses, if it does.
pub fn refusal(line: &[u8]) -> Option<Error> {
    // Every other line begins otherwise, and there may be millions.
    if !line.starts_with(b"{\"error\":") {
        return None;
    }
    let refusal: Refusal = serde_json::from_slice(line).ok()?;
    Some(Error::Refused {
        kind: Kind::of(refusal.code),
        message: refusal.error,
    })
}

/// A path to a socket must fit in 107 bytes. Through a handle of its directory every path is short.
fn short(path: &Path) -> Result<ShortPath> {
    use std::os::fd::AsRawFd;
    let parent = path.parent().unwrap_or(Path::new("."));
    let handle = std::fs::File::open(parent).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => CrawlDir::not_allowed(parent).into(),
        _ => Error::Io {
            what: format!("cannot open {}", parent.display()),
            source: error,
        },
    })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, CrawlDir) {
        let place = tempfile::tempdir().unwrap();
        let held = CrawlDir::hold(&place.path().join("crawl")).unwrap();
        let dir = held.dir().clone();
        (place, dir)
    }

    #[test]
    fn questions_are_answered_and_refusals_keep_their_code() {
        let (_place, dir) = dir();
        assert!(ask_one::<u8>(&dir, &Question::Slow).unwrap().is_none());
        let control = Socket::listen(&dir, |question, out| match question {
            Question::Undo { n } => {
                writeln!(out, "{n}").unwrap();
                Ok(())
            }
            _ => Err(Refused {
                kind: Kind::NotFound,
                message: "nothing here".into(),
            }),
        })
        .unwrap();
        let n: Option<u64> = ask_one(&dir, &Question::Undo { n: 7 }).unwrap();
        assert_eq!(n, Some(7));
        let refused = ask_one::<u64>(&dir, &Question::Slow).unwrap_err();
        assert_eq!(refused.kind(), Kind::NotFound);
        assert_eq!(refused.to_string(), "nothing here");
        let mode = std::fs::metadata(dir.path().join(NAME))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        drop(control);
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn nonsense_is_refused() {
        let (_place, dir) = dir();
        let _control = Socket::listen(&dir, |_, _| Ok(())).unwrap();
        for nonsense in ["status", "{\"ask\":\"sing\"}", "{\"ask\":\"block\"}", ""] {
            let path = dir.path().join(NAME);
            let stream = UnixStream::connect(short(&path).unwrap().as_path()).unwrap();
            writeln!(&stream, "{nonsense}").unwrap();
            let mut answer = String::new();
            (&stream).read_to_string(&mut answer).unwrap();
            let refusal: Refusal = serde_json::from_str(&answer).unwrap();
            assert_eq!(refusal.code, 2, "{nonsense}: {}", refusal.error);
        }
    }
}
