//! Changes to a crawl while it runs.
//!
//! What is durable goes through the doc index as an event, first of all into the log of changes; what holds for this run
//! only, a pause or a stop, goes to whoever waits for it.

mod reload;

use std::io::Write;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use orbweaver_config::units::counted;
use orbweaver_config::{Settings, Sources};
use orbweaver_crawldir::CrawlDir;
use orbweaver_intake::Scope;
use orbweaver_intake::seeds::parse_seed;
use orbweaver_model::{Clock, CrawlUrl, Event, HostSetting};
use orbweaver_urlserver::{Handle, Rates};

use self::reload::{differences, in_effect};
use crate::error::{Context, Error, Result};
use crate::fetchers::gate::SendGate;
use crate::harvest::Harvest;
use crate::indexer::Indexer;
use crate::inlet::Inlet;
use crate::pages::Reading;
use crate::sync::lock;
use crate::watch::Watch;
use orbweaver_control::{Change, Changes, HostChange, Question, Said};
use orbweaver_crawldir::json;
use orbweaver_watch::slow::Slow;
use orbweaver_watch::status::Status;
use orbweaver_watch::why::Why;
use orbweaver_watch::{check, outcomes};

/// What an operator wants of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunState {
    /// End, as after SIGTERM.
    pub(crate) stop: bool,
    /// No more orders for now. A crawl that is run again runs.
    pub(crate) paused: bool,
    /// Running time at most.
    pub(crate) time: Option<Duration>,
}

/// Where changes take effect.
pub(crate) struct Control {
    dir: CrawlDir,
    clock: Clock,
    runtime: tokio::runtime::Handle,
    urlserver: Handle,
    /// Asked before a request is written.
    gate: Arc<SendGate>,
    harvest: Arc<Harvest>,
    indexer: Indexer,
    inlet: Inlet,
    reading: Option<Arc<Reading>>,
    watch: Arc<Watch>,
    state: watch::Sender<RunState>,
    sources: Sources,
    /// Held while a change is made: one at a time.
    changes: Mutex<Changes>,
}

/// What changes reach.
pub(crate) struct Controlled {
    pub(crate) dir: CrawlDir,
    pub(crate) clock: Clock,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) urlserver: Handle,
    pub(crate) gate: Arc<SendGate>,
    pub(crate) harvest: Arc<Harvest>,
    pub(crate) indexer: Indexer,
    pub(crate) inlet: Inlet,
    pub(crate) reading: Option<Arc<Reading>>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) sources: Sources,
}

impl Control {
    pub(crate) fn new(controlled: Controlled) -> Self {
        let time = controlled.watch.settings().time;
        let (state, _) = watch::channel(RunState {
            time,
            ..RunState::default()
        });
        Self {
            changes: Mutex::new(Changes::of(&controlled.dir)),
            dir: controlled.dir,
            clock: controlled.clock,
            runtime: controlled.runtime,
            urlserver: controlled.urlserver,
            gate: controlled.gate,
            harvest: controlled.harvest,
            indexer: controlled.indexer,
            inlet: controlled.inlet,
            reading: controlled.reading,
            watch: controlled.watch,
            state,
            sources: controlled.sources,
        }
    }

    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// What pages are read with; none when the archive is elsewhere.
    pub(crate) fn reading(&self) -> Option<Arc<Reading>> {
        self.reading.clone()
    }

    /// Where links come in.
    pub(crate) fn inlet(&self) -> &Inlet {
        &self.inlet
    }

    /// What is wanted of the run, as it changes.
    pub(crate) fn state(&self) -> watch::Receiver<RunState> {
        self.state.subscribe()
    }

    /// Answers a question from another process, on a thread of its own.
    pub(crate) fn answer(&self, question: Question, out: &mut dyn Write) -> Result<()> {
        let watch = &self.watch;
        match question {
            Question::Status => line(out, &self.status()?),
            Question::Outcomes => Ok(outcomes::write(watch.reader(), self.dir.path(), out)?),
            Question::Check => Ok(check::write_index_findings(watch.reader(), out)?),
            Question::Why { url } => line(out, &self.why(&url)?),
            Question::Slow => line(out, &self.slow()?),
            change => line(out, &self.make(change)?),
        }
    }

