//! The end of a run: each stage stops after the one before it, then the run is summed up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use orbweaver_config::units::moment;
use orbweaver_model::Event;

use super::Ring;
use super::supervise::Reason;
use crate::error::{Error, Result};
use crate::indexer::{Idle, read_at_last};
use crate::sync::lock;
use orbweaver_watch::status::Status;
use orbweaver_watch::summary::{self, Limit, Summary};
use orbweaver_watch::trapped;

impl Ring {
    /// Stops each stage after the one before it has stopped.
    pub(crate) async fn stop(self, reason: Reason) -> Result<Summary> {
        if reason == Reason::Gone {
            // Whatever is still written would be written to files without a name.
            return Err(self.held.presence().gone().into());
        }
        let began = self.watch.began();
        let waits_until = lock(&self.index.standing).waits_until;
        if let Ok(unasked) = self.urlserver.drain().await {
            let keys = unasked.iter().map(|candidate| candidate.key).collect();
            self.index.indexer.event(Event::Return { keys }).await;
        }
        self.last_orders.send_replace(true);
        self.watch.refresh().await;
        let _ = self.dispatcher.await;
        let archive = self.archive.clone();
        let close = move || archive.map_or(Ok(()), |archive| archive.close());
        let stored = tokio::task::spawn_blocking(close).await;
        if let Some(thread) = self.log_thread {
            let log = self.harvest.log().clone();
            let _ = tokio::task::spawn_blocking(move || thread.finish(&log)).await;
        }
        self.index.indexer.stop();
        let thread = self.index_thread;
        let indexed = tokio::task::spawn_blocking(move || thread.join()).await;
        let failed = |what: &str| Error::Failed(format!("{what} failed"));
        indexed
            .map_err(|_| failed("the index thread"))?
            .map_err(|_| failed("the index thread"))??;
        stored.map_err(|_| failed("the store thread"))??;
        let reader = self.watch.reader();
        let (status, why_nothing, trapped) = read_at_last(|| {
            let status = Status::read(reader, (self.clock)())?;
            let why_nothing = summary::why_nothing(reader, &status)?;
            let trapped = trapped::notices(reader, &status)?;
            Ok((status, why_nothing, trapped))
        })?;
        let settings = self.watch.settings();
        let limit = match reason {
            Reason::Idle(Idle::Budget) => Some(Limit::Pages(settings.pages)),
            Reason::Time => settings.time.map(Limit::Time),
            Reason::Gone | Reason::Broken => {
                return Err(Error::Failed(
                    "the URL server failed; the same command resumes".into(),
                ));
            }
            Reason::Idle(_) | Reason::Told => None,
        };
        let harvest = Arc::clone(&self.harvest);
        let mut notices = harvest.notices().all();
        notices.extend(trapped);
        Ok(Summary {
            stopped: reason == Reason::Told,
            limit,
            next: waits_until.map(moment),
            seconds: began.elapsed().as_secs_f64(),
            pages: harvest.counters().documents.load(Ordering::Relaxed),
            status,
            cut: harvest.counters().cut.now(),
            why_nothing,
            notices,
        })
    }
}
