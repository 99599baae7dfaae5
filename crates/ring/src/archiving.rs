//! The archive of a crawl, as those who fetch see it.

use std::sync::Arc;

use orbweaver_intake::surt;
use orbweaver_model::{CrawlUrl, FetchResult, Outcome, Visit};
use orbweaver_store::{Ack, Capture, Captured, Keep};

/// Above this backlog a worker that submits is likely to wait, and must not hold up its neighbours.
const BUSY_BACKLOG: usize = 4 << 20;

/// Hands exchanges to the archive, in the terms of a crawl.
pub(crate) struct Archiving {
    keep: Arc<dyn Keep>,
}

impl Archiving {
    /// To this archive.
    pub(crate) fn new(keep: Arc<dyn Keep>) -> Self {
        Self { keep }
    }

    /// Hands over the exchange of a page.
    pub(crate) fn page(&self, visit: &Visit, outcome: &Outcome, ack: Ack) {
        let candidate = &visit.candidate;
        let capture = Capture {
            url: &candidate.url,
            of: Captured::Page(candidate),
            result: &visit.result,
            unchanged_since: candidate.revisit.as_ref().map(|before| before.captured),
            surt: &surt(&candidate.url),
            outcome,
            via: None,
        };
        self.put(&capture, ack);
    }

    /// Hands over the exchange of a robots.txt.
    pub(crate) fn robots(&self, url: &CrawlUrl, result: &FetchResult, ack: Ack) {
        let capture = Capture {
            url,
            of: Captured::Robots,
            result,
            unchanged_since: None,
            surt: &surt(url),
            outcome: &result.outcome,
            via: None,
        };
        self.put(&capture, ack);
    }

    fn put(&self, capture: &Capture<'_>, ack: Ack) {
        let exchange = capture.result.exchange.as_ref();
        // A body on disk is read twice and compressed, which takes its time.
        let is_on_disk = exchange.is_some_and(|it| it.spooled.is_some());
        // All that a later run needs to know is in the exchange itself.
        let put = || self.keep.put(capture, &[], ack);
        if is_on_disk || self.keep.backlog() > BUSY_BACKLOG {
            tokio::task::block_in_place(put);
        } else {
            put();
        }
    }
}
