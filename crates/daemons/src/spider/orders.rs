//! The orders under way: who waits for which fetch, and when a word about it is due.
//!
//! One fetch can serve several orders: a URL server that lost its connection sends its orders again, and
//! what is still being fetched is not fetched twice. All words have the same interval, so those that are
//! due stand at the front of one queue; no fetch has a timer of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use orbweaver_model::{Conditions, CrawlUrl, FetchRequest, Method, Timestamp};
use orbweaver_spider::Gate;
use orbweaver_wire::{FromSpider, Word};

/// A URL server that is connected.
#[derive(Debug)]
pub(super) struct Peer {
    /// Where words to it go; bounded, closed with the connection.
    pub(super) words: mpsc::Sender<Word>,
    /// It knows the extension of the line protocol, and hears words in its spelling.
    pub(super) is_extended: AtomicBool,
    /// Its orders that are not done.
    pub(super) open: AtomicUsize,
    /// One of them is done.
    pub(super) freed: Notify,
}

impl Peer {
    pub(super) fn new(words: mpsc::Sender<Word>) -> Self {
        Self {
            words,
            is_extended: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Says something that nobody misses where nobody reads: a full queue is left as it is.
    pub(super) fn mention(&self, word: Word) {
        let _ = self.words.try_send(word);
    }
}

/// An order and who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) trans: u64,
    pub(super) peer: Arc<Peer>,
    /// It is to be told when the request has been written.
    pub(super) announce: bool,
    /// It wants the order back unless the request has been written.
    pub(super) is_recalled: bool,
}

impl Waiter {
    /// Says this, and then that the order is done.
    async fn done(self, first: Option<Word>) {
        // Whoever is gone sends the order again.
        if let Some(first) = first {
            let _ = self.peer.words.send(first).await;
        }
        let done = Word::Plain(FromSpider::Done(self.trans));
        let _ = self.peer.words.send(done).await;
        self.release();
    }

    /// Says that the order was given up.
    fn stopped(&self) {
        self.peer.mention(Word::Stopped(self.trans));
        self.release();
    }

    fn release(&self) {
        self.peer.open.fetch_sub(1, Ordering::Relaxed);
        self.peer.freed.notify_one();
    }

    fn is_there(&self) -> bool {
        !self.peer.words.is_closed()
    }
}

/// What an order is about. Two orders for the same are one fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    /// The document's number; 0 for a robots.txt.
    pub(super) doc_id: u32,
    /// What is to be done.
    pub(super) target: Target,
    /// GET or HEAD.
    pub(super) method: Method,
    /// What the last visit left; none on the first.
    pub(super) known: Option<Box<Conditions>>,
}

/// What is to be done about a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// It is fetched.
    Fetch(CrawlUrl),
    /// It cannot be, and is recorded as it was written.
    Refuse(Box<str>),
}

/// The duty to finish a job. Dropped without that, because the one who ordered it went away before it
/// began, or because its fetch failed as a program, the job is as if it had never been ordered: no
/// word is said about it any more, and whoever still wants it orders it again.
pub(super) struct Assignment {
    orders: Arc<Orders>,
    job: Arc<Job>,
    serial: u64,
    /// Told when nobody wants it any more.
    unwanted: Arc<Notify>,
}

impl Assignment {
    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// Whether anybody who ordered it is still there and wants it.
    pub(super) fn is_wanted(&self) -> bool {
        self.orders.is_wanted(&self.job)
    }

    /// Waits until it has been given up.
    pub(super) async fn given_up(&self) {
        self.unwanted.notified().await;
    }

    /// Says DONE to all who wait, and before that what `first` has for each.
    pub(super) async fn done(self, first: impl Fn(u64) -> Option<Word>) {
        for waiter in self.orders.finish(&self) {
            let first = first(waiter.trans);
            waiter.done(first).await;
        }
    }

    /// Says to all who wait that it was given up.
    pub(super) fn stopped(self) {
        for waiter in self.orders.finish(&self) {
            waiter.stopped();
        }
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        for waiter in self.orders.finish(self) {
            waiter.release();
        }
    }
}

