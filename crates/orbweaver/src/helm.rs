//! What other processes can ask of a running crawl, and change in it.
//!
//! Questions arrive at the control socket, on threads of their own. What is durable goes through the doc
//! index as an event, first of all into the log of changes; what holds for this run only, a pause or a
//! stop, goes to whoever waits for it.

mod reload;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tokio::sync::watch;

use orbweaver_docindex::Reader;
use orbweaver_intake::seeds::parse_seed;
use orbweaver_model::{Clock, CrawlUrl, Event, HostSetting, Link, LinkKind};
use orbweaver_store::Archive;
use orbweaver_urlserver::{Census, Handle};

use crate::changes::{Change, Changes};
use crate::cli::{check, outcomes, status::Status};
use crate::control::Question;
use crate::crawl_dir::CrawlDir;
use crate::exit::Fatal;
use crate::harvest::Harvest;
use crate::indexer::{Indexer, Standing};
use crate::slow::{self, Facts, Slow};
use crate::space::Space;
use crate::steer::{HostChange, Said};
use crate::terminal;
use crate::why::{self, Why};
use orbweaver_config::Settings;
use orbweaver_config::Sources;
use orbweaver_config::units::counted;

/// What an operator wants of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// End, as after SIGTERM.
    pub(crate) stop: bool,
    /// No more orders for now. A crawl that is run again runs.
    pub(crate) paused: bool,
    /// Running time at most.
    pub(crate) time: Option<Duration>,
}

/// What the ring measures for those who ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    /// Cores in use, lately.
    pub(crate) busy: f64,
    /// Pages a second, lately.
    pub(crate) rate: f64,
}

/// The hands and eyes of those who ask.
pub(crate) struct Helm {
    pub(crate) dir: CrawlDir,
    pub(crate) clock: Clock,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) urlserver: Handle,
    pub(crate) harvest: Arc<Harvest>,
    /// None when the store is elsewhere.
    pub(crate) archive: Option<Arc<Archive>>,
    pub(crate) indexer: Indexer,
    pub(crate) standing: Arc<Mutex<Standing>>,
    pub(crate) reader: Reader,
    pub(crate) gauge: Mutex<Gauge>,
    /// What the store complains of, while it does.
    pub(crate) trouble: Arc<Mutex<Option<String>>>,
    /// Room on the disk.
    pub(crate) space: Space,
    pub(crate) wishes: watch::Sender<Wishes>,
    /// As they are in effect; `reload` changes them.
    pub(crate) settings: Mutex<Settings>,
    pub(crate) sources: Sources,
    /// Held while a change is made: one at a time.
    pub(crate) changes: Mutex<Changes>,
}

impl Helm {
    /// Answers a question.
    pub(crate) fn answer(&self, question: Question, out: &mut dyn Write) -> Result<()> {
        match question {
            Question::Status => line(out, &self.status()?),
            Question::Outcomes => outcomes::write(&self.reader, self.dir.path(), out),
            Question::Check => check::write_index_findings(&self.reader, out),
            Question::Why { url } => line(out, &self.why(&url)?),
            Question::Slow => line(out, &self.slow(&self.ask_census())),
            Question::Undo { n } => {
                let changes = lock(&self.changes);
                let inverse = changes.inverse(n)?;
                line(out, &self.change(&changes, inverse, Some(n))?)
            }
            change => {
                let changes = lock(&self.changes);
                line(out, &self.change(&changes, change, None)?)
            }
        }
    }

    /// What keeps the crawl from writing, most general cause first.
    pub(crate) fn trouble(&self) -> Option<String> {
        let archive = || lock(&self.trouble).clone();
        let index = || lock(&self.standing).trouble.clone();
        self.space.low().or_else(archive).or_else(index)
    }

    /// What limits the speed.
    pub(crate) fn slow(&self, census: &Census) -> Slow {
        let standing = lock(&self.standing).clone();
        let gauge = lock(&self.gauge).clone();
        let wait = standing.waits_until;
        let facts = Facts {
            census: *census,
            rate: gauge.rate,
            busy: gauge.busy,
            backlog: self.archive.as_ref().map_or(0, |archive| archive.backlog()),
            trouble: self.trouble(),
            queued: standing.ledger.queued,
            next_try: wait.map(|until| until.since((self.clock)()).as_secs()),
            only_blocked: standing.only_blocked,
        };
        slow::explain(&facts, &lock(&self.settings))
    }

    fn ask_census(&self) -> Census {
        self.runtime
            .block_on(self.urlserver.census())
            .unwrap_or_default()
    }

    fn status(&self) -> Result<Status> {
        let mut status = Status::read(&self.reader, (self.clock)())?;
        status.running = true;
        status.set_census(&self.ask_census());
        Ok(status)
    }

