//! The doc index at work: one thread that owns it, folds what arrives in groups, and hands out candidates.
//!
//! One bounded queue leads here (`inbox.rs`), from the workers, the store's thread and the URL server.
//!
//! A disk that is full or fails holds this thread up and nothing else: it opens the index again until that
//! works, and goes on. The permits run out meanwhile, so that the crawl pauses by itself.

mod again;
mod inbox;
mod mend;
mod standing;
mod supply;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use orbweaver_crawldir::Presence;
use orbweaver_docindex::{DocIndex, Wanted};
use orbweaver_model::{Clock, Event, Timestamp};

use self::again::Rejudging;
pub(crate) use self::again::{Again, Judge};
pub(crate) use self::inbox::Indexer;
use self::inbox::{Message, Other};
use self::mend::Mender;
pub(crate) use self::mend::read_at_last;
pub(crate) use self::standing::{Idle, Published, Standing};
pub(crate) use self::supply::Supply;
use self::supply::{paces, well_supplied};
use crate::error::{Context, Error, Result};
use crate::sync::lock;
use orbweaver_reading::Aside;

/// Events folded in one commit at most.
const GROUP: usize = 1024;
/// Time between two syncs of the index to the disk itself.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// The same while somebody waits for one.
const SYNC_SOON: Duration = Duration::from_millis(20);
/// How often the thread looks at the clock when nothing arrives.
const TICK: Duration = Duration::from_millis(100);

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
    pub(crate) standing: Published,
    pub(crate) idle: watch::Receiver<Idle>,
    inbox: Option<(Receiver<Message>, watch::Sender<Idle>)>,
}

