//! The way to the thread that owns the doc index: one queue, bounded by what may be on its way.
//!
//! A result holds a permit from before its fetch until it is folded, so that there is always room for it: whoever sends one
//! never waits, which the store's thread must not. Everything else takes a slot first and waits for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use orbweaver_docindex::Budgets;
use orbweaver_model::{CrawlUrl, Event};

use crate::error::{Error, Result};
use orbweaver_reading::Aside;

/// Messages that are no results and may wait in the queue.
const SLOTS: usize = 1024;

/// What arrives at the thread.
pub(super) enum Message {
    /// What came of a fetch, what follows from it, and the permit that comes back after the commit.
    Result(Box<Event>, Aside, OwnedSemaphorePermit),
    /// Anything else, with its slot.
    Other(Other, OwnedSemaphorePermit),
    Stop,
}

/// What is no result.
pub(super) enum Other {
    Event(Box<Event>),
    /// The URL server has room for candidates.
    Wanted {
        want: usize,
        reject: Vec<u64>,
    },
    /// The URL server wants the robots.txt of this origin back.
    Recall(String),
    /// An event, and whom to tell that it is on the disk itself.
    Durable {
        event: Box<Event>,
        done: oneshot::Sender<()>,
        /// It is not to wait for others that are synced with it.
        at_once: bool,
    },
    Budgets {
        pages: u64,
        budgets: Budgets,
    },
    /// This seed has made the scope larger.
    ScopeGrew(CrawlUrl),
    /// The rules are others now.
    RulesChanged,
}

/// The way to the thread. When the thread is gone the crawl is ending: what is sent then is dropped, and its URL stays
/// claimed for the next run.
#[derive(Clone)]
pub(crate) struct Indexer {
    inbox: SyncSender<Message>,
    slots: Arc<Semaphore>,
    /// The thread is to end, also when it is busy mending the index and reads no messages.
    stopping: Arc<AtomicBool>,
}

/// The queue, with room for as many results as there are permits.
pub(super) fn queue(results: usize) -> (Indexer, Receiver<Message>) {
    // One more for the message to stop.
    let (inbox, messages) = sync_channel(results + SLOTS + 1);
    let indexer = Indexer {
        inbox,
        slots: Arc::new(Semaphore::new(SLOTS)),
        stopping: Arc::default(),
    };
    (indexer, messages)
}

impl Indexer {
    /// Folds what came of a fetch; the permit comes back after the commit. Never waits.
    pub(crate) fn report(&self, event: Event, permit: OwnedSemaphorePermit) {
        self.page(event, Aside::default(), permit);
    }

    /// The same with what follows from a page beside its report.
    pub(crate) fn page(&self, event: Event, aside: Aside, permit: OwnedSemaphorePermit) {
        self.push(Message::Result(Box::new(event), aside, permit));
    }

    fn push(&self, message: Message) {
        if let Err(TrySendError::Full(message)) = self.inbox.try_send(message) {
            debug_assert!(false, "every message has its place");
            let _ = self.inbox.send(message);
        }
    }

    async fn post(&self, other: Other) {
        // The semaphore is never closed.
        if let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await {
            self.push(Message::Other(other, slot));
        }
    }

    /// Folds an event that came of no fetch.
    pub(crate) async fn event(&self, event: Event) {
        self.post(Other::Event(Box::new(event))).await;
    }

    /// The URL server has room; it is answered when there is something to give.
    pub(crate) async fn wanted(&self, want: usize, reject: Vec<u64>) {
        self.post(Other::Wanted { want, reject }).await;
    }

    /// The URL server wants a robots.txt back; it is answered in any case.
    pub(crate) async fn recall(&self, origin: String) {
        self.post(Other::Recall(origin)).await;
    }

    /// Folds an operator's change and waits until it is on the disk itself.
    pub(crate) async fn change(&self, event: Event) -> Result<()> {
        self.durable(event, true).await
    }

    /// Folds an event and waits until it is on the disk itself, together with others like it.
    pub(crate) async fn offer(&self, event: Event) -> Result<()> {
        self.durable(event, false).await
    }

    async fn durable(&self, event: Event, at_once: bool) -> Result<()> {
        let (done, wait) = oneshot::channel();
        let event = Box::new(event);
        self.post(Other::Durable {
            event,
            done,
            at_once,
        })
        .await;
        wait.await.map_err(|_| Error::Ending)
    }

    /// Other budgets from now on; 0 means no limit.
    pub(crate) async fn budgets(&self, pages: u64, budgets: Budgets) {
        self.post(Other::Budgets { pages, budgets }).await;
    }

    /// A seed has made the scope larger: what was refused before is judged again.
    pub(crate) async fn scope_grew(&self, seed: CrawlUrl) {
        self.post(Other::ScopeGrew(seed)).await;
    }

    /// The rules are others now: what was refused by the old ones is judged again.
    pub(crate) async fn rules_changed(&self) {
        self.post(Other::RulesChanged).await;
    }

    /// Folds what has arrived, then ends the thread.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        // Without room for it the thread sees the mark.
        let _ = self.inbox.try_send(Message::Stop);
    }

    /// True when the thread is to end.
    pub(super) fn stopping(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_for_every_permit_whatever_else_waits() {
        let permits = Arc::new(Semaphore::new(3));
        let (indexer, messages) = queue(3);
        let due = || Event::Return { keys: Vec::new() };
        for _ in 0..SLOTS {
            indexer.event(due()).await;
        }
        for _ in 0..3 {
            let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
            indexer.report(due(), permit);
        }
        indexer.stop();
        assert_eq!(permits.available_permits(), 0);
        // One more that is no result waits for a slot, and gets it when one was taken out.
        let waiting = tokio::spawn({
            let indexer = indexer.clone();
            async move { indexer.event(due()).await }
        });
        drop(messages.recv().unwrap());
        waiting.await.unwrap();
        let mut rest = 0;
        while messages.try_recv().is_ok() {
            rest += 1;
        }
        assert_eq!(rest, SLOTS + 3 + 1);
        assert_eq!(permits.available_permits(), 3);
    }
}
