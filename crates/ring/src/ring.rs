//! The ring: built, run, and stopped in order.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | orders | URL server → spider | `concurrency` | never: the URL server counts what is out |
//! | permits | spider → doc index | 2 × `concurrency` + 256 results | the spider takes no order |
//! | announcements | spider → URL server | one in the task of each order | never |
//! | give up | URL server → spider | `concurrency` | the order goes on |
//! | archive | spider's workers → store | 16 MiB | the worker waits beside the runtime |
//! | index | workers, store, URL server → doc index | one per permit, plus requests | never |
//! | notices | URL server → doc index | 1,024 | they wait in the URL server |
//! | inbox | doc index, spider → URL server | 1,024 | the sender waits |
//!
//! Everything that enters the doc index does so through its thread (`indexer.rs`); orders are carried out in
//! `fetchers`, and everything that is fetched goes through `harvest.rs`. Stopping walks the list from the top: the URL server
//! gives back what is not out, the spider finishes what is, the store writes what it has, the doc index folds what remains.

mod end;
mod options;
mod supervise;

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, mpsc, watch};

use orbweaver_config::{Config, Settings, Sources};
use orbweaver_crawldir::Held;
use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_intake::{Canonicalizer, LinkRule, Outlinks, Scope, Traps};
use orbweaver_model::{Clock, Event, KeySeed, Order, TransId};
use orbweaver_spider::{AddressPolicy, Resolver, ResolverOptions, Shortages, Spider, SpoolDir};
use orbweaver_store::{Keep, Recovery};
use orbweaver_urlserver::{Handle, Links, Notice, UrlServer};

pub(crate) use self::options::can_begin;
use self::options::{
    body_budget, damage_notes, open_archive, robots_note, spider_options, urlserver_options,
};
use crate::addresses::Addresses;
use crate::archiving::Archiving;
use crate::clock;
use crate::control::{Control, Controlled};
use crate::error::{Error, Result};
use crate::fetchers::gate::SendGate;
use crate::fetchers::here::Here;
use crate::fetchers::intake::ResultIntake;
use crate::fetchers::line::{Elsewhere, LineParts};
use crate::fetchers::{Fetchers, Work};
use crate::harvest::{Harvest, HarvestParts};
use crate::indexer::{self, IndexerOptions, Supply};
use crate::inlet::Inlet;
use crate::machine::{Descriptors, random};
use crate::notices;
use crate::pages::Reading;
use crate::rejudge::{Rejudge, tracking};
use crate::results;
use crate::watch::{Watch, Watched};
use orbweaver_control::socket::{Refused, Socket};
use orbweaver_reading::PageReader;
use orbweaver_watch::log::{self, ShowLine};
use orbweaver_watch::notices::Notices;
use orbweaver_watch::seeds::SeedWatch;

/// Who fetches and who keeps.
pub(crate) enum Fetching {
    /// This process.
    Here,
    /// Other processes; then the ring runs until it is told to stop.
    Elsewhere(Elsewhere),
}

/// Everything that a run begins with.
pub(crate) struct Start {
    /// Where, for this process alone.
    pub(crate) held: Held,
    /// The settings as given, to be kept once the start is accepted.
    pub(crate) config: Config,
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
    pub(crate) fetching: Fetching,
    /// What the user has to know of it from the beginning.
    pub(crate) notices: Vec<String>,
    /// `demo` may replace what this run makes.
    pub(crate) is_demo: bool,
    /// Gets each line of the request log, too.
    pub(crate) show_log: Option<ShowLine>,
    /// What the user decides about links.
    pub(crate) rule: Option<Arc<dyn LinkRule>>,
}

impl Start {
    /// Fewer requests at once where the machine or the memory budget allows no more, with a notice.
    pub(crate) fn fit(&mut self, descriptors: Descriptors) {
        if !matches!(self.fetching, Fetching::Here) {
            return;
        }
        let fetches = body_budget(&self.settings).fetches();
        for (most, what) in [
            (
                descriptors.places,
                "the limit on open files allows {} concurrent requests instead of {}; ulimit -n raises it",
            ),
            (
                fetches,
                "the memory budget allows {} concurrent requests instead of {}; --memory raises it",
            ),
        ] {
            let wanted = self.settings.concurrency;
            if most < wanted {
                let said = what.replacen("{}", &most.to_string(), 1);
                self.notices
                    .push(said.replacen("{}", &wanted.to_string(), 1));
                self.settings.concurrency = most;
            }
        }
    }
}

