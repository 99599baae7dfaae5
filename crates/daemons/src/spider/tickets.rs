//! The orders under way: who waits for which fetch, and when a word about it is due.
//!
//! One fetch can serve several orders: a URL server that lost its connection sends its orders again, and
//! what is still being fetched is not fetched twice. All words have the same interval, so those that are
//! due stand at the front of one queue; no fetch has a timer of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use orbweaver_model::CrawlUrl;
use orbweaver_wire::FromSpider;

/// A URL server that is connected.
#[derive(Debug)]
pub(super) struct Peer {
    /// Where words to it go; bounded, closed with the connection.
    pub(super) words: mpsc::Sender<FromSpider>,
    /// Its orders that are not done.
    pub(super) open: AtomicUsize,
    /// One of them is done.
    pub(super) freed: Notify,
}

/// An order and who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) trans: u64,
    pub(super) peer: Arc<Peer>,
}

impl Waiter {
    /// Says that the order is done.
    pub(super) async fn done(self) {
        // Whoever is gone sends the order again.
        let _ = self.peer.words.send(FromSpider::Done(self.trans)).await;
        self.release();
    }

    fn release(&self) {
        self.peer.open.fetch_sub(1, Ordering::Relaxed);
        self.peer.freed.notify_one();
    }
}

/// The duty to finish an errand. Dropped without that, because the one who ordered it went away before it
/// began, or because its fetch failed as a program, the errand is as if it had never been ordered: no
/// word is said about it any more, and whoever still wants it orders it again.
pub(super) struct Duty {
    tickets: Arc<Tickets>,
    errand: Errand,
}

impl Duty {
    pub(super) fn errand(&self) -> &Errand {
        &self.errand
    }

    /// Says DONE to all who wait.
    pub(super) async fn done(self) {
        for waiter in self.tickets.finish(&self.errand) {
            waiter.done().await;
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        for waiter in self.tickets.finish(&self.errand) {
            waiter.release();
        }
    }
}

/// What an order is about: document and URL.
pub(super) type Errand = (u32, Target);

/// What is to be done about a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// It is fetched.
    Fetch(CrawlUrl),
    /// It cannot be, and is recorded as it was written.
    Refuse(Box<str>),
}

/// Orders that can wait for one fetch. One that is sent again has a new id each time, and of the old ones nobody wants
/// to hear any more.
const MAX_WAITERS: usize = 16;

/// All orders under way.
pub(super) struct Tickets {
    state: Mutex<State>,
    /// Time between two words about one order.
    interval: Duration,
}

#[derive(Default)]
struct State {
    /// Filled with each order, emptied when its fetch is stored; bounded by the places for fetches and the room for
    /// orders that wait for one.
    waiting: HashMap<Errand, Ticket>,
    /// When the next word about each is due, the earliest first; as many as in `waiting`, and some that
    /// are done and will be passed over.
    due: VecDeque<(Instant, u64, Errand)>,
    serial: u64,
}

struct Ticket {
    serial: u64,
    waiters: Vec<Waiter>,
}

impl Tickets {
    /// `update` is the longest time between two words. They are sent after three quarters of it, so that
    /// what the machine is late by does not show.
    pub(super) fn new(update: Duration) -> Self {
        Self {
            state: Mutex::default(),
            interval: update * 3 / 4,
        }
    }

    /// Adds an order. The duty comes back when its fetch must begin, and none when it is under way.
    pub(super) fn add(
        self: &Arc<Self>,
        errand: Errand,
        waiter: Waiter,
        now: Instant,
    ) -> Option<Duty> {
        waiter.peer.open.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if let Some(ticket) = state.waiting.get_mut(&errand) {
            if ticket.waiters.len() >= MAX_WAITERS {
                ticket.waiters.remove(0).release();
            }
            ticket.waiters.push(waiter);
            return None;
        }
        state.serial += 1;
        let serial = state.serial;
        let waiters = vec![waiter];
        state
            .waiting
            .insert(errand.clone(), Ticket { serial, waiters });
        let due = now + self.interval;
        state.due.push_back((due, serial, errand.clone()));
        drop(state);
        Some(Duty {
            tickets: Arc::clone(self),
            errand,
        })
    }

    /// Ends a fetch; returns who waits for it.
    fn finish(&self, errand: &Errand) -> Vec<Waiter> {
        let ticket = self.lock().waiting.remove(errand);
        ticket.map_or_else(Vec::new, |ticket| ticket.waiters)
    }

    /// Whether anybody who ordered it is still there.
    pub(super) fn is_wanted(&self, errand: &Errand) -> bool {
        let state = self.lock();
        let ticket = state.waiting.get(errand);
        ticket.is_some_and(|it| {
            it.waiters
                .iter()
                .any(|waiter| !waiter.peer.words.is_closed())
        })
    }

