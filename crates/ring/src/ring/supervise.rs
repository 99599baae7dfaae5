//! The ring while it runs: what has to be looked at now and then, and the reasons to stop.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Ring;
use crate::control::RunState;
use crate::indexer::Idle;
use crate::sync::lock;

/// How often the ring is looked at.
const EVERY: Duration = Duration::from_millis(250);

/// Why the ring stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Idle(Idle),
    Time,
    /// It was told to.
    Told,
    /// The crawl directory is gone.
    Gone,
    /// A stage ended that should not have.
    Broken,
}

impl Ring {
    /// A crawl that is paused does not end because what is left has to wait.
    fn ends(&self, idle: Idle, state: RunState) -> bool {
        match idle {
            Idle::No => false,
            Idle::Later => !state.paused && !self.is_service,
            Idle::Empty | Idle::Budget => !self.is_service,
            Idle::Failed => true,
        }
    }

    /// Looks after the ring until there is a reason to stop.
    pub(crate) async fn supervise(&self) -> Reason {
        let mut idle = self.index.idle.clone();
        let mut state = self.control.state();
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut said = None;
        let mut said_lost = None;
        let mut held = false;
        let mut ended = self.urlserver_ended.clone();
        loop {
            let now = *state.borrow_and_update();
            if now.stop {
                return Reason::Told;
            }
            tokio::select! {
                Ok(idle) = idle.wait_for(|idle| self.ends(*idle, now)) => return Reason::Idle(*idle),
                () = end_of(self.watch.began(), now.time) => return Reason::Time,
                Ok(()) = state.changed() => {}
                Ok(_) = ended.wait_for(|ended| *ended) => return Reason::Broken,
                _ = ticks.tick() => {
                    if !self.held.presence().holds() {
                        return Reason::Gone;
                    }
                    if self.watch.measure() {
                        self.held.dir().level_modes();
                    }
                    held = self.hold_back(now.paused, held).await;
                    self.look(&mut said, &mut said_lost);
                    self.forget_results();
                    self.watch.refresh().await;
                }
            }
        }
    }

    /// Finds what there is to tell.
    fn look(&self, said: &mut Option<String>, said_lost: &mut Option<String>) {
        let harvest = &self.harvest;
        let lost = self.watch.lost();
        if let Some(lost) = lost.filter(|lost| said_lost.as_ref() != Some(lost)) {
            harvest.notices().say(lost.clone());
            *said_lost = Some(lost);
        }
        let answers = harvest.counters().answers.load(Ordering::Relaxed);
        let elapsed = self.watch.began().elapsed();
        harvest.seeds().look(elapsed, answers, harvest.notices());
        if let Some(what) = self.shortages.take() {
            harvest.notices().add(format!(
                "this machine is out of connections ({what}); requests wait for one and do not count as failed: raise ulimit -n, or lower --concurrency"
            ));
        }
        let trouble = self.watch.trouble();
        if trouble != *said {
            let sentence = trouble.as_deref().unwrap_or("the store writes again");
            harvest.notices().say(sentence.to_owned());
            *said = trouble;
        }
    }

    /// Results that the doc index has on the disk itself, and every other follower too, need not be kept.
    fn forget_results(&self) {
        let Some(archive) = &self.archive else {
            return;
        };
        let folded = lock(&self.index.standing).results;
        if let Err(error) = archive.results().folded(folded) {
            tracing::warn!(%error, "old results cannot be removed");
        }
    }

    /// Lets no more orders out while the disk is nearly full or a reader of pages is far behind, and lets them out again
    /// after. True while orders are held back.
    async fn hold_back(&self, paused: bool, held: bool) -> bool {
        let (was_low, low) = self.watch.look_at_disk();
        let hold = low || self.watch.is_ahead_of_readers();
        if hold || held || was_low {
            // An operator may have resumed meanwhile. Failing means that the crawl is ending.
            let _ = self.urlserver.pause(hold || paused).await;
        }
        hold
    }
}

/// Waits for the end of the time that a run has.
async fn end_of(began: Instant, time: Option<Duration>) {
    match time.and_then(|time| began.checked_add(time)) {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}
