//! What the URL server has to say to the doc index, passed on.

use std::sync::Arc;

use tokio::sync::mpsc;

use orbweaver_config::RetryOptions;
use orbweaver_model::{Clock, Event};
use orbweaver_urlserver::Notice;

use crate::harvest::Harvest;
use orbweaver_reading::retry;

/// Takes what the URL server has to say to the doc index.
pub(crate) async fn pass_on(
    mut notices: mpsc::Receiver<Notice>,
    harvest: Arc<Harvest>,
    retry: RetryOptions,
    clock: Clock,
) {
    let indexer = harvest.indexer();
    while let Some(notice) = notices.recv().await {
        let at = clock();
        match notice {
            Notice::NeedCandidates { want, reject } => indexer.wanted(want, reject).await,
            Notice::Refuse {
                candidate,
                outcome,
                again,
            } => {
                harvest.counters().count_refusal(&outcome);
                harvest.watch_seeds(&candidate.url, &outcome, false);
                let event = retry::refusal(&candidate, outcome, again, &retry, at);
                harvest.given_up(&candidate, &event);
                indexer.event(event).await;
            }
            Notice::Return { candidates, until } => {
                if let (Some(first), Some(until)) = (candidates.first(), until) {
                    let wait = Event::Host {
                        host: first.key.host,
                        not_before: until,
                    };
                    indexer.event(wait).await;
                }
                let keys = candidates.iter().map(|candidate| candidate.key).collect();
                indexer.event(Event::Return { keys }).await;
            }
            Notice::DelayCapped {
                origin,
                asked,
                kept,
            } => {
                tracing::info!(origin, ?asked, ?kept, "crawl-delay capped");
            }
            Notice::Sitemaps { origin, urls } => {
                let links = harvest.reader().sitemaps(&origin, &urls);
                if !links.is_empty() {
                    indexer.event(Event::Links { links, at }).await;
                }
            }
            Notice::RecallRobots { origin } => indexer.recall(origin).await,
            Notice::StoreRobots { origin, record } => {
                let robots = record;
                indexer.event(Event::Robots { origin, robots }).await;
            }
        }
    }
}
