//! The doc index at work: one thread that owns it, folds what arrives in groups, and hands out candidates.
//!
//! A queue leads here: from the workers, the store's thread and the URL server. What fills it is bounded
//! by permits that the workers hold and this thread gives back after the commit.
//!
//! A disk that is full or fails holds this thread up and nothing else: it opens the index again until that
//! works, and goes on. The permits run out meanwhile, so that the crawl pauses by itself.

mod again;
mod kept;
mod mend;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Context, Error, Result};
use tokio::sync::{OwnedSemaphorePermit, watch};

use orbweaver_docindex::{Budgets, DocIndex, Ledger, Wanted};
use orbweaver_model::{Candidate, Clock, CrawlUrl, Event, Timestamp};

use self::again::Changed;
pub(crate) use self::again::{Again, Judge};
pub(crate) use self::kept::Gift;
pub(crate) use self::mend::read_at_last;
use orbweaver_crawldir::Presence;

/// Events folded in one commit at most.
const GROUP: usize = 1024;
/// Time between two syncs of the index to the disk itself.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How often the thread looks at the clock when nothing arrives.
const TICK: Duration = Duration::from_millis(100);

/// What arrives at the thread.
enum Message {
    Event(Box<Event>, Option<OwnedSemaphorePermit>),
    Wanted {
        want: usize,
        reject: Vec<u64>,
    },
    /// The URL server wants the robots.txt of this origin back.
    Recall(String),
    /// An operator's change, and whom to tell that it is on the disk.
    Change(Box<Event>, Sender<()>),
    Budgets {
        pages: u64,
        budgets: Budgets,
    },
    /// This seed has made the scope larger.
    ScopeGrew(CrawlUrl),
    /// The rules are others now.
    RulesChanged,
    Stop,
}

/// The way to the thread.
#[derive(Clone)]
pub(crate) struct Indexer {
    inbox: Sender<Message>,
    /// The thread is to end, also when it is busy mending the index and reads no messages.
    stopping: Arc<AtomicBool>,
}

impl Indexer {
    /// Folds an event; the permit comes back after the commit.
    pub(crate) fn event(&self, event: Event, permit: Option<OwnedSemaphorePermit>) {
        // When the thread is gone the crawl is ending, and the URL stays claimed for the next run.
        let _ = self.inbox.send(Message::Event(Box::new(event), permit));
    }

    /// The URL server has room; it is answered when there is something to give.
    pub(crate) fn wanted(&self, want: usize, reject: Vec<u64>) {
        let _ = self.inbox.send(Message::Wanted { want, reject });
    }

    /// The URL server wants a robots.txt back; it is answered in any case.
    pub(crate) fn recall(&self, origin: String) {
        let _ = self.inbox.send(Message::Recall(origin));
    }

    /// Folds an operator's change and waits until it is on the disk itself.
    pub(crate) fn change(&self, event: Event) -> Result<()> {
        let (done, wait) = channel();
        let sent = self.inbox.send(Message::Change(Box::new(event), done));
        sent.map_err(|_| Error::Ending)?;
        wait.recv().map_err(|_| Error::Ending)
    }

    /// Other budgets from now on; 0 means no limit.
    pub(crate) fn budgets(&self, pages: u64, budgets: Budgets) {
        let _ = self.inbox.send(Message::Budgets { pages, budgets });
    }

    /// A seed has made the scope larger: what was refused before is judged again.
    pub(crate) fn scope_grew(&self, seed: CrawlUrl) {
        let _ = self.inbox.send(Message::ScopeGrew(seed));
    }

    /// The rules are others now: what was refused by the old ones is judged again.
    pub(crate) fn rules_changed(&self) {
        let _ = self.inbox.send(Message::RulesChanged);
    }

    /// Folds what has arrived, then ends the thread.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = self.inbox.send(Message::Stop);
    }
}