/// The last word before the request of a job: it is sent while somebody wants it.
impl Gate for Assignment {
    fn may_send(&self, _request: &FetchRequest) -> bool {
        self.orders.begin(&self.job)
    }

    fn sent(&self, _at: Timestamp) {
        self.orders.sent(&self.job);
    }
}

/// Orders that can wait for one fetch. One that is sent again has a new id each time, and of the old ones nobody wants
/// to hear any more.
const MAX_WAITERS: usize = 16;

/// All orders under way.
pub(super) struct Orders {
    state: Mutex<OpenOrders>,
    /// Time between two words about one order.
    interval: Duration,
}

#[derive(Default)]
struct OpenOrders {
    /// Filled with each order, emptied when its fetch is stored; bounded by the places for fetches and the room for
    /// orders that wait for one.
    open: HashMap<Arc<Job>, Open>,
    /// When the next word about each is due, the earliest first; as many as in `open`, and some that
    /// are done and will be passed over.
    due: VecDeque<(Instant, u64, Arc<Job>)>,
    serial: u64,
}

/// A job that is not done.
struct Open {
    serial: u64,
    waiters: Vec<Waiter>,
    /// Its request may have been written.
    has_begun: bool,
    /// Its request has been written.
    is_sent: bool,
    unwanted: Arc<Notify>,
}

impl Open {
    fn is_wanted(&self) -> bool {
        (self.waiters.iter()).any(|waiter| waiter.is_there() && !waiter.is_recalled)
    }
}

impl Orders {
    /// `update` is the longest time between two words. They are sent after three quarters of it, so that
    /// what the machine is late by does not show.
    pub(super) fn new(update: Duration) -> Self {
        Self {
            state: Mutex::default(),
            interval: update * 3 / 4,
        }
    }

    /// Adds an order. The assignment comes back when its fetch must begin, and none when it is under way.
    pub(super) fn add(
        self: &Arc<Self>,
        job: Job,
        waiter: Waiter,
        now: Instant,
    ) -> Option<Assignment> {
        waiter.peer.open.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if let Some(open) = state.open.get_mut(&job) {
            if open.waiters.len() >= MAX_WAITERS {
                open.waiters.remove(0).release();
            }
            if open.is_sent && waiter.announce {
                waiter.peer.mention(Word::Sent(waiter.trans));
            }
            open.waiters.push(waiter);
            return None;
        }
        state.serial += 1;
        let (serial, job) = (state.serial, Arc::new(job));
        let unwanted: Arc<Notify> = Arc::default();
        state.open.insert(
            Arc::clone(&job),
            Open {
                serial,
                waiters: vec![waiter],
                has_begun: false,
                is_sent: false,
                unwanted: Arc::clone(&unwanted),
            },
        );
        let due = now + self.interval;
        state.due.push_back((due, serial, Arc::clone(&job)));
        drop(state);
        Some(Assignment {
            orders: Arc::clone(self),
            job,
            serial,
            unwanted,
        })
    }

    /// A URL server gives an order up: with `unless_sent` only if its request cannot have been written.
    pub(super) fn give_up(&self, trans: u64, peer: &Arc<Peer>, unless_sent: bool) {
        let mut state = self.lock();
        let is_it = |waiter: &Waiter| waiter.trans == trans && Arc::ptr_eq(&waiter.peer, peer);
        // Seldom said: looking through all of them costs less than keeping track of each.
        let found = (state.open.values_mut()).find(|open| open.waiters.iter().any(is_it));
        let Some(open) = found else {
            return;
        };
        if unless_sent && open.has_begun {
            return;
        }
        if unless_sent {
            (open.waiters.iter_mut())
                .filter(|waiter| is_it(waiter))
                .for_each(|waiter| waiter.is_recalled = true);
        } else {
            open.waiters.retain(|waiter| {
                let stays = !is_it(waiter);
                if !stays {
                    waiter.stopped();
                }
                stays
            });
        }
        if !open.is_wanted() {
            open.unwanted.notify_one();
        }
    }

