//! The archive in WARC files: one thread that appends exchanges and their entries in the results, syncs many at once, then
//! acknowledges.
//!
//! One queue: from the preparing threads to this thread, bounded in bytes; whoever submits to a full one
//! waits. What is taken goes to the operating system at once, so that the end of the process loses
//! nothing that was taken; it is acknowledged after the next sync, so that a power cut loses nothing that
//! was acknowledged. When the disk fails everything is held and tried again until it works or the store
//! is told to stop.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use orbweaver_model::CapturePlace;

use crate::capture::Capture;
use crate::digest::Digest;
use crate::error::StoreError;
use crate::exchange::{StoredExchange, read_place};
use crate::keep::{Ack, Attempt, Keep, Kept, Notice, Placed};
use crate::results::{Draft, Entry, Results, Standing, Writing};
use crate::warc::prepare::{Archivist, Prepared, Scratch};
use crate::warc::writer::Writer;

/// Shortest time between two writes. A write of its own for each page, two with the index, took a third of
/// the store's CPU time; what a kill can lose this way are pages of the last moment that nobody has been
/// told are stored.
const GATHER: Duration = Duration::from_millis(5);

/// What an entry of the results takes in the queue beyond its own bytes, so that a queue of nothing but entries is bounded
/// too.
const JOB: usize = 256;

