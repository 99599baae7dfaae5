//! The state of a running crawl as values, gathered from the stages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use orbweaver_config::Settings;
use orbweaver_crawldir::{CrawlDir, Space};
use orbweaver_docindex::Reader;
use orbweaver_model::{Clock, CrawlUrl, Link};
use orbweaver_store::Keep;
use orbweaver_urlserver::{Census, Handle};

use crate::error::Result;
use crate::harvest::Harvest;
use crate::indexer::Published;
use crate::pages::{self, Progress};
use crate::sync::lock;
use orbweaver_watch::progress::{self, Progress as RunProgress, Rate};
use orbweaver_watch::slow::{self, Facts, Slow};
use orbweaver_watch::status::Status;
use orbweaver_watch::why::{self, Why};

/// The state of a crawl while it runs.
pub(crate) struct Watch {
    began: Instant,
    dir: CrawlDir,
    clock: Clock,
    urlserver: Handle,
    harvest: Arc<Harvest>,
    /// None when the store is elsewhere.
    archive: Option<Arc<dyn Keep>>,
    standing: Published,
    reader: Reader,
    /// Room on the disk.
    space: Space,
    /// As they are in effect; a reload changes them.
    settings: Mutex<Settings>,
    /// Cores in use, lately.
    busy: Mutex<Busy>,
    rate: Mutex<Rate>,
    /// Those who read pages while they are there. Filled by `heed`, emptied of those that are gone.
    readers: Mutex<Vec<Weak<AtomicU64>>>,
    progress: Mutex<RunProgress>,
}

/// What the state is gathered from.
pub(crate) struct Watched {
    pub(crate) dir: CrawlDir,
    pub(crate) clock: Clock,
    pub(crate) urlserver: Handle,
    pub(crate) harvest: Arc<Harvest>,
    pub(crate) archive: Option<Arc<dyn Keep>>,
    pub(crate) standing: Published,
    pub(crate) reader: Reader,
    pub(crate) settings: Settings,
}

impl Watch {
    pub(crate) fn new(watched: Watched) -> Self {
        Self {
            began: Instant::now(),
            space: Space::of(watched.dir.path()),
            dir: watched.dir,
            clock: watched.clock,
            urlserver: watched.urlserver,
            harvest: watched.harvest,
            archive: watched.archive,
            standing: watched.standing,
            reader: watched.reader,
            settings: Mutex::new(watched.settings),
            busy: Mutex::new(Busy::default()),
            rate: Mutex::default(),
            readers: Mutex::default(),
            progress: Mutex::default(),
        }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The settings in effect.
    pub(crate) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    pub(crate) fn set_settings(&self, settings: Settings) {
        *lock(&self.settings) = settings;
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What there is to tell a person since the last call.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.harvest.notices().news()
    }

    /// What keeps the crawl from writing, most general cause first.
    pub(crate) fn trouble(&self) -> Option<String> {
        let archive = || Some(self.archive.as_ref()?.trouble()?.to_string());
        let index = || lock(&self.standing).trouble.clone();
        self.space.low().or_else(archive).or_else(index)
    }

    /// What damage has cost, in words.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.standing).lost.clone()
    }

    /// From now on the crawl waits for this reader when it is far behind.
    pub(crate) fn heed(&self, reader: &Progress) {
        lock(&self.readers).push(Arc::downgrade(reader));
    }

    /// True when a reader is so far behind that the crawl waits for it.
    pub(crate) fn is_ahead_of_readers(&self) -> bool {
        let Some(archive) = &self.archive else {
            return false;
        };
        let last = archive.results().last();
        let mut readers = lock(&self.readers);
        readers.retain(|reader| reader.strong_count() > 0);
        let read = readers.iter().filter_map(Weak::upgrade);
        let slowest = read.map(|reader| reader.load(Ordering::Relaxed)).min();
        slowest.is_some_and(|slowest| last.saturating_sub(slowest) > pages::MAX_LAG)
    }

    /// Looks at the disk: whether it was nearly full before, and whether it is now.
    pub(crate) fn look_at_disk(&self) -> (bool, bool) {
        (self.space.low().is_some(), self.space.look().is_some())
    }

    /// Measures what takes a while to show: the cores in use. True when a second has passed since the last time.
    pub(crate) fn measure(&self) -> bool {
        lock(&self.busy).measure()
    }

    pub(crate) async fn census(&self) -> Census {
        self.urlserver.census().await.unwrap_or_default()
    }

    /// Takes the crawl's progress anew.
    pub(crate) async fn refresh(&self) {
        let census = self.census().await;
        let queued = lock(&self.standing).ledger.queued;
        let counters = self.harvest.counters();
        let seconds = self.began.elapsed().as_secs_f64();
        let pages = counters.documents.load(Ordering::Relaxed);
        let rate = lock(&self.rate).at(seconds, pages);
        let progress = RunProgress {
            seconds,
            pages,
            rate,
            bytes: counters.bytes.load(Ordering::Relaxed),
            queued,
            hosts_active: census.hosts,
            in_flight: census.orders,
            failed: counters.failed.load(Ordering::Relaxed),
            limited_by: self.slow(&census).limit,
            notices: self.harvest.notices().all(),
        };
        *lock(&self.progress) = progress;
    }

    /// The progress as it was taken last.
    pub(crate) fn progress(&self) -> RunProgress {
        lock(&self.progress).clone()
    }

    /// What limits the speed.
    pub(crate) fn slow(&self, census: &Census) -> Slow {
        let standing = lock(&self.standing).clone();
        let wait = standing.waits_until;
        let facts = Facts {
            census: *census,
            rate: lock(&self.rate).last(),
            busy: lock(&self.busy).cores,
            backlog: self.archive.as_ref().map_or(0, |archive| archive.backlog()),
            trouble: self.trouble(),
            queued: standing.ledger.queued,
            next_try: wait.map(|until| until.since((self.clock)()).as_secs()),
            only_blocked: standing.only_blocked,
        };
        slow::explain(&facts, &lock(&self.settings))
    }

    pub(crate) async fn status(&self) -> Result<Status> {
        let mut status = Status::read(&self.reader, (self.clock)())?;
        status.running = true;
        status.set_census(&self.census().await);
        Ok(status)
    }

    /// Everything that decides about a URL.
    pub(crate) async fn why(&self, url: &CrawlUrl) -> Result<Why> {
        let key = url.key(self.reader.seed());
        let whereabouts = self.urlserver.whereis(url.clone(), key).await.ok();
        let settings = self.settings();
        let scope = |link: &Link| self.harvest.reader().outlinks().scope_verdict(link);
        Ok(why::gather(
            url,
            &why::Sources {
                dir: self.dir.path(),
                reader: &self.reader,
                settings: &settings,
                scope: &scope,
                whereabouts,
                now: (self.clock)(),
            },
        )?)
    }
}

/// Cores in use.
struct Busy {
    cores: f64,
    at: Instant,
    used: Duration,
}

impl Default for Busy {
    fn default() -> Self {
        Self {
            cores: 0.0,
            at: Instant::now(),
            used: progress::cpu_time(),
        }
    }
}

impl Busy {
    fn measure(&mut self) -> bool {
        let passed = self.at.elapsed();
        if passed < Duration::from_secs(1) {
            return false;
        }
        let used = progress::cpu_time();
        self.cores = used.saturating_sub(self.used).as_secs_f64() / passed.as_secs_f64();
        (self.at, self.used) = (Instant::now(), used);
        true
    }
}
