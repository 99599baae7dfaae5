//! The interface of a running crawl: watch it, change it, wait for its end.

mod builder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use orbweaver_crawldir::CrawlDir;

pub use self::builder::CrawlBuilder;
use crate::control::Control;
use crate::error::{Context, Error, Result};
use crate::inlet::Inlet;
use crate::machine::Descriptors;
use crate::pages::Pages;
use crate::ring::{Ring, Start};
use orbweaver_control::Question;
use orbweaver_control::hosts::Said;
use orbweaver_watch::progress::Progress;
use orbweaver_watch::slow::Slow;
use orbweaver_watch::status::Status;
use orbweaver_watch::summary::Summary;
use orbweaver_watch::why::Why;

/// A crawl that runs, on threads of its own.
///
/// Dropping it stops the crawl in order and waits for that; [`Crawl::wait`] waits until there is nothing left to do.
/// Everything durable is in the crawl directory, so that a crawl that was stopped, killed or cut off is resumed by starting
/// one on the same directory.
///
/// All methods may be called from any thread. They block for moments, some until a change is on the disk.
pub struct Crawl {
    dir: CrawlDir,
    control: Arc<Control>,
    thread: Option<JoinHandle<Result<Summary>>>,
    /// Closed when the thread is about to end.
    ended: Receiver<()>,
    /// True when nothing more is archived.
    over: Arc<AtomicBool>,
}

impl Crawl {
    /// Describes a crawl in a directory: a new one, or one that is resumed there.
    pub fn builder(dir: impl Into<std::path::PathBuf>) -> CrawlBuilder {
        CrawlBuilder::new(dir.into())
    }

    pub(crate) fn start(start: Start) -> Result<Self> {
        let dir = start.held.dir().clone();
        let (tell, ready) = sync_channel(1);
        let (alive, ended) = sync_channel::<()>(1);
        let over = Over::default();
        let seen = Arc::clone(&over.0);
        let thread = thread::Builder::new()
            .name("crawl".into())
            .spawn(move || {
                let _alive = alive;
                // Also when it fails: whoever waits for pages must not wait forever.
                let _over = over;
                run(start, &tell)
            })
            .context("cannot start the crawl thread")?;
        match ready.recv() {
            Ok(control) => Ok(Self {
                dir,
                control,
                thread: Some(thread),
                ended,
                over: seen,
            }),
            // It has refused to begin and says why.
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => error,
                _ => Error::Failed("the crawl failed before it began".into()),
            }),
        }
    }

    /// Its directory.
    pub fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    /// The progress, at most a quarter of a second old.
    pub fn progress(&self) -> Progress {
        self.control.watch().progress()
    }

    /// Messages for the user since the last call: one sentence each, lower case and without a full stop.
    pub fn messages(&self) -> Vec<String> {
        self.control.watch().messages()
    }

    /// The counts of URLs and hosts.
    pub fn status(&self) -> Result<Status> {
        self.control.status()
    }

    /// Explains the state of a URL: which page linked to it, what scope and robots.txt say, where it waits and for what.
    pub fn why(&self, url: &str) -> Result<Why> {
        self.control.why(url)
    }

    /// What limits the speed, and which setting would change it.
    pub fn slow(&self) -> Result<Slow> {
        self.control.slow()
    }

    /// The finished pages, for a reader with this name: from where it was in an earlier run, or from the beginning.
    ///
    /// The crawl slows down for a reader that falls more than a thousand results behind, so that one that is given up must be
    /// dropped. There is one reader of a name at a time.
    pub fn pages(&self, name: &str) -> Result<Pages> {
        let Some(reading) = self.control.reading() else {
            let what = "pages are kept by a store elsewhere; follow its results";
            return Err(Error::input(what));
        };
        let (pages, progress) = Pages::new(reading, name, Arc::clone(&self.over))?;
        self.control.watch().heed(&progress);
        Ok(pages)
    }

    /// Where links come in that no page brought.
    pub fn inlet(&self) -> Inlet {
        self.control.inlet().clone()
    }

    /// Sends no more requests; those in flight may finish.
    pub fn pause(&self) -> Result<()> {
        self.control.make(Question::Pause).map(drop)
    }

    /// Sends requests again.
    pub fn resume(&self) -> Result<()> {
        self.control.make(Question::Resume).map(drop)
    }

    /// Makes a change, as `orbweaver ctl` does; it is written to the log of changes first.
    pub fn change(&self, change: Question) -> Result<Said> {
        self.control.make(change)
    }

    /// Stops it: requests in flight may finish, then everything is written. [`Crawl::wait`] waits for that.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for its end, but no longer than `span`. True when it has ended.
    pub fn wait_timeout(&self, span: Duration) -> bool {
        self.ended.recv_timeout(span) == Err(RecvTimeoutError::Disconnected)
    }

    /// Waits until there is nothing left to do, a limit is reached, or it was told to stop; what it came to.
    pub fn wait(mut self) -> Result<Summary> {
        self.join()
    }

    fn join(&mut self) -> Result<Summary> {
        let failed = || Error::Failed("the crawl thread failed".into());
        let thread = self.thread.take().ok_or_else(failed)?;
        thread.join().map_err(|_| failed())?
    }
}

impl Drop for Crawl {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.control.stop();
            // Who wants to know how it ended waits for it.
            let _ = self.join();
        }
    }
}

/// Says when it is dropped that nothing more is archived.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// How long threads that are still busy may take when everything is written. Lookups that never end must not keep the
/// process.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// The crawl's thread: builds the ring, says so, looks after it, and stops it.
fn run(mut start: Start, tell: &SyncSender<Arc<Control>>) -> Result<Summary> {
    let dir = start.held.dir().clone();
    let descriptors = Descriptors::get();
    start.fit(descriptors);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(start.settings.workers)
        .thread_name("worker")
        .enable_all()
        .build()
        .context("cannot start the worker threads")?;
    let ended = runtime.block_on(async {
        let ring = Ring::build(start, descriptors)?;
        // Whoever started it waits for this.
        let _ = tell.send(ring.control());
        let reason = ring.supervise().await;
        ring.stop(reason).await
    });
    runtime.shutdown_timeout(LAST_MOMENT);
    dir.level_modes();
    ended
}
