//! The books: which records are known, and the thread that enters them in the journal.
//!
//! A record is known by its document, its URL and its data. One that is known is not archived again, only
//! entered again, so that the doc index hears of every attempt and the archive holds nothing twice.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::{oneshot, watch};
use tracing::{info, warn};
use xxhash_rust::xxh3::Xxh3;

use orbweaver_model::CrawlUrl;
use orbweaver_store::{Recovery, each_line, exchange_at};
use orbweaver_wire::Verdict;

use super::super::journal::{Entry, Location, ROTATE, Shelf, Standing, Writer};

/// Records that are remembered: more than all spiders together can have unanswered, at some 100 bytes each.
const REMEMBERED: usize = 1 << 18;

/// Entries that one sync makes durable at most.
const BATCH: usize = 4096;

/// Time until a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Whoever waits for the answer to a record.
pub(super) type Reply = oneshot::Sender<Verdict>;

/// What recognises a record: the same document, URL and message have the same key.
pub(super) fn key(doc_id: u32, url: &CrawlUrl, message: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&doc_id.to_be_bytes());
    hash.update(&(url.as_str().len() as u64).to_be_bytes());
    hash.update(url.as_str().as_bytes());
    hash.update(message);
    hash.digest128()
}

/// Whether the disk fails, and where.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<[AtomicBool; 2]>);

impl Trouble {
    pub(super) fn archive(&self, failing: bool) {
        let [archive, _] = &*self.0;
        archive.store(failing, Ordering::Relaxed);
    }

    fn journal(&self, failing: bool) {
        let [_, journal] = &*self.0;
        journal.store(failing, Ordering::Relaxed);
    }

    /// True while nothing can be stored.
    pub(super) fn is_on(&self) -> bool {
        self.0.iter().any(|failing| failing.load(Ordering::Relaxed))
    }
}

/// Where a known record is.
pub(super) enum Known {
    /// On its way to the archive; these wait for it.
    Coming(Vec<(Entry, Reply)>),
    /// In the archive.
    At(Location),
}

/// The records of late. Filled by the keeper and at the start, bounded by forgetting the oldest.
#[derive(Default)]
pub(super) struct Memory {
    known: HashMap<u128, Known>,
    order: VecDeque<u128>,
}

impl Memory {
    pub(super) fn get(&mut self, key: u128) -> Option<&mut Known> {
        self.known.get_mut(&key)
    }

    /// Remembers a record; returns those who waited for it.
    pub(super) fn put(&mut self, key: u128, known: Known) -> Vec<(Entry, Reply)> {
        let before = self.known.insert(key, known);
        if before.is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            // One on its way is not forgotten: somebody may wait for it.
            if matches!(self.known.get(&oldest), Some(Known::Coming(_))) {
                self.order.push_back(oldest);
            } else {
                self.known.remove(&oldest);
            }
        }
        match before {
            Some(Known::Coming(waiting)) => waiting,
            _ => Vec::new(),
        }
    }

    /// Forgets a record that was not stored; those who waited for it get no answer.
    pub(super) fn remove(&mut self, key: u128) {
        self.known.remove(&key);
        self.order.retain(|it| *it != key);
    }
}

/// The journal at work, and the memory of what is in it.
pub(super) struct Books {
    memory: Arc<Mutex<Memory>>,
    sender: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<bool>>>,
    trouble: Trouble,
    shelf: Shelf,
    durable: watch::Receiver<u64>,
}