    /// Whether the request of a job may be written now; from then on it cannot be recalled.
    fn begin(&self, job: &Job) -> bool {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(job) else {
            return false;
        };
        open.has_begun = open.has_begun || open.is_wanted();
        open.has_begun
    }

    /// The request of a job has been written.
    fn sent(&self, job: &Job) {
        let mut state = self.lock();
        if let Some(open) = state.open.get_mut(job) {
            open.is_sent = true;
            for waiter in open.waiters.iter().filter(|waiter| waiter.announce) {
                waiter.peer.mention(Word::Sent(waiter.trans));
            }
        }
    }

    /// Ends a fetch; returns who waits for it. The same may have been ordered anew since it ended.
    fn finish(&self, of: &Assignment) -> Vec<Waiter> {
        let mut state = self.lock();
        let is_its_own = |open: &&Open| open.serial == of.serial;
        match state.open.get(&of.job).filter(is_its_own) {
            Some(_) => state.open.remove(&of.job).map(|open| open.waiters),
            None => None,
        }
        .unwrap_or_default()
    }

    fn is_wanted(&self, job: &Job) -> bool {
        self.lock().open.get(job).is_some_and(Open::is_wanted)
    }

    /// Orders that are not done.
    pub(super) fn len(&self) -> usize {
        self.lock().open.len()
    }