    /// Waits for work that is done on the ring's own threads. Unlike the runtime's own waiting this may be called from any
    /// thread, also from one that runs another runtime.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (tell, done) = sync_channel(1);
        self.runtime.spawn(async move {
            // Whoever asked may have gone.
            let _ = tell.send(work.await);
        });
        done.recv().map_err(|_| Error::Ending)
    }

    pub(crate) fn status(&self) -> Result<Status> {
        let watch = Arc::clone(&self.watch);
        self.wait(async move { watch.status().await })?
    }

    pub(crate) fn why(&self, url: &str) -> Result<Why> {
        let url = self.parse(url)?;
        let watch = Arc::clone(&self.watch);
        self.wait(async move { watch.why(&url).await })?
    }

    pub(crate) fn slow(&self) -> Result<Slow> {
        let watch = Arc::clone(&self.watch);
        let census = self.wait(async move { watch.census().await })?;
        Ok(self.watch.slow(&census))
    }

    /// Folds an event and waits until it is on the disk itself.
    fn make_durable(&self, event: Event) -> Result<()> {
        let indexer = self.indexer.clone();
        self.wait(async move { indexer.change(event).await })?
    }

    /// Makes a change, or takes one back. Blocks until it is in effect and, where it lasts, on the disk.
    pub(crate) fn make(&self, question: Question) -> Result<Said> {
        let changes = lock(&self.changes);
        match question {
            Question::Undo { n } => {
                let inverse = changes.inverse(n)?;
                self.change(&changes, inverse, Some(n))
            }
            change => self.change(&changes, change, None),
        }
    }

    /// A URL as an operator writes it.
    pub(crate) fn parse(&self, text: &str) -> Result<CrawlUrl> {
        parse_seed(text, self.harvest.reader().outlinks().canonicalizer())
            .map_err(|error| Error::input(format!("`{text}` is not a URL: {error}")))
    }

    /// Makes a change: first into the log, then into effect.
    fn change(&self, changes: &Changes, question: Question, undoes: Option<u64>) -> Result<Said> {
        if let Some(change) = HostChange::of(&question, self.watch.reader())? {
            return self.change_host(changes, &change, undoes);
        }
        match question {
            Question::Pause => self.pause(changes, true, undoes),
            Question::Resume => self.pause(changes, false, undoes),
            Question::Stop => {
                let n = self.log(changes, &Change::Stop, undoes)?;
                self.stop();
                Ok(said(
                    n,
                    "the crawl is stopping; requests in flight may finish".into(),
                ))
            }
            Question::Add { urls } => self.add(changes, &urls),
            Question::Reload => self.reload(changes),
            other => Err(Error::input(format!(
                "not a change: {}",
                json::line(&other)
            ))),
        }
    }

    /// Ends the run, without an entry in the log.
    pub(crate) fn stop(&self) {
        self.state.send_modify(|state| state.stop = true);
    }

    fn log(&self, changes: &Changes, change: &Change, undoes: Option<u64>) -> Result<u64> {
        Ok(changes.append(change, undoes, (self.clock)())?)
    }

    fn change_host(
        &self,
        changes: &Changes,
        change: &HostChange,
        undoes: Option<u64>,
    ) -> Result<Said> {
        let n = self.log(changes, &change.change, undoes)?;
        let event = change.event(self.watch.reader(), (self.clock)());
        let tell = || -> Result<()> {
            let (urlserver, host) = (self.urlserver.clone(), change.host.clone());
            let setting = change.setting;
            Ok(self.wait(async move { urlserver.set(&host, setting).await })??)
        };
        // A host is offered only while the doc index does, and taken only while the URL server does. So
        // the doc index must know of a block first, and the URL server of its end.
        if change.setting == HostSetting::Blocked(false) {
            self.gate.block(&change.host, false);
            tell()?;
            self.make_durable(event)?;
        } else {
            self.make_durable(event)?;
            tell()?;
        }
        // What the gate sends back must find the host blocked.
        if change.setting == HostSetting::Blocked(true) {
            self.gate.block(&change.host, true);
        }
        let mut answer = said(n, change.change.words());
        if let HostSetting::Gap(Some(_)) = change.setting {
            let settings = self.watch.settings();
            answer.details.push(format!(
                "a longer Crawl-delay still applies, and so does the limit of {} requests/s per IP address",
                settings.ip_rate
            ));
        }
        Ok(answer)
    }

    fn pause(&self, changes: &Changes, paused: bool, undoes: Option<u64>) -> Result<Said> {
        let was = self.state.borrow().paused;
        let change = Change::Paused { paused, was };
        let n = self.log(changes, &change, undoes)?;
        let urlserver = self.urlserver.clone();
        self.wait(async move { urlserver.pause(paused).await })??;
        self.state.send_modify(|state| state.paused = paused);
        Ok(said(n, change.words()))
    }

    /// New seeds: they are judged, they widen the scope, and they are kept, like those of the start.
    fn add(&self, changes: &Changes, texts: &[String]) -> Result<Said> {
        let urls: Vec<CrawlUrl> = texts
            .iter()
            .map(|text| self.parse(text))
            .collect::<Result<_>>()?;
        let change = Change::Add {
            urls: urls.iter().map(ToString::to_string).collect(),
        };
        let n = self.log(changes, &change, None)?;
        let (inlet, seeds) = (self.inlet.clone(), urls.clone());
        let offered = self.wait(async move { inlet.offer_seeds(&seeds).await })??;
        let refused = offered.refused.iter();
        let details = refused.map(|(url, why)| format!("{url} is refused: {why}"));
        let details: Vec<String> = details.collect();
        let known = offered.known;
        let mut answer = said(
            n,
            format!("{} added as seeds", counted(urls.len() as u64, "URL")),
        );
        answer.details = details;
        if known > 0 {
            let dir = self.dir.path().display();
            answer.details.push(format!(
                "{known} of them already known; `orbweaver why {dir} URL` shows the state of one"
            ));
        }
        Ok(answer)
    }

    /// Reads the settings again. A mistake in them changes nothing.
    fn reload(&self, changes: &Changes) -> Result<Said> {
        let config = self.sources.read(self.dir.stored_config()?)?;
        let fresh = Settings::new(&config)?;
        let old = self.watch.settings();
        let (live, later) = differences(&old, &fresh);
        let scope = self.scope(&fresh)?;
        let settings = live.clone();
        let n = self.log(changes, &Change::Reload { settings }, None)?;
        self.dir.store_config(&config)?;
        self.harvest.reader().outlinks().set_scope(scope);
        let indexer = self.indexer.clone();
        let (pages, budgets) = (fresh.pages, fresh.budgets);
        self.wait(async move {
            indexer.rules_changed().await;
            indexer.budgets(pages, budgets).await;
        })?;
        let rates = Rates {
            host_per_sec: fresh.host_rate,
            ip_per_sec: fresh.ip_rate,
            ip_concurrent: fresh.per_ip,
            hosts: fresh.hosts.policies.clone(),
        };
        let urlserver = self.urlserver.clone();
        self.wait(async move { urlserver.set_rates(rates).await })??;
        self.state.send_modify(|state| state.time = fresh.time);
        self.watch.set_settings(in_effect(old, fresh));
        let mut answer = said(n, Change::Reload { settings: live }.words());
        let waiting = later
            .into_iter()
            .map(|change| format!("after the next start: {change}"));
        answer.details = waiting.collect();
        Ok(answer)
    }

    /// The scope by these settings, with every seed that the crawl has come to.
    fn scope(&self, settings: &Settings) -> Result<Scope> {
        let mut scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
        for seed in self.watch.reader().seeds() {
            scope.admit(&seed?);
        }
        Ok(scope)
    }
}

fn said(n: u64, said: String) -> Said {
    Said {
        n: Some(n),
        said,
        details: Vec::new(),
    }
}

fn line(out: &mut dyn Write, answer: &impl Serialize) -> Result<()> {
    writeln!(out, "{}", json::line(answer)).context("cannot answer")
}