    fn why(&self, text: &str) -> Result<Why> {
        let url = self.parse(text)?;
        let key = url.key(self.reader.seed());
        let found = self.urlserver.whereis(url.clone(), key);
        let whereabouts = self.runtime.block_on(found).ok();
        let settings = lock(&self.settings).clone();
        let scope = |link: &Link| self.harvest.outlinks.scope_verdict(link);
        why::gather(
            &url,
            &why::Sources {
                dir: self.dir.path(),
                reader: &self.reader,
                settings: &settings,
                scope: &scope,
                whereabouts,
                now: (self.clock)(),
            },
        )
    }

    fn parse(&self, text: &str) -> Result<CrawlUrl> {
        parse_seed(text, self.harvest.outlinks.canonicalizer())
            .map_err(|error| Fatal::input(format!("`{text}` is not a URL: {error}")))
    }

    /// Makes a change: first into the log, then into effect.
    fn change(&self, changes: &Changes, question: Question, undoes: Option<u64>) -> Result<Said> {
        if let Some(change) = HostChange::of(&question, &self.reader)? {
            return self.change_host(changes, &change, undoes);
        }
        match question {
            Question::Pause => self.pause(changes, true, undoes),
            Question::Resume => self.pause(changes, false, undoes),
            Question::Stop => {
                let n = self.log(changes, &Change::Stop, undoes)?;
                self.wishes.send_modify(|wishes| wishes.stop = true);
                Ok(said(
                    n,
                    "the crawl is stopping; requests that are out may end".into(),
                ))
            }
            Question::Add { urls } => self.add(changes, &urls),
            Question::Reload => self.reload(changes),
            other => Err(Fatal::input(format!(
                "this is no change: {}",
                terminal::json(&other)
            ))),
        }
    }

    fn log(&self, changes: &Changes, change: &Change, undoes: Option<u64>) -> Result<u64> {
        changes.append(change, undoes, (self.clock)())
    }

    fn change_host(
        &self,
        changes: &Changes,
        change: &HostChange,
        undoes: Option<u64>,
    ) -> Result<Said> {
        let n = self.log(changes, &change.change, undoes)?;
        let event = change.event(&self.reader, (self.clock)());
        let tell = || {
            self.runtime
                .block_on(self.urlserver.set(&change.host, change.setting))
        };
        // A host is offered only while the doc index does, and taken only while the URL server does. So
        // the doc index must know of a block first, and the URL server of its end.
        if change.setting == HostSetting::Blocked(false) {
            tell()?;
            self.indexer.change(event)?;
        } else {
            self.indexer.change(event)?;
            tell()?;
        }
        let mut answer = said(n, change.change.words());
        if let HostSetting::Gap(Some(_)) = change.setting {
            let settings = lock(&self.settings);
            answer.details.push(format!(
                "a Crawl-delay that asks for more is obeyed, and so is the limit of {} requests/s to its address",
                settings.ip_rate
            ));
        }
        Ok(answer)
    }

    fn pause(&self, changes: &Changes, paused: bool, undoes: Option<u64>) -> Result<Said> {
        let was = self.wishes.borrow().paused;
        let change = Change::Paused { paused, was };
        let n = self.log(changes, &change, undoes)?;
        self.runtime.block_on(self.urlserver.pause(paused))?;
        self.wishes.send_modify(|wishes| wishes.paused = paused);
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
        for url in &urls {
            if self.harvest.outlinks.admit_seed(url) {
                self.indexer.scope_grew(url.clone());
            }
        }
        let event = seeds(&urls, &self.harvest, (self.clock)());
        let refused = match &event {
            Event::Links { links, .. } => links.iter().filter_map(|new| {
                let why = new.refused.as_ref()?;
                Some(format!("{} is refused: {}", new.link.url, why.reason))
            }),
            _ => return Err(anyhow::anyhow!("seeds are links")),
        };
        let details: Vec<String> = refused.collect();
        let known = urls
            .iter()
            .filter(|url| self.harvest.seen.contains(url.key(self.reader.seed())))
            .count();
        self.indexer.change(event)?;
        let mut answer = said(
            n,
            format!("{} added as seeds", counted(urls.len() as u64, "URL")),
        );
        answer.details = details;
        if known > 0 {
            let dir = self.dir.path().display();
            answer.details.push(format!(
                "{known} of them known already; `orbweaver why {dir} URL` says what became of one"
            ));
        }
        Ok(answer)
    }
}

/// Seeds as links, judged.
pub(crate) fn seeds(urls: &[CrawlUrl], harvest: &Harvest, at: orbweaver_model::Timestamp) -> Event {
    let links = urls.iter().map(|url| {
        harvest.outlinks.judge(Link {
            url: url.clone(),
            kind: LinkKind::Seed,
            depth: 0,
            priority: orbweaver_intake::priority(LinkKind::Seed),
            via: None,
            chain: Vec::new(),
        })
    });
    Event::Links {
        links: links.collect(),
        at,
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
    Ok(writeln!(out, "{}", terminal::json(answer))?)
}

/// A thread that failed while it held the lock has left nothing half done: what is behind these locks is
/// replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
