//! The ring while it turns: progress, notices, the disk, and the reasons to stop.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Ring;
use crate::helm::{Wishes, lock};
use crate::indexer::Idle;
use crate::machine::Signals;
use crate::progress::{self, Progress};

/// Why the ring stops turning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Idle(Idle),
    Time,
    Signal,
    /// The crawl directory is gone.
    Gone,
    /// A stage ended that should not have.
    Broken,
}

impl Ring {
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
    pub(super) async fn watch(
        &self,
        mut progress: Progress,
        signals: &mut Signals,
    ) -> (Reason, Progress) {
        let mut idle = self.index.idle.clone();
        let mut wishes = self.helm.wishes.subscribe();
        let mut ticks = tokio::time::interval(Progress::EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut cpu = (Instant::now(), progress::cpu_time());
        let mut said = None;
        let mut said_lost = None;
        let mut ended = self.urlserver_ended.clone();
        // A run may end before the first tick.
        self.say_news(&progress);
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
                    if let Some(what) = self.shortages.take() {
                        harvest.notices.add(format!(
                            "this machine has no connection to spare ({what}); requests wait for one, and no server is blamed: ulimit -n, or a lower --concurrency"
                        ));
                    }
                    self.say_news(&progress);
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

    /// Says what there is to tell and has not been said.
    fn say_news(&self, progress: &Progress) {
        for notice in self.helm.harvest.notices.news() {
            progress.say(&format!("orbweaver: {notice}"));
        }
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

    pub(super) async fn standing(&self) -> progress::Standing {
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
}

/// Waits for the end of the time that a run has.
async fn end_of(began: Instant, time: Option<Duration>) {
    match time.and_then(|time| began.checked_add(time)) {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}