/// The stages that hold something on the disk, or may refuse to begin.
struct Opened {
    clock: Clock,
    policy: AddressPolicy,
    /// What this machine had too little of.
    shortages: Arc<Shortages>,
    /// None when others fetch.
    spider: Option<Spider>,
    docs: DocIndex,
    /// None when the store is elsewhere.
    archive: Option<(Arc<dyn Keep>, Recovery)>,
}

impl Opened {
    /// What can be refused is tried before anything is written.
    fn open(start: &Start, descriptors: Descriptors) -> Result<Self> {
        let (dir, settings) = (start.held.dir(), &start.settings);
        let clock = clock::steady();
        let policy = AddressPolicy::new(settings.allow_net.clone());
        let shortages: Arc<Shortages> = Arc::default();
        let is_here = matches!(start.fetching, Fetching::Here);
        let mut spider = None;
        if is_here {
            let mut options = spider_options(settings, policy.clone())?;
            options.max_idle_connections = descriptors.idle;
            options.spool = Some(SpoolDir::new(dir.path().join("warc"), descriptors.spools));
            options.shortages = Arc::clone(&shortages);
            spider = Some(Spider::new(options, Clock::clone(&clock))?);
        }
        let index_options = IndexOptions {
            memory: settings.memory / 2,
            seed: KeySeed(random()?),
            budgets: settings.budgets,
            domain_of: orbweaver_intake::domain_or_host,
            recrawl: settings.recrawl.is_some(),
            tracking: tracking(settings),
            ..IndexOptions::default()
        };
        let docs = DocIndex::open(&dir.index(), index_options, clock())?;
        let archive = match is_here {
            true => Some(open_archive(dir, settings)?),
            false => None,
        };
        Ok(Self {
            clock,
            policy,
            shortages,
            spider,
            docs,
            archive,
        })
    }

    /// The stage between spider and doc index.
    fn harvest(&self, start: &Start, index: &indexer::Running, log: log::Log) -> Result<Harvest> {
        let settings = &start.settings;
        let scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
        let canonicalizer = Canonicalizer::new(settings.canonical.clone());
        let seed = self.docs.seed();
        let traps = Traps::new(settings.traps.clone(), seed, (self.clock)())
            .with_hosts(settings.hosts.traps.clone());
        let notices = Notices::of(start.notices.clone());
        if let Some(note) = robots_note(settings) {
            notices.add(note);
        }
        if !settings.has_contact && self.spider.is_some() {
            notices.say(
                "no contact is set; give --contact URL so that site owners can reach you".into(),
            );
        }
        for note in self
            .archive
            .iter()
            .flat_map(|(_, found)| damage_notes(found))
        {
            notices.add(note);
        }
        let outlinks = Outlinks::new(canonicalizer, scope, traps, seed, &settings.limits);
        let outlinks = match &start.rule {
            Some(rule) => outlinks.with_rule(Arc::clone(rule)),
            None => outlinks,
        };
        let (seen, policy) = (self.docs.seen(), self.policy.clone());
        Ok(Harvest::new(HarvestParts {
            reader: PageReader::new(outlinks, seed, seen, policy, settings),
            recrawl: settings.recrawl,
            archiving: (self.archive.as_ref())
                .map(|(archive, _)| Archiving::new(Arc::clone(archive))),
            indexer: index.indexer.clone(),
            notices,
            seeds: SeedWatch::of(&settings.seeds),
            log,
        }))
    }

    /// Brings the doc index up to what the archive, the seeds and the settings say. Returns who judges by its rules.
    fn catch_up(&mut self, start: &Start, harvest: &Arc<Harvest>) -> Result<Rejudge> {
        let (dir, settings) = (start.held.dir(), &start.settings);
        let docs = &mut self.docs;
        let resumed = docs.resumed();
        if resumed {
            for seed in docs.reader().seeds() {
                harvest.reader().outlinks().admit_seed(&seed?);
            }
        }
        let links = harvest.reader().judge_seeds(&settings.seeds);
        let at = (self.clock)();
        docs.apply([Event::Links { links, at }])?;
        if let Some((archive, _)) = &self.archive {
            results::follow(archive.as_ref(), docs, harvest)?;
        }
        let judge = Rejudge::new(Arc::clone(harvest), dir.clone(), settings);
        judge.apply_rules(docs)?;
        docs.plan_visits(settings.recrawl)?;
        if self.archive.is_none() {
            // From now on the index says that the archive is elsewhere.
            let position = docs.results();
            docs.apply([Event::Results { position }])?;
        }
        Ok(judge)
    }
}

