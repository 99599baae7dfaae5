//! The ring: built, run, and stopped in order.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | orders | URL server → spider | `concurrency` | never: the URL server counts what is out |
//! | permits | spider → doc index | 2 × `concurrency` + 256 results | the spider takes no order |
//! | announcements | spider → URL server | one per order out | never |
//! | archive | spider's workers → store | 16 MiB | the worker waits beside the runtime |
//! | index | workers, store, URL server → doc index | one per permit, plus requests | never |
//! | notices | URL server → doc index | 1,024 | they wait in the URL server |
//! | inbox | doc index, spider → URL server | 1,024 | the sender waits |
//!
//! Everything that enters the doc index does so through its thread (`indexer.rs`); orders are carried out in
//! `desk.rs`, and everything that is fetched goes through `harvest.rs`. Stopping walks the list from the top: the URL server gives back what
//! is not out, the spider finishes what is, the store writes what it has, the doc index folds what remains.

mod options;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Semaphore, mpsc};

use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_intake::{Canonicalizer, Outlinks, Scope, Traps};
use orbweaver_model::{Clock, Event, KeySeed};
use orbweaver_spider::{AddressPolicy, Resolver, ResolverOptions, Spider};
use orbweaver_urlserver::{Links, UrlServer};

pub(crate) use self::options::can_begin;
use self::options::{damage_notes, open_archive, spider_options, urlserver_options};
use crate::addresses::Addresses;
use crate::adopt;
use crate::changes::Changes;
use crate::cli::status::Status;
use crate::clock;
use crate::config::Config;
use crate::control::Control;
use crate::crawl_dir::Held;
use crate::daemon::urlserver::{Elsewhere, Ties};
use crate::desk::{Counter, Desk, announce_to, dispatch, hear};
use crate::exit::{Ending, Fatal};
use crate::harvest::{Harvest, Shelf};
use crate::helm::{Helm, Wishes, lock, seeds};
use crate::indexer::{self, Gift, Idle, IndexerOptions, read_at_last};
use crate::log;
use crate::machine::{Signals, allow_many_files, random};
use crate::notices::Notices;
use crate::progress::{self, Form, Progress, Show};
use crate::seeds::SeedWatch;
use crate::settings::Settings;
use crate::sources::Sources;
use crate::space::Space;
use crate::summary::{self, Limit, Outline};
use crate::units::moment;

/// Who fetches and who keeps.
pub(crate) enum Hands {
    /// This process.
    Own,
    /// Other processes; then the ring turns until it is told to stop.
    Others(Elsewhere),
}

/// Everything that a run begins with.
pub(crate) struct Start {
    /// Where, for this process alone.
    pub(crate) held: Held,
    /// The settings as given, to be kept once the start is accepted.
    pub(crate) config: Config,
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
    pub(crate) hands: Hands,
    pub(crate) show: Show,
    /// What the user has to know of it from the beginning.
    pub(crate) notices: Vec<String>,
    /// `demo` may replace what this run makes.
    pub(crate) is_demo: bool,
}

/// Why the ring stops turning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Idle(Idle),
    Time,
    Signal,
    /// The crawl directory is gone.
    Gone,
    /// A stage ended that should not have.
    Broken,
}

/// Runs a crawl to its end and says how it went.
pub(crate) fn run(start: Start) -> Result<Ending> {
    let dir = start.held.dir().clone();
    let form = start.show.form;
    let outline = crawl(start);
    dir.level_modes();
    let outline = outline?;
    if matches!(form, Form::Live | Form::Plain) {
        summary::print(&dir, &outline)?;
    }
    Ok(outline.ending)
}

fn crawl(start: Start) -> Result<Outline> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(start.settings.workers)
        .thread_name("worker")
        .enable_all()
        .build()
        .context("cannot start the worker threads")?;
    allow_many_files();
    let progress = Progress::new(start.show);
    let outline = runtime.block_on(turn(start, progress));
    // Lookups that never end must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outline
}