/// Where the index stands, for whoever watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) ledger: Ledger,
    /// When the next retry or the next waiting host comes round; only set while nothing else is left.
    pub(crate) waits_until: Option<Timestamp>,
    /// All that is left belongs to blocked hosts.
    pub(crate) only_blocked: bool,
    /// Why the index is not at work, while it is not.
    pub(crate) trouble: Option<String>,
    /// What damage has cost, in words.
    pub(crate) lost: Option<String>,
    /// How far the results of a store elsewhere are on the disk itself.
    pub(crate) results: u64,
}

/// Why there is nothing more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// There is work.
    No,
    /// Every URL is finished.
    Empty,
    /// What is left is due later than the crawl is willing to wait.
    Later,
    /// The page budget is spent.
    Budget,
    /// The index failed; the thread's result says how.
    Failed,
}

/// What the thread needs to know.
pub(crate) struct IndexerOptions {
    /// Documents to fetch in all; 0 means no limit.
    pub(crate) pages: u64,
    /// URLs handed out for one host at once.
    pub(crate) per_host: usize,
    /// How long to wait for a retry when nothing else is left.
    pub(crate) patience: Duration,
    /// Finished pages are visited again, so that there is always something to wait for.
    pub(crate) recrawl: bool,
    /// Whether the crawl directory is still there; an index is not opened again in the place of one that is gone.
    pub(crate) presence: Presence,
}

/// The thread, seen from outside.
pub(crate) struct Running {
    pub(crate) indexer: Indexer,
    pub(crate) standing: Arc<Mutex<Standing>>,
    pub(crate) idle: watch::Receiver<Idle>,
    inbox: Option<(Receiver<Message>, watch::Sender<Idle>)>,
}

impl Running {
    /// The way in exists before the thread does, because others must be built with it first.
    pub(crate) fn new() -> Self {
        let (sender, inbox) = channel();
        let (say_idle, idle) = watch::channel(Idle::No);
        Self {
            indexer: Indexer {
                inbox: sender,
                stopping: Arc::default(),
            },
            standing: Arc::default(),
            idle,
            inbox: Some((inbox, say_idle)),
        }
    }

    /// Starts the thread. `judge` knows the rules, and `give` takes things to the URL server.
    pub(crate) fn start(
        &mut self,
        index: DocIndex,
        options: IndexerOptions,
        clock: Clock,
        judge: Box<dyn Judge>,
        give: impl Fn(Gift) + Send + 'static,
    ) -> Result<JoinHandle<Result<()>>> {
        let (inbox, say_idle) = self
            .inbox
            .take()
            .ok_or_else(|| Error::Failed("the index thread is started twice".into()))?;
        let mut work = Work {
            index,
            options,
            clock,
            give: Box::new(give),
            judge,
            changed: Changed::default(),
            judging: false,
            standing: Arc::clone(&self.standing),
            stopping: Arc::clone(&self.indexer.stopping),
            say_idle,
            open_wish: None,
            recalls: Vec::new(),
            synced: Instant::now(),
            synced_results: 0,
            dirty: false,
            changes: Vec::new(),
            lost: None,
            blocked_since: None,
        };
        thread::Builder::new()
            .name("index".into())
            .spawn(move || {
                let ended = work.run(&inbox);
                if ended.is_err() {
                    work.say_idle.send_replace(Idle::Failed);
                }
                ended
            })
            .context("cannot start the index thread")
    }
}

type Give = dyn Fn(Gift) + Send;

struct Wish {
    want: usize,
    reject: HashSet<u64>,
    /// The URL server has heard that there is nothing for now.
    told: bool,
}