    /// Says WORKING for every order whose time has come.
    pub(super) fn remind(&self, now: Instant) {
        let mut state = self.lock();
        let state = &mut *state;
        while state.due.front().is_some_and(|(due, ..)| *due <= now)
            && let Some((_, serial, job)) = state.due.pop_front()
        {
            let Some(open) = state.open.get_mut(&job) else {
                continue;
            };
            if open.serial != serial {
                continue;
            }
            open.waiters.retain(Waiter::is_there);
            for waiter in &open.waiters {
                let working = Word::Plain(FromSpider::Working(waiter.trans));
                waiter.peer.mention(working);
            }
            state.due.push_back((now + self.interval, serial, job));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenOrders> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends reminders until the end. Sixteen checks per interval cost nothing and are only slightly late.
pub(super) async fn tick(orders: Arc<Orders>) {
    let step = (orders.interval / 16).clamp(Duration::from_millis(1), Duration::from_millis(250));
    loop {
        tokio::time::sleep(step).await;
        orders.remind(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: fn(u64) -> Option<Word> = |_| None;

    fn job(number: u32) -> Job {
        let url = format!("http://example.org/{number}");
        Job {
            doc_id: number,
            target: Target::Fetch(CrawlUrl::from_canonical(&url).unwrap()),
            method: Method::Get,
            known: None,
        }
    }

    fn peer(capacity: usize) -> (Arc<Peer>, mpsc::Receiver<Word>) {
        let (words, heard) = mpsc::channel(capacity);
        (Arc::new(Peer::new(words)), heard)
    }

    fn waiter(trans: u64, peer: &Arc<Peer>) -> Waiter {
        Waiter {
            trans,
            peer: Arc::clone(peer),
            announce: false,
            is_recalled: false,
        }
    }

    fn working(trans: u64) -> Word {
        Word::Plain(FromSpider::Working(trans))
    }

    fn done(trans: u64) -> Word {
        Word::Plain(FromSpider::Done(trans))
    }

    fn all(heard: &mut mpsc::Receiver<Word>) -> Vec<Word> {
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    fn request() -> FetchRequest {
        FetchRequest {
            url: CrawlUrl::from_canonical("http://example.org/1").unwrap(),
            ip: [127, 0, 0, 1].into(),
            purpose: orbweaver_model::Purpose::Page,
            method: Method::Get,
            known: None,
            announce: true,
        }
    }

    #[tokio::test]
    async fn a_word_each_interval_until_it_is_done() {
        let orders = Arc::new(Orders::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(10);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let first = orders.add(job(1), waiter(11, &peer), at(0)).unwrap();
        let second = orders.add(job(2), waiter(12, &peer), at(1)).unwrap();
        // The same once more: one fetch, two who wait.
        assert!(orders.add(job(2), waiter(13, &peer), at(2)).is_none());
        orders.remind(at(2));
        assert_eq!(all(&mut heard), []);
        orders.remind(at(3));
        assert_eq!(all(&mut heard), [working(11)]);
        orders.remind(at(4));
        assert_eq!(all(&mut heard), [working(12), working(13)]);
        second.done(DONE).await;
        assert_eq!(all(&mut heard), [done(12), done(13)]);
        assert_eq!(peer.open.load(Ordering::Relaxed), 1);
        // Ordered anew, the old reminder is not its own.
        let _again = orders.add(job(2), waiter(14, &peer), at(5)).unwrap();
        orders.remind(at(7));
        assert_eq!(all(&mut heard), [working(11)]);
        orders.remind(at(8));
        assert_eq!(all(&mut heard), [working(14)]);
        assert_eq!(orders.len(), 2);
        // Given up before it began, it is as if it had never been ordered.
        drop(first);
        orders.remind(at(10));
        assert_eq!(all(&mut heard), []);
        assert_eq!(orders.len(), 1);
        assert_eq!(peer.open.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_order_that_is_sent_again_and_again_takes_no_more_memory() {
        let orders = Arc::new(Orders::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(100);
        let now = Instant::now();
        let add = |trans| orders.add(job(1), waiter(trans, &peer), now);
        let assignment = add(0).unwrap();
        assert!((1..1000).all(|trans| add(trans).is_none()));
        assert_eq!(peer.open.load(Ordering::Relaxed), MAX_WAITERS);
        assert!(orders.is_wanted(&job(1)) && !orders.is_wanted(&job(2)));
        assignment.done(DONE).await;
        assert_eq!(all(&mut heard).last(), Some(&done(999)));
        assert_eq!(peer.open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_costs_nothing() {
        let orders = Arc::new(Orders::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(2);
        let now = Instant::now();
        let add = |number: u32| orders.add(job(number), waiter(number.into(), &peer), now);
        let assignments: Vec<Option<Assignment>> = (0..100).map(add).collect();
        for round in 1..10 {
            orders.remind(now + Duration::from_secs(3 * round));
        }
        assert_eq!(all(&mut heard).len(), 2);
        assert_eq!(orders.lock().due.len(), 100);
        drop(assignments);
    }

    #[tokio::test]
    async fn an_order_can_be_recalled_until_its_request_is_written() {
        let orders = Arc::new(Orders::new(Duration::from_secs(4)));
        let (peer, mut heard) = peer(10);
        let now = Instant::now();
        let announced = |trans| Waiter {
            announce: true,
            ..waiter(trans, &peer)
        };
        let one = orders.add(job(1), announced(1), now).unwrap();
        orders.give_up(1, &peer, true);
        one.given_up().await;
        assert!(!one.may_send(&request()) && !one.is_wanted());
        one.stopped();
        assert_eq!(all(&mut heard), [Word::Stopped(1)]);
        // Too late, the request is on its way; but it can be given up for good.
        let two = orders.add(job(2), announced(2), now).unwrap();
        assert!(two.may_send(&request()));
        two.sent(Timestamp::from_millis(1));
        orders.give_up(2, &peer, true);
        assert!(two.is_wanted());
        // Somebody else wants the same, and hears that it is on its way.
        assert!(orders.add(job(2), announced(3), now).is_none());
        assert_eq!(all(&mut heard), [Word::Sent(2), Word::Sent(3)]);
        orders.give_up(2, &peer, false);
        assert!(two.is_wanted());
        orders.give_up(3, &peer, false);
        assert!(!two.is_wanted());
        assert_eq!(all(&mut heard), [Word::Stopped(2), Word::Stopped(3)]);
        two.given_up().await;
        drop(two);
        assert_eq!(peer.open.load(Ordering::Relaxed), 0);
    }
}