impl Books {
    /// Opens the journal of a store's directory and starts its thread. What the archive has and the journal
    /// does not, because the process died in between, is remembered: its spider will send it again.
    pub(super) fn open(dir: &Path, recovery: &Recovery) -> Result<Self> {
        let mut memory = Memory::default();
        let mut last: Option<Location> = None;
        let path = Shelf::dir(dir);
        let writer = Writer::open(&path, ROTATE, &mut |_, entry: Entry| {
            if let Some(location) = entry.standing.location() {
                memory.put(entry.key, Known::At(location.clone()));
            }
            if let Standing::Archived(location) = entry.standing {
                last = Some(location);
            }
        });
        let writer =
            writer.with_context(|| format!("cannot open the journal in {}", path.display()))?;
        let adopted = adopt(dir, recovery, last.as_ref(), &mut memory)?;
        info!(entries = writer.last(), adopted, "journal open");
        let (sender, receiver) = mpsc::channel();
        let (tell, durable) = watch::channel(writer.last());
        let trouble = Trouble::default();
        let shelf = writer.shelf();
        let clerk = Clerk {
            writer,
            receiver,
            held: VecDeque::new(),
            trouble: trouble.clone(),
            durable: tell,
        };
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || clerk.run())
            .context("cannot start a thread")?;
        Ok(Self {
            memory: Arc::new(Mutex::new(memory)),
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            trouble,
            shelf,
            durable,
        })
    }

    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shelf(&self) -> Shelf {
        self.shelf.clone()
    }

    /// The number of the last durable entry, as it grows.
    pub(super) fn durable(&self) -> watch::Receiver<u64> {
        self.durable.clone()
    }

    /// Enters a record; the verdict is given when the entry is durable.
    pub(super) fn enter(&self, entry: Entry, reply: Reply, verdict: Verdict) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // Without the thread there is no answer, and the record is sent again.
        if let Some(sender) = &*sender {
            let _ = sender.send((entry, reply, verdict));
        }
    }

    /// Enters all that waits and ends the thread. False when the disk did not let it.
    pub(super) fn close(&self) -> bool {
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        thread.is_none_or(|thread| thread.join().unwrap_or(false))
    }
}

/// Remembers the captures behind the last one that the journal knows.
fn adopt(
    dir: &Path,
    recovery: &Recovery,
    last: Option<&Location>,
    memory: &mut Memory,
) -> Result<usize> {
    let mut unknown = Vec::new();
    for index in recovery.newest_first() {
        let mut older = false;
        each_line(index, &mut |line| {
            let place = (line.filename.as_str(), line.offset);
            older |= last.is_some_and(|last| line.filename.as_str() < last.file.as_str());
            if last.is_none_or(|last| place > (last.file.as_str(), last.offset)) {
                unknown.push(Location {
                    file: line.filename,
                    offset: line.offset,
                });
            }
            if older {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if older {
            break;
        }
    }
    let count = unknown.len();
    for location in unknown {
        let stored = exchange_at(dir, &location.file, location.offset)?;
        let doc_id = stored.metadata("docId").and_then(|id| id.parse().ok());
        if let Ok(url) = CrawlUrl::from_canonical(&stored.url) {
            let key = key(doc_id.unwrap_or(0), &url, &stored.response);
            memory.put(key, Known::At(location));
        }
    }
    Ok(count)
}

/// What waits to be entered.
type Job = (Entry, Reply, Verdict);

/// The journal's thread.
struct Clerk {
    writer: Writer,
    receiver: mpsc::Receiver<Job>,
    /// Received and not entered yet; bounded by what all connections may have unanswered.
    held: VecDeque<Job>,
    trouble: Trouble,
    durable: watch::Sender<u64>,
}

impl Clerk {
    /// Works until the last sender is gone. False when something could not be entered.
    fn run(mut self) -> bool {
        loop {
            if self.held.is_empty() {
                match self.receiver.recv() {
                    Ok(job) => self.held.push_back(job),
                    Err(_) => return true,
                }
            }
            self.held.extend(self.receiver.try_iter().take(BATCH));
            let batch = self.held.len().min(BATCH);
            let (entries, replies): (Vec<_>, Vec<_>) = self
                .held
                .drain(..batch)
                .map(|(entry, reply, verdict)| (entry, (reply, verdict)))
                .unzip();
            if !self.enter(&entries) {
                return false;
            }
            // Told before the answers: who was answered can already be followed.
            self.durable.send_replace(self.writer.last());
            for (reply, verdict) in replies {
                // A spider that is gone asks again.
                let _ = reply.send(verdict);
            }
        }
    }

    /// Makes entries durable, however often it takes. False when the store stops before that.
    fn enter(&mut self, entries: &[Entry]) -> bool {
        let mut failing = false;
        while let Err(error) = self.writer.append(entries) {
            warn!(%error, "the journal cannot be written; spiders are told to try later");
            self.trouble.journal(true);
            failing = true;
            std::thread::sleep(RETRY);
            if self.is_over() {
                return false;
            }
        }
        if failing {
            info!("the journal can be written again");
            self.trouble.journal(false);
        }
        true
    }

    /// True when the store stops.
    fn is_over(&mut self) -> bool {
        loop {
            match self.receiver.try_recv() {
                Err(mpsc::TryRecvError::Disconnected) => return true,
                Err(mpsc::TryRecvError::Empty) => return false,
                Ok(job) => self.held.push_back(job),
            }
        }
    }
}