struct Work {
    index: DocIndex,
    options: IndexerOptions,
    clock: Clock,
    give: Box<Give>,
    judge: Box<dyn Judge>,
    /// How the rules have changed. Filled by messages, emptied with each step.
    changed: Changed,
    /// There may be more to be judged again.
    judging: bool,
    standing: Arc<Mutex<Standing>>,
    stopping: Arc<AtomicBool>,
    say_idle: watch::Sender<Idle>,
    /// The URL server's last request, while it could not be met. It has been told so and asks again by
    /// itself, but what arrives meanwhile need not wait for that.
    open_wish: Option<Wish>,
    /// Origins whose robots.txt the URL server wants to have back; it asks once for each. Emptied with each step.
    recalls: Vec<String>,
    synced: Instant,
    synced_results: u64,
    dirty: bool,
    /// Who waits for a change to be on the disk. Filled and emptied with each group, unless it fails.
    changes: Vec<Sender<()>>,
    /// What damage has cost so far.
    lost: Option<String>,
    /// Since when nothing is left but URLs of blocked hosts.
    blocked_since: Option<Timestamp>,
}

impl Work {
    fn run(&mut self, inbox: &Receiver<Message>) -> Result<()> {
        loop {
            let before = self.index.last_batch();
            let stop = match self.step(inbox) {
                Ok(stop) => stop,
                Err(error) => {
                    self.mend(error, before)?;
                    false
                }
            };
            if stop {
                self.publish(None, false);
                return Ok(());
            }
        }
    }

    /// Takes in what arrives, and serves. True when it is time to stop.
    fn step(&mut self, inbox: &Receiver<Message>) -> Result<bool> {
        // A message to stop may have been taken in just before something failed.
        let mut stop = self.stopping.load(Ordering::Relaxed);
        let waits = if stop || self.judging {
            Duration::ZERO
        } else {
            TICK
        };
        match inbox.recv_timeout(waits) {
            Ok(first) => stop = self.group(first, inbox)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => stop = true,
        }
        if stop {
            self.index.sync()?;
            return Ok(true);
        }
        self.recall()?;
        self.judging = self.judge_again()?;
        self.serve()?;
        if self.dirty && self.synced.elapsed() >= SYNC_EVERY {
            self.index.sync()?;
            self.synced = Instant::now();
            self.synced_results = self.index.results();
            self.dirty = false;
        }
        Ok(false)
    }

    /// Folds all that has arrived in one commit. True when it is time to stop.
    fn group(&mut self, first: Message, inbox: &Receiver<Message>) -> Result<bool> {
        let mut events = Vec::new();
        let mut permits = Vec::new();
        let mut stop = false;
        for message in std::iter::once(first).chain(inbox.try_iter()) {
            match message {
                Message::Event(event, permit) => {
                    events.push(*event);
                    permits.extend(permit);
                }
                Message::Wanted { want, reject } => {
                    let reject = reject.into_iter().collect();
                    self.open_wish = Some(Wish {
                        want,
                        reject,
                        told: false,
                    });
                }
                Message::Recall(origin) => self.recalls.push(origin),
                Message::Change(event, done) => {
                    events.push(*event);
                    self.changes.push(done);
                }
                Message::Budgets { pages, budgets } => {
                    self.options.pages = pages;
                    self.index.set_budgets(budgets);
                }
                Message::ScopeGrew(seed) => {
                    self.changed.seeds.push(seed);
                    self.changed.ever = true;
                }
                Message::RulesChanged => {
                    self.changed.all = true;
                    self.changed.ever = true;
                }
                Message::Stop => stop = true,
            }
            if events.len() >= GROUP {
                break;
            }
        }
        if !events.is_empty() {
            self.judge_late(&mut events);
            self.index.apply(events)?;
            self.dirty = true;
        }
        drop(permits);
        if !self.changes.is_empty() {
            self.index.sync()?;
            self.confirm();
        }
        Ok(stop)
    }

    /// Tells those who made changes that they are on the disk itself.
    fn confirm(&mut self) {
        for done in self.changes.drain(..) {
            // Whoever has stopped waiting needs no word.
            let _ = done.send(());
        }
    }