async fn turn(start: Start, progress: Progress) -> Result<Outline> {
    if !start.settings.has_contact && matches!(start.hands, Hands::Own) {
        progress.say(
            "orbweaver: no contact is set; give --contact URL so that site owners can reach you",
        );
    }
    let mut signals = Signals::new()?;
    let ring = Ring::build(start, &progress)?;
    let (reason, progress) = ring.watch(progress, &mut signals).await;
    ring.stop(reason, progress, &mut signals).await
}

/// The ring while it turns.
struct Ring {
    began: Instant,
    /// What this process and others can ask and change.
    helm: Arc<Helm>,
    index: indexer::Running,
    index_thread: JoinHandle<Result<()>>,
    log_thread: Option<log::Writing>,
    dispatcher: tokio::task::JoinHandle<()>,
    /// Dropped or told, the dispatcher lets no more orders out and waits for those that are.
    last_orders: tokio::sync::watch::Sender<bool>,
    /// Says true when the URL server has ended, which it does by itself only when it fails.
    urlserver_ended: tokio::sync::watch::Receiver<bool>,
    /// It does not end because nothing is left to do.
    is_service: bool,
    _control: Control,
    /// The directory is this process's until the end.
    held: Held,
}

impl Ring {
    fn build(start: Start, progress: &Progress) -> Result<Self> {
        let Start {
            held,
            config,
            settings,
            sources,
            hands,
            notices,
            is_demo,
            ..
        } = start;
        let (dir, settings) = (held.dir(), &settings);
        let clock = clock::steady();
        let policy = AddressPolicy::new(settings.allow_net.clone());
        // What can be refused is tried before anything is written.
        let own_spider = matches!(hands, Hands::Own).then(|| {
            let options = spider_options(settings, policy.clone())?;
            anyhow::Ok(Spider::new(options, Clock::clone(&clock))?)
        });
        let own_spider = own_spider.transpose()?;
        let index_options = IndexOptions {
            memory: settings.memory / 2,
            seed: KeySeed(random()?),
            budgets: settings.budgets,
            domain_of: orbweaver_intake::domain_or_host,
            recrawl: settings.recrawl.is_some(),
        };
        let mut docs = DocIndex::open(&dir.index(), index_options, clock())?;
        let trouble: Arc<Mutex<Option<String>>> = Arc::default();
        let is_service = matches!(hands, Hands::Others(_));
        let own = match hands {
            Hands::Own => Some(open_archive(dir, settings, Arc::clone(&trouble))?),
            Hands::Others(_) => None,
        };
        let archive = own.as_ref().map(|(archive, _)| Arc::clone(archive));
        let mut index = indexer::Running::new();
        let voice = progress.log_voice();
        let (log, log_thread) = log::prepare(&settings.log, voice.is_some());
        // From here on the start is accepted.
        dir.store_config(&config)?;
        if !is_demo {
            held.keep();
        }
        dir.level_modes();
        let scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
        let canonicalizer = Canonicalizer::new(settings.canonical.clone());
        let seed = docs.seed();
        let traps = Traps::new(settings.traps.clone(), seed, clock());
        let harvest = Arc::new(Harvest {
            outlinks: Outlinks::new(canonicalizer, scope, traps, seed, &settings.limits),
            seed,
            seen: docs.seen(),
            limits: settings.limits.clone(),
            agent: settings.agent.clone(),
            obey_nofollow: settings.obey_nofollow,
            sitemaps: settings.sitemaps,
            recrawl: settings.recrawl,
            policy: policy.clone(),
            shelf: archive.clone().map(Shelf::new),
            indexer: index.indexer.clone(),
            promoted: Mutex::default(),
            counters: Default::default(),
            notices: Arc::new(Notices::of(notices)),
            seeds: SeedWatch::of(&settings.seeds),
            log: log.clone(),
        });
        for note in own.iter().flat_map(|(_, recovery)| damage_notes(recovery)) {
            harvest.notices.add(note);
        }
        let resumed = docs.resumed();
        if resumed {
            for seed in docs.reader().seeds() {
                harvest.outlinks.admit_seed(&seed?);
            }
            if let Some((_, recovery)) = &own {
                adopt::adopt(dir, recovery, &mut docs, &harvest)?;
            }
        }
        docs.apply([seeds(&settings.seeds, &harvest, clock())])?;
        if !resumed && own.is_some() {
            adopt::adopt_all(dir, &mut docs, &harvest)?;
        }
        docs.plan_visits(settings.recrawl)?;
        let reader = docs.reader();
        let log_thread = log_thread.map(|thread| {
            let notices = Arc::clone(&harvest.notices);
            thread.start(
                dir.path(),
                settings.log.clone(),
                reader.clone(),
                voice,
                notices,
            )
        });
        let log_thread = log_thread.transpose()?;
        let followed = docs.results();
        if is_service {
            // From now on the index says that the archive is elsewhere.
            let position = followed;
            docs.apply([Event::Results { position }])?;
        }
        let (orders, order_queue) = mpsc::channel(settings.concurrency);
        let (notices, notice_queue) = mpsc::channel(1024);
        let resolver_options = ResolverOptions {
            server: settings.resolver,
            ..ResolverOptions::default()
        };
        let resolver = Arc::new(Addresses {
            resolver: Resolver::new(resolver_options, policy.clone()),
            policy: policy.clone(),
        });
        let links = Links {
            orders,
            notices,
            resolver,
            clock: Clock::clone(&clock),
        };
        let (urlserver, urlserver_task) =
            UrlServer::spawn(urlserver_options(settings, resumed, &reader)?, links)?;
        let give_to = urlserver.clone();
        let runtime = tokio::runtime::Handle::current();
        let give_on = runtime.clone();
        let index_options = IndexerOptions {
            pages: settings.pages,
            per_host: settings.queue_len,
            patience: settings.retry.patience,
            recrawl: settings.recrawl.is_some(),
        };
        let index_thread = index.start(docs, index_options, Clock::clone(&clock), move |gift| {
            give_on.block_on(async {
                // The URL server ends only when the crawl does; what it does not take stays claimed.
                match gift {
                    Gift::Robots(origin, kept) => {
                        let _ = give_to.known_robots(origin, kept).await;
                    }
                    Gift::Candidates(candidates, paces) => {
                        if !paces.is_empty() {
                            let _ = give_to.known_paces(paces).await;
                        }
                        let _ = give_to.candidates(candidates).await;
                    }
                }
            });
        })?;
        tokio::spawn(hear(
            notice_queue,
            Arc::clone(&harvest),
            settings.retry.clone(),
            Clock::clone(&clock),
        ));
        let (last_orders, stop) = tokio::sync::watch::channel(false);
        let permits = Arc::new(Semaphore::new(settings.concurrency * 2 + 256));
        let counter = Counter {
            urlserver: urlserver.clone(),
            harvest: Arc::clone(&harvest),
            retry: settings.retry.clone(),
        };
        let dispatcher = match (hands, own_spider) {
            (Hands::Own, spider) => {
                let spider = spider.context("a crawl of its own has a spider")?;
                let desk = Arc::new(Desk {
                    spider,
                    counter,
                    announcements: announce_to(urlserver.clone()),
                });
                tokio::spawn(dispatch(order_queue, desk, permits, stop))
            }
            (Hands::Others(elsewhere), _) => {
                let desk = elsewhere.desk(Ties {
                    counter,
                    permits,
                    reader: reader.clone(),
                    standing: Arc::clone(&index.standing),
                    followed,
                    clock: Clock::clone(&clock),
                    room: settings.concurrency,
                });
                tokio::spawn(desk.run(order_queue, stop))
            }
        };
        let (wishes, _) = tokio::sync::watch::channel(Wishes {
            time: settings.time,
            ..Wishes::default()
        });
        let helm = Arc::new(Helm {
            dir: dir.clone(),
            clock,
            runtime,
            urlserver,
            harvest,
            archive,
            indexer: index.indexer.clone(),
            standing: Arc::clone(&index.standing),
            reader,
            gauge: Mutex::default(),
            trouble,
            space: Space::of(dir.path()),
            wishes,
            settings: Mutex::new(settings.clone()),
            sources,
            changes: Mutex::new(Changes::of(dir)),
        });
        let answers = Arc::clone(&helm);
        let control = Control::listen(dir, move |question, out| answers.answer(question, out))?;
        Ok(Self {
            began: Instant::now(),
            helm,
            index,
            index_thread,
            log_thread,
            dispatcher,
            last_orders,
            urlserver_ended: ending_of(urlserver_task),
            is_service,
            _control: control,
            held,
        })
    }

