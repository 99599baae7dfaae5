//! What the URL server has to say to the doc index, passed on.

use std::sync::Arc;

use tokio::sync::mpsc;

use orbweaver_config::RetryOptions;
use orbweaver_model::{Clock, Event};
use orbweaver_urlserver::Notice;

use crate::harvest::Harvest;
use crate::retry;

/// Takes what the URL server has to say to the doc index.
pub(crate) async fn pass_on(
    mut notices: mpsc::Receiver<Notice>,
    harvest: Arc<Harvest>,
    retry: RetryOptions,
    clock: Clock,
) {
    let indexer = harvest.indexer.clone();
    while let Some(notice) = notices.recv().await {
        let at = clock();
        match notice {
            Notice::NeedCandidates { want, reject } => indexer.wanted(want, reject),
            Notice::Refuse {
                candidate,
                outcome,
                again,
            } => {
                harvest.count_refusal(&outcome);
                harvest.watch_seeds(&candidate.url, &outcome, false);
                let event = retry::refusal(&candidate, outcome, again, &retry, at);
                harvest.given_up(&candidate, &event);
                indexer.event(event, None);
            }
            Notice::Return { candidates, until } => {
                if let (Some(first), Some(until)) = (candidates.first(), until) {
                    indexer.event(
                        Event::Host {
                            host: first.key.host,
                            not_before: until,
                        },
                        None,
                    );
                }
                let keys = candidates.iter().map(|candidate| candidate.key).collect();
                indexer.event(Event::Return { keys }, None);
            }
            Notice::DelayCapped {
                origin,
                asked,
                kept,
            } => {
                tracing::info!(origin, ?asked, ?kept, "crawl-delay capped");
            }
            Notice::Sitemaps { origin, urls } => {
                if let Some(event) = harvest.sitemaps(&origin, &urls, at) {
                    indexer.event(event, None);
                }
            }
            Notice::RecallRobots { origin } => indexer.recall(origin),
            Notice::StoreRobots { origin, record } => {
                indexer.event(
                    Event::Robots {
                        origin,
                        robots: record,
                    },
                    None,
                );
            }
        }
    }
}