/// The URL server at work, and the ends of its queues.
struct Serving {
    handle: Handle,
    task: tokio::task::JoinHandle<()>,
    orders: mpsc::Receiver<Order>,
    give_up: mpsc::Receiver<TransId>,
    notices: mpsc::Receiver<Notice>,
}

impl Serving {
    fn start(start: &Start, opened: &Opened, descriptors: Descriptors) -> Result<Self> {
        let settings = &start.settings;
        let (to_orders, orders) = mpsc::channel(settings.concurrency);
        let (to_notices, notices) = mpsc::channel(1024);
        let (to_give_up, give_up) = mpsc::channel(settings.concurrency);
        let resolver_options = ResolverOptions {
            server: settings.resolver,
            max_lookups: descriptors.lookups,
            ..ResolverOptions::default()
        };
        let resolver = Arc::new(Addresses {
            resolver: Resolver::new(resolver_options, opened.policy.clone()),
            policy: opened.policy.clone(),
        });
        let links = Links {
            orders: to_orders,
            give_up: Some(to_give_up),
            notices: to_notices,
            resolver,
            clock: Clock::clone(&opened.clock),
        };
        let docs = &opened.docs;
        let options = urlserver_options(settings, docs.resumed(), &docs.reader())?;
        let (handle, task) = UrlServer::spawn(options, links)?;
        Ok(Self {
            handle,
            task,
            orders,
            give_up,
            notices,
        })
    }
}

/// The ring while it runs.
pub(crate) struct Ring {
    control: Arc<Control>,
    watch: Arc<Watch>,
    harvest: Arc<Harvest>,
    urlserver: Handle,
    archive: Option<Arc<dyn Keep>>,
    clock: Clock,
    index: indexer::Running,
    index_thread: JoinHandle<Result<()>>,
    log_thread: Option<log::Writing>,
    dispatcher: tokio::task::JoinHandle<()>,
    /// Dropped or told, the dispatcher lets no more orders out and waits for those that are.
    last_orders: watch::Sender<bool>,
    /// Says true when the URL server has ended, which it does by itself only when it fails.
    urlserver_ended: watch::Receiver<bool>,
    /// It does not end because nothing is left to do.
    is_service: bool,
    shortages: Arc<Shortages>,
    _socket: Socket,
    /// The directory is this process's until the end.
    held: Held,
}