    /// Orders that are not done.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Says WORKING for every order whose time has come.
    pub(super) fn remind(&self, now: Instant) {
        let mut state = self.lock();
        let state = &mut *state;
        while state.due.front().is_some_and(|(due, ..)| *due <= now)
            && let Some((_, serial, errand)) = state.due.pop_front()
        {
            let Some(ticket) = state.waiting.get_mut(&errand) else {
                continue;
            };
            if ticket.serial != serial {
                continue;
            }
            ticket
                .waiters
                .retain(|waiter| !waiter.peer.words.is_closed());
            for waiter in &ticket.waiters {
                // A full queue means that nobody reads: then nobody misses it either.
                let _ = waiter
                    .peer
                    .words
                    .try_send(FromSpider::Working(waiter.trans));
            }
            state.due.push_back((now + self.interval, serial, errand));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reminds for ever. Sixteen looks an interval cost nothing and are late by little.
pub(super) async fn tick(tickets: Arc<Tickets>) {
    let step = (tickets.interval / 16).clamp(Duration::from_millis(1), Duration::from_millis(250));
    loop {
        tokio::time::sleep(step).await;
        tickets.remind(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(number: u32) -> Errand {
        let url = format!("http://example.org/{number}");
        (
            number,
            Target::Fetch(CrawlUrl::from_canonical(&url).unwrap()),
        )
    }

    fn peer(capacity: usize) -> (Arc<Peer>, mpsc::Receiver<FromSpider>) {
        let (words, heard) = mpsc::channel(capacity);
        let peer = Peer {
            words,
            open: AtomicUsize::new(0),
            freed: Notify::new(),
        };
        (Arc::new(peer), heard)
    }

    fn all(heard: &mut mpsc::Receiver<FromSpider>) -> Vec<FromSpider> {
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    #[tokio::test]
    async fn a_word_each_interval_until_it_is_done() {
        let tickets = Arc::new(Tickets::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(10);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let waiter = |trans| Waiter {
            trans,
            peer: Arc::clone(&peer),
        };
        let first = tickets.add(errand(1), waiter(11), at(0)).unwrap();
        let second = tickets.add(errand(2), waiter(12), at(1)).unwrap();
        // The same once more: one fetch, two who wait.
        assert!(tickets.add(errand(2), waiter(13), at(2)).is_none());
        tickets.remind(at(2));
        assert_eq!(all(&mut heard), []);
        tickets.remind(at(3));
        assert_eq!(all(&mut heard), [FromSpider::Working(11)]);
        tickets.remind(at(4));
        let both = [FromSpider::Working(12), FromSpider::Working(13)];
        assert_eq!(all(&mut heard), both);
        second.done().await;
        assert_eq!(
            all(&mut heard),
            [FromSpider::Done(12), FromSpider::Done(13)]
        );
        assert_eq!(peer.open.load(Ordering::Relaxed), 1);
        // Ordered anew, the old reminder is not its own.
        let _again = tickets.add(errand(2), waiter(14), at(5)).unwrap();
        tickets.remind(at(7));
        assert_eq!(all(&mut heard), [FromSpider::Working(11)]);
        tickets.remind(at(8));
        assert_eq!(all(&mut heard), [FromSpider::Working(14)]);
        assert_eq!(tickets.len(), 2);
        // Given up before it began, it is as if it had never been ordered.
        drop(first);
        tickets.remind(at(10));
        assert_eq!(all(&mut heard), []);
        assert_eq!(tickets.len(), 1);
        assert_eq!(peer.open.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_order_that_is_sent_again_and_again_takes_no_more_memory() {
        let tickets = Arc::new(Tickets::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(100);
        let now = Instant::now();
        let add = |trans| {
            let peer = Arc::clone(&peer);
            tickets.add(errand(1), Waiter { trans, peer }, now)
        };
        let duty = add(0).unwrap();
        assert!((1..1000).all(|trans| add(trans).is_none()));
        assert_eq!(peer.open.load(Ordering::Relaxed), MAX_WAITERS);
        assert!(tickets.is_wanted(&errand(1)) && !tickets.is_wanted(&errand(2)));
        duty.done().await;
        assert_eq!(all(&mut heard).last(), Some(&FromSpider::Done(999)));
        assert_eq!(peer.open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_costs_nothing() {
        let tickets = Arc::new(Tickets::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(2);
        let now = Instant::now();
        let add = |number| {
            let peer = Arc::clone(&peer);
            let trans = u64::from(number);
            tickets.add(errand(number), Waiter { trans, peer }, now)
        };
        let duties: Vec<Option<Duty>> = (0..100).map(add).collect();
        for round in 1..10 {
            tickets.remind(now + Duration::from_secs(3 * round));
        }
        assert_eq!(all(&mut heard).len(), 2);
        assert_eq!(tickets.lock().due.len(), 100);
        drop(duties);
    }
}