impl Running {
    /// The way in exists before the thread does, because others must be built with it first. `results` is how many can be
    /// on their way.
    pub(crate) fn new(results: usize) -> Self {
        let (indexer, inbox) = inbox::queue(results);
        let (say_idle, idle) = watch::channel(Idle::No);
        Self {
            indexer,
            standing: Published::default(),
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
        give: impl Fn(Supply) + Send + 'static,
    ) -> Result<JoinHandle<Result<()>>> {
        let (inbox, say_idle) = self
            .inbox
            .take()
            .ok_or_else(|| Error::Failed("the index thread is started twice".into()))?;
        let stopping = self.indexer.stopping();
        let mut work = IndexThread {
            index,
            clock,
            give: Box::new(give),
            rejudging: Rejudging::new(judge),
            mender: Mender {
                presence: options.presence.clone(),
                standing: Arc::clone(&self.standing),
                stopping: Arc::clone(&stopping),
            },
            options,
            standing: Arc::clone(&self.standing),
            stopping,
            say_idle,
            open_request: None,
            recalls: Vec::new(),
            synced: Instant::now(),
            synced_results: 0,
            dirty: false,
            waiting: Waiting::default(),
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

type Give = dyn Fn(Supply) + Send;

/// What the URL server wants.
struct Request {
    want: usize,
    reject: HashSet<u64>,
    /// The URL server has heard that there is nothing for now.
    told: bool,
}

/// Who waits for a sync. Filled with each group, emptied by the next sync.
#[derive(Default)]
struct Waiting {
    done: Vec<oneshot::Sender<()>>,
    at_once: bool,
}

impl Waiting {
    fn add(&mut self, done: oneshot::Sender<()>, at_once: bool) {
        self.done.push(done);
        self.at_once |= at_once;
    }

    /// Tells them that all they wait for is on the disk itself.
    fn confirm(&mut self) {
        self.at_once = false;
        for done in self.done.drain(..) {
            // Whoever has stopped waiting needs no word.
            let _ = done.send(());
        }
    }
}

struct IndexThread {
    index: DocIndex,
    options: IndexerOptions,
    clock: Clock,
    give: Box<Give>,
    rejudging: Rejudging,
    mender: Mender,
    standing: Published,
    stopping: Arc<AtomicBool>,
    say_idle: watch::Sender<Idle>,
    /// The URL server's last request, while it could not be met. It has been told so and asks again by
    /// itself, but what arrives meanwhile need not wait for that.
    open_request: Option<Request>,
    /// Origins whose robots.txt the URL server wants to have back; it asks once for each. Emptied with each step.
    recalls: Vec<String>,
    synced: Instant,
    synced_results: u64,
    dirty: bool,
    waiting: Waiting,
    /// What damage has cost so far.
    lost: Option<String>,
    /// Since when nothing is left but URLs of blocked hosts.
    blocked_since: Option<Timestamp>,
}

impl IndexThread {
    fn run(&mut self, inbox: &Receiver<Message>) -> Result<()> {
        loop {
            let before = self.index.last_batch();
            let stop = match self.step(inbox) {
                Ok(stop) => stop,
                Err(error) => {
                    self.mender.mend(&mut self.index, error, before)?;
                    // Recovering ends with a sync.
                    self.waiting.confirm();
                    self.synced = Instant::now();
                    false
                }
            };
            if stop {
                self.waiting.confirm();
                self.publish(None, false);
                return Ok(());
            }
        }
    }

    /// Takes in what arrives, and serves. True when it is time to stop.
    fn step(&mut self, inbox: &Receiver<Message>) -> Result<bool> {
        // A message to stop may have been taken in just before something failed.
        let mut stop = self.stopping.load(Ordering::Relaxed);
        let waits = match (
            stop || self.rejudging.has_more(),
            self.waiting.done.is_empty(),
        ) {
            (true, _) => Duration::ZERO,
            (false, true) => TICK,
            (false, false) => SYNC_SOON,
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
        let now = (self.clock)();
        self.dirty |= self.rejudging.step(&mut self.index, now)?;
        self.serve()?;
        let every = match self.waiting.done.is_empty() {
            true => SYNC_EVERY,
            false => SYNC_SOON,
        };
        if self.dirty && self.synced.elapsed() >= every {
            self.sync()?;
        }
        Ok(false)
    }

    fn sync(&mut self) -> Result<()> {
        self.index.sync()?;
        self.synced = Instant::now();
        self.synced_results = (self.index.results()).max(self.index.followed().unwrap_or(0));
        self.dirty = false;
        self.waiting.confirm();
        Ok(())
    }

    /// Folds all that has arrived in one commit. True when it is time to stop.
    fn group(&mut self, first: Message, inbox: &Receiver<Message>) -> Result<bool> {
        let mut events = Vec::new();
        let mut permits = Vec::new();
        let mut stop = false;
        for message in std::iter::once(first).chain(inbox.try_iter()) {
            match message {
                Message::Result(event, aside, permit) => {
                    let Aside { promoted, grew } = aside;
                    if !promoted.is_empty() {
                        events.push(Event::Promote { urls: promoted });
                    }
                    events.push(*event);
                    permits.push(permit);
                    grew.into_iter()
                        .for_each(|seed| self.rejudging.scope_grew(seed));
                }
                // Its slot is free as soon as it is out of the queue.
                Message::Other(other, _slot) => self.take(other, &mut events),
                Message::Stop => stop = true,
            }
            if events.len() >= GROUP {
                break;
            }
        }
        if !events.is_empty() {
            self.rejudging.judge_late(&mut events);
            self.index.apply(events)?;
            self.dirty = true;
        }
        drop(permits);
        if self.waiting.at_once {
            self.sync()?;
        }
        Ok(stop)
    }

    fn take(&mut self, other: Other, events: &mut Vec<Event>) {
        match other {
            Other::Event(event) => events.push(*event),
            Other::Wanted { want, reject } => {
                self.open_request = Some(Request {
                    want,
                    reject: reject.into_iter().collect(),
                    told: false,
                });
            }
            Other::Recall(origin) => self.recalls.push(origin),
            Other::Durable {
                event,
                done,
                at_once,
            } => {
                events.push(*event);
                self.waiting.add(done, at_once);
            }
            Other::Budgets { pages, budgets } => {
                self.options.pages = pages;
                self.index.set_budgets(budgets);
            }
            Other::ScopeGrew(seed) => self.rejudging.scope_grew(seed),
            Other::RulesChanged => self.rejudging.rules_changed(),
        }
    }

    /// Answers the questions for robots.txt files. They stay open when the disk fails.
    fn recall(&mut self) -> Result<()> {
        while let Some(origin) = self.recalls.last() {
            let kept = self.index.robots(origin)?;
            if let Some(origin) = self.recalls.pop() {
                (self.give)(Supply::Robots(origin, kept));
            }
        }
        Ok(())
    }

    /// Meets the URL server's request as far as possible, and says so when nothing is left.
    fn serve(&mut self) -> Result<()> {
        let now = (self.clock)();
        let left = self.budget_left();
        let mut waits_until = None;
        let mut only_blocked = false;
        let mut idle = Idle::No;
        if let Some(mut request) = self.open_request.take() {
            let met = self.meet(&mut request, left, now);
            // The URL server asks once and waits: a request that could not be met for trouble with the disk stays open.
            if met.is_err() || request.want > 0 {
                self.open_request = Some(request);
            }
            met?;
        }
        if self.index.claimed() == 0 && self.open_request.is_some() {
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

    fn meet(&mut self, request: &mut Request, left: usize, now: Timestamp) -> Result<()> {
        let is_spent = left == 0;
        let wanted = Wanted {
            urls: if is_spent {
                request.want
            } else {
                request.want.min(left)
            },
            per_host: self.options.per_host,
            reject: std::mem::take(&mut request.reject),
        };
        let found = match (is_spent, self.options.recrawl) {
            (false, _) => self.index.candidates(&wanted, now),
            (true, true) => self.index.visits(&wanted, now),
            (true, false) => Ok(Vec::new()),
        };
        request.reject = wanted.reject;
        let found = found?;
        self.dirty |= !found.is_empty();
        let paces = paces(&self.index, &found);
        request.want -= found.len();
        request
            .reject
            .extend(well_supplied(&found, self.options.per_host));
        let tell = !std::mem::replace(&mut request.told, true);
        if tell || !found.is_empty() {
            (self.give)(Supply::Candidates(found, paces));
        }
        Ok(())
    }

    fn idleness(&self, next: Option<Timestamp>, now: Timestamp) -> Idle {
        match next {
            _ if self.rejudging.has_more() => Idle::No,
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
        *lock(&self.standing) = standing;
    }
}
