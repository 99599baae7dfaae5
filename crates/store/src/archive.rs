//! The shell around the writer: one thread that appends, syncs many groups at once, then acknowledges.
//!
//! One queue: from the preparing threads to this thread, bounded in bytes; whoever submits to a full one
//! waits. What is taken goes to the operating system at once, so that the end of the process loses
//! nothing that was taken; it is acknowledged after the next sync, so that a power cut loses nothing that
//! was acknowledged. When the disk fails everything is held and tried again until it works or the store
//! is told to stop.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::warc::prepare::{Archivist, Prepared};
use crate::warc::writer::{Location, Writer};

/// Shortest time between two writes. A write of its own for each page, two with the index, took a third of
/// the store's CPU time; what a kill can lose this way are pages of the last moment that nobody has been
/// told are stored.
const GATHER: Duration = Duration::from_millis(5);

/// Called once for each submitted group, in the order of submission: with its place when it is durable,
/// with an error when it never will be. It runs on the store's thread and must be quick.
pub type Ack = Box<dyn FnOnce(Result<Location, StoreError>) + Send>;

/// Called with each failure of the disk, and with none when writing works again.
type Trouble = Box<dyn FnMut(Option<&StoreError>) + Send>;

/// The store at work. Shared by all who submit.
pub struct Archive {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
    archivist: Archivist,
}

impl Archive {
    /// Starts the thread. `trouble` hears of each failed attempt to write and of the end of the trouble.
    pub fn start(
        writer: Writer,
        trouble: impl FnMut(Option<&StoreError>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let archivist = writer.archivist();
        let queue = Arc::new(Queue::new(writer.options().queue_bytes));
        let committer = Committer {
            linger: writer.options().linger,
            retry: writer.options().retry,
            queue: Arc::clone(&queue),
            writer,
            held: VecDeque::new(),
            pending: Vec::new(),
            flushed: None,
            synced: None,
            trouble: Box::new(trouble),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(|| committer.run())
            .map_err(|e| StoreError::io("start a thread for", archivist.warc_dir(), e))?;
        Ok(Self {
            queue,
            thread: Mutex::new(Some(thread)),
            archivist,
        })
    }

    /// The part that prepares what is submitted here.
    pub fn archivist(&self) -> Archivist {
        self.archivist.clone()
    }

    /// Hands over a group; waits while the queue is full. After [`Archive::close`] the answer is an error.
    pub fn submit(&self, prepared: Prepared, ack: Ack) {
        self.queue.put(Job { prepared, ack });
    }

    /// Bytes that wait for the store's thread.
    pub fn backlog(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Writes and acknowledges all that was submitted, finishes the file and ends the thread. When the
    /// disk fails it tries once more, then answers what is left with the error.
    pub fn close(&self) -> Result<(), StoreError> {
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

struct Job {
    prepared: Prepared,
    ack: Ack,
}

/// Filled by `Archive::submit`, emptied by the store's thread, bounded by `max_bytes`.
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
        let size = job.prepared.size();
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
    /// Taken from the queue, not appended yet; more than briefly only while the disk fails.
    held: VecDeque<Job>,
    /// Appended, waiting for the sync. Bounded like the queue, for both are drained before more is taken.
    pending: Vec<(Location, Ack)>,
    /// When the last write ended.
    flushed: Option<Instant>,
    /// When the last sync ended.
    synced: Option<Instant>,
    linger: Duration,
    retry: Duration,
    trouble: Trouble,
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
            match (&result, &failed) {
                (Err(error), _) => (self.trouble)(Some(error)),
                (Ok(()), Some(_)) => (self.trouble)(None),
                (Ok(()), None) => {}
            }
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
                return self.writer.close();
            }
        }
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
            let location = self.writer.append(&job.prepared)?;
            if let Some(job) = self.held.pop_front() {
                self.pending.push((location, job.ack));
            }
        }
        self.writer.flush()?;
        self.flushed = Some(Instant::now());
        let due = self.sync_deadline().is_some_and(|at| at <= Instant::now());
        if due || closing || self.writer.unsynced() > self.queue.max_bytes {
            self.writer.sync()?;
            self.synced = Some(Instant::now());
            for (location, ack) in self.pending.drain(..) {
                ack(Ok(location));
            }
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