impl Ring {
    /// Builds the stages in the order of the table and starts them.
    pub(crate) fn build(mut start: Start, descriptors: Descriptors) -> Result<Self> {
        let mut opened = Opened::open(&start, descriptors)?;
        let results = start.settings.concurrency * 2 + 256;
        let mut index = indexer::Running::new(results);
        let (log, log_thread) = log::prepare(&start.settings.log, start.show_log.is_some());
        // From here on the start is accepted.
        let dir = start.held.dir().clone();
        dir.store_config(&start.config)?;
        if !start.is_demo {
            start.held.keep();
        }
        dir.level_modes();
        let harvest = Arc::new(opened.harvest(&start, &index, log)?);
        let judge = opened.catch_up(&start, &harvest)?;
        let reader = opened.docs.reader();
        let followed = opened.docs.results();
        let log_thread = log_thread.map(|thread| {
            let notices = Arc::clone(harvest.notices());
            let options = start.settings.log.clone();
            let show = start.show_log.take();
            thread.start(dir.path(), options, reader.clone(), show, notices)
        });
        let log_thread = log_thread.transpose()?;
        let serving = Serving::start(&start, &opened, descriptors)?;
        let Opened {
            clock,
            shortages,
            spider,
            docs,
            archive,
            ..
        } = opened;
        let settings = &start.settings;
        let index_thread = start_index(&start, &mut index, docs, judge, &clock, &serving.handle)?;
        tokio::spawn(notices::pass_on(
            serving.notices,
            Arc::clone(&harvest),
            settings.retry.clone(),
            Clock::clone(&clock),
        ));
        let (last_orders, stop) = watch::channel(false);
        let permits = Arc::new(Semaphore::new(results));
        let intake = ResultIntake {
            urlserver: serving.handle.clone(),
            harvest: Arc::clone(&harvest),
            retry: settings.retry.clone(),
        };
        let is_service = spider.is_none();
        let gate: Arc<SendGate> = Arc::default();
        let work = Work {
            orders: serving.orders,
            give_up: serving.give_up,
            gate: Arc::clone(&gate),
            stop,
        };
        let dispatcher = match (start.fetching, spider) {
            (Fetching::Here, Some(spider)) => {
                let here = Here {
                    spider,
                    head_first: settings.head_first,
                    intake,
                    permits,
                };
                tokio::spawn(here.run(work))
            }
            (Fetching::Elsewhere(elsewhere), _) => {
                let line = elsewhere.connect(LineParts {
                    intake,
                    permits,
                    reader: reader.clone(),
                    standing: Arc::clone(&index.standing),
                    followed,
                    clock: Clock::clone(&clock),
                    room: settings.concurrency,
                    head_first: settings.head_first,
                });
                tokio::spawn(line.run(work))
            }
            (Fetching::Here, None) => {
                return Err(Error::Failed("a crawl of its own has no spider".into()));
            }
        };
        let archive = archive.map(|(archive, _)| archive);
        let watch = Arc::new(Watch::new(Watched {
            dir: dir.clone(),
            clock: Clock::clone(&clock),
            urlserver: serving.handle.clone(),
            harvest: Arc::clone(&harvest),
            archive: archive.clone(),
            standing: Arc::clone(&index.standing),
            reader,
            settings: start.settings.clone(),
        }));
        let reading = archive.as_ref().map(|keep| Reading {
            keep: Arc::clone(keep),
            canonicalizer: harvest.reader().outlinks().canonicalizer().clone(),
            limits: harvest.reader().limits().clone(),
            agent: harvest.reader().agent().to_owned(),
        });
        let control = Arc::new(Control::new(Controlled {
            dir: dir.clone(),
            clock: Clock::clone(&clock),
            runtime: tokio::runtime::Handle::current(),
            urlserver: serving.handle.clone(),
            gate,
            harvest: Arc::clone(&harvest),
            indexer: index.indexer.clone(),
            inlet: Inlet::new(&harvest, Clock::clone(&clock)),
            reading: reading.map(Arc::new),
            watch: Arc::clone(&watch),
            sources: start.sources,
        }));
        let answers = Arc::clone(&control);
        let socket = Socket::listen(&dir, move |question, out| {
            let answered = answers.answer(question, out);
            answered.map_err(|error| Refused {
                kind: error.kind(),
                message: error.to_string(),
            })
        })?;
        Ok(Self {
            control,
            watch,
            harvest,
            urlserver: serving.handle,
            archive,
            clock,
            index,
            index_thread,
            log_thread,
            dispatcher,
            last_orders,
            urlserver_ended: ending_of(serving.task),
            is_service,
            shortages,
            _socket: socket,
            held: start.held,
        })
    }

    /// Where changes to it are made.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }
}

/// Starts the thread that owns the doc index.
fn start_index(
    start: &Start,
    index: &mut indexer::Running,
    docs: DocIndex,
    judge: Rejudge,
    clock: &Clock,
    urlserver: &Handle,
) -> Result<JoinHandle<Result<()>>> {
    let settings = &start.settings;
    let options = IndexerOptions {
        pages: settings.pages,
        per_host: settings.queue_len,
        patience: settings.retry.patience,
        recrawl: settings.recrawl.is_some(),
        presence: start.held.presence().clone(),
    };
    let give_to = urlserver.clone();
    let runtime = tokio::runtime::Handle::current();
    let give = move |supply| {
        runtime.block_on(async {
            // The URL server ends only when the crawl does; what it does not take stays claimed.
            match supply {
                // Reading it may take milliseconds, for which the index does not wait. The URL server asks for
                // a few at once.
                Supply::Robots(origin, kept) => {
                    let give_to = give_to.clone();
                    tokio::spawn(async move { give_to.known_robots(origin, kept).await });
                }
                Supply::Candidates(candidates, paces) => {
                    if !paces.is_empty() {
                        let _ = give_to.known_paces(paces).await;
                    }
                    let _ = give_to.candidates(candidates).await;
                }
            }
        });
    };
    index.start(docs, options, Clock::clone(clock), Box::new(judge), give)
}

/// Turns true when the task is over.
fn ending_of(task: tokio::task::JoinHandle<()>) -> watch::Receiver<bool> {
    let (say, ended) = watch::channel(false);
    tokio::spawn(async move {
        let _ = task.await;
        say.send_replace(true);
    });
    ended
}