    /// A crawl that is paused does not end because what is left has to wait.
    fn ends(&self, idle: Idle, wishes: Wishes) -> bool {
        match idle {
            Idle::No => false,
            Idle::Later => !wishes.paused && !self.is_service,
            Idle::Empty | Idle::Budget => !self.is_service,
            Idle::Failed => true,
        }
    }

    /// Shows progress until there is a reason to stop.
    async fn watch(&self, mut progress: Progress, signals: &mut Signals) -> (Reason, Progress) {
        let mut idle = self.index.idle.clone();
        let mut wishes = self.helm.wishes.subscribe();
        let mut ticks = tokio::time::interval(Progress::EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut cpu = (Instant::now(), progress::cpu_time());
        let mut said = None;
        let mut said_lost = None;
        let mut ended = self.urlserver_ended.clone();
        let reason = loop {
            let now = *wishes.borrow_and_update();
            if now.stop {
                break Reason::Signal;
            }
            tokio::select! {
                Ok(idle) = idle.wait_for(|idle| self.ends(*idle, now)) => break Reason::Idle(*idle),
                () = end_of(self.began, now.time) => break Reason::Time,
                Ok(()) = wishes.changed() => {}
                () = signals.next() => break Reason::Signal,
                Ok(_) = ended.wait_for(|ended| *ended) => break Reason::Broken,
                _ = ticks.tick() => {
                    if !self.held.presence().holds() {
                        break Reason::Gone;
                    }
                    if cpu.0.elapsed() >= Duration::from_secs(1) {
                        let used = progress::cpu_time();
                        let busy = used.saturating_sub(cpu.1).as_secs_f64() / cpu.0.elapsed().as_secs_f64();
                        lock(&self.helm.gauge).busy = busy;
                        cpu = (Instant::now(), used);
                        self.held.dir().level_modes();
                    }
                    self.mind_the_disk(now.paused).await;
                    let lost = lock(&self.index.standing).lost.clone();
                    if let Some(lost) = lost.filter(|lost| said_lost.as_ref() != Some(lost)) {
                        progress.say(&format!("orbweaver: {lost}"));
                        said_lost = Some(lost);
                    }
                    let harvest = &self.helm.harvest;
                    let answers = harvest.counters.answers.load(Ordering::Relaxed);
                    harvest.seeds.look(self.began.elapsed(), answers, &harvest.notices);
                    for notice in harvest.notices.news() {
                        progress.say(&format!("orbweaver: {notice}"));
                    }
                    let trouble = self.helm.trouble();
                    if trouble != said {
                        progress.say(&format!("orbweaver: {}", trouble.as_deref().unwrap_or("the store writes again")));
                        said = trouble;
                    }
                    let rate = progress.show(self.standing().await);
                    lock(&self.helm.gauge).rate = rate;
                }
            }
        };
        (reason, progress)
    }

    /// Lets no more orders out while the disk is nearly full, and lets them out again after.
    async fn mind_the_disk(&self, paused: bool) {
        let was_low = self.helm.space.low().is_some();
        let low = self.helm.space.look().is_some();
        if low || was_low {
            // An operator may have resumed meanwhile. Failing means that the crawl is ending.
            let _ = self.helm.urlserver.pause(low || paused).await;
        }
    }

    async fn standing(&self) -> progress::Standing {
        let census = self.helm.urlserver.census().await.unwrap_or_default();
        let queued = lock(&self.index.standing).ledger.queued;
        let counters = &self.helm.harvest.counters;
        progress::Standing {
            seconds: self.began.elapsed().as_secs_f64(),
            pages: counters.documents.load(Ordering::Relaxed),
            rate: 0.0,
            bytes: counters.bytes.load(Ordering::Relaxed),
            queued,
            hosts_active: census.hosts,
            in_flight: census.orders,
            failed: counters.failed.load(Ordering::Relaxed),
            limited_by: self.helm.slow(&census).limit,
            notices: self.helm.harvest.notices.all(),
        }
    }

    /// Stops each stage after the one before it has stopped.
    async fn stop(
        self,
        reason: Reason,
        progress: Progress,
        signals: &mut Signals,
    ) -> Result<Outline> {
        if reason == Reason::Gone {
            // Whatever is still written would be written to files without a name.
            progress.clear();
            return Err(self.held.presence().gone());
        }
        if reason == Reason::Signal {
            progress.say(
                "orbweaver: stopping; requests that are out may end, a second signal ends at once",
            );
        }
        let (began, is_service) = (self.began, self.is_service);
        let settings = lock(&self.helm.settings).clone();
        let wishes = *self.helm.wishes.borrow();
        let waits_until = lock(&self.index.standing).waits_until;
        let finish = async {
            if let Ok(unasked) = self.helm.urlserver.drain().await {
                let keys = unasked.iter().map(|candidate| candidate.key).collect();
                self.index.indexer.event(Event::Return { keys }, None);
            }
            self.last_orders.send_replace(true);
            let standing = self.standing().await;
            let _ = self.dispatcher.await;
            let archive = self.helm.archive.clone();
            let close = move || archive.map_or(Ok(()), |archive| archive.close());
            let stored = tokio::task::spawn_blocking(close).await;
            if let Some(thread) = self.log_thread {
                let log = self.helm.harvest.log.clone();
                let _ = tokio::task::spawn_blocking(move || thread.finish(&log)).await;
            }
            self.index.indexer.stop();
            let thread = self.index_thread;
            let indexed = tokio::task::spawn_blocking(move || thread.join()).await;
            let pages = self.helm.harvest.counters.documents.load(Ordering::Relaxed);
            progress.finish(progress::Standing {
                pages,
                limited_by: "the end".into(),
                ..standing
            });
            indexed
                .context("the index thread")?
                .map_err(|_| anyhow::anyhow!("the index thread failed"))??;
            stored.context("the store thread")??;
            let (status, why_nothing) = read_at_last(|| {
                let reader = &self.helm.reader;
                let status = Status::read(reader, (self.helm.clock)())?;
                let why_nothing = summary::why_nothing(reader, &status)?;
                Ok((status, why_nothing))
            })?;
            let notices = self.helm.harvest.notices.all();
            anyhow::Ok((pages, status, why_nothing, notices))
        };
        let (pages, status, why_nothing, notices) = tokio::select! {
            end = finish => end?,
            () = signals.next() => {
                return Err(Fatal::with(Ending::Interrupted, "ended at once; the same command resumes"));
            }
        };
        let ending = match reason {
            Reason::Signal => Ending::Interrupted,
            _ if status.pages == 0 && !is_service => Ending::NoPage,
            Reason::Time | Reason::Idle(_) => Ending::Done,
            Reason::Gone | Reason::Broken => {
                return Err(anyhow::anyhow!(
                    "the URL server failed; the same command resumes"
                ));
            }
        };
        let limit = match reason {
            Reason::Idle(Idle::Budget) => Some(Limit::Pages(settings.pages)),
            Reason::Time => wishes.time.map(Limit::Time),
            _ => None,
        };
        Ok(Outline {
            ending,
            limit,
            next: waits_until.map(moment),
            seconds: began.elapsed().as_secs_f64(),
            pages,
            status,
            why_nothing,
            notices,
        })
    }
}

/// Waits for the end of the time that a run has.
async fn end_of(began: Instant, time: Option<Duration>) {
    match time.and_then(|time| began.checked_add(time)) {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

/// Turns true when the task is over.
fn ending_of(task: tokio::task::JoinHandle<()>) -> tokio::sync::watch::Receiver<bool> {
    let (say, ended) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        let _ = task.await;
        say.send_replace(true);
    });
    ended
}