/// Called with what happens, as it happens.
type Watch = Box<dyn FnMut(Notice<'_>) + Send>;

thread_local! {
    /// The compressor's buffers; one per thread that submits.
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// The archive in WARC files, at work. Shared by all who submit.
pub struct Archive {
    dir: PathBuf,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
    archivist: Archivist,
    results: Results,
    trouble: Arc<Mutex<Option<StoreError>>>,
}

impl Archive {
    /// Opens the results beside the archive and starts the thread. `each` hears of every entry of the results that was not
    /// forgotten; `watch` of what happens from then on.
    pub fn start(
        mut writer: Writer,
        each: &mut dyn FnMut(&Entry),
        watch: impl FnMut(Notice<'_>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let archivist = writer.archivist();
        let dir = writer.dir().to_path_buf();
        let queue = Arc::new(Queue::new(writer.options().queue_bytes));
        let journal = Writing::open(writer.layout(), writer.options(), each)?;
        // A number is not given again, even when its file is gone.
        writer.begin_after(journal.newest_file());
        let results = journal.results();
        let trouble: Arc<Mutex<Option<StoreError>>> = Arc::default();
        let committer = Committer {
            linger: writer.options().linger,
            retry: writer.options().retry,
            queue: Arc::clone(&queue),
            writer,
            journal,
            held: VecDeque::new(),
            pending: Vec::new(),
            flushed: None,
            synced: None,
            trouble: Arc::clone(&trouble),
            watch: Box::new(watch),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(|| committer.run())
            .map_err(|e| StoreError::io("start a thread for", archivist.warc_dir(), e))?;
        Ok(Self {
            dir,
            queue,
            thread: Mutex::new(Some(thread)),
            archivist,
            results,
            trouble,
        })
    }

    fn submit(&self, what: What, draft: Draft, digest: Option<Digest>, ack: Ack) {
        if !draft.fits() {
            let what = "a URL and a note that are too long for the results";
            return ack(Err(StoreError::damaged(&self.dir, 0, what)));
        }
        self.queue.put(Job {
            what,
            draft,
            digest,
            ack,
        });
    }
}

impl Keep for Archive {
    fn put(&self, capture: &Capture<'_>, note: &[u8], ack: Ack) -> Placed {
        let placed = Placed::default();
        let prepared = SCRATCH.with_borrow_mut(|scratch| {
            let scratch = scratch.get_or_insert_with(|| self.archivist.scratch());
            self.archivist.prepare(capture, scratch)
        });
        let result = capture.result;
        let (purpose, url) = (capture.of.purpose(), capture.url.as_str());
        let draft = Draft::new(result.ended, purpose, url, note);
        match prepared {
            Ok(Some(prepared)) => {
                let digest = prepared.digest().and_then(Digest::parse);
                let what = What::Exchange(Box::new(prepared), placed.clone());
                self.submit(what, draft, digest, ack);
            }
            Ok(None) => self.submit(What::Attempt(None), draft, None, ack),
            Err(error) => ack(Err(error)),
        }
        placed
    }

    fn enter(&self, attempt: &Attempt<'_>, ack: Ack) {
        let draft = Draft::new(attempt.at, attempt.purpose, attempt.url, attempt.note);
        let what = What::Attempt(attempt.same.cloned());
        self.submit(what, draft, None, ack);
    }

    fn read(&self, place: CapturePlace, max: u64) -> Result<StoredExchange, StoreError> {
        read_place(&self.dir, place, max)
    }

    fn results(&self) -> &Results {
        &self.results
    }

    fn backlog(&self) -> usize {
        self.queue.lock().bytes
    }

    fn trouble(&self) -> Option<StoreError> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.queue.close();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(StoreError::Stopped),
            None => Ok(()),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // Who wants to know whether the end went well calls `close`.
        let _ = self.close();
    }
}

/// What is to be kept.
enum What {
    /// A group of records, and where to say its place.
    Exchange(Box<Prepared>, Placed),
    /// Nothing, or what was submitted before and has its place when this is reached.
    Attempt(Option<Placed>),
}

struct Job {
    what: What,
    draft: Draft,
    digest: Option<Digest>,
    ack: Ack,
}

impl Job {
    fn size(&self) -> usize {
        let prepared = match &self.what {
            What::Exchange(prepared, _) => prepared.size(),
            What::Attempt(_) => 0,
        };
        JOB + self.draft.payload().len() + prepared
    }
}

/// Filled by whoever submits, emptied by the store's thread, bounded by `max_bytes`.
struct Queue {
    state: Mutex<Waiting>,
    /// Something came, or the end.
    filled: Condvar,
    /// Room was made, or the end.
    emptied: Condvar,
    max_bytes: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    fn new(max_bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            max_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job larger than the whole bound is let in when nothing else waits.
    fn put(&self, job: Job) {
        let size = job.size();
        let full = |w: &mut Waiting| !w.closed && w.bytes > 0 && w.bytes + size > self.max_bytes;
        let waited = self.emptied.wait_while(self.lock(), full);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            drop(waiting);
            (job.ack)(Err(StoreError::Stopped));
            return;
        }
        waiting.bytes += size;
        waiting.jobs.push_back(job);
        let first = waiting.jobs.len() == 1;
        drop(waiting);
        // The store's thread sleeps only while nothing waits; to call it for each job would cost a system
        // call a page.
        if first {
            self.filled.notify_one();
        }
    }

    /// Takes all that waits; waits for something at most until `deadline`. Says whether it is the end.
    fn take(&self, deadline: Option<Instant>, into: &mut VecDeque<Job>) -> bool {
        let idle = |w: &mut Waiting| !w.closed && w.jobs.is_empty();
        let mut waiting = match deadline {
            None => self
                .filled
                .wait_while(self.lock(), idle)
                .unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let waited = self.filled.wait_timeout_while(self.lock(), left, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        into.append(&mut waiting.jobs);
        waiting.bytes = 0;
        let closed = waiting.closed;
        drop(waiting);
        self.emptied.notify_all();
        closed
    }

    /// Waits for the end, but no longer than `span`. Says whether it came.
    fn pause(&self, span: Duration) -> bool {
        let open = |w: &mut Waiting| !w.closed;
        let waited = self.filled.wait_timeout_while(self.lock(), span, open);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

/// The store's thread.
struct Committer {
    queue: Arc<Queue>,
    writer: Writer,
    journal: Writing,
    /// Taken from the queue, not appended yet; more than briefly only while the disk fails.
    held: VecDeque<Job>,
    /// Appended, waiting for the sync. Bounded like the queue, for both are drained before more is taken.
    pending: Vec<(Kept, Ack)>,
    /// When the last write ended.
    flushed: Option<Instant>,
    /// When the last sync ended.
    synced: Option<Instant>,
    linger: Duration,
    retry: Duration,
    trouble: Arc<Mutex<Option<StoreError>>>,
    watch: Watch,
}

impl Committer {
    fn run(mut self) -> Result<(), StoreError> {
        let mut failed = None;
        loop {
            let closing = match &failed {
                // While the disk fails nothing more is taken, so that memory stays bounded.
                Some(_) => self.queue.pause(self.retry),
                None => {
                    self.gather();
                    let deadline = self.sync_deadline();
                    self.queue.take(deadline, &mut self.held)
                }
            };
            let result = self.advance(closing);
            self.tell(&result, failed.is_some());
            failed = result.err();
            if !closing {
                continue;
            }
            if let Some(error) = failed {
                self.give_up(&error);
                return Err(error);
            }
            // What came while the disk failed is still in the queue; it is the last.
            self.queue.take(None, &mut self.held);
            if self.held.is_empty() {
                self.writer.close()?;
                return self.journal.close();
            }
        }
    }

    /// Says whether writing works, when it does not or when that has changed.
    fn tell(&mut self, result: &Result<(), StoreError>, failed: bool) {
        let notice = match result {
            Err(error) => Notice::Failing(error),
            Ok(()) if failed => Notice::Working,
            Ok(()) => return,
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = result.clone().err();
        (self.watch)(notice);
    }

    /// Under load, lets a few more groups come before the next write.
    fn gather(&self) {
        let since = self.flushed.map(|last| last.elapsed());
        if let Some(rest) = since.and_then(|since| GATHER.checked_sub(since)) {
            self.queue.pause(rest);
        }
    }

    /// When the groups that were written must be synced; none when there are none.
    fn sync_deadline(&self) -> Option<Instant> {
        let last = (!self.pending.is_empty()).then_some(self.synced)?;
        Some(last.map_or_else(Instant::now, |last| last + self.linger))
    }

    fn advance(&mut self, closing: bool) -> Result<(), StoreError> {
        while let Some(job) = self.held.front() {
            // The only step that can fail; then the job is held, and this is tried again.
            let standing = append(&mut self.writer, &job.what)?;
            if let Some(job) = self.held.pop_front() {
                self.enter(job, standing);
            }
        }
        // The exchanges go first: an entry never names what was not written.
        self.writer.flush()?;
        self.journal.flush()?;
        self.flushed = Some(Instant::now());
        let due = self.sync_deadline().is_some_and(|at| at <= Instant::now());
        if due || closing || self.writer.unsynced() > self.queue.max_bytes {
            self.sync()?;
        }
        Ok(())
    }

    /// Adds the entry of what was appended.
    fn enter(&mut self, job: Job, standing: Option<Standing>) {
        let Job {
            mut draft,
            digest,
            ack,
            ..
        } = job;
        // What this was to be the same as was never appended.
        let Some(standing) = standing else {
            return ack(Err(StoreError::Stopped));
        };
        draft.stands(standing);
        match self.journal.append(&draft) {
            Ok(position) => {
                let place = standing.place();
                let kept = Kept {
                    position,
                    place,
                    digest,
                };
                self.pending.push((kept, ack));
            }
            // It fits: that was seen to when it was submitted.
            Err(error) => ack(Err(error)),
        }
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.writer.sync()?;
        let position = self.journal.sync()?;
        self.synced = Some(Instant::now());
        if self.pending.is_empty() {
            return Ok(());
        }
        // Told before the answers: who was answered can already be followed.
        (self.watch)(Notice::Durable(position));
        for (kept, ack) in self.pending.drain(..) {
            ack(Ok(kept));
        }
        Ok(())
    }

    fn give_up(&mut self, error: &StoreError) {
        for (_, ack) in self.pending.drain(..) {
            ack(Err(error.clone()));
        }
        self.queue.take(None, &mut self.held);
        for job in self.held.drain(..) {
            (job.ack)(Err(error.clone()));
        }
    }
}

/// Appends what is to be kept, and says what the archive has of it then; none when it should have been there and is not.
fn append(writer: &mut Writer, what: &What) -> Result<Option<Standing>, StoreError> {
    match what {
        What::Exchange(prepared, placed) => {
            let place = writer.append(prepared)?.place();
            placed.set(place);
            Ok(Some(Standing::Stored(place)))
        }
        What::Attempt(None) => Ok(Some(Standing::Nothing)),
        What::Attempt(Some(same)) => Ok(same.get().map(Standing::Before)),
    }
}
