//! The ring: built, run, and stopped in order.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | orders | URL server → spider | `concurrency` | never: the URL server counts what is out |
//! | permits | spider → doc index | 2 × `concurrency` + 256 results | the spider takes no order |
//! | announcements | spider → URL server | one per order out | never |
//! | given up | URL server → spider | one per order out | never |
//! | archive | spider's workers → store | 16 MiB | the worker waits beside the runtime |
//! | index | workers, store, URL server → doc index | one per permit, plus requests | never |
//! | notices | URL server → doc index | 1,024 | they wait in the URL server |
//! | inbox | doc index, spider → URL server | 1,024 | the sender waits |
//!
//! Everything that enters the doc index does so through its thread (`indexer.rs`); orders are carried out in
//! `desk.rs`, and everything that is fetched goes through `harvest.rs`. Stopping walks the list from the top: the URL server gives back what
//! is not out, the spider finishes what is, the store writes what it has, the doc index folds what remains.

mod end;
mod options;
mod watch;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Semaphore, mpsc};

use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_intake::{Canonicalizer, Outlinks, Scope, Traps};
use orbweaver_model::{Clock, Event, KeySeed};
use orbweaver_spider::{AddressPolicy, Resolver, ResolverOptions, Shortages, Spider, SpoolDir};
use orbweaver_urlserver::{Links, UrlServer};

pub(crate) use self::options::can_begin;
use self::options::{body_budget, damage_notes, open_archive, spider_options, urlserver_options};
use crate::addresses::Addresses;
use crate::adopt;
use crate::changes::Changes;
use crate::clock;
use crate::control::Control;
use crate::crawl_dir::Held;
use crate::daemon::urlserver::{Elsewhere, Ties};
use crate::desk::{Counter, Desk, GivenUp, announce_to, dispatch, hear};
use crate::exit::Ending;
use crate::harvest::Harvest;
use crate::helm::{Helm, Wishes, seeds};
use crate::indexer::{self, Gift, IndexerOptions};
use crate::log;
use crate::machine::{Descriptors, Signals, random};
use crate::notices::Notices;
use crate::progress::{Form, Progress, Show};
use crate::rejudge::{Rejudge, tracking};
use crate::seeds::SeedWatch;
use crate::shelf::Shelf;
use crate::space::Space;
use crate::summary::{self, Outline};
use orbweaver_config::Config;
use orbweaver_config::Settings;
use orbweaver_config::Sources;

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

fn crawl(mut start: Start) -> Result<Outline> {
    let descriptors = Descriptors::get();
    if descriptors.places < start.settings.concurrency && matches!(start.hands, Hands::Own) {
        start.notices.push(format!(
            "the limit on open files allows {} requests at once instead of {}; ulimit -n raises it",
            descriptors.places, start.settings.concurrency
        ));
        start.settings.concurrency = descriptors.places;
    }
    let fetches = body_budget(&start.settings).fetches();
    if fetches < start.settings.concurrency && matches!(start.hands, Hands::Own) {
        start.notices.push(format!(
            "the memory budget allows {fetches} requests at once instead of {}; --memory raises it",
            start.settings.concurrency
        ));
        start.settings.concurrency = fetches;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(start.settings.workers)
        .thread_name("worker")
        .enable_all()
        .build()
        .context("cannot start the worker threads")?;
    let progress = Progress::new(start.show);
    let outline = runtime.block_on(turn(start, descriptors, progress));
    // Lookups that never end must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outline
}

async fn turn(start: Start, descriptors: Descriptors, progress: Progress) -> Result<Outline> {
    if !start.settings.has_contact && matches!(start.hands, Hands::Own) {
        progress.say(
            "orbweaver: no contact is set; give --contact URL so that site owners can reach you",
        );
    }
    let mut signals = Signals::new()?;
    let ring = Ring::build(start, descriptors, &progress)?;
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
    /// What this machine had too little of.
    shortages: Arc<Shortages>,
    _control: Control,
    /// The directory is this process's until the end.
    held: Held,
}

impl Ring {
    fn build(start: Start, descriptors: Descriptors, progress: &Progress) -> Result<Self> {
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
        let shortages: Arc<Shortages> = Arc::default();
        let own_spider = matches!(hands, Hands::Own).then(|| {
            let mut options = spider_options(settings, policy.clone())?;
            options.max_idle_connections = descriptors.idle;
            options.spool = Some(SpoolDir::new(dir.path().join("warc"), descriptors.spools));
            options.shortages = Arc::clone(&shortages);
            anyhow::Ok(Spider::new(options, Clock::clone(&clock))?)
        });
        let own_spider = own_spider.transpose()?;
        let index_options = IndexOptions {
            memory: settings.memory / 2,
            seed: KeySeed(random()?),
            budgets: settings.budgets,
            domain_of: orbweaver_intake::domain_or_host,
            recrawl: settings.recrawl.is_some(),
            tracking: tracking(settings),
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
        let judge = Rejudge::new(Arc::clone(&harvest), dir.clone(), settings);
        judge.apply_rules(&mut docs)?;
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
            max_lookups: descriptors.lookups,
            ..ResolverOptions::default()
        };
        let resolver = Arc::new(Addresses {
            resolver: Resolver::new(resolver_options, policy.clone()),
            policy: policy.clone(),
        });
        // Spiders elsewhere have no word for giving an order up.
        let (give_up, to_give_up) = mpsc::unbounded_channel();
        let links = Links {
            orders,
            give_up: matches!(hands, Hands::Own).then_some(give_up),
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
            presence: held.presence().clone(),
        };
        let judge = Box::new(judge);
        let index_thread = index.start(
            docs,
            index_options,
            Clock::clone(&clock),
            judge,
            move |gift| {
                give_on.block_on(async {
                    // The URL server ends only when the crawl does; what it does not take stays claimed.
                    match gift {
                        // Reading it may take milliseconds, for which the index does not wait. The URL server asks for
                        // a few at once.
                        Gift::Robots(origin, kept) => {
                            let give_to = give_to.clone();
                            tokio::spawn(async move { give_to.known_robots(origin, kept).await });
                        }
                        Gift::Candidates(candidates, paces) => {
                            if !paces.is_empty() {
                                let _ = give_to.known_paces(paces).await;
                            }
                            let _ = give_to.candidates(candidates).await;
                        }
                    }
                });
            },
        )?;
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
                    head_first: settings.head_first,
                    counter,
                    announcements: announce_to(urlserver.clone()),
                    given_up: GivenUp::default(),
                });
                tokio::spawn(GivenUp::pass_on(Arc::clone(&desk), to_give_up));
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
            shortages,
            _control: control,
            held,
        })
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