    /// Meets the URL server's wish as far as possible, and says so when nothing is left.
    fn serve(&mut self) -> Result<()> {
        let now = (self.clock)();
        let left = self.budget_left();
        let mut waits_until = None;
        let mut only_blocked = false;
        let mut idle = Idle::No;
        if let Some(mut wish) = self.open_wish.take() {
            let met = self.meet(&mut wish, left, now);
            // The URL server asks once and waits: a wish that could not be met for trouble with the disk stays open.
            if met.is_err() || wish.want > 0 {
                self.open_wish = Some(wish);
            }
            met?;
        }
        if self.index.claimed() == 0 && self.open_wish.is_some() {
            waits_until = self.index.next_chance(now);
            only_blocked = self.index.only_blocked();
            idle = self.idleness(waits_until, now);
        }
        let since = self.blocked_since.take().unwrap_or(now);
        self.blocked_since = only_blocked.then_some(since);
        self.publish(waits_until, only_blocked);
        self.say_idle
            .send_if_modified(|said| std::mem::replace(said, idle) != idle);
        Ok(())
    }

    fn meet(&mut self, wish: &mut Wish, left: usize, now: Timestamp) -> Result<()> {
        let is_spent = left == 0;
        let wanted = Wanted {
            urls: if is_spent {
                wish.want
            } else {
                wish.want.min(left)
            },
            per_host: self.options.per_host,
            reject: std::mem::take(&mut wish.reject),
        };
        let found = match (is_spent, self.options.recrawl) {
            (false, _) => self.index.candidates(&wanted, now),
            (true, true) => self.index.visits(&wanted, now),
            (true, false) => Ok(Vec::new()),
        };
        wish.reject = wanted.reject;
        let found = found?;
        self.dirty |= !found.is_empty();
        let paces = self.paces(&found);
        wish.want -= found.len();
        wish.reject
            .extend(well_supplied(&found, self.options.per_host));
        let tell = !std::mem::replace(&mut wish.told, true);
        if tell || !found.is_empty() {
            (self.give)(Gift::Candidates(found, paces));
        }
        Ok(())
    }

    fn idleness(&self, next: Option<Timestamp>, now: Timestamp) -> Idle {
        match next {
            _ if self.judging => Idle::No,
            Some(_) if self.options.recrawl => Idle::No,
            None if self.options.recrawl && self.index.has_visits() => Idle::No,
            _ if self.index.ledger().queued == 0 => Idle::Empty,
            _ if self.budget_left() == 0 => Idle::Budget,
            Some(at) if at > now.after(self.options.patience) => Idle::Later,
            None if self.is_tired_of_blocks(now) => Idle::Later,
            // Either a wait that is worth it, or a host whose turn the next round brings.
            _ => Idle::No,
        }
    }

    /// An operator who blocks the last hosts for a moment does not end the crawl by that.
    fn is_tired_of_blocks(&self, now: Timestamp) -> bool {
        let since = self.blocked_since;
        since.is_some_and(|since| since.after(self.options.patience) < now)
    }

    fn budget_left(&self) -> usize {
        if self.options.pages == 0 {
            return usize::MAX;
        }
        let spent = self.index.ledger().pages + self.index.claimed() as u64;
        usize::try_from(self.options.pages.saturating_sub(spent)).unwrap_or(usize::MAX)
    }

    fn publish(&mut self, waits_until: Option<Timestamp>, only_blocked: bool) {
        self.lost = self.index.take_lost().or(self.lost.take());
        let standing = Standing {
            lost: self.lost.clone(),
            ledger: self.index.ledger().clone(),
            waits_until,
            only_blocked,
            trouble: None,
            results: self.synced_results,
        };
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}

/// Hosts that have just got so much that they need no more before the URL server asks again.
fn well_supplied(found: &[Candidate], per_host: usize) -> impl Iterator<Item = u64> {
    let mut counts = HashMap::new();
    for candidate in found {
        *counts.entry(candidate.key.host).or_insert(0usize) += 1;
    }
    counts
        .into_iter()
        .filter(move |(_, count)| count * 2 >= per_host)
        .map(|(host, _)| host)
}
