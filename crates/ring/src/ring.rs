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
mod opened;
mod options;
mod serving;
mod start;
mod supervise;

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, watch};

use orbweaver_control::socket::{Refused, Socket};
use orbweaver_crawldir::Held;
use orbweaver_docindex::DocIndex;
use orbweaver_model::Clock;
use orbweaver_spider::Shortages;
use orbweaver_store::Keep;
use orbweaver_urlserver::Handle;
use orbweaver_watch::log;

use self::opened::Opened;
pub(crate) use self::options::can_begin;
use self::serving::Serving;
pub(crate) use self::start::{Fetching, Start};
use crate::control::{Control, Controlled};
use crate::error::{Error, Result};
use crate::fetchers::gate::SendGate;
use crate::fetchers::here::Here;
use crate::fetchers::intake::ResultIntake;
use crate::fetchers::line::LineParts;
use crate::fetchers::{Fetchers, Work};
use crate::harvest::Harvest;
use crate::indexer::{self, IndexerOptions, Supply};
use crate::inlet::Inlet;
use crate::machine::Descriptors;
use crate::notices;
use crate::pages::Reading;
use crate::rejudge::Rejudge;
use crate::watch::{Watch, Watched};

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
