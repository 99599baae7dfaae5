//! The end of a run: each stage stops after the one before it, then the run is summed up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};

use orbweaver_model::Event;

use super::Ring;
use super::watch::Reason;
use crate::bounded;
use crate::cli::status::Status;
use crate::exit::{Ending, Fatal};
use crate::helm::lock;
use crate::indexer::{Idle, read_at_last};
use crate::machine::Signals;
use crate::progress::{self, Progress};
use crate::summary::{self, Limit, Outline};
use orbweaver_config::units::moment;

impl Ring {
    /// Stops each stage after the one before it has stopped.
    pub(super) async fn stop(
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
        let harvest = Arc::clone(&self.helm.harvest);
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
            let (status, why_nothing, bounded) = read_at_last(|| {
                let reader = &self.helm.reader;
                let status = Status::read(reader, (self.helm.clock)())?;
                let why_nothing = summary::why_nothing(reader, &status)?;
                let bounded = bounded::notices(reader, &status)?;
                Ok((status, why_nothing, bounded))
            })?;
            let mut notices = self.helm.harvest.notices.all();
            notices.extend(bounded);
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
            cut: harvest.counters.cut.now(),
            why_nothing,
            notices,
        })
    }
}
